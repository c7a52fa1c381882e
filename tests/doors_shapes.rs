//! Every answer is legal for Bedrock: all events of `events/`, however their calls end, against rules of their own.

mod legal;

use std::path::{Path, PathBuf};

use action_group::{
    door::{DOORS, Event, detect},
    outcome::{Failure, FailureKind, Outcome},
    payload,
    tool::Toolbox,
    tools::{self, Backends},
};
use aws_config::{BehaviorVersion, Region, SdkConfig};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The demo tools. Nothing is run here.
fn toolbox() -> Toolbox {
    let settings = tools::Settings {
        orders_table: String::from("orders"),
        refunds_table: String::from("refunds"),
        carrier_url: String::from("http://127.0.0.1:1"),
        mail_from: String::from("shop@example.com"),
    };
    let sdk = SdkConfig::builder().behavior_version(BehaviorVersion::latest()).region(Region::new("us-east-1")).build();
    tools::toolbox(Backends::new(&settings, &sdk)).expect("good tools")
}

fn files_below(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(files_below(path.to_str().expect("a name in UTF-8")));
        } else {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Every event file, with its name.
fn events() -> Vec<(String, Event)> {
    let read = |path: PathBuf| {
        let value: Value = serde_json::from_slice(&std::fs::read(&path).expect("a file")).expect("JSON");
        let name = path.components().rev().take(2).map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>();
        (format!("{}/{}", name[1], name[0]), event(value))
    };
    files_below("events").into_iter().chain(files_below("tests/fixtures/doors")).map(read).collect()
}

fn event(mut value: Value) -> Event {
    if value.get("clientContext").is_some() && value.get("event").is_some() {
        let client_context = Some(value["clientContext"].take());
        return Event { body: value["event"].take(), flawed: false, client_context };
    }
    Event { body: value, flawed: false, client_context: None }
}

/// Ways in which a call may end.
fn outcomes() -> Vec<Outcome> {
    let results = [
        json!({ "n": 1 }),
        json!({}),
        json!([1, "two"]),
        json!([]),
        json!(""),
        json!(" "),
        json!(null),
        json!(false),
        json!(0),
        json!({ "a": [{ "__type": "x" }] }),
        json!([{ "__type": "x" }]),
        json!("\u{0}\u{fffd}\"\\"),
        json!({ "text": "x".repeat(24_000) }),
        json!("\"".repeat(12_000)),
    ];
    let successes = results
        .into_iter()
        .flat_map(|result| [false, true].map(|replayed| Outcome::Success { result: result.clone(), replayed }));
    let failures = FailureKind::ALL.map(|kind| Outcome::Failure(Failure::new(kind, "It did not work. Do something.")));
    successes.chain(failures).collect()
}

/// The door and the answer, if the calls that may run end so; or the refusal.
fn answer(event: Event, toolbox: &Toolbox, outcome: &Outcome) -> Result<(&'static str, Value), String> {
    let door = detect(&event, &DOORS.iter().collect::<Vec<_>>()).map_err(|refusal| refusal.to_string())?;
    let request = (door.decode)(event, toolbox).map_err(|refusal| refusal.to_string())?;
    let ends = request.calls.iter().map(|call| match &call.objection {
        Some(objection) => Outcome::Failure(objection.clone()),
        None if toolbox.get(&call.tool).is_none() => {
            Outcome::Failure(Failure::new(FailureKind::UnknownTool, "There is no such tool."))
        }
        None => outcome.clone(),
    });
    let ends = ends.collect();
    Ok((door.name, (request.encode)(ends)))
}

#[test]
fn every_event_has_a_legal_answer_however_its_calls_end() {
    let (toolbox, outcomes) = (toolbox(), outcomes());
    let mut answered = 0;
    for (name, event) in events() {
        for outcome in &outcomes {
            let Ok((door, answer)) = answer(event.clone(), &toolbox, outcome) else { continue };
            answered += 1;
            let faults = legal::faults(door, &event.body, &answer);
            let shown: String = answer.to_string().chars().take(600).collect();
            assert!(faults.is_empty(), "{name}: {faults:#?}\n{shown}");
        }
    }
    assert!(answered > 6_000, "only {answered} answers were looked at");
}

#[test]
fn the_largest_result_that_a_call_may_have_has_a_legal_answer() {
    let toolbox = toolbox();
    for result in
        [json!({ "text": "é".repeat(170_000) }), json!("\"".repeat(170_000)), json!({ "n": vec![1; 170_000] })]
    {
        let outcome = Outcome::Success { result, replayed: false };
        for (door, name) in DOORS.iter().flat_map(|door| ["get-order", "refund-order"].map(|name| (door.name, name))) {
            let path =
                Path::new(env!("CARGO_MANIFEST_DIR")).join("events").join(door).join(name).with_extension("json");
            let event = event(serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON"));
            let (_, answer) = answer(event.clone(), &toolbox, &outcome).expect("an answer");
            assert_eq!(legal::faults(door, &event.body, &answer), Vec::<String>::new(), "{door} {name}");
        }
    }
}

#[test]
fn attributes_that_are_not_all_texts_are_not_answered() {
    let toolbox = toolbox();
    for (form, attributes) in ["agent-function", "agent-openapi"].iter().flat_map(|form| {
        [json!({ "tenant": "t", "n": 1 }), json!({ "n": null }), json!({ "n": { "m": "x" } }), json!(["x"]), json!("x")]
            .map(|attributes| (form, attributes))
    }) {
        for name in ["sessionAttributes", "promptSessionAttributes"] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("events").join(form).join("get-order.json");
            let mut event = event(serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON"));
            event.body[name] = attributes.clone();
            let (door, answer) = answer(event.clone(), &toolbox, &outcomes()[0]).expect("an answer");
            assert_eq!(legal::faults(door, &event.body, &answer), Vec::<String>::new(), "{answer}");
            assert!(answer.get(name).is_none(), "{form}: {answer}");
        }
    }
}

#[test]
fn the_rules_find_answers_that_bedrock_refuses() {
    let asked = json!({ "toolUse": { "toolUseId": "a", "name": "x", "input": {} } });
    let result = |content: Value, status: &str| json!({ "toolResult": { "toolUseId": "a", "status": status, "content": content } });
    let function = json!({ "actionGroup": "g", "function": "f" });
    let answered = |key: &str, body: Value| {
        let response = json!({ "responseBody": { key: { "body": body } } });
        json!({ "messageVersion": "1.0", "response": { "actionGroup": "g", "function": "f", "functionResponse": response } })
    };
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call" });
    for (door, event, answer) in [
        ("converse", &asked, result(json!([{ "json": [1] }]), "success")),
        ("converse", &asked, result(json!([{ "json": { "a": { "__type": 1 } } }]), "success")),
        ("converse", &asked, result(json!([]), "error")),
        ("converse", &asked, result(json!([{ "text": " " }]), "error")),
        (
            "converse",
            &asked,
            json!({ "toolResult": { "toolUseId": "b", "status": "error", "content": [{ "text": "x" }] } }),
        ),
        ("agent-function", &function, answered("text/plain", json!("x"))),
        ("agent-function", &function, answered("TEXT", json!({ "n": 1 }))),
        ("agent-function", &function, answered("TEXT", json!("x".repeat(26_000)))),
        ("mcp", &request, json!(null)),
        ("mcp", &request, json!({ "jsonrpc": "2.0", "id": 2, "error": { "code": -32600, "message": "x" } })),
        ("mcp", &request, json!({ "jsonrpc": "2.0", "id": 1, "result": { "content": [] } })),
        ("gateway", &request, json!({ "ok": false, "error": "x" })),
    ] {
        assert!(!legal::faults(door, event, &answer).is_empty(), "{door}: {answer}");
    }
    assert_eq!(legal::faults("converse", &asked, &result(json!([{ "text": "x" }]), "error")), Vec::<String>::new());
    assert_eq!(legal::faults("agent-function", &function, &answered("TEXT", json!("x"))), Vec::<String>::new());
}

/// A change of one place in an event.
#[derive(Clone, Debug)]
enum Change {
    Replace(Value),
    Remove,
    Double,
    Wrap,
}

/// Every place in the value, counted depth first; the change is made at one of them.
fn change(value: &mut Value, place: &mut usize, change_to: &Change) {
    if *place == 0 {
        match change_to {
            Change::Replace(other) => *value = other.clone(),
            Change::Remove => *value = Value::Null,
            Change::Double => *value = json!([value.clone(), value.clone()]),
            Change::Wrap => *value = json!({ "value": value.clone() }),
        }
    }
    let Some(left) = place.checked_sub(1) else { return };
    *place = left;
    match value {
        Value::Array(items) => {
            if *place == 0 && matches!(change_to, Change::Double) && !items.is_empty() {
                items.push(items[0].clone());
            }
            for item in items {
                change(item, place, change_to);
            }
        }
        Value::Object(fields) => {
            if *place == 0 && matches!(change_to, Change::Remove) {
                let first = fields.keys().next().cloned();
                first.and_then(|name| fields.remove(&name));
            }
            for (_, field) in fields {
                change(field, place, change_to);
            }
        }
        _ => {}
    }
}

fn odd_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        Just(json!([])),
        Just(json!({})),
        Just(json!("")),
        Just(json!(0)),
        Just(json!(true)),
        Just(json!(-1.5e300)),
        Just(json!("assistant")),
        Just(json!("server_tool_use")),
        Just(json!("get_order")),
        Just(json!("orders___get_order")),
        Just(json!("tools/call")),
        Just(json!("notifications/x")),
        Just(json!({ "toolUse": { "toolUseId": "a", "name": "get_order", "input": {} } })),
        Just(json!({ "ToolUse": { "ToolUseId": "a", "Name": "get_order", "Input": {} } })),
        Just(json!("x".repeat(70_000))),
        any::<String>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
    ]
}

