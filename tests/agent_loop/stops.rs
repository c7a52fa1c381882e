//! Each stop reason of Bedrock, by name, and the failures of the model's call.

use std::time::Duration;

use action_group::{
    agent::{
        limits::{Limits, TimeLeft},
        model::{ModelFailureKind, ModelReply},
        run::Next,
        stop::{Resume, Stop},
    },
    outcome::FailureKind,
};
use serde_json::{Value, json};

use crate::machine::{Machine, calls, fails, look, model_fails, reply, says, wide};

fn pay(id: &str) -> Value {
    json!({"toolUse": {"toolUseId": id, "name": "pay", "input": {"amount": 5}}})
}

#[test]
fn a_call_that_was_cut_off_is_not_run_and_the_model_is_told_once() {
    for (reason, stop) in [
        ("max_tokens", Stop::CutOff),
        ("stop_sequence", Stop::CutOff),
        ("malformed_tool_use", Stop::MalformedReply),
        ("malformed_model_output", Stop::MalformedReply),
    ] {
        let mut machine = Machine::new(wide(), [reply(json!([pay("a")]), reason), says("All done.")]);
        let report = machine.go();
        assert_eq!((report.answer.as_str(), machine.ran.len()), ("All done.", 0), "{reason}");
        let told = json!(machine.requests[1].messages[2]).to_string();
        assert!(told.contains("was not run") && told.contains("the turn ends"), "{told}");
        let mut machine = Machine::new(wide(), [reply(json!([pay("a")]), reason)]);
        let report = machine.go();
        assert_eq!((report.stop, machine.requests.len(), machine.ran.len()), (stop, 2, 0), "{reason}");
        assert_eq!(report.not_attempted.len(), 2);
    }
}

#[test]
fn a_text_that_was_cut_off_is_asked_for_once_more_and_shorter() {
    let cut = || reply(json!([{"text": "Once upon a"}]), "max_tokens");
    let mut machine = Machine::new(wide(), [cut(), says("Short.")]);
    assert_eq!(machine.go().answer, "Short.");
    let report = Machine::new(wide(), [cut()]).go();
    assert_eq!((report.stop, report.answer.contains("Once upon")), (Stop::CutOff, false));
}

#[test]
fn a_guardrail_a_filter_and_a_full_context_end_the_turn_and_nothing_runs() {
    for (reason, stop) in [
        ("guardrail_intervened", Stop::GuardrailIntervened),
        ("content_filtered", Stop::ContentFiltered),
        ("model_context_window_exceeded", Stop::ModelContextWindowExceeded),
        ("something_new", Stop::UnknownStopReason),
        ("", Stop::UnknownStopReason),
    ] {
        let content = json!([{"text": "Blocked."}, pay("a")]);
        let mut machine = Machine::new(wide(), [reply(content, reason)]);
        let report = machine.go();
        assert_eq!((report.stop, machine.requests.len(), machine.ran.len()), (stop, 1, 0), "{reason}");
        assert_eq!(report.not_attempted.len(), 1);
        assert!(report.answer.contains("Not attempted"), "{}", report.answer);
    }
}

#[test]
fn a_stop_reason_that_is_not_known_is_named_readably_and_bounded() {
    let long = format!("paused\u{1b}[31m\n{}", "x".repeat(10_000));
    for (reason, named) in [
        ("something_new", "not known here: \"something_new\"."),
        (" ", "stopped without a reason."),
        (long.as_str(), "not known here: \"paused[31mxxx"),
    ] {
        let mut machine = Machine::new(wide(), [reply(json!([pay("a")]), reason)]);
        machine.go();
        machine.reload();
        let answer = machine.go().answer;
        assert!(answer.contains(named), "{answer}");
        assert!(answer.len() < 500 && !answer.contains('\u{1b}'), "{answer}");
    }
}

#[test]
fn a_guardrails_own_text_is_the_answer() {
    let report =
        Machine::new(wide(), [reply(json!([{"text": "I cannot talk about that."}]), "guardrail_intervened")]).go();
    assert_eq!(report.answer, "I cannot talk about that.");
}

#[test]
fn an_end_of_turn_that_holds_calls_runs_them() {
    let mut machine = Machine::new(wide(), [reply(json!([pay("a")]), "end_turn"), says("Paid.")]);
    assert_eq!((machine.go().answer.as_str(), machine.ran.len()), ("Paid.", 1));
}

#[test]
fn a_stop_for_tools_without_any_is_no_answer() {
    let mut machine = Machine::new(wide(), [reply(json!([{"text": "Let me look."}]), "tool_use"), says("Found.")]);
    assert_eq!(machine.go().answer, "Found.");
    let report = Machine::new(wide(), [reply(json!([{"text": "Let me look."}]), "tool_use")]).go();
    assert_eq!(report.stop, Stop::MalformedReply);
}

