//! The table of `docs/time-and-retries.md`: every way in which an attempt can end, for every effect, through the pipeline,
//! by a clock that stands still while something runs. After a change on purpose:
//!
//! ```sh
//! UPDATE_DOCS=1 cargo test --test retry_table
//! ```

#![cfg(feature = "dev")]

mod support;

use std::{
    fs,
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, SystemTime},
};

use action_group::{
    call::{MAX_REQUESTS, Pipeline},
    clock::{Clock, Timestamp},
    idempotency::Store,
    outcome::{Changed, Failure, FailureKind, Outcome},
    tool::{CallContext, Caller, Effect, Policy, Success, Tool, ToolError, Toolbox},
};
use aws_sdk_dynamodb::{Client, config::retry::RetryConfig, types::AttributeValue};
use serde_json::{Value, json};
use support::{Scripted, within};
use tokio::time::Instant;

const EFFECTS: [Effect; 4] = [Effect::ReadOnly, Effect::Keyed, Effect::Atomic, Effect::Once];
const TIMEOUT: Duration = Duration::from_secs(5);
const BUDGET: Duration = Duration::from_secs(30);
/// The most that the waits between three attempts add to what the backend asks for.
const JITTER: Duration = Duration::from_millis(600);

/// Longer than any wait that may have begun.
const LONG: Duration = Duration::from_hours(1);

/// How an attempt ends.
#[derive(Clone, Copy)]
enum End {
    Fails(fn() -> ToolError),
    Hangs,
    Panics,
    Succeeds,
    /// Its client retries for as long as there is time, and then gives up.
    GivesUp,
}

use End::{Fails, GivesUp, Hangs, Panics, Succeeds};

fn busy() -> ToolError {
    ToolError::transient("Busy.")
}

fn lost() -> ToolError {
    ToolError::no_answer("Lost.")
}

/// The way to end, and the wait that it asks for.
const ENDS: [(&str, End, Duration); 17] = [
    ("turned away, nothing done (`transient`)", Fails(busy), Duration::ZERO),
    ("turned away, `Retry-After: 0`", Fails(|| busy().retry_after(Duration::ZERO)), Duration::ZERO),
    ("turned away, `Retry-After: 2`", Fails(|| busy().retry_after(Duration::from_secs(2))), Duration::from_secs(2)),
    ("turned away, `Retry-After: 60`, 30 s left", Fails(|| busy().retry_after(Duration::from_mins(1))), Duration::ZERO),
    ("turned away, already retried by its client", Fails(|| busy().already_retried()), Duration::ZERO),
    ("no clear answer (`no_answer`)", Fails(lost), Duration::ZERO),
    ("no clear answer, `Retry-After: 2`", Fails(|| lost().retry_after(Duration::from_secs(2))), Duration::from_secs(2)),
    ("no clear answer, already retried by its client", Fails(|| lost().already_retried()), Duration::ZERO),
    ("no end within the timeout", Hangs, Duration::ZERO),
    ("panic", Panics, Duration::ZERO),
    ("`?` on any error (`internal`)", Fails(|| ToolError::internal("SECRET")), Duration::ZERO),
    ("`internal`, nothing sent", Fails(|| ToolError::internal("SECRET").nothing_sent()), Duration::ZERO),
    ("`invalid_input`", Fails(|| ToolError::invalid_input("No.")), Duration::ZERO),
    ("`not_found`", Fails(|| ToolError::not_found("No.")), Duration::ZERO),
    ("`rejected`, a spent quota among it", Fails(|| ToolError::rejected("No.")), Duration::ZERO),
    ("`denied`", Fails(|| ToolError::denied("No.")), Duration::ZERO),
    ("no clear answer once, then turned away", Fails(busy), Duration::ZERO), // see `Ends`
];
const FIRST_LOST: usize = 16;

/// Do it.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// A tool whose every attempt ends in one way.
struct Ends {
    effect: Effect,
    end: End,
    first_is_lost: bool,
    requests: Arc<AtomicU32>,
}

impl Tool for Ends {
    const NAME: &'static str = "ends";
    type Args = Nothing;
    type Output = Value;

    fn policy(&self) -> Policy<Nothing> {
        Policy::new(self.effect)
            .timeout(TIMEOUT)
            .when_nothing_changed("Nothing was done.")
            .when_unknown("It is not known whether it was done.")
    }

