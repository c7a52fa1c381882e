//! At most once, and never guessed: each promise about side effects, through the pipeline and the real AWS SDK, on the
//! embedded DynamoDB.
//!
//! | module | shows |
//! | --- | --- |
//! | this one | what the next equal call gets, whatever became of the one before |
//! | `atomic` | the same of an effect that is committed with its record |
//! | `owners` | who may write to a record |

#![cfg(feature = "dev")]

mod atomic;
mod owners;
#[path = "../support/mod.rs"]
mod support;
mod world;

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use action_group::{
    clock::Clock,
    idempotency::{Acquired, Claim, Guard, Key, Settled, Store},
    outcome::{Changed, FailureKind, Outcome},
    tool::{Caller, Effect, Toolbox},
};
use serde_json::json;
use support::{Break, Database, FaultyProxy, Network, client, pipeline};
use world::{Scripted, Step, TIME, World, call, call_by, failed, stored, success, unruly};

#[tokio::test(flavor = "multi_thread")]
async fn an_equal_call_gets_the_stored_result_whatever_its_value_and_runs_nothing() {
    for result in [json!({"a": 1}), json!(null), json!(false), json!(0), json!(""), json!([]), json!({})] {
        let world = World::of(Effect::Once, &[Step::Succeed], result.clone()).await;
        assert_eq!(world.call(json!({"thing": "A", "amount": 2})).await, success(result.clone(), false));
        assert_eq!(world.call(json!({"amount": 2, "thing": "A"})).await, success(result, true));
        assert_eq!(world.attempts(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_key_is_another_action_and_other_arguments_under_one_key_are_refused() {
    let world = World::of(Effect::Once, &[Step::Succeed], json!(1)).await;
    assert_eq!(world.call(json!({"thing": "A"})).await, success(json!(1), false));
    assert_eq!(world.call(json!({"thing": "B"})).await, success(json!(1), false));
    let reused = world.call(json!({"thing": "A", "amount": 2})).await;
    assert_eq!(failed(&reused), (FailureKind::KeyReused, Changed::Nothing, false));
    assert_eq!(world.attempts(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_must_happen_once_is_never_run_again_after_an_end_that_leaves_it_open() {
    for step in [Step::Hang, Step::Panic, Step::NoAnswer, Step::Internal] {
        let world = World::of(Effect::Once, &[step, Step::Succeed], json!(1)).await;
        for _ in 0..2 {
            let outcome = world.call(json!({"thing": "A"})).await;
            assert_eq!(failed(&outcome), (FailureKind::OutcomeUnknown, Changed::Unknown, false), "{step:?}");
            assert!(!format!("{outcome:?}").contains("secret"));
        }
        assert_eq!(world.attempts(), 1, "{step:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keyed_effect_is_run_again_with_the_same_key() {
    let world = World::of(Effect::Keyed, &[Step::Hang, Step::Panic, Step::TellKey], json!(null)).await;
    let unknown = world.call(json!({"thing": "A"})).await;
    assert_eq!(failed(&unknown), (FailureKind::OutcomeUnknown, Changed::Unknown, true));
    let Outcome::Success { result: key, replayed: false } = world.call(json!({"thing": "A"})).await else {
        panic!("the next call takes over")
    };
    assert_eq!(key.as_str().map(str::len), Some(64));
    let other = World::of(Effect::Keyed, &[Step::TellKey], json!(null)).await;
    assert_eq!(other.call(json!({"thing": "A"})).await, success(key, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keyed_effect_that_an_earlier_call_may_have_had_is_not_said_to_be_nothing() {
    let world =
        World::of(Effect::Keyed, &[Step::NoAnswer, Step::NoAnswer, Step::NoAnswer, Step::Reject], json!("key")).await;
    for _ in 0..2 {
        let outcome = world.call(json!({"thing": "A"})).await;
        assert_eq!(failed(&outcome), (FailureKind::OutcomeUnknown, Changed::Unknown, true), "{outcome:?}");
    }
    assert_eq!(world.attempts(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_that_changed_nothing_leaves_the_key_free() {
    for (step, kind) in [(Step::Reject, FailureKind::Rejected), (Step::Busy, FailureKind::Transient)] {
        let world = World::of(Effect::Once, &[step, step, step, Step::Succeed], json!(1)).await;
        while world.attempts() < 3 {
            let (found, changed, _) = failed(&world.call(json!({"thing": "A"})).await);
            assert_eq!((found, changed), (kind, Changed::Nothing));
        }
        assert_eq!(world.call(json!({"thing": "A"})).await, success(json!(1), false));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_is_tried_three_times_and_never_said_to_have_changed_anything() {
    for step in [Step::Hang, Step::Busy, Step::NoAnswer] {
        let world = World::of(Effect::ReadOnly, &[step], json!(1)).await;
        let (_, changed, retryable) = failed(&world.call(json!({"thing": "A"})).await);
        assert_eq!((changed, retryable, world.attempts()), (Changed::Nothing, true, 3), "{step:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_calls_at_once_have_one_effect_and_one_answer() {
    let world = World::of(Effect::Once, &[Step::Succeed], json!({"n": 7})).await;
    let calls = (0..16).map(|_| world.call(json!({"thing": "A"})));
    let outcomes = futures_util::future::join_all(calls).await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == success(json!({"n": 7}), false)).count(), 1);
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == success(json!({"n": 7}), true)).count(), 15);
    assert_eq!(world.attempts(), 1);
}

/// Somebody else's claim on the key of the scripted tool's call, whose lease is long.
async fn held_by_another(world: &World) -> Guard {
    let definition = world.pipeline.toolbox().get("scripted").expect("the tool").definition();
    let key = Key::new(definition, "deployment", &json!(["A"]), &json!({"thing": "A"})).expect("a key");
    let store = world.database.store();
    let soon = store.now().plus(Duration::from_mins(1));
    let claim = Claim {
        owner: String::from("another"),
        effect: Effect::Once,
        lease_until: soon,
        expires_at: soon,
        for_approval: None,
    };
    let Acquired::Mine(guard) = store.acquire(&key, &claim, TIME).await.expect("an answer") else {
        panic!("the key was free")
    };
    guard
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_action_is_running_waits_and_then_says_so() {
    let world = World::of(Effect::Once, &[Step::Succeed], json!(1)).await;
    let guard = held_by_another(&world).await;
    let outcome = world.call(json!({"thing": "A"})).await;
    assert_eq!(failed(&outcome), (FailureKind::InProgress, Changed::Nothing, true));
    assert_eq!(world.attempts(), 0);
    assert_eq!(guard.complete(&stored("7"), TIME).await.expect("an answer"), Settled::AsWritten, "it was left alone");
}

/// A call whose action is running elsewhere, and what becomes of that when the call has looked at it a first time.
async fn call_beside(then: impl AsyncFnOnce(Guard)) -> Outcome {
    let world = World::of(Effect::Once, &[Step::Succeed], json!(1)).await;
    let guard = held_by_another(&world).await;
    let looks = FaultyProxy::start(&world.database.endpoint()).await;
    let store = Store::new(client(&looks.endpoint()), Database::RECORDS, Clock::system());
    let tool = Scripted { effect: Effect::Once, script: Vec::new(), attempts: Arc::default(), result: json!(1) };
    let pipeline = pipeline(tool.alone(), store);
    let ends = async {
        while !looks.take().contains_key("GetItem") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        then(guard).await;
    };
    tokio::join!(call(&pipeline, json!({"thing": "A"})), ends).0
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_gets_the_result_of_the_one_that_runs() {
    let outcome = call_beside(async |guard| drop(guard.complete(&stored("7"), TIME).await.expect("an answer"))).await;
    assert_eq!(outcome, success(json!(7), true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_takes_its_turn_when_the_one_that_runs_changed_nothing() {
    let outcome = call_beside(async |guard| drop(guard.release(TIME).await.expect("an answer"))).await;
    assert_eq!(outcome, success(json!(1), false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_refused_leaves_the_record_as_it_is() {
    let world = World::of(Effect::Once, &[Step::Succeed], json!(1)).await;
    world.call(json!({"thing": "A"})).await;
    for _ in 0..2 {
        assert_eq!(failed(&world.call(json!({"thing": "A", "amount": 2})).await).0, FailureKind::KeyReused);
    }
    assert_eq!(world.call(json!({"thing": "A"})).await, success(json!(1), true));
    assert_eq!(world.attempts(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_effect_whose_record_cannot_be_completed_is_told_as_done() {
    for fault in [Break::Throttle, Break::CutReply, Break::HoldRequest] {
        let world = World::of(Effect::Once, &[Step::Succeed], json!(1)).await;
        let network = Network::new();
        let endpoint = network.proxy(&world.database.endpoint()).await.endpoint();
        let store = Store::new(support::client(&endpoint), Database::RECORDS, Clock::system());
        let attempts = Arc::clone(&world.attempts);
        let tool = Scripted { effect: Effect::Once, script: vec![], attempts, result: json!(1) };
        let toolbox = Toolbox::builder().tool(tool).build().expect("a toolbox");
        network.break_at([(1, fault)]);
        assert_eq!(call(&pipeline(toolbox, store), json!({"thing": "A"})).await, success(json!(1), false), "{fault:?}");
        assert_eq!(world.attempts(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_is_too_large_to_keep_is_replayed_as_done() {
    let large = json!("x".repeat(400_000));
    let world = World::of(Effect::Once, &[Step::Succeed], large).await;
    for replay in [false, true] {
        let outcome = world.call(json!({"thing": "A"})).await;
        let Outcome::Success { result, replayed } = outcome else { panic!("it was done, but: {outcome:?}") };
        assert_eq!((&result["done"], replayed), (&json!(true), replay));
    }
    assert_eq!(world.attempts(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_record_table_away_no_effect_begins() {
    let World { database, pipeline, attempts } = World::of(Effect::Once, &[Step::Succeed], json!(1)).await;
    if !database.is_ours() {
        return;
    }
    drop(database);
    let outcome = call(&pipeline, json!({"thing": "A"})).await;
    assert_eq!(failed(&outcome), (FailureKind::Transient, Changed::Nothing, true));
    assert_eq!(attempts.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_conversations_do_not_share_a_key_and_one_conversation_does() {
    let world = World::of(Effect::Once, &[Step::Succeed], json!(1)).await;
    let mut replays = Vec::new();
    for conversation in ["x", "y", "x"] {
        let caller = Caller::default().with_conversation(conversation);
        let outcome = call_by(&world.pipeline, caller, json!({"thing": "A"})).await;
        replays.push(matches!(outcome, Outcome::Success { replayed: true, .. }));
    }
    assert_eq!(replays, [false, false, true]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_is_no_json_unmakes_no_effect_and_does_not_repeat_it() {
    for effect in [Effect::Once, Effect::Keyed] {
        let world = unruly(effect).await;
        for replayed in [false, true] {
            let outcome = world.call(json!({"thing": "A"})).await;
            assert!(
                matches!(&outcome, Outcome::Success { result, replayed: again } if result["done"] == true && *again == replayed),
                "{outcome:?}"
            );
        }
        assert_eq!(world.attempts(), 1);
    }
    let read = unruly(Effect::ReadOnly).await.call(json!({"thing": "A"})).await;
    assert_eq!(failed(&read), (FailureKind::Internal, Changed::Nothing, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_panics_is_a_failure_of_its_own_call_only() {
    let world = unruly(Effect::Once).await;
    let (broken, other) = tokio::join!(world.call(json!({"thing": "no key"})), world.call(json!({"thing": "A"})));
    assert_eq!(failed(&broken), (FailureKind::Internal, Changed::Nothing, false));
    assert!(matches!(other, Outcome::Success { .. }));
    assert_eq!(world.attempts(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_was_used_is_not_said_to_be_an_action_that_was_not_done() {
    let world = World::of(Effect::Once, &[Step::Succeed], json!(1)).await;
    world.call(json!({"thing": "A"})).await;
    let reused = world.call(json!({"thing": "A", "amount": 2})).await.failure().expect("a failure").message();
    assert!(reused.contains("The earlier call was carried out.") && reused.ends_with("This call changed nothing."));
    let world = World::of(Effect::Once, &[Step::Hang], json!(1)).await;
    world.call(json!({"thing": "A"})).await;
    let reused = world.call(json!({"thing": "A", "amount": 2})).await.failure().expect("a failure").message();
    assert!(reused.contains("its end is not known") && !reused.contains("was carried out."), "{reused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_only_the_type_knows_is_told_in_whole_sentences() {
    let world = World::of(Effect::Once, &[Step::Succeed], json!(1)).await;
    let refused = world.call(json!({"thing": "A", "amount": 13})).await;
    let message = refused.failure().expect("a failure").message();
    assert_eq!(message, "The arguments are refused: 13 is no lucky amount. Nothing was changed.");
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_that_nobody_commits_are_no_success() {
    let keyed = World::of(Effect::Keyed, &[Step::Write], json!(1)).await.call(json!({"thing": "A"})).await;
    assert_eq!(failed(&keyed), (FailureKind::OutcomeUnknown, Changed::Unknown, true));
    let read = World::of(Effect::ReadOnly, &[Step::Write], json!(1)).await.call(json!({"thing": "A"})).await;
    assert_eq!(failed(&read), (FailureKind::Internal, Changed::Nothing, false));
}
