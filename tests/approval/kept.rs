//! What becomes of an approval on the way of its call, and of the name of the person who gave it.

use std::time::Duration;

use action_group::{
    idempotency::{APPROVED_FOR, Verdict},
    outcome::{Changed, Failure, FailureKind},
    tool::Reconciled,
};
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::json;

use super::{
    support::{Fault, FaultyProxy, LOST, THROTTLED},
    tool::{ATOMIC, EFFECTS, KEYED, ONCE, Step},
    world::{World, asking, kind, paid},
};

#[tokio::test(flavor = "multi_thread")]
async fn the_record_of_a_done_call_says_who_approved_it_and_when() {
    for effect in [ONCE, KEYED, ATOMIC] {
        let world = World::new(effect).await;
        world.call(json!({"amount": 500})).await;
        world.decide(Verdict::Approve).await;
        let decision = world.decision().await;
        assert_eq!(decision[0], Some(AttributeValue::S(String::from("ada"))));
        assert!(matches!(decision[1], Some(AttributeValue::N(_))), "{decision:?}");
        world.next(Step::Reject);
        assert_eq!(kind(&world.call(json!({"amount": 500})).await), FailureKind::Rejected);
        assert_eq!(world.call(json!({"amount": 500})).await, paid(500, false));
        assert_eq!(world.decision().await, decision, "{:?}", EFFECTS[usize::from(effect)]);
    }
}

