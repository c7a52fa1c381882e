//! Doors: the wire formats through which a call arrives and is answered.
//!
//! A door is a small module with one constant, and [`DOORS`] is the one place to register it. The order is the order of
//! detection, and it matters: at the gateway the tool's name comes from the client context, and the body is chosen by
//! the model, so that it can imitate any other door.
//!
//! | door | recognised by | answer |
//! | --- | --- | --- |
//! | `gateway` | AgentCore's keys in the client context | `{"ok": true, "result": …}` |
//! | `mcp` | `jsonrpc` | a JSON-RPC response |
//! | `agent-function` | `actionGroup` and `function` | `TEXT.body` |
//! | `agent-openapi` | `actionGroup`, `apiPath` and `httpMethod` | `application/json` body |
//! | `flow` | `flow` and `node` | `{"ok": true, "result": …}` |
//! | `converse` | `toolUse` blocks | `toolResult` blocks |
//! | `return-of-control` | `returnControl` or `invocationInputs` | `returnControlInvocationResults` |
//!
//! | file beside the doors | its one idea |
//! | --- | --- |
//! | `agent` | what the two doors of Bedrock Agents share |
//! | `converse_form`, `spelling` | what a forwarded Converse event holds; the two spellings of its keys |
//! | `tool_result` | what Bedrock demands of calls and results, also of those of the loop of this crate |
//! | `parameters` | arguments that come as lists of name, type and value |
//! | `envelope`, `fit` | `{"ok": …}` around any JSON; what is said in the place of a result that does not fit |
//! | `expressible`, `strict` | whether a tool can be offered at a door; whether Bedrock can enforce its schema |
//! | `prose` | the rules of a schema in words |
//! | `stranger` | events that are no tool call |
//!
//! What comes through no door is refused with a sentence that names what it looks like. `docs/doors.md` has the whole
//! table, and `events/` an example of each.

mod agent;
mod agent_function;
mod agent_openapi;
mod converse;
mod converse_form;
mod envelope;
mod expressible;
mod fit;
mod flow;
mod gateway;
mod mcp;
mod parameters;
mod prose;
mod return_of_control;
mod spelling;
mod stranger;
mod strict;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub(crate) mod tool_result;

pub use self::expressible::faults;

use std::fmt;

use serde_json::{Map, Value};

use crate::{
    call::Call,
    outcome::{Failure, FailureKind, Outcome},
    tool::{Definition, Toolbox},
};

/// An invocation as far as doors see it.
#[derive(Clone)]
pub struct Event {
    /// The payload.
    pub body: Value,
    /// Whether the payload was unclear, so that what is read here may not be what was sent. See [`payload`](crate::payload).
    pub flawed: bool,
    /// The client context, if there was one.
    pub client_context: Option<Value>,
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Event { .. }") // it holds arguments, and may hold tokens
    }
}

impl Event {
    /// The body's fields, where a door may look for a call. A gateway interceptor's event has none: it holds a whole
    /// call, but one that the gateway will make by itself.
    fn fields(&self) -> Option<&Map<String, Value>> {
        self.body.as_object().filter(|fields| !fields.contains_key(stranger::INTERCEPTOR))
    }
}

/// For all results of one answer, in bytes: under the 6 MB that Lambda carries.
pub const ANSWER_LIMIT: usize = 5_500_000;

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
    /// Why this door could not offer the tool, a sentence each.
    pub faults: fn(&Definition) -> Vec<String>,
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
    /// Where the counts of the conversation are kept.
    pub memory: Memory,
}

/// Where the [counts of a conversation](crate::conversation_guard) are kept from one event to the next.
#[derive(Clone, Debug, Default)]
pub enum Memory {
    /// In the table of records, if the calls have a conversation.
    #[default]
    Table,
    /// In the answer, whose receiver gives them back with the next event.
    Answer {
        /// What has come back; empty if nothing has.
        came: String,
        /// Puts them into an answer.
        keep: fn(&mut Value, &str),
    },
    /// Nowhere: this event does not count.
    None,
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("calls", &self.calls.len()).finish_non_exhaustive() // calls hold arguments
    }
}

