//! Orders and refunds in DynamoDB, through the AWS SDK.
//!
//! | table | key | index | attributes |
//! | --- | --- | --- | --- |
//! | orders | `order_id` | [`BY_CUSTOMER`]: `customer_id`, `order_id` | `status`, `total_cents`, `refundable_cents`, `tags` (list) |
//! | refunds | `refund_id` | | `order_id`, `amount_cents`, `reason`, `made_at` (ms since 1970) |
//!
//! What is left to refund is a number on the order, so that one condition can guard it and no read has to come first.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use aws_sdk_dynamodb::{
    Client,
    config::Builder,
    error::BuildError,
    types::{AttributeValue, Put, ReturnValuesOnConditionCheckFailure::AllOld, TransactWriteItem, Update},
};
use aws_smithy_types::timeout::TimeoutConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::{Item, ToolError, Write};

/// The index of the orders table by which a customer's orders are found.
pub const BY_CUSTOMER: &str = "by_customer";

const SERVICE: &str = "The order database";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Status {
    Open,
    Shipped,
    Cancelled,
}

impl Status {
    const ALL: [Self; 3] = [Self::Open, Self::Shipped, Self::Cancelled];

    const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Shipped => "shipped",
            Self::Cancelled => "cancelled",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(clippy::struct_field_names)] // the names in the table
pub struct Order {
    pub order_id: String,
    pub customer_id: String,
    pub status: Status,
    pub total_cents: u64,
    pub refunded_cents: u64,
    pub refundable_cents: u64,
    pub tags: Vec<String>,
}

/// An order is found if all of it holds.
#[derive(Debug)]
pub struct Search {
    pub customer_id: String,
    pub status: Option<Status>,
    pub limit: usize,
    pub tags: Vec<String>,
}

#[derive(Debug)]
#[allow(clippy::struct_field_names)] // the names in the table
pub struct Refund {
    pub refund_id: String,
    pub order_id: String,
    pub amount_cents: u64,
    pub reason: String,
    pub made_at: SystemTime,
}

/// The two tables.
#[derive(Clone, Debug)]
pub struct Orders {
    client: Client,
    table: String,
    refunds: String,
}

impl Orders {
    /// The tables of these names.
    pub fn new(client: Client, orders_table: impl Into<String>, refunds_table: impl Into<String>) -> Self {
        Self { client, table: orders_table.into(), refunds: refunds_table.into() }
    }

    /// The order as it stands; a consistent read, because it is asked right after refunds.
    pub(super) async fn get(&self, order_id: &str, within: Duration) -> Result<Option<Order>, ToolError> {
        let answer = self
            .client
            .get_item()
            .table_name(&self.table)
            .key("order_id", s(order_id))
            .consistent_read(true)
            .customize()
            .config_override(time_limit(within))
            .send()
            .await
            .map_err(|error| ToolError::from_sdk(error, SERVICE))?;
        answer.item().map(read_order).transpose()
    }

    /// The orders that match, in the order of their numbers. What was written a moment ago may be missing.
    pub(super) async fn search(&self, search: &Search, within: Duration) -> Result<Vec<Order>, ToolError> {
        let (mut found, mut start, began) = (Vec::new(), None, Instant::now());
        loop {
            let page = self
                .query(search)
                .set_exclusive_start_key(start)
                .customize()
                .config_override(time_limit(within.saturating_sub(began.elapsed()))) // for all pages together
                .send()
                .await
                .map_err(|error| ToolError::from_sdk(error, SERVICE))?;
            for item in page.items() {
                found.push(read_order(item)?);
                if found.len() == search.limit {
                    return Ok(found);
                }
            }
            start = page.last_evaluated_key;
            if start.is_none() {
                return Ok(found);
            }
        }
    }

    fn query(&self, search: &Search) -> aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder {
        let mut query = self
            .client
            .query()
            .table_name(&self.table)
            .index_name(BY_CUSTOMER)
            .key_condition_expression("customer_id = :customer")
            .expression_attribute_values(":customer", s(&search.customer_id));
        let mut filters = Vec::new();
        if let Some(status) = search.status {
            filters.push(String::from("#status = :status"));
            query = query
                .expression_attribute_names("#status", "status")
                .expression_attribute_values(":status", s(status.name()));
        }
        for (n, tag) in search.tags.iter().enumerate() {
            filters.push(format!("contains(tags, :tag{n})"));
            query = query.expression_attribute_values(format!(":tag{n}"), s(tag));
        }
        query.set_filter_expression((!filters.is_empty()).then(|| filters.join(" AND ")))
    }

