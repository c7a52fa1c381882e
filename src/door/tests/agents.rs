use serde_json::{Value, json};

use super::{call, call_in, faults, invalid, request, unavailable};
use crate::{
    arguments::read_text,
    call::Call,
    door::{
        detect,
        testing::{all, answer, event, file, success, tool, toolbox, toolbox_of},
    },
    outcome::{Failure, FailureKind, Outcome},
    tool::{Effect, Route},
};

fn function(name: &str, outcome: Outcome) -> Value {
    answer(file(&format!("agent-function/{name}.json")), vec![outcome])
}

fn openapi(name: &str, outcome: Outcome) -> Value {
    answer(file(&format!("agent-openapi/{name}.json")), vec![outcome])
}

/// Any agent event with these parameters of a refund.
fn refund(parameters: &Value) -> Call {
    call_in(json!({ "actionGroup": "orders", "function": "refund_order", "parameters": parameters }))
}

/// What the schema of a refund's argument makes of a text.
fn as_read(argument: &str, text: &str) -> Value {
    let toolbox = toolbox();
    let schema = toolbox.get("refund_order").unwrap().definition().schema["properties"][argument].clone();
    read_text(argument, &schema, text).unwrap()
}

#[test]
fn a_functions_result_is_json_text_under_the_one_key_text() {
    let expected = json!({
        "messageVersion": "1.0",
        "response": {
            "actionGroup": "orders",
            "function": "get_order",
            "functionResponse": { "responseBody": { "TEXT": { "body": "{\"who\":\"día\"}" } } },
        },
        "sessionAttributes": { "tenant": "t1" },
        "promptSessionAttributes": { "today": "2026-11-29" },
    });
    assert_eq!(function("get-order", success(json!({ "who": "día" }))), expected);
}

#[test]
fn a_paths_result_is_json_text_with_status_200() {
    let expected = json!({
        "messageVersion": "1.0",
        "response": {
            "actionGroup": "orders",
            "apiPath": "/orders/{order_id}",
            "httpMethod": "GET",
            "httpStatusCode": 200,
            "responseBody": { "application/json": { "body": "[]" } },
        },
        "sessionAttributes": { "tenant": "t1" },
        "promptSessionAttributes": { "today": "2026-11-29" },
    });
    assert_eq!(openapi("get-order", success(json!([]))), expected);
}

#[test]
fn only_what_the_model_can_mend_is_a_reprompt_and_nothing_ends_the_turn() {
    for kind in FailureKind::ALL {
        let answer = function("get-order", Outcome::Failure(Failure::new(kind, "It failed.")));
        let response = &answer["response"]["functionResponse"];
        assert_eq!(response["responseBody"]["TEXT"]["body"], "It failed. Nothing was changed.");
        let mends = matches!(
            kind.name(),
            "invalid_input" | "not_found" | "rejected" | "unknown_tool" | "key_reused" | "too_large"
        );
        let state = response.get("responseState");
        assert_eq!(state, mends.then(|| json!("REPROMPT")).as_ref(), "{kind}");
    }
}

#[test]
fn a_paths_failure_is_told_in_the_body_with_status_200() {
    let answer = openapi("no-body", unavailable());
    assert_eq!(answer["response"]["httpStatusCode"], 200);
    let body = answer["response"]["responseBody"]["application/json"]["body"].as_str().unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!((&body["ok"], &body["error"]["kind"]), (&json!(false), &json!("transient")));
    assert!(answer["response"].get("responseState").is_none());
}

#[test]
fn names_are_echoed_as_they_came() {
    assert_eq!(openapi("method-in-small-letters", invalid())["response"]["httpMethod"], "get");
    assert_eq!(openapi("unknown-path", invalid())["response"]["apiPath"], "/nope");
    assert_eq!(function("unknown-tool", invalid())["response"]["function"], "get_ordr");
    assert_eq!(function("refund-order", invalid())["response"]["actionGroup"], "orders");
}

#[test]
fn an_action_group_that_is_no_text_names_none_and_nothing_runs() {
    for group in [json!(null), json!(5), json!({ "any": 1 }), json!(["orders"])] {
        for mut body in [file("agent-function/get-order.json").body, file("agent-openapi/get-order.json").body] {
            body["actionGroup"] = group.clone();
            assert!(detect(&event(body), &all()).is_err(), "Bedrock would refuse an answer with {group}");
        }
    }
}

#[test]
fn attributes_are_echoed_only_if_the_event_had_them() {
    for name in ["null-fields", "bare"] {
        let answer = function(name, success(json!({})));
        assert!(answer.get("sessionAttributes").is_none() && answer.get("promptSessionAttributes").is_none(), "{name}");
    }
    let odd =
        json!({ "actionGroup": "orders", "function": "x", "sessionAttributes": {}, "promptSessionAttributes": "t" });
    let answer = answer(event(odd), vec![invalid()]);
    assert_eq!(answer["sessionAttributes"], json!({}));
    assert!(answer.get("promptSessionAttributes").is_none());
}

