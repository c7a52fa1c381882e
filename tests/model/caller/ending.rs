//! How an attempt ends, and what the call is told when it was the last.

use action_group::{
    call::decisions::{Ended, failure as failure_of, keeping_doubt, may_be_done, retry, settling},
    idempotency::{Decision, Record, StoreErrorKind, Stored, decide},
    outcome::{Changed, Failure, FailureKind},
    tool::{ToolError, ToolErrorKind},
};

use super::{super::table::ARGUMENTS, Answer, Bars, Caller, EffectOf, Now, Step};

impl Caller {
    /// The tool's code ended so.
    pub fn ran(&mut self, ended: Result<&'static str, Ended>, now: &Now) {
        match ended {
            Ok(_) if now.effect == EffectOf::Atomic => self.step = Step::Commit,
            Ok(result) => self.step = Step::Complete(result, false),
            Err(ended) => self.failed(&ended, now),
        }
    }

    /// A condition of the tool's own failed. What was sent before may still be applied, should it come to hold.
    pub fn commit_failed(&mut self, error: ToolError, now: &Now) {
        self.maybe_done |= std::mem::take(&mut self.asked_again);
        self.failed(&Ended::Failed(error), now);
    }

    /// An attempt ended without a result.
    pub fn failed(&mut self, ended: &Ended, now: &Now) {
        if matches!(ended, Ended::Failed(error) if error.kind() == ToolErrorKind::ApprovalRequired && !self.approved) {
            return self.asks(now);
        }
        let effect = now.effect.effect();
        self.maybe_done |= may_be_done(ended, effect);
        if retry(ended, effect, self.requests, now.time_left, 0.0).is_some() {
            self.step = Step::Run;
            return;
        }
        let failure = failure_of(now.effect.definition(), ended, self.maybe_done, "");
        let answer = answer_of(&failure);
        // A transaction that failed by the tool's own condition has found no record.
        let looked = matches!((&self.step, ended), (Step::Commit, Ended::Failed(_)));
        let nothing = || answer_of(&failure_of(now.effect.definition(), ended, false, ""));
        self.step = match self.holder {
            Some(_) => Step::Settle(settling(failure.changed(), effect), answer),
            None if self.maybe_done && now.bars != Bars::None => Step::Bar([nothing(), answer]),
            None if looked => Step::Ended(answer),
            None => Step::LookBeforeFailing(answer),
        };
    }

    /// What the look before a failure found.
    pub(super) fn fails_unless_done(
        &mut self,
        answer: Answer,
        found: Result<Option<Record>, StoreErrorKind>,
        now: &Now,
    ) {
        let for_this_call =
            if answer == Answer::Nothing { Answer::Told(FailureKind::Rejected) } else { answer.clone() };
        self.step = Step::Ended(match found {
            Ok(Some(record)) => match decide(&record, &self.claim(now.effect), ARGUMENTS, now.time) {
                Decision::Replay(Stored::Json(result)) => {
                    Answer::Success { result, replayed: record.owner != self.name }
                }
                Decision::Acquire => answer,
                Decision::TakeOver if record.bars() => {
                    self.step = Step::ShutOut(record, answer);
                    return;
                }
                _ => for_this_call,
            },
            Ok(None) => answer,
            Err(_) => for_this_call,
        });
    }

    /// The call is refused: without denying what may have been done.
    pub(super) fn told(&mut self, kind: FailureKind, now: &Now) {
        let failure = keeping_doubt(now.effect.definition(), Failure::new(kind, ""), self.maybe_done);
        self.step = Step::Ended(match failure.changed() {
            Changed::Nothing => Answer::Told(kind),
            _ => Answer::Unknown { retryable: failure.retryable() },
        });
    }
}

fn answer_of(failure: &Failure) -> Answer {
    match failure.changed() {
        Changed::Nothing => Answer::Nothing,
        _ => Answer::Unknown { retryable: failure.retryable() },
    }
}
