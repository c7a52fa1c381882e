//! The driver with the real pipeline: on the embedded DynamoDB, or, where the clock is stopped, on one without a socket.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use action_group::{
    agent::{
        drive::{Conversations, Driver, Happening, Revision, SaveError},
        memory::InMemory,
        run::{AgentRun, Approvals},
        stop::{Resume, Stop},
        tools::Tools,
    },
    authorise::Decision,
    ending::Ending,
    idempotency::Verdict,
    tool::{Caller, Definition},
};
use futures_util::{FutureExt, future::BoxFuture};
use serde_json::{Value, json};

use crate::{
    machine::{calls, look, says, wide},
    support::Database,
    toolbox::without_mail,
    world::{Replies, World},
};

#[tokio::test(start_paused = true)]
async fn a_model_that_never_answers_leaves_time_for_the_handoff_and_is_asked_once() {
    let (world, model) = (World::stopped(), Replies::new([]));
    let start = tokio::time::Instant::now();
    let driven = world.drive(&model).await;
    assert_eq!((driven.report.stop, model.asked()), (Stop::Time, 1));
    assert!(start.elapsed() <= Duration::from_millis(59_500), "{:?}", start.elapsed());
}

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
async fn a_driver_killed_between_the_end_of_its_tools_and_the_save_is_followed_by_the_same_keys() {
    let database = Database::start().await;
    let batch = calls([("a", "pay", json!({"amount": 5})), ("b", "mail", json!({"to": "ada"}))]);
    let (world, model) = (World::on(database.store()), Replies::new([batch]));
    // Dies at the moment when the last of the calls has ended.
    let dead = {
        let ended = AtomicUsize::new(0);
        let mut watch = |happening: Happening<'_>| {
            assert!(
                !(matches!(happening, Happening::Ended(..)) && ended.fetch_add(1, Ordering::SeqCst) == 1),
                "killed"
            );
        };
        let (driver, run) = (world.driver(&model), world.run(wide()));
        let driving = driver.drive("c", run, None, &mut watch);
        std::panic::AssertUnwindSafe(driving).catch_unwind().await.is_err()
    };
    assert!(dead);
    let next = Replies::new([says("Done.")]);
    let driven = world.resume(&next).await;
    assert_eq!((driven.report.answer.as_str(), driven.report.done.len()), ("Done.", 2));
    assert_eq!((world.did("pay"), world.did("mail")), (1, 1), "each was done once");
    assert!(next.results().iter().all(|result| result.contains("earlier, equal call")), "{:?}", next.results());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_tools_of_today_do_not_take_may_have_been_done_by_those_of_yesterday() {
    let batch = calls([("a", "mail", json!({"to": "ada"}))]);
    let (mut world, model) = (World::stopped(), Replies::new([says("I see.")]));
    let mut run = world.run(wide());
    run.model_replied(batch);
    world.deploy(without_mail());
    run.equip(wide(), Tools::of(&world.toolbox), None, Approvals::Pause);
    run.resumed();
    run.ask("Stop. Was it sent?");
    let report = world.driver(&model).drive("c", run, None, &mut |_| {}).await.expect("it is saved").report;
    assert_eq!((report.unknown.len(), report.failed.len()), (1, 0), "{}", report.text());
    assert!(model.results().iter().all(|result| result.contains("outcome is unknown")), "{:?}", model.results());
}

