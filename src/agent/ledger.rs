//! What became of each call of a turn: the facts that a report is made of.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{limits::Limits, report::Item, run::ToolCall, words::Why};
use crate::outcome::{Changed, Outcome};

/// One call that the model asked for.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub call: ToolCall,
    pub fate: Fate,
}

/// What became of a call.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Fate {
    /// It has no end yet, and may have begun.
    Open,
    /// It waits for a person, on the record with this key; no key if the record could not be read.
    Waiting(Option<String>),
    /// It was not run: why, and what the model was told.
    NotRun { reason: String, told: String },
    /// It succeeded, now or before.
    Done { replayed: bool },
    /// It has no result: kind of failure, what the model was told, and what was changed.
    Failed { kind: String, message: String, changed: Known },
}

/// Whether a call without result has changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Known {
    Nothing,
    Unknown,
    Done,
}

impl Fate {
    pub fn not_run(why: Why, limits: &Limits) -> Self {
        Self::NotRun { reason: why.reason(limits), told: why.sentence(limits) }
    }

    pub fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Success { replayed, .. } => Self::Done { replayed: *replayed },
            Outcome::Failure(failure) => Self::Failed {
                kind: failure.kind().name().to_owned(),
                message: failure.message(),
                changed: match failure.changed() {
                    Changed::Nothing => Known::Nothing,
                    Changed::Unknown => Known::Unknown,
                    Changed::Done => Known::Done,
                },
            },
        }
    }
}

impl Entry {
    pub const fn new(call: ToolCall, fate: Fate) -> Self {
        Self { call, fate }
    }

    /// Whether it has no end yet: it may run, or a person may let it.
    pub const fn is_open(&self) -> bool {
        matches!(self.fate, Fate::Open | Fate::Waiting(_))
    }

    /// The entry as a report has it.
    pub fn item(&self) -> Item {
        let (outcome, message, key) = match &self.fate {
            Fate::Open => ("open", None, None),
            Fate::Waiting(key) => ("awaiting_approval", None, key.clone()),
            Fate::NotRun { reason, .. } => ("not_run", Some(format!("not run, because {reason}")), None),
            Fate::Done { replayed: false } => ("success", None, None),
            Fate::Done { replayed: true } => ("replayed", None, None),
            Fate::Failed { kind, message, .. } => (kind.as_str(), Some(message.clone()), None),
        };
        let (tool, arguments) = (self.call.tool.clone(), arguments(&self.call.input));
        Item { tool, arguments, outcome: outcome.to_owned(), message, key }
    }
}

/// The arguments, if they are not so many that they would hide everything else.
fn arguments(input: &Value) -> Value {
    const MOST: usize = 4_000;
    let size = input.to_string().len();
    if size > MOST { Value::from(format!("({size} bytes)")) } else { input.clone() }
}
