//! What a record means for a call that meets it. Pure: the model checker and the tests run this very function.

use std::{fmt, time::Duration};

use super::{
    asking::Asking,
    record::{Record, State, Stored},
};
use crate::{clock::Timestamp, tool::Effect};

/// How long after its lease an execution is still taken for alive: one second of clock skew, and the 0.7 s by which
/// Lambda has been seen to end a process late (aws-powertools/powertools-lambda-python#4759), rounded up.
pub const TAKE_OVER_MARGIN: Duration = Duration::from_secs(2);

/// One execution's claim on a key.
#[derive(Clone, PartialEq, Eq)]
pub struct Claim {
    /// The random id of this execution.
    pub owner: String,
    /// What the tool promises.
    pub effect: Effect,
    /// When this execution is surely over: its host's deadline.
    pub lease_until: Timestamp,
    /// When the record no longer counts.
    pub expires_at: Timestamp,
    /// What the person is shown who has to approve this call; `None` if nobody has to.
    pub for_approval: Option<Box<Asking>>,
}

impl Claim {
    /// The claim of nobody: under an owner that no commit has, and left behind at once.
    pub(super) fn barring(&self) -> Self {
        let owner = format!("{}-", self.owner);
        Self { owner, lease_until: Timestamp::default(), for_approval: None, ..self.clone() }
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim").field("owner", &self.owner).field("effect", &self.effect).finish_non_exhaustive()
    }
}

/// What to do about a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The record no longer counts: acquire again.
    Acquire,
    /// The record is our own; the answer to our write was lost. Go on as its owner.
    Ours,
    /// Done by an earlier call: answer with its result.
    Replay(Stored),
    /// Somebody is at it until then.
    InProgress(Timestamp),
    /// The holder is gone and the action may be run again: compare-and-set the owner.
    TakeOver,
    /// The holder is gone and nobody knows whether it was done: record that.
    MarkUnknown,
    /// It is known not to be known.
    Unknown,
    /// The key belongs to a call with other arguments.
    KeyReused,
    /// A person has to approve it and has not.
    AwaitApproval,
    /// A person has approved it: compare-and-set the state, and go on.
    UseApproval,
    /// A person has refused it.
    Denied,
}

/// Decides, from the record alone, what this execution does.
pub fn decide(record: &Record, claim: &Claim, args_hash: &str, now: Timestamp) -> Decision {
    if record.expires_at <= now {
        return Decision::Acquire;
    }
    let ours = record.owner == claim.owner;
    if !ours && record.args_hash != args_hash && !stands_for_none(record, now) {
        return Decision::KeyReused;
    }
    match record.state {
        State::Completed => Decision::Replay(record.result.clone().unwrap_or(Stored::Omitted(0))),
        State::Unknown => Decision::Unknown,
        State::AwaitingApproval => Decision::AwaitApproval,
        State::Approved if record.maybe_done && record.begun_as(claim.effect) != claim.effect => Decision::Unknown,
        State::Approved => Decision::UseApproval,
        State::Denied => Decision::Denied,
        State::Started if ours => Decision::Ours,
        State::Started if !is_left(record, now) => Decision::InProgress(record.lease_until),
        State::Started if is_repeatable(record.begun_as(claim.effect), claim.effect) => Decision::TakeOver,
        State::Started => Decision::MarkUnknown,
    }
}

fn is_left(record: &Record, now: Timestamp) -> bool {
    now > record.lease_until.plus(TAKE_OVER_MARGIN)
}

/// Whether the record stands for no call any more: it only keeps out what was sent and not answered, and so does whoever takes
/// it over. The key is as free for other arguments as if it had been released. A person's decision is on the arguments it was
/// asked for.
fn stands_for_none(record: &Record, now: Timestamp) -> bool {
    let is_decided_on = record.approved_until.is_some() || record.decided.is_some();
    record.bars() && is_left(record, now) && !record.maybe_done && !is_decided_on
}

