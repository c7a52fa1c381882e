//! Which forms of a Converse event are served, and what speaks against running its calls.

use serde_json::{Value, json};

use super::{call, call_in, request};
use crate::{
    door::{
        Event, detect,
        testing::{all, event, file, toolbox},
    },
    outcome::FailureKind,
};

fn refusal(event: Event) -> String {
    (detect(&event, &all()).unwrap().decode)(event, &toolbox()).expect_err("a refusal").to_string()
}

#[test]
fn a_stop_reason_that_is_not_known_stops_the_calls_and_an_absent_one_does_not() {
    let block = file("converse/refund-order.json").body;
    let response = |reason: Value| json!({ "output": { "message": { "role": "assistant", "content": [block] } }, "stopReason": reason });
    for reason in [json!("tool_use"), json!("end_turn"), json!(null)] {
        assert_eq!(call_in(response(reason)).objection, None);
    }
    for reason in ["max_tokens", "stop_sequence", "guardrail_intervened", "content_filtered", "malformed_model_output"]
    {
        assert!(call_in(response(json!(reason))).objection.is_some(), "{reason}");
    }
    for reason in [json!("model_context_window_exceeded"), json!("brand_new"), json!(7)] {
        assert!(call_in(response(reason)).objection.is_some());
    }
    let guardrail = call("converse/guardrail.json").objection.unwrap();
    assert_eq!(guardrail.kind(), FailureKind::Rejected);
}

#[test]
fn a_stop_reason_counts_at_whatever_level_it_was_carried_along() {
    let message = json!({ "role": "assistant", "content": [file("converse/refund-order.json").body] });
    let mut inner = message.clone();
    inner["stopReason"] = json!("malformed_tool_use");
    for body in [
        inner.clone(),
        json!({ "output": { "message": message, "stopReason": "max_tokens" } }),
        json!({ "output": { "message": message, "stopReason": "max_tokens" }, "stopReason": "tool_use" }),
        json!({ "output": { "message": inner }, "stopReason": "tool_use" }),
    ] {
        assert!(call_in(body.clone()).objection.is_some(), "{body}");
    }
    let other = json!({ "output": { "message": message, "StopReason": "max_tokens" } });
    assert!(refusal(event(other)).contains("spelling"));
}

#[test]
fn a_stop_reason_in_another_apis_spelling_counts_too() {
    let message = json!({ "role": "assistant", "content": [file("converse/refund-order.json").body] });
    let response = |name: &str, reason: &str| {
        let mut response = json!({ "output": { "message": message } });
        response[name] = json!(reason);
        call_in(response).objection
    };
    assert_eq!(response("stop_reason", "tool_use"), None);
    assert!(response("stop_reason", "max_tokens").is_some());
    let mut both = json!({ "Output": { "Message": { "Role": "assistant", "Content": [file("converse/step-functions-block.json").body] } } });
    both["stop_reason"] = json!("max_tokens");
    assert!(call_in(both).objection.is_some());
}

#[test]
fn what_a_block_says_of_itself_counts_as_if_its_message_had_said_it() {
    let tool_use = json!({ "toolUseId": "a", "name": "refund_order", "input": {} });
    let with = |mut value: Value, name: &str, what: &str| {
        value[name] = json!(what);
        value
    };
    for (name, what) in [("role", "user"), ("stopReason", "max_tokens"), ("stop_reason", "max_tokens")] {
        let inside = json!({ "toolUse": with(tool_use.clone(), name, what) });
        let beside = with(json!({ "toolUse": tool_use }), name, what);
        for block in [inside, beside] {
            let message = json!({ "role": "assistant", "content": [block] });
            for body in [block.clone(), json!([block]), message] {
                assert!(call_in(body.clone()).objection.is_some(), "{body}");
            }
        }
        assert!(call_in(with(tool_use.clone(), name, what)).objection.is_some(), "bare, {name}");
    }
    let server = json!({ "type": "server_tool_use", "toolUse": tool_use });
    assert!(refusal(event(server.clone())).contains("server_tool_use"));
    let other = json!({ "toolUse": { "toolUseId": "b", "name": "get_order" } });
    for body in [json!([server, other]), json!({ "role": "assistant", "content": [server, other] })] {
        let calls = request(event(body)).calls;
        assert_eq!(calls.iter().map(|call| call.id.as_deref()).collect::<Vec<_>>(), [Some("b")]);
    }
}

#[test]
fn a_call_of_a_type_that_is_not_known_does_not_run_and_has_its_result() {
    let typed =
        |kind: Value| json!({ "toolUse": { "toolUseId": "a", "name": "refund_order", "input": {}, "type": kind } });
    for kind in [json!(null), json!("tool_use")] {
        assert_eq!(call_in(typed(kind)).objection, None);
    }
    for kind in [json!("mcp_tool_use"), json!("SERVER_TOOL_USE"), json!(""), json!(7)] {
        let call = call_in(typed(kind.clone()));
        assert_eq!(call.objection.map(|objection| objection.kind()), Some(FailureKind::Rejected), "{kind}");
        assert_eq!(call.id.as_deref(), Some("a"));
    }
    let beside = json!({ "toolUse": { "toolUseId": "b", "name": "get_order" } });
    let message = json!({ "role": "assistant", "content": [typed(json!("mcp_tool_use")), beside] });
    let calls = request(event(message)).calls;
    assert_eq!(calls.iter().map(|call| call.objection.is_some()).collect::<Vec<_>>(), [true, false]);
    let capital =
        json!({ "ToolUse": { "ToolUseId": "a", "Name": "refund_order", "Input": {}, "Type": "mcp_tool_use" } });
    assert!(call_in(capital).objection.is_some());
}

