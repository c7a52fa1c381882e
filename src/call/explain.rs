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
mod tests {
    use super::*;

    const REFERENCE: &str = "0000abcd";
    const EFFECTS: [Effect; 4] = [Effect::ReadOnly, Effect::Keyed, Effect::Atomic, Effect::Once];

    fn told(effect: Effect, ended: &Ended) -> Failure {
        failure(&Definition::sample("tool", effect), ended, may_be_done(ended, effect), REFERENCE)
    }

    fn every_end() -> [Ended; 15] {
        [
            Ended::Failed(ToolError::invalid_input("A.")),
            Ended::Failed(ToolError::not_found("A.")),
            Ended::Failed(ToolError::rejected("A.")),
            Ended::Failed(ToolError::denied("A.")),
            Ended::Failed(ToolError::transient("A.")),
            Ended::Failed(ToolError::no_answer("A.")),
            Ended::Failed(ToolError::internal("SECRET")),
            Ended::TimedOut,
            Ended::NoTime,
            Ended::Spent,
            Ended::Stopped(Phase::MaybeDone),
            Ended::Panicked,
            Ended::Conflict,
            Ended::CommitLost,
            Ended::StoreRefused,
        ]
    }

    #[test]
    fn every_end_that_counts_as_a_fault_names_its_cause() {
        for (effect, ended) in EFFECTS.into_iter().flat_map(|effect| every_end().map(|ended| (effect, ended))) {
            let kind = told(effect, &ended).kind();
            if crate::telemetry::metrics::is_fault(kind) {
                assert!(ended.fault().is_some_and(|name| !name.contains("SECRET")), "{ended:?}");
            }
        }
    }

    #[test]
    fn only_an_end_that_leaves_the_effect_open_is_told_as_unknown() {
        let open =
            |effect| every_end().iter().filter(|end| may_be_done(end, effect)).map(Ended::name).collect::<Vec<_>>();
        assert_eq!(open(Effect::ReadOnly), [""; 0]);
        assert_eq!(open(Effect::Atomic), ["commit_lost"]);
        for effect in [Effect::Keyed, Effect::Once] {
            assert_eq!(open(effect), ["failed", "failed", "timed_out", "stopped", "panicked", "commit_lost"]);
        }
    }

    #[test]
    fn the_last_sentence_agrees_with_what_was_changed() {
        let wording = crate::tool::Wording::default();
        for (effect, ended) in EFFECTS.into_iter().flat_map(|effect| every_end().map(|ended| (effect, ended))) {
            let failure = told(effect, &ended);
            let last = if may_be_done(&ended, effect) {
                assert_eq!((failure.kind(), failure.changed()), (FailureKind::OutcomeUnknown, Changed::Unknown));
                &*wording.unknown
            } else {
                assert_eq!(failure.changed(), Changed::Nothing);
                // A transaction that was not looked at cannot speak for an earlier call.
                let blind = matches!(ended, Ended::Conflict | Ended::StoreRefused);
                if blind { "This call changed nothing." } else { &*wording.nothing }
            };
            assert!(failure.message().ends_with(last), "{effect:?} {ended:?}: {}", failure.message());
            assert!(!failure.message().contains("SECRET"), "{effect:?}: {}", failure.message());
        }
    }

    #[test]
    fn asking_again_is_said_to_be_safe_unless_it_could_be_done_twice() {
        let message = |effect| told(effect, &Ended::CommitLost).message();
        assert!(message(Effect::Once).contains("Do not call it again"));
        for effect in [Effect::Keyed, Effect::Atomic] {
            assert!(message(effect).contains("Calling it again with the same arguments is safe"));
        }
        assert!(!told(Effect::Once, &Ended::TimedOut).retryable() && told(Effect::Keyed, &Ended::TimedOut).retryable());
    }

