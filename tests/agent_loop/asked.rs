//! A tool asks for a person in its own code: the loop knows it once the call ran, and waits after its batch.

use std::sync::atomic::{AtomicUsize, Ordering};

use action_group::{
    agent::{
        drive::{Conversations, Driver, Happening, Revision, SaveError},
        memory::InMemory,
        run::{AgentRun, Approvals, Next},
        stop::{Resume, Stop},
    },
    call::Standing,
    idempotency::Verdict,
    outcome::{Changed, Failure, FailureKind, Outcome},
};
use futures_util::{FutureExt, future::BoxFuture};
use serde_json::json;

use crate::{
    machine::{Machine, asks, calls, fails, look, says, success, tools, wide},
    support::Database,
    toolbox::without_mail,
    world::{Replies, World},
};

fn batch() -> [action_group::agent::model::ModelReply; 2] {
    let batch = calls([
        ("a", "mail", json!({"to": "boss"})),
        ("b", "look", json!({"what": "x"})),
        ("c", "mail", json!({"to": "ada"})),
    ]);
    [batch, says("Done.")]
}

/// A batch of which the first call has asked for a person, and the others have ended.
fn asked() -> Machine {
    let mut machine = Machine::new(wide(), batch());
    machine.outcome = Box::new(|call| if call.id == "a" { asks("mail#4f1c") } else { success() });
    machine.standing = Box::new(|_| Standing::Waits(String::from("mail#4f1c")));
    machine
}

fn ran(machine: &Machine) -> Vec<&str> {
    machine.ran.iter().map(|call| call.id.as_str()).collect()
}

#[test]
fn a_call_that_asks_by_itself_pauses_the_loop_after_its_batch_and_the_answer_names_its_id() {
    let mut machine = asked();
    let report = machine.go();
    assert_eq!((report.stop, report.resume), (Stop::AwaitingApproval, Resume::Decide));
    assert_eq!((report.done.len(), report.waiting.len(), report.not_attempted.len()), (2, 1, 0));
    assert_eq!(report.tool_calls, 3, "it has run to ask");
    assert_eq!(report.waiting[0].approval_id.as_deref(), Some("mail#4f1c"));
    assert!(report.answer.contains("(approval mail#4f1c)"), "{}", report.answer);
    assert_eq!(machine.requests.len(), 1, "the model is not asked before the person has decided");
}

#[test]
fn what_ran_beside_it_keeps_its_result_and_only_the_call_that_asked_runs_again() {
    let mut machine = asked();
    machine.go();
    for _ in 0..2 {
        machine.reload();
        assert_eq!(machine.go().stop, Stop::AwaitingApproval, "nobody has decided");
    }
    assert_eq!(ran(&machine), ["a", "b", "c"], "while it waits nothing runs");
    machine.standing = Box::new(|_| Standing::Approved);
    machine.outcome = Box::new(|_| success());
    machine.reload();
    let report = machine.go();
    assert_eq!((report.answer.as_str(), report.done.len()), ("Done.", 3));
    assert_eq!(ran(&machine), ["a", "b", "c", "a"]);
    let results = machine.results();
    assert_eq!(results.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["a", "b", "c"], "in order");
}

#[test]
fn of_two_that_asked_neither_runs_before_both_are_decided() {
    let mut machine = asked();
    machine.outcome = Box::new(|call| if call.tool == "mail" { asks(&format!("mail#{}", call.id)) } else { success() });
    assert_eq!(machine.go().waiting.len(), 2);
    machine.standing =
        Box::new(|call| if call.id == "a" { Standing::Approved } else { Standing::Waits(String::from("mail#c")) });
    machine.reload();
    assert_eq!((machine.go().waiting.len(), ran(&machine).len()), (1, 3));
    machine.standing = Box::new(|_| Standing::Approved);
    machine.outcome = Box::new(|_| success());
    machine.reload();
    assert_eq!((machine.go().answer.as_str(), ran(&machine)), ("Done.", vec!["a", "b", "c", "a", "c"]));
}

#[test]
fn another_message_instead_of_a_decision_answers_it_as_not_approved_and_leaves_the_others_as_they_ended() {
    let mut machine = asked();
    machine.go();
    machine.reload();
    machine.run.ask("Never mind.");
    machine.replies = [says("All right.")].into();
    let report = machine.go();
    assert_eq!((ran(&machine).len(), report.done.len(), report.not_attempted.len()), (3, 2, 1));
    let results = machine.results();
    assert!(results[0].1.contains("had to approve it and has not"), "{results:?}");
    assert!(results[1].1.contains("it") && results[2].1.contains("it") && results.len() == 3, "{results:?}");
    assert!(!results[1].1.contains("not run"), "{results:?}");
}

