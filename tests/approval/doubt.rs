//! A call waits for a person of which an attempt may have been done.

use std::time::Duration;

use action_group::{
    idempotency::{APPROVED_FOR, Verdict},
    outcome::{Changed, Failure, FailureKind},
};
use serde_json::json;

use super::{
    tool::{KEYED, Step},
    world::{World, kind, paid},
};

/// A keyed call of which an attempt may have been done when the tool asks for approval: in one call, or in the next.
pub async fn asked_in_doubt(in_one_call: bool) -> World {
    let world = World::new(KEYED).await;
    let steps = if in_one_call { &[Step::NoAnswer, Step::Ask][..] } else { &[Step::NoAnswer; 3] };
    steps.iter().rev().for_each(|step| world.next(*step));
    let first = world.call(json!({"amount": 7})).await;
    assert_eq!(kind(&first), FailureKind::OutcomeUnknown, "{first:?}");
    if !in_one_call {
        world.next(Step::Ask);
        world.call(json!({"amount": 7})).await;
    }
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_asks_for_approval_after_an_attempt_without_an_answer_is_not_said_to_have_changed_nothing() {
    for in_one_call in [true, false] {
        let world = asked_in_doubt(in_one_call).await;
        for step in [None, Some(Step::Ask)] {
            if let Some(step) = step {
                world.next(step); // nobody runs it before a person has decided
            }
            let waiting = world.call(json!({"amount": 7})).await;
            let failure = waiting.failure().expect("it waits");
            assert_eq!((failure.kind(), failure.changed()), (FailureKind::OutcomeUnknown, Changed::Unknown));
            assert!(!failure.retryable() && failure.message().contains("waits for approval"), "{failure:?}");
            assert!(failure.waits(), "to ask again is no further failure");
        }
        let pending = world.shown().await;
        assert_eq!(pending.len(), 1);
        assert!(pending[0].maybe_done, "the person learns of the doubt");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_in_doubt_can_be_approved_and_is_run_again_with_its_key() {
    for in_one_call in [true, false] {
        let world = asked_in_doubt(in_one_call).await;
        world.decide(Verdict::Approve).await;
        assert_eq!(world.call(json!({"amount": 7})).await, paid(7, false));
        assert_eq!(world.call(json!({"amount": 7})).await, paid(7, true));
        assert_eq!(world.done().last(), Some(&true));
    }
}

/// It would be a new action else, of which nothing is known to have been done.
#[tokio::test(flavor = "multi_thread")]
async fn the_doubt_outlives_the_hour_of_an_approval() {
    let world = asked_in_doubt(true).await;
    world.decide(Verdict::Approve).await;
    let later = world.database.store().now().plus(APPROVED_FOR + Duration::from_secs(2));
    world.next(Step::Reject);
    let failed = world.call_at(later, json!({"amount": 7})).await;
    assert_eq!(failed.failure().map(Failure::changed), Some(Changed::Unknown), "{failed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_does_not_unmake_what_may_have_been_done() {
    let world = asked_in_doubt(true).await;
    world.decide(Verdict::Deny).await;
    let refused = world.call(json!({"amount": 7})).await;
    let failure = refused.failure().expect("a refusal");
    assert_eq!((failure.kind(), failure.changed()), (FailureKind::OutcomeUnknown, Changed::Unknown));
    assert!(!failure.retryable() && failure.message().contains("has refused"), "{failure:?}");
    assert!(!failure.waits(), "it is over");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doubt_outlives_an_approved_attempt_that_fails() {
    let world = asked_in_doubt(true).await;
    world.decide(Verdict::Approve).await;
    world.next(Step::Reject);
    let failed = world.call(json!({"amount": 7})).await;
    assert_eq!(failed.failure().map(Failure::changed), Some(Changed::Unknown), "{failed:?}");
    assert_eq!(world.call(json!({"amount": 7})).await, paid(7, false), "its approval still counts");
}
