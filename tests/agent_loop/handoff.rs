//! The report: nothing that happened is missing from it, and nothing is in it that did not.

use action_group::{
    agent::{limits::Limits, report::Report, stop::Stop},
    outcome::{Changed, Failure, FailureKind, Outcome},
};
use serde_json::{Value, json};

use crate::machine::{Machine, calls, fails, says, success, wide};

fn mixed() -> (Machine, Report) {
    let batch = calls([
        ("a", "look", json!({"what": "x"})),
        ("b", "look", json!({"what": "y"})),
        ("c", "mail", json!({"to": "ada"})),
        ("d", "pay", json!({"amount": 5})),
    ]);
    let mut machine = Machine::new(Limits { max_tool_calls: 3, ..wide() }, [batch, says("Everything is done!")]);
    machine.outcome = Box::new(|call| match call.id.as_str() {
        "a" => success(),
        "b" => Outcome::Failure(Failure::new(FailureKind::NotFound, "There is no y.")),
        _ => Outcome::Failure(
            Failure::new(FailureKind::OutcomeUnknown, "The server did not answer.")
                .with_changed(Changed::Unknown, "The mail may have been sent."),
        ),
    });
    let report = machine.go();
    (machine, report)
}

#[test]
fn each_call_stands_where_it_belongs() {
    let (_, report) = mixed();
    assert_eq!(report.stop, Stop::MaxToolCalls);
    let names =
        |items: &[action_group::agent::report::Item]| items.iter().map(|item| item.tool.clone()).collect::<Vec<_>>();
    assert_eq!(names(&report.done), ["look"]);
    assert_eq!(names(&report.failed), ["look"]);
    assert_eq!(names(&report.unknown), ["mail"]);
    assert_eq!(names(&report.not_attempted), ["pay"]);
}

#[test]
fn the_text_says_it_all_and_the_models_words_are_marked_as_unchecked() {
    let (_, report) = mixed();
    for words in [
        "max_tool_calls = 3",
        "Done:",
        "There is no y.",
        "The mail may have been sent.",
        "Not attempted:",
        "pay {\"amount\":5}",
    ] {
        assert!(report.answer.contains(words), "{words}: {}", report.answer);
    }
    assert!(!report.answer.contains("Everything is done!"));
    assert!(report.text().contains("which nobody has checked:\nEverything is done!"));
}

#[test]
fn the_json_is_read_back_as_the_same_report() {
    let (_, report) = mixed();
    let json = report.to_json();
    assert_eq!((&json["stop"], &json["resume"]), (&json!("max_tool_calls"), &json!("say")));
    assert_eq!(json["unknown"][0]["arguments"], json!({"to": "ada"}));
    assert_eq!(serde_json::from_value::<Report>(json).expect("a report"), report);
}

#[test]
fn what_somebody_else_is_at_is_not_said_to_have_changed_nothing_until_its_end_is_known() {
    let mail = |id| calls([(id, "mail", json!({"to": "ada"}))]);
    let busy = || Outcome::Failure(Failure::new(FailureKind::InProgress, "Another call is at it."));
    let mut machine = Machine::new(wide(), [mail("a"), says("It is on its way.")]);
    machine.outcome = Box::new(move |_| busy());
    let report = machine.go();
    assert_eq!((report.unknown.len(), report.failed.len()), (1, 0));
    assert!(report.text().contains("Not known whether it was done:\n- mail"), "{}", report.text());

    let mut machine = Machine::new(wide(), [mail("a"), mail("b"), mail("c"), says("Sent.")]);
    machine.outcome = Box::new(move |call| if call.id == "c" { success() } else { busy() });
    let report = machine.go();
    assert_eq!((report.unknown.len(), report.failed.len(), report.done.len()), (0, 2, 1));
}

