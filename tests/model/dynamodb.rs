//! Holds the table of the model against the real store on the embedded DynamoDB: the same requests, in any order, leave
//! the same record.

#[path = "../support/mod.rs"]
mod support;

use std::time::Duration;

use action_group::{
    clock::Timestamp,
    idempotency::{ApprovalId, Asking, Claim, Decided, Guard, Key, Record, State, Stored, Transaction, Verdict},
    tool::Effect,
};
use proptest::prelude::*;
use serde_json::json;
use support::Database;

use super::{
    caller::definition,
    table::{ARGUMENTS, Entry, Holder, PERSON, Write, apply, decide_approval},
};

const TIME: Duration = Duration::from_secs(10);
const START: Timestamp = Timestamp::from_secs(2_000_000);
const OWNERS: [&str; 2] = ["a", "b"];

/// One request, as numbers: which, whose, about which earlier record, and when in seconds.
type Choice = (u8, usize, usize, u64);

/// The request that the numbers stand for; `seen` are the records so far.
fn write((kind, owner, about, second): Choice, seen: &[Record]) -> Write {
    let now = START.plus(Duration::from_secs(second));
    let expires_at = now.plus(Duration::from_secs(20));
    let effect = Some(Effect::ALL[owner + 1]);
    let entry =
        Entry { owner: OWNERS[owner], effect, now, lease_until: now.plus(Duration::from_millis(1)), expires_at };
    let Some(old) = seen.get(about % seen.len().max(1)) else { return Write::Acquire(entry, State::Started) };
    let owner = OWNERS.into_iter().find(|owner| *owner == old.owner).expect("one of ours");
    let bars = old.attempt > 1 && old.bars();
    let holder = Holder { owner, attempt: old.attempt, approved_until: old.approved_until, bars };
    match kind {
        0 => Write::Acquire(entry, State::Started),
        1 => Write::Acquire(entry, State::AwaitingApproval),
        2 | 3 => Write::TakeOver(entry, old.clone()),
        4 => Write::SettleUnknown(old.clone()),
        5 => Write::Complete(holder, "1"),
        6 => Write::MarkUnknown(holder),
        7 => Write::Relinquish(holder),
        8 => Write::Release(holder),
        9 => Write::AwaitApproval(holder, second % 2 == 0),
        _ => Write::Commit(entry, "2", old.decided.clone()),
    }
}

/// Sends the request as the code does. What it hands back is not compared: the record is.
async fn send(database: &Database, key: &Key, write: &Write) {
    let claim = |entry: &Entry, awaiting: bool| Claim {
        owner: entry.owner.into(),
        effect: entry.effect.expect("ours say so"),
        lease_until: entry.lease_until,
        expires_at: entry.expires_at,
        for_approval: awaiting.then(Box::default),
    };
    let entry = Entry { owner: "", effect: Some(Effect::Keyed), now: START, lease_until: START, expires_at: START };
    let store = |now| database.store_at(now);
    let guard = |holder: &Holder| {
        let held = Record {
            state: State::Started,
            owner: holder.owner.into(),
            attempt: holder.attempt,
            args_hash: String::new(),
            effect: holder.bars.then_some(Effect::Atomic),
            result: None,
            lease_until: START,
            approved_until: holder.approved_until,
            decided: None,
            maybe_done: false,
            expires_at: START,
        };
        Guard::resume(&store(START), key, &claim(&Entry { owner: holder.owner, ..entry }, false), &held)
    };
    match write {
        Write::Acquire(entry, state) => {
            let claim = claim(entry, *state == State::AwaitingApproval);
            drop(store(entry.now).acquire(key, &claim, TIME).await.expect("an answer"));
        }
        Write::TakeOver(entry, old) => {
            let _ = store(entry.now).take_over(key, &claim(entry, false), old, TIME).await;
        }
        Write::SettleUnknown(old) => drop(store(START).settle_unknown(key, old, TIME).await),
        Write::Complete(holder, result) => {
            drop(guard(holder).complete(&Stored::Json((*result).into()), TIME).await);
        }
        Write::MarkUnknown(holder) => drop(guard(holder).mark_unknown(TIME).await),
        Write::Relinquish(holder) => drop(guard(holder).relinquish(TIME).await),
        Write::Release(holder) => drop(guard(holder).release(TIME).await),
        Write::AwaitApproval(holder, doubt) => {
            drop(guard(holder).await_approval(&Asking::default(), *doubt, TIME).await);
        }
        Write::Commit(entry, result, decided) => {
            let result = Stored::Json((*result).into());
            let attempt = rand::random(); // the token of another commit
            let transaction = Transaction { result: &result, decided: decided.as_ref(), writes: vec![] };
            drop(store(entry.now).commit(key, &claim(entry, false), attempt, transaction, TIME).await);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_table_of_the_model_is_dynamodb(
        choices in prop::collection::vec((0_u8..13, 0_usize..2, 0_usize..8, 0_u64..60), 1..16),
    ) {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let database = Database::start().await;
            let key = Key::new(&definition(Effect::Keyed), "", &json!(1), &json!({})).expect("a key");
            let (mut table, mut seen) = (None, Vec::new());
            for choice in choices {
                match choice {
                    (11.., _, about, second) => {
                        let now = START.plus(Duration::from_secs(second));
                        let waits = |record: &&mut Record| record.state == State::AwaitingApproval && record.expires_at > now;
                        if let Some(record) = table.as_mut().filter(waits) {
                            // The clock of a store goes on, and what it says is rounded up.
                            decide_approval(record, about > 0, now.plus(Duration::from_millis(1)));
                        }
                        let verdict = if about > 0 { Verdict::Approve } else { Verdict::Deny };
                        let in_doubt = table.as_ref().is_some_and(|record: &Record| record.maybe_done);
                        let id = ApprovalId::of(&key, in_doubt).to_string();
                        let _ = database.store_at(now).decide_approval(&id, PERSON, verdict).await;
                    }
                    choice => {
                        let write = write(choice, &seen);
                        let _ = apply(&mut table, &write, true);
                        send(&database, &key, &write).await;
                    }
                }
                let found = database.store().read(&key, TIME).await.expect("an answer");
                let found = found.map(|record| Record {
                    args_hash: ARGUMENTS.into(),
                    decided: record.decided.map(|Decided { by, at }| Decided { by, at: Timestamp::from_secs(at.as_secs()) }),
                    ..record
                });
                assert_eq!(found, table, "after {choice:?}");
                seen.extend(found);
            }
        });
    }
}