/// Whether a call may begin what an execution has begun that is gone. An atomic effect of that one can no longer be
/// committed, and a keyed one is made once by the system behind, as long as both hand it the same key.
fn is_repeatable(begun_as: Effect, effect: Effect) -> bool {
    match begun_as {
        Effect::Atomic | Effect::ReadOnly => true,
        Effect::Keyed => effect == Effect::Keyed,
        Effect::Once => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idempotency::Decided;

    const NOW: Timestamp = Timestamp::from_secs(1_000_000);

    fn record(state: State) -> Record {
        Record {
            state,
            owner: String::from("other"),
            attempt: 1,
            args_hash: String::from("args"),
            effect: None,
            result: (state == State::Completed).then(|| Stored::Json(String::from("false"))),
            lease_until: NOW.plus(Duration::from_secs(5)),
            approved_until: None,
            decided: None,
            maybe_done: false,
            expires_at: NOW.plus(Duration::from_hours(1)),
        }
    }

    fn claim(effect: Effect) -> Claim {
        Claim { owner: String::from("me"), effect, lease_until: NOW, expires_at: NOW, for_approval: None }
    }

    fn decided(record: &Record, effect: Effect, now: Timestamp) -> Decision {
        decide(record, &claim(effect), "args", now)
    }

    #[test]
    fn a_falsy_result_is_replayed_as_it_is() {
        let replay = Decision::Replay(Stored::Json(String::from("false")));
        assert_eq!(decided(&record(State::Completed), Effect::Once, NOW), replay);
    }

    #[test]
    fn a_holder_is_left_alone_until_its_lease_and_the_margin_have_passed() {
        let held = record(State::Started);
        for effect in [Effect::Once, Effect::Keyed] {
            let last = held.lease_until.plus(TAKE_OVER_MARGIN);
            assert_eq!(decided(&held, effect, last), Decision::InProgress(held.lease_until));
        }
        let after = held.lease_until.plus(TAKE_OVER_MARGIN + Duration::from_millis(1));
        assert_eq!(decided(&held, Effect::Keyed, after), Decision::TakeOver);
        assert_eq!(decided(&held, Effect::Once, after), Decision::MarkUnknown);
    }

    /// A deployment that changes what a tool promises meets the records of the one before.
    #[test]
    fn what_was_begun_under_another_effect_is_run_again_only_if_it_surely_did_nothing() {
        use Effect::{Atomic, Keyed, Once};
        let after = record(State::Started).lease_until.plus(TAKE_OVER_MARGIN + Duration::from_millis(1));
        for (begun_as, effect, decision) in [
            (Once, Keyed, Decision::MarkUnknown),
            (Once, Atomic, Decision::MarkUnknown),
            (Keyed, Once, Decision::MarkUnknown),
            (Keyed, Atomic, Decision::MarkUnknown),
            (Atomic, Once, Decision::TakeOver),
            (Atomic, Keyed, Decision::TakeOver),
        ] {
            let left = Record { effect: Some(begun_as), ..record(State::Started) };
            assert_eq!(decided(&left, effect, after), decision, "{begun_as:?}, then {effect:?}");
            let approved = Record { state: State::Approved, maybe_done: true, ..left };
            assert_eq!(decided(&approved, effect, NOW), Decision::Unknown, "{begun_as:?}, then {effect:?}");
        }
    }

    #[test]
    fn an_expired_record_counts_for_nothing_whatever_it_says() {
        for state in State::ALL {
            let expired = Record { expires_at: NOW, ..record(state) };
            assert_eq!(decided(&expired, Effect::Once, NOW), Decision::Acquire);
        }
    }

    #[test]
    fn other_arguments_under_the_key_are_refused_in_every_state() {
        for state in State::ALL {
            assert_eq!(decide(&record(state), &claim(Effect::Once), "others", NOW), Decision::KeyReused);
        }
    }

    /// The call that has put it there has said that nothing was done, and to try again; nobody may know its arguments any more.
    #[test]
    fn a_record_that_only_keeps_a_commit_out_gives_way_to_other_arguments() {
        let effect = Some(Effect::Atomic);
        let left = Record { effect, lease_until: Timestamp::default(), ..record(State::Started) };
        for effect in [Effect::Keyed, Effect::Atomic, Effect::Once] {
            assert_eq!(decide(&left, &claim(effect), "others", NOW), Decision::TakeOver, "{effect:?}");
        }
        let decided = Some(Decided { by: String::from("ada"), at: NOW });
        for kept in [
            Record { lease_until: NOW, ..left.clone() },
            Record { maybe_done: true, ..left.clone() },
            Record { approved_until: Some(NOW), ..left.clone() },
            Record { decided, ..left.clone() },
            Record { effect: Some(Effect::Keyed), ..left.clone() },
            Record { effect: None, ..left.clone() },
            Record { state: State::AwaitingApproval, ..left },
        ] {
            assert_eq!(decide(&kept, &claim(Effect::Atomic), "others", NOW), Decision::KeyReused, "{kept:?}");
        }
    }

    #[test]
    fn our_own_put_whose_reply_was_lost_is_recognised() {
        let own = Record { owner: String::from("me"), ..record(State::Started) };
        assert_eq!(decided(&own, Effect::Once, NOW), Decision::Ours);
    }
}