#[test]
fn a_missing_null_or_empty_list_is_no_arguments() {
    for name in [
        "agent-function/null-fields.json",
        "agent-function/bare.json",
        "agent-function/empty-parameters.json",
        "agent-openapi/null-fields.json",
        "agent-openapi/bare.json",
    ] {
        let arguments = call(name).arguments;
        assert!(arguments.values.is_empty() && arguments.faults.is_empty(), "{name}");
    }
    assert_eq!(call("agent-openapi/empty-content.json").arguments.values.len(), 1);
}

#[test]
fn a_text_is_read_by_the_tools_schema_and_any_other_value_is_taken_as_it_is() {
    let by_text = call("agent-openapi/refund-order.json").arguments;
    assert_eq!(by_text.values["amount_cents"], as_read("amount_cents", "1500"));
    assert_eq!(by_text.values["order_id"], "ORD-12345");
    for name in ["agent-openapi/native-values.json", "agent-function/native-values.json"] {
        assert_eq!(call(name).arguments.values["amount_cents"], json!(1500), "{name}");
    }
    let list = call("agent-openapi/list-for-text.json").arguments;
    assert_eq!(list.values["reason"], json!(["damaged"]));
    // The type that the event states is not asked: here it is wrong.
    let wrong = refund(&json!([{ "name": "reason", "type": "integer", "value": "7" }]));
    assert_eq!(wrong.arguments.values["reason"], as_read("reason", "7"));
}

#[test]
fn the_type_may_be_missing() {
    assert_eq!(call("agent-function/missing-types.json").arguments.values["order_id"], "ORD-12345");
    let arguments = call("agent-openapi/missing-types.json").arguments;
    assert_eq!((arguments.values.len(), arguments.faults.len()), (3, 0));
}

#[test]
fn an_unknown_name_is_passed_on_for_the_check_to_refuse() {
    assert_eq!(call("agent-function/unknown-field.json").arguments.values["currency"], "EUR");
    assert_eq!(call("agent-openapi/unknown-field.json").arguments.values["currency"], "EUR");
}

#[test]
fn of_two_values_none_is_picked_and_one_fault_names_the_argument() {
    for (name, argument) in [
        ("agent-function/two-values.json", "order_id"),
        ("agent-openapi/two-values.json", "amount_cents"),
        ("agent-openapi/path-and-body-differ.json", "order_id"),
    ] {
        let arguments = call(name).arguments;
        assert!(!arguments.values.contains_key(argument), "{name}");
        assert_eq!(arguments.faults.len(), 1, "{name}");
        assert_eq!(arguments.faults[0].path, argument, "{name}");
    }
}

#[test]
fn equal_values_are_one_argument() {
    for name in ["agent-function/same-value-twice.json", "agent-openapi/path-and-body-agree.json"] {
        let arguments = call(name).arguments;
        assert_eq!((arguments.values["order_id"].as_str(), arguments.faults.len()), (Some("ORD-12345"), 0), "{name}");
    }
}

#[test]
fn a_value_without_a_name_is_a_fault_and_an_entry_with_neither_is_nothing() {
    let arguments = call("agent-function/value-without-name.json").arguments;
    assert_eq!(faults(&arguments).len(), 1);
    assert!(faults(&arguments)[0].contains("1 of the values came without a name"));
    let odd = refund(&json!([{ "value": 1 }, { "name": 7, "value": 1 }, "text", {}, null, { "type": "string" }]));
    assert!(faults(&odd.arguments)[0].contains("3 of the values"));
}

#[test]
fn a_list_of_another_shape_is_a_fault() {
    for parameters in [json!({ "order_id": "ORD-12345" }), json!("order_id=ORD-12345"), json!(7)] {
        assert_eq!(refund(&parameters).arguments.faults.len(), 1);
    }
}

#[test]
fn the_arguments_of_an_unknown_tool_are_not_read() {
    let call = call("agent-function/unknown-tool.json");
    assert_eq!((call.tool.as_str(), call.arguments.values.len()), ("get_ordr", 0));
}

#[test]
fn a_path_is_matched_exactly_and_its_method_in_any_letter_case() {
    assert_eq!(call("agent-openapi/method-in-small-letters.json").tool, "get_order");
    for (name, tool) in [
        ("unknown-path", "GET /nope"),
        ("unknown-method", "DELETE /orders/{order_id}"),
        ("below-a-route", "GET /orders/{order_id}/items"),
        ("filled-in-path", "GET /orders/ORD-12345"),
    ] {
        assert_eq!(call(&format!("agent-openapi/{name}.json")).tool, tool);
    }
    let long = json!({ "actionGroup": "a", "apiPath": "/x".repeat(9_000), "httpMethod": "GET" });
    assert!(call_in(long).tool.len() < 100);
}

