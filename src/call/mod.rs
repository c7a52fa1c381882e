//! A call's life: from a tool name and arguments to an outcome. See [`Pipeline::run`].
//!
//! Doors are above this module and tools below it: it knows neither wire formats nor any tool.
//!
//! | file | its one idea |
//! | --- | --- |
//! | `pipeline` | the life of a call, as one list of steps |
//! | `permit` | the step that asks the policy |
//! | `run` | one call on its way: its attempts, and the waits between them |
//! | `attempt`, `task` | the tool's code in a task of its own; a task that ends with whoever waits for it |
//! | `recorded`, `atomic` | effects that are recorded before and after; effects that are committed with their record |
//! | `bar` | a commit that was not answered, and how it is kept out when it has been denied |
//! | `approval` | a call that is found on its way to need a person's approval |
//! | `standing` | how a call stands, without running it |
//! | `deadline` | the host's end and ours |
//! | `retry`, `budget` | whether to try again, and when; how much retrying a backend can bear |
//! | `explain` | what the model is told of a call whose attempts failed |
//! | `refusal` | what it is told of a call that its record keeps from running, or that cannot see it |
//! | `answer`, `room` | a result, within what the door can answer with, and as a replay; the room that results share |
//! | `lines` | the metric line and the log line, whatever ends the call |

mod answer;
mod approval;
mod atomic;
mod attempt;
mod bar;
mod budget;
mod deadline;
mod explain;
mod lines;
mod permit;
mod pipeline;
mod recorded;
mod refusal;
mod retry;
mod room;
mod run;
mod standing;
mod task;

/// The pure decisions of a call: what the model checker runs.
#[doc(hidden)]
pub mod decisions {
    pub use super::{
        attempt::Ended,
        explain::{failure, may_be_done},
        recorded::{Settling, settling},
        refusal::keeping_doubt,
        retry::decide as retry,
    };
}

use std::fmt;

use serde_json::{Map, Value};

pub use self::{
    deadline::{ANSWER, Deadline},
    pipeline::Pipeline,
    retry::{MAX_REQUESTS, longest},
    room::Room,
    standing::Standing,
};

pub(crate) use self::task::Task;

use crate::{arguments::Fault, outcome::Failure, telemetry::Origin, tool::Caller};

/// One request to run one tool, as a door has read it. Nothing in it is trusted.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// The tool's name, exactly as it was asked for.
    pub tool: String,
    /// The arguments, read as far as they could be.
    pub arguments: Arguments,
    /// The id that the caller gave the call, for the log. It is no idempotency key.
    pub id: Option<String>,
    /// Who asks.
    pub caller: Caller,
    /// Why the call must not run, if the door knows; it then only gets its answer, its metric and its log line.
    pub objection: Option<Failure>,
}

/// What surrounds one call.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The invocation.
    pub origin: Origin,
    /// When the work must be over.
    pub deadline: Deadline,
    /// The largest result, in bytes of JSON, that the door can answer with.
    pub limit: usize,
    /// What all results of the event may have together.
    pub room: Room,
}

/// The arguments of a call.
#[derive(Clone, Default)]
pub struct Arguments {
    /// The values that could be read.
    pub values: Map<String, Value>,
    /// What could not; reported together with what the schema finds.
    pub faults: Vec<Fault>,
}

impl fmt::Debug for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Arguments { .. }") // they may be personal or secret
    }
}

impl Arguments {
    /// The arguments in a JSON value: an object, or `null` for none.
    ///
    /// Anything else is a fault of the whole.
    pub fn from_json(value: Value) -> Self {
        match value {
            Value::Object(values) => Self { values, faults: Vec::new() },
            Value::Null => Self::default(),
            other => Self {
                values: Map::new(),
                faults: vec![Fault {
                    path: String::new(),
                    rule: format!("The arguments must be an object, but are {}.", kind_of(&other)),
                    example: None,
                }],
            },
        }
    }
}

/// The JSON type of a value, with its article.
pub(crate) const fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
