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
mod retry_after;

use std::{
    sync::OnceLock,
    time::{Duration, SystemTime},
};

use bytes::BytesMut;

use super::ToolError;

pub use self::answer::HttpAnswer;
pub(crate) use self::retry_after::retry_after;

/// The longest wait for a connection. A connection that does not come about is tried again: nothing was sent.
const CONNECT: Duration = Duration::from_secs(1);
/// A connection that was idle for longer is not used again. Behind a frozen process and a load balancer it may be dead,
/// and a request on a dead connection leaves open whether it was served. Load balancers close theirs after 60 s.
const IDLE: Duration = Duration::from_secs(20);
/// The longest answer that is read, in bytes, unpacked. No door can hand on a longer one, and the process would be ended for
/// the memory that it takes.
const LONGEST_ANSWER: usize = 6_000_000;

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
    /// If there is no answer at all, or one of more than 6 MB.
    pub async fn send(&self, request: reqwest::RequestBuilder, time: Duration) -> Result<HttpAnswer, ToolError> {
        let mut answer = request.timeout(time).send().await.map_err(|error| self.no_answer(error))?;
        let mut body = BytesMut::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| self.no_answer(error))? {
            if body.len() + chunk.len() > LONGEST_ANSWER {
                let service = self.service;
                return Err(ToolError::internal(format!("{service} answers with more than {LONGEST_ANSWER} bytes")));
            }
            body.extend_from_slice(&chunk);
        }
        let (status, headers) = (answer.status(), answer.headers().clone());
        Ok(HttpAnswer { service: self.service, status, headers, body: body.freeze(), at: SystemTime::now() })
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

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::TcpListener,
        thread,
    };

    use super::*;
    use crate::tool::{Phase, ToolErrorKind};

    /// A service that answers one request with as many bytes, and then with more of them for as long as they are taken.
    async fn answer_of(bytes: usize, endless: bool) -> Result<HttpAnswer, ToolError> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        thread::spawn(move || {
            let mut stream = listener.accept().expect("a request").0;
            let _ = stream.read(&mut [0; 4096]).expect("a request");
            let mut sent = stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
            sent = sent.and_then(|()| stream.write_all(&vec![b'x'; bytes]));
            while endless && sent.is_ok() {
                sent = stream.write_all(&[b'x'; 16_000]);
            }
        });
        let backend = HttpBackend::new("The carrier");
        backend.send(backend.client()?.get(url), Duration::from_secs(20)).await
    }

    #[tokio::test]
    async fn an_answer_that_does_not_end_is_not_read_to_its_end() {
        let error = answer_of(0, true).await.map(|answer| answer.body.len()).unwrap_err();
        assert_eq!((error.kind(), error.phase()), (ToolErrorKind::Internal, Phase::MaybeDone));
        assert_eq!(answer_of(LONGEST_ANSWER, false).await.map(|answer| answer.body.len()).unwrap(), LONGEST_ANSWER);
        assert!(answer_of(LONGEST_ANSWER + 1, false).await.is_err());
    }
}
