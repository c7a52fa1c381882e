//! What may come next, drawn at random: replies, failures, outcomes, limits, kills.

use action_group::agent::limits::Limits;
use proptest::prelude::*;
use serde_json::{Value, json};

/// What may come next, drawn at random. Each number chooses among what is possible then.
#[derive(Clone, Debug)]
pub struct Chance {
    /// Kills the process: before the action (0), after it and before it is saved (1), not at all.
    pub kill: u8,
    pub reply: Value,
    pub stop_reason: &'static str,
    pub usage: Option<(u64, u64)>,
    pub fails: u8,
    pub outcomes: Vec<u8>,
    pub time: u64,
    pub person: u8,
}

fn block() -> impl Strategy<Value = Value> {
    let id = prop_oneof![4 => "[ab]", 1 => Just(String::new()), 1 => "[ -~]{1,80}"];
    let name = prop_oneof![
        5 => Just("look"),
        4 => Just("pay"),
        4 => Just("mail"),
        1 => Just("no_such_tool"),
        1 => Just("lo ok"),
        1 => Just(""),
    ];
    let input = prop_oneof![
        6 => (0_u8..4).prop_map(|n| json!({ "n": n })),
        1 => Just(json!(null)),
        1 => Just(json!("words")),
        1 => Just(json!({"a": {"__type": 1}})),
    ];
    let call = (id, name, input)
        .prop_map(|(id, name, input)| json!({"toolUse": {"toolUseId": id, "name": name, "input": input}}));
    prop_oneof![
        6 => call,
        2 => prop_oneof![Just(""), Just(" "), Just("Some text.")].prop_map(|text| json!({ "text": text })),
        1 => Just(json!({"reasoningContent": {"reasoningText": {"text": "Hm."}}})),
        1 => Just(json!({"toolUse": null, "text": null})),
        1 => Just(json!({"toolResult": {"toolUseId": "a", "status": "success", "content": [{"text": "x"}]}})),
    ]
}

/// A chance.
pub fn chance() -> impl Strategy<Value = Chance> {
    let reasons = prop_oneof![
        12 => Just("tool_use"),
        3 => Just("end_turn"),
        1 => Just("max_tokens"),
        1 => Just("malformed_tool_use"),
        1 => Just("stop_sequence"),
        1 => Just("guardrail_intervened"),
        1 => Just("brand_new"),
    ];
    let usage = prop::option::weighted(0.8, (0_u64..3_000, 0_u64..500));
    let reply = prop::collection::vec(block(), 0..5).prop_map(Value::from);
    let outcomes = prop::collection::vec(0_u8..8, 0..6);
    (0_u8..10, reply, reasons, usage, 0_u8..12, outcomes, 0_u64..20, 0_u8..8).prop_map(
        |(kill, reply, stop_reason, usage, fails, outcomes, time, person)| Chance {
            kill,
            reply,
            stop_reason,
            usage,
            fails,
            outcomes,
            time,
            person,
        },
    )
}

/// Limits that a random turn may well reach.
pub fn limits() -> impl Strategy<Value = Limits> {
    (1_u32..6, 0_u32..8, 1_u32..4, 1_u32..4, 0_u64..30_000).prop_map(|(steps, calls, row, same, tokens)| Limits {
        max_steps: steps,
        max_tool_calls: calls,
        max_consecutive_failures: row,
        max_identical_failures: same,
        ..Limits::new(tokens)
    })
}
