//! Doors: the wire formats through which a call arrives and is answered.
//!
//! A door is a small module with one constant, and [`DOORS`] is the one place to register it. The order is the order of
//! detection, and it matters: at the gateway the tool's name comes from the client context, and the body is chosen by
//! the model, so that it can imitate any other door.
//!
//! | door | recognised by | answer |
//! | --- | --- | --- |
//! | `gateway` | a tool name in the client context | `{"ok": true, "result": …}` |
//! | `agent-function` | `actionGroup` and `function` | `TEXT.body` |
//! | `agent-openapi` | `actionGroup`, `apiPath` and `httpMethod` | `application/json` body |
//! | `converse` | `toolUse` blocks | `toolResult` blocks |

use std::fmt;

use serde_json::Value;

use crate::{call::Call, outcome::Outcome, tool::Toolbox};

/// An invocation as far as doors see it.
#[derive(Clone, Debug)]
pub struct Event {
    /// The payload.
    pub body: Value,
    /// The client context, if there was one.
    pub client_context: Option<Value>,
}

/// One wire format.
#[derive(Clone, Copy)]
pub struct Door {
    /// The name, as in the `DOORS` setting and in `dev schema`.
    pub name: &'static str,
    /// The largest answer, in bytes. A result that does not fit is `too_large`, or of a write a short success.
    pub limit: usize,
    /// Whether the event has come through this door. Looks at shapes only.
    pub recognises: fn(&Event) -> bool,
    /// The calls in the event, and how to answer them.
    pub decode: fn(Event, &Toolbox) -> Result<Request, Refusal>,
    /// The tool definitions that this door's caller wants.
    pub definitions: fn(&Toolbox) -> Value,
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Makes the answer of the outcomes, which stand in the order of the calls.
pub type Encode = Box<dyn FnOnce(Vec<Outcome>) -> Value + Send>;

/// The calls of one event, and how to answer them.
pub struct Request {
    /// The calls, in the order in which they were asked for.
    pub calls: Vec<Call>,
    /// Makes the answer.
    pub encode: Encode,
}

/// Why an event is not served: it is no tool call. One sentence that names what it looks like.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

/// Every door, in the order of detection.
pub static DOORS: [Door; 0] = [];

/// The door of this name.
pub fn named(name: &str) -> Option<&'static Door> {
    DOORS.iter().find(|door| door.name == name)
}

/// The door through which the event has come.
///
/// # Errors
///
/// A sentence that says what the event looks like, if it is no tool call.
pub fn detect(event: &Event, allowed: &[&'static Door]) -> Result<&'static Door, Refusal> {
    allowed
        .iter()
        .copied()
        .find(|door| (door.recognises)(event))
        .ok_or_else(|| Refusal(String::from("The event is no tool call.")))
}
