//! Each limit holds, its value is told, and what the model may still do gets less step by step.

use action_group::{
    agent::{
        limits::{Limits, Prices},
        model::{ModelFailureKind, ModelReply},
        run::{AgentRun, Approvals},
        stop::{Resume, Stop},
    },
    outcome::{Changed, Failure, FailureKind, Outcome},
};
use serde_json::json;

use crate::machine::{Machine, asks, calls, fails, look, model_fails, reply, says, success, tools, wide};

const TRIED: &str = "has failed already";

/// A model that asks for the same failing call for ever, under a new id each time.
fn stubborn() -> Vec<ModelReply> {
    (0..50).map(|n| look(&format!("s{n}"), "fail")).collect()
}

#[test]
fn the_same_failing_call_is_not_run_again_and_the_loop_ends_two_requests_later() {
    for most in [1, 2, 3] {
        let mut machine = Machine::new(Limits { max_identical_failures: most, ..wide() }, stubborn());
        let report = machine.go();
        assert_eq!(report.stop, Stop::RepeatedFailures);
        assert_eq!(machine.ran.len(), most as usize);
        assert_eq!(machine.requests.len(), most as usize + 2);
        assert!(machine.results()[0].1.contains(TRIED) && machine.results()[0].1.contains(&format!("= {most})")));
    }
}

