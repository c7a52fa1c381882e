//! The conversation of a Converse event: who says it, where it may stand, and that nothing else stands for it.

use serde_json::{Value, json};

use super::{call, call_in, request};
use crate::door::{
    Event, detect,
    testing::{all, answer, event, file, success, toolbox},
};

const NAMES: [&str; 4] =
    ["with-session", "message-with-session", "response-with-session", "step-functions-with-session"];

fn refusal(event: Event) -> String {
    (detect(&event, &all()).unwrap().decode)(event, &toolbox()).expect_err("a refusal").to_string()
}

fn conversation(body: Value) -> Option<String> {
    call_in(body).caller.conversation().map(String::from)
}

fn tool_use() -> Value {
    json!({ "toolUseId": "a", "name": "get_order", "input": { "order_id": "ORD-12345" } })
}

fn message() -> Value {
    json!({ "role": "assistant", "content": [{ "toolUse": tool_use() }] })
}

/// The value with this session beside what it has.
fn in_session(mut value: Value, id: impl Into<Value>) -> Value {
    value["sessionId"] = id.into();
    value
}

#[test]
fn a_session_id_beside_what_is_forwarded_is_the_conversation_of_each_call() {
    for name in NAMES {
        assert_eq!(call(&format!("converse/{name}.json")).caller.conversation(), Some("session-0001"), "{name}");
    }
    for body in [
        in_session(tool_use(), "s"),
        in_session(json!({ "toolUse": tool_use() }), "s"),
        in_session(message(), "s"),
        json!({ "output": { "message": in_session(message(), "s") } }),
        json!({ "output": in_session(json!({ "message": message() }), "s") }),
        in_session(json!({ "output": { "message": in_session(message(), "s") } }), "s"),
    ] {
        assert_eq!(conversation(body.clone()).as_deref(), Some("s"), "{body}");
    }
    let two = in_session(file("converse/two-calls-one-bad.json").body, "s");
    let calls = request(event(two)).calls;
    assert_eq!(calls.iter().map(|call| call.caller.conversation()).collect::<Vec<_>>(), [Some("s"), Some("s")]);
}

#[test]
fn without_a_session_id_there_is_no_conversation() {
    for body in [
        json!({ "toolUse": tool_use() }),
        json!([{ "toolUse": tool_use() }]),
        message(),
        in_session(message(), json!(null)),
        in_session(message(), ""),
    ] {
        assert_eq!(conversation(body.clone()), None, "{body}");
    }
}

#[test]
fn nothing_that_the_model_writes_names_the_conversation() {
    let mut call = tool_use();
    call["input"]["sessionId"] = json!("chosen");
    call["input"]["SessionId"] = json!("chosen");
    assert_eq!(conversation(json!({ "toolUse": call })), None);
    assert_eq!(conversation(in_session(json!({ "toolUse": call }), "s")).as_deref(), Some("s"));
    let mut message = message();
    message["content"] = json!([{ "text": "{\"sessionId\": \"chosen\"}" }, { "toolUse": call }]);
    assert_eq!(conversation(message), None);
}

#[test]
fn a_session_id_that_would_be_overlooked_refuses_the_event() {
    let in_block = in_session(json!({ "toolUse": tool_use() }), "s");
    let in_call = json!({ "toolUse": in_session(tool_use(), "s") });
    assert!(refusal(file("converse/session-inside-of-the-call.json")).contains("beside"));
    for body in
        [in_call.clone(), json!([in_block]), json!([in_call]), json!({ "role": "assistant", "content": [in_block] })]
    {
        assert!(refusal(event(body.clone())).contains("beside"), "{body}");
    }
    assert!(refusal(file("converse/two-sessions.json")).contains("not the same"));
    for body in [
        in_session(json!({ "toolUse": in_session(tool_use(), "t") }), "s"),
        in_session(json!({ "output": in_session(json!({ "message": message() }), "t") }), "s"),
        in_session(json!({ "output": { "message": in_session(message(), "") } }), "s"),
    ] {
        assert!(refusal(event(body.clone())).contains("not the same"), "{body}");
    }
    let mut other = json!({ "toolUse": tool_use() });
    other["SessionId"] = json!("s");
    assert!(refusal(event(other)).contains("spelling"));
}

#[test]
fn a_session_id_that_is_no_text_refuses_the_event() {
    for id in [json!(7), json!(true), json!(["s"]), json!({ "id": "s" })] {
        assert!(refusal(event(in_session(message(), id.clone()))).contains("no text"), "{id}");
    }
}

#[test]
fn a_session_id_is_not_in_the_answer_where_bedrock_would_refuse_it() {
    for name in NAMES {
        let answer = answer(file(&format!("converse/{name}.json")), vec![success(json!({ "n": 1 }))]).to_string();
        assert!(answer.contains("oolResult") && !answer.contains("ession"), "{answer}");
    }
}
