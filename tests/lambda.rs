//! The real Lambda program against a stub of the Runtime API: every invocation is answered, and the process lives on.

#![cfg(feature = "dev")] // the embedded DynamoDB

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use support::{Database, Event, Fault, FaultyProxy, Function, RuntimeApi, World, example};

const PROGRAM: &str = env!("CARGO_BIN_EXE_action-group");

/// The example whose tools misbehave.
async fn misbehaving() -> Function {
    let api = RuntimeApi::start().await;
    let mut function = api.launch(example("misbehave"), &[("IDEMPOTENCY_TABLE", "idempotency")]);
    function.ready().await;
    function
}

fn tool_use(id: &str, name: &str, input: &Value) -> Value {
    json!({"toolUse": {"toolUseId": id, "name": name, "input": input}})
}

/// Any answer to an event that is no tool call shows that the process serves.
async fn assert_alive(function: &mut Function) {
    function.invoke(Event::json(&json!({"no": "call"}))).await.error();
    assert!(function.is_alive());
}

#[tokio::test]
async fn it_starts_and_asks_for_work() {
    let world = World::start(PROGRAM).await;
    let World { mut function, faults, .. } = world; // the rest lives on in `world`
    assert!(function.is_alive());
    assert!(faults.take().is_empty(), "the start needs no table");
}

#[tokio::test]
async fn a_call_is_answered_through_each_door() {
    let world = World::start(PROGRAM).await;
    let World { mut function, .. } = world; // the rest lives on in `world`
    let converse = function.invoke(Event::file("converse/get-order.json")).await.response();
    assert_eq!(converse["toolResult"]["status"], "success");
    assert_eq!(converse["toolResult"]["content"][0]["json"]["order_id"], "ORD-12345");

    let agent = function.invoke(Event::file("agent-function/get-order.json")).await.response();
    let body = agent["response"]["functionResponse"]["responseBody"]["TEXT"]["body"].as_str().unwrap();
    assert!(body.contains("ORD-12345"), "{body}");

    let agent = function.invoke(Event::file("agent-openapi/get-order.json")).await.response();
    assert_eq!(agent["response"]["httpStatusCode"], 200);

    let gateway = function.invoke(Event::file("gateway/get-order.json")).await.response();
    assert_eq!(gateway["ok"], true);
    assert_eq!(gateway["result"]["order_id"], "ORD-12345");
}

#[tokio::test]
async fn a_gateway_call_with_propagated_headers_is_answered() {
    let world = World::start(PROGRAM).await;
    let World { mut function, .. } = world; // the rest lives on in `world`
    let answer = function.invoke(Event::file("gateway/propagated-headers.json")).await.response();
    assert_eq!(answer["ok"], true);
}

#[tokio::test]
async fn no_client_context_ends_the_process() {
    let world = World::start(PROGRAM).await;
    let World { mut function, .. } = world; // the rest lives on in `world`
    for context in [
        &br#"{"custom":{"bedrockAgentCorePropagatedHeaders":{"x-user":"u-1"}}}"#[..],
        br#"{"client":null,"custom":null,"env":null}"#,
        b"null",
        b"not json",
        b"\xff\xfe",
    ] {
        let _ = function.invoke(Event::json(&json!({})).client_context(context)).await;
    }
    assert_alive(&mut function).await;
}

#[tokio::test]
async fn bytes_that_are_no_json_are_an_error_of_the_invocation() {
    let world = World::start(PROGRAM).await;
    let World { mut function, .. } = world; // the rest lives on in `world`
    for payload in [&b""[..], b"{", b"\xff\xfe", b"{\"a\":1}}"] {
        let error = function.invoke(Event::raw(payload.to_vec())).await.error();
        assert_eq!(error["errorType"], "InvalidPayload");
    }
    assert_alive(&mut function).await;
}

