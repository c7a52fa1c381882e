//! What a call is told that its record keeps from running, or that cannot see its record. What its attempts have come to
//! is told in [`explain`](super::explain).

use super::{explain, run::Run};
use crate::{
    idempotency::{StoreError, StoreErrorKind},
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
    tracing::warn!(tool = run.tool().name, operation = error.operation, kind = ?error.kind, "the record table failed");
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
    if error.kind == StoreErrorKind::Fault {
        run.report.fault = Some(error.to_string());
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
pub(super) fn abandoned(tool: &Definition) -> Failure {
    explain::lost(tool, "An earlier call began this, and its end is not known.")
}

/// The record is one of other arguments.
pub(super) fn key_reused() -> Failure {
    let text = "The same action was asked for before with other arguments, so this call was not carried out. \
                If you mean the earlier action, use the arguments of the earlier call; if you mean another, change what \
                tells them apart.";
    explain::nothing_here(FailureKind::KeyReused, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::Effect;

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
