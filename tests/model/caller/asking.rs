//! The call needs a person's approval that it does not have.

use action_group::{
    call::decisions::Settling,
    idempotency::{Record, State},
    outcome::FailureKind,
};

use super::{Answer, Caller, Doubt, Now, Step, Written};

impl Caller {
    /// The tool wants a person's approval, which the call does not have.
    pub(super) fn asks(&mut self, now: &Now) {
        let unknown = Answer::Unknown { retryable: true };
        let doubt = if self.maybe_done { now.doubt } else { Doubt::Released };
        match (self.holder, doubt) {
            (Some(_), Doubt::Kept) => self.step = Step::AskInPlace,
            (Some(holder), _) if holder.bars && !self.maybe_done => self.step = Step::AskInPlace,
            (Some(_), Doubt::Released) => self.step = Step::ReleaseToAsk,
            (Some(_), Doubt::GivenUp) => self.step = Step::Settle(Settling::Relinquish, unknown),
            (None, Doubt::Kept | Doubt::GivenUp) => self.step = Step::BarToAsk,
            (None, Doubt::Released) => self.ask(),
        }
    }

    pub(super) fn asked_in_place(&mut self, reply: Written, now: &Now) {
        let ours = |record: &Record| record.owner == self.name && record.state == State::AwaitingApproval;
        let written = match &reply {
            Ok(Ok(())) => true,
            Ok(Err(record)) => record.as_ref().is_some_and(ours),
            Err(_) => false,
        };
        let otherwise = if reply.is_err() { FailureKind::Transient } else { FailureKind::InProgress };
        match (written, self.found(reply)) {
            (true, _) if self.maybe_done => self.doubted(),
            (true, _) => self.told(FailureKind::ApprovalRequired, now),
            (false, Some(answer)) => self.step = Step::Ended(answer),
            (false, None) if self.maybe_done => self.step = Step::Ended(Answer::Unknown { retryable: true }),
            (false, None) => self.told(otherwise, now),
        }
    }

    /// It waits for a person, or was refused by one, and may have been done before.
    pub(super) fn doubted(&mut self) {
        self.step = Step::Ended(Answer::Unknown { retryable: false });
    }

    pub(super) fn ask(&mut self) {
        (self.holder, self.decided) = (None, None);
        self.needs_approval = true;
        self.enters = true;
        self.step = Step::Acquire;
    }
}

/// Whether a release has surely been applied.
pub(super) fn released(reply: &Written, name: &str) -> bool {
    match reply {
        Ok(Ok(()) | Err(None)) => true,
        Ok(Err(Some(record))) => record.owner == name && record.state == State::Approved,
        Err(_) => false,
    }
}
