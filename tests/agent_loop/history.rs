//! Each request is one that Bedrock takes: the machine checks every one of them by the rules in `tests/legal`.

use action_group::{
    agent::{
        conversation::Message,
        limits::TimeLeft,
        run::{AgentRun, Next},
    },
    outcome::{Changed, Failure, FailureKind, Outcome},
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    legal,
    machine::{Machine, calls, look, reply, says, tools, wide},
};

fn with_history(history: Value) -> Vec<Message> {
    let history: Vec<Message> = serde_json::from_value(history).expect("messages");
    let mut run = AgentRun::new(wide(), tools()).with_history(history);
    run.ask("And now?");
    let Next::CallModel(request) = run.next(TimeLeft::UNLIMITED) else { panic!("no request") };
    assert_eq!(legal::history::faults(&json!(request)), [""; 0], "{}", json!(request));
    request.messages
}

fn asks(id: &str, tool: &str) -> Value {
    json!({"role": "assistant", "content": [{"toolUse": {"toolUseId": id, "name": tool, "input": {}}}]})
}

fn answers(id: &str) -> Value {
    json!({"toolResult": {"toolUseId": id, "status": "success", "content": [{"text": "ok"}]}})
}

#[allow(clippy::needless_pass_by_value, reason = "it is called with `json!`")]
fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

