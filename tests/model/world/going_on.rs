//! Whether one more call ends well, or a person is told.

use action_group::{idempotency::State, outcome::FailureKind};

use super::{
    super::caller::{Answer, Caller, Step},
    Approval, Fate, Protocol, World,
};

impl World {
    /// Whether one more call, later and without faults, gets an end that it or a person can go on from.
    pub(super) fn goes_on(&self, protocol: &Protocol) -> bool {
        if self.callers.iter().any(Caller::is_active) {
            return true;
        }
        let mut protocol = protocol.clone();
        let later = protocol.moments[self.moment] + 4_000; // every lease and every margin is over
        protocol.moments = Box::leak(Box::new([later]));
        let world = Self { moment: 0, flying: Vec::new(), faults: 0, ..self.clone() };
        let ways: &[Fate] =
            if protocol.approval == Approval::AskedAtTimes { &[Fate::Answered, Fate::Asks] } else { &[Fate::Answered] };
        ways.iter().all(|way| world.clone().ends_well(&protocol, *way))
    }

    /// Whether one more call ends well whose attempts go this way as long as it is not approved.
    fn ends_well(&mut self, protocol: &Protocol, way: Fate) -> bool {
        let answer = self.call_again(protocol, way);
        if self.record.as_ref().is_some_and(|record| record.state == State::AwaitingApproval) {
            self.approve(protocol, true);
            let approved = self.call_again(protocol, way);
            let ended = match approved {
                Some(Answer::Success { .. }) => true,
                // What another version may have done is not done by another way: its caller is told to find out.
                Some(Answer::Unknown { retryable: false }) => protocol.later_effect.is_some() && !protocol.reconciles,
                _ => false,
            };
            return ended && self.broken.is_none();
        }
        let ended = match answer {
            Some(Answer::Success { .. } | Answer::Told(FailureKind::Denied)) => true,
            // Nobody can be helped by asking for approval again and again.
            Some(Answer::Unknown { .. }) => way == Fate::Answered || self.is_for_a_person(),
            _ => false,
        };
        ended && self.broken.is_none()
    }

    fn call_again(&mut self, protocol: &Protocol, way: Fate) -> Option<Answer> {
        let last = 2; // a clock that is right
        self.callers.resize(3, Caller::new("later"));
        self.killed_at.resize(3, 0);
        self.callers[last] = Caller::new("later");
        self.begin(protocol, last);
        for _ in 0..30 {
            let caller = &self.callers[last];
            if let Step::Ended(answer) = &caller.step {
                return Some(answer.clone());
            }
            let fate = if caller.step == Step::Run && !caller.is_approved() { way } else { Fate::Answered };
            protocol.step(self, last, fate);
        }
        None
    }
}
