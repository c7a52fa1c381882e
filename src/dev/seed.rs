//! The tables of the embedded DynamoDB and the demo data in them.

use serde_json::{Value, json};

use crate::{env::Env, idempotency::WAITING};

/// The table of idempotency records.
pub const IDEMPOTENCY: &str = "idempotency";
/// The table of orders.
pub const ORDERS: &str = "orders";
/// The table of refunds.
pub const REFUNDS: &str = "refunds";
/// The table of conversations.
pub const CONVERSATIONS: &str = "conversations";
/// What the demo carrier and the demo mailer have done.
pub const EFFECTS: &str = "demo-effects";

/// A URL where nothing listens.
pub const NOWHERE: &str = "http://127.0.0.1:9";
/// The sender of the demo's mail.
pub const MAIL_FROM: &str = "shop@example.com";

/// The settings of the demo; what it does not know is the environment's.
pub fn env() -> Env {
    Env::from_lookup(|name| match name {
        "IDEMPOTENCY_TABLE" => Some(IDEMPOTENCY.into()),
        "ORDERS_TABLE" => Some(ORDERS.into()),
        "REFUNDS_TABLE" => Some(REFUNDS.into()),
        "CARRIER_URL" => Some(NOWHERE.into()),
        "MAIL_FROM" => Some(MAIL_FROM.into()),
        other => std::env::var_os(other),
    })
}

/// `CreateTable` requests, as `template.yaml` has the tables.
pub fn tables() -> [Value; 5] {
    let mut orders = table(ORDERS, "order_id");
    orders["AttributeDefinitions"] = json!([
        {"AttributeName": "order_id", "AttributeType": "S"},
        {"AttributeName": "customer_id", "AttributeType": "S"},
    ]);
    orders["GlobalSecondaryIndexes"] = json!([{
        "IndexName": crate::tools::BY_CUSTOMER,
        "KeySchema": [
            {"AttributeName": "customer_id", "KeyType": "HASH"},
            {"AttributeName": "order_id", "KeyType": "RANGE"},
        ],
        "Projection": {"ProjectionType": "ALL"},
    }]);
    let mut conversations = table(CONVERSATIONS, "conversation");
    conversations["AttributeDefinitions"] = json!([
        {"AttributeName": "conversation", "AttributeType": "S"},
        {"AttributeName": "step", "AttributeType": "N"},
    ]);
    conversations["KeySchema"] = json!([
        {"AttributeName": "conversation", "KeyType": "HASH"},
        {"AttributeName": "step", "KeyType": "RANGE"},
    ]);
    [records(), orders, table(REFUNDS, "refund_id"), conversations, table(EFFECTS, "id")]
}

/// The table of records, with the index of those that wait.
fn records() -> Value {
    let mut records = table(IDEMPOTENCY, "pk");
    records["AttributeDefinitions"] = json!([
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "waits_for", "AttributeType": "S"},
        {"AttributeName": "started_at", "AttributeType": "N"},
    ]);
    records["GlobalSecondaryIndexes"] = json!([{
        "IndexName": WAITING,
        "KeySchema": [
            {"AttributeName": "waits_for", "KeyType": "HASH"},
            {"AttributeName": "started_at", "KeyType": "RANGE"},
        ],
        "Projection": {"ProjectionType": "ALL"},
    }]);
    records
}

/// The `UpdateTable` request that gives a table of records from before the index this index.
pub fn index_of_records() -> Value {
    let records = records();
    json!({
        "TableName": IDEMPOTENCY,
        "AttributeDefinitions": records["AttributeDefinitions"],
        "GlobalSecondaryIndexUpdates": [{"Create": records["GlobalSecondaryIndexes"][0]}],
    })
}

fn table(name: &str, key: &str) -> Value {
    json!({
        "TableName": name,
        "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    })
}

/// The attribute by which records and conversations expire.
pub fn time_to_live() -> [Value; 2] {
    [IDEMPOTENCY, CONVERSATIONS].map(|table| {
        json!({
            "TableName": table,
            "TimeToLiveSpecification": {"AttributeName": "expires_at", "Enabled": true},
        })
    })
}

/// `PutItem` requests for the orders. One that is there already is left as it is.
pub fn orders() -> [Value; 3] {
    [
        order("ORD-12345", "C-1", "open", 25_000, &["gift", "express"]),
        order("ORD-12346", "C-1", "shipped", 8_900, &["gift"]),
        order("ORD-20001", "C-2", "open", 120_000, &[]),
    ]
}

fn order(order_id: &str, customer_id: &str, status: &str, cents: u64, tags: &[&str]) -> Value {
    let tags: Vec<Value> = tags.iter().map(|tag| json!({"S": tag})).collect();
    json!({
        "TableName": ORDERS,
        "ConditionExpression": "attribute_not_exists(order_id)",
        "Item": {
            "order_id": {"S": order_id},
            "customer_id": {"S": customer_id},
            "status": {"S": status},
            "total_cents": {"N": cents.to_string()},
            "refundable_cents": {"N": cents.to_string()},
            "tags": {"L": tags},
        },
    })
}