/// The first call with the approval has died on its way, or cannot say how it ended.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_takes_an_approved_call_over_keeps_who_approved_it() {
    for effect in [ONCE, KEYED, ATOMIC] {
        let world = World::new(effect).await;
        world.call(json!({"amount": 500})).await;
        world.decide(Verdict::Approve).await;
        let decision = world.decision().await;
        let attempts = if effect == ATOMIC { 0 } else { 3 };
        (0..attempts).for_each(|_| world.next(Step::NoAnswer));
        let proxy = FaultyProxy::start(&world.database.endpoint()).await;
        proxy.misbehave("TransactWriteItems", [Fault::Reset; 9]);
        let store = asking(&proxy, 1);
        assert_eq!(kind(&world.call_on(store, json!({"amount": 500})).await), FailureKind::OutcomeUnknown);
        world.script.lock().expect("a script").steps.clear();
        // That hour is over when it is found out.
        world.finds(Reconciled::Done(json!({"paid": 500})));
        let late = if effect == ONCE { APPROVED_FOR * 2 } else { Duration::ZERO };
        let later = world.database.store().now().plus(late);
        assert_eq!(world.call_at(later, json!({"amount": 500})).await, paid(500, effect == ONCE));
        assert_eq!(world.decision().await, decision, "{:?}", EFFECTS[usize::from(effect)]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_that_is_not_used_within_the_hour_is_none() {
    for effect in [ONCE, KEYED, ATOMIC] {
        let world = World::new(effect).await;
        world.call(json!({"amount": 500})).await;
        world.decide(Verdict::Approve).await;
        let later = world.database.store().now().plus(APPROVED_FOR + Duration::from_secs(2));
        assert_eq!(kind(&world.call_at(later, json!({"amount": 500})).await), FailureKind::ApprovalRequired);
        assert!(world.done().is_empty());
    }
}

/// The person approved it for an hour. That its first attempt died, and did nothing, makes that no longer.
#[tokio::test(flavor = "multi_thread")]
async fn an_approval_does_not_outlive_its_hour_in_a_record_that_was_left_behind() {
    for effect in [ONCE, ATOMIC] {
        let world = World::new(effect).await;
        world.call(json!({"amount": 500})).await;
        world.decide(Verdict::Approve).await;
        if effect == ONCE {
            world.next(Step::NoAnswer);
        }
        let proxy = FaultyProxy::start(&world.database.endpoint()).await;
        proxy.misbehave("TransactWriteItems", [Fault::Reset; 9]);
        let store = asking(&proxy, 1);
        assert_eq!(kind(&world.call_on(store, json!({"amount": 500})).await), FailureKind::OutcomeUnknown);
        world.finds(Reconciled::NotDone);
        let done = world.done().len();
        let later = world.database.store().now().plus(APPROVED_FOR + Duration::from_secs(2));
        for _ in 0..2 {
            assert_eq!(kind(&world.call_at(later, json!({"amount": 500})).await), FailureKind::ApprovalRequired);
        }
        assert_eq!(world.done().len(), done);
    }
}

/// The call that has taken the record over since needs nobody, and may have done it. Should the limit be lowered again, a person
/// decides on that, and not an approval of long ago.
#[tokio::test(flavor = "multi_thread")]
async fn an_approval_whose_hour_is_over_is_forgotten_by_whoever_takes_its_record_over() {
    let mut world = World::new(ATOMIC).await;
    world.lower_the_limit(ATOMIC);
    world.call(json!({"amount": 7})).await;
    world.decide(Verdict::Approve).await;
    let proxy = FaultyProxy::start(&world.database.endpoint()).await;
    proxy.misbehave("TransactWriteItems", [Fault::Reset]);
    let store = asking(&proxy, 1);
    assert_eq!(kind(&world.call_on(store, json!({"amount": 7})).await), FailureKind::OutcomeUnknown);

    let later = world.database.store().now().plus(APPROVED_FOR + Duration::from_secs(2));
    world.lower_the_limit(KEYED);
    world.script.lock().expect("a script").limit_is_lowered = false;
    [Step::NoAnswer; 3].into_iter().for_each(|step| world.next(step));
    assert_eq!(kind(&world.call_at(later, json!({"amount": 7})).await), FailureKind::OutcomeUnknown);

    world.lower_the_limit(KEYED);
    let waiting = world.call_at(later, json!({"amount": 7})).await;
    assert!(waiting.failure().is_some_and(Failure::waits), "{waiting:?}");
    assert_eq!(world.done(), [true, false, false, false]);
}

/// The take-over by which an approval is used is applied, and no answer comes: at once, or to the client's first try.
#[tokio::test(flavor = "multi_thread")]
async fn a_take_over_without_an_answer_gives_the_approval_back() {
    for faults in [&[LOST][..], &[LOST, THROTTLED]] {
        let world = World::new(ONCE).await;
        world.call(json!({"amount": 500})).await;
        world.decide(Verdict::Approve).await;
        let proxy = FaultyProxy::start(&world.database.endpoint()).await;
        proxy.misbehave("UpdateItem", faults.iter().copied());
        let store = asking(&proxy, faults.len());
        let outcome = world.call_on(store, json!({"amount": 500})).await;
        let failure = outcome.failure().expect("a failure");
        assert_eq!((failure.kind(), failure.changed()), (FailureKind::Transient, Changed::Nothing));
        assert!(world.done().is_empty());
        assert_eq!(world.state().await, "approved", "{faults:?}");
        let later = world.database.store().now().plus(APPROVED_FOR + Duration::from_secs(2));
        assert_eq!(kind(&world.call_at(later, json!({"amount": 500})).await), FailureKind::ApprovalRequired);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_that_changed_nothing_gives_the_approval_back() {
    for effect in [ONCE, KEYED, ATOMIC] {
        let world = World::new(effect).await;
        world.call(json!({"amount": 500})).await;
        world.decide(Verdict::Approve).await;
        let approved = world.left_to_others().await;
        world.next(Step::Reject);
        assert_eq!(kind(&world.call(json!({"amount": 500})).await), FailureKind::Rejected);
        assert_eq!(world.left_to_others().await, approved, "as the person has left it");
        assert_eq!(world.call(json!({"amount": 500})).await, paid(500, false));
        assert_eq!(world.done(), vec![true]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_effect_whose_end_is_not_known_is_not_run_again() {
    let world = World::new(ONCE).await;
    world.call(json!({"amount": 500})).await;
    world.decide(Verdict::Approve).await;
    world.next(Step::NoAnswer);
    for _ in 0..2 {
        assert_eq!(kind(&world.call(json!({"amount": 500})).await), FailureKind::OutcomeUnknown);
    }
    assert_eq!(world.done(), vec![true]);
}
