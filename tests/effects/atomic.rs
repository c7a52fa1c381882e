//! An effect that is committed with its record: with it once, or not at all.

use action_group::{
    call::Standing,
    outcome::{Changed, FailureKind, Outcome},
};
use serde_json::json;

use super::{
    support::{Break, Fault, FaultyProxy, LOST, Network, THROTTLED},
    world::{World, call, failed, recorded, success},
};

#[tokio::test(flavor = "multi_thread")]
async fn an_atomic_effect_commits_once_however_often_it_is_asked_for() {
    let world = World::account(100).await;
    let calls = (0..8).map(|_| world.call(json!({"amount": 30})));
    for outcome in futures_util::future::join_all(calls).await {
        assert!(matches!(&outcome, Outcome::Success { result, .. } if result["withdrawn"] == 30), "{outcome:?}");
    }
    assert_eq!(world.call(json!({"amount": 30})).await, success(json!({"withdrawn": 30}), true));
    assert_eq!(world.balance().await, "70");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_business_condition_that_fails_is_told_with_its_facts_and_leaves_nothing_behind() {
    let world = World::account(100).await;
    let outcome = world.call(json!({"amount": 101})).await;
    assert_eq!(failed(&outcome), (FailureKind::Rejected, Changed::Nothing, false));
    assert_eq!(outcome.failure().expect("a failure").message(), "Only 100 is left. Nothing was changed.");
    assert_eq!(world.call(json!({"amount": 100})).await, success(json!({"withdrawn": 100}), false));
    assert_eq!(world.balance().await, "0");
}

/// A tool that looks before it writes, as many do: the second call finds nothing left.
#[tokio::test(flavor = "multi_thread")]
async fn an_atomic_tool_that_fails_because_it_was_done_is_answered_with_what_was_done() {
    let world = World::account(100).await;
    assert_eq!(world.call(json!({"amount": 60, "look": true})).await, success(json!({"withdrawn": 60}), false));
    assert_eq!(world.call(json!({"amount": 60, "look": true})).await, success(json!({"withdrawn": 60}), true));
    let other = world.call(json!({"amount": 61, "look": true})).await;
    assert_eq!(failed(&other), (FailureKind::Rejected, Changed::Nothing, false));
    assert_eq!(world.balance().await, "40");
}

/// The client's first try is applied and its answer lost; all that follow are refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_is_refused_after_a_lost_answer_is_not_said_to_be_nothing() {
    let world = World::account(100).await;
    let network = Network::new();
    let pipeline = world.over(&network).await;
    network.break_at([(0, Break::CutReply)].into_iter().chain((1..100).map(|at| (at, Break::Throttle))));
    let outcome = call(&pipeline, json!({"amount": 30})).await;
    assert_eq!(failed(&outcome), (FailureKind::OutcomeUnknown, Changed::Unknown, true));
    assert_eq!(world.balance().await, "70");
    assert_eq!(world.call(json!({"amount": 30})).await, success(json!({"withdrawn": 30}), true));
}

/// The client's first try is not answered, and the second meets a condition that does not hold. Should it come to hold, the
/// first may still be applied.
#[tokio::test(flavor = "multi_thread")]
async fn a_condition_that_fails_after_a_lost_answer_is_not_said_to_be_nothing_as_long_as_that_is_open() {
    let world = World::account(100).await;
    let network = Network::new();
    let pipeline = world.over(&network).await;
    network.break_at([(0, Break::CutReply), (2, Break::Throttle), (3, Break::Throttle)]); // nor can it be kept out
    let outcome = call(&pipeline, json!({"amount": 130})).await;
    assert_eq!(failed(&outcome), (FailureKind::OutcomeUnknown, Changed::Unknown, true));
    assert!(
        outcome.failure().is_some_and(|failure| failure.message().contains("100")),
        "the reason is told: {outcome:?}"
    );
    network.break_at([(0, Break::CutReply)]);
    for _ in 0..2 {
        let outcome = call(&pipeline, json!({"amount": 130})).await;
        assert_eq!(failed(&outcome), (FailureKind::Rejected, Changed::Nothing, false));
    }
    assert_eq!(world.balance().await, "100");
}

