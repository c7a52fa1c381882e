//! Where conversations are kept: two drivers never run one turn, and a dead one is followed.

#![cfg(feature = "dev")] // the embedded DynamoDB

mod support;

use std::time::Duration;

use action_group::{
    agent::{
        conversation::Message,
        drive::{Conversations, Revision, SaveError},
        limits::Limits,
        run::AgentRun,
        store::{ConversationTable, Lease},
        tools::Tools,
    },
    call::Deadline,
    clock::{Clock, Timestamp},
    idempotency::TAKE_OVER_MARGIN,
};
use aws_sdk_dynamodb::types::AttributeValue;
use support::{Database, FaultyProxy, LOST, client};
use tokio::time::Instant;

const DAY: Duration = Duration::from_hours(24);
/// What an invocation has.
const TIME: Duration = Duration::from_secs(30);
const NOW: u64 = 1_800_000_000_000;
const TABLE: &str = "conversations";

/// A table that takes it for so much later than `NOW`.
fn table(client: &aws_sdk_dynamodb::Client, later: Duration) -> ConversationTable {
    let clock = Clock::following_tokio(Timestamp::from_millis(NOW).plus(later));
    ConversationTable::new(client.clone(), TABLE, clock, DAY)
}

fn lease(database: &Database, later: Duration) -> Lease {
    table(database.client(), later).lease(deadline())
}

fn deadline() -> Deadline {
    Deadline::new(Some(Instant::now() + TIME), Duration::ZERO, TIME)
}

fn run(texts: &[&str]) -> AgentRun {
    let message = |(index, text): (usize, &&str)| match index % 2 {
        0 => Message::user(*text),
        _ => serde_json::from_value(serde_json::json!({"role": "assistant", "content": [{"text": text}]})).unwrap(),
    };
    let messages = texts.iter().enumerate().map(message).collect();
    AgentRun::new(Limits::new(1_000), Tools::default()).with_history(messages)
}

async fn loaded(lease: &Lease) -> Option<(AgentRun, Revision)> {
    lease.load("c-1").await.expect("an answer")
}

#[tokio::test]
async fn what_is_saved_is_loaded_by_the_next_driver() {
    let database = Database::start().await;
    let long = "é".repeat(300_000); // more than an item holds
    let runs = [run(&["Hello"]), run(&["Hello", "What?"]), run(&["Hello", "What?", &long]), run(&["Hello"])];
    let lease = self::lease(&database, Duration::ZERO);
    assert!(loaded(&lease).await.is_none());
    let mut after = None;
    for run in runs {
        after = Some(lease.save("c-1", &run, after).await.expect("it is saved"));
        let later = self::lease(&database, TIME * 2);
        let (found, revision) = loaded(&later).await.expect("a conversation");
        assert_eq!(found.messages(), run.messages());
        assert!(Some(revision) > after, "who loads, changes hands");
        // The first driver is fenced off now; the next save is the next driver's.
        assert!(matches!(lease.save("c-1", &run, after).await, Err(SaveError::Superseded)));
        later.save("c-1", &run, Some(revision)).await.expect("it is saved");
        later.release("c-1").await;
        let (_, revision) = loaded(&lease).await.expect("it is free");
        after = Some(revision);
    }
}

#[tokio::test]
async fn of_two_drivers_that_begin_one_conversation_one_wins() {
    let database = Database::start().await;
    let (one, two) = (lease(&database, Duration::ZERO), lease(&database, Duration::ZERO));
    assert!(loaded(&one).await.is_none() && loaded(&two).await.is_none());
    let run = run(&["Hello"]);
    let (one, two) = tokio::join!(one.save("c-1", &run, None), two.save("c-1", &run, None));
    let (won, lost) = if one.is_ok() { (one, two) } else { (two, one) };
    assert_eq!(won.expect("one wins"), Revision(1));
    assert!(matches!(lost, Err(SaveError::Superseded)), "{lost:?}");
}

#[tokio::test]
async fn a_living_driver_is_left_alone_and_a_dead_one_is_followed() {
    let database = Database::start().await;
    let first = lease(&database, Duration::ZERO).held_by("the first");
    let saved = first.save("c-1", &run(&["Hello"]), None).await.expect("it is saved");
    let refused = lease(&database, TIME + Duration::from_secs(1)).load("c-1").await;
    let Err(SaveError::Held { by, until }) = refused else { panic!("{:?}", refused.map(|_| ())) };
    assert_eq!(by, "the first");
    let ends = Timestamp::from_millis(NOW).plus(TIME + TAKE_OVER_MARGIN);
    assert!(until <= ends && until.plus(Duration::from_secs(10)) > ends, "{until:?} {ends:?}");
    let saved = first.save("c-1", &run(&["Hello", "Yes?"]), Some(saved)).await.expect("nobody has disturbed it");

    let second = lease(&database, TIME + TAKE_OVER_MARGIN + Duration::from_secs(1));
    let (_, revision) = loaded(&second).await.expect("a conversation");
    let late = first.save("c-1", &run(&["Hello", "Late"]), Some(saved)).await;
    assert!(matches!(late, Err(SaveError::Superseded)), "{late:?}");
    let found = second.save("c-1", &run(&["Hello", "Yes?", "Go on"]), Some(revision)).await;
    assert!(found.is_ok(), "{found:?}");
}

