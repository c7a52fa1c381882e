//! A model on Bedrock: the real SDK against an endpoint that speaks `Converse` and `ConverseStream`.
//!
//! | module | shows |
//! | --- | --- |
//! | here | that requests and replies are carried whole |
//! | `client` | what the client repeats, tells and gives up |
//! | `streams` | the pieces of a stream, and its ends |

#![cfg(feature = "dev")] // the SDK's settings for a local endpoint

#[path = "../support/mod.rs"]
mod support;

mod client;
mod streams;

use std::time::Duration;

use action_group::{
    agent::{
        bedrock::Bedrock,
        conversation::{Block, Message, Role},
        drive::Model,
        model::{ModelFailure, ModelReply, ModelRequest},
    },
    dev::{database::http_client, sdk_config},
};
use aws_smithy_types::retry::RetryConfig;
use serde_json::{Value, json};
use support::{Converse, Reply, says};

/// Long enough for a machine under load; nothing waits for it.
const PATIENCE: Duration = Duration::from_mins(1);
/// The time of a call that is not answered.
const SHORT: Duration = Duration::from_millis(300);

fn model(endpoint: &Converse) -> Bedrock {
    // The waits between attempts have the length of a blink.
    let blink = RetryConfig::standard().with_initial_backoff(Duration::from_millis(1));
    let sdk = sdk_config(&endpoint.endpoint(), http_client()).into_builder().retry_config(blink).build();
    Bedrock::new(&sdk, "a-model")
}

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest { messages, system: None, tool_config: None, max_output_tokens: None }
}

fn hello() -> ModelRequest {
    request(vec![Message::user("Hello")])
}

async fn asked(model: &Bedrock, request: &ModelRequest) -> Result<ModelReply, ModelFailure> {
    model.converse(request, PATIENCE, &mut |_| {}).await
}

