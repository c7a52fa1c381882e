//! What is handed out to a function, and what it answers.

use std::{path::Path, time::Duration};

use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use serde_json::Value;

/// An invocation to hand out.
pub struct Event {
    pub(super) payload: Bytes,
    pub(super) headers: Vec<(&'static str, Vec<u8>)>,
    pub(super) deadline: Option<Duration>,
    pub(super) refusal: Option<StatusCode>,
    pub(super) id: Option<String>,
}

impl Event {
    /// An invocation as Lambda makes it, with ten seconds left.
    pub fn raw(payload: impl Into<Bytes>) -> Self {
        let headers = vec![
            ("lambda-runtime-invoked-function-arn", b"arn:aws:lambda:eu-west-1:123456789012:function:tools".to_vec()),
            ("lambda-runtime-trace-id", b"Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=0".to_vec()),
        ];
        Self { payload: payload.into(), headers, deadline: Some(Duration::from_secs(10)), refusal: None, id: None }
    }

    pub fn json(payload: &Value) -> Self {
        Self::raw(payload.to_string())
    }

    /// The file under `events/`: an event, or an object with `event` and `clientContext`.
    pub fn file(name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("events").join(name);
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        match serde_json::from_slice::<Value>(&bytes) {
            Ok(Value::Object(mut parts)) if parts.len() == 2 && parts.contains_key("clientContext") => {
                let context = parts.remove("clientContext").unwrap().to_string();
                Self::json(&parts["event"]).client_context(context)
            }
            _ => Self::raw(bytes),
        }
    }

    /// The bytes of the client context header, whatever they are.
    pub fn client_context(self, bytes: impl AsRef<[u8]>) -> Self {
        self.header("lambda-runtime-client-context", bytes)
    }

    pub fn time_left(mut self, time: Duration) -> Self {
        self.deadline = Some(time);
        self
    }

    /// Sends this as the deadline.
    pub fn deadline_header(mut self, text: &str) -> Self {
        self.deadline = None;
        self.header("lambda-runtime-deadline-ms", text)
    }

    /// Sends no deadline.
    pub fn no_deadline(mut self) -> Self {
        self.deadline = None;
        self
    }

    pub fn header(mut self, name: &'static str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name, value.as_ref().to_vec()));
        self
    }

    /// Sends nothing but the request id and the payload.
    pub fn bare(mut self) -> Self {
        self.headers.clear();
        self.no_deadline()
    }

    /// Has this id, as an invocation that Lambda repeats has the id of the first.
    pub fn id(mut self, id: &str) -> Self {
        self.id = Some(id.to_owned());
        self
    }

    /// Answers the response with this status.
    pub fn refuse(mut self, status: StatusCode) -> Self {
        self.refusal = Some(status);
        self
    }
}

/// What the function posted.
#[derive(Debug)]
pub struct Answer {
    pub(super) is_error: bool,
    pub(super) body: Bytes,
    pub headers: HeaderMap,
    /// How many posts for this invocation were refused before.
    pub refused: usize,
    /// The time that was left until the deadline; an hour if there was none.
    pub to_spare: Duration,
    /// Whether it came before the deadline; otherwise Lambda had ended the invocation.
    pub in_time: bool,
}

impl Answer {
    /// The body of a response.
    pub fn response(&self) -> Value {
        assert!(!self.is_error, "an error instead of a response: {}", self.text());
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The body of an error, whose type also stands in a header.
    pub fn error(&self) -> Value {
        assert!(self.is_error, "a response instead of an error: {}", self.text());
        let error: Value =
            serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()));
        assert_eq!(error["errorType"].as_str(), self.headers["lambda-runtime-function-error-type"].to_str().ok());
        error
    }

    pub const fn is_error(&self) -> bool {
        self.is_error
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}
