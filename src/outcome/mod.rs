//! How a call ends: with a result, or with a failure that says who can fix it.
//!
//! Every failure answers three questions for a reader who sees nothing else: what failed, what to do next, and whether
//! anything was changed. The kind says who can fix it:
//!
//! | kind | who fixes it | asked again as it is |
//! | --- | --- | --- |
//! | `invalid_input`, `not_found`, `rejected`, `unknown_tool`, `key_reused`, `too_large` | the model | fails again |
//! | `transient`, `timeout`, `in_progress` | time | may succeed |
//! | `approval_required`, `denied`, `outcome_unknown` | a person | needs that person |
//! | `internal` | a developer | fails again |
//!
//! The pipeline, not the tool, decides `retryable` and `changed`: it knows how far the call got.

mod kind;

use std::{borrow::Cow, fmt};

use serde_json::{Value, json};

pub use self::kind::{FailureKind, Fixer};
use crate::readable;

/// Whether a failed call changed anything in the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Changed {
    /// Nothing was changed.
    #[default]
    Nothing,
    /// It is not known.
    Unknown,
    /// The effect is done, although the call failed after it.
    Done,
}

impl Changed {
    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Unknown => "unknown",
            Self::Done => "done",
        }
    }
}

/// The closing sentence of a failure that changed nothing, where the tool has none of its own.
pub const NOTHING: &str = "Nothing was changed.";

/// The end of a call that has no result. Everything in it may be read by the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    kind: FailureKind,
    text: String,
    closing: Cow<'static, str>,
    retryable: bool,
    changed: Changed,
    waits: bool,
    awaits: Option<String>,
}

impl Failure {
    /// A failure that changed nothing. `text` is one or more whole sentences: what failed, and what to do next. What is
    /// beyond 2000 characters is cut: a tool may quote an argument, and that may have megabytes. Characters that nobody
    /// sees are replaced.
    pub fn new(kind: FailureKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: shortened(readable::text(&text.into()).into_owned()),
            closing: Cow::Borrowed(NOTHING),
            retryable: kind.retryable(),
            changed: Changed::Nothing,
            waits: matches!(kind, FailureKind::ApprovalRequired | FailureKind::InProgress),
            awaits: None,
        }
    }

    /// Says what was changed, and the sentence that tells so; it ends the message.
    #[must_use]
    pub fn with_changed(mut self, changed: Changed, closing: impl Into<Cow<'static, str>>) -> Self {
        self.changed = changed;
        self.closing = closing.into();
        self
    }

    /// Says whether the very same call may succeed later, where the kind alone cannot tell.
    #[must_use]
    pub fn with_retryable(mut self, retryable: bool) -> Self {
        self.retryable = retryable;
        self
    }

    /// Says that the call waits for a person, although its kind does not: an attempt before may have been done.
    #[must_use]
    pub fn that_waits(mut self) -> Self {
        self.waits = true;
        self
    }

    /// Says by which id a person decides on it. Whoever reads the message is not told: it is for the host.
    #[must_use]
    pub fn awaiting(mut self, id: &impl ToString) -> Self {
        self.awaits = Some(id.to_string());
        self
    }

    /// The kind.
    pub const fn kind(&self) -> FailureKind {
        self.kind
    }

    /// Whether the very same call may succeed later.
    pub const fn retryable(&self) -> bool {
        self.retryable
    }

    /// What was changed.
    pub const fn changed(&self) -> Changed {
        self.changed
    }

    /// Whether the action is not over: it waits for a person, or runs. Then to ask again is no further failure.
    pub const fn waits(&self) -> bool {
        self.waits
    }

    /// The id by which a person decides on it, if the call waits for that. A call that needs an approval
    /// and has no record to give it on has none.
    pub fn awaits(&self) -> Option<&str> {
        self.awaits.as_deref()
    }

    /// The sentences for the model. The last one says whether anything was changed.
    pub fn message(&self) -> String {
        if self.closing.is_empty() { self.text.clone() } else { format!("{} {}", self.text, self.closing) }
    }

    /// `{"kind", "message", "retryable", "changed"}`: the error object of every door that carries JSON.
    pub fn to_json(&self) -> Value {
        json!({
            "kind": self.kind.name(),
            "message": self.message(),
            "retryable": self.retryable,
            "changed": self.changed.name(),
        })
    }
}

fn shortened(mut text: String) -> String {
    const LONGEST: usize = 2_000;
    if let Some((end, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// The failure of a read whose result does not fit: it says how to ask for less. `closing` says that nothing was changed.
pub fn too_large(size: usize, limit: usize, closing: impl Into<Cow<'static, str>>) -> Failure {
    let text = format!(
        "The result is too large: {size} bytes of {limit} that fit. Narrow the question, for example with a filter or a \
         smaller limit."
    );
    Failure::new(FailureKind::TooLarge, text).with_changed(Changed::Nothing, closing)
}

/// The failure of a read whose result would fit an answer of its own, but not beside those of the event's other calls.
pub fn crowded_out(size: usize, closing: impl Into<Cow<'static, str>>) -> Failure {
    let text = format!(
        "The result of {size} bytes has no room in this answer beside those of the other calls. Make this call again by \
         itself."
    );
    Failure::new(FailureKind::TooLarge, text).with_changed(Changed::Nothing, closing).with_retryable(true)
}

/// What stands in for the result of an effect that is done, when the result is too large: the model must learn that it
/// happened, whatever its size.
pub fn left_out(size: usize) -> Value {
    json!({
        "done": true,
        "note": format!("It was done. Its result of {size} bytes is too large for this answer and was left out."),
    })
}

/// How a call ended.
#[derive(Clone, PartialEq)]
pub enum Outcome {
    /// The tool's result.
    Success {
        /// The tool's output as JSON: any value, `null` and `false` included.
        result: Value,
        /// True when the result is the stored one of an earlier, equal call and nothing was done again.
        replayed: bool,
    },
    /// There is no result.
    Failure(Failure),
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // A result is the caller's own.
            Self::Success { replayed, .. } => {
                f.debug_struct("Success").field("replayed", replayed).finish_non_exhaustive()
            }
            Self::Failure(failure) => f.debug_tuple("Failure").field(failure).finish(),
        }
    }
}

impl Outcome {
    /// The word for how the call ended: `success`, `replayed`, or the kind of failure.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Success { replayed: true, .. } => "replayed",
            Self::Success { .. } => "success",
            Self::Failure(failure) => failure.kind().name(),
        }
    }

    /// The failure, if it is one.
    pub const fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Success { .. } => None,
            Self::Failure(failure) => Some(failure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_sentence_says_what_was_changed() {
        let failure = Failure::new(FailureKind::Timeout, "The carrier did not answer in time.");
        assert!(failure.message().ends_with("Nothing was changed."));
        let failure = failure.with_changed(Changed::Unknown, "The label may have been made.");
        assert!(failure.message().ends_with("The label may have been made."));
        assert_eq!(failure.to_json()["changed"], "unknown");
    }

    #[test]
    fn a_text_that_quotes_megabytes_is_cut() {
        let failure = Failure::new(FailureKind::NotFound, "é".repeat(3_000_000));
        assert_eq!(failure.message(), format!("{}… {NOTHING}", "é".repeat(2_000)));
        assert_eq!(Failure::new(FailureKind::NotFound, "é".repeat(2_000)).text.chars().count(), 2_000);
    }
}
