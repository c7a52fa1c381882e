//! Equal calls at the same time, in several real Lambda programs on one DynamoDB: one effect, and one answer for all.

#![cfg(feature = "dev")] // the embedded DynamoDB

mod support;

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use support::{Backends, Database, Event, Function, RuntimeApi};

const PROCESSES: usize = 4;
const CALLS_EACH: usize = 16;

struct Race {
    database: Database,
    backends: Backends,
    functions: Vec<Function>,
}

impl Race {
    /// Starts the programs, and waits until all of them ask for work.
    async fn start() -> Self {
        let (database, backends) = (Database::start().await, Backends::start().await);
        let settings = [
            ("IDEMPOTENCY_TABLE", Database::RECORDS),
            ("ORDERS_TABLE", "orders"),
            ("REFUNDS_TABLE", "refunds"),
            ("CARRIER_URL", backends.endpoint()),
            ("MAIL_FROM", "shop@example.com"),
            ("AWS_ENDPOINT_URL_DYNAMODB", &database.endpoint()),
            ("AWS_ENDPOINT_URL_SESV2", backends.endpoint()),
        ];
        let mut functions = Vec::new();
        for _ in 0..PROCESSES {
            functions.push(RuntimeApi::start().await.launch(env!("CARGO_BIN_EXE_action-group"), &settings));
        }
        for function in &mut functions {
            function.ready().await;
        }
        Self { database, backends, functions }
    }

    /// Hands each program one message with many equal calls, all at the same time. Gives every result.
    async fn run(&mut self, tool: &str, input: &Value) -> Vec<Value> {
        let calls =
            (0..CALLS_EACH).map(|n| json!({"toolUse": {"toolUseId": n.to_string(), "name": tool, "input": input}}));
        let message = json!({"role": "assistant", "content": calls.collect::<Vec<_>>()});
        let event = || Event::json(&message).time_left(Duration::from_secs(50));
        let answers = self.functions.iter_mut().map(|function| function.invoke(event()));
        let answers = futures_util::future::join_all(answers).await;
        let results = answers.iter().flat_map(|answer| answer.response()["content"].as_array().unwrap().clone());
        results.map(|block| block["toolResult"].clone()).collect()
    }
}

/// All calls got the same data, and all but one are told that it is an earlier call's.
fn assert_one_answer(tool: &str, results: &[Value]) {
    assert_eq!(results.len(), PROCESSES * CALLS_EACH);
    let data = &results[0]["content"][0];
    for result in results {
        assert_eq!((&result["status"], &result["content"][0]), (&json!("success"), data), "{result}");
    }
    let replays = results.iter().filter(|result| result["content"].as_array().unwrap().len() == 2).count();
    println!("{tool}: {} calls in {PROCESSES} processes, {replays} of them replays: {data}", results.len());
    assert_eq!(replays, results.len() - 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_equal_mails_in_several_processes_are_one_mail_and_one_answer() {
    let mut race = Race::start().await;
    let mail = json!({"to": "ada@example.com", "subject": "Once", "body": "Hello."});
    assert_one_answer("send_email", &race.run("send_email", &mail).await);
    assert_eq!(race.backends.mails("Once"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_equal_refunds_in_several_processes_are_one_refund_and_one_answer() {
    let mut race = Race::start().await;
    let refund = json!({"order_id": "ORD-12345", "amount_cents": 100, "reason": "Broken"});
    assert_one_answer("refund_order", &race.run("refund_order", &refund).await);
    let got = race.database.client().get_item().table_name("orders");
    let item = got.key("order_id", AttributeValue::S("ORD-12345".into())).send().await.unwrap().item.unwrap();
    assert_eq!(item["unapproved_cents"], AttributeValue::N("100".into()));
    let refunds = race.database.client().scan().table_name("refunds").send().await.unwrap();
    assert_eq!(
        refunds.items().iter().filter(|item| item["amount_cents"] == AttributeValue::N("100".into())).count(),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_equal_labels_in_several_processes_are_one_label_and_one_answer() {
    let mut race = Race::start().await;
    let label = json!({"order_id": "ORD-12345", "carrier": "dhl"});
    assert_one_answer("create_shipping_label", &race.run("create_shipping_label", &label).await);
    assert_eq!(race.backends.labels(), (1, 0));
}
