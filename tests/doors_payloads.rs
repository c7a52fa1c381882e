//! Payloads that are unclear or beyond the limits, given to the real program: answered by their ids where they have some,
//! nothing is run, and the process lives on.

#![cfg(feature = "dev")] // the embedded DynamoDB

mod support;

use serde_json::{Value, json};
use support::{Event, World};

const PROGRAM: &str = env!("CARGO_BIN_EXE_action-group");

/// A refund with this in the place of its reason.
fn refund(reason: &str) -> String {
    let input = format!(r#"{{"order_id":"ORD-12345","amount_cents":1500,"reason":{reason}}}"#);
    format!(r#"{{"toolUse":{{"toolUseId":"t1","name":"refund_order","input":{input}}}}}"#)
}

fn raw(text: impl Into<Vec<u8>>) -> Event {
    Event::raw(text.into())
}

#[tokio::test]
async fn an_unclear_payload_is_answered_by_its_ids_and_nothing_is_run() {
    let world = World::start(PROGRAM).await;
    let World { mut function, faults, .. } = world; // the rest lives on in `world`
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let many = format!("[{}[]]", "[],".repeat(1_500_000));
    let mut no_utf_8 = refund("\"a?b\"").into_bytes();
    let place = no_utf_8.iter().position(|byte| *byte == b'?').expect("the mark");
    no_utf_8[place] = 0xff;
    for (payload, word) in [
        (refund("\"a\",\"amount_cents\":9").into_bytes(), "\"amount_cents\" twice"),
        (refund("1e400").into_bytes(), "too large"),
        (refund("\"\\ud83d\"").into_bytes(), "half of a character"),
        (refund(&deep).into_bytes(), "64 levels"),
        (refund(&many).into_bytes(), "100000 values"),
        (no_utf_8, "UTF-8"),
    ] {
        let answer = function.invoke(raw(payload)).await.response();
        let result = &answer["toolResult"];
        assert_eq!((&result["toolUseId"], &result["status"]), (&json!("t1"), &json!("error")), "{word}");
        let text = result["content"][0]["text"].as_str().expect("a text");
        assert!(text.contains(word) && text.ends_with("So the call was not run. Nothing was changed."), "{text}");
    }
    assert!(faults.take().is_empty(), "no table was asked");

    let bom = format!("\u{feff}{}", refund("\"damaged\\u0000\""));
    let answer = function.invoke(raw(bom)).await.response();
    assert_eq!(answer["toolResult"]["status"], "success", "{answer}");
}

#[tokio::test]
async fn the_flaw_is_told_in_the_shape_of_each_door() {
    let world = World::start(PROGRAM).await;
    let World { mut function, .. } = world; // the rest lives on in `world`
    let gateway = raw(r#"{"order_id":"ORD-12345","order_id":"ORD-12346"}"#)
        .client_context(br#"{"custom":{"bedrockAgentCoreToolName":"orders___get_order"}}"#);
    let answer = function.invoke(gateway).await.response();
    assert_eq!((&answer["ok"], &answer["error"]["kind"]), (&json!(false), &json!("invalid_input")));

    let mcp = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"get_order","arguments":{"order_id":1e400}}}"#;
    let answer = function.invoke(raw(mcp)).await.response();
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(7), &json!(true)));

    let many = format!("[{}0]", "0,".repeat(100_000));
    let late = format!(
        r#"{{"id":7,"jsonrpc":"2.0","method":"tools/call","params":{{"arguments":{{"a":{many}}},"name":"get_order"}}}}"#
    );
    let answer = function.invoke(raw(late)).await.response().to_string();
    assert!(
        answer.contains("100000 values") && !answer.contains("names no tool"),
        "the name was beyond them: {answer}"
    );

    let list = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","method":"tools/list"}"#;
    let error = function.invoke(raw(list)).await.error();
    assert_eq!(error["errorType"], "InvalidPayload", "it holds no call that could be answered");
}

#[tokio::test]
async fn what_could_not_be_read_is_not_called_missing() {
    let world = World::start(PROGRAM).await;
    let World { mut function, .. } = world; // the rest lives on in `world`
    for (file, fault) in [
        ("converse/input-is-text.json", "must be an object, but are a text"),
        ("mcp/list-arguments.json", "must be an object, but are a list"),
        ("flow/inputs-are-an-object.json", "inputs of the node must be a list"),
        ("agent-openapi/body-is-text.json", "The body could not be read"),
        ("agent-function/value-without-name.json", "came without a name"),
    ] {
        let answer = function.invoke(Event::file(file)).await.response().to_string();
        assert!(answer.contains(fault) && !answer.contains("is missing"), "{file}: {answer}");
    }
}

