use serde_json::{Value, json};

use super::{call, call_in, faults, invalid, request, unavailable};
use crate::{
    door::{
        detect,
        testing::{all, answer, event, file, replay, success, toolbox},
    },
    outcome::{Failure, FailureKind, Outcome},
};

/// The answer to a file each of whose calls ends well.
fn all_well(name: &str) -> Value {
    let outcomes = vec![success(json!({ "n": 1 })); request(file(name)).calls.len()];
    answer(file(name), outcomes)
}

/// The `toolResult` of a block whose call ends so.
fn result(outcome: Outcome) -> Value {
    answer(file("converse/get-order.json"), vec![outcome])["toolResult"].take()
}

fn refusal(event: crate::door::Event) -> String {
    (detect(&event, &all()).unwrap().decode)(event, &toolbox()).expect_err("a refusal").to_string()
}

fn objections(name: &str) -> Vec<(String, String)> {
    let calls = request(file(name)).calls.into_iter();
    calls.map(|call| (call.id.unwrap(), call.objection.map(|o| o.message()).unwrap_or_default())).collect()
}

#[test]
fn the_answer_has_the_form_of_the_question() {
    let one = |id: &str| json!({ "toolUseId": id, "status": "success", "content": [{ "json": { "n": 1 } }] });
    let block = |id: &str| json!({ "toolResult": one(id) });
    assert_eq!(all_well("converse/get-order.json"), block("tooluse_Kq2LwPz9Xs4Nd8Ty1Rv0aA"));
    assert_eq!(all_well("converse/bare-tool-use.json"), one("tooluse_1"));
    assert_eq!(all_well("converse/list-of-blocks.json"), json!([block("tooluse_1"), block("tooluse_2")]));
    assert_eq!(all_well("converse/message.json"), json!({ "role": "user", "content": [block("tooluse_1")] }));
    let both = json!({ "role": "user", "content": [block("tooluse_1"), block("tooluse_2")] });
    assert_eq!(all_well("converse/response.json"), both);
}

#[test]
fn results_stand_in_the_order_of_the_calls() {
    let answer = answer(file("converse/two-calls-one-bad.json"), vec![success(json!({})), invalid()]);
    let results = answer["content"].as_array().unwrap();
    assert_eq!(results[0]["toolResult"]["status"], "success");
    assert_eq!(results[1]["toolResult"]["status"], "error");
    assert_eq!(results[1]["toolResult"]["toolUseId"], "tooluse_2");
}

#[test]
fn a_message_without_calls_has_an_answer_without_results() {
    assert_eq!(all_well("converse/no-calls.json"), json!({ "role": "user", "content": [] }));
    assert_eq!(
        answer(event(json!({ "role": "assistant", "content": [] })), vec![]),
        json!({ "role": "user", "content": [] })
    );
}

#[test]
fn an_error_is_one_text_that_is_not_blank() {
    let expected = json!([{ "text": "The carrier is not available. Nothing was changed." }]);
    assert_eq!(result(unavailable())["content"], expected);
    assert_eq!(result(unavailable())["status"], "error");
}

#[test]
fn what_is_no_object_is_put_into_one() {
    for value in [json!([1, 2]), json!("text"), json!(""), json!(0), json!(false), json!(null)] {
        assert_eq!(result(success(value.clone()))["content"], json!([{ "json": { "result": value } }]));
    }
}

#[test]
fn a_key_that_bedrock_refuses_sends_the_result_as_text() {
    for value in [json!({ "a": [{ "__type": "Sku" }] }), json!([{ "__type": 1 }])] {
        assert_eq!(result(success(value.clone()))["content"], json!([{ "text": value.to_string() }]));
    }
    let harmless = json!({ "type": "__type" });
    assert_eq!(result(success(harmless.clone()))["content"], json!([{ "json": harmless }]));
}

#[test]
fn a_replay_says_so_in_a_second_text_and_a_first_answer_does_not() {
    let content = result(replay(json!({ "n": 1 })))["content"].take();
    assert_eq!(content[0], json!({ "json": { "n": 1 } }));
    assert_eq!(content[1], json!({ "text": "This is the result of an earlier, equal call. Nothing was done again." }));
    assert_eq!(content.as_array().unwrap().len(), 2);
    assert_eq!(result(success(json!({ "n": 1 })))["content"].as_array().unwrap().len(), 1);
}

