use serde_json::{Value, json};

use super::{call, call_in, invalid, request, unavailable};
use crate::{
    call::Call,
    door::{
        detect,
        testing::{all, answer, event, file, success, toolbox},
    },
    outcome::{FailureKind, Outcome},
};

fn results(name: &str, outcomes: Vec<Outcome>) -> Vec<Value> {
    let mut answer = answer(file(&format!("return-of-control/{name}.json")), outcomes);
    answer["returnControlInvocationResults"].take().as_array().unwrap().clone()
}

fn refusal(name: &str) -> String {
    let event = file(&format!("return-of-control/{name}.json"));
    (detect(&event, &all()).unwrap().decode)(event, &toolbox()).expect_err("a refusal").to_string()
}

fn waits(call: &Call) -> bool {
    call.objection.as_ref().is_some_and(|objection| objection.kind() == FailureKind::ApprovalRequired)
}

#[test]
fn a_functions_result_is_the_session_state_for_the_agent() {
    let expected = json!({
        "invocationId": "0a1b2c3d-1111-4222-8333-444455556666",
        "returnControlInvocationResults": [{ "functionResult": {
            "actionGroup": "orders",
            "agentId": "AGENT12345",
            "function": "get_order",
            "responseBody": { "TEXT": { "body": "{\"n\":1}" } },
        } }],
    });
    let file = file("return-of-control/get-order.json");
    assert_eq!(answer(file, vec![success(json!({ "n": 1 }))]), expected);
}

#[test]
fn an_operations_result_has_its_status_and_the_one_key_text() {
    let expected = json!({ "apiResult": {
        "actionGroup": "orders",
        "agentId": "AGENT12345",
        "apiPath": "/orders/{order_id}",
        "httpMethod": "GET",
        "httpStatusCode": 200,
        "responseBody": { "TEXT": { "body": "[]" } },
    } });
    assert_eq!(results("api-get-order", vec![success(json!([]))]), [expected]);
    let call = call("return-of-control/api-refund-order.json");
    assert_eq!((call.tool.as_str(), call.arguments.values.len()), ("refund_order", 3));
}

#[test]
fn what_the_model_can_mend_is_a_reprompt_and_nothing_is_a_failure() {
    let of = |name: &str, outcome| results(name, vec![outcome]).remove(0);
    assert_eq!(of("get-order", invalid())["functionResult"]["responseState"], "REPROMPT");
    assert_eq!(of("api-get-order", invalid())["apiResult"]["responseState"], "REPROMPT");
    assert!(of("get-order", unavailable())["functionResult"].get("responseState").is_none());
    let api = of("api-get-order", unavailable());
    assert!(api["apiResult"].get("responseState").is_none());
    let body: Value = serde_json::from_str(api["apiResult"]["responseBody"]["TEXT"]["body"].as_str().unwrap()).unwrap();
    assert_eq!(body["error"]["kind"], "transient");
}

#[test]
fn results_stand_in_the_order_of_the_inputs() {
    let both = results("two-inputs", vec![success(json!(1)), success(json!(2))]);
    assert_eq!(both[0]["functionResult"]["responseBody"]["TEXT"]["body"], "1");
    assert_eq!(both[1]["apiResult"]["responseBody"]["TEXT"]["body"], "2");
}