/// Why an event is not served: it is no tool call. One or two sentences that name what it looks like.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

/// Every door, in the order of detection. A new door is a module with a `DOOR`, and a line here.
pub static DOORS: [Door; 7] = [
    gateway::DOOR,
    mcp::DOOR,
    agent_function::DOOR,
    agent_openapi::DOOR,
    flow::DOOR,
    converse::DOOR,
    return_of_control::DOOR,
];

/// The door of Converse, whose definitions the loop of this crate gives to its model.
pub(crate) const CONVERSE: &Door = &converse::DOOR;
/// The door of an action group by its functions, whose definitions stand in the template.
#[cfg(feature = "dev")]
pub(crate) const AGENT_FUNCTION: &Door = &agent_function::DOOR;
/// The door of AgentCore's gateway, whose definitions stand there too.
#[cfg(feature = "dev")]
pub(crate) const GATEWAY: &Door = &gateway::DOOR;

/// The door of this name.
pub fn named(name: &str) -> Option<&'static Door> {
    DOORS.iter().find(|door| door.name == name)
}

/// The door through which the event has come, if it is one of the `allowed`.
///
/// Which door it is does not depend on what is allowed: an event of a closed door is refused, and never tried at another.
///
/// # Errors
///
/// A sentence that says what the event looks like, if it is no tool call; that it is of two kinds at once; or that its
/// door is closed.
pub fn detect(event: &Event, allowed: &[&'static Door]) -> Result<&'static Door, Refusal> {
    let open = || allowed.iter().map(|door| door.name).collect::<Vec<_>>().join(", ");
    let recognised: Vec<_> = DOORS.iter().filter(|door| (door.recognises)(event)).collect();
    let door = match recognised[..] {
        [] => {
            let looks_like = stranger::description(event);
            return Err(Refusal(format!(
                "The event is no tool call that is served here: it looks like {looks_like}. Open doors: {}.",
                open()
            )));
        }
        // At the gateway the body may imitate any other door. Elsewhere the calls of one kind would go unanswered.
        [first, second, ..] if first.name != gateway::DOOR.name => {
            let (first, second) = (first.name, second.name);
            return Err(Refusal(format!(
                "The event is of two kinds at once, {first} and {second}, so nothing was run. Send it as one of them."
            )));
        }
        [door, ..] => door,
    };
    if allowed.iter().any(|other| other.name == door.name) {
        Ok(door)
    } else {
        let name = door.name;
        Err(Refusal(format!("The event came to the door {name}, which is closed here. Open doors: {}.", open())))
    }
}

/// The longest name that is passed on or quoted. No tool's name is longer than 40.
const NAME_MAX: usize = 80;

/// A name out of an event, for a [`Call`] or a sentence. A long one is cut and ends in `…`, so that what is left of it
/// is never the name of a tool.
fn bounded(name: &str) -> String {
    match name.char_indices().nth(NAME_MAX) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => String::from(name),
    }
}

/// What is said beside a stored result, where the form has room.
const REPLAYED: &str = "This is the result of an earlier, equal call. Nothing was done again.";

/// Refuses an event of which the answer would repeat a name or an id that may not be its sender's. Where the payload was
/// unclear, a text may have been mended, with U+FFFD for what could not be read, and a `null` may stand for what was left
/// out.
fn as_sent<'a>(flawed: bool, repeated: impl IntoIterator<Item = &'a Value>) -> Result<(), Refusal> {
    let is_mended = |value: &Value| value.as_str().map_or(value.is_null(), |text| text.contains('\u{fffd}'));
    if flawed && repeated.into_iter().any(is_mended) {
        return Err(Refusal(String::from(
            "The event is unclear in a name or an id that its answer would have to repeat.",
        )));
    }
    Ok(())
}

/// The failure of something that ought to name a tool and does not.
fn nameless(what: &str, toolbox: &Toolbox) -> Failure {
    let names = toolbox.names().collect::<Vec<_>>().join(", ");
    Failure::new(FailureKind::UnknownTool, format!("{what} names no tool. The tools are: {names}."))
}
