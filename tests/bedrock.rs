//! A model on Bedrock: the real SDK against an endpoint that speaks `Converse` and `ConverseStream`.

#![cfg(feature = "dev")] // the SDK's settings for a local endpoint

mod support;

use std::time::Duration;

use action_group::{
    agent::{
        bedrock::Bedrock,
        conversation::{Block, Message, Role, ToolUse},
        drive::{Heard, Model},
        model::{ModelFailure, ModelFailureKind as Kind, ModelReply, ModelRequest},
    },
    dev::{database::http_client, sdk_config},
};
use aws_credential_types::{
    credential_fn::provide_credentials_fn,
    provider::{SharedCredentialsProvider, error::CredentialsError},
};
use aws_smithy_types::retry::RetryConfig;
use serde_json::{Value, json};
use support::{Converse, Reply, calls, says};

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

async fn failure(reply: Reply) -> (ModelFailure, usize) {
    let endpoint = Converse::start([reply]).await;
    let failure = asked(&model(&endpoint), &hello()).await.expect_err("a failure");
    assert!(!failure.sentence.contains("SECRET"), "{failure:?}");
    (failure, endpoint.requests().len())
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

#[tokio::test]
async fn text_is_heard_as_it_comes_and_the_reply_is_the_same() {
    let endpoint = Converse::start([says("It was shipped on Monday.")]).await;
    let mut heard = Vec::new();
    let model = model(&endpoint).streaming();
    let mut hear = |told: Heard<'_>| {
        if let Heard::Text(text) = told {
            heard.push(text.to_owned());
        }
    };
    let reply = model.converse(&hello(), PATIENCE, &mut hear).await.expect("a reply");
    assert_eq!(heard, ["It ", "was ", "shipped ", "on ", "Monday."]);
    assert_eq!(reply.message.text(), "It was shipped on Monday.");
}

#[tokio::test]
async fn what_came_of_a_call_or_of_reasoning_is_told_by_its_bytes_before_the_message_is_whole() {
    let delta = |index, delta| ("contentBlockDelta", json!({"contentBlockIndex": index, "delta": delta}));
    let start = json!({"toolUse": {"toolUseId": "t", "name": "f"}});
    let events = vec![
        ("messageStart", json!({"role": "assistant"})),
        delta(0, json!({"reasoningContent": {"text": "Hm, yes."}})),
        delta(0, json!({"reasoningContent": {"signature": "c2ln"}})),
        ("contentBlockStart", json!({"contentBlockIndex": 1, "start": start})),
        delta(1, json!({"toolUse": {"input": "{\"a\": "}})),
        delta(1, json!({"toolUse": {"input": "\"b"}})),
    ];
    let endpoint = Converse::start([Reply::Events(events)]).await;
    let (mut bytes, model) = (0, model(&endpoint).streaming());
    let mut hear = |heard: Heard<'_>| match heard {
        Heard::Hidden(more) => bytes += more,
        other => assert!(matches!(other, Heard::Attempt { .. }), "{other:?}"),
    };
    model.converse(&hello(), PATIENCE, &mut hear).await.expect_err("it breaks off");
    assert_eq!(bytes, 8 + 6 + 2);
}

#[tokio::test]
async fn the_client_repeats_what_was_throttled_or_not_available_and_nothing_else() {
    for (status, code, kind, requests) in [
        (429, "ThrottlingException", Kind::Throttled, 3),
        (503, "ServiceUnavailableException", Kind::Unavailable, 3),
        (500, "InternalServerException", Kind::Unavailable, 3),
        (429, "ModelNotReadyException", Kind::Model, 3),
        (408, "ModelTimeoutException", Kind::Model, 1),
        (424, "ModelErrorException", Kind::Model, 1),
        (400, "ValidationException", Kind::Invalid, 1),
        (403, "AccessDeniedException", Kind::Denied, 1),
        (404, "ResourceNotFoundException", Kind::Denied, 1),
        (403, "ExpiredTokenException", Kind::Denied, 1),
        (400, "ServiceQuotaExceededException", Kind::Throttled, 1),
    ] {
        let (failure, sent) = failure(Reply::Refused(status, code)).await;
        assert_eq!((failure.kind, sent), (kind, requests), "{code}");
    }
}

#[tokio::test]
async fn one_throttle_and_then_an_answer_is_an_answer() {
    let endpoint = Converse::start([Reply::Refused(429, "ThrottlingException"), says("Hello.")]).await;
    let reply = asked(&model(&endpoint), &hello()).await.expect("a reply");
    assert_eq!((reply.message.text().as_str(), endpoint.requests().len()), ("Hello.", 2));
}

