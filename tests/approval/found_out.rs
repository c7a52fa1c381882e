//! An outcome that is not known, and a tool that can find out what became of it, or not.

use std::time::Duration;

use action_group::{
    clock::Clock,
    idempotency::Store,
    outcome::{FailureKind, Outcome},
    tool::Reconciled,
};
use serde_json::json;

use super::{
    support::{Database, FaultyProxy, LOST, THROTTLED, client},
    tool::{ONCE, Step},
    world::{World, asking, kind, paid},
};

/// A mail of whose end nothing is known.
pub async fn unknown() -> World {
    let world = World::new(ONCE).await;
    world.next(Step::NoAnswer);
    assert_eq!(kind(&world.call(json!({"amount": 1})).await), FailureKind::OutcomeUnknown);
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn an_effect_that_is_found_to_be_done_is_recorded_and_not_repeated() {
    let world = unknown().await;
    world.finds(Reconciled::Done(json!({"paid": 1, "found": true})));
    for _ in 0..2 {
        let found = Outcome::Success { result: json!({"paid": 1, "found": true}), replayed: true };
        assert_eq!(world.call(json!({"amount": 1})).await, found);
        world.finds(Reconciled::NotDone); // nobody asks again
    }
    assert_eq!(world.done().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_effect_that_is_found_not_to_be_done_is_run_once_more() {
    let world = unknown().await;
    world.finds(Reconciled::NotDone);
    assert_eq!(world.call(json!({"amount": 1})).await, paid(1, false));
    assert_eq!(world.call(json!({"amount": 1})).await, paid(1, true));
    assert_eq!(world.done().len(), 2, "the attempt that was lost, and the one that counts");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_effect_that_cannot_be_told_stays_unknown() {
    let world = unknown().await;
    for found in [Some(Reconciled::Unknown), None] {
        world.script.lock().expect("a script").found = found;
        let outcome = world.call(json!({"amount": 1})).await;
        let failure = outcome.failure().expect("nobody knows");
        assert_eq!((failure.kind(), failure.retryable()), (FailureKind::OutcomeUnknown, false));
    }
    assert_eq!(world.done().len(), 1);
}

/// What nobody knows is not forgotten, although for a moment the record was one that somebody is at.
#[tokio::test(flavor = "multi_thread")]
async fn a_take_over_without_an_answer_leaves_an_unknown_outcome_unknown() {
    for faults in [&[LOST][..], &[LOST, THROTTLED]] {
        let world = unknown().await;
        world.finds(Reconciled::NotDone);
        let proxy = FaultyProxy::start(&world.database.endpoint()).await;
        proxy.misbehave("UpdateItem", faults.iter().copied());
        let outcome = world.call_on(asking(&proxy, faults.len()), json!({"amount": 1})).await;
        assert_eq!(kind(&outcome), FailureKind::Transient);
        assert_eq!(world.state().await, "unknown", "{faults:?}");
        world.finds(Reconciled::Unknown);
        assert_eq!(kind(&world.call(json!({"amount": 1})).await), FailureKind::OutcomeUnknown);
        assert_eq!(world.done().len(), 1);
    }
}

/// Its holder is dead, and nothing can be written about that. A take-over of what the mark would have made of it could only land
/// when nobody waits for it any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_could_not_be_marked_unknown_is_taken_over_as_it_is() {
    let world = World::new(ONCE).await;
    let proxy = FaultyProxy::start(&world.database.endpoint()).await;
    let store = |clock| Store::new(client(&proxy.endpoint()), Database::RECORDS, clock);
    world.next(Step::NoAnswer);
    world.finds(Reconciled::NotDone);
    let later = Clock::following_tokio(world.database.store().now().plus(Duration::from_secs(10)));
    for (clock, requests) in [(Clock::system(), 1), (later, 3)] {
        proxy.misbehave("UpdateItem", [THROTTLED]);
        let outcome = world.call_on(store(clock), json!({"amount": 1})).await;
        assert_eq!(world.script.lock().expect("a script").requests, requests, "{outcome:?}");
    }
    assert_eq!(world.call(json!({"amount": 1})).await, paid(1, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn to_find_out_what_became_of_an_effect_is_one_of_the_three_requests_of_a_call() {
    let world = unknown().await;
    world.finds(Reconciled::NotDone);
    let (requests, outcome) = world.requests_of(json!({"amount": 1}), &[Step::Busy; 9]).await;
    assert_eq!((requests, kind(&outcome)), (3, FailureKind::Transient));
    assert_eq!(world.call(json!({"amount": 1})).await, paid(1, false), "the key is free");
}