    /// The writes that are a refund: less is left on the order, and the refund is in the books. `free` is how many cents
    /// of one order may be refunded in all without approval; `None` for a refund that is approved.
    pub(super) fn refund(&self, refund: &Refund, free: Option<u64>) -> Result<Vec<Write>, BuildError> {
        let (order_id, amount) = (refund.order_id.clone(), refund.amount_cents);
        let less_left = Update::builder()
            .table_name(&self.table)
            .key("order_id", s(&refund.order_id))
            .expression_attribute_values(":amount", n(amount))
            .return_values_on_condition_check_failure(AllOld);
        let less_left = match free {
            None => less_left
                .condition_expression("refundable_cents >= :amount")
                .update_expression("SET refundable_cents = refundable_cents - :amount"),
            Some(free) => less_left
                .condition_expression(
                    "refundable_cents >= :amount AND (attribute_not_exists(unapproved_cents) OR unapproved_cents <= :room)",
                )
                .update_expression("SET refundable_cents = refundable_cents - :amount ADD unapproved_cents :amount")
                .expression_attribute_values(":room", n(free.saturating_sub(amount))),
        }
        .build()?;
        let in_the_books = Put::builder()
            .table_name(&self.refunds)
            .item("refund_id", s(&refund.refund_id))
            .item("order_id", s(&refund.order_id))
            .item("amount_cents", n(refund.amount_cents))
            .item("reason", s(&refund.reason))
            .item("made_at", n(millis(refund.made_at)))
            .condition_expression("attribute_not_exists(refund_id)")
            .build()?;
        Ok(vec![
            Write::new(TransactWriteItem::builder().update(less_left).build())
                .or_else(move |order| why_not(&order_id, amount, free, order)),
            Write::new(TransactWriteItem::builder().put(in_the_books).build()),
        ])
    }
}

/// Why the order did not take the refund.
fn why_not(order_id: &str, amount: u64, free: Option<u64>, order: Option<&Item>) -> ToolError {
    let Some(item) = order else { return no_such_order(order_id) };
    match number(item, "refundable_cents") {
        Some(0) => ToolError::rejected(format!(
            "Order {order_id} is refunded in full: nothing of it can be refunded any more. Tell the user so."
        )),
        Some(left) if left >= amount => ToolError::approval_required(format!(
            "All refunds of order {order_id} that nobody has approved would come to more than {} cents with this one.",
            free.unwrap_or_default()
        )),
        Some(left) => ToolError::rejected(format!(
            "Of order {order_id} only {left} cents can still be refunded, and {amount} were asked for. Ask the user \
             whether {left} cents or less will do."
        )),
        None => broken("refundable_cents").nothing_sent(),
    }
}

pub(super) fn no_such_order(order_id: &str) -> ToolError {
    ToolError::not_found(format!(
        "There is no order {order_id}. Check the number with the user, or find the order with search_orders."
    ))
}

/// A number for the user's receipt, such as `RF-20261129-3fa9c1d2`. Every attempt of one call gets the same, since
/// `day` is when the call began. An equal refund gets another one, because it can only be a new action after the window of 24 hours, and so on another day.
pub(super) fn refund_id(idempotency_key: &str, day: SystemTime) -> String {
    // Eight of the key's 64 digits: enough to tell refunds of a day apart, too few to be used as the key.
    let key: String = idempotency_key.chars().take(8).collect();
    let day: String = aws_smithy_types::DateTime::from(day)
        .to_string()
        .chars()
        .take_while(|c| *c != 'T')
        .filter(char::is_ascii_digit)
        .collect();
    format!("RF-{day}-{key}")
}

fn read_order(item: &Item) -> Result<Order, ToolError> {
    let total_cents = number(item, "total_cents").ok_or_else(|| broken("total_cents"))?;
    let refundable_cents = number(item, "refundable_cents").ok_or_else(|| broken("refundable_cents"))?;
    let status = text(item, "status").and_then(|name| Status::ALL.into_iter().find(|status| status.name() == name));
    let tags = item.get("tags").and_then(|tags| tags.as_l().ok()).map(Vec::as_slice).unwrap_or_default();
    Ok(Order {
        order_id: text(item, "order_id").ok_or_else(|| broken("order_id"))?,
        customer_id: text(item, "customer_id").ok_or_else(|| broken("customer_id"))?,
        status: status.ok_or_else(|| broken("status"))?,
        total_cents,
        refunded_cents: total_cents.saturating_sub(refundable_cents),
        refundable_cents,
        tags: tags.iter().filter_map(|tag| tag.as_s().ok().cloned()).collect(),
    })
}

/// The attribute that is missing or of another form; a fault of ours.
fn broken(attribute: &str) -> ToolError {
    ToolError::internal(format!("an item of the orders table has no good {attribute}"))
}

fn text(item: &Item, name: &str) -> Option<String> {
    item.get(name)?.as_s().ok().cloned()
}

fn number(item: &Item, name: &str) -> Option<u64> {
    item.get(name)?.as_n().ok()?.parse().ok()
}

fn s(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

fn n(number: u64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

fn millis(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// The SDK has no limit of its own for the whole of a call and its retries.
fn time_limit(within: Duration) -> Builder {
    Builder::new().timeout_config(TimeoutConfig::builder().operation_timeout(within).build())
}
