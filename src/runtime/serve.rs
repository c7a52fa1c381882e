//! What the runtime hands over, and what it wants back. Whoever serves invocations implements [`Serve`].

use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

/// An invocation, however it was delivered.
#[derive(Clone, Default)]
pub struct Invocation {
    /// The payload, exactly as it came.
    pub payload: Bytes,
    /// The client context, exactly as it came: JSON text, or that in base64 (as `cargo lambda watch` passes it on).
    pub client_context: Option<Bytes>,
    /// Lambda's id of the invocation.
    pub request_id: String,
    /// The X-Ray trace header.
    pub trace_id: Option<String>,
    /// The Cognito identity id of the invoker, as Lambda says it.
    pub identity: Option<String>,
    /// The tenant for which the function was invoked, as Lambda says it.
    pub tenant: Option<String>,
    /// When the host ends the invocation; `None` where it did not say, or said nonsense.
    pub deadline: Option<Instant>,
}

impl std::fmt::Debug for Invocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The payload holds arguments, the client context may hold tokens.
        f.debug_struct("Invocation").field("request_id", &self.request_id).finish_non_exhaustive()
    }
}

/// An invocation that failed as a whole: it was no tool call. Shape on the wire as in Lambda's own errors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[error("{error_type}: {error_message}")]
pub struct FunctionError {
    /// `InvalidPayload`, `InvalidClientContext`, `NotAToolCall` or `Internal`; `Start.…` if the function does not start.
    pub error_type: &'static str,
    /// One or two sentences.
    pub error_message: String,
}

impl FunctionError {
    /// An error of this type, with its sentences.
    pub fn new(error_type: &'static str, error_message: impl Into<String>) -> Self {
        Self { error_type, error_message: error_message.into() }
    }
}

/// What the handler makes of an invocation.
pub type Answer = Result<Value, FunctionError>;

/// What serves invocations. One for the life of the process; shared by all workers.
pub trait Serve: Send + Sync + 'static {
    /// Answers one invocation, before its deadline.
    fn serve(&self, invocation: Invocation) -> impl Future<Output = Answer> + Send;

    /// The first invocation has come, and has so much time. Lambda tells the function's timeout in no other way.
    fn check_time(&self, time: Duration) {
        let _ = time;
    }

    /// The process is to end: what is on its way should be answered at once, by what is known.
    fn end(&self) {}
}
