//! The requests around an effect: taking the record, writing down the outcome, reading it.

use std::time::Duration;

use action_group::{
    outcome::{Changed, Failure, FailureKind},
    tool::Effect,
};

use crate::{
    support::{Fault, LOST, THROTTLED},
    world::{Way, World, success, told},
};

/// Adaptive mode can wait for tens of seconds.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_waits_until_the_time_is_up_has_written_nothing() {
    for (effect, operation) in
        [(Effect::Atomic, "TransactWriteItems"), (Effect::Keyed, "PutItem"), (Effect::Once, "PutItem")]
    {
        let world = World::of(effect).await;
        world.proxy.misbehave(operation, [THROTTLED]);
        let (kind, changed, _) = told(&world.attempt_with(Way::Done, Duration::ZERO, Duration::from_hours(1)).await);
        assert_eq!((kind, changed), (FailureKind::Transient, Changed::Nothing), "{effect:?}");
        assert_eq!(world.effects().await, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_of_the_deployment_is_internal_and_nothing_that_waiting_helps() {
    const DENIED: Fault = Fault::Instead(400, r#"{"__type":"com.amazon.coral.service#AccessDeniedException"}"#);
    for (effect, operation) in [(Effect::Atomic, "TransactWriteItems"), (Effect::Keyed, "PutItem")] {
        let world = World::of(effect).await;
        world.proxy.misbehave(operation, [DENIED]);
        let (kind, changed, _) = told(&world.call().await);
        assert_eq!((kind, changed), (FailureKind::Internal, Changed::Nothing), "{operation}");
        assert_eq!(world.effects().await, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acquisition_whose_answer_was_lost_leaves_no_record_in_the_way() {
    for effect in [Effect::Keyed, Effect::Once] {
        let world = World::of(effect).await;
        world.proxy.misbehave("PutItem", [LOST, THROTTLED, THROTTLED]);
        let (kind, changed, _) = told(&world.call().await);
        assert_eq!((kind, changed), (FailureKind::Transient, Changed::Nothing), "{effect:?}");
        assert_eq!(world.effects().await, 0);
        assert_eq!(world.call().await, success(false), "{effect:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_completion_that_cannot_be_written_does_not_unmake_the_effect() {
    for fault in [THROTTLED, LOST, Fault::Silence, Fault::SilenceAfter, Fault::Instead(200, "garbage")] {
        for effect in [Effect::Keyed, Effect::Once] {
            let world = World::of(effect).await;
            world.proxy.misbehave("UpdateItem", [fault; 3]);
            assert_eq!(world.call().await, success(false), "{effect:?}, {fault:?}");
            assert_eq!(world.effects().await, 1, "{effect:?}, {fault:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_fails_early_never_denies_what_an_earlier_call_has_done() {
    for effect in [Effect::Atomic, Effect::Keyed, Effect::Once] {
        let world = World::of(effect).await;
        assert_eq!(world.call().await, success(false));
        assert_eq!(world.call_in_vain().await, success(true), "{effect:?}: the backend is not needed for a replay");
        for operation in ["TransactWriteItems", "PutItem", "GetItem"] {
            world.proxy.misbehave(operation, [THROTTLED; 9]);
        }
        for outcome in [world.call().await, world.call_in_vain().await] {
            let (_, changed, message) = told(&outcome);
            assert_eq!(changed, Changed::Nothing);
            assert!(message.ends_with("This call changed nothing."), "{effect:?}: {message}");
            for operation in ["TransactWriteItems", "PutItem", "GetItem"] {
                world.proxy.misbehave(operation, [THROTTLED; 9]);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_dynamodb_silent_or_babbling_a_call_is_answered_in_time_and_nothing_is_guessed() {
    let babble = Fault::Instead(200, "garbage");
    for (effect, operation) in
        [(Effect::Atomic, "TransactWriteItems"), (Effect::Keyed, "PutItem"), (Effect::Once, "PutItem")]
    {
        for fault in [Fault::Silence, Fault::SilenceAfter, babble, LOST] {
            let world = World::of(effect).await;
            world.proxy.misbehave(operation, [fault; 9]);
            let outcome = world.call().await;
            let effects = world.effects().await;
            match outcome.failure().map(Failure::changed) {
                None => assert_eq!(effects, 1, "{effect:?}, {fault:?}"),
                Some(Changed::Nothing) => assert_eq!(effects, 0, "{effect:?}, {fault:?}"),
                Some(changed) => assert_eq!(changed, Changed::Unknown, "{effect:?}, {fault:?}"),
            }
        }
    }
}