#[test]
fn a_server_tools_block_is_neither_run_nor_answered() {
    let calls = request(file("converse/server-tool.json")).calls;
    assert_eq!(calls.iter().map(|call| call.id.as_deref().unwrap()).collect::<Vec<_>>(), ["tooluse_2"]);
    assert!(refusal(file("converse/only-server-tool.json")).contains("server_tool_use"));
}

#[test]
fn no_call_of_a_message_that_was_cut_off_runs_and_each_is_told_so() {
    let objections_of = objections("converse/cut-off.json");
    assert_eq!(objections_of.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["tooluse_1", "tooluse_2"]);
    for (_, text) in objections_of.iter().chain(&objections("converse/malformed-tool-use.json")) {
        assert!(text.contains("cut off") && text.contains("not run"), "{text}");
        assert!(text.ends_with("Nothing was changed."), "{text}");
    }
}

#[test]
fn two_calls_with_one_id_get_one_error_and_neither_runs() {
    let objections = objections("converse/duplicate-ids.json");
    assert_eq!(objections.len(), 2);
    assert_eq!(objections[0].0, "tooluse_1");
    assert!(objections[0].1.contains("toolUseId \"tooluse_1\""), "{}", objections[0].1);
    assert_eq!(objections[1], (String::from("tooluse_2"), String::new()));
}

#[test]
fn an_id_that_no_result_can_carry_refuses_the_event() {
    for name in ["bad-tool-use-id", "no-tool-use-id"] {
        let sentence = refusal(file(&format!("converse/{name}.json")));
        assert!(sentence.contains("toolUseId of call 1") && sentence.contains("No call"), "{sentence}");
    }
    for id in [json!(""), json!("naïve"), json!("x".repeat(65)), json!(7), json!(null), json!("a\n")] {
        refusal(event(json!({ "toolUse": { "toolUseId": id, "name": "get_order", "input": {} } })));
    }
    for id in ["7", "srv.01:a-b_Z", &"x".repeat(64)] {
        assert_eq!(call_in(json!({ "toolUse": { "toolUseId": id, "name": "x" } })).id.as_deref(), Some(id));
    }
    assert!(refusal(event(json!({ "toolUse": null }))).contains("toolUseId"));
}

#[test]
fn null_input_is_none_and_text_is_a_fault() {
    let none = call("converse/null-input.json").arguments;
    assert!(none.values.is_empty() && none.faults.is_empty());
    let text = call("converse/input-is-text.json").arguments;
    assert!(faults(&text)[0].contains("must be an object, but are a text"));
    let absent = call_in(json!({ "toolUse": { "toolUseId": "a", "name": "get_order" } })).arguments;
    assert!(absent.values.is_empty() && absent.faults.is_empty());
}

#[test]
fn a_name_is_taken_exactly_and_a_call_without_one_is_answered() {
    for name in ["$get_order", "functions.refund_order", "refund_order ", "orders___refund_order"] {
        let call = call_in(json!({ "toolUse": { "toolUseId": "a", "name": name, "input": {} } }));
        assert_eq!(call.tool, name);
    }
    let objection = call("converse/no-name.json").objection.unwrap();
    assert_eq!(objection.kind(), FailureKind::UnknownTool);
    assert!(objection.message().contains("refund_order"));
}

#[test]
fn results_that_do_not_fit_one_answer_are_left_out_one_by_one() {
    let block = |n: usize| json!({ "toolUse": { "toolUseId": n.to_string(), "name": "get_order", "input": {} } });
    let blocks: Vec<_> = (0..20).map(block).collect();
    let outcomes = vec![success(json!({ "x": "y".repeat(340_000) })); 20];
    let answer = answer(event(json!({ "role": "assistant", "content": blocks })), outcomes);
    assert!(answer.to_string().len() < 6_000_000);
    let statuses: Vec<_> = (0..20).map(|n| answer["content"][n]["toolResult"]["status"].as_str().unwrap()).collect();
    assert_eq!(statuses.iter().filter(|status| **status == "success").count(), 16);
    let told = answer["content"][19]["toolResult"]["content"][0]["text"].as_str().expect("an error");
    assert!(told.contains("Make this call again by itself.") && !told.contains("Narrow"), "{told}");
}

