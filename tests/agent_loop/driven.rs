//! The driver with the real pipeline: on the embedded DynamoDB, or, where the clock is stopped, on one without a socket.

use std::time::Duration;

use action_group::{
    agent::{
        drive::{Happening, SaveError},
        stop::Stop,
    },
    authorise::Decision,
    idempotency::Verdict,
    tool::{Caller, Definition},
};
use serde_json::{Value, json};

use crate::{
    machine::{calls, look, says, wide},
    support::Database,
    world::{Replies, World},
};

#[tokio::test(start_paused = true)]
async fn a_tool_that_fails_at_once_does_not_cost_its_sibling_the_result_and_the_order_stays() {
    let batch = calls([
        ("a", "look", json!({"what": "slow"})),
        ("b", "look", json!({"what": "fail"})),
        ("c", "mail", json!({"to": "slow"})),
    ]);
    let (world, model) = (World::stopped(), Replies::new([batch, says("Done.")]));
    let start = tokio::time::Instant::now();
    world.drive(&model).await;
    let results = model.results();
    assert!(
        results[0].contains("slowly") && results[1].contains("error") && results[2].contains("slowly"),
        "{results:?}"
    );
    assert!(start.elapsed() < Duration::from_secs(2), "they run at once");
}

#[tokio::test(start_paused = true)]
async fn a_policy_is_asked_about_the_calls_of_the_loop() {
    let mut world = World::stopped();
    let no_mail = |tool: &Definition, _: &Value, caller: &Caller| match (tool.name, caller.conversation()) {
        ("mail", Some("c")) => Decision::deny("no-mail"),
        _ => Decision::Allow,
    };
    world.pipeline = world.pipeline.authorised_by(no_mail);
    let batch = calls([("a", "mail", json!({"to": "ada"})), ("b", "look", json!({"what": "x"}))]);
    let model = Replies::new([batch, says("I may not.")]);
    let report = world.drive(&model).await.report;
    assert!(model.results()[0].contains("The caller may not make this call."), "{:?}", model.results());
    assert_eq!((report.failed.len(), report.done.len(), world.did("mail"), world.did("look")), (1, 1, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_panics_hangs_or_returns_too_late_has_exactly_one_result() {
    let batch = calls([
        ("a", "look", json!({"what": "panic"})),
        ("b", "look", json!({"what": "hang"})),
        ("c", "mail", json!({"to": "hang"})),
        ("d", "mail", json!({"to": "panic"})),
        ("e", "look", json!({"what": "x"})),
    ]);
    let (world, model) = (World::stopped(), Replies::new([batch, says("Done.")]));
    let driven = world.drive(&model).await;
    assert_eq!((driven.report.answer.as_str(), model.results().len()), ("Done.", 5));
    assert_eq!((driven.report.unknown.len(), driven.report.failed.len(), driven.report.done.len()), (2, 2, 1));
}

#[tokio::test]
async fn what_a_model_can_mend_is_told_by_name() {
    let batch = calls([
        ("a", "look", json!({})),
        ("b", "pay", json!({"amount": "many"})),
        ("c", "lookup", json!({})),
        ("d", "look", json!("words")),
    ]);
    let (world, model) = (World::stopped(), Replies::new([batch, says("Done.")]));
    world.drive(&model).await;
    let results = model.results();
    assert!(results[0].contains("what") && results[1].contains("amount"), "{results:?}");
    assert!(["look", "mail", "pay"].iter().all(|name| results[2].contains(name)), "{results:?}");
    assert!(results[3].contains("must be an object"), "{results:?}");
}

#[tokio::test]
async fn results_and_errors_are_bounded_filled_and_without_secrets() {
    let words = ["huge", "blank", "leak", "nothing", "missing"];
    let batch = calls(words.map(|word| (word, "look", json!({ "what": word }))));
    let (world, model) = (World::stopped(), Replies::new([batch, says("Done.")]));
    world.drive(&model).await;
    let results = model.results();
    assert!(results.iter().all(|result| result.len() < 33_000), "{}", results[0].len());
    assert!(results[0].contains("too large"), "{}", results[0]);
    assert!(!results[2].contains("s3cret") && !results[2].contains("db.internal"), "{}", results[2]);
    assert!(results[4].contains("Order 15003 does not exist."), "{}", results[4]);
    assert_eq!(world.did("look"), 5, "an order number with 500 in it is no reason to try again");
}

#[tokio::test]
async fn an_effect_whose_answer_was_lost_is_not_repeated_and_the_model_is_told_so() {
    let mail = |id| calls([(id, "mail", json!({"to": "lost"}))]);
    let database = Database::start().await;
    let (world, model) = (World::on(database.store()), Replies::new([mail("a"), mail("b"), says("I do not know.")]));
    let driven = world.drive(&model).await;
    assert_eq!(world.did("mail"), 1);
    assert!(model.results()[0].contains("may have been sent"), "{:?}", model.results());
    assert_eq!(driven.report.unknown.len(), 2);
    assert!(driven.report.text().contains("Not known whether it was done"));
}

#[tokio::test]
async fn a_batch_pauses_for_a_person_and_each_call_runs_once_after_the_approval() {
    let database = Database::start().await;
    let batch = calls([
        ("a", "look", json!({"what": "x"})),
        ("b", "pay", json!({"amount": 500})),
        ("c", "mail", json!({"to": "ada"})),
    ]);
    let (world, model) = (World::on(database.store()), Replies::new([batch]));
    let paused = world.drive(&model).await;
    assert_eq!((paused.report.stop, world.log.lock().unwrap().len()), (Stop::AwaitingApproval, 0));
    let id = paused.report.waiting[0].approval_id.clone().expect("an id");
    let still = world.resume(&Replies::new([])).await;
    assert_eq!(still.report.stop, Stop::AwaitingApproval);
    database.store().decide_approval(&id, "ada", Verdict::Approve).await.expect("it waits");
    let driven = world.resume(&Replies::new([says("Done.")])).await;
    assert_eq!((driven.report.stop, driven.report.done.len()), (Stop::EndTurn, 3));
    assert_eq!((world.did("look"), world.did("pay"), world.did("mail")), (1, 1, 1));
}

#[tokio::test]
async fn after_a_refusal_the_paused_batch_goes_on_with_what_may_run() {
    let database = Database::start().await;
    let batch = calls([("b", "pay", json!({"amount": 500})), ("c", "mail", json!({"to": "ada"}))]);
    let (world, model) = (World::on(database.store()), Replies::new([batch]));
    let paused = world.drive(&model).await;
    let id = paused.report.waiting[0].approval_id.clone().expect("an id");
    database.store().decide_approval(&id, "ada", Verdict::Deny).await.expect("it waits");
    let next = Replies::new([says("It was refused.")]);
    world.resume(&next).await;
    assert!(next.results()[0].contains("refused"), "{:?}", next.results());
    assert_eq!((world.did("pay"), world.did("mail")), (0, 1));
}

#[tokio::test]
async fn a_call_that_needs_no_approval_does_not_pause() {
    let database = Database::start().await;
    let model = Replies::new([calls([("b", "pay", json!({"amount": 5}))]), says("Paid.")]);
    assert_eq!(World::on(database.store()).drive(&model).await.report.answer, "Paid.");
}

#[tokio::test]
async fn nothing_of_a_batch_runs_while_nobody_knows_whether_a_call_of_it_is_allowed() {
    let database = Database::start().await;
    let batch = calls([("b", "pay", json!({"amount": 500})), ("c", "mail", json!({"to": "ada"}))]);
    let mut world = World::on(database.store());
    world.unsure(1);
    let paused = world.drive(&Replies::new([batch])).await;
    assert_eq!((paused.report.stop, world.did("mail")), (Stop::AwaitingApproval, 0));
    assert!(paused.report.waiting[0].approval_id.is_none());
    let asked = world.resume(&Replies::new([])).await;
    assert_eq!((asked.report.stop, world.did("mail")), (Stop::AwaitingApproval, 0));
    assert!(asked.report.waiting[0].approval_id.is_some(), "now a person is asked");
}

#[tokio::test]
async fn of_two_drivers_of_one_conversation_only_one_goes_on() {
    let world = World::stopped();
    let (first, second) = (Replies::new([look("a", "x"), says("First.")]), Replies::new([says("Second.")]));
    let (one, two) = (world.driver(&first), world.driver(&second));
    let (mut quiet, mut quiet_too) = (|_: Happening<'_>| {}, |_: Happening<'_>| {});
    let (one, two) = tokio::join!(
        one.drive("c", world.run(wide()), None, &mut quiet),
        two.drive("c", world.run(wide()), None, &mut quiet_too),
    );
    assert!(one.is_ok());
    assert!(matches!(two, Err(SaveError::Superseded)), "{two:?}");
    assert_eq!(second.asked(), 0, "it stops before it does anything");
}

#[tokio::test]
async fn what_happens_is_told_as_it_happens() {
    let (world, model) = (World::stopped(), Replies::new([look("a", "x"), says("Found.")]));
    let mut told = Vec::new();
    let mut watch = |happening: Happening<'_>| {
        told.push(match happening {
            Happening::Asked(_) => String::from("asked"),
            Happening::Heard(text) => format!("heard {text}"),
            Happening::Began(calls) => format!("began {}", calls.len()),
            Happening::Ended(call, _) => format!("ended {}", call.id),
            _ => String::from("other"),
        });
    };
    world.driver(&model).drive("c", world.run(wide()), None, &mut watch).await.expect("it is saved");
    assert_eq!(told, ["asked", "began 1", "ended a", "asked", "heard Found."]);
}
