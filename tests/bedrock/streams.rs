//! The pieces of a stream, and its ends.

use action_group::agent::{
    conversation::ToolUse,
    drive::{Heard, Model},
    model::ModelFailureKind as Kind,
};
use serde_json::{Value, json};

use super::{
    PATIENCE, SHORT, asked, hello, model,
    support::{Converse, Reply, calls, says},
};

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
