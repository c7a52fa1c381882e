use std::path::{Path, PathBuf};

use serde_json::json;

use crate::door::{
    DOORS, Event, detect, named,
    testing::{all, event, file, read, toolbox},
};

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("events").join(folder);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn refusal(event: Event) -> String {
    match detect(&event, &all()) {
        Err(refusal) => refusal.to_string(),
        Ok(door) => (door.decode)(event, &toolbox()).expect_err("a refusal").to_string(),
    }
}

#[test]
fn every_event_comes_through_the_door_of_its_folder() {
    for door in &DOORS {
        assert!(files(door.name).len() > 10, "{}", door.name);
        for path in files(door.name) {
            assert_eq!(detect(&read(&path), &all()).map(|d| d.name), Ok(door.name), "{}", path.display());
        }
    }
}

#[test]
fn every_demo_tool_has_a_good_event_at_every_door() {
    let names = toolbox().names().map(|name| format!("{}.json", name.replace('_', "-"))).collect::<Vec<_>>();
    for (door, name) in DOORS.iter().flat_map(|door| names.iter().map(move |name| (door, name))) {
        let event = file(&format!("{}/{name}", door.name));
        let request = (door.decode)(event, &toolbox()).unwrap();
        assert_eq!(request.calls.len(), 1, "{} {name}", door.name);
        let call = &request.calls[0];
        assert_eq!(format!("{}.json", call.tool.replace('_', "-")), *name);
        assert_eq!((call.arguments.faults.len(), &call.objection), (0, &None), "{} {name}", door.name);
        let definition = toolbox().get(&call.tool).unwrap().definition().clone();
        let missing: Vec<_> = definition
            .properties()
            .filter(|(argument, _)| definition.requires(argument) && !call.arguments.values.contains_key(*argument))
            .collect();
        assert!(missing.is_empty(), "{} {name}: {missing:?}", door.name);
    }
}

#[test]
fn what_is_no_call_is_refused_by_what_it_looks_like() {
    for (name, word) in [
        ("interceptor", "interceptor"),
        ("agent-parser", "parser"),
        ("agent-without-function", "neither `function` nor"),
        ("agent-function-and-path", "two kinds at once, agent-function and agent-openapi"),
        ("action-group-is-no-text", "an agent's event whose `actionGroup` is no text"),
        ("lex", "Lex"),
        ("api-gateway", "HTTP request"),
        ("function-url", "HTTP request"),
        ("s3", "S3"),
        ("sqs", "SQS"),
        ("sns", "SNS"),
        ("event-bridge", "EventBridge"),
        ("return-of-control-result", "InvokeAgent"),
        ("session-state-function", "InvokeAgent"),
        ("responses-api-call", "Responses API"),
        ("anthropic-tool-use", "Anthropic"),
        ("tool-result", "toolResult"),
        ("bare-arguments", "bedrockAgentCoreToolName"),
        ("empty-object", "an empty object"),
        ("empty-list", "an empty list"),
        ("text", "a text"),
        ("number", "a number"),
        ("null", "null"),
    ] {
        let sentence = refusal(file(&format!("not-a-call/{name}.json")));
        assert!(sentence.contains(word), "{name}: {sentence}");
    }
    assert_eq!(files("not-a-call").len(), 23, "name each file above");
}

#[test]
fn what_other_apis_hand_on_is_not_taken_for_bare_arguments() {
    let call = json!({ "id": "a", "type": "function", "function": { "name": "get_order", "arguments": "{}" } });
    let block = file("converse/get-order.json").body;
    for (body, word) in [
        (json!({ "messages": [{ "role": "assistant", "content": [block] }] }), "a whole conversation"),
        (json!({ "tool_calls": [call] }), "Chat Completions"),
        (call.clone(), "Chat Completions"),
        (json!({ "choices": [{ "message": { "role": "assistant", "tool_calls": [call] } }] }), "Chat Completions"),
        (json!({ "output": [{ "type": "function_call", "call_id": "a" }] }), "Responses API"),
        (json!({ "contentBlockStart": { "start": block } }), "ConverseStream"),
        (json!({ "warmup": true }), "bare arguments, or another event"),
        (json!({ "flow": "x", "node": { "name": "get_order" } }), "`flow` or `node` is missing or no object"),
    ] {
        let sentence = refusal(event(body));
        assert!(sentence.contains(word), "{sentence}");
    }
}

#[test]
fn a_refusal_lists_the_open_doors() {
    let open = [named("converse").unwrap(), named("gateway").unwrap()];
    let sentence = detect(&event(json!(7)), &open).unwrap_err().to_string();
    assert_eq!(
        sentence,
        "The event is no tool call that is served here: it looks like a number. Open doors: converse, gateway."
    );
}

#[test]
fn an_event_of_a_closed_door_is_tried_at_no_other() {
    let open = [named("agent-function").unwrap()];
    let sentence = detect(&file("gateway/imitates-an-agent.json"), &open).unwrap_err().to_string();
    assert!(sentence.contains("the door gateway, which is closed"), "{sentence}");
    assert_eq!(detect(&file("agent-function/get-order.json"), &open).unwrap().name, "agent-function");
}

#[test]
fn an_event_of_two_doors_at_once_is_refused_because_the_calls_of_one_would_go_unanswered() {
    let body = |name: &str| file(name).body;
    let each = [
        body("mcp/get-order.json"),
        body("agent-function/get-order.json"),
        body("agent-openapi/get-order.json"),
        body("flow/get-order.json"),
        body("converse/get-order.json"),
        body("return-of-control/get-order.json"),
    ];
    for (one, other) in each.iter().flat_map(|one| each.iter().map(move |other| (one, other))) {
        if one == other {
            continue;
        }
        let mut both = one.clone();
        both.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
        let sentence = refusal(event(both.clone()));
        assert!(sentence.contains("two kinds at once"), "{sentence}: {both}");
        let gateway = Event { body: both, ..file("gateway/get-order.json") };
        assert_eq!(detect(&gateway, &all()).unwrap().name, "gateway", "there it is nothing but arguments");
    }
}

#[test]
fn a_gateways_context_without_a_tool_name_never_falls_back_to_the_body() {
    let mut broken = file("gateway/no-tool-name.json");
    broken.body = file("agent-function/refund-order.json").body;
    let sentence = refusal(broken);
    assert!(sentence.contains("bedrockAgentCoreToolName is missing in `custom`"), "{sentence}");
}

#[test]
fn an_interceptors_event_is_no_call_whatever_else_it_holds() {
    let mut body = file("agent-function/refund-order.json").body;
    body["interceptorInputVersion"] = json!("1.0");
    assert!(refusal(event(body)).contains("interceptor"));
    let mut body = file("converse/refund-order.json").body;
    body["interceptorInputVersion"] = json!("1.0");
    assert!(refusal(event(body)).contains("interceptor"));
}

#[test]
fn a_client_context_of_another_client_does_not_close_the_other_doors() {
    for context in [json!("not json"), json!(null), json!({ "custom": { "app": "x" } }), json!({ "custom": [1] })] {
        let event = Event { client_context: Some(context), ..file("converse/get-order.json") };
        assert_eq!(detect(&event, &all()).unwrap().name, "converse");
    }
}

#[test]
fn a_refusal_quotes_no_more_of_an_event_than_a_name() {
    let long = "x".repeat(5_000);
    let sentence = refusal(event(json!({ "toolUse": { "toolUseId": long, "name": "get_order" } })));
    assert!(sentence.len() < 500, "{sentence}");
}