/// The record is put in the way of the commit, the answer is lost, and the client puts it there again.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_in_the_way_of_a_commit_is_known_as_ones_own() {
    let world = World::account(100).await;
    let network = Network::new();
    let pipeline = world.over(&network).await;
    network.break_at([(0, Break::CutReply), (2, Break::CutReply)]);
    let outcome = call(&pipeline, json!({"amount": 130})).await;
    assert_eq!(failed(&outcome), (FailureKind::Rejected, Changed::Nothing, false));
}

/// The commit is on its way for long. Meanwhile the tool's own rule forbids it, and when it arrives that would allow it again.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_answered_is_not_done_after_all_when_an_equal_call_has_denied_it() {
    for look in [false, true] {
        let world = World::account(100).await;
        let proxy = FaultyProxy::start(&world.database.endpoint()).await;
        proxy.misbehave("TransactWriteItems", [Fault::Lingers]);
        let first = call(&world.through(&proxy), json!({"amount": 30, "look": look})).await;
        assert_eq!(failed(&first), (FailureKind::Transient, Changed::Nothing, true), "it cannot be applied any more");
        assert_eq!(world.call(json!({"amount": 80})).await, success(json!({"withdrawn": 80}), false));
        for _ in 0..2 {
            let equal = world.call(json!({"amount": 30, "look": look})).await;
            assert_eq!(failed(&equal), (FailureKind::Rejected, Changed::Nothing, false));
            assert!(equal.failure().expect("a failure").message().ends_with("Nothing was changed."), "{equal:?}");
        }
        world.deposit(80).await;
        assert_eq!(proxy.deliver().await, 1);
        assert_eq!(world.balance().await, "100");
        assert_eq!(world.call(json!({"amount": 30, "look": look})).await, success(json!({"withdrawn": 30}), false));
    }
}

/// A record is put in the way of the commit, and the answer to that is lost as well.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_may_still_be_applied_is_told_as_unknown() {
    for (fault, applied) in [(Fault::Reset, true), (THROTTLED, true), (LOST, false)] {
        let world = World::account(100).await;
        let proxy = FaultyProxy::start(&world.database.endpoint()).await;
        proxy.misbehave("TransactWriteItems", [Fault::Lingers]);
        proxy.misbehave("PutItem", [fault]);
        let first = call(&world.through(&proxy), json!({"amount": 30})).await;
        assert_eq!(failed(&first), (FailureKind::OutcomeUnknown, Changed::Unknown, true), "{fault:?}");
        assert_eq!(proxy.deliver().await, 1);
        assert_eq!(world.balance().await, if applied { "70" } else { "100" }, "{fault:?}");
        assert_eq!(world.call(json!({"amount": 30})).await, success(json!({"withdrawn": 30}), applied), "{fault:?}");
    }
}

/// The model is told that nothing was made, and to try again; it does so in other words, and so may a later conversation.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_in_the_way_of_a_commit_is_not_in_the_way_of_other_arguments() {
    let world = World::account(100).await;
    let proxy = FaultyProxy::start(&world.database.endpoint()).await;
    proxy.misbehave("TransactWriteItems", [Fault::Lingers]);
    let (words, others) = (json!({"amount": 30}), json!({"amount": 30, "look": true}));
    let first = call(&world.through(&proxy), words.clone()).await;
    assert_eq!(failed(&first), (FailureKind::Transient, Changed::Nothing, true));
    assert_eq!(recorded(&world.pipeline, others.clone()).await, Standing::Clear);
    assert_eq!(world.call(others.clone()).await, success(json!({"withdrawn": 30}), false));
    assert_eq!(proxy.deliver().await, 1);
    assert_eq!(world.balance().await, "70");
    assert_eq!(world.call(others).await, success(json!({"withdrawn": 30}), true));
    assert_eq!(failed(&world.call(words).await).0, FailureKind::KeyReused);
}