#[tokio::test(start_paused = true)]
async fn a_dead_drivers_call_that_no_tool_takes_is_told_as_such_and_not_as_unknown() {
    let batch = calls([("a", "mail", json!({"to": "ada", "copy": "bob"})), ("b", "letter", json!({"to": "ada"}))]);
    let (world, model) = (World::stopped(), Replies::new([says("I see.")]));
    let mut run = world.run(wide());
    run.model_replied(batch);
    run.resumed();
    assert_eq!(run.report().unknown.len(), 1, "a name that no deployment had cannot have begun");
    run.ask("Stop. Was it sent?");
    let report = world.driver(&model).drive("c", run, None, &mut |_| {}).await.expect("it is saved").report;
    let kinds: Vec<_> = report.failed.iter().map(|item| item.outcome.as_str()).collect();
    assert_eq!((report.unknown.len(), kinds), (0, vec!["invalid_input", "unknown_tool"]), "{}", report.text());
    let results = model.results();
    assert!(results[0].contains("copy") && results[1].contains("There is no tool"), "{results:?}");
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
async fn a_dead_drivers_calls_are_told_by_their_records_when_the_person_has_moved_on() {
    let database = Database::start().await;
    let batch = calls([
        ("a", "mail", json!({"to": "ada"})),
        ("b", "mail", json!({"to": "hang"})),
        ("c", "pay", json!({"amount": 1})),
    ]);
    let (world, model) = (World::on(database.store()), Replies::new([batch]));
    // Dies when the first has ended; the second never does.
    let mut watch = |happening: Happening<'_>| assert!(!matches!(happening, Happening::Ended(..)), "killed");
    let (driver, run) = (world.driver(&model), world.run(wide()));
    let driving = driver.drive("c", run, None, &mut watch);
    assert!(std::panic::AssertUnwindSafe(driving).catch_unwind().await.is_err());
    let (mut run, revision) = world.conversations.load("c").await.expect("it is there").expect("a conversation");
    run.resumed();
    run.ask("Stop! What was sent?");
    let done_before = world.log.lock().unwrap().len();
    let next = Replies::new([says("I see.")]);
    let end = world.driver(&next).drive("c", run, Some(revision), &mut |_| {}).await.expect("it is saved");
    assert_eq!(world.log.lock().unwrap().len(), done_before, "nothing was run");
    assert!(end.report.unknown.iter().any(|item| item.arguments == json!({"to": "hang"})), "{:?}", end.report.unknown);
    assert_eq!(next.results().len(), 3);
}

/// A policy that cannot decide so often, and allows all that follows.
fn unsure(world: &mut World, times: usize) -> Arc<AtomicUsize> {
    let left = Arc::new(AtomicUsize::new(times));
    let counts = Arc::clone(&left);
    let policy = move |_: &Definition, _: &Value, _: &Caller| {
        let was = counts.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if was.is_ok() { Decision::Unavailable } else { Decision::Allow }
    };
    world.pipeline = world.pipeline.clone().authorised_by(policy);
    left
}

#[tokio::test]
async fn nothing_of_a_batch_runs_while_nobody_knows_whether_a_call_of_it_is_allowed() {
    let database = Database::start().await;
    let batch = calls([("b", "pay", json!({"amount": 500})), ("c", "mail", json!({"to": "ada"}))]);
    let mut world = World::on(database.store());
    unsure(&mut world, 1);
    let paused = world.drive(&Replies::new([batch])).await;
    assert_eq!((paused.report.stop, world.did("mail")), (Stop::AwaitingApproval, 0));
    assert!(paused.report.waiting[0].approval_id.is_none());
    let asked = world.resume(&Replies::new([])).await;
    assert_eq!((asked.report.stop, world.did("mail")), (Stop::AwaitingApproval, 0));
    assert!(asked.report.waiting[0].approval_id.is_some(), "now a person is asked");
}

#[tokio::test]
async fn a_dead_drivers_call_is_not_said_to_have_changed_nothing_where_the_policy_cannot_tell() {
    let database = Database::start().await;
    let (mut world, model) = (World::on(database.store()), Replies::new([calls([("a", "pay", json!({"amount": 5}))])]));
    let left = unsure(&mut world, 0);
    let mut watch = |happening: Happening<'_>| assert!(!matches!(happening, Happening::Ended(..)), "killed");
    let (driver, run) = (world.driver(&model), world.run(wide()));
    let driving = driver.drive("c", run, None, &mut watch);
    assert!(std::panic::AssertUnwindSafe(driving).catch_unwind().await.is_err());
    assert_eq!(world.did("pay"), 1);
    let (mut run, revision) = world.conversations.load("c").await.expect("it is there").expect("a conversation");
    run.resumed();
    run.ask("Stop! Was it paid?");
    left.store(1, Ordering::SeqCst);
    let next = Replies::new([says("I see.")]);
    let end = world.driver(&next).drive("c", run, Some(revision), &mut |_| {}).await.expect("it is saved");
    assert_eq!((end.report.unknown.len(), end.report.failed.len()), (1, 0));
    assert!(next.results()[0].contains("It may have been paid"), "{:?}", next.results());
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

/// A place where the save of this number fails so.
struct Refusing(InMemory, AtomicUsize, usize, fn() -> SaveError);

impl Conversations for Refusing {
    fn load<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<(AgentRun, Revision)>, SaveError>> {
        self.0.load(id)
    }

    fn save<'a>(
        &'a self,
        id: &'a str,
        run: &'a AgentRun,
        after: Option<Revision>,
    ) -> BoxFuture<'a, Result<Revision, SaveError>> {
        if self.1.fetch_add(1, Ordering::SeqCst) == self.2 {
            return async { Err((self.3)()) }.boxed();
        }
        self.0.save(id, run, after)
    }
}

#[tokio::test]
async fn no_call_of_a_reply_runs_that_was_not_saved() {
    let world = World::stopped();
    let model = Replies::new([calls([("a", "mail", json!({"to": "ada"}))]), says("Sent.")]);
    let conversations = Refusing(InMemory::default(), AtomicUsize::new(0), 1, || SaveError::Superseded);
    let driver = Driver { conversations: &conversations, ..world.driver(&model) };
    assert!(driver.drive("c", world.run(wide()), None, &mut |_| {}).await.is_err());
    assert_eq!((model.asked(), world.did("mail")), (1, 0));
}

