//! The requests of the [Lambda Runtime API](https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html).

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, Uri, header::CONTENT_TYPE};
use http_body_util::BodyExt;
use lambda_runtime_api_client::{BoxError, PooledClient, body::Body, build_request};
use tokio::time::{Instant, timeout, timeout_at};

use super::{Answer, FunctionError, guard, invocation::Incoming};

const INVOCATION_ID: &str = "lambda-runtime-invocation-id";
const ERROR_TYPE: &str = "lambda-runtime-function-error-type";

/// The longest that the Runtime API has to take an answer, or any other message but the question for an invocation, which
/// waits for one. It is on this machine and takes milliseconds; if it hangs, the next invocation must not wait for ever.
pub(super) const PROMPT: Duration = Duration::from_secs(5);

/// Why the Runtime API cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    /// `AWS_LAMBDA_RUNTIME_API` holds no address.
    #[error("AWS_LAMBDA_RUNTIME_API is {0:?}, but must be a host and a port, for example 127.0.0.1:9001.")]
    Address(String),
    /// The connection failed.
    #[error("The Lambda Runtime API does not answer: {0}.")]
    Connection(#[source] BoxError),
    /// It answered, but not with an invocation.
    #[error("The Lambda Runtime API answered with the status {0}.")]
    Status(StatusCode),
}

/// What became of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    Taken,
    TooLarge,
    Refused(StatusCode),
}

/// A client of the Runtime API.
#[derive(Debug)]
pub struct Api {
    pub(super) client: PooledClient,
}

impl Api {
    /// The API at this address, a host and a port.
    ///
    /// # Errors
    ///
    /// If it is no address.
    pub fn at(address: &str, connections: usize) -> Result<Self, ApiError> {
        let endpoint: Uri = address.parse().map_err(|_| ApiError::Address(address.to_owned()))?;
        if endpoint.host().is_none_or(str::is_empty) {
            return Err(ApiError::Address(address.to_owned())); // the client would panic
        }
        Ok(Self { client: PooledClient::builder().with_endpoint(endpoint).with_pool_size(connections).build() })
    }

    /// Waits for the next invocation, and reads its payload while there is time to answer that it could not be read. `None`
    /// when there is none yet, which `cargo lambda watch` says by a 204.
    pub(super) async fn next(&self) -> Result<Option<(Incoming, Result<Bytes, BoxError>)>, ApiError> {
        let request = build_request()
            .uri("/2018-06-01/runtime/invocation/next")
            .body(Body::empty())
            .map_err(|error| ApiError::Connection(error.into()))?;
        let response = self.client.call(request).await.map_err(ApiError::Connection)?;
        let (wall, now) = (SystemTime::now(), Instant::now());
        match response.status() {
            StatusCode::NO_CONTENT => Ok(None),
            status if status.is_success() => {
                let (head, body) = response.into_parts();
                let incoming = Incoming::read(&head.headers, wall, now);
                let payload = match timeout_at(guard::ends(incoming.deadline, now), body.collect()).await {
                    Ok(body) => body.map(http_body_util::Collected::to_bytes).map_err(Into::into),
                    Err(late) => Err(late.into()),
                };
                Ok(Some((incoming, payload)))
            }
            status => Err(ApiError::Status(status)),
        }
    }

    /// Posts what became of an invocation. `invocation_id` is echoed, as Lambda asks since 2026.
    pub(super) async fn answer(
        &self,
        request_id: &str,
        invocation_id: Option<&HeaderValue>,
        answer: &Answer,
    ) -> Result<Delivery, BoxError> {
        let request = match answer {
            Ok(value) => post(&format!("invocation/{request_id}/response"), value)?,
            Err(error) => with_type(post(&format!("invocation/{request_id}/error"), error)?, error),
        };
        self.send(with_id(request, invocation_id)).await
    }

    /// Says why the function does not start. If that cannot be said, the log and the exit code have to do.
    pub(super) async fn fail_start(&self, error: &FunctionError) {
        let sent = match post("init/error", error) {
            Ok(request) => self.send(with_type(request, error)).await.map(|_| ()),
            Err(error) => Err(error),
        };
        if let Err(error) = sent {
            tracing::error!(%error, "Lambda could not be told that the start failed.");
        }
    }

    async fn send(&self, request: Request<Body>) -> Result<Delivery, BoxError> {
        let status = timeout(PROMPT, async {
            let response = self.client.call(request).await?;
            let status = response.status();
            let _ = response.into_body().collect().await; // so that the connection can be used again
            Ok::<_, BoxError>(status)
        });
        Ok(match status.await?? {
            StatusCode::PAYLOAD_TOO_LARGE => Delivery::TooLarge,
            status if status.is_success() => Delivery::Taken,
            status => Delivery::Refused(status),
        })
    }
}

fn post(path: &str, body: &impl serde::Serialize) -> Result<Request<Body>, BoxError> {
    let path: Uri = format!("/2018-06-01/runtime/{path}").parse()?;
    let body = Body::from(serde_json::to_vec(body)?);
    Ok(build_request().method(Method::POST).uri(path).header(CONTENT_TYPE, "application/json").body(body)?)
}

fn with_id(mut request: Request<Body>, invocation_id: Option<&HeaderValue>) -> Request<Body> {
    if let Some(id) = invocation_id {
        request.headers_mut().insert(INVOCATION_ID, id.clone());
    }
    request
}

fn with_type(mut request: Request<Body>, error: &FunctionError) -> Request<Body> {
    request.headers_mut().insert(ERROR_TYPE, HeaderValue::from_static(error.error_type)); // our own words, in ASCII
    request
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port() {
        for good in ["127.0.0.1:9001", "http://127.0.0.1:9001", "http://127.0.0.1:9001/function"] {
            assert!(Api::at(good, 1).is_ok(), "{good}");
        }
        for bad in ["", "/path", "not an address", "http://"] {
            assert!(matches!(Api::at(bad, 1), Err(ApiError::Address(_))), "{bad:?}");
        }
    }

    /// A Runtime API that takes a request, says this, and then nothing more. By a stopped clock.
    pub(in crate::runtime) async fn silent(after: &'static [u8]) -> Api {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        std::thread::spawn(move || {
            use std::io::{Read, Write};
            let listener = listener.into_std().expect("a listener");
            listener.set_nonblocking(false).expect("a listener that waits");
            let mut held = Vec::new();
            while let Ok((mut stream, _)) = listener.accept() {
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(after);
                held.push(stream);
            }
        });
        Api::at(&address, 1).expect("an address")
    }

    #[tokio::test(start_paused = true)]
    async fn a_runtime_api_that_hangs_does_not_hold_the_process_for_ever() {
        let api = silent(b"").await;
        let begun = Instant::now();
        assert!(api.answer("id", None, &Ok(serde_json::json!(1))).await.is_err());
        assert!(api.register().await.is_none());
        api.fail_start(&FunctionError::new("Start.Failed", "x")).await;
        assert_eq!(begun.elapsed(), PROMPT * 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_payload_that_does_not_end_is_given_up_while_there_is_time_to_say_so() {
        let api = silent(b"HTTP/1.1 200 OK\r\nlambda-runtime-aws-request-id: id\r\ncontent-length: 9\r\n\r\n{").await;
        let begun = Instant::now();
        let (incoming, payload) = api.next().await.expect("an answer").expect("an invocation");
        assert_eq!(incoming.context.request_id, "id");
        assert!(payload.is_err());
        assert_eq!(begun.elapsed(), guard::LONGEST);
    }
}