fn changes() -> impl Strategy<Value = Vec<(usize, Change)>> {
    let one = prop_oneof![
        odd_value().prop_map(Change::Replace),
        Just(Change::Remove),
        Just(Change::Double),
        Just(Change::Wrap),
    ];
    prop::collection::vec((0_usize..40, one), 1..4)
}

/// An event with the fields of another one in it: of two forms, or of two doors, at once.
fn merged(event: &mut Event, other: &Event) {
    if let (Value::Object(fields), Value::Object(others)) = (&mut event.body, &other.body) {
        for (name, value) in others {
            fields.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
}

/// Whether a key of AgentCore is anywhere in here: the model has then written the body.
fn is_a_gateways(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields
            .iter()
            .any(|(name, value)| name.to_ascii_lowercase().starts_with("bedrockagentcore") || is_a_gateways(value)),
        Value::Array(items) => items.iter().any(is_a_gateways),
        _ => false,
    }
}

/// One legal answer, or a refusal in a sentence.
fn check(event: Event, toolbox: &Toolbox, outcome: &Outcome) -> Result<(), TestCaseError> {
    let is_a_gateways = event.client_context.as_ref().is_some_and(is_a_gateways);
    let (body, is_unclear) = (event.body.clone(), event.flawed);
    match answer(event, toolbox, outcome) {
        Ok((door, answer)) => {
            prop_assert_eq!(door == "gateway", is_a_gateways, "{}", body);
            let faults = legal::faults_of(door, &body, is_unclear, &answer);
            prop_assert!(faults.is_empty(), "{door}: {faults:#?}\n{body}\n{answer}");
        }
        Err(sentence) => prop_assert!(sentence.ends_with('.') && sentence.len() < 1_000, "{sentence}"),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn a_changed_event_has_one_legal_answer_or_is_refused_in_a_sentence(
        changed in prop::collection::vec(
            (any::<[prop::sample::Index; 3]>(), prop::bool::weighted(0.1), changes(), changes()),
            400,
        ),
    ) {
        let (toolbox, outcomes, events) = (toolbox(), outcomes(), events());
        for ([chosen, other, outcome], is_merged, changes, context) in changed {
            let mut event = chosen.get(&events).1.clone();
            if is_merged {
                merged(&mut event, &other.get(&events).1);
            }
            for (mut place, to) in changes {
                change(&mut event.body, &mut place, &to);
            }
            for (mut place, to) in context {
                event.client_context.iter_mut().for_each(|context| change(context, &mut place, &to));
            }
            check(event, &toolbox, outcome.get(&outcomes))?;
        }
    }

    #[test]
    fn changed_bytes_are_read_to_one_legal_answer_or_refused_in_a_sentence(
        changed in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)), 400),
    ) {
        let (toolbox, events) = (toolbox(), events());
        for (chosen, bytes) in changed {
            let event = chosen.get(&events).1.clone();
            let mut text = event.body.to_string().into_bytes();
            for (place, byte) in bytes {
                let place = place.index(text.len());
                if byte < 128 { text[place] = byte } else { text.insert(place, byte) }
            }
            match payload::read(&text) {
                Ok(payload) => check(Event { body: payload.value, flawed: payload.flaw.is_some(), ..event }, &toolbox, &outcomes()[0])?,
                Err(unreadable) => prop_assert!(unreadable.to_string().ends_with('.')),
            }
        }
    }
}
