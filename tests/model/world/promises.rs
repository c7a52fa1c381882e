//! What must never be: it is looked for where an effect is made, and where an answer is given.

use std::time::Duration;

use action_group::{idempotency::State, outcome::FailureKind};

use super::{
    super::caller::{Answer, Caller, EffectOf, Step},
    Approval, BUDGET, LABEL, LATE_KILL, Protocol, START, World,
};

impl World {
    pub(super) fn effect(&mut self, protocol: &Protocol, caller: usize, name: &'static str) {
        let Caller { life, ref step, .. } = self.callers[caller];
        if matches!(step, Step::Ended(Answer::Nothing | Answer::Told(_))) {
            self.broken = Some("an effect after the answer that nothing was changed");
        }
        if protocol.approval.is_policy_of(caller) && !self.callers[caller].is_approved() {
            self.broken = Some("an effect that nobody has approved");
        }
        let Caller { holder, maybe_done, .. } = self.callers[caller];
        let lapsed = holder.and_then(|holder| holder.approved_until).is_some_and(|until| {
            let spent = BUDGET + LATE_KILL + Duration::from_secs(1); // it was in time when the call began
            until.plus(spent).as_millis() < START.as_millis() + protocol.moments[self.moment]
        });
        if self.callers[caller].denied {
            self.broken = Some("an effect after an equal call has said that nothing was changed");
        }
        if lapsed && !maybe_done {
            self.broken = Some("an effect whose approval has lapsed");
        }
        // The system behind a keyed effect makes one only.
        let made = &mut self.lives[life];
        if name == LABEL && made.contains(&LABEL) {
            return;
        }
        made.push(name);
        if made.len() > 1 {
            self.broken = Some("two effects under one key");
        }
        let all = self.lives.iter().map(Vec::len).sum::<usize>();
        let always = matches!(protocol.approval, Approval::ByPolicy | Approval::AskedByTheTool);
        if always && all > usize::from(self.approvals) {
            self.broken = Some("an effect that nobody has approved");
        }
    }

    /// Whether a result is told as an earlier call's if it is one, and only then. All results of a keyed effect are the same.
    pub(super) fn check_whose(&mut self, protocol: &Protocol, caller: usize) {
        let Caller { name, step, .. } = &self.callers[caller];
        if let Step::Ended(Answer::Success { result, replayed }) = step
            && protocol.effect_of(caller) == EffectOf::Atomic
            && *replayed == (result == name)
        {
            self.broken = self.broken.or(Some("a result that is told as somebody else's"));
        }
    }

    /// Whether an answer that was just given agrees with the record and the effects.
    pub(super) fn check_answer(&mut self, protocol: &Protocol, caller: usize) {
        let (Step::Ended(answer) | Step::Settle(_, answer)) = &self.callers[caller].step else { return };
        let made_by = |result: &str| self.lives.iter().any(|made| made.as_slice() == [result]);
        let completed = self.record.as_ref().is_some_and(|record| record.state == State::Completed);
        self.broken = self.broken.or(match answer {
            Answer::Success { result, .. } if !made_by(result) => Some("a success without its effect"),
            Answer::Nothing | Answer::Told(FailureKind::ApprovalRequired | FailureKind::Denied)
                if self.is_live(protocol) && (completed || !self.effects().is_empty()) =>
            {
                Some("an answer that nothing was changed, and it was")
            }
            Answer::Unknown { retryable: true } if protocol.effect_of(caller) == EffectOf::Once => {
                Some("the wrong advice about another call")
            }
            Answer::Unknown { retryable: false }
                if protocol.effect_of(caller) != EffectOf::Once
                    && !self.is_for_a_person()
                    && protocol.later_effect.is_none() =>
            {
                Some("the wrong advice about another call")
            }
            _ => None,
        });
    }

    /// What the others have left behind was not done, if this call ends with an answer that says so.
    pub(super) fn deny(&mut self, caller: usize) {
        let (Step::Ended(answer) | Step::Settle(_, answer)) = &self.callers[caller].step else { return };
        if !matches!(answer, Answer::Nothing | Answer::Told(FailureKind::ApprovalRequired | FailureKind::Denied)) {
            return;
        }
        let others = self.callers.iter_mut().enumerate().filter(|(other, _)| *other != caller);
        for (_, other) in others {
            other.denied |= match other.step {
                Step::Dead => other.holder.is_some(), // else nobody can know of it
                Step::Ended(Answer::Unknown { .. }) => other.holder.is_some() || !other.open,
                _ => false,
            };
        }
    }

    /// Whether the record waits for a person, or one has decided on it, or has to find out what became of it.
    pub(super) fn is_for_a_person(&self) -> bool {
        use State::{Approved, AwaitingApproval, Denied, Unknown};
        self.record
            .as_ref()
            .is_some_and(|record| matches!(record.state, AwaitingApproval | Approved | Denied | Unknown))
    }
}
