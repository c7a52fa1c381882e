//! A model check of the idempotency protocol: every order of every step, over the decisions that the code runs.
//!
//! | in the model | in the code |
//! | --- | --- |
//! | what a record means, whether to try again, what to say, how to leave the record | the very same functions |
//! | the conditions of the requests (`table.rs`) | their predicates, which stand beside the expressions |
//! | the steps (`caller/`) | `call/recorded.rs`, `call/atomic.rs` and what they use, one request at a time |
//! | what may go wrong (`world/`) | a crash before and after each request; an answer that is lost; a client that asks again; a request that lands late; a refusal; clocks a second apart; a process that lives 0.7 s too long; expiry; a person who approves or refuses |
//!
//! A few of the faults happen in one run, in all combinations. What is in the air for a minute never lands.
//!
//! `cargo test --test model -- --nocapture` prints the counts; `--include-ignored` goes deeper.

#![allow(clippy::result_large_err, reason = "the record that DynamoDB brings along is what a step goes on with")]

mod caller;
#[cfg(feature = "dev")]
mod dynamodb;
mod table;
mod world;

use std::time::{Duration, Instant};

use caller::{
    Bars, Doubt, EffectOf,
    EffectOf::{Atomic, Keyed, Once},
};
use stateright::{Checker, Model, Path};
use world::{Action, Approval, LIVE, Protocol, SAFE, World};

/// The beginning; leases end; late processes are killed; others take over by clocks that are wrong; the window is over.
const WINDOW: &[u64] = &[0, 1_000, 1_700, 2_100, 3_200, 70_000];
/// The beginning; a holder is taken for dead; an approval has expired.
const APPROVAL: &[u64] = &[0, 3_200, 3_700_000];

/// Two callers, and two things that go wrong.
const TWO: Protocol = Protocol {
    effect: Once,
    later_effect: None,
    callers: 2,
    faults: 2,
    approval: Approval::No,
    reconciles: false,
    moments: WINDOW,
    window: Duration::from_mins(1),
    fences: true,
    doubt: Doubt::Kept,
    bars: Bars::Stay,
    margin: true,
    asks_heirs: true,
    remembers: true,
};

/// Three callers, and one thing that goes wrong.
const THREE: Protocol = Protocol { callers: 3, faults: 1, ..TWO };

/// A tool that asks for approval by what it finds, also after an attempt whose answer was lost.
const ASKED_AT_TIMES: Protocol = Protocol { effect: Keyed, approval: Approval::AskedAtTimes, moments: APPROVAL, ..TWO };

/// The hour of an approval ends before the record that has used it does.
const DAY: Protocol =
    Protocol { reconciles: true, window: Duration::from_hours(24), moments: &[0, 3_200, 3_700_000], ..TWO };

/// A version whose policy wants approval meets the records of one whose policy does not.
const LOWERED_LIMIT: Protocol =
    Protocol { approval: Approval::ByLaterPolicy, reconciles: true, moments: APPROVAL, ..TWO };

/// Visits every state, and fails with the way to the first one that breaks a promise.
fn holds(name: &str, protocol: Protocol) -> usize {
    let start = Instant::now();
    let checker = protocol.checker().threads(2).spawn_bfs().join();
    println!("{name}: {} states visited, in {} ms", checker.unique_state_count(), start.elapsed().as_millis());
    for promise in [SAFE, LIVE] {
        if let Some(path) = checker.discovery(promise) {
            panic!("{name}: {promise}\n{}", told(&path));
        }
    }
    checker.unique_state_count()
}

/// Finds a way to break the promise, and prints it.
fn fails(name: &str, promise: &'static str, protocol: Protocol) {
    let checker = protocol.checker().spawn_bfs().join();
    let path = checker.discovery(promise).unwrap_or_else(|| panic!("{name}: the check finds nothing wrong"));
    println!("{name}: {} states visited until\n{}", checker.unique_state_count(), told(&path));
}

/// The way to a state, a line for each step.
fn told(path: &Path<World, Action>) -> String {
    let steps = path.clone().into_vec();
    let lines = steps.iter().filter_map(|(world, action)| Some(format!("  {}\n", world.tell((*action)?))));
    let end = path.last_state().broken().unwrap_or("nobody can go on");
    format!("{}  => {end}", lines.collect::<String>())
}

#[test]
fn an_effect_happens_at_most_once_and_every_answer_agrees_whatever_breaks() {
    let mut visited = 0;
    for effect in [Once, Keyed, Atomic] {
        visited += holds(&format!("{effect:?}, two callers"), Protocol { effect, ..TWO });
    }
    println!("in all: {visited} states visited");
    assert!(visited >= 100_000);
}

#[test]
fn an_outcome_that_is_found_out_is_not_repeated_and_one_that_did_not_happen_is() {
    holds("Once with reconcile, two callers", Protocol { reconciles: true, ..TWO });
}

#[test]
fn nothing_runs_without_its_approval_and_no_approval_is_used_twice() {
    for approval in [Approval::ByPolicy, Approval::AskedByTheTool] {
        for effect in [Once, Keyed, Atomic] {
            let name = format!("{effect:?}, approval {approval:?}");
            holds(&name, Protocol { effect, approval, moments: APPROVAL, ..TWO });
        }
    }
    holds("Keyed, approval AskedAtTimes", ASKED_AT_TIMES);
    let approval = Approval::ByPolicy;
    holds("Once, approval and reconcile", Protocol { approval, reconciles: true, moments: APPROVAL, ..THREE });
}

