//! The list of what waits: all of that and nothing else, however much there is.

use std::{collections::BTreeSet, time::Duration};

use action_group::idempotency::{ListError, Verdict, WAITING};
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::json;

use super::{
    doubt::asked_in_doubt,
    support::{Database, FaultyProxy, THROTTLED, WRONG},
    tool::{ATOMIC, KEYED, ONCE},
    world::{World, asking},
};

/// How many records the index holds, whatever the list then leaves out.
async fn in_the_index(world: &World) -> usize {
    let query = world.database.client().query().table_name(Database::RECORDS).index_name(WAITING);
    let query = query.key_condition_expression("waits_for = :it");
    let query = query.expression_attribute_values(":it", AttributeValue::S(String::from("approval")));
    query.send().await.expect("an answer").items().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_reads_what_waits_and_no_other_record() {
    for effect in [ONCE, KEYED, ATOMIC] {
        let world = World::new(effect).await;
        world.call(json!({"amount": 10})).await; // needs nobody
        for (amount, verdict) in [(500, Verdict::Approve), (501, Verdict::Deny), (50, Verdict::Approve)] {
            world.call(json!({"amount": amount})).await;
            assert_eq!(in_the_index(&world).await, 1);
            world.decide(verdict).await;
            assert_eq!(in_the_index(&world).await, 0);
            world.call(json!({"amount": amount})).await;
            assert_eq!(in_the_index(&world).await, 0, "what has run or was refused waits no more");
        }
        world.call(json!({"amount": 502})).await;
        let proxy = FaultyProxy::start(&world.database.endpoint()).await;
        let waiting = asking(&proxy, 1).pending(None).await.expect("a list");
        assert_eq!((waiting.calls.len(), waiting.next), (1, None));
        assert_eq!(["Query", "Scan", "GetItem"].map(|operation| proxy.count(operation)), [1, 0, 0]);
    }
    assert_eq!(in_the_index(&asked_in_doubt(true).await).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_waited_too_long_is_not_listed() {
    let world = World::new(ONCE).await;
    world.call(json!({"amount": 500})).await;
    let later = world.database.store().now().plus(Duration::from_hours(25));
    assert!(world.database.store_at(later).pending(None).await.expect("a list").calls.is_empty());
    assert_eq!(in_the_index(&world).await, 1, "DynamoDB deletes it some time");
}

/// An answer of Lambda holds six megabytes.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_would_not_fit_an_answer_is_cut_and_goes_on_from_there() {
    const CALLS: u32 = 20;
    let world = World::new(ONCE).await;
    let note = "x".repeat(300_000);
    for amount in 501..=500 + CALLS {
        world.call(json!({"amount": amount, "note": note})).await;
    }
    let (mut next, mut ids, mut last) = (None, BTreeSet::new(), None);
    for answer in 1.. {
        let waiting = world.database.store().pending(next.as_deref()).await.expect("a list");
        let size = serde_json::to_vec(&waiting.calls).expect("JSON").len();
        assert!(size < 5_000_000, "{size} bytes");
        for call in waiting.calls {
            assert!(last <= Some(call.asked_at), "the oldest first");
            last = Some(call.asked_at);
            assert!(ids.insert(call.id), "each once");
        }
        next = waiting.next;
        if next.is_none() {
            assert!((2..=4).contains(&answer), "neither all at once nor in crumbs: {answer}");
            break;
        }
    }
    assert_eq!(ids.len(), CALLS as usize);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_for_no_list_is_told_why_there_is_none() {
    let world = World::new(ONCE).await;
    let store = world.database.store();
    let error = store.pending(Some("refund_order#1")).await.expect_err("no place");
    assert!(matches!(&error, ListError::NoPlace(_)) && error.to_string().contains("`next`"), "{error}");
    let proxy = FaultyProxy::start(&world.database.endpoint()).await;
    for (fault, told, not) in [(THROTTLED, "Try again later", "refuses"), (WRONG, "ValidationException", "again later")]
    {
        proxy.misbehave("Query", [fault]);
        let error = asking(&proxy, 1).pending(None).await.expect_err("no list").to_string();
        assert!(error.contains(told) && !error.contains(not), "{error}");
    }
}
