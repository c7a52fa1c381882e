//! What a failed call is told to the model. Pure: how it ended, the effect, and whether it may have been done decide.

use super::attempt::Ended;
use crate::{
    idempotency::State,
    outcome::{Changed, Failure, FailureKind},
    tool::{Definition, Effect, Phase, ToolError, ToolErrorKind},
};

/// Whether an attempt that ended so may have had its effect.
///
/// An atomic effect is made by the transaction alone, so that only a lost commit leaves it open.
pub fn may_be_done(ended: &Ended, effect: Effect) -> bool {
    match effect {
        Effect::ReadOnly => false,
        Effect::Atomic => matches!(ended, Ended::CommitLost),
        Effect::Keyed | Effect::Once => ended.phase() == Phase::MaybeDone,
    }
}

/// Whether the holder of a record in this state, from whom it is taken over, may have had its effect.
///
/// An atomic effect of the old holder can no longer commit, and one that happens once is taken over only if surely
/// nothing was done.
pub fn may_be_done_before(state: State, effect: Effect) -> bool {
    state == State::Started && effect == Effect::Keyed
}

/// The failure of a call whose last attempt ended so. `maybe_done` counts all its attempts; `reference` is in the log.
pub fn failure(tool: &Definition, ended: &Ended, maybe_done: bool, reference: &str) -> Failure {
    if maybe_done { unknown(tool, &why(ended, reference).1) } else { known(tool, ended, reference) }
}

/// A failure of this tool that changed nothing.
pub fn nothing(tool: &Definition, kind: FailureKind, text: impl Into<String>) -> Failure {
    Failure::new(kind, text).with_changed(Changed::Nothing, tool.wording.nothing.clone())
}

fn known(tool: &Definition, ended: &Ended, reference: &str) -> Failure {
    let (kind, text) = why(ended, reference);
    let hint = match kind {
        FailureKind::Transient => later(ended),
        FailureKind::Timeout => String::from(" Try again later, or ask for less."),
        FailureKind::Internal => String::from(" Calling it again will not help."),
        _ => String::new(),
    };
    nothing(tool, kind, text + &hint)
}

/// It may have been done. Where a repetition cannot do it twice, a repetition is the way to find out.
pub fn unknown(tool: &Definition, why: &str) -> Failure {
    let once = tool.effect == Effect::Once;
    let next = if once {
        "Do not call it again with the same arguments."
    } else {
        "Calling it again with the same arguments is safe: it cannot be done twice, and the answer tells how it ended."
    };
    Failure::new(FailureKind::OutcomeUnknown, format!("{why} {next}"))
        .with_changed(Changed::Unknown, tool.wording.unknown.clone())
        .with_retryable(!once)
}

fn why(ended: &Ended, reference: &str) -> (FailureKind, String) {
    match ended {
        Ended::Failed(error) => (kind_of(error), text_of(error, reference)),
        Ended::TimedOut => (FailureKind::Timeout, String::from("The tool did not answer in the time it had.")),
        Ended::NoTime => (FailureKind::Timeout, String::from("There was not enough time left for an attempt.")),
        Ended::Panicked => (FailureKind::Internal, internal(reference)),
        Ended::Conflict => {
            (FailureKind::Transient, String::from("Another change to the same data was being made at the same moment."))
        }
        Ended::CommitLost => (FailureKind::Transient, String::from("No answer came to the write.")),
        Ended::StoreRefused => (FailureKind::Transient, String::from("The data store is not available.")),
    }
}

fn kind_of(error: &ToolError) -> FailureKind {
    match error.kind() {
        ToolErrorKind::InvalidInput => FailureKind::InvalidInput,
        ToolErrorKind::NotFound => FailureKind::NotFound,
        ToolErrorKind::Rejected => FailureKind::Rejected,
        ToolErrorKind::Denied => FailureKind::Denied,
        ToolErrorKind::ApprovalRequired => FailureKind::ApprovalRequired,
        ToolErrorKind::Transient => FailureKind::Transient,
        ToolErrorKind::Internal => FailureKind::Internal,
    }
}

fn text_of(error: &ToolError, reference: &str) -> String {
    match error.kind() {
        ToolErrorKind::Internal => internal(reference),
        _ => error.text.clone(),
    }
}

/// The one flat sentence about a fault of ours.
pub fn internal(reference: &str) -> String {
    format!("The tool failed because of a fault on our side (reference {reference}).")
}

fn later(ended: &Ended) -> String {
    match ended {
        Ended::Failed(ToolError { retry_after: Some(wait), .. }) => {
            format!(" Try again in {} seconds, not sooner.", wait.as_secs_f64().ceil())
        }
        _ => String::from(" Try again later."),
    }
}