/// Bedrock would refuse them as JSON.
#[test]
fn results_that_are_written_as_text_fit_one_answer_too() {
    let outcomes = vec![success(json!({ "__type": "\"".repeat(170_000) })); 16]; // twice as long as text in JSON
    let answer = answer(event(message_of(16)), outcomes);
    assert!(answer.to_string().len() < 6_000_000, "{}", answer.to_string().len());
    let statuses: Vec<_> = (0..16).map(|n| answer["content"][n]["toolResult"]["status"].as_str().unwrap()).collect();
    assert_eq!(statuses.iter().filter(|status| **status == "success").count(), 8);
}

#[test]
fn step_functions_is_answered_in_its_own_spelling() {
    let ok = |id: &str| json!({ "ToolUseId": id, "Status": "success", "Content": [{ "Json": { "order_id": "ORD-12345" } }] });
    let bad = json!({
        "ToolUseId": "tooluse_2",
        "Status": "error",
        "Content": [{ "Text": "limit must be at most 50. Nothing was changed." }],
    });
    let of = |name: &str, outcomes| answer(file(&format!("converse/step-functions-{name}.json")), outcomes);
    let well = || success(json!({ "order_id": "ORD-12345" }));
    let both = json!([{ "ToolResult": ok("tooluse_1") }, { "ToolResult": bad }]);
    for name in ["response", "message"] {
        assert_eq!(of(name, vec![well(), invalid()]), json!({ "Role": "user", "Content": both }), "{name}");
    }
    assert_eq!(of("list", vec![well(), invalid()]), both);
    assert_eq!(of("block", vec![well()]), json!({ "ToolResult": ok("tooluse_1") }));
    assert_eq!(of("bare", vec![well()]), ok("tooluse_1"));
    assert_eq!(of("no-calls", vec![]), json!({ "Role": "user", "Content": [] }));
}

#[test]
fn step_functions_calls_keep_every_rule() {
    let call_of = call("converse/step-functions-block.json");
    assert_eq!((call_of.tool.as_str(), &call_of.arguments.values["order_id"]), ("get_order", &json!("ORD-12345")));
    assert!(call("converse/step-functions-cut-off.json").objection.is_some());
    assert_eq!(request(file("converse/step-functions-server-tool.json")).calls.len(), 1);
    let user = json!({ "Role": "user", "Content": [file("converse/step-functions-block.json").body] });
    assert!(call_in(user).objection.is_some());
    let content = answer(file("converse/step-functions-block.json"), vec![replay(json!([1]))]);
    assert_eq!(content["ToolResult"]["Content"][0], json!({ "Json": { "result": [1] } }));
    assert!(content["ToolResult"]["Content"][1]["Text"].is_string());
    let dunder = answer(file("converse/step-functions-block.json"), vec![success(json!({ "__type": 1 }))]);
    assert_eq!(dunder["ToolResult"]["Content"][0]["Text"], "{\"__type\":1}");
}

fn message_of(calls: usize) -> Value {
    let block = |n: usize| json!({ "toolUse": { "toolUseId": format!("t{n}"), "name": "get_order", "input": {} } });
    json!({ "role": "assistant", "content": (0..calls).map(block).collect::<Vec<_>>() })
}

#[test]
fn of_very_many_calls_none_is_run_and_each_is_answered() {
    let objections = |calls| {
        let request = request(event(message_of(calls)));
        (request.calls.len(), request.calls.iter().filter(|call| call.objection.is_some()).count())
    };
    assert_eq!(objections(256), (256, 0));
    assert_eq!(objections(257), (257, 257));
    assert_eq!(objections(1_024), (1_024, 1_024));
    assert!(
        refusal(event(message_of(1_025))).contains("1025 calls, and 256 are served at most. None of them was run.")
    );
}

#[test]
fn an_answer_fits_whatever_its_results_and_failures() {
    let failure = || {
        let text = "\u{1f600}".repeat(2_000); // four bytes each, the most that a character of a failure takes
        Outcome::Failure(Failure::new(FailureKind::Rejected, text))
    };
    let large = || success(json!("x".repeat(349_000)));
    let outcomes = (0..256).map(|n| if n % 2 == 0 { large() } else { failure() }).collect();
    let answer = answer(event(message_of(256)), outcomes);
    assert!(answer.to_string().len() < 6_000_000);
    let blocks = answer["content"].as_array().unwrap();
    assert_eq!(blocks.len(), 256);
    assert!(
        blocks[1]["toolResult"]["content"][0]["text"].as_str().unwrap().starts_with('\u{1f600}'),
        "failures are told"
    );
}