    #[test]
    fn a_fault_of_ours_that_may_have_been_done_is_not_said_to_go_away_by_itself() {
        for ended in [Ended::Panicked, Ended::Failed(ToolError::internal("SECRET"))] {
            let failure = told(Effect::Keyed, &ended);
            let message = failure.message();
            assert!(message.contains("may fail in the same way: call it once more at most"), "{message}");
            assert!(failure.retryable() && !message.contains("the answer tells"), "{message}");
            assert!(told(Effect::Once, &ended).message().contains("Do not call it again"));
        }
        assert!(!told(Effect::Keyed, &Ended::TimedOut).message().contains("in the same way"));
    }

    #[test]
    fn a_fault_of_ours_is_one_flat_sentence_with_the_reference_of_the_log() {
        for ended in [Ended::Panicked, Ended::Failed(ToolError::internal("SECRET"))] {
            assert_eq!(
                told(Effect::ReadOnly, &ended).message(),
                "The tool failed because of a fault on our side (reference 0000abcd). Calling it again will not help. \
                 Nothing was changed."
            );
        }
    }

    #[test]
    fn a_call_that_the_budget_denies_a_retry_says_so_and_may_be_asked_again() {
        let tool = Definition::sample("tool", Effect::ReadOnly);
        let failure = denied_retry(&tool, &Ended::TimedOut, false, REFERENCE);
        assert_eq!((failure.kind(), failure.retryable()), (FailureKind::Transient, true));
        assert_eq!(
            failure.message(),
            "The tool did not answer in the time it had. It was not tried again, because too many calls are failing now. \
             Try again later. Nothing was changed."
        );
    }

    #[test]
    fn the_wait_that_a_backend_asks_for_is_told_in_whole_seconds() {
        let busy = ToolError::transient("Busy.").retry_after(std::time::Duration::from_millis(6_200));
        let message = told(Effect::Once, &Ended::Failed(busy)).message();
        assert_eq!(message, "Busy. Try again in 7 seconds, not sooner. Nothing was changed.");
    }

    #[test]
    fn the_wait_that_a_backend_asks_for_is_told_wherever_a_repetition_is_advised() {
        let wait = "in 7 seconds, not sooner";
        for (effect, told_so) in
            [(Effect::ReadOnly, true), (Effect::Keyed, true), (Effect::Atomic, true), (Effect::Once, false)]
        {
            let lost = Ended::Failed(ToolError::no_answer("A.").retry_after(Duration::from_secs(7)));
            let denied =
                denied_retry(&Definition::sample("tool", effect), &lost, may_be_done(&lost, effect), REFERENCE);
            for failure in [told(effect, &lost), denied] {
                assert_eq!(failure.message().contains(wait), told_so, "{effect:?}: {}", failure.message());
            }
        }
    }

    #[test]
    fn a_wait_of_more_than_a_day_is_not_told_as_a_moment() {
        for days in [2, 9_000_000_000] {
            let wait = Duration::from_secs(days * 86_400);
            let busy = Ended::Failed(ToolError::transient("Busy.").retry_after(wait));
            let message = told(Effect::Keyed, &busy).message();
            assert_eq!(message, "Busy. It will not succeed within a day; tell the user. Nothing was changed.");
        }
    }

    #[test]
    fn only_a_read_can_be_asked_for_less() {
        for (effect, ended) in EFFECTS.into_iter().flat_map(|effect| every_end().map(|ended| (effect, ended))) {
            let message = told(effect, &ended).message();
            assert!(effect == Effect::ReadOnly || !message.contains("ask for less"), "{effect:?}: {message}");
        }
        assert!(told(Effect::ReadOnly, &Ended::TimedOut).message().contains("or ask for less"));
    }

    #[test]
    fn a_call_that_is_stopped_says_so_and_leaves_open_only_what_had_begun() {
        for effect in EFFECTS {
            for phase in [Phase::NothingSent, Phase::MaybeDone] {
                let failure = told(effect, &Ended::Stopped(phase));
                let message = failure.message();
                assert!(message.starts_with("The function was stopped before the tool answered."), "{message}");
                let open = phase == Phase::MaybeDone && matches!(effect, Effect::Keyed | Effect::Once);
                assert_eq!(failure.changed() == Changed::Unknown, open, "{effect:?}");
            }
        }
    }
}