    async fn call(&self, _: Nothing, context: &CallContext) -> Result<Success<Value>, ToolError> {
        let request = self.requests.fetch_add(1, Ordering::SeqCst);
        if self.first_is_lost && request == 0 {
            return Err(lost());
        }
        match self.end {
            End::Fails(error) => Err(error()),
            End::Hangs => pending().await,
            End::Panics => panic!("SECRET"),
            End::Succeeds => Ok(json!(1).into()),
            End::GivesUp => {
                tokio::time::sleep(context.time_left()).await;
                Err(lost().already_retried())
            }
        }
    }
}

/// A tool that is too busy for so many attempts, and notes what each was told of when the call began.
struct Notes(Arc<Mutex<Vec<SystemTime>>>);

impl Tool for Notes {
    const NAME: &'static str = "notes";
    type Args = Nothing;
    type Output = Value;

    fn policy(&self) -> Policy<Nothing> {
        Policy::new(Effect::ReadOnly)
    }

    async fn call(&self, _: Nothing, context: &CallContext) -> Result<Success<Value>, ToolError> {
        self.0.lock().unwrap().push(context.began());
        tokio::time::sleep(Duration::from_secs(1)).await;
        Err(ToolError::transient("Busy."))
    }
}

#[tokio::test(start_paused = true)]
async fn each_attempt_is_told_when_the_call_began_and_not_what_time_it_is() {
    let (told, table) = (Arc::default(), Scripted::default());
    let toolbox = Toolbox::builder().tool(Notes(Arc::clone(&told))).build().expect("a toolbox");
    let midnight = Timestamp::from_secs(1_796_083_199);
    let store = Store::new(table.client(), "records", Clock::following_tokio(midnight));
    run(&support::pipeline(toolbox, store)).await;
    assert_eq!(*told.lock().unwrap(), [SystemTime::from(midnight); 3]);
}

struct Ended {
    requests: u32,
    time: Duration,
    outcome: Outcome,
    record: &'static str,
}

async fn call(end: End, first_is_lost: bool, effect: Effect) -> Ended {
    let requests = Arc::default();
    let tool = Ends { effect, end, first_is_lost, requests: Arc::clone(&requests) };
    let table = Scripted::default();
    let pipeline = pipeline(tool, &table);
    let began = Instant::now();
    let outcome = run(&pipeline).await;
    let ended =
        Ended { requests: requests.load(Ordering::SeqCst), time: began.elapsed(), outcome, record: table.record() };
    let asked = table.requests();
    tokio::time::sleep(LONG).await;
    assert_eq!(
        (requests.load(Ordering::SeqCst), table.requests()),
        (ended.requests, asked),
        "somebody was asked later"
    );
    ended
}

fn pipeline(tool: Ends, table: &Scripted) -> Pipeline {
    let toolbox = Toolbox::builder().tool(tool).build().expect("a toolbox");
    let store = Store::new(table.client(), "records", Clock::system());
    support::pipeline(toolbox, store)
}

async fn run(pipeline: &Pipeline) -> Outcome {
    support::call(pipeline, within(BUDGET), Caller::default(), json!({})).await
}

/// What holds for every cell, whatever the table says.
fn check(name: &str, end: End, wait: Duration, effect: Effect, ended: &Ended) {
    let Ended { requests, time, outcome, record } = ended;
    let failure = outcome.failure().expect("a failure");
    assert!((1..=MAX_REQUESTS).contains(requests), "{name}, {effect:?}: {requests} requests");
    let each = if matches!(end, End::Hangs) { TIMEOUT } else { Duration::ZERO };
    let least = each * *requests + wait * (requests - 1);
    assert!((least..=least + JITTER).contains(time), "{name}, {effect:?}: {time:?} for {requests} requests");
    let closing = match failure.changed() {
        Changed::Nothing => "Nothing was done.",
        _ => "It is not known whether it was done.",
    };
    assert!(failure.message().ends_with(closing), "{name}, {effect:?}: {}", failure.message());
    assert!(!failure.message().contains("SECRET"), "{name}, {effect:?}");
    let kept = match (failure.changed(), effect) {
        (Changed::Nothing, Effect::ReadOnly | Effect::Atomic) => "none",
        (Changed::Nothing, _) => "released",
        (_, Effect::Once) => "unknown",
        _ => "given up",
    };
    assert_eq!(*record, kept, "{name}, {effect:?}");
}