#[tokio::test]
async fn one_driver_may_load_again_what_it_holds() {
    let database = Database::start().await;
    let lease = self::lease(&database, Duration::ZERO);
    lease.save("c-1", &run(&["Hello"]), None).await.expect("it is saved");
    assert!(loaded(&lease).await.is_some());
}

#[tokio::test]
async fn a_save_whose_answer_is_lost_is_no_lost_race() {
    let database = Database::start().await;
    let proxy = FaultyProxy::start(&database.endpoint()).await;
    let sdk = action_group::dev::sdk_config(&proxy.endpoint(), action_group::dev::database::http_client());
    let lease = table(&aws_sdk_dynamodb::Client::new(&sdk), Duration::ZERO).lease(deadline());
    let mut after = None;
    for run in [run(&["Hello"]), run(&["Hello", "Yes?"])] {
        proxy.misbehave("TransactWriteItems", [LOST]);
        after = Some(lease.save("c-1", &run, after).await.expect("it is saved"));
    }
    proxy.misbehave("UpdateItem", [LOST]);
    assert!(loaded(&lease).await.is_some());
}

#[tokio::test]
async fn a_request_that_the_host_repeats_is_known_again_also_when_others_have_followed() {
    let database = Database::start().await;
    let lease = |request: &str, later| self::lease(&database, later).for_request(request);
    let first = lease("r-1", Duration::ZERO);
    first.save("c-1", &run(&["Hello"]), None).await.expect("it is saved");
    for (request, is_repeated) in [("r-1", true), ("r-2", false), ("", false), ("r-1", true), ("r-2", true)] {
        let next = lease(request, TIME * 2);
        assert!(!next.is_repeated(), "nothing is known before it is loaded");
        let (run, revision) = loaded(&next).await.expect("a conversation");
        assert_eq!(next.is_repeated(), is_repeated, "{request:?}");
        next.save("c-1", &run, Some(revision)).await.expect("it is saved");
        next.release("c-1").await;
    }
}

#[tokio::test]
async fn a_table_that_does_not_answer_is_told_as_such() {
    let nowhere = client("http://127.0.0.1:9");
    let lease = table(&nowhere, Duration::ZERO).lease(deadline());
    assert!(matches!(lease.load("c-1").await, Err(SaveError::Unavailable(_))));
    assert!(matches!(lease.save("c-1", &run(&["Hello"]), None).await, Err(SaveError::Unavailable(_))));
}

#[tokio::test]
async fn an_expired_conversation_is_none_and_its_id_can_be_used_again() {
    let database = Database::start().await;
    let first = lease(&database, Duration::ZERO);
    let after = first.save("c-1", &run(&["Hello", "Yes?", "Old"]), None).await.expect("it is saved");
    let second = lease(&database, DAY + Duration::from_secs(1));
    assert!(loaded(&second).await.is_none());
    second.save("c-1", &run(&["Hello"]), None).await.expect("it begins anew");
    let (found, _) = loaded(&second).await.expect("a conversation");
    assert_eq!(found.messages().len(), 1);
    assert!(first.save("c-1", &run(&["Hello"]), Some(after)).await.is_err());
}

#[tokio::test]
async fn what_is_too_large_is_refused_and_nothing_of_it_is_written() {
    let database = Database::start().await;
    let lease = self::lease(&database, Duration::ZERO);
    let after = lease.save("c-1", &run(&["Hello"]), None).await.expect("it is saved");
    let refused = lease.save("c-1", &run(&["Hello", &"x".repeat(3_600_000)]), Some(after)).await;
    assert!(matches!(refused, Err(SaveError::TooLarge { .. })), "{refused:?}");
    assert_eq!(loaded(&lease).await.expect("a conversation").0.messages().len(), 1);
}

#[tokio::test]
async fn a_damaged_conversation_is_not_driven() {
    let database = Database::start().await;
    let lease = self::lease(&database, Duration::ZERO);
    lease.save("c-1", &run(&["Hello"]), None).await.expect("it is saved");
    let step = AttributeValue::N(String::from("100"));
    let delete = database.client().delete_item().table_name(TABLE).key("step", step);
    delete.key("conversation", AttributeValue::S(String::from("c-1"))).send().await.expect("it is deleted");
    assert!(matches!(lease.load("c-1").await, Err(SaveError::Unreadable)));
}
