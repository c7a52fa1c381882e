//! What a failed call is told to the model. Pure: how it ended, the effect, and whether it may have been done decide.

use std::time::Duration;

use super::attempt::Ended;
use crate::{
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

/// The failure of a call whose last attempt ended so. `maybe_done` counts all its attempts; `reference` is in the log.
pub fn failure(tool: &Definition, ended: &Ended, maybe_done: bool, reference: &str) -> Failure {
    let (kind, text) = why(ended, reference);
    if maybe_done { unknown_until(tool, &text, next(kind), soonest(ended)) } else { known(tool, ended, kind, text) }
}

/// The same, of a call that the budget denies another attempt.
pub fn denied_retry(tool: &Definition, ended: &Ended, maybe_done: bool, reference: &str) -> Failure {
    let (kind, text) = why(ended, reference);
    let text = text + " It was not tried again, because too many calls are failing now.";
    if maybe_done {
        unknown_until(tool, &text, next(kind), soonest(ended))
    } else {
        known(tool, ended, FailureKind::Transient, text)
    }
}

/// A failure of this tool that changed nothing.
pub fn nothing(tool: &Definition, kind: FailureKind, text: impl Into<String>) -> Failure {
    Failure::new(kind, text).with_changed(Changed::Nothing, tool.wording.nothing.clone())
}

/// A failure before anybody has seen the record of the action. An earlier call may have made the effect, so that this
/// one can speak for itself only.
pub fn nothing_here(kind: FailureKind, text: impl Into<String>) -> Failure {
    for_this_call(Failure::new(kind, text))
}

/// The failure, where it is about nothing, as one that speaks for its own call only.
pub fn for_this_call(failure: Failure) -> Failure {
    match failure.changed() {
        Changed::Nothing => failure.with_changed(Changed::Nothing, "This call changed nothing."),
        _ => failure,
    }
}

fn known(tool: &Definition, ended: &Ended, kind: FailureKind, text: String) -> Failure {
    let hint = match kind {
        FailureKind::Transient => soonest(ended).unwrap_or_else(|| String::from(" Try again later.")),
        FailureKind::Timeout if tool.effect == Effect::ReadOnly => String::from(" Try again later, or ask for less."),
        FailureKind::Timeout => String::from(" Try again later."),
        FailureKind::Internal => String::from(" Calling it again will not help."),
        _ => String::new(),
    };
    match ended {
        Ended::Conflict | Ended::StoreRefused => nothing_here(kind, text + &hint),
        _ => nothing(tool, kind, text + &hint),
    }
}

/// It may have been done. Where a repetition cannot do it twice, a repetition is the way to find out.
pub fn unknown(tool: &Definition, why: &str) -> Failure {
    unknown_until(tool, why, AGAIN, None)
}

/// The same after a fault of ours.
pub fn unknown_by_fault(tool: &Definition, reference: &str) -> Failure {
    unknown_until(tool, &internal(reference), AGAIN_ONCE, None)
}

const AGAIN: &str =
    "Calling it again with the same arguments is safe: it cannot be done twice, and the answer tells how it ended.";
/// A bug fails each time, and whoever is told only that a repetition is safe goes on for ever.
const AGAIN_ONCE: &str = "Calling it again with the same arguments cannot do it twice, but may fail in the same way: call it \
                          once more at most, then tell the user.";

/// What helps to find out.
fn next(kind: FailureKind) -> &'static str {
    if kind == FailureKind::Internal { AGAIN_ONCE } else { AGAIN }
}

fn unknown_until(tool: &Definition, why: &str, next: &str, soonest: Option<String>) -> Failure {
    if tool.effect == Effect::Once {
        return lost(tool, why);
    }
    let soonest = soonest.unwrap_or_default();
    Failure::new(FailureKind::OutcomeUnknown, format!("{why} {next}{soonest}"))
        .with_changed(Changed::Unknown, tool.wording.unknown.clone())
        .with_retryable(true)
}

/// It may have been done, and another call with the same arguments cannot tell.
pub fn lost(tool: &Definition, why: &str) -> Failure {
    let text = format!("{why} Do not call it again with the same arguments.");
    Failure::new(FailureKind::OutcomeUnknown, text).with_changed(Changed::Unknown, tool.wording.unknown.clone())
}

fn why(ended: &Ended, reference: &str) -> (FailureKind, String) {
    match ended {
        Ended::Failed(error) => (kind_of(error), text_of(error, reference)),
        Ended::TimedOut => (FailureKind::Timeout, String::from("The tool did not answer in the time it had.")),
        Ended::NoTime => (FailureKind::Timeout, String::from("There was not enough time left for an attempt.")),
        Ended::Spent => (FailureKind::Transient, String::from("It was tried as often as one call may try.")),
        Ended::Stopped(_) => {
            (FailureKind::Transient, String::from("The function was stopped before the tool answered."))
        }
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

/// The waits that a conversation can keep to. A shorter one is none, a longer one is for the user to know.
const MOMENT: Duration = Duration::from_millis(1);
const DAY: Duration = Duration::from_hours(24);

/// When to ask again, if the backend has said so.
fn soonest(ended: &Ended) -> Option<String> {
    let Ended::Failed(ToolError { retry_after: Some(wait), .. }) = ended else { return None };
    if *wait > DAY {
        return Some(String::from(" It will not succeed within a day; tell the user."));
    }
    let seconds = wait.as_secs_f64().ceil();
    let plural = if seconds > 1.0 { "s" } else { "" };
    (*wait >= MOMENT).then(|| format!(" Try again in {seconds} second{plural}, not sooner."))
}

#[cfg(test)]
mod tests;
