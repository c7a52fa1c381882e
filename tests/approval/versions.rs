//! A deployment changes the limit or the effect of a tool while there are records of its calls.

use action_group::{
    idempotency::Verdict,
    outcome::{Changed, FailureKind},
    tool::{Effect, Reconciled},
};
use serde_json::json;

use super::{
    doubt::asked_in_doubt,
    found_out::unknown,
    tool::{ATOMIC, EFFECTS, KEYED, ONCE, Step, toolbox},
    world::{World, kind, paid},
};

/// What an earlier version has left in doubt is no approval.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_in_doubt_from_before_the_limit_was_lowered_waits_for_a_person_and_keeps_its_doubt() {
    let mut world = World::new(KEYED).await;
    [Step::NoAnswer; 3].into_iter().for_each(|step| world.next(step));
    assert_eq!(kind(&world.call(json!({"amount": 7})).await), FailureKind::OutcomeUnknown);
    world.lower_the_limit(KEYED);
    for _ in 0..2 {
        let waiting = world.call(json!({"amount": 7})).await;
        let failure = waiting.failure().expect("it waits");
        assert_eq!((failure.kind(), failure.changed()), (FailureKind::OutcomeUnknown, Changed::Unknown));
        assert!(!failure.retryable() && failure.message().contains("waits for approval"), "{failure:?}");
    }
    assert_eq!(world.done(), [false; 3]);
    world.decide(Verdict::Approve).await;
    assert_eq!(world.call(json!({"amount": 7})).await, paid(7, false));
    assert_eq!(world.done(), [false, false, false, true]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_of_which_nothing_was_done_before_the_limit_was_lowered_begins_to_wait_for_a_person() {
    for (before, after, attempts) in [(ONCE, ONCE, 1), (KEYED, ATOMIC, 3)] {
        let mut world = World::new(before).await;
        [Step::NoAnswer; 3].into_iter().take(attempts).for_each(|step| world.next(step));
        assert_eq!(kind(&world.call(json!({"amount": 7})).await), FailureKind::OutcomeUnknown);
        world.lower_the_limit(after);
        world.finds(Reconciled::NotDone);
        for _ in 0..2 {
            assert_eq!(kind(&world.call(json!({"amount": 7})).await), FailureKind::ApprovalRequired);
        }
        assert_eq!(world.done().len(), attempts);
        world.decide(Verdict::Approve).await;
        assert_eq!(world.call(json!({"amount": 7})).await, paid(7, false));
        assert_eq!(world.done().last(), Some(&true));
    }
}

/// A deployment changes the tool's effect while a call of it waits in doubt.
#[tokio::test(flavor = "multi_thread")]
async fn a_person_can_tell_before_deciding_whether_an_approved_call_runs() {
    for (in_doubt, after, runs) in
        [(true, KEYED, true), (true, ONCE, false), (true, ATOMIC, false), (false, KEYED, true), (false, ATOMIC, true)]
    {
        let mut world = if in_doubt { asked_in_doubt(true).await } else { World::new(KEYED).await };
        if !in_doubt {
            world.next(Step::Ask);
            world.call(json!({"amount": 7})).await;
        }
        world.toolbox = toolbox(after, &world.script);
        let pending = world.shown().await.remove(0);
        assert_eq!((pending.effect, pending.maybe_done), (Some(Effect::Keyed), in_doubt));
        assert_eq!(pending.runs_as(EFFECTS[usize::from(after)]), runs);
        world.decide(Verdict::Approve).await;
        let outcome = world.call(json!({"amount": 7})).await;
        assert_eq!(outcome == paid(7, false), runs, "{in_doubt}, {after}: {outcome:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_effect_that_is_found_to_be_done_needs_nobodys_approval_any_more() {
    let mut world = unknown().await;
    world.lower_the_limit(ONCE);
    world.finds(Reconciled::Done(json!({"paid": 1})));
    assert_eq!(world.call(json!({"amount": 1})).await, paid(1, true));
}
