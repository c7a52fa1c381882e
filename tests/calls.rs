//! Calls of one invocation are in each other's way as little as can be: none holds up another, whatever it does to its
//! thread, and none outlives the invocation.
#![cfg(feature = "dev")]

mod support;

use std::{
    io::Result as IoResult,
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

use action_group::{
    authorise::Decision,
    call::Pipeline,
    clock::Clock,
    handler::Handler,
    idempotency::Store,
    runtime::Invocation,
    telemetry::Telemetry,
    tool::{CallContext, Caller, Definition, Effect, Policy, Success, Tool, ToolError, Toolbox, Write},
};
use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem};
use serde_json::{Value, json};
use support::{Database, Faults, Lines, terms};
use tokio::sync::oneshot;

/// A gate that blocks the threads of those who come.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn block(&self) {
        let (open, opened) = &*self.0;
        drop(opened.wait_while(open.lock().unwrap(), |open| !*open));
    }
}

/// Opens the gate when the test is over.
struct Opener(Gate);

impl Drop for Opener {
    fn drop(&mut self) {
        let (open, opened) = &*self.0.0;
        *open.lock().unwrap() = true;
        opened.notify_all();
    }
}

/// Where the author's code blocks its thread.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Where {
    Key,
    Authorise,
    Explain,
    Nowhere,
}

/// Do it.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Order {
    /// What.
    #[schemars(extend("examples" = ["a"]))]
    thing: String,
}

struct Blocks {
    at: Where,
    gate: Gate,
}

impl Tool for Blocks {
    const NAME: &'static str = "blocks";
    type Args = Order;
    type Output = Value;

    fn policy(&self) -> Policy<Order> {
        let (at, gate) = (self.at, self.gate.clone());
        Policy::new(Effect::Atomic).timeout(Duration::from_millis(100)).key(move |order: &Order| {
            if at == Where::Key && order.thing == "blocks" {
                gate.block();
            }
            json!([order.thing])
        })
    }

    async fn call(&self, order: Order, _: &CallContext) -> Result<Success<Value>, ToolError> {
        let put = Put::builder().table_name("demo-effects").item("id", AttributeValue::S(order.thing.clone()));
        let put = if order.thing == "blocks" { put.condition_expression("attribute_exists(id)") } else { put };
        let gate = (self.at == Where::Explain).then(|| self.gate.clone());
        let write = Write::new(TransactWriteItem::builder().put(put.build()?).build()).or_else(move |_| {
            gate.iter().for_each(Gate::block);
            ToolError::rejected("It does not exist.")
        });
        Ok(Success::with_writes(json!(1), vec![write]))
    }
}

fn handler(toolbox: Toolbox, store: Store, metrics: Box<dyn std::io::Write + Send>) -> Handler {
    let telemetry = Telemetry::new("N", "s", Clock::system(), metrics);
    let pipeline = Pipeline::new(Arc::new(toolbox), store, Arc::new(telemetry));
    Handler::new(pipeline, terms(Duration::from_millis(1_200)))
}

fn message(tool: &str, things: &[&str]) -> Invocation {
    let block = |thing: &&str| json!({"toolUse": {"toolUseId": thing, "name": tool, "input": {"thing": thing}}});
    let content: Vec<_> = things.iter().map(block).collect();
    let payload = json!({"role": "assistant", "content": content}).to_string().into();
    Invocation { payload, ..Invocation::default() }
}

const RESULT: &str = r#"{"json":{"result":1}}"#;

fn texts(answer: &Value) -> Vec<String> {
    let blocks = answer["content"].as_array().expect("blocks");
    blocks.iter().map(|block| block["toolResult"]["content"][0].to_string()).collect()
}

