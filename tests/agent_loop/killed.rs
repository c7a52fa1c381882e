//! A driver that has died, and the one that follows it: what was begun is told by its records, and done once.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use action_group::agent::{drive::Happening, run::Approvals, tools::Tools};
use futures_util::FutureExt;
use serde_json::json;

use crate::{
    machine::{calls, look, says, wide},
    support::Database,
    toolbox::without_mail,
    world::{Replies, World},
};

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
async fn a_dead_drivers_calls_are_told_by_their_records_when_the_person_has_moved_on() {
    let database = Database::start().await;
    let batch = calls([
        ("a", "mail", json!({"to": "ada"})),
        ("b", "mail", json!({"to": "hang"})),
        ("c", "pay", json!({"amount": 1})),
    ]);
    let (world, model) = (World::on(database.store()), Replies::new([batch]));
    // Dies when the first has ended; the second never does.
    world.killed_at(&model, |happening| matches!(happening, Happening::Ended(..))).await;
    let done_before = world.log.lock().unwrap().len();
    let next = Replies::new([says("I see.")]);
    let end = world.say("Stop! What was sent?", &next).await;
    assert_eq!(world.log.lock().unwrap().len(), done_before, "nothing was run");
    assert!(end.report.unknown.iter().any(|item| item.arguments == json!({"to": "hang"})), "{:?}", end.report.unknown);
    assert_eq!(next.results().len(), 3);
}

#[tokio::test]
async fn a_dead_drivers_call_is_not_said_to_have_changed_nothing_where_the_policy_cannot_tell() {
    let database = Database::start().await;
    let (mut world, model) = (World::on(database.store()), Replies::new([calls([("a", "pay", json!({"amount": 5}))])]));
    let left = world.unsure(0);
    world.killed_at(&model, |happening| matches!(happening, Happening::Ended(..))).await;
    assert_eq!(world.did("pay"), 1);
    left.store(1, Ordering::SeqCst);
    let next = Replies::new([says("I see.")]);
    let end = world.say("Stop! Was it paid?", &next).await;
    assert_eq!((end.report.unknown.len(), end.report.failed.len()), (1, 0));
    assert!(next.results()[0].contains("It may have been paid"), "{:?}", next.results());
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
