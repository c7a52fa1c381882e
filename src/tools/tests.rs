//! The tools against the embedded DynamoDB, without the pipeline: writes are committed as it does.

use std::{sync::Arc, time::Duration};

use aws_sdk_dynamodb::{Client, error::SdkError, operation::transact_write_items::TransactWriteItemsError};
use serde_json::{Value, json};

use super::{Orders, get_order::GetOrder, refund_order::RefundOrder, search_orders::SearchOrders};
use crate::{
    dev::{Embedded, database::http_client, sdk_config},
    tool::{CallContext, Phase, Tool, ToolError, ToolErrorKind, Write},
};

/// The database, and the tables' clients.
struct Shop {
    client: Client,
    orders: Orders,
    _database: Embedded,
}

async fn shop() -> Shop {
    let database = Embedded::start(None, 0).await.expect("a database");
    let client = Client::new(&sdk_config(&database.endpoint(), http_client()));
    Shop { orders: Orders::new(client.clone(), "orders", "refunds"), client, _database: database }
}

fn context(key: Option<&str>) -> CallContext {
    CallContext::first(key, Duration::from_secs(20))
}

impl Shop {
    async fn order(&self, order_id: &str) -> Result<Value, ToolError> {
        let args = serde_json::from_value(json!({"order_id": order_id})).expect("arguments");
        let order = GetOrder { orders: self.orders.clone() }.call(args, &context(None)).await?;
        Ok(serde_json::to_value(order.result).expect("JSON"))
    }

    async fn found(&self, search: Value) -> Vec<String> {
        let args = serde_json::from_value(search).expect("arguments");
        let found = SearchOrders { orders: self.orders.clone() }.call(args, &context(None)).await.expect("a list");
        let found = serde_json::to_value(found.result).expect("JSON");
        let orders = found.as_array().expect("an array").iter();
        orders.map(|order| order["order_id"].as_str().expect("a number").to_owned()).collect()
    }

    /// The receipt, once the writes are committed.
    async fn refund(&self, order_id: &str, cents: u64, key: &str) -> Result<Value, ToolError> {
        let args = json!({"order_id": order_id, "amount_cents": cents, "reason": "Arrived damaged"});
        let args = serde_json::from_value(args).expect("arguments");
        let success = RefundOrder { orders: self.orders.clone() }.call(args, &context(Some(key))).await?;
        self.commit(success.writes).await?;
        Ok(serde_json::to_value(success.result).expect("JSON"))
    }

    /// Commits all or nothing, and lets the write explain whose condition failed.
    async fn commit(&self, writes: Vec<Write>) -> Result<(), ToolError> {
        let items = writes.iter().map(|write| write.item.clone()).collect();
        let error = match self.client.transact_write_items().set_transact_items(Some(items)).send().await {
            Ok(_) => return Ok(()),
            Err(SdkError::ServiceError(error)) => error.into_err(),
            Err(error) => panic!("{error:?}"),
        };
        let TransactWriteItemsError::TransactionCanceledException(cancelled) = error else { panic!("{error:?}") };
        for (write, reason) in writes.into_iter().zip(cancelled.cancellation_reasons()) {
            if reason.code() == Some("ConditionalCheckFailed") {
                return Err((write.explain.expect("an explanation"))(reason.item()));
            }
        }
        panic!("{cancelled:?}")
    }
}

#[tokio::test]
async fn an_order_is_read_with_what_can_still_be_refunded() {
    let order = shop().await.order("ORD-12345").await.expect("an order");
    let expected = json!({
        "order_id": "ORD-12345", "customer_id": "C-1", "status": "open", "total_cents": 25000, "refunded_cents": 0,
        "refundable_cents": 25000, "tags": ["gift", "express"],
    });
    assert_eq!(order, expected);
}

#[tokio::test]
async fn an_order_that_is_not_there_is_named_with_what_to_do() {
    let error = shop().await.order("ORD-00000").await.expect_err("no order");
    assert_eq!((error.kind(), error.phase()), (ToolErrorKind::NotFound, Phase::NothingSent));
    assert!(error.text.contains("ORD-00000") && error.text.contains("search_orders"), "{}", error.text);
}

#[tokio::test]
async fn a_search_finds_what_matches_all_filters_in_the_order_of_the_numbers() {
    let shop = shop().await;
    assert_eq!(shop.found(json!({"customer_id": "C-1"})).await, ["ORD-12345", "ORD-12346"]);
    assert_eq!(shop.found(json!({"customer_id": "C-1", "status": "shipped"})).await, ["ORD-12346"]);
    assert_eq!(shop.found(json!({"customer_id": "C-1", "limit": 1})).await, ["ORD-12345"]);
    assert_eq!(shop.found(json!({"customer_id": "C-1", "tags": ["gift"]})).await, ["ORD-12345", "ORD-12346"]);
    assert_eq!(shop.found(json!({"customer_id": "C-1", "tags": ["gift", "express"]})).await, ["ORD-12345"]);
    assert_eq!(shop.found(json!({"customer_id": "C-1", "tags": []})).await.len(), 2);
    assert!(shop.found(json!({"customer_id": "C-9"})).await.is_empty());
}

