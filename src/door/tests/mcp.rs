use serde_json::{Value, json};

use super::{call, call_in, faults, invalid, request, unavailable};
use crate::{
    call::Call,
    door::testing::{answer, event, file, replay, success, toolbox},
    outcome::{Failure, FailureKind, Outcome},
};

/// The answer to a file that holds no call.
fn served(name: &str) -> Value {
    served_event(file(&format!("mcp/{name}.json")).body)
}

fn served_event(body: Value) -> Value {
    let request = request(event(body));
    assert_eq!(request.calls.len(), 0);
    (request.encode)(Vec::new())
}

/// The code of the error in the answer to a file that holds no call, with its id.
fn error_of(name: &str) -> (Value, Value) {
    let answer = served(name);
    assert!(answer.get("result").is_none() && answer["error"]["message"].is_string(), "{answer}");
    (answer["error"]["code"].clone(), answer["id"].clone())
}

fn called(outcome: Outcome) -> Value {
    answer(file("mcp/get-order.json"), vec![outcome])
}

fn refusal(call: &Call) -> FailureKind {
    call.objection.as_ref().expect("an objection").kind()
}

#[test]
fn a_result_is_told_as_text_and_as_data() {
    let expected = json!({
        "jsonrpc": "2.0",
        "id": 2,
        "result": {
            "resultType": "complete",
            "content": [{ "type": "text", "text": "{\"n\":1}" }],
            "structuredContent": { "n": 1 },
            "isError": false,
        },
    });
    assert_eq!(called(success(json!({ "n": 1 }))), expected);
}

#[test]
fn data_is_an_object_for_every_client_and_the_text_is_the_bare_result() {
    for value in [json!([1, 2]), json!("text"), json!(""), json!(0), json!(false), json!(null)] {
        let result = &called(success(value.clone()))["result"];
        assert_eq!(result["structuredContent"], json!({ "result": value }));
        assert_eq!(result["content"], json!([{ "type": "text", "text": value.to_string() }]));
    }
}

#[test]
fn a_replay_says_so_in_a_second_text() {
    let result = &called(replay(json!({ "n": 1 })))["result"];
    assert_eq!(result["content"][1]["text"], super::super::REPLAYED);
    assert_eq!(result["structuredContent"], json!({ "n": 1 }));
}

#[test]
fn what_a_tool_refuses_is_a_result_that_the_model_reads() {
    for outcome in [invalid(), unavailable()] {
        let failure = outcome.failure().unwrap().clone();
        let answer = called(outcome);
        assert!(answer.get("error").is_none());
        let expected = json!({
            "resultType": "complete",
            "content": [{ "type": "text", "text": failure.message() }],
            "structuredContent": { "error": failure.to_json() },
            "isError": true,
        });
        assert_eq!(answer["result"], expected);
    }
}

#[test]
fn an_unknown_tool_is_an_error_of_the_protocol_and_still_a_call() {
    let unknown = || Outcome::Failure(Failure::new(FailureKind::UnknownTool, "There is no tool \"drop_table\"."));
    assert_eq!(call("mcp/unknown-tool.json").tool, "drop_table");
    let answer = answer(file("mcp/unknown-tool.json"), vec![unknown()]);
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32602), &json!(2)));
    assert_eq!(answer["error"]["data"]["error"]["kind"], "unknown_tool");
    assert_eq!(refusal(&call("mcp/no-name.json")), FailureKind::UnknownTool);
    for params in [json!(null), json!([]), json!("get_order"), json!({ "name": 7 })] {
        let call = call_in(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }));
        assert_eq!((call.tool.as_str(), refusal(&call)), ("", FailureKind::UnknownTool));
    }
}

#[test]
fn absent_and_null_arguments_are_none_and_a_list_is_a_fault() {
    for name in ["mcp/no-arguments.json", "mcp/null-arguments.json"] {
        let arguments = call(name).arguments;
        assert!(arguments.values.is_empty() && arguments.faults.is_empty(), "{name}");
    }
    assert!(faults(&call("mcp/list-arguments.json").arguments)[0].contains("must be an object, but are a list"));
}

