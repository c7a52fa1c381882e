use serde_json::{Value, json};

use super::{call, faults, invalid};
use crate::door::{
    Event, detect,
    testing::{all, answer, file, replay, success, toolbox},
};

fn named(name: &Value) -> Event {
    Event {
        body: json!({}),
        flawed: false,
        client_context: Some(json!({ "custom": { "bedrockAgentCoreToolName": name } })),
    }
}

fn tool(name: &str) -> String {
    super::request(named(&json!(name))).calls.remove(0).tool
}

#[test]
fn a_result_and_an_error_stand_in_one_envelope() {
    let outcome = |outcome| answer(file("gateway/get-order.json"), vec![outcome]);
    assert_eq!(outcome(success(json!({ "id": 1 }))), json!({ "ok": true, "result": { "id": 1 } }));
    assert_eq!(outcome(success(json!(null))), json!({ "ok": true, "result": null }));
    assert_eq!(outcome(replay(json!([1]))), json!({ "ok": true, "replayed": true, "result": [1] }));
    let error = json!({
        "kind": "invalid_input",
        "message": "limit must be at most 50. Nothing was changed.",
        "retryable": false,
        "changed": "nothing",
    });
    assert_eq!(outcome(invalid()), json!({ "ok": false, "error": error }));
}

#[test]
fn the_targets_name_ends_at_the_first_separator() {
    assert_eq!(tool("orders___get_order"), "get_order");
    assert_eq!(tool("orders___search___get_order"), "search___get_order");
    assert_eq!(tool("get_order"), "get_order");
    assert_eq!(tool("orders___internal.get_order"), "internal.get_order");
    assert_eq!(tool("orders___"), "");
}

#[test]
fn a_key_of_the_gateway_at_another_place_leaves_no_other_door_open() {
    let imitation = file("agent-function/refund-order.json").body;
    let key = json!({ "bedrockAgentCoreToolName": "orders___get_order" });
    for context in [
        key.clone(),
        json!({ "Custom": key }),
        json!({ "client": { "custom": key } }),
        json!({ "env": key, "custom": { "app": "x" } }),
        json!({ "custom": { "nested": [key] } }),
        json!({ "custom": [key] }),
        json!({ "BEDROCKAGENTCORE_TARGET": "x" }),
    ] {
        let event = Event { body: imitation.clone(), client_context: Some(context.clone()), flawed: false };
        let door = detect(&event, &all()).unwrap();
        assert_eq!(door.name, "gateway", "{context}");
        let sentence = (door.decode)(event, &toolbox()).unwrap_err().to_string();
        assert!(sentence.contains("is missing in `custom`"), "{sentence}");
    }
}

#[test]
fn the_key_is_read_in_any_letter_case() {
    assert_eq!(call("gateway/preview-spelling.json").tool, "get_order");
}

#[test]
fn the_name_itself_keeps_its_letter_case_and_its_blanks() {
    assert_eq!(tool("orders___GET_ORDER"), "GET_ORDER");
    assert_eq!(tool("orders___get_order "), "get_order ");
}

#[test]
fn a_long_name_is_cut_so_that_it_is_no_tools_name() {
    let name = tool(&format!("orders___{}", "x".repeat(300)));
    assert_eq!(name.chars().count(), 81);
    assert!(name.ends_with('…'));
}

#[test]
fn objects_beside_the_name_are_no_obstacle() {
    for name in ["propagated-headers", "client-null"] {
        assert_eq!(call(&format!("gateway/{name}.json")).tool, "get_order");
    }
}

#[test]
fn the_body_is_only_ever_the_arguments() {
    let call = call("gateway/imitates-an-agent.json");
    assert_eq!(call.tool, "send_email");
    assert_eq!(call.arguments.values["function"], "refund_order");
}

#[test]
fn null_is_no_arguments_and_a_list_is_a_fault() {
    let none = call("gateway/null-arguments.json").arguments;
    assert!(none.values.is_empty() && none.faults.is_empty());
    let list = call("gateway/list-arguments.json").arguments;
    assert!(list.values.is_empty());
    assert!(faults(&list)[0].contains("must be an object, but are a list"));
}

#[test]
fn a_name_that_is_no_text_or_two_names_are_refused() {
    let twice = json!({ "bedrockAgentCoreToolName": "a___get_order", "bedrockagentcoreToolName": "a___refund_order" });
    let twice = Event { body: json!({}), flawed: false, client_context: Some(json!({ "custom": twice })) };
    for (event, word) in [(named(&json!({ "name": "get_order" })), "is no text"), (twice, "more than once")] {
        let door = detect(&event, &all()).unwrap();
        assert_eq!(door.name, "gateway");
        let sentence = (door.decode)(event, &toolbox()).unwrap_err().to_string();
        assert!(sentence.contains(word), "{sentence}");
    }
}

#[test]
fn the_id_for_the_log_is_the_gateways_request_id() {
    assert_eq!(call("gateway/get-order.json").id.as_deref(), Some("19d00000-0000-4000-8000-000000000001"));
    assert_eq!(call("gateway/no-prefix.json").id, None);
}