#[test]
fn an_approval_that_was_left_behind_unused_does_not_outlive_its_hour() {
    for approval in [Approval::ByPolicy, Approval::AskedByTheTool] {
        for effect in [Once, Keyed, Atomic] {
            let name = format!("{effect:?}, approval {approval:?}, kept for a day");
            holds(&name, Protocol { effect, approval, faults: 1, ..DAY });
        }
    }
    holds(
        "Keyed, approval AskedAtTimes, kept for a day",
        Protocol { effect: Keyed, approval: Approval::AskedAtTimes, ..DAY },
    );
}

#[test]
fn a_record_from_before_the_limit_was_lowered_is_no_approval() {
    for effect in [Once, Keyed, Atomic] {
        holds(&format!("{effect:?}, approval ByLaterPolicy"), Protocol { effect, ..LOWERED_LIMIT });
    }
}

/// Every two versions of a tool that promise different things.
fn changes() -> impl Iterator<Item = (EffectOf, EffectOf)> {
    let all = [Once, Keyed, Atomic];
    all.into_iter().flat_map(move |effect| all.map(|later| (effect, later))).filter(|(effect, later)| effect != later)
}

/// A version that has another promise for the tool meets the records of the one before.
#[test]
fn an_effect_that_a_new_version_changes_is_at_most_once_all_the_same() {
    for (effect, later) in changes() {
        for (with, reconciles) in [("", false), (", with reconcile", true)] {
            let protocol = Protocol { effect, later_effect: Some(later), reconciles, faults: 1, ..TWO };
            holds(&format!("{effect:?}, then {later:?}{with}"), protocol);
        }
    }
    // A commit that lands late, in a record that its own call has taken over.
    let (effect, later_effect) = (Once, Some(Atomic));
    holds("Once, then Atomic, two faults", Protocol { effect, later_effect, reconciles: true, ..TWO });
}

/// The same where a person is asked by either version, or by both, also about what may have been done.
#[test]
fn an_effect_that_a_new_version_changes_needs_its_approval_all_the_same() {
    for (effect, later) in changes() {
        for approval in [Approval::ByPolicy, Approval::ByLaterPolicy, Approval::AskedAtTimes] {
            let name = format!("{effect:?}, then {later:?}, approval {approval:?}");
            let protocol =
                Protocol { effect, later_effect: Some(later), approval, faults: 1, moments: APPROVAL, ..TWO };
            holds(&name, protocol.clone());
            holds(&format!("{name}, with reconcile"), Protocol { reconciles: true, ..protocol });
        }
    }
}

#[test]
#[ignore = "takes minutes: three things go wrong at once"]
fn an_effect_happens_at_most_once_whatever_three_things_break() {
    for effect in [Once, Keyed, Atomic] {
        holds(&format!("{effect:?}, three faults"), Protocol { effect, faults: 3, ..TWO });
        holds(&format!("{effect:?}, three callers"), Protocol { effect, ..THREE });
    }
    holds("Once with reconcile, three callers", Protocol { reconciles: true, ..THREE });
    for (effect, later) in changes() {
        for reconciles in [false, true] {
            let name = format!("{effect:?}, then {later:?}, two faults, reconcile: {reconciles}");
            holds(&name, Protocol { effect, later_effect: Some(later), reconciles, ..TWO });
        }
    }
    holds("Keyed, approval AskedAtTimes, three faults", Protocol { faults: 3, ..ASKED_AT_TIMES });
    for approval in [Approval::ByPolicy, Approval::AskedByTheTool] {
        for effect in [Once, Keyed, Atomic] {
            let name = format!("{effect:?}, approval {approval:?}, three faults");
            holds(&name, Protocol { effect, approval, faults: 3, moments: APPROVAL, ..TWO });
        }
    }
}

/// The protocol as many have built it: later writes are not conditional on who holds the record.
#[test]
fn without_fences_the_check_fails() {
    for effect in [Once, Keyed] {
        fails(&format!("{effect:?} without fences"), SAFE, Protocol { effect, fences: false, ..THREE });
    }
}

/// A tool asks for approval, although an earlier attempt may have had its effect.
#[test]
fn without_the_doubt_in_a_record_that_waits_the_check_fails() {
    for (promise, doubt) in [(SAFE, Doubt::Released), (LIVE, Doubt::GivenUp)] {
        fails(&format!("Keyed, approval AskedAtTimes, doubt {doubt:?}"), promise, Protocol { doubt, ..ASKED_AT_TIMES });
    }
}

/// A commit without an answer lands when an equal call has said that nothing was done.
#[test]
fn without_a_record_in_the_way_of_a_commit_the_check_fails() {
    for bars in [Bars::Go, Bars::None] {
        fails(&format!("Atomic, bars {bars:?}"), SAFE, Protocol { effect: Atomic, bars, ..TWO });
    }
}

/// A call that needs approval goes on with whatever record it has taken over.
#[test]
fn without_asking_whoever_takes_over_the_check_fails() {
    for effect in [Once, Keyed] {
        let protocol = Protocol { effect, asks_heirs: false, ..LOWERED_LIMIT };
        fails(&format!("{effect:?}, approval ByLaterPolicy, heirs unasked"), SAFE, protocol);
    }
}

/// A version whose tool promises something else takes a record over as if it were one of its own.
#[test]
fn without_the_effect_in_the_record_the_check_fails() {
    for (effect, later) in [(Once, Keyed), (Once, Atomic), (Keyed, Atomic)] {
        let protocol = Protocol { effect, later_effect: Some(later), remembers: false, faults: 1, ..TWO };
        fails(&format!("{effect:?}, then {later:?}, without the effect"), SAFE, protocol);
    }
}

/// A holder that is a moment too late has not had its effect when somebody looks, and has it after.
#[test]
fn without_a_margin_the_check_fails() {
    fails("Once with reconcile, without a margin", SAFE, Protocol { reconciles: true, margin: false, ..TWO });
}