#[tokio::test]
async fn the_attempts_of_the_client_are_told_and_which_of_them_were_throttled() {
    let throttled = Reply::Refused(429, "ThrottlingException");
    for streams in [false, true] {
        for (replies, wanted) in [
            (vec![says("Hello.")], vec![false]),
            (
                vec![throttled.clone(), Reply::Refused(503, "ServiceUnavailableException"), says("Hello.")],
                vec![true, false, false],
            ),
            (vec![throttled.clone()], vec![true; 3]),
            (vec![Reply::Refused(429, "ModelNotReadyException"), says("Hello.")], vec![false; 2]),
        ] {
            let endpoint = Converse::start(replies).await;
            let model = if streams { model(&endpoint).streaming() } else { model(&endpoint) };
            let mut told = Vec::new();
            let mut hear = |heard: Heard<'_>| {
                if let Heard::Attempt { number, throttled } = heard {
                    assert_eq!(usize::try_from(number), Ok(told.len() + 1));
                    told.push(throttled);
                }
            };
            let _ = model.converse(&hello(), PATIENCE, &mut hear).await; // it may fail
            assert_eq!(told, wanted);
        }
    }
}

#[tokio::test]
async fn the_attempts_of_a_request_that_is_given_up_are_told_and_the_one_on_its_way_is_one_of_them() {
    for streams in [false, true] {
        for has_time in [true, false] {
            let endpoint = Converse::start([Reply::Refused(429, "ThrottlingException"), Reply::Silence]).await;
            let model = if streams { model(&endpoint).streaming() } else { model(&endpoint) };
            let mut told = Vec::new();
            let mut hear = |heard: Heard<'_>| {
                if let Heard::Attempt { number, throttled } = heard {
                    told.push((number, throttled));
                }
            };
            let request = hello();
            let asked = model.converse(&request, if has_time { PATIENCE } else { SHORT }, &mut hear);
            if has_time {
                let second = async {
                    while endpoint.requests().len() < 2 {
                        tokio::task::yield_now().await;
                    }
                };
                tokio::select! {
                    () = second => {} // and nobody waits for the model any more
                    _ = asked => panic!("it was answered"),
                }
            } else {
                assert_eq!(asked.await.expect_err("no answer").kind, Kind::Timeout);
            }
            assert_eq!(told, [(1, true), (2, false)], "streams: {streams}, has time: {has_time}");
        }
    }
}

#[tokio::test]
async fn half_an_answer_is_asked_for_again_by_the_client() {
    let endpoint = Converse::start([Reply::BrokenOff(Value::Null, 0), says("Hello.")]).await;
    assert!(asked(&model(&endpoint), &hello()).await.is_ok());
    assert_eq!(endpoint.requests().len(), 2);
}

#[tokio::test]
async fn a_model_that_never_answers_is_asked_once_and_given_up_in_time() {
    for streams in [false, true] {
        let endpoint = Converse::start([Reply::Silence]).await;
        let model = if streams { model(&endpoint).streaming() } else { model(&endpoint) };
        let failure = model.converse(&hello(), SHORT, &mut |_| {}).await.expect_err("no answer");
        assert_eq!((failure.kind, endpoint.requests().len()), (Kind::Timeout, 1));
    }
}

#[tokio::test]
async fn after_a_storm_of_failures_a_call_still_has_its_retries() {
    let endpoint = Converse::start([Reply::Refused(503, "ServiceUnavailableException")]).await;
    let model = model(&endpoint);
    for _ in 0..30 {
        asked(&model, &hello()).await.expect_err("a storm");
    }
    assert_eq!(endpoint.requests().len(), 90);
    endpoint.then([Reply::Refused(503, "ServiceUnavailableException"), says("Hello.")]);
    assert!(asked(&model, &hello()).await.is_ok(), "the storm has used up the retries of a healthy call");
}

/// Two blocks, ten events before the message is whole.
fn two_calls() -> Value {
    let Reply::Whole(response) = calls([("a", "f", json!({"x": 1})), ("b", "f", json!({"x": 2}))]) else { panic!() };
    response
}

#[tokio::test]
async fn a_stream_that_ends_before_its_message_does_is_a_failure_wherever_it_ends() {
    for after in 0..10 {
        for (reply, kind) in [
            (Reply::BrokenOff(two_calls(), after), Kind::Unavailable),
            (Reply::Exception(two_calls(), after, "throttlingException"), Kind::Throttled),
            (Reply::Exception(two_calls(), after, "modelStreamErrorException"), Kind::Model),
            (Reply::Exception(two_calls(), after, "serviceUnavailableException"), Kind::Unavailable),
            (Reply::Exception(two_calls(), after, "internalServerException"), Kind::Unavailable),
            (Reply::Exception(two_calls(), after, "validationException"), Kind::Invalid),
        ] {
            let shown = format!("{reply:?}");
            let endpoint = Converse::start([reply]).await;
            let failure = asked(&model(&endpoint).streaming(), &hello()).await.expect_err(&shown);
            assert_eq!(failure.kind, kind, "{shown}");
            assert!(!failure.sentence.contains("SECRET"), "{failure:?}");
        }
    }
    let endpoint = Converse::start([Reply::Events(vec![("messageStart", json!({"role": "assistant"}))])]).await;
    let failure = asked(&model(&endpoint).streaming(), &hello()).await.expect_err("an early end");
    assert_eq!(failure.kind, Kind::Unavailable);
}

