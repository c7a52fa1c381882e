//! Two executions under one record: one that was late or has died, and one that waits for it or takes over.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use action_group::{
    idempotency::TAKE_OVER_MARGIN,
    outcome::{Changed, FailureKind},
    tool::Effect,
};
use tokio::sync::Notify;

use crate::{
    support::{Fault, THROTTLED},
    world::{Way, World, success, told},
};

/// Longer than a call and the margin for its end.
const PAST_THE_LEASE: Duration = Duration::from_secs(TAKE_OVER_MARGIN.as_secs() + 2);

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_execution_may_have_done_is_not_denied_by_the_one_that_takes_over() {
    let world = World::of(Effect::Keyed).await;
    world.proxy.misbehave("UpdateItem", [Fault::Silence]); // the completion is lost, and the record stays as it was
    assert_eq!(world.call().await, success(false));
    let (kind, changed, _) = told(&world.attempt(Way::Busy, PAST_THE_LEASE).await);
    assert_eq!((kind, changed), (FailureKind::OutcomeUnknown, Changed::Unknown));
    assert_eq!(world.call().await, success(false));
}

/// A deployment changes what the tool promises: what was begun under the promise before is not run by the new way.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_begun_before_the_effect_was_changed_is_not_done_again_by_another_way() {
    use Effect::{Atomic, Keyed, Once};
    for (before, after) in [(Once, Keyed), (Once, Atomic), (Keyed, Once), (Keyed, Atomic)] {
        let mut world = World::of(before).await;
        world.proxy.misbehave("UpdateItem", [Fault::Silence]); // the completion is lost, and the record stays as it was
        assert_eq!(world.call().await, success(false));
        world.effect = after;
        let outcome = world.attempt(Way::Done, PAST_THE_LEASE).await;
        let (kind, changed, message) = told(&outcome);
        assert_eq!((kind, changed), (FailureKind::OutcomeUnknown, Changed::Unknown), "{before:?}, then {after:?}");
        assert!(message.contains("Do not call it again"), "{before:?}, then {after:?}: {message}");
        assert_eq!((world.effects().await, world.asked.load(Ordering::SeqCst)), (1, 1), "{before:?}, then {after:?}");
    }
}

/// The call's own commit is on its way still when it takes over what the version before has begun, and done. Its first
/// request must not find a record that seems to be its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_lands_late_does_not_find_the_record_that_its_call_has_taken_over() {
    const PASS: Fault = Fault::Slow(Duration::ZERO);
    let mut world = World::of(Effect::Once).await;
    world.proxy.misbehave("UpdateItem", [Fault::Silence]); // the completion is lost, and the record stays as it was
    assert_eq!(world.call().await, success(false));
    world.effect = Effect::Atomic;
    world.proxy.misbehave("TransactWriteItems", [Fault::Lingers]);
    world.proxy.misbehave("UpdateItem", [PASS, PASS, Fault::Silence]); // marked, taken over, and its completion lost
    assert_eq!(world.attempt(Way::Found, PAST_THE_LEASE).await, success(true));
    assert_eq!(world.proxy.deliver().await, 1);
    assert_eq!(world.effects().await, 1);
}

/// The table has taken all the time that there was for marking the record.
#[tokio::test(flavor = "multi_thread")]
async fn when_the_time_is_up_nobody_is_asked_what_became_of_an_effect() {
    let world = World::of(Effect::Once).await;
    for asked in [0, 1] {
        world.proxy.misbehave("UpdateItem", [Fault::Silence; 9]);
        if asked == 0 {
            assert_eq!(world.call().await, success(false), "its completion is lost");
        } else {
            world.proxy.misbehave("UpdateItem", []);
        }
        let (kind, ..) = told(&world.attempt(Way::Done, PAST_THE_LEASE).await);
        assert_eq!(kind, FailureKind::OutcomeUnknown);
        assert_eq!(world.asked.load(Ordering::SeqCst), asked);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_owner_that_fails_answers_with_what_its_heir_has_done() {
    let world = World::of(Effect::Keyed).await;
    let moments = Arc::new([Notify::new(), Notify::new()]);
    let heir = async {
        moments[0].notified().await;
        assert_eq!(world.attempt(Way::Done, PAST_THE_LEASE).await, success(false));
        moments[1].notify_one();
    };
    let (late, ()) = tokio::join!(world.attempt(Way::Refused(Arc::clone(&moments)), Duration::ZERO), heir);
    assert_eq!(late, success(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_for_another_call_and_cannot_look_any_more_does_not_deny_what_that_one_has_begun() {
    let world = World::of(Effect::Keyed).await;
    let moments = Arc::new([Notify::new(), Notify::new()]);
    let waiting = async {
        moments[0].notified().await;
        world.proxy.misbehave("GetItem", [THROTTLED; 9]);
        let told = told(&world.call().await);
        moments[1].notify_one();
        told
    };
    let (_, (kind, changed, message)) =
        tokio::join!(world.attempt(Way::Refused(Arc::clone(&moments)), Duration::ZERO), waiting);
    assert_eq!((kind, changed), (FailureKind::Transient, Changed::Nothing));
    assert!(!message.contains("not begun") && message.contains("Another call"), "{message}");
    assert!(message.ends_with("This call changed nothing."), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_cannot_take_a_record_over_says_of_its_own_call_only_that_it_was_not_begun() {
    let world = World::of(Effect::Keyed).await;
    world.proxy.misbehave("UpdateItem", [Fault::Silence]); // the completion is lost, and the record stays as it was
    assert_eq!(world.call().await, success(false));
    world.proxy.misbehave("UpdateItem", [THROTTLED; 9]);
    let (kind, changed, message) = told(&world.attempt(Way::Done, PAST_THE_LEASE).await);
    assert_eq!((kind, changed), (FailureKind::Transient, Changed::Nothing));
    assert!(message.contains("this call did not begin it"), "{message}");
}