#[test]
fn a_call_without_result_is_answered_once_before_the_next_message() {
    let messages = with_history(json!([user(json!([{"text": "Hi."}])), asks("A", "mail")]));
    let last = json!(messages.last());
    assert_eq!(last["content"][0]["toolResult"]["toolUseId"], "A");
    assert!(last.to_string().contains("outcome is unknown"), "{last}");
    assert_eq!(last["content"][1], json!({"text": "And now?"}));
    assert_eq!(last["content"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_call_without_result_in_the_middle_is_answered_where_it_stands() {
    let messages = with_history(json!([
        user(json!([{"text": "Hi."}])),
        asks("A", "look"),
        user(json!([{"text": "Still there?"}])),
        json!({"role": "assistant", "content": [{"text": "Yes."}]}),
    ]));
    let answer = json!(messages[2]);
    assert_eq!(answer["content"][0]["toolResult"]["toolUseId"], "A");
    assert!(!answer.to_string().contains("unknown"), "a look changes nothing: {answer}");
}

#[test]
fn a_result_that_nobody_asked_for_and_a_second_result_are_left_out() {
    let messages = with_history(json!([
        user(json!([{"text": "Hi."}, answers("Z")])),
        asks("A", "look"),
        user(json!([answers("B"), answers("A"), answers("A")])),
        json!({"role": "assistant", "content": [{"text": "Done."}]}),
        user(json!([answers("A")])),
    ]));
    let results = json!(messages).to_string().matches("toolResult").count();
    assert_eq!(results, 1);
}

#[test]
fn two_messages_of_one_speaker_and_a_beginning_by_the_model_are_put_right() {
    let messages = with_history(json!([
        {"role": "assistant", "content": [{"text": "Welcome!"}]},
        user(json!([{"text": "Hi."}])),
        user(json!([{"text": "  "}, {"text": "Anybody there?"}])),
        {"role": "assistant", "content": []},
        {"role": "assistant", "content": [{"text": "Yes."}]},
        {"role": "assistant", "content": [{"text": "I am."}]},
    ]));
    assert_eq!(messages.len(), 3);
}

#[test]
fn an_imported_id_or_name_that_is_not_legal_gets_the_same_alias_in_call_and_result() {
    for id in ["i".repeat(80), String::from("two words"), String::new(), String::from("ü")] {
        let history = json!([user(json!([{"text": "Hi."}])), asks(&id, "$look<|x|>"), user(json!([answers(&id)]))]);
        let once = json!(with_history(history.clone()));
        assert_eq!(once[1]["content"][0]["toolUse"]["toolUseId"], once[2]["content"][0]["toolResult"]["toolUseId"]);
        assert_eq!(once[2]["content"][0]["toolResult"]["status"], "success", "the result was kept");
        assert_eq!(once, json!(with_history(history)), "the alias is the same each time");
    }
}

#[test]
fn an_illegal_name_never_becomes_the_name_of_a_tool() {
    let mut machine = Machine::new(wide(), [calls([("a", "lo.ok", json!({"what": "x"}))]), says("Done.")]);
    machine.go();
    let name = json!(machine.requests[1])["messages"][1]["content"][0]["toolUse"]["name"].clone();
    assert_ne!(name, "look");
    assert_eq!(machine.ran[0].tool, "lo.ok", "what runs is what the model has asked for");
}

#[test]
fn two_calls_with_one_id_both_run_and_both_have_a_result() {
    let twice = calls([("dup", "look", json!({"what": "a"})), ("dup", "look", json!({"what": "b"}))]);
    let mut machine = Machine::new(wide(), [twice, says("Done.")]);
    machine.go();
    assert_eq!(machine.ran.len(), 2);
    let ids: Vec<_> = machine.results().into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["dup", "dup.2"]);
}

#[test]
fn an_id_that_comes_again_in_a_later_reply_is_told_apart() {
    let mut machine = Machine::new(wide(), [look("same", "a"), look("same", "b"), says("Done.")]);
    machine.go();
    assert_eq!(machine.results()[0].0, "same.2");
}

#[test]
fn equal_calls_with_two_ids_have_two_results() {
    let twice = calls([("e1", "look", json!({"what": "a"})), ("e2", "look", json!({"what": "a"}))]);
    let mut machine = Machine::new(wide(), [twice, says("Done.")]);
    machine.go();
    let ids: Vec<_> = machine.results().into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["e1", "e2"]);
}

#[test]
fn a_blank_text_beside_a_call_is_not_echoed() {
    let content =
        json!([{"text": ""}, {"toolUse": {"toolUseId": "a", "name": "look", "input": {"what": "x"}}}, {"text": " \n"}]);
    let mut machine = Machine::new(wide(), [reply(content, "tool_use"), says("Done.")]);
    machine.go();
    assert_eq!(machine.requests[1].messages[1].content.len(), 1);
}

#[test]
fn a_call_with_parts_missing_or_null_is_answered_and_kept_legal() {
    for broken in [
        json!({"toolUse": {"toolUseId": "a", "name": "look"}}),
        json!({"toolUse": {"toolUseId": null, "name": "look", "input": null}}),
        json!({"toolUse": {"toolUseId": "a", "name": null, "input": []}}),
        json!({"text": null, "toolUse": {"toolUseId": "a", "name": "look", "input": "words"}}),
        json!({"toolUse": {"toolUseId": "a", "name": "look", "input": {"what": {"__type": "x"}}}}),
        json!({"toolUse": {}}),
    ] {
        let mut machine = Machine::new(wide(), [reply(json!([broken]), "tool_use"), says("Done.")]);
        assert_eq!(machine.go().answer, "Done.", "{broken}");
        assert_eq!((machine.ran.len(), machine.results().len()), (1, 1), "{broken}");
    }
}

#[test]
fn arguments_that_are_no_object_reach_the_tool_as_they_are() {
    let mut machine = Machine::new(wide(), [calls([("a", "look", json!([1, 2]))]), says("Done.")]);
    machine.go();
    assert_eq!(machine.ran[0].input, json!([1, 2]), "so that the check can say what is wrong");
}

#[test]
fn a_tool_of_the_provider_is_never_run_and_its_blocks_are_given_back() {
    let content = json!([
        {"toolUse": {"toolUseId": "s", "name": "web_search", "input": {}, "type": "server_tool_use"}},
        {"toolResult": {"toolUseId": "s", "status": "success", "content": [{"text": "found"}]}},
        {"toolUse": {"toolUseId": "a", "name": "look", "input": {"what": "x"}}},
    ]);
    let mut machine = Machine::new(wide(), [reply(content.clone(), "tool_use"), says("Done.")]);
    machine.go();
    assert_eq!(machine.ran.len(), 1);
    assert_eq!(json!(machine.requests[1].messages[1].content), content);
}

#[test]
fn a_call_of_a_type_that_is_not_known_is_the_providers_and_one_of_anthropics_word_is_ours() {
    let of_type = |kind: &str| json!({"toolUse": {"toolUseId": "s", "name": "look", "input": {}, "type": kind}});
    let content = json!([of_type("mcp_tool_use"), answers("s"), {"text": "It is."}]);
    let mut machine = Machine::new(wide(), [reply(content.clone(), "end_turn"), says("Done.")]);
    machine.go();
    assert_eq!(machine.ran.len(), 0);
    machine.run.ask("Really?");
    machine.go();
    assert_eq!(json!(machine.requests[1].messages[1].content), content);
    let mut machine = Machine::new(wide(), [reply(json!([of_type("tool_use")]), "tool_use"), says("Done.")]);
    machine.go();
    assert_eq!(machine.ran.len(), 1);
}

fn of_server(id: &str) -> Value {
    json!({"toolUse": {"toolUseId": id, "name": "web_search", "input": {}, "type": "server_tool_use"}})
}

#[test]
fn a_call_of_the_provider_without_its_result_is_left_out_and_so_is_a_result_without_its_call() {
    let (text, asks) =
        (json!({"text": "Let me see."}), json!({"toolUse": {"toolUseId": "a", "name": "look", "input": {}}}));
    for broken in [
        json!([text, of_server("s"), asks]),
        json!([text, answers("s"), asks]),
        json!([text, answers("s"), of_server("s"), asks]),
        json!([of_server("s"), text, of_server("r"), asks]),
    ] {
        let left = json!([text, asks]);
        let mut machine = Machine::new(wide(), [reply(broken.clone(), "tool_use"), says("Done.")]);
        machine.go();
        assert_eq!(json!(machine.requests[1].messages[1].content), left, "{broken}");
        let imported = json!([user(json!([{"text": "Hi."}])), {"role": "assistant", "content": broken}]);
        assert_eq!(json!(with_history(imported)[1].content), left, "{broken}");
    }
}

#[test]
fn of_calls_of_the_provider_that_were_cut_off_those_with_a_result_stay() {
    let content = json!([of_server("s"), answers("s"), answers("s"), of_server("r")]);
    let mut machine = Machine::new(wide(), [reply(content, "max_tokens"), says("Done.")]);
    machine.go();
    assert_eq!(json!(machine.requests[1].messages[1].content), json!([of_server("s"), answers("s")]));
}

#[test]
fn a_reply_of_nothing_but_a_call_of_the_provider_is_no_message() {
    let mut machine = Machine::new(wide(), [reply(json!([of_server("s")]), "end_turn"), says("Done.")]);
    assert_eq!(machine.go().answer, "Done.");
    assert_eq!(machine.requests[1].messages.len(), 1);
}

#[test]
fn a_result_of_the_provider_is_given_back_whole_and_filled() {
    let typed = json!({"toolResult": {"toolUseId": "s", "type": "web_search_result", "status": "success",
        "content": [{"text": "found"}]}});
    let empty = json!({"toolResult": {"toolUseId": "r", "content": []}});
    let content = json!([of_server("s"), typed, of_server("r"), empty, {"text": "It is."}]);
    let mut machine = Machine::new(wide(), [reply(content, "end_turn"), says("Done.")]);
    machine.go();
    machine.run.ask("Really?");
    machine.go();
    let given = json!(machine.requests[1].messages[1].content);
    assert_eq!(given[1], typed);
    assert_eq!(given[3]["toolResult"]["content"], json!([{"text": "(The result is empty.)"}]));
}

#[test]
fn a_conversation_that_was_kept_with_a_dangling_call_of_the_provider_is_mended_when_it_is_loaded() {
    for content in [
        json!([{"text": "Hm."}, of_server("s")]),
        json!([of_server("s")]),
        json!([answers("s")]),
        json!([of_server("s"), {"toolResult": {"toolUseId": "s", "status": "success", "content": []}}]),
    ] {
        let mut machine = Machine::new(wide(), [says("Hello."), says("Done.")]);
        machine.go();
        let mut kept = json!(machine.run);
        kept["messages"][1]["content"] = content;
        machine.run = serde_json::from_value(kept).expect("a run");
        machine.reload();
        machine.run.ask("Are you there?");
        assert_eq!(machine.go().answer, "Done."); // each request is checked
        assert_eq!(machine.requests[1].messages.len(), 3);
    }
}

#[test]
fn an_imported_result_without_a_status_is_a_success() {
    let result = json!({"toolResult": {"toolUseId": "A", "content": [{"text": "ok"}]}});
    let history = json!([user(json!([{"text": "Hi."}])), asks("A", "mail"), user(json!([result]))]);
    assert_eq!(json!(with_history(history)[2].content[0]), answers("A"));
}

proptest! {
    #[test]
    fn whatever_the_provider_leaves_of_its_calls_each_request_is_one_that_bedrock_takes(
        picked in prop::collection::vec((0_usize..6, "[ab]"), 0..9),
        reason in prop_oneof![Just("tool_use"), Just("end_turn"), Just("max_tokens")],
    ) {
        let block = |(kind, id): &(usize, String)| match kind {
            0 | 1 => of_server(id),
            2 | 3 => answers(id),
            4 => json!({"toolUse": {"toolUseId": id, "name": "look", "input": {"what": "x"}}}),
            _ => json!({"text": "Hm."}),
        };
        let content: Value = picked.iter().map(block).collect();
        let imported = json!([user(json!([{"text": "Hi."}])), {"role": "assistant", "content": content}]);
        with_history(imported);
        Machine::new(wide(), [reply(content, reason), says("Done.")]).go();
    }
}

#[test]
fn reasoning_is_given_back_as_it_came() {
    let reasoning = json!({"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "abc"}}});
    let content = json!([reasoning, {"toolUse": {"toolUseId": "a", "name": "look", "input": {"what": "x"}}}]);
    let mut machine = Machine::new(wide(), [reply(content, "tool_use"), says("Done.")]);
    machine.go();
    assert_eq!(json!(machine.requests[1].messages[1].content[0]), reasoning);
}

#[test]
fn a_result_of_any_shape_is_one_that_bedrock_takes() {
    for result in [
        json!(42),
        json!(true),
        json!(null),
        json!("x"),
        json!(""),
        json!([1, 2]),
        json!([]),
        json!({}),
        json!({"a": [{"__type": "x"}]}),
    ] {
        let mut machine = Machine::new(wide(), [look("a", "x"), says("Done.")]);
        machine.outcome = Box::new(move |_| Outcome::Success { result: result.clone(), replayed: true });
        assert_eq!(machine.go().answer, "Done.");
        assert_eq!(machine.results().len(), 1);
    }
}

#[test]
fn an_error_without_words_still_says_something() {
    for text in ["", "   "] {
        let mut machine = Machine::new(wide(), [look("a", "x"), says("Done.")]);
        machine.outcome = Box::new(move |_| {
            Outcome::Failure(Failure::new(FailureKind::Rejected, text).with_changed(Changed::Nothing, text))
        });
        machine.go();
        assert!(machine.results()[0].1.contains("failed"), "{:?}", machine.results());
    }
}

#[test]
fn an_empty_message_of_the_person_is_no_blank_text() {
    let mut machine = Machine::new(wide(), [says("Yes?")]);
    machine.go();
    machine.run.ask("  ");
    assert_eq!(machine.go().answer, "Yes?");
}