#[test]
fn after_a_doubt_a_call_that_is_not_approved_is_unknown_and_not_called_unchanged() {
    let in_doubt = || {
        let failure = Failure::new(FailureKind::OutcomeUnknown, "It waits.").with_changed(Changed::Unknown, "?");
        Outcome::Failure(failure.that_waits().awaiting(&"mail#4f1c"))
    };
    let mut machine = asked();
    machine.outcome = Box::new(move |call| if call.id == "a" { in_doubt() } else { success() });
    let report = machine.go();
    assert_eq!((report.stop, report.waiting.len()), (Stop::AwaitingApproval, 1));
    assert!(report.answer.contains("(approval mail#4f1c): An earlier attempt may have done it."), "{}", report.answer);
    machine.reload();
    machine.run.equip(wide(), action_group::agent::tools::Tools::of(&without_mail()), None, Approvals::Pause);
    let mut gone = Machine::of(machine.run.clone(), [says("I see.")]);
    gone.standing = Box::new(|_| Standing::Refused(Failure::new(FailureKind::UnknownTool, "There is no such tool.")));
    gone.outcome = Box::new(|_| fails(FailureKind::UnknownTool));
    assert_eq!(gone.go().unknown.len(), 1, "its tool is gone by now");
    machine.run.ask("Never mind.");
    machine.replies = [says("All right.")].into();
    assert_eq!(machine.go().unknown.len(), 1);
    let result = &machine.results()[0].1;
    assert!(result.contains("may have been sent") && !result.contains("Nothing was changed"), "{result}");
}

#[test]
fn a_call_that_needs_approval_but_has_no_record_to_give_it_on_is_answered() {
    let mut machine = Machine::new(wide(), [look("a", "x"), says("Sorry.")]);
    machine.outcome = Box::new(|_| fails(FailureKind::ApprovalRequired)); // without a key
    let report = machine.go();
    assert_eq!(report.answer, "Sorry.", "nobody could ever decide on it");
    assert_eq!((report.waiting.len(), report.failed.len()), (0, 1), "nothing waits");
}

#[test]
fn where_nobody_can_decide_the_report_has_the_key_all_the_same() {
    let mut run = AgentRun::new(wide(), tools()).with_approvals(Approvals::Answer);
    run.ask("Write.");
    let mut machine = Machine::of(run, batch());
    machine.outcome = Box::new(|_| asks("mail#4f1c"));
    let report = machine.go();
    assert_eq!((report.answer.as_str(), report.waiting[0].approval_id.as_deref()), ("Done.", Some("mail#4f1c")));
}

#[test]
fn an_approved_call_for_which_the_time_does_not_suffice_is_not_called_unknown() {
    let mut machine = asked();
    machine.go();
    machine.reload();
    machine.standing = Box::new(|_| Standing::Approved);
    machine.step();
    assert!(matches!(machine.run.next(machine.time), Next::RunTools(calls) if calls.len() == 1));
    let report = machine.run.report();
    assert_eq!((report.unknown.len(), report.not_attempted.len()), (0, 1), "it has not begun");
}

#[test]
fn a_call_of_a_dead_driver_that_waits_is_not_approved_when_the_person_has_moved_on() {
    let mut machine = asked();
    machine.step();
    machine.reload(); // its tools may have run
    machine.run.ask("Never mind.");
    machine.replies = [says("All right.")].into();
    let report = machine.go();
    assert_eq!((report.unknown.len(), report.not_attempted.len()), (0, 3), "{}", report.text());
    assert!(machine.results()[0].1.contains("had to approve it and has not"), "{:?}", machine.results());
}

#[tokio::test]
async fn an_approved_call_runs_once_with_the_key_under_which_it_has_asked() {
    let database = Database::start().await;
    let (world, model) = (World::on(database.store()), Replies::new([batch()[0].clone()]));
    let paused = world.drive(&model).await.report;
    assert_eq!((paused.stop, paused.done.len(), world.did("mail")), (Stop::AwaitingApproval, 2, 2));
    let id = paused.waiting[0].approval_id.clone().expect("an id");
    assert_eq!(world.resume(&Replies::new([])).await.report.waiting[0].approval_id.as_ref(), Some(&id));
    assert_eq!(world.did("mail"), 2, "a tool that nobody has answered is not asked again");
    database.store().decide_approval(&id, "ada", Verdict::Approve).await.expect("it waits");
    let next = Replies::new([says("Done.")]);
    let driven = world.resume(&next).await;
    assert_eq!((driven.report.stop, driven.report.done.len()), (Stop::EndTurn, 3));
    let keys: Vec<_> = world.log.lock().unwrap().iter().filter(|(_, to, _)| to == "boss").cloned().collect();
    assert!(keys.len() == 2 && keys[0] == keys[1], "once to ask, once to send: {keys:?}");
    assert_eq!((world.did("look"), next.results().len()), (1, 3));
}