#[tokio::test]
async fn a_request_goes_out_as_it_is_and_the_reply_comes_back_as_it_is() {
    let thought = json!({"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}});
    let hidden = json!({"reasoningContent": {"redactedContent": "AAEC"}});
    let asks =
        json!({"toolUse": {"toolUseId": "t-1", "name": "f", "input": {"a": 1, "b": 1.5, "c": [null, "é"], "d": -3}}});
    let content = json!([thought, hidden, {"text": "Let me look."}, asks]);
    let answer = json!({
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": "tool_use",
        "usage": {"inputTokens": 1, "outputTokens": 2, "totalTokens": 10, "cacheReadInputTokens": 3, "cacheWriteInputTokens": 4},
        "metrics": {"latencyMs": 1},
    });
    let endpoint = Converse::start([Reply::Whole(answer)]).await;
    let tools = json!({"tools": [
        {"toolSpec": {"name": "f", "description": "F.", "inputSchema": {"json": {"type": "object"}}, "strict": true}},
        {"toolSpec": {"name": "g", "inputSchema": {"json": {"type": "object", "properties": {"n": {"maximum": 10}}}}}},
    ]});
    let first = ModelRequest {
        system: Some(String::from("Be brief.")),
        tool_config: Some(tools.clone()),
        max_output_tokens: Some(100),
        ..hello()
    };
    for model in [model(&endpoint), model(&endpoint).streaming()] {
        let reply = asked(&model, &first).await.expect("a reply");
        assert_eq!(serde_json::to_value(&reply.message.content).unwrap(), content);
        assert_eq!((reply.stop_reason.as_str(), reply.usage.unwrap().total()), ("tool_use", 10));
        let results = json!({"role": "user", "content": [{"toolResult": {
            "toolUseId": "t-1", "status": "error", "content": [{"json": {"n": 1.0}}, {"text": "No."}],
        }}]});
        let second =
            request(vec![Message::user("Hello"), reply.message, serde_json::from_value(results.clone()).unwrap()]);
        asked(&model, &second).await.expect("a reply");
        let sent = endpoint.requests();
        let [.., one, two] = &sent[..] else { panic!("two requests") };
        assert_eq!(
            *one,
            json!({
                "messages": [{"role": "user", "content": [{"text": "Hello"}]}],
                "system": [{"text": "Be brief."}],
                "toolConfig": tools,
                "inferenceConfig": {"maxTokens": 100},
            })
        );
        assert_eq!(two["messages"][1], json!({"role": "assistant", "content": content}));
        assert_eq!(two["messages"][2], results);
    }
    assert_eq!(
        endpoint.paths(),
        ["a-model/converse", "a-model/converse", "a-model/converse-stream", "a-model/converse-stream"]
    );
}

#[tokio::test]
async fn what_the_provider_has_run_comes_with_its_result() {
    let asked = json!({"toolUseId": "s", "name": "search", "input": {}, "type": "server_tool_use"});
    let found = json!({"toolUseId": "s", "status": "success", "content": [{"text": "Rain."}, {"json": {"mm": 3}}], "type": "search_result"});
    let content = json!([{"toolUse": asked}, {"toolResult": found}, {"text": "It rains."}]);
    let answer = json!({"output": {"message": {"role": "assistant", "content": content}}, "stopReason": "end_turn"});
    let deltas = [json!([{"text": "Rain."}]), json!([{"json": {"mm": 3}}])];
    let delta = |index: usize, delta: Value| ("contentBlockDelta", json!({"contentBlockIndex": index, "delta": delta}));
    let start = |index: usize, start: Value| ("contentBlockStart", json!({"contentBlockIndex": index, "start": start}));
    let mut events = vec![
        start(0, json!({"toolUse": {"toolUseId": "s", "name": "search", "type": "server_tool_use"}})),
        start(1, json!({"toolResult": {"toolUseId": "s", "status": "success", "type": "search_result"}})),
        delta(2, json!({"text": "It rains."})),
    ];
    events.extend(deltas.map(|part| delta(1, json!({"toolResult": part}))));
    events.push(("messageStop", json!({"stopReason": "end_turn"})));
    let whole = Converse::start([Reply::Whole(answer)]).await;
    let pieces = Converse::start([Reply::Events(events)]).await;
    for model in [model(&whole), model(&pieces).streaming()] {
        let reply = self::asked(&model, &hello()).await.expect("a reply");
        assert_eq!(serde_json::to_value(&reply.message.content).unwrap(), content);
        self::asked(&model, &request(vec![Message::user("Hello"), reply.message])).await.expect("a reply");
    }
    for endpoint in [whole, pieces] {
        assert_eq!(endpoint.requests()[1]["messages"][1]["content"], content, "it is given back as it came");
    }
}

#[tokio::test]
async fn a_block_that_cannot_be_carried_is_dropped_and_costs_nothing_else() {
    let endpoint = Converse::start([says("Hello.")]).await;
    let content = vec![Block::Other(json!({"hologram": {}})), Block::Text(String::from("Hi"))];
    asked(&model(&endpoint), &request(vec![Message { role: Role::User, content }])).await.expect("a reply");
    assert_eq!(endpoint.requests()[0]["messages"][0]["content"], json!([{"text": "Hi"}]));
}

#[tokio::test]
async fn a_number_that_json_cannot_hold_is_a_text_and_no_zero() {
    let answer = r#"{"output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"t","name":"f",
        "input":{"huge":1e400,"large":18446744073709551615}}}]}},"stopReason":"tool_use"}"#;
    // serde_json refuses 1e400 itself, so that it goes in by hand.
    let endpoint = Converse::start([Reply::Raw(answer)]).await;
    let reply = asked(&model(&endpoint), &hello()).await.expect("a reply");
    let input = &reply.message.tool_uses().next().expect("a call").input;
    assert_eq!(*input, json!({"huge": "inf", "large": u64::MAX}));
}
