//! The commit of an atomic effect.

use action_group::{
    outcome::{Changed, FailureKind, Outcome},
    tool::Effect,
};

use crate::{
    support::{Fault, LOST, THROTTLED},
    world::{World, success, told},
};

const IN_PROGRESS: Fault = Fault::Instead(400, r#"{"__type":"com.amazonaws.dynamodb#TransactionInProgressException"}"#);

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_was_lost_is_never_called_undone_however_the_last_try_ended() {
    for last in [THROTTLED, IN_PROGRESS, Fault::Instead(503, "<html>"), Fault::Instead(500, r#"{"__type":"x#Odd"}"#)] {
        let world = World::of(Effect::Atomic).await;
        world.proxy.misbehave("TransactWriteItems", [LOST, last, last, last, last, last, last, last, last]);
        let outcome = world.call().await;
        assert_eq!(world.effects().await, 1);
        if outcome != success(false) {
            let (kind, changed, _) = told(&outcome);
            assert_eq!((kind, changed), (FailureKind::OutcomeUnknown, Changed::Unknown), "{last:?}");
        }
        world.proxy.misbehave("TransactWriteItems", []);
        assert_eq!(world.call().await, success(true), "{last:?}");
    }
}

/// Every fault of a commit, at its first try or at all of them, where it can be kept out afterwards and where it cannot:
/// whether an effect is possible after it. The answer is held against the table and against the next call.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_meets_any_fault_is_told_truly_and_the_next_call_ends_it() {
    let cells = [
        (THROTTLED, Changed::Nothing),
        (Fault::Instead(500, r#"{"__type":"com.amazonaws.dynamodb#InternalServerError"}"#), Changed::Unknown),
        (Fault::Instead(503, "<html>"), Changed::Unknown),
        (Fault::Reset, Changed::Unknown),
        (Fault::HalfBody, Changed::Unknown),
        (LOST, Changed::Unknown),
        (Fault::After(500, "{}"), Changed::Unknown),
        (Fault::Instead(200, "garbage"), Changed::Unknown),
        (Fault::Silence, Changed::Unknown),
        (Fault::SilenceAfter, Changed::Unknown),
    ];
    let ways = [(1, true), (3, true), (3, false)];
    let cells = cells.into_iter().flat_map(|(fault, worst)| ways.map(|way| (fault, worst, way)));
    futures_util::future::join_all(cells.map(|(fault, worst, (times, barred))| async move {
        let cell = format!("{fault:?}, {times} times, kept out: {barred}");
        let worst = if barred { Changed::Nothing } else { worst };
        let world = World::of(Effect::Atomic).await;
        world.proxy.misbehave("TransactWriteItems", vec![fault; times]);
        world.proxy.misbehave("PutItem", [Fault::Instead(503, "<html>"); 9].into_iter().filter(|_| !barred));
        let outcome = world.call().await;
        let effects = world.effects().await;
        match &outcome {
            Outcome::Success { replayed, .. } => assert_eq!((effects, *replayed), (1, false), "{cell}"),
            Outcome::Failure(failure) => {
                assert_eq!(failure.changed(), worst, "{cell}: {failure:?}");
                assert!(worst == Changed::Unknown || effects == 0, "{cell}");
                assert!(failure.retryable(), "{cell}: the next call may tell");
            }
        }
        world.proxy.misbehave("TransactWriteItems", []);
        world.proxy.misbehave("PutItem", []);
        assert_eq!(world.call().await, success(effects == 1), "{cell}");
        assert_eq!(world.effects().await, 1, "{cell}");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_call_sends_its_commit_three_times_at_most() {
    for fault in [Fault::Instead(500, "{}"), Fault::Instead(503, "<html>"), THROTTLED, Fault::Reset] {
        let world = World::of(Effect::Atomic).await;
        world.proxy.misbehave("TransactWriteItems", [fault; 12]);
        told(&world.call().await);
        assert_eq!(world.proxy.count("TransactWriteItems"), 3, "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_was_surely_refused_changed_nothing_and_leaves_the_key_free() {
    let world = World::of(Effect::Atomic).await;
    world.proxy.misbehave("TransactWriteItems", [THROTTLED; 3]);
    let (kind, changed, _) = told(&world.call().await);
    assert_eq!((kind, changed), (FailureKind::Transient, Changed::Nothing));
    assert_eq!(world.effects().await, 0);
    assert_eq!(world.call().await, success(false));
}

/// The write of an equal call is there, so that the tool's own condition fails, and its record is not yet.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_meets_an_equal_one_half_way_does_not_deny_what_that_one_does() {
    const HALF_WAY: Fault = Fault::Instead(
        400,
        r#"{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","Message":"Cancelled",
            "CancellationReasons":[{"Code":"TransactionConflict"},{"Code":"ConditionalCheckFailed"}]}"#,
    );
    for times in [1, 3] {
        let world = World::of(Effect::Atomic).await;
        assert_eq!(world.call().await, success(false));
        world.proxy.misbehave("TransactWriteItems", vec![HALF_WAY; times]);
        assert_eq!(world.call().await, success(true), "{times}");
    }
}
