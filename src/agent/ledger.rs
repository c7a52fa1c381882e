//! What became of each call of a turn: the facts that a report is made of.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    limits::Limits,
    tools::{Facts, Tools},
    words::Why,
};
use crate::{
    idempotency::{canonical, digest_of},
    outcome::{Changed, FailureKind, Outcome},
};

/// A call that is to be run.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Its number in the conversation, from 0.
    pub ordinal: usize,
    /// The id of its result.
    pub id: String,
    /// The tool, as the model wrote it.
    pub tool: String,
    /// The arguments, as the model wrote them.
    pub input: Value,
}

impl ToolCall {
    /// What makes two calls the same: the tool and its arguments, in whatever order and form of numbers.
    pub(super) fn fingerprint(&self) -> String {
        digest_of([self.tool.as_bytes(), &canonical(&self.input)])
    }
}

/// One call that the model asked for.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub call: ToolCall,
    pub fate: Fate,
    /// Its tool as another deployment had it that may have begun the call, if it is no read there and another tool, or none,
    /// here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Facts>,
    /// Whether an attempt may have been done before a person was asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_doubt: bool,
    /// Whether its result is in the conversation already: it ran beside a call that waits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answered: bool,
}

/// What became of a call.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Fate {
    /// It has no end yet, and may have begun.
    Open,
    /// It waits for a person, who decides by this id; no id if the record could not be read.
    Waiting(Option<String>),
    /// It was not run: why, and what the model was told.
    NotRun { reason: String, told: String },
    /// It succeeded, now or before.
    Done { replayed: bool },
    /// It has no result: kind of failure, what the model was told, what was changed, and the id by which a person has to
    /// decide, if one has to.
    Failed {
        kind: String,
        message: String,
        changed: Known,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        awaits: Option<String>,
    },
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
                awaits: failure.awaits().map(str::to_owned),
            },
        }
    }
}

impl Entry {
    pub const fn new(call: ToolCall, fate: Fate) -> Self {
        Self { call, fate, before: None, in_doubt: false, answered: false }
    }

    /// What is known of its tool: first of all from the deployment that may have begun it.
    pub fn facts<'a>(&'a self, tools: &'a Tools) -> Option<&'a Facts> {
        self.before.as_ref().or_else(|| tools.get(&self.call.tool))
    }

    /// Whether it has no end yet: it may run, or a person may let it.
    pub const fn is_open(&self) -> bool {
        matches!(self.fate, Fate::Open | Fate::Waiting(_))
    }

    /// Whether it was run to an end, good or bad.
    pub const fn has_run(&self) -> bool {
        matches!(self.fate, Fate::Done { .. } | Fate::Failed { .. })
    }

    /// Whether it has had its effect, even if its result was lost.
    pub const fn is_done(&self) -> bool {
        matches!(self.fate, Fate::Done { .. } | Fate::Failed { changed: Known::Done, .. })
    }

    /// Whether somebody else was at the same action when it ended.
    pub fn is_in_progress(&self) -> bool {
        matches!(&self.fate, Fate::Failed { kind, .. } if kind == FailureKind::InProgress.name())
    }

    /// Whether it is the same action, in whatever order and form of numbers.
    pub fn is_same(&self, other: &Self) -> bool {
        self.call.tool == other.call.tool && self.call.fingerprint() == other.call.fingerprint()
    }
}

impl std::fmt::Debug for ToolCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolCall").field("ordinal", &self.ordinal).field("id", &self.id).finish_non_exhaustive()
    }
}
