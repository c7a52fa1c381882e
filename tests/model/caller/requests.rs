//! The request of a step, and what it puts into the record.

use action_group::{
    call::decisions::Settling,
    clock::Timestamp,
    idempotency::{Claim, Record, State},
    tool::Effect,
};

use super::{
    super::table::{Entry, Holder, Write},
    Caller, EffectOf, Step, names,
};

impl Caller {
    /// The request of this step, if it writes to the table.
    pub fn write(&self, effect: Option<Effect>, now: Timestamp) -> Option<Write> {
        let holder = self.holder;
        let held = || holder.expect("a guard");
        Some(match &self.step {
            Step::Acquire => {
                let state = if self.needs_approval { State::AwaitingApproval } else { State::Started };
                Write::Acquire(self.entry(effect, now), state)
            }
            Step::GiveUpAcquiring => Write::Release(self.first()),
            Step::Bar(_) | Step::BarToAsk => Write::Acquire(self.barring(effect, now), State::Started),
            Step::ShutOut(old, _) => Write::TakeOver(self.barring(effect, now), old.clone()),
            Step::GiveUpTakingOver(old) => {
                let next = self.next(old, effect.unwrap_or(Effect::Once), now);
                match old.state {
                    State::Approved => Write::Release(next),
                    State::Unknown => Write::MarkUnknown(next),
                    _ => Write::Relinquish(next),
                }
            }
            Step::TakeOver(old, _) => Write::TakeOver(self.entry(effect, now), old.clone()),
            Step::MarkUnknown(old) => Write::SettleUnknown(old.clone()),
            Step::Complete(result, _) => Write::Complete(held(), result),
            Step::Commit => Write::Commit(self.entry(effect, now), self.name, self.decided.clone()),
            Step::Settle(Settling::Release, _) | Step::ReleaseToAsk => Write::Release(held()),
            Step::AskInPlace => Write::AwaitApproval(held(), self.maybe_done),
            Step::Settle(Settling::MarkUnknown, _) => Write::MarkUnknown(held()),
            Step::Settle(Settling::Relinquish, _) => Write::Relinquish(held()),
            Step::Idle
            | Step::Look
            | Step::LookBeforeFailing(_)
            | Step::Reconcile(_)
            | Step::Run
            | Step::Dead
            | Step::Ended(_) => return None,
        })
    }

    pub(super) fn entry(&self, effect: Option<Effect>, now: Timestamp) -> Entry {
        Entry { owner: self.name, effect, now, lease_until: self.lease_until, expires_at: self.expires_at }
    }

    /// The record of nobody, which only keeps others out.
    pub(super) fn barring(&self, effect: Option<Effect>, now: Timestamp) -> Entry {
        Entry { owner: names(self.name)[2], lease_until: Timestamp::default(), ..self.entry(effect, now) }
    }

    pub(super) fn next(&self, old: &Record, effect: Effect, now: Timestamp) -> Holder {
        let (approved_until, bars) = (old.approval(effect, now), old.bars());
        Holder { owner: self.name, attempt: old.attempt + 1, approved_until, bars }
    }

    pub(super) fn first(&self) -> Holder {
        Holder { owner: self.name, attempt: 1, approved_until: None, bars: false }
    }

    pub(super) fn claim(&self, effect: EffectOf) -> Claim {
        Claim {
            owner: self.name.into(),
            effect: effect.effect(),
            lease_until: self.lease_until,
            expires_at: self.expires_at,
            for_approval: self.needs_approval.then(Box::default),
        }
    }
}
