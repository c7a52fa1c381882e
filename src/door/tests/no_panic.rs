//! Anything may come: nothing that is JSON makes a door panic, and every call gets its answer.

use proptest::prelude::*;
use serde_json::{Map, Value};

use super::{invalid, unavailable};
use crate::door::{
    DOORS, Event, detect,
    testing::{all, success, toolbox},
};

/// Words that doors look for, so that arbitrary JSON comes near to real events.
const WORDS: [&str; 54] = [
    "toolUse",
    "toolUseId",
    "name",
    "input",
    "type",
    "server_tool_use",
    "role",
    "assistant",
    "content",
    "output",
    "message",
    "stopReason",
    "max_tokens",
    "actionGroup",
    "function",
    "get_order",
    "order_id",
    "ORD-12345",
    "apiPath",
    "/orders/{order_id}",
    "httpMethod",
    "GET",
    "parameters",
    "value",
    "requestBody",
    "application/json",
    "properties",
    "sessionId",
    "SessionId",
    "sessionAttributes",
    "custom",
    "bedrockAgentCoreToolName",
    "orders___get_order",
    "Records",
    "jsonrpc",
    "2.0",
    "id",
    "method",
    "tools/call",
    "tools/list",
    "params",
    "arguments",
    "flow",
    "node",
    "inputs",
    "returnControl",
    "invocationInputs",
    "functionInvocationInput",
    "apiInvocationInput",
    "actionInvocationType",
    "RESULT",
    "ToolUse",
    "ToolUseId",
    "Name",
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![9 => prop::sample::select(&WORDS[..]).prop_map(String::from), 1 => any::<String>()]
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((word(), inner), 0..9)
                .prop_map(|fields| Value::from(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_json_makes_a_door_panic(body in json(), client_context in prop::option::of(json()), result in json()) {
        let event = Event { body, flawed: false, client_context };
        let found = detect(&event, &all()).map(|door| door.name);
        for door in &DOORS {
            // Each door is asked, whether or not it recognises the event.
            if let Ok(request) = (door.decode)(event.clone(), &toolbox()) {
                let outcome = |n: usize| match n % 3 { 0 => success(result.clone()), 1 => invalid(), _ => unavailable() };
                let outcomes: Vec<_> = (0..request.calls.len()).map(outcome).collect();
                let answer = (request.encode)(outcomes);
                let may_be_null = door.name == "mcp"; // a notification's
                prop_assert!(found != Ok(door.name) || may_be_null || !answer.is_null());
            }
        }
    }
}
