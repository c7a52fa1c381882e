//! The honest end of a turn: why it stopped, what was done, what failed, what is not known, what was not attempted.
//!
//! The same report is a text for the person ([`Report::text`]) and JSON for a hand-off ([`Report::to_json`]).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    stop::{Resume, Stop},
    usage::Usage,
};

/// How a turn has ended, or where it stands.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Why it stopped.
    pub stop: Stop,
    /// What the person reads: the model's text only if the model has ended its turn by itself, else ours.
    pub answer: String,
    /// The model's last words, where the answer is ours. Nobody has checked them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closing: Option<String>,
    /// Calls that succeeded.
    pub done: Vec<Item>,
    /// Calls that failed and changed nothing.
    pub failed: Vec<Item>,
    /// Calls whose outcome is not known.
    pub unknown: Vec<Item>,
    /// Calls that the model asked for and that were not run.
    pub not_attempted: Vec<Item>,
    /// Calls that wait for a person.
    pub waiting: Vec<Item>,
    /// Replies of the model in this turn.
    pub steps: u32,
    /// Calls that were run in this turn.
    pub tool_calls: u32,
    /// The tokens of this turn.
    pub usage: Usage,
    /// How the conversation can go on.
    pub resume: Resume,
}

/// One call in a report.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// The tool, as it was asked for.
    pub tool: String,
    /// The arguments, as they were asked for.
    pub arguments: Value,
    /// `success`, `replayed`, the kind of failure, `not_run` or `awaiting_approval`.
    pub outcome: String,
    /// What the model was told of a call without result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The key by which a person decides on it (`dev approve KEY`), where it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl std::fmt::Debug for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Report").field("stop", &self.stop).finish_non_exhaustive() // what people wrote stays out of logs
    }
}

impl std::fmt::Debug for Item {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Item").field("tool", &self.tool).field("outcome", &self.outcome).finish_non_exhaustive()
    }
}

impl Report {
    /// The report as text for the person: the answer, then the facts.
    pub fn text(&self) -> String {
        self.answer.clone()
    }

    /// The report as JSON, for a hand-off.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default() // it has no maps with odd keys
    }
}