#[tokio::test]
async fn a_refund_lowers_what_is_left_and_stands_in_the_books() {
    let shop = shop().await;
    let receipt = shop.refund("ORD-12345", 1500, "00112233aa").await.expect("a receipt");
    assert_eq!((&receipt["order_id"], &receipt["amount_cents"]), (&json!("ORD-12345"), &json!(1500)));
    let order = shop.order("ORD-12345").await.expect("an order");
    assert_eq!((&order["refunded_cents"], &order["refundable_cents"]), (&json!(1500), &json!(23500)));
    let books = shop.client.scan().table_name("refunds").send().await.expect("the books");
    assert_eq!(books.count(), 1);
    assert_eq!(books.items()[0]["refund_id"].as_s().ok(), receipt["refund_id"].as_str().map(String::from).as_ref());
    assert_eq!(books.items()[0]["reason"].as_s().map(String::as_str), Ok("Arrived damaged"));
}

#[tokio::test]
async fn a_refund_above_what_is_left_is_refused_with_what_is_left_and_changes_nothing() {
    let shop = shop().await;
    shop.refund("ORD-12346", 8000, "aa").await.expect("a receipt");
    let error = shop.refund("ORD-12346", 901, "bb").await.expect_err("too much");
    assert_eq!(error.kind(), ToolErrorKind::Rejected);
    assert!(error.text.contains("only 900 cents"), "{}", error.text);
    assert_eq!(shop.order("ORD-12346").await.expect("an order")["refundable_cents"], 900);
    shop.refund("ORD-12346", 900, "cc").await.expect("the rest");
    let error = shop.refund("ORD-12346", 1, "dd").await.expect_err("nothing left");
    assert!(error.text.contains("refunded in full"), "{}", error.text);
}

#[tokio::test]
async fn a_refund_of_an_order_that_is_not_there_says_so() {
    let error = shop().await.refund("ORD-00000", 1, "aa").await.expect_err("no order");
    assert_eq!(error.kind(), ToolErrorKind::NotFound);
    assert!(error.text.contains("ORD-00000"), "{}", error.text);
}

#[tokio::test]
async fn every_attempt_of_a_call_gives_the_same_receipt() {
    let orders = shop().await.orders;
    // The clock goes on between two attempts, as at midnight; when the call began does not.
    let began = std::time::SystemTime::now() - Duration::from_hours(24);
    let receipt = || async {
        let args = json!({"order_id": "ORD-12345", "amount_cents": 1500, "reason": "x"});
        let args = serde_json::from_value(args).expect("arguments");
        let tool = RefundOrder { orders: orders.clone() };
        let context = CallContext { began, ..context(Some("0123456789abcdef")) };
        let success = tool.call(args, &context).await.expect("a receipt");
        serde_json::to_value(&success.result).expect("JSON")
    };
    let first = receipt().await;
    assert_eq!(first["refund_id"], super::orders::refund_id("0123456789abcdef", began));
    assert_eq!(first, receipt().await);
}

#[test]
fn a_receipt_is_numbered_by_day_and_key_and_keeps_the_key_secret() {
    let day = std::time::UNIX_EPOCH + Duration::from_secs(1_796_000_000);
    let key = "0123456789abcdef".repeat(4);
    let number = super::orders::refund_id(&key, day);
    assert_eq!(number, "RF-20261130-01234567");
    assert_ne!(number, super::orders::refund_id(&key, day + Duration::from_hours(24)));
}

/// A client that counts the requests which reach an HTTP server that answers 500 to each.
#[tokio::test]
async fn a_mail_that_ses_answers_with_a_server_error_is_tried_once_and_may_be_sent() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    let requests = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let counter = Arc::clone(&requests);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            counter.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let mut request = vec![0; 64 * 1024];
            let _ = socket.read(&mut request).await;
            let _ = socket.write_all(b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
        }
    });
    let mailer = super::SesMailer::new(&sdk_config(&endpoint, http_client()), "shop@example.com");
    let email = super::Email {
        to: "ada@example.com".into(),
        subject: "Hello".into(),
        body: "Hello".into(),
        reference: "key".into(),
        time_left: Duration::from_secs(20),
    };
    let error = super::Mailer::send(&mailer, email).await.expect_err("a server error");
    assert_eq!((error.kind(), error.phase()), (ToolErrorKind::Transient, Phase::MaybeDone));
    assert_eq!(requests.load(std::sync::atomic::Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_mail_service_that_is_not_there_was_sent_nothing() {
    let mailer = super::SesMailer::new(&sdk_config("http://127.0.0.1:1", http_client()), "shop@example.com");
    let (to, subject, body) = ("ada@example.com".into(), "Hello".into(), "Hello".into());
    let email = super::Email { to, subject, body, reference: "key".into(), time_left: Duration::from_secs(20) };
    let error = super::Mailer::send(&mailer, email).await.expect_err("nobody there");
    assert_eq!((error.kind(), error.phase()), (ToolErrorKind::Transient, Phase::NothingSent));
}
