//! A room for tools over HTTP: a client that is safe to hold, and what an answer means ([`answer`](self::answer)'s table).
//!
//! ```no_run
//! # use std::time::Duration;
//! # use action_group::tool::{HttpBackend, ToolError};
//! # async fn example(key: &str, time_left: Duration) -> Result<(), ToolError> {
//! let carrier = HttpBackend::new("The carrier"); // begins the sentences that the model reads
//! let request = carrier.client()?.post("https://api.carrier.example/v1/labels").header("Idempotency-Key", key);
//! let answer = carrier.send(request, time_left).await?; // of any status: match your own first
//! let label: serde_json::Value = answer.json()?; // all others are faults, by the table
//! # Ok(()) }
//! ```
//!
//! It does not retry. The pipeline does, by what the error says: one layer retries.

mod answer;

use std::{
    sync::OnceLock,
    time::{Duration, SystemTime},
};

use super::ToolError;

pub use self::answer::HttpAnswer;
pub(crate) use self::answer::retry_after;

/// The longest wait for a connection. A connection that does not come about is tried again: nothing was sent.
const CONNECT: Duration = Duration::from_secs(1);
/// A connection that was idle for longer is not used again. Behind a frozen process and a load balancer it may be dead,
/// and a request on a dead connection leaves open whether it was served. Load balancers close theirs after 60 s.
const IDLE: Duration = Duration::from_secs(20);

/// A system behind HTTP. Hold one in the tool; its connections are shared by all calls.
#[derive(Debug)]
pub struct HttpBackend {
    service: &'static str,
    client: OnceLock<reqwest::Client>,
}

impl HttpBackend {
    /// `service` begins the sentences that the model reads, for example `The carrier`.
    pub const fn new(service: &'static str) -> Self {
        Self { service, client: OnceLock::new() }
    }

    /// The client, made at the first call: a cold start should not pay for TLS that it may never use.
    ///
    /// # Errors
    ///
    /// If TLS cannot be set up; a fault of ours, and nothing was sent.
    pub fn client(&self) -> Result<&reqwest::Client, ToolError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        // An error says that the process has a provider already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none()) // a redirected request would carry its key to another host
            .retry(reqwest::retry::never()) // the pipeline retries
            .connect_timeout(CONNECT)
            .pool_idle_timeout(IDLE)
            .build()
            .map_err(|error| ToolError::internal(error).nothing_sent())?;
        Ok(self.client.get_or_init(|| client))
    }

    /// Sends one request, and reads the whole answer within `time`: [`CallContext::time_left`](super::CallContext::time_left).
    ///
    /// # Errors
    ///
    /// Only if there is no answer at all.
    pub async fn send(&self, request: reqwest::RequestBuilder, time: Duration) -> Result<HttpAnswer, ToolError> {
        let answer = request.timeout(time).send().await.map_err(|error| self.no_answer(error))?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let body = answer.bytes().await.map_err(|error| self.no_answer(error))?;
        Ok(HttpAnswer { service: self.service, status, headers, body, at: SystemTime::now() })
    }

    fn no_answer(&self, error: reqwest::Error) -> ToolError {
        let error = error.without_url(); // it may hold a credential
        if error.is_builder() {
            ToolError::internal(error).nothing_sent()
        } else if error.is_connect() {
            ToolError::transient(format!("{} cannot be reached for now.", self.service)).with_source(error)
        } else {
            ToolError::no_answer(format!("{} gave no clear answer.", self.service)).with_source(error)
        }
    }
}
