//! What of an unclear payload is said back: nothing that may not be what its sender wrote.

use serde_json::{Value, json};

use super::invalid;
use crate::door::{
    Event, detect,
    testing::{all, payload, toolbox},
};

/// The answer to a payload, or `None` if it is refused.
fn answer(bytes: &[u8]) -> Option<Value> {
    let event: Event = payload(bytes);
    assert!(event.flawed, "{}", String::from_utf8_lossy(bytes));
    let request = (detect(&event, &all()).ok()?.decode)(event, &toolbox()).ok()?;
    let outcomes = vec![invalid(); request.calls.len()];
    (!outcomes.is_empty()).then(|| (request.encode)(outcomes))
}

/// The event with this byte in the place of each question mark: one that is no UTF-8.
fn broken(event: &str) -> Vec<u8> {
    event.bytes().map(|byte| if byte == b'?' { 0xff } else { byte }).collect()
}

#[test]
fn an_agent_gets_no_attributes_back_that_may_have_been_changed_on_the_way() {
    let attributes = r#""sessionAttributes":{"user":"u?"},"promptSessionAttributes":{"a":"1","a":"2"}"#;
    for names in [r#""function":"get_order""#, r#""apiPath":"/orders/{order_id}","httpMethod":"GET""#] {
        let answer =
            answer(&broken(&format!(r#"{{"actionGroup":"orders",{names},{attributes}}}"#))).expect("an answer");
        assert_eq!(answer["response"]["actionGroup"], "orders");
        assert!(answer.get("sessionAttributes").is_none() && answer.get("promptSessionAttributes").is_none());
    }
}

#[test]
fn a_name_that_was_mended_is_not_echoed_and_nothing_can_be_answered_without_it() {
    for event in [
        r#"{"actionGroup":"orders?","function":"get_order"}"#,
        r#"{"actionGroup":"orders","function":"get_order?"}"#,
        r#"{"actionGroup":"orders","apiPath":"/orders?","httpMethod":"GET"}"#,
        r#"{"actionGroup":"orders","apiPath":"/orders","httpMethod":"GET?"}"#,
        r#"{"invocationId":"1","invocationInputs":[{"functionInvocationInput":{"actionGroup":"orders?","function":"x"}}]}"#,
        r#"{"invocationId":"1","invocationInputs":[{"functionInvocationInput":{"actionGroup":"a","function":"x?"}}]}"#,
        r#"{"invocationId":"1","invocationInputs":[{"apiInvocationInput":{"actionGroup":"a","apiPath":"/?"}}]}"#,
        r#"{"invocationId":"1","invocationInputs":[{"apiInvocationInput":{"actionGroup":"a","agentId":"?"}}]}"#,
    ] {
        assert_eq!(answer(&broken(event)), None, "{event}");
    }
}

#[test]
fn an_id_that_was_mended_is_not_answered_as_if_it_were_the_clients() {
    let mcp = |id: &str, more: &str| {
        let params = format!(r#"{{"name":"get_order","arguments":{{{more}}}}}"#);
        answer(&broken(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#)))
    };
    for id in [r#""a?""#, r#""\ud800""#, "1e400"] {
        assert_eq!(mcp(id, ""), None, "{id}");
    }
    assert_eq!(mcp("7", r#""a":"?""#).expect("an answer")["id"], json!(7), "this one was not");

    let control = |id: &str| {
        let input = r#"{"functionInvocationInput":{"actionGroup":"a","function":"x","parameters":[{"name":"?"}]}}"#;
        answer(&broken(&format!(r#"{{"invocationId":{id},"invocationInputs":[{input}]}}"#)))
    };
    for id in [r#""a?""#, "1e400", "null"] {
        assert_eq!(control(id), None, "{id}");
    }
    assert_eq!(control(r#""id-1""#).expect("an answer")["invocationId"], "id-1");
}

#[test]
fn calls_are_answered_only_if_all_of_them_could_be_read() {
    let many = format!("[{}0]", "0,".repeat(100_000));
    let tool_use =
        |id: &str, input: &str| format!(r#"{{"toolUse":{{"toolUseId":"{id}","name":"x","input":{input}}}}}"#);
    let [long, short] = [tool_use("a", &many), tool_use("b", "{}")];
    let control = |inputs: &str| format!(r#"{{"returnControl":{{"invocationId":"1","invocationInputs":[{inputs}]}}}}"#);
    let input = |parameters: &str| {
        let input = format!(r#"{{"actionGroup":"a","function":"x","parameters":{parameters}}}"#);
        format!(r#"{{"functionInvocationInput":{input}}}"#)
    };
    for lost in [
        format!("[{long},{short}]"),
        format!(r#"{{"role":"assistant","content":[{long},{short}]}}"#),
        control(&[input(&many), input("[]")].join(",")),
    ] {
        assert_eq!(answer(lost.as_bytes()), None, "one would be left without its result");
    }
    for whole in [format!("[{short},{long}]"), control(&[input("[]"), input(&many)].join(","))] {
        let answer = answer(whole.as_bytes()).expect("an answer");
        let results = answer.get("returnControlInvocationResults").unwrap_or(&answer);
        assert_eq!(results.as_array().map(Vec::len), Some(2));
    }
}
