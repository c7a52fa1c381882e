//! A commit without an answer, which may land late, and the calls that ask for a person meanwhile.

use std::time::Duration;

use action_group::{
    idempotency::Verdict,
    outcome::{Changed, FailureKind},
};
use serde_json::json;

use super::{
    support::{Fault, FaultyProxy, LOST, Lines, THROTTLED},
    tool::{ATOMIC, Step},
    world::{World, asking, kind, paid},
};

/// No answer to the commit comes; the record has it all the same.
#[tokio::test(flavor = "multi_thread")]
async fn an_approved_commit_whose_answer_was_lost_is_told_as_the_calls_own() {
    let world = World::new(ATOMIC).await;
    world.call(json!({"amount": 500})).await;
    world.decide(Verdict::Approve).await;
    let (proxy, metrics) = (FaultyProxy::start(&world.database.endpoint()).await, Lines::default());
    proxy.misbehave("TransactWriteItems", [LOST; 9]);
    let store = asking(&proxy, 1);
    assert_eq!(world.call_noted(store, metrics.clone(), json!({"amount": 500})).await, paid(500, false));
    assert!(!metrics.text().contains("Superseded"), "{}", metrics.text());
    assert_eq!(world.call(json!({"amount": 500})).await, paid(500, true));
}

/// Its approval was used, and its commit is on its way still.
#[tokio::test(flavor = "multi_thread")]
async fn an_approved_commit_without_an_answer_is_not_made_after_an_equal_call_has_denied_it() {
    for (fault, told) in [
        (None, (FailureKind::Rejected, Changed::Nothing)),
        (Some(THROTTLED), (FailureKind::OutcomeUnknown, Changed::Unknown)),
    ] {
        let world = World::new(ATOMIC).await;
        world.next(Step::Ask);
        world.call(json!({"amount": 7})).await;
        world.decide(Verdict::Approve).await;
        let proxy = FaultyProxy::start(&world.database.endpoint()).await;
        let store = || asking(&proxy, 1);
        proxy.misbehave("TransactWriteItems", [Fault::Slow(Duration::ZERO), Fault::Lingers]);
        assert_eq!(kind(&world.call_on(store(), json!({"amount": 7})).await), FailureKind::OutcomeUnknown);
        world.next(Step::Reject);
        proxy.misbehave("UpdateItem", fault);
        let denied = world.call_on(store(), json!({"amount": 7})).await;
        let failure = denied.failure().expect("a failure");
        assert_eq!((failure.kind(), failure.changed()), told);
        assert!(failure.message().starts_with("Not on a Sunday."), "{failure:?}");
        assert_eq!(proxy.deliver().await, 1);
        assert_eq!(world.payments().await, usize::from(fault.is_some()));
        assert_eq!(world.call(json!({"amount": 7})).await, paid(7, fault.is_some()));
        assert_eq!(world.payments().await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_without_an_answer_is_not_made_while_an_equal_call_waits_for_a_person() {
    let mut world = World::new(ATOMIC).await;
    let proxy = FaultyProxy::start(&world.database.endpoint()).await;
    proxy.misbehave("TransactWriteItems", [Fault::Lingers]);
    let store = asking(&proxy, 1);
    assert_eq!(kind(&world.call_on(store, json!({"amount": 7})).await), FailureKind::Transient);
    world.lower_the_limit(ATOMIC);
    for _ in 0..2 {
        let waiting = world.call(json!({"amount": 7})).await;
        let failure = waiting.failure().expect("it waits");
        assert_eq!((failure.kind(), failure.changed()), (FailureKind::ApprovalRequired, Changed::Nothing));
        assert!(failure.awaits().is_some(), "a person can decide on it");
    }
    assert_eq!(proxy.deliver().await, 1);
    assert_eq!(world.payments().await, 0);
    let pending = world.shown().await;
    assert_eq!(pending.iter().map(|call| call.maybe_done).collect::<Vec<_>>(), [false]);
    world.decide(Verdict::Approve).await;
    assert_eq!(world.call(json!({"amount": 7})).await, paid(7, false));
}

/// A person could not be asked, and the record stays with whoever wanted to.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_was_kept_out_stays_out_where_nobody_could_be_asked() {
    const PASS: Fault = Fault::Slow(Duration::ZERO);
    let world = World::new(ATOMIC).await;
    let proxy = FaultyProxy::start(&world.database.endpoint()).await;
    proxy.misbehave("TransactWriteItems", [Fault::Lingers]);
    proxy.misbehave("UpdateItem", [PASS, THROTTLED, THROTTLED]);
    world.next(Step::AskInTheCommit);
    let outcome = world.call_on(asking(&proxy, 2), json!({"amount": 7})).await;
    assert_eq!((kind(&outcome), world.state().await.as_str()), (FailureKind::Transient, "started"), "{outcome:?}");
    world.open_the_way().await;
    assert_eq!(proxy.deliver().await, 1);
    assert_eq!(world.payments().await, 0);
}

/// The client sends it twice: no answer comes to the first, and at the second the tool's condition wants a person.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_wants_approval_after_a_lost_answer_is_kept_out_before_anybody_is_asked() {
    for (fault, told) in [(None, FailureKind::ApprovalRequired), (Some(THROTTLED), FailureKind::OutcomeUnknown)] {
        let world = World::new(ATOMIC).await;
        let proxy = FaultyProxy::start(&world.database.endpoint()).await;
        let store = asking(&proxy, 2);
        proxy.misbehave("TransactWriteItems", [Fault::Lingers]);
        proxy.misbehave("PutItem", [fault, fault].into_iter().flatten());
        world.next(Step::AskInTheCommit);
        let outcome = world.call_on(store, json!({"amount": 7})).await;
        assert_eq!(kind(&outcome), told, "{outcome:?}");
        assert_eq!(world.pending().await.len(), usize::from(fault.is_none()));
        world.decide(Verdict::Approve).await;
        assert_eq!(world.call(json!({"amount": 7})).await, paid(7, false));
    }
}