#[tokio::test]
async fn a_panicking_tool_is_a_tool_result_like_any_other() {
    let mut function = misbehaving().await;
    let answer = function.invoke(Event::json(&tool_use("t1", "panics", &json!({})))).await.response();
    assert_eq!(answer["toolResult"]["status"], "error");
    assert_eq!(answer["toolResult"]["toolUseId"], "t1");
    assert!(!answer.to_string().contains("SECRET"), "{answer}");

    let answer = function.invoke(Event::json(&tool_use("t2", "works", &json!({"text": "hello"})))).await.response();
    assert_eq!(answer["toolResult"]["status"], "success");
    let output = function.output_when(|output| output.contains("misbehave.rs:")).await;
    assert!(output.contains("misbehave.rs:") && !output.contains("SECRET"), "{output}");
}

#[tokio::test]
async fn a_hanging_tool_is_answered_before_the_deadline() {
    let mut function = misbehaving().await;
    let event = Event::json(&tool_use("t1", "hangs", &json!({}))).time_left(Duration::from_secs(2));
    let answer = function.invoke(event).await;
    assert!(answer.in_time);
    assert_eq!(answer.response()["toolResult"]["status"], "error");
    assert_alive(&mut function).await;
}

#[tokio::test]
async fn a_record_that_cannot_be_completed_costs_no_call_its_answer() {
    let world = World::start(PROGRAM).await;
    let World { mut function, faults, .. } = world; // the rest lives on in `world`
    faults.misbehave("UpdateItem", [Fault::Silence]);
    let label = json!({"order_id": "ORD-12345", "carrier": "ups"});
    let message = json!({"role": "assistant", "content": [
        tool_use("t1", "create_shipping_label", &label),
        tool_use("t2", "get_order", &json!({"order_id": "ORD-12345"})),
    ]});
    let answer = function.invoke(Event::json(&message).time_left(Duration::from_secs(2))).await;
    assert!(answer.in_time);
    let content = answer.response()["content"].clone();
    let statuses: Vec<_> = (0..2).map(|n| content[n]["toolResult"]["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["success", "success"]);
    function.output_when(|output| output.contains("CompletionLost")).await;
}

#[tokio::test]
async fn a_tool_that_blocks_its_thread_is_answered_before_the_deadline() {
    let mut function = misbehaving().await;
    let event = Event::json(&tool_use("t1", "blocks", &json!({}))).time_left(Duration::from_secs(2));
    assert!(function.invoke(event).await.in_time);
    assert_alive(&mut function).await;
}

#[tokio::test]
async fn calls_beside_a_panic_and_a_hang_get_their_results() {
    let mut function = misbehaving().await;
    let message = json!({"role": "assistant", "content": [
        tool_use("t1", "hangs", &json!({})),
        tool_use("t2", "panics", &json!({})),
        tool_use("t3", "works", &json!({"text": "hello"})),
    ]});
    let answer = function.invoke(Event::json(&message).time_left(Duration::from_secs(2))).await;
    assert!(answer.in_time);
    let content = answer.response()["content"].clone();
    let statuses: Vec<_> = (0..3).map(|n| content[n]["toolResult"]["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["error", "error", "success"]);
}

#[tokio::test]
async fn the_deadline_of_cargo_lambda_watch_leaves_time_for_a_call() {
    let world = World::start(PROGRAM).await;
    let World { mut function, .. } = world; // the rest lives on in `world`
    let event = Event::file("converse/get-order.json").deadline_header("600000");
    assert_eq!(function.invoke(event).await.response()["toolResult"]["status"], "success");
}

#[tokio::test]
async fn a_deadline_that_has_just_passed_is_answered_and_nothing_is_done() {
    let world = World::start(PROGRAM).await;
    let World { mut function, faults, .. } = world; // the rest lives on in `world`
    let event = Event::file("converse/refund-order.json").time_left(Duration::ZERO);
    let answer = function.invoke(event).await.response();
    assert_eq!(answer["toolResult"]["status"], "error");
    assert!(faults.take().is_empty());
    assert_alive(&mut function).await;
}

#[tokio::test]
async fn a_start_without_settings_names_every_one_that_is_missing() {
    let api = RuntimeApi::start().await;
    let mut function = api.launch(PROGRAM, &[("RESERVE_MS", "soon")]);
    assert_eq!(function.ended().await.code(), Some(1));
    let error = function.start_error().expect("Lambda was told");
    assert_eq!(error["errorType"], "Start.InvalidSettings");
    let sentence = error["errorMessage"].as_str().unwrap();
    assert!(sentence.contains("IDEMPOTENCY_TABLE is not set."), "{sentence}");
    assert!(sentence.contains("RESERVE_MS is \"soon\", but must be"), "{sentence}");
}

#[test]
fn without_a_runtime_api_it_says_how_to_run_the_tools_here() {
    let output = std::process::Command::new(PROGRAM).env_clear().output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("AWS_LAMBDA_RUNTIME_API") && text.contains("cargo run -- invoke"), "{text}");
}

/// `docs/performance.md` quotes these counts.
#[tokio::test]
async fn a_call_costs_the_requests_that_its_effect_says() {
    let world = World::start(PROGRAM).await;
    let World { mut function, faults, backends, .. } = world; // the rest lives on in `world`
    for (event, first, replay) in [
        // The tool's own read, and nothing for the record.
        ("converse/get-order.json", "GetItem:1", "GetItem:1"),
        ("converse/refund-order.json", "TransactWriteItems:1", "TransactWriteItems:1"),
        ("converse/create-shipping-label.json", "PutItem:1 UpdateItem:1", "PutItem:1"),
        ("converse/send-email.json", "PutItem:1 UpdateItem:1", "PutItem:1"),
    ] {
        for expected in [first, replay] {
            let answer = function.invoke(Event::file(event)).await.response();
            assert_eq!(answer["toolResult"]["status"], "success", "{event}: {answer}");
            let counts: Vec<_> = faults.take().into_iter().map(|(name, count)| format!("{name}:{count}")).collect();
            assert_eq!(counts.join(" "), expected, "{event}");
        }
    }
    assert_eq!(backends.done(), 2, "one label and one mail");
}

#[tokio::test]
async fn metric_lines_and_log_lines_of_the_real_program_are_json_and_hold_no_arguments() {
    let world = World::start(PROGRAM).await;
    let World { mut function, .. } = world; // the rest lives on in `world`
    function.invoke(Event::file("converse/send-email.json")).await.response();
    function.invoke(Event::file("converse/get-order.json")).await.response();
    let output = function.output_when(|output| output.matches("\"message\":\"call\"").count() == 2).await;
    let lines: Vec<Value> = output.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let metrics: Vec<_> = lines.iter().filter(|line| line.get("_aws").is_some()).collect();
    assert_eq!(
        metrics.iter().map(|line| line["Tool"].as_str().unwrap()).collect::<Vec<_>>(),
        ["send_email", "get_order"]
    );
    assert_eq!(lines.iter().filter(|line| line["message"] == "call").count(), 2);
    for line in &lines {
        assert!(line["timestamp"].is_string() && line["level"].is_string(), "{line}");
    }
    assert!(!output.contains("example.com") && !output.contains("ORD-12345"), "{output}");
}

/// The counter itself, so that a count of nothing means something.
#[tokio::test]
async fn the_proxy_counts_each_request_at_the_endpoint() {
    let database = Database::start().await;
    let proxy = FaultyProxy::start(&database.endpoint()).await;
    let client = support::client(&proxy.endpoint());
    for _ in 0..2 {
        client.get_item().table_name(Database::RECORDS).key("pk", s("a")).send().await.unwrap();
    }
    client.put_item().table_name(Database::RECORDS).item("pk", s("a")).send().await.unwrap();
    let counts: Vec<_> = proxy.take().into_iter().collect();
    assert_eq!(counts, [(String::from("GetItem"), 2), (String::from("PutItem"), 1)]);
    assert!(proxy.take().is_empty());
}

fn s(text: &str) -> aws_sdk_dynamodb::types::AttributeValue {
    aws_sdk_dynamodb::types::AttributeValue::S(text.to_owned())
}