/// The cause that a line names where the code blocks.
fn cause(at: Where) -> Vec<&'static str> {
    match at {
        Where::Key => vec!["tool policy: timed_out"],
        Where::Authorise => vec!["authoriser: timed_out"],
        Where::Explain => vec!["timed_out"],
        Where::Nowhere => vec![],
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn code_of_the_author_that_blocks_its_thread_is_answered_for_wherever_it_stands() {
    let faults = Faults::of("blocks");
    for at in [Where::Key, Where::Authorise, Where::Explain, Where::Nowhere] {
        let (database, gate) = (Database::start().await, Gate::default());
        let _opener = Opener(gate.clone());
        let blocks = (at == Where::Authorise).then(|| gate.clone());
        let toolbox = Toolbox::builder().tool(Blocks { at, gate: gate.clone() }).build().expect("a toolbox");
        let handler = handler(toolbox, database.store(), Box::new(std::io::sink()));
        let handler = handler.authorised_by(move |_: &Definition, arguments: &Value, _: &Caller| {
            blocks.iter().filter(|_| arguments["thing"] == "blocks").for_each(Gate::block);
            Decision::Allow
        });
        let answer = handler.handle(message("blocks", &["blocks", "goes-on"])).await.expect("an answer");
        let [blocked, goes_on] = &texts(&answer)[..] else { panic!("{answer}") };
        assert_eq!(goes_on, RESULT, "{at:?}");
        assert!(blocked.contains("hanged nothing") || blocked.contains("Nothing was changed"), "{at:?}: {blocked}");
        assert_eq!(blocked.contains("It does not exist."), at == Where::Nowhere, "{at:?}: {blocked}");
        let (told, cause) = (faults.take(), cause(at));
        assert_eq!(told, cause, "the line tells the tool's policy, the authoriser and the tool apart");
    }
}

/// A sink that panics at the first line.
#[derive(Default)]
struct Panics(bool);

impl std::io::Write for Panics {
    fn write(&mut self, line: &[u8]) -> IoResult<usize> {
        assert!(std::mem::replace(&mut self.0, true), "SECRET");
        Ok(line.len())
    }

    fn flush(&mut self) -> IoResult<()> {
        Ok(())
    }
}

/// Tells when it is dropped.
struct Waits(Mutex<Option<oneshot::Sender<()>>>, Mutex<Option<oneshot::Sender<()>>>);

impl Tool for Waits {
    const NAME: &'static str = "waits";
    type Args = Order;
    type Output = Value;

    fn policy(&self) -> Policy<Order> {
        Policy::new(Effect::ReadOnly)
    }

    async fn call(&self, order: Order, _: &CallContext) -> Result<Success<Value>, ToolError> {
        if order.thing == "waits" {
            let _dropped = self.1.lock().unwrap().take();
            self.0.lock().unwrap().take().map(|begun| begun.send(()));
            std::future::pending::<()>().await;
        }
        Ok(json!(1).into())
    }
}

#[tokio::test]
async fn a_panic_beyond_the_pipeline_costs_no_other_call_its_answer() {
    let tool = Waits(Mutex::default(), Mutex::default());
    let toolbox = Toolbox::builder().tool(tool).build().expect("a toolbox");
    let handler = handler(toolbox, Database::start().await.store(), Box::new(Panics::default()));
    let answer = handler.handle(message("waits", &["first", "second"])).await.expect("an answer");
    let (well, broken): (Vec<_>, Vec<_>) = texts(&answer).into_iter().partition(|text| text == RESULT);
    assert_eq!((well.len(), broken.len()), (1, 1), "{answer}");
    assert!(broken[0].contains("It is not known whether anything was changed."), "{answer}");
    assert!(!broken[0].contains("SECRET"), "{answer}");
}

#[tokio::test]
async fn an_invocation_that_is_dropped_drops_its_calls() {
    let (begun, dropped) = (oneshot::channel(), oneshot::channel());
    let tool = Waits(Mutex::new(Some(begun.0)), Mutex::new(Some(dropped.0)));
    let toolbox = Toolbox::builder().tool(tool).build().expect("a toolbox");
    let handler = handler(toolbox, Database::start().await.store(), Box::new(std::io::sink()));
    tokio::select! {
        answer = handler.handle(message("waits", &["waits"])) => panic!("{answer:?}"),
        begun = begun.1 => begun.expect("it has begun"),
    }
    dropped.1.await.expect_err("nobody sends: the sender is dropped");
}

/// Tells much.
struct Tells;

impl Tool for Tells {
    const NAME: &'static str = "tells";
    type Args = Order;
    type Output = String;

    fn policy(&self) -> Policy<Order> {
        Policy::new(Effect::ReadOnly)
    }

    async fn call(&self, _: Order, _: &CallContext) -> Result<Success<String>, ToolError> {
        Ok("x".repeat(340_000).into())
    }
}

#[tokio::test]
async fn a_result_for_which_the_answer_has_no_room_is_not_kept_until_the_last_call_has_ended() {
    let toolbox = Toolbox::builder().tool(Tells).build().expect("a toolbox");
    let (lines, store) = (Lines::default(), Database::start().await.store());
    let pipeline = handler(toolbox, store, Box::new(lines.clone())).pipeline().clone();
    let handler = Handler::new(pipeline, terms(Duration::from_secs(20)));
    let things: Vec<_> = (0..20).map(|number| format!("t{number}")).collect();
    let things: Vec<_> = things.iter().map(String::as_str).collect();
    let answer = handler.handle(message("tells", &things)).await.expect("an answer");
    let results = answer["content"].as_array().expect("results");
    let told = results.iter().filter(|block| block["toolResult"]["status"] == "success").count();
    assert_eq!((results.len(), told), (20, 16), "5.5 MB in all");
    assert_eq!(answer.to_string().matches("Make this call again by itself.").count(), 4, "each would fit alone");
    // A line is written when its call ends: had all results been kept until then, it would tell of a success.
    assert_eq!(lines.text().matches("\"outcome\":\"too_large\"").count(), 4, "{}", lines.text());
}