#[test]
fn the_session_is_the_conversation_unless_it_is_empty() {
    assert_eq!(call("agent-function/get-order.json").caller.conversation(), Some("session-0001"));
    for name in ["agent-function/native-values.json", "agent-openapi/native-values.json", "agent-function/bare.json"] {
        assert_eq!(call(name).caller.conversation(), None, "{name}");
    }
}

#[test]
fn a_result_that_grows_too_large_as_text_is_told_as_such_unless_something_was_done() {
    let quotes = success(json!("\"".repeat(9_000))); // within the limit as JSON, twice that as text in JSON
    let read = function("get-order", quotes.clone());
    assert!(read.to_string().len() < 25_000);
    assert_eq!(read["response"]["functionResponse"]["responseState"], "REPROMPT");
    let text = read["response"]["functionResponse"]["responseBody"]["TEXT"]["body"].as_str().unwrap();
    assert!(text.contains("too large") && text.ends_with("Nothing was done."), "{text}");
    let written = function("refund-order", quotes);
    assert!(written["response"]["functionResponse"].get("responseState").is_none());
    assert!(written.to_string().contains("It was done."));
}

#[test]
fn one_event_is_one_call() {
    assert_eq!(request(file("agent-openapi/refund-order.json")).calls.len(), 1);
}

#[test]
fn the_import_proxys_values_are_taken_as_they_are() {
    let function = call("agent-function/proxy-native-values.json").arguments;
    assert_eq!((&function.values["limit"], &function.values["tags"]), (&json!(2), &json!(["vip", "two words"])));
    assert_eq!(function.values["status"], json!(null), "the check leaves it out");
    let openapi = call("agent-openapi/proxy-native-values.json").arguments;
    assert_eq!((&openapi.values["amount_cents"], openapi.faults.len()), (&json!(1500), 0));
    assert!(!openapi.values.contains_key("contentType"), "the media type, which the proxy repeats in the body");
    assert_eq!(call("agent-openapi/proxy-null-value.json").arguments.values["tags"], json!(["vip", "eu"]));
}

#[test]
fn objects_that_the_import_proxy_took_apart_are_put_together_by_the_schema() {
    let line = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let order = json!({ "type": "object", "properties": {
        "sku": { "type": "string" },
        "qty": { "type": "integer" },
        "lines": { "type": "array", "items": line },
        "to": { "type": "object", "additionalProperties": { "type": "object", "properties": {} } },
    } });
    let properties = json!({ "order": order, "lines": { "type": "array", "items": line } });
    let toolbox = toolbox_of(tool("some_tool", Effect::Once, Route::post("/orders"), &properties, &[]));
    let read = |name: &str, value: &Value| {
        let body =
            json!({ "actionGroup": "a", "function": "some_tool", "parameters": [{ "name": name, "value": value }] });
        let event = event(body);
        let request = (detect(&event, &all()).unwrap().decode)(event, &toolbox).unwrap();
        request.calls[0].arguments.values[name].clone()
    };
    let entry = |name: &str, value: Value| json!({ "name": name, "value": value, "type": "any" });
    let lines = json!([[entry("n", json!(1))], [], "loose"]);
    assert_eq!(read("lines", &lines), json!([{ "n": 1 }, {}, "loose"]));
    let taken_apart = json!([
        entry("sku", json!("A-7")),
        entry("qty", json!(2)),
        entry("lines", lines),
        entry("to", json!([entry("x", json!([]))])),
    ]);
    let whole = json!({ "sku": "A-7", "qty": 2, "lines": [{ "n": 1 }, {}, "loose"], "to": { "x": {} } });
    assert_eq!(read("order", &taken_apart), whole);
    assert_eq!(read("order", &whole), whole);
    // A text in it is read as one outside of it is, at whatever depth.
    let as_text = json!([
        entry("sku", json!("7")),
        entry("qty", json!("2")),
        entry("lines", json!([[entry("n", json!("1"))], "{}", [entry("n", json!(" 3.0 "))], { "n": "one" }])),
        entry("to", json!("{\"x\": {}}")),
    ]);
    let read_whole = json!({
        "sku": "7", "qty": 2, "lines": [{ "n": 1 }, {}, { "n": 3 }, { "n": "one" }], "to": { "x": {} },
    });
    assert_eq!(read("order", &as_text), read_whole);
    // What is not surely an object stays a list, which the check refuses.
    for odd in [json!([entry("qty", json!(1)), entry("qty", json!(2))]), json!([{ "name": "qty" }]), json!([7])] {
        assert_eq!(read("order", &odd), odd);
    }
}