#[test]
fn an_answer_of_the_model_does_not_hide_what_is_unknown() {
    let mut machine = Machine::new(wide(), [calls([("c", "mail", json!({"to": "ada"}))]), says("Sent!")]);
    machine.outcome = Box::new(|_| {
        Outcome::Failure(
            Failure::new(FailureKind::OutcomeUnknown, "No answer.").with_changed(Changed::Unknown, "Perhaps."),
        )
    });
    let report = machine.go();
    assert_eq!(report.answer, "Sent!");
    assert!(report.text().contains("Not known whether it was done:\n- mail"), "{}", report.text());
}

fn pay(id: &str, amount: u32) -> action_group::agent::model::ModelReply {
    calls([(id, "pay", json!({ "amount": amount }))])
}

#[test]
fn an_answer_of_the_model_does_not_hide_an_effect_that_failed() {
    let mut machine = Machine::new(wide(), [pay("a", 5), says("It has been paid!")]);
    machine.outcome = Box::new(|_| fails(FailureKind::Rejected));
    let report = machine.go();
    assert_eq!(report.answer, "It has been paid!");
    let text = report.text();
    assert!(text.starts_with("It has been paid!\n\n"), "{text}");
    assert!(text.contains("Failed, nothing was changed:\n- pay {\"amount\":5}: It did not work."), "{text}");
    let read_back: Report = serde_json::from_value(report.to_json()).expect("a report");
    assert_eq!(read_back.text(), text);
}

#[test]
fn an_answer_of_the_model_does_not_hide_an_effect_that_was_not_attempted() {
    let limits = Limits { max_identical_failures: 1, ..wide() };
    let both = calls([("b", "pay", json!({"amount": 5})), ("c", "look", json!({"what": "x"}))]);
    let mut machine = Machine::new(limits, [pay("a", 5), both, says("It has been paid!")]);
    machine.outcome = Box::new(|call| if call.tool == "pay" { fails(FailureKind::Rejected) } else { success() });
    let report = machine.go();
    assert_eq!(report.stop, Stop::EndTurn);
    assert!(report.text().contains("Not attempted:\n- pay"), "{}", report.text());
}

#[test]
fn an_effect_that_an_equal_call_has_mended_and_a_read_that_failed_are_not_held_against_the_answer() {
    let reads = calls([("c", "look", json!({"what": "fail"}))]);
    let mut machine = Machine::new(wide(), [pay("a", 5), pay("b", 5), reads, says("It has been paid.")]);
    machine.outcome = Box::new(|call| if call.id == "b" { success() } else { fails(FailureKind::Transient) });
    let report = machine.go();
    assert_eq!((report.failed.len(), report.done.len()), (2, 1));
    assert_eq!(report.text(), "It has been paid.");

    let mut machine = Machine::new(wide(), [pay("a", 5), pay("b", 6), says("It has been paid.")]);
    machine.outcome = Box::new(|call| if call.id == "b" { success() } else { fails(FailureKind::Transient) });
    assert!(machine.go().text().contains("Failed"), "another amount mends nothing");
}

#[test]
fn a_report_of_many_and_large_calls_stays_readable() {
    let replies = (0..40).map(|n| calls([(format!("r{n}").as_str(), "look", json!({"what": "x".repeat(10_000)}))]));
    let report = Machine::new(Limits { max_steps: 30, ..wide() }, replies).go();
    assert!(report.answer.len() < 4_000 && report.answer.contains("and 20 more"), "{}", report.answer);
    assert!(report.to_json().to_string().len() < 20_000);
}

#[test]
fn nothing_that_people_or_models_wrote_is_shown_by_debug() {
    let (machine, report) = mixed();
    let shown = format!("{:?} {report:?} {:?} {:?}", machine.run, report.unknown, machine.ran);
    for secret in ["ada", "Please help", "Everything", "There is no y"] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
}

#[test]
fn a_run_in_the_middle_can_report_too() {
    let mut machine = Machine::new(wide(), [calls([("c", "mail", json!({"to": "ada"}))])]);
    machine.step();
    assert_eq!(machine.run.report().not_attempted.len(), 1);
    machine.reload();
    let report = machine.run.report();
    assert_eq!((report.unknown.len(), report.stop), (1, Stop::Interrupted));
    let _: Value = report.to_json();
}
