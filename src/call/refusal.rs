//! What a call is told that its record keeps from running, or that cannot see its record. What its attempts have come to
//! is told in [`explain`](super::explain).

use super::{explain, run::Run};
use crate::{
    clock::Timestamp,
    idempotency::{Claim, Decision, Record, StoreError, StoreErrorKind, decide},
    outcome::{Changed, Failure, FailureKind},
    tool::Definition,
};

/// What a call is told that was refused after an attempt of its own may have been done: by a record that it met since, or
/// because the table did not answer. Such a refusal speaks for the last step only, and must not deny the ones before.
pub fn keeping_doubt(tool: &Definition, failure: Failure, maybe_done: bool) -> Failure {
    if !maybe_done || failure.changed() != Changed::Nothing {
        return failure;
    }
    match failure.kind() {
        FailureKind::ApprovalRequired => {
            let in_doubt = waits(tool, "", true);
            match failure.awaits() {
                Some(id) => in_doubt.awaiting(&id),
                None => in_doubt,
            }
        }
        FailureKind::Denied => refused(tool, true),
        _ => explain::unknown(tool, "No answer came to an earlier attempt of this call."),
    }
}

/// The call waits for a person. `why` is the tool's sentence, if it has one.
pub(super) fn waits(tool: &Definition, why: &str, maybe_done: bool) -> Failure {
    let next = "which cannot be given in this conversation. Tell the user that it waits for approval. Asking again is \
                harmless, and does not speed it up.";
    if maybe_done {
        let text = format!(
            "{why} An earlier attempt may have done it. To try it again needs the approval of a person, {next}"
        );
        return in_doubt(tool, text.trim_start()).that_waits();
    }
    let text = format!("{why} This call needs the approval of a person, {next}");
    explain::nothing(tool, FailureKind::ApprovalRequired, text.trim_start())
}

/// A person has refused the call.
pub(super) fn refused(tool: &Definition, maybe_done: bool) -> Failure {
    if maybe_done {
        let text = "An earlier attempt may have done this, and a person has refused to have it tried again. Do not ask for it \
                    again; tell the user.";
        return in_doubt(tool, text);
    }
    let text = "A person has refused this call. Do not ask for it again; tell the user.";
    explain::nothing(tool, FailureKind::Denied, text)
}

/// Only a person can go on from here.
fn in_doubt(tool: &Definition, text: &str) -> Failure {
    Failure::new(FailureKind::OutcomeUnknown, text).with_changed(Changed::Unknown, tool.wording.unknown.clone())
}

/// Leaves a failure of the record table in the log; its text at TRACE only.
pub(super) fn note(run: &Run<'_>, error: &StoreError) {
    tracing::warn!(tool = run.tool().name, operation = error.operation, kind = ?error.kind, fault = error.cause(), "the record table failed");
    tracing::trace!(reference = run.report.reference, cause = ?error, "cause");
}

/// The table did not answer before this call began anything. An earlier one may have.
pub(super) fn unavailable(run: &mut Run<'_>, error: &StoreError) -> Failure {
    let text = "The record that keeps this from being done twice is not available, so this call did not begin it. Try \
                again later.";
    without_record(run, error, text)
}

/// The table did not answer while another call was at it.
pub(super) fn out_of_sight(run: &mut Run<'_>, error: &StoreError) -> Failure {
    let text = "Another call has begun the same action, and the record that tells how it ends is not available. Ask again \
                later with the same arguments: it is not done twice.";
    without_record(run, error, text)
}

fn without_record(run: &mut Run<'_>, error: &StoreError, text: &str) -> Failure {
    note(run, error);
    run.report.fault = Some(error.to_string());
    if error.kind == StoreErrorKind::Fault {
        let text = explain::internal(&run.report.reference) + " Calling it again will not help.";
        return explain::nothing_here(FailureKind::Internal, text);
    }
    explain::nothing_here(FailureKind::Transient, text)
}

/// Another call is at it, and this one has no time to wait any longer.
pub(super) fn in_progress() -> Failure {
    let text = "The same action is being carried out by another call, which has not ended yet. \
                Ask again later with the same arguments: it is not done twice.";
    explain::nothing_here(FailureKind::InProgress, text)
}

/// A call before has begun it, and nobody can say how it ended.
pub(super) fn abandoned(run: &mut Run<'_>) -> Failure {
    // What went wrong on the way to this, if anything did, says more.
    run.report.fault.get_or_insert_with(|| String::from("abandoned"));
    explain::lost(run.tool(), "An earlier call began this, and its end is not known.")
}

/// The record is one of other arguments. What it says of the earlier call is told, and no more; and no argument is to be
/// changed until the call passes, for that would be another action than was meant.
pub(super) fn key_reused(tool: &Definition, record: &Record, claim: &Claim, now: Timestamp) -> Failure {
    let (earlier, next) = earlier(tool, record, claim, now);
    let text = format!(
        "The same action was asked for before with other arguments, so this call was not carried out. {earlier} {next} Do not \
         change an argument to get past this."
    );
    explain::nothing_here(FailureKind::KeyReused, text)
}

