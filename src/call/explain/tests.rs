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
    let open = |effect| every_end().iter().filter(|end| may_be_done(end, effect)).map(Ended::name).collect::<Vec<_>>();
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
        let denied = denied_retry(&Definition::sample("tool", effect), &lost, may_be_done(&lost, effect), REFERENCE);
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