#[tokio::test]
async fn a_stream_that_stands_still_ends_with_the_time_of_the_call() {
    let endpoint = Converse::start([Reply::Stalled(two_calls(), 3)]).await;
    let failure = model(&endpoint).streaming().converse(&hello(), SHORT, &mut |_| {}).await.expect_err("no end");
    assert_eq!((failure.kind, endpoint.requests().len()), (Kind::Timeout, 1));
}

#[tokio::test]
async fn a_stream_that_stands_still_is_given_up_long_before_the_time_of_the_call_is_up() {
    for after in [0, 1, 5] {
        let endpoint = Converse::start([Reply::Stalled(two_calls(), after)]).await;
        let model = model(&endpoint).streaming().patient_for(SHORT);
        let failure = asked(&model, &hello()).await.expect_err("no end");
        assert_eq!((failure.kind, endpoint.requests().len()), (Kind::Unavailable, 1), "after {after} events");
        assert!(failure.sentence.contains("stood still"), "{failure:?}");
    }
}

#[tokio::test]
async fn a_message_that_is_whole_does_not_wait_for_what_it_cost() {
    let endpoint = Converse::start([Reply::Stalled(two_calls(), 10)]).await;
    let reply = asked(&model(&endpoint).streaming().patient_for(3 * SHORT), &hello()).await.expect("a reply");
    assert_eq!((reply.stop_reason.as_str(), reply.usage), ("tool_use", None));
}

/// A stream with one call, whose input comes in these pieces.
fn pieces(pieces: &[&str], stop_reason: &str) -> Reply {
    let start = json!({"toolUse": {"toolUseId": "t", "name": "f"}});
    let mut events = vec![("contentBlockStart", json!({"contentBlockIndex": 0, "start": start}))];
    events.extend(
        pieces.iter().map(|piece| {
            ("contentBlockDelta", json!({"contentBlockIndex": 0, "delta": {"toolUse": {"input": piece}}}))
        }),
    );
    events.push(("messageStop", json!({ "stopReason": stop_reason })));
    Reply::Events(events)
}

#[tokio::test]
async fn an_input_is_read_when_it_is_whole_and_one_that_is_none_is_a_malformed_call() {
    for (reply, stop_reason, input) in [
        (pieces(&[], "tool_use"), "tool_use", json!({})),
        (pieces(&["", ""], "tool_use"), "tool_use", json!({})),
        (pieces(&["{\"a\":\"", "{}\"}"], "tool_use"), "tool_use", json!({"a": "{}"})),
        (pieces(&["{\"a\":"], "tool_use"), "malformed_tool_use", json!({})),
        (pieces(&["{\"a\":1,", "\"a\":2}"], "tool_use"), "malformed_tool_use", json!({})),
        (pieces(&["{\"a\":"], "max_tokens"), "max_tokens", json!({})),
    ] {
        let shown = format!("{reply:?}");
        let endpoint = Converse::start([reply]).await;
        let reply = asked(&model(&endpoint).streaming(), &hello()).await.expect("a reply");
        let asked: Vec<&ToolUse> = reply.message.tool_uses().collect();
        assert_eq!((reply.stop_reason.as_str(), &asked[0].input), (stop_reason, &input), "{shown}");
        assert_eq!(reply.usage, None, "Bedrock did not say");
    }
}

#[tokio::test]
async fn no_credentials_and_no_connection_are_told_apart() {
    let endpoint = Converse::start([says("Hello.")]).await;
    let sdk = sdk_config(&endpoint.endpoint(), http_client());
    let none = provide_credentials_fn(async || Err(CredentialsError::not_loaded("none")));
    let nobody = sdk.clone().into_builder().credentials_provider(SharedCredentialsProvider::new(none)).build();
    let failure = asked(&Bedrock::new(&nobody, "a-model"), &hello()).await.expect_err("no credentials");
    assert_eq!((failure.kind, endpoint.requests().len()), (Kind::Denied, 0));

    let blink = RetryConfig::standard().with_initial_backoff(Duration::from_millis(1));
    let nowhere = sdk.into_builder().endpoint_url("http://127.0.0.1:9").retry_config(blink).build();
    let failure = asked(&Bedrock::new(&nowhere, "a-model"), &hello()).await.expect_err("no connection");
    assert_eq!(failure.kind, Kind::Unavailable);
}