#[test]
fn the_tools_are_listed_with_what_their_effect_means_to_a_client() {
    let answer = served("tools-list");
    assert_eq!((&answer["id"], &answer["result"]["cacheScope"]), (&json!(1), &json!("public")));
    assert!(answer["result"]["ttlMs"].is_u64());
    let tools = answer["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, toolbox().names().collect::<Vec<_>>(), "in the order of the toolbox, which is fixed");
    let hints = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap()["annotations"].clone();
    assert_eq!(hints("get_order"), json!({ "readOnlyHint": true }));
    for (name, idempotent) in [("refund_order", true), ("create_shipping_label", true), ("send_email", false)] {
        let expected = json!({ "readOnlyHint": false, "destructiveHint": true, "idempotentHint": idempotent });
        assert_eq!(hints(name), expected, "{name}");
    }
    assert_eq!(tools[1]["inputSchema"]["required"], json!(["order_id"]));
    assert_eq!(error_of("tools-list-cursor"), (json!(-32602), json!(1)));
}

#[test]
fn a_handshake_is_answered_with_the_clients_version_or_the_newest_that_has_one() {
    let version = |asked: Value| {
        let message =
            json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": asked } });
        served_event(message)["result"]["protocolVersion"].clone()
    };
    for known in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        assert_eq!(version(json!(known)), known);
    }
    for other in [json!("2026-07-28"), json!("2031-01-01"), json!(""), json!(7), json!(null)] {
        assert_eq!(version(other), "2025-11-25");
    }
    let answer = served("initialize");
    assert_eq!(answer["id"], 0);
    assert_eq!(answer["result"]["capabilities"], json!({ "tools": {} }));
    assert_eq!(answer["result"]["serverInfo"]["name"], env!("CARGO_PKG_NAME"));
}

#[test]
fn a_client_without_a_handshake_can_discover_what_is_served() {
    let result = &served("discover")["result"];
    assert_eq!(result["supportedVersions"][0], "2026-07-28");
    assert_eq!(result["resultType"], "complete");
    assert_eq!(served("ping"), json!({ "jsonrpc": "2.0", "id": "ping-1", "result": {} }));
}

#[test]
fn a_version_that_is_not_served_is_refused_before_anything_runs() {
    let answer = served("unknown-version");
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32022), &json!(2)));
    assert_eq!(answer["error"]["data"]["requested"], "2031-01-01");
    assert!(answer["error"]["data"]["supported"].as_array().unwrap().contains(&json!("2026-07-28")));
    assert_eq!(call("mcp/get-order-2026.json").id.as_deref(), Some("call-1"));
}

#[test]
fn a_notification_is_answered_with_null_and_runs_nothing() {
    assert_eq!(served("cancelled"), json!(null));
    assert_eq!(served("initialized"), json!(null));
}

#[test]
fn a_message_that_is_no_request_is_refused_and_its_id_kept_where_it_is_one() {
    for (name, code, id) in [
        ("unknown-method", -32601, json!(3)),
        ("call-without-id", -32600, json!(null)),
        ("null-id", -32600, json!(null)),
        ("object-id", -32600, json!(null)),
        ("no-method", -32600, json!(7)),
        ("old-json-rpc", -32600, json!(7)),
        ("batch", -32600, json!(null)),
    ] {
        assert_eq!(error_of(name), (json!(code), id), "{name}");
    }
    for id in [json!(0), json!(-1), json!(1.5), json!(""), json!("0"), json!(u64::MAX)] {
        let ping = json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
        assert_eq!(served_event(ping)["id"], id);
    }
    for id in ["18446744073709551617", "-9223372036854775809", "-0", "123456789012345678901234567890"] {
        let id: Value = serde_json::from_str(id).unwrap();
        let refused = served_event(json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }));
        assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(-32600), &Value::Null), "{id}");
    }
}

#[test]
fn an_id_is_for_the_log_only_and_cut_there() {
    let message = |id: Value| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "x" } });
    assert_eq!(call_in(message(json!(7))).id.as_deref(), Some("7"));
    let long = json!("x".repeat(5_000));
    assert!(call_in(message(long.clone())).id.unwrap().len() < 100);
    assert_eq!(answer(event(message(long.clone())), vec![invalid()])["id"], long);
}
