//! A person decides on what was shown: the very call, with those arguments and that doubt. And is told whether it counted.

use action_group::{
    idempotency::{ApprovalError, Pending, Store, Verdict},
    outcome::FailureKind,
};
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::json;

use super::{
    support::{Database, Fault, FaultyProxy, LOST, THROTTLED, WRONG},
    tool::{KEYED, ONCE},
    world::{World, asking, kind, paid},
};

/// A payment of 500 that waits, and how it is shown.
async fn waiting() -> (World, Pending) {
    let world = World::new(ONCE).await;
    world.call(json!({"amount": 500})).await;
    let shown = world.shown().await.remove(0);
    (world, shown)
}

/// Ada approves it.
async fn approve(store: &Store, id: &str) -> Result<Pending, ApprovalError> {
    store.decide_approval(id, "ada", Verdict::Approve).await
}

/// Another call waits under its key by now, or the same after an attempt that may have been done.
async fn becomes(world: &World, (name, value): (&str, AttributeValue)) {
    let pk = world.record().await["pk"].clone();
    let update = world.database.client().update_item().table_name(Database::RECORDS).key("pk", pk);
    let update = update.update_expression(format!("SET {name} = :value")).expression_attribute_values(":value", value);
    update.send().await.expect("an update");
}

fn others() -> [(&'static str, AttributeValue); 2] {
    [("args_hash", AttributeValue::S("0".repeat(64))), ("maybe_done", AttributeValue::Bool(true))]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_decides_on_the_arguments_that_were_shown() {
    let world = World::new(ONCE).await;
    world.call(json!({"amount": 500})).await;
    world.call(json!({"amount": 501})).await;
    assert_eq!(world.pending().await, [r#"{"amount":500}"#, r#"{"amount":501}"#]);
    let first = world.shown().await.remove(0);
    let decided = approve(&world.database.store(), &first.id).await.expect("decided");
    assert_eq!(decided, first);
    assert_eq!(world.call(json!({"amount": 500})).await, paid(500, false));
    assert_eq!(kind(&world.call(json!({"amount": 501})).await), FailureKind::ApprovalRequired);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_otherwise_than_it_was_shown_is_not_decided() {
    for other in others() {
        let (world, shown) = waiting().await;
        becomes(&world, other).await;
        let refused = approve(&world.database.store(), &shown.id).await.expect_err("it is another");
        assert!(matches!(refused, ApprovalError::Changed(_)), "{refused:?}");
        assert_eq!(world.state().await, "awaiting_approval");
        let now = world.shown().await.remove(0);
        assert_ne!(now.id, shown.id);
        approve(&world.database.store(), &now.id).await.expect("as it is shown now");
    }
}

/// The decision is on its way still when the record becomes another's.
#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_lands_late_is_none_on_what_waits_then() {
    for other in others() {
        let (world, shown) = waiting().await;
        let proxy = FaultyProxy::start(&world.database.endpoint()).await;
        proxy.misbehave("UpdateItem", [Fault::Lingers]);
        let unanswered = approve(&asking(&proxy, 1), &shown.id).await.expect_err("no answer");
        assert!(matches!(unanswered, ApprovalError::Unanswered(_)), "{unanswered:?}");
        becomes(&world, other).await;
        assert_eq!(proxy.deliver().await, 1);
        assert_eq!(world.state().await, "awaiting_approval");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_of_what_waits_no_more_decides_nothing() {
    let (world, shown) = waiting().await;
    let store = world.database.store();
    store.decide_approval(&shown.id, "bob", Verdict::Deny).await.expect("decided");
    for verdict in [Verdict::Approve, Verdict::Deny] {
        let refused = store.decide_approval(&shown.id, "ada", verdict).await.expect_err("Bob has decided");
        assert!(matches!(refused, ApprovalError::NotPending(_)), "{refused:?}");
    }
    assert_eq!(world.decision().await[0], Some(AttributeValue::S(String::from("bob"))));
    assert_eq!(kind(&world.call(json!({"amount": 500})).await), FailureKind::Denied);
    let other = shown.id.replace(&shown.key, &format!("pay#{}", "0".repeat(64)));
    let refused = approve(&store, &other).await.expect_err("no such record");
    assert!(matches!(refused, ApprovalError::NotPending(_)), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_whose_decision_was_not_answered_is_told_what_is_known_of_it() {
    const NOTHING: &str = "Nothing was decided";
    const OPEN: &str = "it is not known whether your decision was recorded";
    for (operation, faults, times, told, state) in [
        ("GetItem", &[THROTTLED][..], 1, NOTHING, "awaiting_approval"),
        ("GetItem", &[LOST], 1, NOTHING, "awaiting_approval"),
        ("UpdateItem", &[THROTTLED], 1, NOTHING, "awaiting_approval"),
        ("GetItem", &[WRONG], 1, NOTHING, "awaiting_approval"),
        ("UpdateItem", &[WRONG], 1, NOTHING, "awaiting_approval"),
        ("UpdateItem", &[LOST], 1, OPEN, "approved"),
        ("UpdateItem", &[LOST, THROTTLED], 2, OPEN, "approved"),
    ] {
        let (world, shown) = waiting().await;
        let proxy = FaultyProxy::start(&world.database.endpoint()).await;
        proxy.misbehave(operation, faults.iter().copied());
        let error = approve(&asking(&proxy, times), &shown.id).await.expect_err("no answer").to_string();
        assert!(error.contains(told), "{operation}, {faults:?}: {error}");
        assert_eq!(error.contains(NOTHING), told == NOTHING, "{error}");
        let is_for_good = matches!(faults, [Fault::Instead(_, body)] if body.contains("ValidationException"));
        assert_eq!(error.contains("refuses"), is_for_good, "{error}");
        assert_eq!(error.contains("So try again"), told == NOTHING && !is_for_good, "{error}");
        assert_eq!(world.state().await, state, "{operation}, {faults:?}");
    }
}

/// A scan would read every record, and find what waits by now.
#[tokio::test(flavor = "multi_thread")]
async fn a_decision_reads_the_one_record_and_writes_it() {
    let world = World::new(KEYED).await;
    world.call(json!({"amount": 500})).await;
    let shown = world.shown().await.remove(0);
    let proxy = FaultyProxy::start(&world.database.endpoint()).await;
    approve(&asking(&proxy, 1), &format!("  {}\n", shown.id)).await.expect("a copy with space around it");
    assert_eq!(["GetItem", "UpdateItem", "Scan", "Query"].map(|operation| proxy.count(operation)), [1, 1, 0, 0]);
}