#[test]
fn what_waits_for_the_user_is_not_run_and_its_result_confirms_nothing() {
    for name in ["user-confirmation", "user-confirmation-and-result", "api-user-confirmation", "unknown-type"] {
        let call = call(&format!("return-of-control/{name}.json"));
        assert!(waits(&call), "{name}");
        let result = results(name, vec![Outcome::Failure(call.objection.unwrap())]).remove(0).to_string();
        assert!(result.contains("was not run"), "{name}: {result}");
        assert!(!result.contains("confirmationState") && !result.contains("responseState"), "{name}: {result}");
    }
    let one = request(file("return-of-control/one-waits.json")).calls;
    assert_eq!(one.iter().map(waits).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn an_input_without_a_type_is_to_be_run() {
    for kind in [json!(null), json!("RESULT")] {
        let input = json!({ "actionGroup": "orders", "function": "get_order", "actionInvocationType": kind });
        let call = call_in(json!({ "invocationInputs": [{ "functionInvocationInput": input }] }));
        assert_eq!(call.objection, None);
    }
    assert_eq!(call("return-of-control/no-type.json").objection, None);
    let odd = json!({ "actionGroup": "orders", "function": "get_order", "actionInvocationType": 7 });
    assert!(waits(&call_in(json!({ "invocationInputs": [{ "functionInvocationInput": odd }] }))));
}

#[test]
fn the_inputs_may_stand_alone_and_the_id_is_echoed_only_if_there_is_one() {
    let answer = |name: &str| answer(file(&format!("return-of-control/{name}.json")), vec![success(json!(1))]);
    assert_eq!(answer("bare-inputs")["invocationId"], "0a1b2c3d-1111-4222-8333-444455556666");
    assert!(answer("bare-without-id").get("invocationId").is_none());
}

#[test]
fn a_session_id_beside_the_inputs_is_the_conversation() {
    assert_eq!(call("return-of-control/with-session.json").caller.conversation(), Some("session-0001"));
    assert_eq!(call("return-of-control/send-email.json").caller.conversation(), None);
    assert!(refusal("session-is-a-number").contains("a sessionId that is no text"));
}

#[test]
fn a_built_in_tool_is_an_unknown_one() {
    assert_eq!(call("return-of-control/computer-use.json").tool, "computer");
    assert_eq!(call("return-of-control/api-unknown-path.json").tool, "GET /nope");
    let nameless = call("return-of-control/no-function.json").objection.unwrap();
    assert_eq!(nameless.kind(), FailureKind::UnknownTool);
}

#[test]
fn what_could_not_be_answered_legally_is_refused() {
    assert!(refusal("inputs-twice").contains("inside and beside"));
    assert!(refusal("no-inputs").contains("empty list of invocationInputs"));
    assert!(refusal("neither-function-nor-api").contains("not one of functionInvocationInput"));
    for input in [
        json!({ "functionInvocationInput": { "function": "get_order" } }),
        json!({ "functionInvocationInput": { "actionGroup": "a" }, "apiInvocationInput": { "actionGroup": "a" } }),
        json!({ "functionInvocationInput": { "actionGroup": "a", "ActionInvocationType": "USER_CONFIRMATION" } }),
        json!("text"),
        json!(null),
    ] {
        let event = event(json!({ "returnControl": { "invocationInputs": [input] } }));
        assert!((detect(&event, &all()).unwrap().decode)(event, &toolbox()).is_err());
    }
}

#[test]
fn a_return_of_control_that_is_no_object_is_refused_with_what_would_be_right() {
    let input = json!({ "functionInvocationInput": { "actionGroup": "orders", "function": "get_order" } });
    for (control, what) in [(json!(null), "null"), (json!([input]), "a list"), (json!("x"), "a text")] {
        for body in [
            json!({ "returnControl": control }),
            json!({ "returnControl": control, "invocationInputs": [input] }),
            json!({ "returnControl": control, "invocationId": "a", "invocationInputs": [input] }),
        ] {
            let event = event(body);
            let sentence = (detect(&event, &all()).unwrap().decode)(event, &toolbox()).expect_err("no").to_string();
            assert!(sentence.contains(&format!("returnControl is {what}, and must be an object")), "{sentence}");
            assert!(sentence.contains("leave the key out"), "{sentence}");
        }
    }
    for (inputs, what) in
        [(json!(input), "an object"), (json!("x"), "a text"), (json!([]), "empty"), (json!(null), "no")]
    {
        let event = event(json!({ "returnControl": { "invocationInputs": inputs } }));
        let sentence = (detect(&event, &all()).unwrap().decode)(event, &toolbox()).expect_err("no").to_string();
        assert!(sentence.contains(what) && sentence.contains("list of invocationInputs"), "{sentence}");
    }
}

#[test]
fn an_id_that_is_no_text_is_refused_and_one_that_is_null_is_left_out() {
    let control = |id: Value| {
        let input = json!({ "functionInvocationInput": { "actionGroup": "orders", "function": "get_order" } });
        event(json!({ "returnControl": { "invocationId": id, "invocationInputs": [input] } }))
    };
    let number = control(json!(5));
    assert!((detect(&number, &all()).unwrap().decode)(number, &toolbox()).is_err());
    assert!(answer(control(json!(null)), vec![invalid()]).get("invocationId").is_none());
    let mut two = control(json!("a"));
    two.body["invocationId"] = json!("b");
    let sentence = (detect(&two, &all()).unwrap().decode)(two, &toolbox()).expect_err("a refusal").to_string();
    assert!(sentence.contains("inside and beside"), "{sentence}");
}

#[test]
fn more_inputs_than_agents_have_are_refused() {
    let control = |inputs: usize| {
        let input = json!({ "functionInvocationInput": { "actionGroup": "orders", "function": "get_order" } });
        event(json!({ "invocationInputs": vec![input; inputs] }))
    };
    assert_eq!(request(control(5)).calls.len(), 5);
    assert!((detect(&control(6), &all()).unwrap().decode)(control(6), &toolbox()).is_err());
}
