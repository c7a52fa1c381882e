//! One invocation, from bytes to the answer. The Runtime API loop and the local program both call [`Handler::handle`].

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

/// An invocation, however it was delivered.
#[derive(Clone, Debug, Default)]
pub struct Invocation {
    /// The payload, exactly as it came.
    pub payload: bytes::Bytes,
    /// The client context, exactly as it came: JSON text, or that in base64 (as `cargo lambda watch` passes it on).
    pub client_context: Option<bytes::Bytes>,
    /// Lambda's id of the invocation.
    pub request_id: String,
    /// The X-Ray trace header.
    pub trace_id: Option<String>,
    /// When the host ends the invocation; `None` where it did not say, or said nonsense.
    pub deadline: Option<Instant>,
}

/// An invocation that failed as a whole: it was no tool call. Shape on the wire as in Lambda's own errors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[error("{error_type}: {error_message}")]
pub struct FunctionError {
    /// `InvalidPayload`, `InvalidClientContext`, `NotAToolCall` or `Internal`.
    pub error_type: String,
    /// One or two sentences.
    pub error_message: String,
}

/// Serves invocations. One for the life of the process; shared by all workers.
#[derive(Debug)]
pub struct Handler {}

impl Handler {
    /// Answers one invocation, before its deadline, whatever it holds.
    ///
    /// # Errors
    ///
    /// Only where there is no call to answer: bytes that are no JSON, an event that is no tool call.
    #[allow(clippy::unused_async)]
    pub async fn handle(&self, invocation: Invocation) -> Result<Value, FunctionError> {
        let _ = (self, invocation, Duration::ZERO);
        Err(FunctionError { error_type: String::from("NotAToolCall"), error_message: String::new() })
    }
}
