//! What a record comes to, wherever it was met.

use action_group::{
    call::decisions::Ended,
    idempotency::{Decision, Record, StoreErrorKind, Stored, decide},
    outcome::FailureKind,
};

use super::{
    super::table::{ARGUMENTS, Holder},
    Answer, Bars, Caller, Now, Step,
};

impl Caller {
    /// Does what the record asks for.
    pub(super) fn meet(&mut self, record: Record, now: &Now) {
        match decide(&record, &self.claim(now.effect), ARGUMENTS, now.time) {
            Decision::Acquire => self.again(now),
            Decision::Ours => {
                self.maybe_done |= record.maybe_done;
                let (attempt, approved_until) = (record.attempt, record.approved_until);
                let bars = attempt > 1 && record.bars();
                self.decided = record.decided;
                self.go(Holder { owner: self.name, attempt, approved_until, bars }, now);
            }
            Decision::Replay(stored) => self.step = Step::Ended(replay(stored)),
            Decision::InProgress(_) => self.wait(now),
            Decision::TakeOver | Decision::UseApproval => self.step = Step::TakeOver(record, None),
            Decision::MarkUnknown => self.step = Step::MarkUnknown(record),
            Decision::Unknown => self.step = Step::Reconcile(record),
            Decision::AwaitApproval | Decision::Denied if record.maybe_done => self.doubted(),
            Decision::AwaitApproval => self.told(FailureKind::ApprovalRequired, now),
            Decision::Denied => self.told(FailureKind::Denied, now),
            Decision::KeyReused => self.told(FailureKind::KeyReused, now),
        }
    }

    /// Where the record is met in the middle of a commit, nobody waits: it is one more attempt.
    pub(super) fn again(&mut self, now: &Now) {
        if self.enters { self.step = Step::Acquire } else { self.failed(&Ended::Conflict, now) }
    }

    pub(super) fn wait(&mut self, now: &Now) {
        if self.enters { self.step = Step::Look } else { self.failed(&Ended::Conflict, now) }
    }

    /// What a look at the record found.
    pub fn looked(&mut self, found: Result<Option<Record>, StoreErrorKind>, now: &Now) {
        if let Step::LookBeforeFailing(answer) = self.step.clone() {
            return self.fails_unless_done(answer, found, now);
        }
        match found {
            Ok(Some(record)) => self.meet(record, now),
            Ok(None) => self.step = Step::Acquire,
            Err(_) => self.told(FailureKind::Transient, now),
        }
    }

    pub fn stop_waiting(&mut self, now: &Now) {
        self.told(FailureKind::InProgress, now);
    }

    pub(super) fn go(&mut self, holder: Holder, now: &Now) {
        let holder = Holder { bars: holder.bars && now.bars == Bars::Stay, ..holder };
        self.approved = holder.approved_until.is_some();
        self.holder = Some(holder);
        self.enters = false;
        if self.needs_approval && !self.approved && now.asks_heirs { self.asks(now) } else { self.step = Step::Run }
    }

    /// What the tool found out about an effect whose outcome is not known.
    pub fn reconciled(&mut self, record: Record, found: Found) {
        self.step = match found {
            Found::Unknown => Step::Ended(Answer::Unknown { retryable: false }),
            Found::NotDone => Step::TakeOver(record, None),
            Found::Done(result) => Step::TakeOver(record, Some(result)),
        };
    }
}

/// What [`Tool::reconcile`](action_group::tool::Tool::reconcile) says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Found {
    Done(&'static str),
    NotDone,
    Unknown,
}

pub(super) fn replay(stored: Stored) -> Answer {
    let Stored::Json(result) = stored else { unreachable!("results are small here") };
    Answer::Success { result, replayed: true }
}