#[test]
fn only_the_assistants_calls_run() {
    let objection = call("converse/not-the-assistant.json").objection.unwrap();
    assert!(objection.message().contains("not in a message of the assistant"));
    let roleless = json!({ "content": [file("converse/get-order.json").body] });
    assert!(call_in(roleless).objection.is_some());
}

#[test]
fn a_member_that_is_null_is_absent_from_its_block() {
    let call = file("converse/get-order.json").body;
    let text = json!({ "text": "Let me look.", "toolUse": null });
    let message = json!({ "role": "assistant", "content": [text, call] });
    assert_eq!(call_in(message).objection, None);
    assert_eq!(call_in(json!([text, call])).objection, None);
}

#[test]
fn an_event_with_calls_at_two_places_is_refused_because_only_one_would_be_answered() {
    let tool_use = |id: &str| json!({ "toolUseId": id, "name": "get_order", "input": {} });
    let block = |id: &str| json!({ "toolUse": tool_use(id) });
    let message = |id: &str| json!({ "role": "assistant", "content": [block(id)] });
    let both = |mut one: Value, other: Value| {
        one.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
        one
    };
    for body in [
        both(block("a"), message("b")),
        both(tool_use("a"), message("b")),
        both(tool_use("a"), block("b")),
        both(message("a"), json!({ "output": { "message": message("b") } })),
        both(block("a"), json!({ "output": { "message": message("b") } })),
        both(block("a"), json!({ "message": message("b") })),
        json!({ "output": both(message("a"), json!({ "message": message("b") })) }),
        json!({ "output": { "message": both(block("a"), message("b")) } }),
        json!([block("a"), message("b")]),
        json!([block("a"), tool_use("b")]),
        json!([block("a"), [block("b")]]),
        both(block("a"), json!({ "output": [message("b")] })),
        json!([both(block("a"), tool_use("b"))]),
        json!({ "role": "assistant", "content": [block("a"), tool_use("b")] }),
        json!({ "role": "assistant", "content": [block("a"), message("b")] }),
        json!({ "toolUse": both(tool_use("a"), block("b")) }),
    ] {
        assert!(refusal(event(body.clone())).contains("more than one place"), "{body}");
    }
}

#[test]
fn a_tool_use_that_is_no_object_is_refused_with_what_would_be_right() {
    let call = json!({ "toolUseId": "a", "name": "get_order", "input": {} });
    for (odd, what) in [
        (json!([call]), "a list"),
        (json!([]), "a list"),
        (json!(call.to_string()), "a text"),
        (json!(1), "a number"),
        (json!(null), "null"),
    ] {
        let block = json!({ "toolUse": odd });
        let message = json!({ "role": "assistant", "content": [block] });
        let list = json!([{ "toolUse": call }, block]);
        for body in [block.clone(), list, message] {
            if odd.is_null() && body != block {
                continue; // a member that is null is absent
            }
            let sentence = refusal(event(body));
            assert!(sentence.contains(&format!("is {what}, and must be an object")), "{sentence}");
            assert!(sentence.contains("a list of blocks") && sentence.contains("No call"), "{sentence}");
        }
    }
    let sentence = refusal(event(json!({ "ToolUse": [{ "ToolUseId": "a", "Name": "get_order" }] })));
    assert!(sentence.contains("`ToolUse` is a list") && sentence.contains("ToolUseId"), "{sentence}");
}

#[test]
fn data_that_looks_like_a_call_is_none() {
    let data =
        json!({ "toolUse": { "toolUseId": "b", "name": "x" }, "content": [], "role": "user", "stopReason": "x" });
    let result = json!({ "toolResult": { "toolUseId": "c", "content": [{ "json": data }] } });
    let call = json!({ "toolUse": { "toolUseId": "a", "name": "get_order", "input": data } });
    let message = json!({ "role": "assistant", "content": [result, call] });
    let response =
        json!({ "output": { "message": message }, "stopReason": "tool_use", "additionalModelResponseFields": data });
    for body in [call, message, response] {
        assert_eq!(call_in(body.clone()).objection, None, "{body}");
    }
}

#[test]
fn an_event_in_two_spellings_is_refused_because_one_of_them_would_be_overlooked() {
    for name in ["two-spellings", "stop-reason-in-another-spelling"] {
        assert!(refusal(file(&format!("converse/{name}.json"))).contains("spelling"), "{name}");
    }
    for body in [
        json!({ "toolUse": { "toolUseId": "a", "name": "x" }, "ToolUse": { "ToolUseId": "b", "Name": "x" } }),
        json!({ "toolUse": { "toolUseId": "a", "name": "x", "Input": {} } }),
        json!({ "role": "assistant", "content": [{ "ToolUse": { "ToolUseId": "b", "Name": "x" } }] }),
        json!({ "ToolUse": { "ToolUseId": "a", "Name": "x", "type": "server_tool_use" } }),
    ] {
        assert!(refusal(event(body)).contains("spelling"));
    }
}

#[test]
fn calls_in_another_apis_form_are_refused_and_not_left_unanswered() {
    let chat = json!({ "role": "assistant", "content": null, "tool_calls": [{ "id": "call_1" }] });
    assert!(refusal(event(chat)).contains("tool_calls"));
    assert!(refusal(event(json!({ "role": "assistant", "content": "prose" }))).contains("list of blocks"));
}
