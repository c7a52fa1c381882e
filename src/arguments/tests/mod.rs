//! The promises of the room as a whole, on arguments like those of the demo tools.

mod any_value;
mod faults;
mod schemas;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::*;

/// Look up one order.
#[derive(Deserialize, JsonSchema)]
struct GetOrder {
    /// The order, for example "ORD-12345".
    #[schemars(regex(pattern = "^ORD-[0-9]{5}$"), extend("examples" = ["ORD-12345"]))]
    #[allow(dead_code)]
    order_id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(dead_code)]
enum Status {
    /// Not yet handed
    /// to the carrier.
    Open,
    /// On its way.
    Shipped,
    Cancelled,
}

/// Find orders of a customer.
///
/// The newest
/// come first.
#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
struct SearchOrders {
    /// The customer.
    #[schemars(length(min = 1, max = 20), extend("examples" = ["C-1"]))]
    customer_id: String,
    /// Only orders that stand there.
    status: Option<Status>,
    /// How many at most.
    #[schemars(range(min = 1, max = 50), extend("examples" = [10]))]
    limit: Option<u32>,
    /// Only orders with all of these tags.
    #[schemars(extend("examples" = [["gift"]]))]
    tags: Option<Vec<String>>,
}

/// Refund part or all of an order.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
struct RefundOrder {
    /// The order.
    #[schemars(regex(pattern = "^ORD-[0-9]{5}$"), extend("examples" = ["ORD-12345"]))]
    order_id: String,
    /// The amount in cents.
    #[schemars(range(min = 1), extend("examples" = [1500]))]
    amount_cents: i64,
    /// Why.
    #[schemars(length(min = 1, max = 200), extend("examples" = ["damaged"]))]
    reason: String,
}

/// Send an e-mail.
#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
struct SendEmail {
    /// The recipient.
    #[schemars(email, extend("examples" = ["user@example.com"]))]
    to: String,
    /// The subject.
    subject: String,
    /// The text.
    body: String,
}

/// One of every kind of field.
#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Everything {
    /// 8 bits.
    byte: u8,
    /// 8 bits with a wider range than the type.
    #[schemars(range(min = -1000, max = 1000))]
    small: i8,
    /// 32 bits.
    int: i32,
    /// 64 bits.
    long: i64,
    /// 64 bits.
    ulong: u64,
    /// 128 bits.
    wide: u128,
    /// Not zero.
    some: std::num::NonZeroU16,
    /// A single.
    single: f32,
    /// A double.
    #[schemars(range(min = 0.5))]
    double: Option<f64>,
    /// Yes or no.
    flag: Option<bool>,
    /// One character.
    letter: char,
    /// An address.
    #[schemars(extend("examples" = ["192.0.2.1"]))]
    ip: Option<std::net::IpAddr>,
    /// A default.
    #[serde(default)]
    count: usize,
    /// Lists of numbers.
    lists: Vec<Vec<i16>>,
    /// A pair.
    pair: Option<[u8; 2]>,
    /// An object.
    address: Option<Address>,
    /// Numbers by name.
    limits: Option<BTreeMap<String, u8>>,
}

/// Where.
#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Address {
    /// The street.
    street: String,
    /// The number.
    number: Option<u16>,
}

fn checker<T: JsonSchema>() -> Checker {
    Checker::new(&schema_of::<T>().1)
}

fn faults<T: JsonSchema>(arguments: &Value) -> Vec<String> {
    let checker = checker::<T>();
    let arguments = checker.normalise(arguments.as_object().expect("an object").clone());
    checker.check(&arguments).iter().map(ToString::to_string).collect()
}