#[test]
fn a_blank_answer_is_asked_for_once_more_and_is_no_crash() {
    for content in
        [json!([{"text": " "}]), json!([]), json!([{"reasoningContent": {"reasoningText": {"text": "Hm."}}}])]
    {
        let mut machine = Machine::new(wide(), [look("a", "x"), reply(content.clone(), "end_turn"), says("Found.")]);
        assert_eq!(machine.go().answer, "Found.", "{content}");
        let mut machine = Machine::new(wide(), [look("a", "x"), reply(content, "end_turn")]);
        let report = machine.go();
        assert_eq!((report.stop, machine.requests.len()), (Stop::EmptyAnswer, 3));
        assert!(!report.answer.trim().is_empty());
    }
}

#[test]
fn a_model_that_may_be_asked_again_is_asked_once_more_and_runs_no_tool_twice() {
    let mut machine = Machine::new(wide(), [look("a", "x"), says("Found.")]);
    for _ in 0..2 {
        assert!(machine.step().is_none());
    }
    machine.run.model_failed(model_fails(ModelFailureKind::Model));
    assert!(matches!(machine.run.next(machine.time), Next::CallModel(_)));
    let mut given_up = machine.run.clone();
    given_up.model_failed(model_fails(ModelFailureKind::Model));
    let Next::End(report) = given_up.next(machine.time) else { panic!("asked a third time") };
    assert_eq!((report.stop, report.resume, report.done.len()), (Stop::ModelFailed, Resume::Continue, 1));
    assert!(report.answer.contains("The model is not there."), "{}", report.answer);
    assert_eq!((machine.go().answer.as_str(), machine.ran.len()), ("Found.", 1));
}

#[test]
fn any_other_failure_of_the_model_ends_the_work_and_can_be_resumed() {
    for kind in [
        ModelFailureKind::Throttled,
        ModelFailureKind::Unavailable,
        ModelFailureKind::Timeout,
        ModelFailureKind::Invalid,
        ModelFailureKind::Denied,
    ] {
        let mut machine = Machine::new(wide(), [says("Hello.")]);
        machine.run.model_failed(model_fails(kind));
        let stop = if kind == ModelFailureKind::Timeout { Stop::Time } else { Stop::ModelFailed };
        assert_eq!(machine.go().stop, stop);
        machine.reload();
        assert_eq!(machine.go().answer, "Hello.");
    }
}

#[test]
fn with_too_little_time_nothing_is_begun_and_the_turn_can_be_resumed() {
    let mut machine =
        Machine::new(Limits { shortest_step: Duration::from_secs(2), ..wide() }, [look("a", "x"), says("Found.")]);
    machine.time = TimeLeft(Duration::from_millis(1_999));
    assert_eq!((machine.go().stop, machine.requests.len()), (Stop::Time, 0));
    machine.time = TimeLeft(Duration::from_secs(2));
    assert!(machine.step().is_none());
    machine.time = TimeLeft(Duration::from_secs(1));
    let report = machine.go();
    assert_eq!((report.stop, report.not_attempted.len(), machine.ran.len()), (Stop::Time, 1, 0));
    machine.time = TimeLeft(Duration::from_secs(2));
    machine.reload();
    assert_eq!(machine.go().answer, "Found.");
}

#[test]
fn an_interruption_begins_nothing_new_and_is_taken_back_by_resuming() {
    let mut machine = Machine::new(wide(), [calls([("a", "pay", json!({"amount": 5}))]), says("Paid.")]);
    assert!(machine.step().is_none());
    machine.run.interrupted();
    let report = machine.go();
    assert_eq!((report.stop, report.resume, machine.ran.len()), (Stop::Interrupted, Resume::Continue, 0));
    machine.reload();
    assert_eq!(machine.go().answer, "Paid.");
}

#[test]
fn a_reply_that_nobody_waits_for_any_more_changes_nothing() {
    let mut machine = Machine::new(wide(), [says("Hello.")]);
    machine.go();
    machine.run.model_replied(look("late", "x"));
    machine.run.tools_ended(vec![(0, fails(FailureKind::Rejected))]);
    assert_eq!(machine.run.messages().len(), 2);
}

#[test]
fn a_stop_reason_at_a_limit_does_not_take_its_name() {
    let replies: Vec<ModelReply> = vec![look("a", "x"), reply(json!([{"text": "cut"}]), "max_tokens")];
    assert_eq!(Machine::new(Limits { max_steps: 1, ..wide() }, replies).go().stop, Stop::MaxSteps);
}