/// What the record says of the call that it belongs to, which is what that call would meet if it were made again; and what to
/// do then.
fn earlier(tool: &Definition, record: &Record, claim: &Claim, now: Timestamp) -> (String, &'static str) {
    let again = "If you mean the same action, ask with exactly the arguments of the earlier call: it is not done twice, and \
                 the answer tells how it ended. If you mean another, tell the user.";
    let never = "Do not ask for it again; tell the user.";
    let decision = decide(record, claim, &record.args_hash, now);
    let known = match decision {
        Decision::Replay(_) => ("The earlier call was carried out.", again),
        Decision::InProgress(_) => ("The earlier call is being carried out.", again),
        Decision::AwaitApproval if !record.maybe_done => {
            ("The earlier call waits for the approval of a person, and has not been carried out.", again)
        }
        Decision::UseApproval if !record.maybe_done => {
            ("A person has approved the earlier call, and it has not been carried out.", again)
        }
        Decision::Denied if !record.maybe_done => ("A person has refused the earlier call.", never),
        _ => {
            let next = if matches!(decision, Decision::TakeOver) { again } else { never };
            return (format!("The earlier call was begun, and its end is not known. {}", tool.wording.unknown), next);
        }
    };
    (String::from(known.0), known.1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        idempotency::{State, Stored},
        tool::Effect,
    };

    const NOW: Timestamp = Timestamp::from_secs(1_000_000);

    /// What is told to a call with other arguments than those of this record.
    fn told(effect: Effect, state: State, lease_until: Timestamp, maybe_done: bool) -> Failure {
        let record = Record {
            state,
            owner: String::from("other"),
            attempt: 1,
            args_hash: String::from("others"),
            effect: Some(effect),
            result: (state == State::Completed).then(|| Stored::Json(String::from("7"))),
            lease_until,
            approved_until: (state == State::Started).then_some(NOW), // else it gives way to other arguments
            decided: None,
            maybe_done,
            expires_at: NOW.plus(Duration::from_hours(1)),
        };
        let owner = String::from("me");
        let claim = Claim { owner, effect, lease_until: NOW, expires_at: NOW, for_approval: None };
        assert_eq!(decide(&record, &claim, "mine", NOW), Decision::KeyReused);
        key_reused(&Definition::sample("tool", effect), &record, &claim, NOW)
    }

    #[test]
    fn a_call_under_a_used_key_is_told_what_is_known_of_the_earlier_one_and_to_change_nothing_until_it_passes() {
        let (running, gone) = (NOW.plus(Duration::from_secs(5)), Timestamp::from_secs(900_000));
        let effects = [Effect::Keyed, Effect::Atomic, Effect::Once];
        for (effect, state) in effects.into_iter().flat_map(|effect| State::ALL.map(|state| (effect, state))) {
            for (lease, maybe_done) in [(running, false), (running, true), (gone, false), (gone, true)] {
                let failure = told(effect, state, lease, maybe_done);
                assert_eq!((failure.kind(), failure.changed()), (FailureKind::KeyReused, Changed::Nothing));
                let message = failure.message();
                assert!(message.ends_with("Do not change an argument to get past this. This call changed nothing."));
                let says = |words: &str| message.contains(words);
                assert_eq!(says("The earlier call was carried out."), state == State::Completed, "{message}");
                assert_eq!(says("is being carried out"), state == State::Started && lease == running, "{message}");
                let is_open = match state {
                    State::Completed => false,
                    State::Started => lease == gone, // what an atomic call has sent may be on its way still
                    State::Unknown => true,
                    State::AwaitingApproval | State::Approved | State::Denied => maybe_done,
                };
                assert_eq!(says("its end is not known"), is_open, "{effect:?} {state:?}: {message}");
                let is_over =
                    state == State::Denied || is_open && state != State::Started || is_open && effect == Effect::Once;
                assert_eq!(says("Do not ask for it again"), is_over, "{effect:?} {state:?}: {message}");
            }
        }
    }

    #[test]
    fn no_refusal_denies_what_an_attempt_before_it_may_have_done() {
        let effects = [Effect::ReadOnly, Effect::Keyed, Effect::Atomic, Effect::Once];
        for (effect, kind) in effects.into_iter().flat_map(|effect| FailureKind::ALL.map(|kind| (effect, kind))) {
            let tool = Definition::sample("tool", effect);
            let kept = keeping_doubt(&tool, Failure::new(kind, "No."), true);
            assert_eq!((kept.kind(), kept.changed()), (FailureKind::OutcomeUnknown, Changed::Unknown), "{kind}");
            assert_eq!(kept.waits(), kind == FailureKind::ApprovalRequired, "{kind}");
            let plain = keeping_doubt(&tool, Failure::new(kind, "No."), false);
            assert_eq!((plain.kind(), plain.changed()), (kind, Changed::Nothing));
        }
    }
}
