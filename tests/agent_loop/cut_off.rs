//! A turn that is cut off: by its time, by the end of the process, by a place that takes no save. What was done is told, and
//! what it has cost.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use action_group::{
    agent::{
        drive::{Conversations, Driver, Revision, SaveError},
        memory::InMemory,
        run::AgentRun,
        stop::{Resume, Stop},
    },
    ending::Ending,
};
use futures_util::{FutureExt, future::BoxFuture};
use serde_json::json;

use crate::{
    machine::{calls, look, says, wide},
    world::{Replies, World},
};

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

#[tokio::test(start_paused = true)]
async fn a_model_that_never_answers_leaves_time_for_the_handoff_and_is_asked_once() {
    let (world, model) = (World::stopped(), Replies::new([]));
    let start = tokio::time::Instant::now();
    let driven = world.drive(&model).await;
    assert_eq!((driven.report.stop, model.asked()), (Stop::Time, 1));
    assert!(start.elapsed() <= Duration::from_millis(59_500), "{:?}", start.elapsed());
}