#[tokio::test]
async fn a_driver_that_dies_before_it_has_saved_that_a_call_waits_is_followed_by_the_same_pause() {
    let database = Database::start().await;
    let (world, model) = (World::on(database.store()), Replies::new([batch()[0].clone()]));
    let ended = AtomicUsize::new(0);
    let is_last = |happening: &Happening<'_>| {
        let is_end = matches!(happening, Happening::Ended(..));
        is_end && ended.fetch_add(1, Ordering::SeqCst) == 2
    };
    world.killed_at(&model, is_last).await;
    let paused = world.resume(&Replies::new([])).await.report;
    assert_eq!((paused.stop, paused.done.len()), (Stop::AwaitingApproval, 2));
    assert_eq!(world.did("mail"), 2, "each was run once");
    let id = paused.waiting[0].approval_id.clone().expect("an id");
    database.store().decide_approval(&id, "ada", Verdict::Deny).await.expect("it waits");
    let next = Replies::new([says("It was refused.")]);
    assert_eq!(world.resume(&next).await.report.failed[0].outcome, "denied");
    assert!(next.results()[0].contains("refused"), "{:?}", next.results());
    assert_eq!(world.did("mail"), 2);
}

#[tokio::test]
async fn a_call_that_waits_after_an_attempt_without_answer_keeps_its_doubt() {
    let database = Database::start().await;
    let batch = || calls([("a", "pay", json!({"amount": 13}))]);
    let (world, model) = (World::on(database.store()), Replies::new([batch()]));
    let paused = world.drive(&model).await.report;
    assert_eq!((paused.stop, paused.waiting.len(), world.did("pay")), (Stop::AwaitingApproval, 1, 2));
    let next = Replies::new([batch(), says("I see.")]);
    let again = world.say("Never mind.", &next).await.report;
    assert!(next.results()[0].contains("It may have been paid"), "{:?}", next.results());
    assert_eq!((again.stop, again.unknown.len(), again.waiting.len()), (Stop::AwaitingApproval, 1, 1));
    let id = again.waiting[0].approval_id.clone().expect("an id");
    database.store().decide_approval(&id, "ada", Verdict::Approve).await.expect("it waits");
    let done = world.resume(&Replies::new([says("Paid.")])).await.report;
    assert_eq!((done.answer.as_str(), done.done.len(), world.did("pay")), ("Paid.", 1, 3));
}

/// A place for conversations before whose save of this number the process dies.
struct DyingAt<'a>(&'a InMemory, AtomicUsize);

impl Conversations for DyingAt<'_> {
    fn load<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<(AgentRun, Revision)>, SaveError>> {
        self.0.load(id)
    }

    fn save<'a>(
        &'a self,
        id: &'a str,
        run: &'a AgentRun,
        after: Option<Revision>,
    ) -> BoxFuture<'a, Result<Revision, SaveError>> {
        let left = self.1.fetch_sub(1, Ordering::SeqCst);
        if left == 0 { async { Err(SaveError::Superseded) }.boxed() } else { self.0.save(id, run, after) }
    }
}

#[tokio::test]
async fn wherever_a_driver_dies_a_call_that_asks_is_made_once_after_its_approval_and_the_others_once() {
    const SAVES: usize = 8;
    let mut deaths = 0;
    for at in 1..=SAVES {
        let database = Database::start().await;
        let world = World::on(database.store());
        let dying = DyingAt(&world.conversations, AtomicUsize::new(at));
        let (first, second) = (Replies::new([batch()[0].clone()]), Replies::new([says("Done.")]));
        world.conversations.save("c", &world.run(wide()), None).await.expect("it is saved");
        let mut model = &first;
        let report = loop {
            let (mut run, revision) = dying.load("c").await.expect("it is there").expect("a conversation");
            run.resumed();
            // A reply that was lost is asked for again.
            let again = Replies::new([batch()[0].clone()]);
            let asks_anew = run.messages().len() == 1 && model.asked() > 0;
            let model_now = if asks_anew { &again } else { model };
            let driver = Driver { conversations: &dying, ..world.driver(model_now) };
            match driver.drive("c", run, Some(revision), &mut |_| {}).await.map(|driven| driven.report) {
                Ok(report) if report.stop == Stop::AwaitingApproval => {
                    let id = report.waiting[0].approval_id.clone().expect("an id");
                    database.store().decide_approval(&id, "ada", Verdict::Approve).await.expect("it waits");
                    model = &second;
                }
                Ok(report) => break report,
                Err(_) if second.asked() > 0 => break world.resume(&Replies::new([says("Done.")])).await.report,
                Err(_) => deaths += 1,
            }
        };
        assert_eq!((report.answer.as_str(), report.done.len()), ("Done.", 3), "dead at {at}");
        let sent = |to: &str| world.log.lock().unwrap().iter().filter(|(_, whom, _)| whom == to).count();
        assert_eq!((sent("boss"), sent("ada")), (2, 1), "once to ask, once to send; dead at {at}");
    }
    assert!(deaths >= 4, "they die at {deaths} points");
}
