//! A person has to decide: the whole batch waits, and no sibling runs before.

use action_group::{
    agent::{
        limits::TimeLeft,
        run::{AgentRun, Approvals, Next},
        stop::{Resume, Stop},
        tools::Tools,
    },
    call::Standing,
    outcome::FailureKind,
};
use serde_json::json;

use crate::{
    machine::{Machine, asks, calls, fails, says, success, tools, wide},
    toolbox::{only_look, without_mail},
};

fn batch() -> [action_group::agent::model::ModelReply; 2] {
    let batch = calls([
        ("a", "look", json!({"what": "x"})),
        ("b", "pay", json!({"amount": 500})),
        ("c", "mail", json!({"to": "ada"})),
    ]);
    [batch, says("Done.")]
}

fn waiting() -> Machine {
    let mut machine = Machine::new(wide(), batch());
    machine.standing = Box::new(|_| Standing::Waits(String::from("pay#4f1c")));
    machine
}

#[test]
fn nothing_of_a_batch_runs_before_the_person_has_decided_and_each_call_runs_once_after() {
    let mut machine = waiting();
    let report = machine.go();
    assert_eq!((report.stop, report.resume, machine.ran.len()), (Stop::AwaitingApproval, Resume::Decide, 0));
    assert_eq!(report.waiting.len(), 1);
    assert_eq!(report.waiting[0].approval_id.as_deref(), Some("pay#4f1c"));
    assert_eq!((report.not_attempted.len(), report.tool_calls), (2, 0), "nothing has run");
    machine.reload();
    assert_eq!(machine.go().stop, Stop::AwaitingApproval, "asked again, it still waits");
    machine.reload();
    machine.standing = Box::new(|_| Standing::Approved);
    assert_eq!(machine.go().answer, "Done.");
    assert_eq!(machine.ran.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(machine.requests.len(), 2);
}

#[test]
fn after_a_refusal_every_call_of_the_batch_has_its_result() {
    let mut machine = waiting();
    machine.go();
    machine.reload();
    machine.standing = Box::new(|_| Standing::Denied);
    machine.outcome = Box::new(|call| if call.tool == "pay" { fails(FailureKind::Denied) } else { success() });
    assert_eq!(machine.go().answer, "Done.");
    assert_eq!(machine.results().len(), 3);
}

#[test]
fn another_message_instead_of_a_decision_is_not_approved() {
    let mut machine = waiting();
    machine.go();
    machine.reload();
    machine.run.ask("Never mind. What is the time?");
    machine.replies = [says("Five.")].into();
    assert_eq!(machine.go().answer, "Five.");
    assert_eq!(machine.ran.len(), 0);
    let results = machine.results();
    assert!(results[1].1.contains("had to approve it and has not"), "{results:?}");
    assert!(results.iter().all(|(_, text)| text.contains("not run")), "{results:?}");
}

#[test]
fn a_call_that_waited_and_for_which_nobody_is_needed_any_more_has_its_result_too() {
    let mut unwatched = json!(tools());
    unwatched["facts"]["pay"]["may_need_approval"] = json!(false);
    let gone = Tools::of(&only_look());
    for now in [serde_json::from_value(unwatched).expect("tools"), gone] {
        let mut machine = waiting();
        machine.go();
        machine.reload();
        machine.run.equip(wide(), now, None, Approvals::Pause);
        machine.outcome = Box::new(|call| if call.tool == "pay" { fails(FailureKind::UnknownTool) } else { success() });
        let report = machine.go();
        assert_eq!((report.answer.as_str(), report.waiting.len(), report.failed.len()), ("Done.", 0, 1));
        assert_eq!(machine.results().iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    }
}

#[test]
fn where_the_record_cannot_be_read_nothing_runs_on_a_guess() {
    let mut machine = waiting();
    machine.standing = Box::new(|_| Standing::Unavailable);
    let report = machine.go();
    assert_eq!((report.stop, machine.ran.len()), (Stop::AwaitingApproval, 0));
    let message = report.waiting[0].message.as_deref().unwrap_or_default();
    assert!(message.contains("could not be found out") && message.contains("Resume the turn"), "{message}");
    assert!(report.answer.contains(message), "{}", report.answer);
    machine.reload();
    machine.standing = Box::new(|_| Standing::Clear);
    assert_eq!(machine.go().answer, "Done.");
}

/// Nobody has been asked, so nobody has not answered.
#[test]
fn no_person_is_said_not_to_have_approved_where_nobody_knows_whether_one_had_to() {
    let mut unread = waiting();
    unread.standing = Box::new(|_| Standing::Unavailable);
    unread.go();
    let mut unasked = waiting();
    unasked.step();
    assert!(matches!(unasked.run.next(TimeLeft::UNLIMITED), Next::AskApproval(_)), "the model has answered");
    for mut machine in [unread, unasked] {
        machine.reload();
        machine.run.ask("Never mind. What is the time?");
        machine.replies = [says("Five.")].into();
        machine.go();
        let results = machine.results();
        assert!(results.iter().all(|(_, text)| text.contains("not run") && !text.contains("has not.")), "{results:?}");
    }
}

#[test]
fn a_batch_that_nobody_has_to_approve_is_not_asked_about() {
    let mut machine = Machine::new(wide(), [calls([("a", "look", json!({"what": "x"}))]), says("Done.")]);
    machine.standing = Box::new(|_| panic!("asked"));
    assert_eq!(machine.go().answer, "Done.");
}

#[test]
fn where_nobody_can_decide_the_call_is_answered_and_the_loop_goes_on() {
    let mut run = AgentRun::new(wide(), tools()).with_approvals(Approvals::Answer);
    run.ask("Pay.");
    let mut machine = Machine::of(run, batch());
    machine.standing = Box::new(|_| panic!("asked"));
    machine.outcome = Box::new(|_| asks("pay#4f1c"));
    let report = machine.go();
    assert_eq!((report.answer.as_str(), report.waiting.len(), report.failed.len()), ("Done.", 3, 0));
}

#[test]
fn a_driver_that_died_at_its_calls_is_followed_by_the_same_calls() {
    let mut machine = Machine::new(wide(), [calls([("a", "mail", json!({"to": "ada"}))]), says("Sent.")]);
    machine.step();
    let before = format!("{:?}", machine.run.next(machine.time));
    machine.reload();
    assert_eq!(format!("{:?}", machine.run.next(machine.time)), before);
    assert_eq!(machine.go().answer, "Sent.");
}

#[test]
fn calls_of_a_dead_driver_are_looked_up_and_not_run_when_the_person_has_moved_on() {
    type Told = (Standing, &'static str);
    let cases: [Told; 4] = [
        (Standing::Done(json!({"sent": "it"})), "sent"),
        (Standing::Clear, "before it was begun. No mail was sent."),
        (Standing::Unknown, "outcome is unknown. The mail may have been sent."),
        (Standing::Unavailable, "outcome is unknown"),
    ];
    for (standing, words) in cases {
        let mut machine = Machine::new(wide(), [calls([("a", "mail", json!({"to": "ada"}))]), says("I see.")]);
        machine.step();
        machine.reload();
        machine.run.ask("Stop. Was it sent?");
        machine.standing = Box::new(move |_| standing.clone());
        let report = machine.go();
        assert_eq!((report.answer.as_str(), machine.ran.len()), ("I see.", 0));
        assert!(machine.results()[0].1.contains(words), "{:?}", machine.results());
        let told = report.done.len() + report.failed.len() + report.unknown.len();
        assert_eq!(told, 1, "the turn's report has it too");
    }
}

#[test]
fn a_driver_that_let_go_in_time_leaves_nothing_unknown() {
    let mut machine = Machine::new(wide(), [calls([("a", "mail", json!({"to": "ada"}))]), says("I see.")]);
    machine.step();
    assert!(machine.run.put_down());
    machine.reload();
    machine.run.ask("Stop.");
    machine.go();
    assert!(machine.results()[0].1.contains("not run"), "{:?}", machine.results());
}

/// A driver that died at a mail, followed by a deployment that does not have the tool.
fn died_at_a_mail_that_is_gone() -> Machine {
    let mut machine = Machine::new(wide(), [calls([("a", "mail", json!({"to": "ada"}))]), says("I see.")]);
    machine.step();
    machine.run.equip(wide(), Tools::of(&without_mail()), None, Approvals::Pause);
    machine.reload();
    machine
}

#[test]
fn of_a_call_that_may_have_begun_nobody_says_that_nothing_was_changed_when_its_tool_is_gone() {
    let report = died_at_a_mail_that_is_gone().run.report();
    assert_eq!((report.unknown.len(), report.not_attempted.len()), (1, 0), "before anything else");

    let mut looked_up = died_at_a_mail_that_is_gone();
    looked_up.run.ask("Stop. Was it sent?");
    let mut run_again = died_at_a_mail_that_is_gone();
    run_again.outcome = Box::new(|_| fails(FailureKind::UnknownTool));
    for machine in [&mut looked_up, &mut run_again] {
        let report = machine.go();
        assert_eq!((report.unknown.len(), report.failed.len()), (1, 0), "{}", report.text());
        let result = &machine.results()[0].1;
        assert!(result.contains("outcome is unknown. The mail may have been sent."), "{result}");
    }
}

#[test]
fn a_call_that_was_put_down_before_its_tool_went_has_changed_nothing() {
    let mut machine = Machine::new(wide(), [calls([("a", "mail", json!({"to": "ada"}))]), says("I see.")]);
    machine.step();
    assert!(machine.run.put_down());
    machine.run.equip(wide(), Tools::of(&without_mail()), None, Approvals::Pause);
    machine.reload();
    machine.outcome = Box::new(|_| fails(FailureKind::UnknownTool));
    let report = machine.go();
    assert_eq!((report.unknown.len(), report.failed.len()), (0, 1), "{}", report.text());
}

#[test]
fn a_name_that_no_deployment_had_is_answered_as_such_after_a_death_too() {
    let mut machine = Machine::new(wide(), [calls([("a", "lookup", json!({}))]), says("I see.")]);
    machine.step();
    machine.run.equip(wide(), tools(), None, Approvals::Pause);
    machine.reload();
    machine.outcome = Box::new(|_| fails(FailureKind::UnknownTool));
    let report = machine.go();
    assert_eq!((report.unknown.len(), report.failed.len()), (0, 1), "{}", report.text());
}
