//! A person approves by a function of its own: both real programs, on one table.

#![cfg(feature = "dev")] // the embedded DynamoDB

mod support;

use serde_json::{Value, json};
use support::{Event, Function, World};

const TOOLS: &str = env!("CARGO_BIN_EXE_action-group");
const APPROVER: &str = env!("CARGO_BIN_EXE_approver");

fn refund(cents: u64) -> Event {
    let input = json!({"order_id": "ORD-20001", "amount_cents": cents, "reason": "damaged"});
    Event::json(&json!({"toolUse": {"toolUseId": "t1", "name": "refund_order", "input": input}}))
}

async fn status(function: &mut Function, event: Event) -> String {
    let answer = function.invoke(event).await.response();
    answer["toolResult"]["status"].as_str().expect("a status").to_owned()
}

async fn asked(approver: &mut Function, request: Value) -> Value {
    approver.invoke(Event::json(&request)).await.response()
}

#[tokio::test]
async fn what_a_person_approves_runs_once_and_what_a_person_refuses_does_not() {
    let mut world = World::start(TOOLS).await;
    let mut approver = world.beside(APPROVER).await;
    assert_eq!(status(&mut world.function, refund(60_000)).await, "error");
    assert_eq!(status(&mut world.function, refund(50_001)).await, "error");

    let listed = asked(&mut approver, json!({"action": "list"})).await;
    let pending = listed["pending"].as_array().expect("a list");
    assert_eq!(pending.len(), 2, "{listed}");
    let key_of = |cents: &str| {
        let call = pending.iter().find(|call| call["arguments"].as_str().expect("a text").contains(cents));
        call.expect("the call")["key"].clone()
    };

    let decided = asked(&mut approver, json!({"action": "approve", "key": key_of("60000"), "by": "ada"})).await;
    assert_eq!((&decided["ok"], &decided["decided"]["tool"]), (&json!(true), &json!("refund_order")));
    let decided = asked(&mut approver, json!({"action": "deny", "key": key_of("50001"), "by": "ada"})).await;
    assert_eq!(decided["ok"], true);

    assert_eq!(status(&mut world.function, refund(60_000)).await, "success");
    assert_eq!(status(&mut world.function, refund(50_001)).await, "error");
    let again = asked(&mut approver, json!({"action": "approve", "key": key_of("60000"), "by": "ada"})).await;
    assert_eq!(again["ok"], false, "an approval is used once");
}

#[tokio::test]
async fn a_request_that_is_none_and_a_decision_of_nobody_are_refused() {
    let world = World::start(TOOLS).await;
    let mut approver = world.beside(APPROVER).await;
    for nonsense in [json!({}), json!({"action": "approve"}), json!({"action": "list", "all": true}), json!([])] {
        let error = approver.invoke(Event::json(&nonsense)).await.error();
        assert_eq!(error["errorType"], "InvalidPayload", "{nonsense}");
    }
    let nobody = asked(&mut approver, json!({"action": "approve", "key": "refund_order#", "by": " "})).await;
    assert_eq!(nobody["ok"], false);
    let nothing = asked(&mut approver, json!({"action": "approve", "key": "", "by": "ada"})).await;
    assert_eq!(nothing["ok"], false);
}
