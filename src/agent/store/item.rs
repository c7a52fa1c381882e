//! The items of a conversation, as DynamoDB has them.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

use super::kept::{Kept, Part};
use crate::clock::Timestamp;

pub(super) type Item = HashMap<String, AttributeValue>;

/// The head, as read or as it is to be written.
pub(super) struct Head {
    /// The run without its messages.
    pub state: String,
    /// The messages.
    pub kept: Vec<Kept>,
    /// How often it has been written, or has changed hands.
    pub revision: u64,
    /// The requests that have written it, the last ones, in order.
    pub requests: Vec<String>,
    pub expires_at: Timestamp,
}

impl Head {
    /// `None` if the item is not what this version writes.
    pub fn read(item: &Item) -> Option<Self> {
        let text = |name: &str| item.get(name)?.as_s().ok();
        Some(Self {
            state: text("state")?.clone(),
            kept: serde_json::from_str(text("messages")?).ok()?,
            revision: number(item, "revision")?,
            requests: text("request")?.split_whitespace().map(str::to_owned).collect(),
            expires_at: Timestamp::from_secs(number(item, "expires_at")?),
        })
    }
}

pub(super) fn part_of(item: &Item) -> Option<Part> {
    let step = usize::try_from(number(item, "step")?).ok()?;
    Some(Part { step, text: item.get("message")?.as_s().ok()?.clone() })
}

pub(super) fn number(item: &Item, name: &str) -> Option<u64> {
    item.get(name)?.as_n().ok()?.parse().ok()
}

pub(super) fn key(id: &str, step: usize) -> Item {
    HashMap::from([(String::from("conversation"), s(id)), (String::from("step"), n(step))])
}

pub(super) fn with<const N: usize>(mut item: Item, attributes: [(&str, AttributeValue); N]) -> Item {
    item.extend(attributes.map(|(name, value)| (name.to_owned(), value)));
    item
}

pub(super) fn s(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

pub(super) fn n(number: impl std::fmt::Display) -> AttributeValue {
    AttributeValue::N(number.to_string())
}
