//! Time and retries with the real program: whatever a backend or the table does, the answer comes before the deadline, and
//! nobody is asked more often than promised.
#![cfg(all(feature = "dev", unix))]

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use support::{Event, Fault, THROTTLED, World, example};

const PROGRAM: &str = env!("CARGO_BIN_EXE_action-group");
const MAIL: &str = "/v2/email/outbound-emails";
const LABELS: &str = "/labels";
/// The default of `RESERVE_MS`.
const RESERVE: Duration = Duration::from_millis(500);

fn tool_use(id: &str, name: &str, input: &Value) -> Value {
    json!({"toolUse": {"toolUseId": id, "name": name, "input": input}})
}

fn message(calls: &[Value]) -> Event {
    Event::json(&json!({"role": "assistant", "content": calls}))
}

fn statuses(answer: &Value) -> Vec<&str> {
    let blocks = answer["content"].as_array().expect("blocks");
    blocks.iter().map(|block| block["toolResult"]["status"].as_str().expect("a status")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn three_calls_that_hang_are_answered_with_half_the_reserve_to_spare() {
    let mut world = World::start(PROGRAM).await;
    world.backend_faults.misbehave(LABELS, [Fault::Silence; 9]);
    world.backend_faults.misbehave(MAIL, [Fault::Silence; 9]);
    world.faults.misbehave("GetItem", [Fault::Silence; 9]);
    let calls = [
        tool_use("t1", "get_order", &json!({"order_id": "ORD-12345"})),
        tool_use("t2", "create_shipping_label", &json!({"order_id": "ORD-12345", "carrier": "dhl"})),
        tool_use("t3", "send_email", &json!({"to": "ada@example.com", "subject": "Hello", "body": "Hello"})),
    ];
    let answer = world.function.invoke(message(&calls).time_left(Duration::from_secs(3))).await;
    assert!(answer.to_spare >= RESERVE / 2, "{:?} to spare", answer.to_spare);
    assert_eq!(statuses(&answer.response()), ["error"; 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn blocked_threads_and_hangs_leave_half_the_reserve_to_spare() {
    let mut world = World::start(example("misbehave")).await;
    let calls = ["blocks", "hangs", "hangs_once", "b1", "b2", "b3"];
    let calls = calls.map(|id| tool_use(id, if id.starts_with('b') { "blocks" } else { id }, &json!({})));
    let answer = world.function.invoke(message(&calls).time_left(Duration::from_secs(3))).await;
    assert!(answer.to_spare >= RESERVE / 2, "{:?} to spare", answer.to_spare);
    assert_eq!(statuses(&answer.response()), ["error"; 6]);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_dynamodb_silent_every_effect_is_answered_in_time() {
    let mut world = World::start(PROGRAM).await;
    for operation in ["PutItem", "GetItem", "UpdateItem", "DeleteItem", "TransactWriteItems"] {
        world.faults.misbehave(operation, [Fault::Silence; 50]);
    }
    for event in ["get-order", "refund-order", "create-shipping-label", "send-email"] {
        let event = Event::file(&format!("converse/{event}.json")).time_left(Duration::from_secs(2));
        let answer = world.function.invoke(event).await;
        assert!(answer.in_time);
        assert_eq!(answer.response()["toolResult"]["status"], "error");
    }
    assert_eq!(world.backends.done(), 0);
}

/// Whichever layer fails: the carrier (the pipeline retries), SES (nobody does), DynamoDB (the SDK does).
#[tokio::test(flavor = "multi_thread")]
async fn a_backend_is_asked_three_times_at_most_for_one_call() {
    let mut world = World::start(PROGRAM).await;
    for fault in [
        Fault::With(429, "retry-after", "0"),
        Fault::With(503, "x-amz-retry-after", "1"),
        Fault::Instead(500, ""),
        Fault::Reset,
        Fault::HalfBody,
        Fault::After(504, ""),
    ] {
        for (event, operation, most) in [("create-shipping-label", LABELS, 3), ("send-email", MAIL, 1)] {
            let sure = matches!(fault, Fault::With(429, ..));
            world.backend_faults.misbehave(operation, [fault; 50]);
            let input = json!({"order_id": order_id(), "carrier": "dhl"});
            let event = match event {
                "send-email" => mail(),
                _ => Event::json(&tool_use("t1", "create_shipping_label", &input)),
            };
            world.function.invoke(event).await.response();
            let most = if sure { 3 } else { most };
            assert_eq!(world.backend_faults.count(operation), most, "{operation}, {fault:?}");
        }
    }
    world.faults.misbehave("GetItem", [THROTTLED; 50]);
    world.function.invoke(Event::file("converse/get-order.json").time_left(Duration::from_secs(5))).await.response();
    let asked = world.faults.count("GetItem");
    assert!((1..=3).contains(&asked), "{asked}");
}

/// A mail that no other test call sends.
fn mail() -> Event {
    let body = format!("Number {}", order_id());
    Event::json(&tool_use("t1", "send_email", &json!({"to": "ada@example.com", "subject": "Hello", "body": body})))
}

fn order_id() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("ORD-{:05}", NEXT.fetch_add(1, Ordering::SeqCst))
}

/// That nobody is asked afterwards is shown by a stopped clock, in `tests/retry_table.rs`.
#[tokio::test(flavor = "multi_thread")]
async fn the_retries_of_each_layer_end_before_the_deadline() {
    let mut world = World::start(PROGRAM).await;
    world.backend_faults.misbehave(LABELS, [Fault::Instead(500, ""); 99]);
    world.faults.misbehave("GetItem", [THROTTLED; 99]);
    // One after the other: a DynamoDB client that is throttled also holds back what other calls ask it.
    for call in [
        tool_use("t1", "create_shipping_label", &json!({"order_id": "ORD-12345", "carrier": "dhl"})),
        tool_use("t2", "get_order", &json!({"order_id": "ORD-12345"})),
    ] {
        let answer = world.function.invoke(message(&[call]).time_left(Duration::from_millis(900))).await;
        assert!(answer.in_time);
        assert_eq!(statuses(&answer.response()), ["error"]);
    }
    assert!(world.faults.count("GetItem") > 0 && world.backend_faults.count(LABELS) > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_beyond_the_deadline_is_not_begun_and_the_model_is_told_when() {
    let mut world = World::start(PROGRAM).await;
    world.backend_faults.misbehave(LABELS, [Fault::With(503, "retry-after", "60")]);
    let answer = world.function.invoke(Event::file("converse/create-shipping-label.json")).await;
    assert!(answer.to_spare > Duration::from_secs(5), "{:?} to spare", answer.to_spare);
    let text = answer.response()["toolResult"]["content"][0]["text"].to_string();
    assert!(text.contains("Try again in 60 seconds, not sooner. No label was made."), "{text}");
    assert_eq!(world.backend_faults.count(LABELS), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_thousand_calls_with_every_fifth_request_throttled_all_are_answered_within_the_budget() {
    const CALLS: usize = 1_000;
    const AT_ONCE: usize = 100;
    let mut world = World::start(PROGRAM).await;
    world.backend_faults.misbehave_often(LABELS, 20, Fault::With(429, "retry-after", "0"));
    let mut well = 0;
    for batch in 0..CALLS / AT_ONCE {
        let calls: Vec<_> = (0..AT_ONCE)
            .map(|n| {
                let order_id = format!("ORD-{:05}", batch * AT_ONCE + n);
                tool_use(&format!("t{n}"), "create_shipping_label", &json!({"order_id": order_id, "carrier": "ups"}))
            })
            .collect();
        let answer = world.function.invoke(message(&calls).time_left(Duration::from_secs(30))).await.response();
        assert_eq!(statuses(&answer).len(), AT_ONCE);
        well += statuses(&answer).iter().filter(|status| **status == "success").count();
    }
    let retries = world.backend_faults.count(LABELS) - CALLS;
    let budget = 20 + CALLS / 5;
    println!("{retries} retries of at most {budget}; {well} of {CALLS} calls ended well");
    assert!(retries <= budget, "{retries} retries");
    assert!(well > CALLS * 9 / 10, "{well} calls ended well");
    let denied = world.function.output_when(|output| output.matches("\"message\":\"call\"").count() >= CALLS).await;
    assert_eq!(denied.matches("\"RetriesDenied\":1").count() > 0, denied.contains("\"retry_denied\":true"));
}

/// The process is frozen as Lambda freezes it, and the connections die meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn connections_that_die_in_a_freeze_cost_no_call_its_answer_and_send_no_mail_twice() {
    let mut world = World::start(PROGRAM).await;
    let mut unknowns = 0;
    for number in 0..5 {
        world.function.invoke(mail()).await.response();
        world.function.signal("STOP");
        world.ses.cut();
        world.function.signal("CONT");
        let answer = world.function.invoke(mail()).await.response();
        let text = answer.to_string();
        // Where the program sees in time that the connection is gone, it makes another one. Else it cannot know.
        let unknown = text.contains("It is not known whether the e-mail was sent.");
        assert!(unknown || answer["toolResult"]["status"] == "success", "{text}");
        unknowns += u32::from(unknown);
        let sent = world.backends.done();
        assert!(sent <= 2 * (number + 1), "a mail was sent twice");
    }
    println!("{unknowns} of 5 mails after a freeze ended as unknown; {} connections", world.ses.accepted());
    assert_eq!(world.backend_faults.count(MAIL), world.backends.done());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_whose_timeout_is_too_short_says_so_once() {
    const WARNING: &str = "The function's timeout is shorter than this tool's";
    let mut world = World::start(PROGRAM).await;
    for _ in 0..2 {
        world.function.invoke(Event::file("converse/get-order.json").time_left(Duration::from_secs(10))).await;
    }
    let output = world.function.output_when(|output| output.matches("\"message\":\"call\"").count() == 2).await;
    assert_eq!(output.matches(WARNING).count(), 1, "{output}");
    assert!(output.contains("\"needed_ms\":21100"), "{output}");

    let mut world = World::start(PROGRAM).await;
    world.function.invoke(Event::file("converse/get-order.json").time_left(Duration::from_secs(30))).await;
    let output = world.function.output_when(|output| output.contains("\"message\":\"call\"")).await;
    assert!(!output.contains(WARNING), "{output}");
}