#[test]
fn the_order_of_arguments_and_the_form_of_numbers_make_no_other_call() {
    let inputs = [r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, r#"{"b":2.0,"a":1e0}"#, r#"{"a":1.0,"b":2}"#];
    let replies = inputs
        .iter()
        .enumerate()
        .map(|(n, input)| calls([(format!("i{n}").as_str(), "look", serde_json::from_str(input).unwrap())]));
    let mut machine = Machine::new(Limits { max_identical_failures: 2, ..wide() }, replies);
    machine.outcome = Box::new(|_| fails(FailureKind::Rejected));
    assert_eq!(machine.go().stop, Stop::RepeatedFailures);
    assert_eq!(machine.ran.len(), 2);
}

#[test]
fn polling_that_succeeds_is_never_stopped_by_a_guard() {
    let replies = (0..20).map(|n| look(&format!("p{n}"), "x")).chain([says("Polled.")]);
    let limits = Limits { max_identical_failures: 1, max_consecutive_failures: 1, ..wide() };
    let mut machine = Machine::new(limits, replies);
    assert_eq!(machine.go().answer, "Polled.");
    assert_eq!(machine.ran.len(), 20);
}

#[test]
fn asking_again_for_what_is_in_progress_is_no_failure() {
    let replies = (0..5).map(|n| look(&format!("p{n}"), "busy")).chain([says("Waited.")]);
    let limits = Limits { max_identical_failures: 1, max_consecutive_failures: 1, ..wide() };
    assert_eq!(Machine::new(limits, replies).go().answer, "Waited.");
}

#[test]
fn what_waits_for_a_person_counts_for_the_same_call_and_not_against_the_tool() {
    let in_doubt = || {
        let failure = Failure::new(FailureKind::OutcomeUnknown, "It waits.").with_changed(Changed::Unknown, "?");
        Outcome::Failure(failure.that_waits().awaiting(&"mail#1"))
    };
    let ends: [fn() -> Outcome; 2] = [|| asks("mail#1"), in_doubt];
    for end in ends {
        let mail = |to: &str| calls([("a", "mail", json!({ "to": to }))]);
        let limits = Limits { max_consecutive_failures: 2, max_identical_failures: 2, ..wide() };
        let mut run = AgentRun::new(limits, tools()).with_approvals(Approvals::Answer);
        run.ask("Write to all of them.");
        let replies = [mail("a"), mail("b"), mail("c"), mail("a"), mail("a"), says("They wait.")];
        let mut machine = Machine::of(run, replies);
        machine.outcome = Box::new(move |_| end());
        machine.go();
        assert_eq!(machine.ran.len(), 4, "three letters, and the first once again");
        assert!(machine.offered()[3].contains(&String::from("mail")), "others may need no approval");
    }
}

#[test]
fn a_success_lets_the_same_call_fail_anew() {
    let replies = (0..6).map(|n| look(&format!("p{n}"), "x")).chain([says("Through.")]);
    let mut machine =
        Machine::new(Limits { max_identical_failures: 2, max_consecutive_failures: 2, ..wide() }, replies);
    machine.outcome = Box::new(|call| if call.ordinal % 2 == 0 { fails(FailureKind::Transient) } else { success() });
    assert_eq!(machine.go().answer, "Through.");
}

#[test]
fn failures_of_one_tool_are_not_forgiven_because_another_works_in_between() {
    let replies = (0..20).map(|n| match n % 2 {
        0 => calls([(format!("a{n}").as_str(), "mail", json!({ "to": n.to_string() }))]),
        _ => look(&format!("a{n}"), "x"),
    });
    let mut machine = Machine::new(Limits { max_consecutive_failures: 3, ..wide() }, replies);
    machine.outcome = Box::new(|call| if call.tool == "mail" { fails(FailureKind::Rejected) } else { success() });
    let report = machine.go();
    assert_eq!((report.stop, report.failed.len()), (Stop::RepeatedFailures, 3));
    let offered = machine.offered();
    assert!(offered[4].contains(&String::from("mail")) && !offered[5].contains(&String::from("mail")), "{offered:?}");
    assert_eq!(machine.requests.len(), 8);
}

#[test]
fn alternating_failing_calls_are_stopped_too() {
    let replies = (0..20).map(|n| calls([(format!("a{n}").as_str(), "look", json!({ "what": "fail", "n": n % 2 }))]));
    let mut machine =
        Machine::new(Limits { max_consecutive_failures: 3, max_identical_failures: 2, ..wide() }, replies);
    assert_eq!(machine.go().stop, Stop::RepeatedFailures);
    assert_eq!(machine.ran.len(), 3);
}

#[test]
fn failures_side_by_side_count_once_because_the_model_has_seen_none_of_them() {
    let three = calls([
        ("a", "look", json!({"what": "fail", "n": 1})),
        ("b", "look", json!({"what": "fail", "n": 2})),
        ("c", "look", json!({"what": "fail", "n": 3})),
    ]);
    let limits = Limits { max_consecutive_failures: 2, ..wide() };
    let mut machine = Machine::new(limits, [three, look("d", "x"), says("Found.")]);
    assert_eq!(machine.go().answer, "Found.");
}

#[test]
fn names_that_no_tool_has_count_as_one_tool() {
    let replies = (0..20).map(|n| calls([(format!("u{n}").as_str(), format!("tool_{n}").as_str(), json!({}))]));
    let mut machine = Machine::new(Limits { max_consecutive_failures: 3, ..wide() }, replies);
    machine.outcome = Box::new(|_| fails(FailureKind::UnknownTool));
    assert_eq!(machine.go().stop, Stop::RepeatedFailures);
    assert_eq!(machine.ran.len(), 3);
}

#[test]
fn a_call_refused_beside_one_that_runs_takes_the_tool_away_and_not_the_turn() {
    let both = calls([("b1", "look", json!({"what": "fail"})), ("b2", "mail", json!({"to": "ada"}))]);
    let limits = Limits { max_identical_failures: 1, ..wide() };
    let mut machine = Machine::new(limits, [look("a", "fail"), both, says("Sent.")]);
    assert_eq!(machine.go().answer, "Sent.");
    assert!(machine.results()[0].1.contains(TRIED) && !machine.results()[1].1.contains(TRIED));
    assert_eq!(machine.offered()[2], ["mail", "pay"]);
}

#[test]
fn a_new_message_gives_withdrawn_tools_back() {
    let mut machine = Machine::new(Limits { max_identical_failures: 1, ..wide() }, stubborn());
    machine.go();
    machine.replies = [look("again", "fail"), says("Failed again.")].into();
    machine.run.ask("I have mended it. Try again.");
    assert_eq!(machine.go().answer, "Failed again.");
    assert_eq!(machine.ran.len(), 2);
}

#[test]
fn with_every_tool_withdrawn_the_tool_config_stays_as_bedrock_demands() {
    let each = |n: usize, tool: &str| calls([(format!("w{n}").as_str(), tool, json!({}))]);
    let replies =
        ["look", "mail", "pay"].iter().enumerate().map(|(n, tool)| each(n, tool)).chain([says("Nothing works.")]);
    let mut machine = Machine::new(Limits { max_consecutive_failures: 1, ..wide() }, replies);
    machine.outcome = Box::new(|_| fails(FailureKind::Transient));
    assert_eq!(machine.go().answer, "Nothing works.");
    assert_eq!(machine.offered()[2], ["pay"]);
    assert_eq!(machine.offered()[3], ["look", "mail", "pay"]);
}

#[test]
fn a_limit_inside_a_batch_leaves_no_call_unanswered() {
    let three = calls([
        ("a", "look", json!({"what": "1"})),
        ("b", "look", json!({"what": "2"})),
        ("c", "look", json!({"what": "3"})),
    ]);
    let mut machine = Machine::new(Limits { max_tool_calls: 1, ..wide() }, [three, says("Partly.")]);
    let report = machine.go();
    let results = machine.results();
    assert_eq!(results.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(
        results.iter().filter(|(_, text)| text.contains("not run") && text.contains("max_tool_calls = 1")).count(),
        2
    );
    assert_eq!((report.stop, report.done.len(), report.not_attempted.len()), (Stop::MaxToolCalls, 1, 2));
    assert_eq!(report.closing.as_deref(), Some("Partly."));
}

#[test]
fn a_limit_of_calls_is_kept_over_several_replies() {
    let replies = (0..20).map(|n| look(&format!("c{n}"), &n.to_string()));
    let mut machine = Machine::new(Limits { max_tool_calls: 2, ..wide() }, replies);
    assert_eq!(machine.go().stop, Stop::MaxToolCalls);
    assert_eq!((machine.ran.len(), machine.requests.len()), (2, 4));
}

#[test]
fn steps_and_calls_are_counted_apart() {
    let six = |n: usize| {
        calls([0, 1, 2, 3, 4, 5].map(|m| (["a", "b", "c", "d", "e", "f"][m], "look", json!({"what": n * 6 + m}))))
    };
    let mut machine = Machine::new(Limits { max_steps: 3, ..wide() }, (0..10).map(six));
    let report = machine.go();
    assert_eq!((report.stop, report.steps, report.tool_calls), (Stop::MaxSteps, 3, 18));
    assert_eq!(machine.requests.len(), 4, "three steps, and the closing request");
}

#[test]
fn the_closing_request_keeps_the_tools_and_what_it_asks_for_is_not_run() {
    let replies = (0..20).map(|n| look(&format!("c{n}"), &n.to_string()));
    let mut machine = Machine::new(Limits { max_steps: 1, ..wide() }, replies);
    let report = machine.go();
    assert_eq!((report.stop, machine.ran.len(), machine.requests.len()), (Stop::MaxSteps, 1, 2));
    assert_eq!(machine.offered()[1], ["look", "mail", "pay"]);
    let told = json!(machine.requests[1].messages.last()).to_string();
    assert!(told.contains("No tool will be run any more") && told.contains("max_steps = 1"), "{told}");
    assert_eq!(report.not_attempted.len(), 1);
    assert!(report.answer.contains("max_steps = 1"), "{}", report.answer);
}

#[test]
fn a_limit_of_none_ends_the_loop_without_a_request_or_a_call() {
    let replies = || (0..20).map(|n| look(&format!("c{n}"), "x"));
    let mut machine = Machine::new(Limits { max_tokens: 0, ..wide() }, replies());
    assert_eq!((machine.go().stop, machine.requests.len()), (Stop::MaxTokens, 0));
    let mut machine = Machine::new(Limits { max_tool_calls: 0, ..wide() }, replies());
    assert_eq!((machine.go().stop, machine.ran.len()), (Stop::MaxToolCalls, 0));
    let mut machine = Machine::new(Limits { max_steps: 0, ..wide() }, replies());
    assert_eq!((machine.go().stop, machine.ran.len(), machine.requests.len()), (Stop::MaxSteps, 0, 1));
}

fn costing(input: u64, output: u64, cache: u64) -> impl Fn(usize) -> ModelReply {
    move |n| {
        ModelReply::from_converse(&json!({
            "output": {"message": {"role": "assistant", "content": [
                {"toolUse": {"toolUseId": format!("t{n}"), "name": "look", "input": {"what": "x"}}}
            ]}},
            "stopReason": "tool_use",
            "usage": {"inputTokens": input, "outputTokens": output, "cacheReadInputTokens": cache, "cacheWriteInputTokens": cache},
        }))
    }
}

#[test]
fn no_request_is_begun_that_the_tokens_do_not_suffice_for() {
    let mut machine = Machine::new(Limits { max_tokens: 1_000, ..wide() }, (0..20).map(costing(350, 50, 0)));
    let report = machine.go();
    assert_eq!((report.stop, machine.requests.len()), (Stop::MaxTokens, 2));
    assert!(report.usage.total() <= 1_000);
    let left = machine.requests[1].max_output_tokens.expect("a limit");
    assert!(left < 200, "of 1000 tokens 400 are spent and more than 400 will be: {left}");
}

#[test]
fn tokens_of_the_cache_count() {
    let mut machine = Machine::new(Limits { max_tokens: 1_000, ..wide() }, (0..20).map(costing(10, 10, 300)));
    machine.go();
    assert_eq!(machine.requests.len(), 1);
}

#[test]
fn calls_of_a_reply_that_used_up_the_tokens_are_not_run() {
    let mut machine = Machine::new(Limits { max_tokens: 500, ..wide() }, (0..20).map(costing(4_000, 1_000, 0)));
    let report = machine.go();
    assert_eq!((report.stop, machine.requests.len(), machine.ran.len()), (Stop::MaxTokens, 1, 0));
    assert_eq!((report.not_attempted.len(), report.resume), (1, Resume::BeginAnew), "it has outgrown its budget");
    assert!(report.answer.contains("max_tokens = 500"), "{}", report.answer);
}

#[test]
fn failed_requests_and_replies_that_do_not_tell_count_by_estimate() {
    let mut machine = Machine::new(Limits { max_tokens: 100_000, ..wide() }, [says("Hi.")]);
    machine.run.model_failed(model_fails(ModelFailureKind::Model));
    let once = machine.run.report().estimated.input_tokens;
    assert!(once > 10, "{once}");
    machine.replies = [ModelReply { usage: None, ..says("Hello.") }].into();
    let report = machine.go();
    assert!(report.estimated.input_tokens >= 2 * once && report.estimated.output_tokens > 0, "{report:?}");
}

#[test]
fn a_request_whose_driver_is_gone_counts_by_estimate_and_the_limit_sees_it() {
    let mut machine = Machine::new(wide(), [look("a", "x"), says("Hi.")]);
    machine.step();
    machine.step();
    assert_eq!(machine.run.report().estimated.total(), 0);
    machine.reload(); // the request after the look-up may have been sent, and its answer is lost
    let lost = machine.run.report().estimated.input_tokens;
    assert!(lost > 30, "the answer before has told 30, and a result has come since: {lost}");
    machine.reload();
    assert_eq!(machine.run.report().estimated.input_tokens, 2 * lost, "and so may the one of the driver after it");

    let mut machine = Machine::new(Limits { max_tokens: 1_000, ..wide() }, (0..20).map(costing(350, 50, 0)));
    machine.step();
    machine.step();
    machine.reload();
    assert_eq!((machine.go().stop, machine.requests.len()), (Stop::MaxTokens, 1), "400 are spent, and 400 are lost");
}

#[test]
fn a_turn_that_was_put_down_or_is_over_has_lost_no_request() {
    let mut machine = Machine::new(wide(), [look("a", "x"), says("Hi.")]);
    machine.run.interrupted();
    assert!(machine.run.put_down(), "which has to be saved");
    machine.reload();
    assert_eq!(machine.run.report().estimated.total(), 0);
    machine.step();
    machine.reload(); // with a call to be run
    machine.step();
    machine.step();
    machine.reload(); // at its end
    let report = machine.go();
    assert_eq!((report.stop, report.estimated.total()), (Stop::EndTurn, 0));
}

#[test]
fn the_cost_is_a_limit_too() {
    let prices = Prices { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75 };
    let limits = Limits { max_cost: Some(0.004), prices: Some(prices), ..wide() };
    let mut machine = Machine::new(limits, (0..20).map(costing(350, 50, 0)));
    let report = machine.go();
    assert_eq!((report.stop, machine.requests.len()), (Stop::MaxCost, 2), "each costs 0.0018");
    assert!(report.answer.contains("max_cost = 0.004"), "{}", report.answer);
}

#[test]
fn the_persons_next_message_begins_to_count_anew() {
    let replies = (0..20).map(|n| look(&format!("c{n}"), &n.to_string()));
    let mut machine = Machine::new(Limits { max_steps: 2, ..wide() }, replies);
    machine.go();
    machine.run.ask("Go on.");
    assert_eq!(machine.go().steps, 2);
    assert_eq!(machine.ran.len(), 4);
}

#[test]
fn text_beside_refused_calls_is_never_the_answer() {
    let promise = |n: usize| {
        let call = json!({"toolUse": {"toolUseId": format!("h{n}"), "name": "look", "input": {"what": "fail"}}});
        reply(json!([{"text": "I will send it right away."}, call]), "tool_use")
    };
    let mut machine = Machine::new(Limits { max_identical_failures: 2, ..wide() }, (0..20).map(promise));
    let report = machine.go();
    assert!(!report.answer.contains("right away") && !report.text().contains("right away"), "{}", report.text());
    assert_eq!((report.failed.len(), report.not_attempted.len()), (2, 2));
}

#[test]
fn a_limit_is_honoured_and_told_at_one() {
    let failing = |n: usize| calls([(format!("o{n}").as_str(), "look", json!({"what": "fail", "n": n}))]);
    let same = |n: usize| look(&format!("s{n}"), "fail");
    let cases = [
        (Limits { max_steps: 1, ..wide() }, "max_steps = 1", 2, 1),
        (Limits { max_tool_calls: 1, ..wide() }, "max_tool_calls = 1", 3, 1),
        (Limits { max_consecutive_failures: 1, ..wide() }, "max_consecutive_failures = 1", 3, 1),
        (Limits { max_identical_failures: 1, ..wide() }, "max_identical_failures = 1", 3, 1),
        (Limits { max_tokens: 1, ..wide() }, "max_tokens = 1", 0, 0),
    ];
    for (limits, words, requests, ran) in cases {
        let identical = limits.max_identical_failures == 1;
        let replies = (0..20).map(|n| if identical { same(n) } else { failing(n) });
        let mut machine = Machine::new(limits, replies);
        let report = machine.go();
        assert_eq!((machine.requests.len(), machine.ran.len()), (requests, ran), "{words}");
        assert!(report.answer.contains(words), "{words}: {}", report.answer);
    }
}