#[tokio::test]
async fn what_was_done_is_told_although_it_could_not_be_saved() {
    let failures: [(fn() -> SaveError, Resume); 2] = [
        (|| SaveError::Unavailable("down".into()), Resume::Continue),
        (|| SaveError::TooLarge { size: 2, limit: 1 }, Resume::BeginAnew),
    ];
    for (error, resume) in failures {
        let world = World::stopped();
        let model = Replies::new([calls([("a", "mail", json!({"to": "ada"}))]), says("Sent.")]);
        let conversations = Refusing(InMemory::default(), AtomicUsize::new(0), 2, error);
        let driver = Driver { conversations: &conversations, ..world.driver(&model) };
        let report = driver.drive("c", world.run(wide()), None, &mut |_| {}).await.expect("a report").report;
        assert_eq!((report.stop, report.resume, report.done.len()), (Stop::NotSaved, resume, 1));
        assert_eq!(model.asked(), 1, "nothing more is begun");
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_process_ends_a_request_and_a_call_and_the_report_is_honest() {
    let (world, model) = (World::stopped(), Replies::new([]));
    let ends = world.ending.clone();
    let later = async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        ends.begin();
    };
    let (driven, ()) = tokio::join!(world.drive(&model), later);
    assert_eq!((driven.report.stop, model.asked()), (Stop::Interrupted, 1));

    let world = World::stopped();
    let model = Replies::new([calls([("a", "mail", json!({"to": "hang"}))])]);
    let (ends, pipeline) = (world.ending.clone(), world.pipeline.clone());
    let later = async move {
        tokio::time::sleep(Duration::from_secs(2)).await;
        ends.begin();
        pipeline.end();
    };
    let (driven, ()) = tokio::join!(world.drive(&model), later);
    assert_eq!((driven.report.stop, driven.report.unknown.len()), (Stop::Interrupted, 1));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_the_end_of_the_process_cuts_off_is_counted_and_a_resumed_turn_goes_on_from_it() {
    let (mut world, model) = (World::stopped(), Replies::new([]).stammering("Let me see: it is"));
    let ends = world.ending.clone();
    let later = async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        ends.begin();
    };
    let (driven, ()) = tokio::join!(world.drive(&model), later);
    let cut_off = driven.report.estimated;
    assert!(cut_off.input_tokens > 10, "{cut_off:?}");
    assert_eq!(cut_off.output_tokens, 6, "17 bytes were heard");
    world.ending = Ending::new();
    let resumed = world.resume(&Replies::new([says("Done.")])).await;
    assert_eq!((resumed.report.answer.as_str(), resumed.report.estimated), ("Done.", cut_off), "it is counted once");
}

#[tokio::test(start_paused = true)]
async fn what_was_heard_of_an_answer_that_never_ended_is_counted() {
    let (world, model) = (World::stopped(), Replies::new([]).stammering("Let me see: it is"));
    let report = world.drive(&model).await.report;
    assert_eq!((report.stop, report.estimated.output_tokens), (Stop::Time, 6));
    let (world, model) = (World::stopped(), Replies::new([]).stammering("Let me see: it is").hiding(31));
    let report = world.drive(&model).await.report;
    assert_eq!((report.stop, report.estimated.output_tokens), (Stop::Time, 16), "its reasoning has cost as much");
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_driver_was_killed_is_counted_when_the_turn_is_resumed() {
    let (world, model) = (World::stopped(), Replies::new([look("a", "x")]));
    let driver = world.driver(&model);
    let mut quiet = |_: Happening<'_>| {};
    let driving = driver.drive("c", world.run(wide()), None, &mut quiet);
    assert!(tokio::time::timeout(Duration::from_secs(5), driving).await.is_err());
    assert_eq!(model.asked(), 2, "it has died while the model was asked for the second time");
    let report = world.resume(&Replies::new([says("Done.")])).await.report;
    assert_eq!((report.answer.as_str(), report.usage.total()), ("Done.", 60), "two answers have told what they cost");
    assert!(report.estimated.input_tokens > 30, "{:?}", report.estimated);
}

#[tokio::test(start_paused = true)]
async fn with_the_time_up_in_the_middle_the_turn_is_resumed_where_it_stopped() {
    let mut world = World::stopped();
    world.time = Duration::from_secs(3);
    let model = Replies::new([look("a", "slow"), look("b", "slow"), look("c", "slow"), says("Late.")]);
    let first = world.drive(&model).await;
    assert_eq!(first.report.stop, Stop::Time);
    world.time = Duration::from_mins(1);
    let second = world.resume(&Replies::new([says("Done.")])).await;
    assert_eq!(second.report.answer, "Done.");
    assert!(second.report.done.len() >= 2, "what was done before is in the report of the turn");
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