#[tokio::test]
async fn payloads_of_six_megabytes_are_answered() {
    let world = World::start(PROGRAM).await;
    let World { mut function, .. } = world; // the rest lives on in `world`
    let text = refund(&format!("\"{}\"", "x".repeat(6_000_000)));
    let answer = function.invoke(raw(text)).await.response();
    assert_eq!(answer["toolResult"]["status"], "error");
    assert!(answer.to_string().len() < 2_000);
    let agent = json!({
        "messageVersion": "1.0", "actionGroup": "orders", "function": "search_orders",
        "parameters": [{ "name": "tags", "value": "[a, ".repeat(1_500_000) }],
    });
    let answer: Value = function.invoke(Event::json(&agent)).await.response();
    assert!(answer.to_string().contains("REPROMPT") && answer.to_string().len() < 2_000);
    assert!(function.is_alive());
}

#[tokio::test]
async fn a_call_is_answered_through_the_newer_doors() {
    let world = World::start(PROGRAM).await;
    let World { mut function, .. } = world; // the rest lives on in `world`
    let mcp = function.invoke(Event::file("mcp/get-order.json")).await.response();
    assert_eq!(mcp["result"]["structuredContent"]["order_id"], "ORD-12345");
    let unknown = function.invoke(Event::file("mcp/unknown-tool.json")).await.response();
    assert_eq!(unknown["error"]["code"], -32602);
    assert_eq!(function.invoke(Event::file("mcp/cancelled.json")).await.response(), json!(null));

    let flow = function.invoke(Event::file("flow/get-order.json")).await.response();
    assert_eq!(flow["result"]["order_id"], "ORD-12345");

    let control = function.invoke(Event::file("return-of-control/one-waits.json")).await.response();
    let results = control["returnControlInvocationResults"].as_array().expect("results");
    assert!(results[0].to_string().contains("ORD-12345"));
    assert!(results[1].to_string().contains("waits for the user's confirmation"));

    let states = function.invoke(Event::file("converse/step-functions-response.json")).await.response();
    assert_eq!(states["Content"][0]["ToolResult"]["Content"][0]["Json"]["order_id"], "ORD-12345");
    assert_eq!(states["Content"][1]["ToolResult"]["Status"], "error");

    let proxy = function.invoke(Event::file("agent-openapi/proxy-native-values.json")).await.response();
    assert!(proxy.to_string().contains("1500"), "{proxy}");
    let output = function.output();
    assert!(output.contains("\"Tool\":\"unknown\""), "an unknown tool is counted: {output}");
}

/// What the template tells the C library: else each thread may keep megabytes.
fn allocator() -> (&'static str, &'static str) {
    const NAME: &str = "MALLOC_TRIM_THRESHOLD_";
    let template = include_str!("../template.yaml");
    let (_, value) = template.split_once(&format!("{NAME}: \"")).expect("it is set");
    (NAME, value.split('"').next().expect("a value"))
}

/// The most memory that the process has had, in MB.
#[cfg(target_os = "linux")]
fn peak_memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a peak");
    line.split_whitespace().nth(1).and_then(|text| text.parse::<u64>().ok()).expect("a number") / 1024
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn six_hostile_megabytes_leave_a_small_function_room() {
    let world = World::launch(PROGRAM).await;
    let mut function = world.launch_beside(PROGRAM, &[allocator()]).await;
    function.ready().await;
    let many = |part: &str| {
        let parts = vec![part; 6_000_000 / (part.len() + 1)];
        format!("[{}]", parts.join(","))
    };
    let agent = |value: &str| {
        let parameters = json!([{"name": "customer_id", "value": "C-1"}, {"name": "tags", "value": value}]);
        json!({"actionGroup": "g", "function": "search_orders", "parameters": parameters}).to_string()
    };
    let control = json!({"functionInvocationInput": {"actionGroup": "g", "function": "x"}}).to_string();
    for payload in [
        many("1"),
        many("[]"),
        many("{\"a\":1}"),
        many(r#"{"toolUse":{"toolUseId":"t1","name":"x","input":{}}}"#),
        agent(&many("a")),
        agent(&many("{a=[b]}")),
        format!(r#"{{"returnControl":{{"invocationInputs":{}}}}}"#, many(&control)),
        refund(&format!("\"{}\"", "\\u0001".repeat(990_000))),
        refund(&many("\"a\"")),
    ] {
        function.invoke(raw(payload)).await;
    }
    assert!(function.is_alive());
    let peak = peak_memory(function.id());
    // 65 to 70 MB; the least function has 128 MB.
    assert!(peak < 90, "it took {peak} MB");
}
