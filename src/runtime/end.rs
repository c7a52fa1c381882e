//! The end of an environment. Lambda sends SIGTERM before it takes an idle environment down, but only to functions that
//! have an extension; so the function registers one of its own that wants no events, as `lambda_runtime`'s helper does.
//!
//! Lambda then gives the process 500 ms before it kills it
//! ([the shutdown phase](https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html)).
//!
//! | at | what happens |
//! | --- | --- |
//! | once | no invocation is fetched any more; attempts and waits end, and their records are settled by what is known |
//! | [`GRACE`] at the latest | the process ends with exit code 0, whatever is still on its way |
//!
//! A record that could not be settled is like one of a process that was killed: its lease and its effect decide.

use std::time::Duration;

use http::{Method, StatusCode};
use http_body_util::BodyExt;
use lambda_runtime_api_client::{BoxError, body::Body, build_request};
use tokio::time::timeout;

use super::{Api, api::PROMPT};

/// The time to settle and to answer what is on its way.
pub(super) const GRACE: Duration = Duration::from_millis(300);

/// When Lambda kills the process.
const KILL: Duration = Duration::from_millis(500);
const _: () = assert!(GRACE.as_millis() + 100 < KILL.as_millis(), "the process needs time to go");

const NAME: &str = "action-group-end"; // must be unique within a function
const NAME_HEADER: &str = "lambda-extension-name";
const ID_HEADER: &str = "lambda-extension-identifier";

/// Waits until the process is asked to end.
pub(crate) async fn asked() {
    if let Err(error) = signal().await {
        tracing::warn!(%error, "The end of the process cannot be foreseen.");
        std::future::pending::<()>().await;
    }
}

#[cfg(unix)]
async fn signal() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    signal(SignalKind::terminate())?.recv().await;
    Ok(())
}

#[cfg(not(unix))]
async fn signal() -> std::io::Result<()> {
    std::future::pending().await // Lambda is Linux
}

impl Api {
    /// Registers the extension. It has to be done before the first invocation is asked for. Without it the function works
    /// as well, and ends unawares.
    pub(super) async fn register(&self) -> Option<Extension> {
        let registered = timeout(PROMPT, self.try_register()).await;
        match registered.unwrap_or_else(|late| Err(late.into())) {
            Ok(id) => Some(Extension { id }),
            Err(error) => {
                tracing::debug!(%error, "No extension could be registered: the end will come without a signal.");
                None
            }
        }
    }

    async fn try_register(&self) -> Result<http::HeaderValue, BoxError> {
        let request = build_request()
            .method(Method::POST)
            .uri("/2020-01-01/extension/register")
            .header(NAME_HEADER, NAME)
            .body(Body::from(r#"{"events":[]}"#))?;
        let response = self.client.call(request).await?;
        let (head, body) = response.into_parts();
        let _ = body.collect().await; // so that the connection can be used again
        match head.headers.get(ID_HEADER) {
            Some(id) if head.status == StatusCode::OK => Ok(id.clone()),
            _ => Err(format!("status {}", head.status).into()),
        }
    }

    /// Says that the extension has started, and waits for the event that never comes.
    pub(super) async fn stay(&self, extension: Option<Extension>) {
        if let Some(Extension { id }) = extension {
            let request = build_request().uri("/2020-01-01/extension/event/next").header(ID_HEADER, id);
            if let Ok(request) = request.body(Body::empty()) {
                let _ = self.client.call(request).await; // an error means that Lambda is no longer there
            }
        }
        std::future::pending::<()>().await;
    }
}

/// An extension that is registered.
pub(super) struct Extension {
    id: http::HeaderValue,
}
