//! The one item under the key. The conditions are those of the code, as predicates; `the_table_of_the_model_is_dynamodb`
//! holds conditions and updates against the real store.

use action_group::{
    clock::Timestamp,
    idempotency::{
        APPROVED_FOR, Decided, Record, State, Stored,
        conditions::{is_fenced_in, is_free, may_commit},
    },
    tool::Effect,
};

/// What an execution puts into a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    pub owner: &'static str,
    /// `None` in the variant whose records do not say.
    pub effect: Option<Effect>,
    pub now: Timestamp,
    pub lease_until: Timestamp,
    pub expires_at: Timestamp,
}

/// Who holds a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Holder {
    pub owner: &'static str,
    pub attempt: u32,
    pub approved_until: Option<Timestamp>,
    /// Whether it must leave a record, which keeps an earlier commit out.
    pub bars: bool,
}

/// A request that writes. It may land long after its sender is gone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Write {
    Acquire(Entry, State),
    TakeOver(Entry, Record),
    SettleUnknown(Record),
    Complete(Holder, &'static str),
    MarkUnknown(Holder),
    Relinquish(Holder),
    Release(Holder),
    AwaitApproval(Holder, bool),
    Commit(Entry, &'static str, Option<Decided>),
}

pub const ARGUMENTS: &str = "arguments";

/// Who decides.
pub const PERSON: &str = "ada";

/// What DynamoDB answers: done, or the record that made the condition fail.
pub type Reply = Result<(), Option<Record>>;

/// Applies a request. Without `fences` whoever writes later wins: the variant that must fail the check.
pub fn apply(table: &mut Option<Record>, write: &Write, fences: bool) -> Reply {
    if !holds(table.as_ref(), write, fences) {
        return Err(table.clone());
    }
    match write {
        Write::Acquire(entry, state) => *table = Some(first(entry, *state, None)),
        Write::Commit(entry, result, decided) => {
            let decided = decided.clone();
            *table = Some(Record { decided, ..first(entry, State::Completed, Some(result)) });
        }
        Write::Release(Holder { approved_until: None, bars: false, .. }) => *table = None,
        _ => update(table.as_mut().expect("the condition wants a record"), write),
    }
    Ok(())
}

fn holds(record: Option<&Record>, write: &Write, fences: bool) -> bool {
    let held_by = |of: &str, attempt: u32, states: &[State]| {
        if fences { is_fenced_in(record, of, attempt, states) } else { record.is_some() }
    };
    match write {
        Write::Acquire(entry, _) => is_free(record, entry.now),
        Write::Commit(entry, ..) => may_commit(record, entry.owner, entry.now),
        Write::TakeOver(_, old) => held_by(&old.owner, old.attempt, &[old.state]),
        Write::SettleUnknown(old) => held_by(&old.owner, old.attempt, &[State::Started]),
        Write::Complete(holder, _) => held_by(holder.owner, holder.attempt, &[State::Started, State::Unknown]),
        Write::MarkUnknown(holder)
        | Write::Relinquish(holder)
        | Write::Release(holder)
        | Write::AwaitApproval(holder, _) => held_by(holder.owner, holder.attempt, &[State::Started]),
    }
}

fn update(record: &mut Record, write: &Write) {
    match write {
        Write::TakeOver(entry, old) => {
            record.state = State::Started;
            record.owner = entry.owner.into();
            record.effect = entry.effect.map(|effect| old.taken_over_as(effect));
            record.attempt = old.attempt + 1;
            record.lease_until = entry.lease_until;
            record.expires_at = whole_seconds(entry.expires_at);
            record.approved_until = old.approval(entry.effect.unwrap_or(Effect::Once), entry.now);
        }
        Write::Complete(_, result) => {
            record.state = State::Completed;
            record.result = Some(Stored::Json((*result).into()));
        }
        Write::SettleUnknown(_) | Write::MarkUnknown(_) => record.state = State::Unknown,
        Write::AwaitApproval(_, maybe_done) => {
            record.state = State::AwaitingApproval;
            record.maybe_done = *maybe_done;
        }
        Write::Relinquish(_) => record.lease_until = Timestamp::default(),
        Write::Release(Holder { approved_until: Some(until), .. }) => {
            record.state = State::Approved;
            record.expires_at = *until;
            record.approved_until = None;
        }
        Write::Release(_) => {
            record.lease_until = Timestamp::default();
            record.effect = record.effect.map(|_| Effect::Atomic);
        }
        Write::Acquire(..) | Write::Commit(..) => unreachable!("it replaces the record"),
    }
}

/// A person's decision on a record that waits.
pub fn decide_approval(record: &mut Record, approve: bool, now: Timestamp) {
    record.decided = Some(Decided { by: String::from(PERSON), at: Timestamp::from_secs(now.as_secs()) });
    if approve {
        let soon = whole_seconds(now.plus(APPROVED_FOR));
        record.state = State::Approved;
        record.expires_at = if record.maybe_done { soon.max(record.expires_at) } else { soon };
    } else {
        record.state = State::Denied;
    }
}

fn first(entry: &Entry, state: State, result: Option<&str>) -> Record {
    Record {
        state,
        owner: entry.owner.into(),
        attempt: 1,
        args_hash: ARGUMENTS.into(),
        effect: entry.effect,
        result: result.map(|json| Stored::Json(json.into())),
        lease_until: entry.lease_until,
        approved_until: None,
        decided: None,
        maybe_done: false,
        expires_at: whole_seconds(entry.expires_at),
    }
}

fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_secs(time.as_secs_up())
}