#[tokio::test(start_paused = true)]
async fn the_table_of_the_document_is_what_happens() {
    std::panic::set_hook(Box::new(|_| {})); // the panics are meant
    let mut table = String::from("| an attempt ends with | `ReadOnly` | `Keyed` | `Atomic` | `Once` |\n");
    table += "| --- | --- | --- | --- | --- |\n";
    for (index, (name, end, wait)) in ENDS.into_iter().enumerate() {
        let mut row = vec![name.to_owned()];
        for effect in EFFECTS {
            let ended = call(end, index == FIRST_LOST, effect).await;
            check(name, end, wait, effect, &ended);
            let failure = ended.outcome.failure().expect("a failure");
            row.push(format!("{}: {}", ended.requests, failure.kind()));
        }
        table.extend(["| ", &row.join(" | "), " |\n"]);
    }
    assert_documented(&table);
}

/// Compares the table with the one in the document, or puts it there.
fn assert_documented(table: &str) {
    const MARKS: (&str, &str) = ("<!-- BEGIN generated: tests/retry_table.rs -->\n", "<!-- END generated -->");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/time-and-retries.md");
    let document = fs::read_to_string(path).expect("the document");
    let (before, rest) = document.split_once(MARKS.0).expect("the beginning of the table");
    let (documented, after) = rest.split_once(MARKS.1).expect("its end");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path, format!("{before}{}{table}{}{after}", MARKS.0, MARKS.1)).expect("the document can be written");
        return;
    }
    assert_eq!(documented, table, "UPDATE_DOCS=1 cargo test --test retry_table");
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_does_not_fit_is_told_and_not_begun() {
    let ended = call(Fails(|| busy().retry_after(Duration::from_mins(1))), false, Effect::Once).await;
    assert_eq!((ended.requests, ended.time), (1, Duration::ZERO));
    let message = ended.outcome.failure().expect("a failure").message();
    assert_eq!(message, "Busy. Try again in 60 seconds, not sooner. Nothing was done.");
}

/// A tool whose client retries by itself.
struct Asks(Client);

impl Tool for Asks {
    const NAME: &'static str = "asks";
    type Args = Nothing;
    type Output = Value;

    fn policy(&self) -> Policy<Nothing> {
        Policy::new(Effect::ReadOnly)
    }

    async fn call(&self, _: Nothing, _: &CallContext) -> Result<Success<Value>, ToolError> {
        let request = self.0.get_item().table_name("orders").key("id", AttributeValue::S(String::from("A")));
        request.send().await?;
        Ok(json!(1).into())
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_waits_to_ask_again_asks_nobody_after_the_deadline() {
    let table = Scripted::too_busy();
    let patient = RetryConfig::standard().with_max_attempts(99).with_initial_backoff(Duration::from_millis(100));
    let toolbox = Toolbox::builder().tool(Asks(table.client_that(patient))).build().expect("a toolbox");
    let pipeline = support::pipeline(toolbox, Store::new(table.client(), "records", Clock::system()));
    let outcome = support::call(&pipeline, within(Duration::from_secs(2)), Caller::default(), json!({})).await;
    let asked = table.requests();
    assert!(outcome.failure().is_some() && asked > 1, "{asked}");
    tokio::time::sleep(LONG).await;
    assert_eq!(table.requests(), asked);
}

/// Three requests of an AWS client, for each of three attempts, would be nine for one call.
#[tokio::test(start_paused = true)]
async fn a_client_that_gives_up_with_its_attempt_is_heard_and_not_set_to_its_retries_again() {
    for effect in EFFECTS {
        let ended = call(GivesUp, false, effect).await;
        assert_eq!(ended.requests, 1, "{effect:?}");
        assert!(ended.time < TIMEOUT, "{effect:?}: {:?}", ended.time);
        let message = ended.outcome.failure().expect("a failure").message();
        assert!(message.starts_with("Lost."), "{effect:?}: {message}");
    }
}

#[tokio::test(start_paused = true)]
async fn code_that_returns_pays_for_no_retries_while_its_commits_fail() {
    let requests = Arc::default();
    let tool = Ends { effect: Effect::Atomic, end: Succeeds, first_is_lost: false, requests: Arc::clone(&requests) };
    let pipeline = pipeline(tool, &Scripted::in_conflict());
    for _ in 0..50 {
        let outcome = run(&pipeline).await;
        assert_eq!(outcome.failure().map(Failure::kind), Some(FailureKind::Transient));
    }
    assert_eq!(requests.load(Ordering::SeqCst), 50 + 20, "the retries of the budget, and none besides");
}
