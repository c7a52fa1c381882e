//! What Bedrock demands of calls and their results in a conversation, and the results that it takes: for the door of Converse,
//! and for the loop of this crate, which holds such a conversation itself.
//!
//! What it does not take it refuses for good: the conversation cannot go on.

use serde_json::{Value, json};

use super::{REPLAYED, spelling::Spelling};
use crate::outcome::Outcome;

/// The `toolResult` of an outcome, `{toolUseId, status, content}`.
pub(crate) fn of(id: &str, outcome: Outcome) -> Value {
    spelt(Spelling::Api, id, outcome)
}

/// The `toolResult` of an outcome, `{toolUseId, status, content}`, in a spelling of its keys.
pub(super) fn spelt(spelling: Spelling, id: &str, outcome: Outcome) -> Value {
    let text = |text: &str| spelling.object([("text", text.into())]);
    let (status, content) = match outcome {
        Outcome::Success { result, replayed } => {
            let note = replayed.then(|| text(REPLAYED));
            ("success", std::iter::once(block(spelling, &result)).chain(note).collect())
        }
        // Bedrock refuses an error without content, and a blank text.
        Outcome::Failure(failure) => ("error", vec![text(&failure.message())]),
    };
    spelling.object([("toolUseId", id.into()), ("status", status.into()), ("content", Value::Array(content))])
}

/// A result as a content block.
pub(crate) fn content(result: &Value) -> Value {
    block(Spelling::Api, result)
}

/// A result as a content block. `json` must be an object, and Bedrock refuses one with a key `__type` at any depth
/// ("Provide a json object for the field"), after which every later turn of the conversation fails too.
fn block(spelling: Spelling, result: &Value) -> Value {
    if has_dunder_type(result) {
        spelling.object([("text", result.to_string().into())])
    } else if result.is_object() {
        spelling.object([("json", result.clone())])
    } else {
        spelling.object([("json", json!({ "result": result }))])
    }
}

/// The bytes that a result takes as a block. As text inside JSON it is longer than by itself.
pub(super) fn written(result: &Value) -> usize {
    let json = result.to_string();
    if has_dunder_type(result) { Value::String(json).to_string().len() } else { json.len() }
}

/// Whether a key `__type` stands in it, at any depth.
pub(crate) fn has_dunder_type(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(name, value)| name == "__type" || has_dunder_type(value)),
        Value::Array(items) => items.iter().any(has_dunder_type),
        _ => false,
    }
}

/// `[a-zA-Z0-9_.:-]{1,64}`, as the service model of bedrock-runtime has it.
pub(crate) fn is_legal_id(id: &str) -> bool {
    is_legal(id, b"_.:-")
}

/// `[a-zA-Z0-9_-]{1,64}`, as the service model of bedrock-runtime has it.
pub(crate) fn is_legal_name(name: &str) -> bool {
    is_legal(name, b"_-")
}

fn is_legal(text: &str, others: &[u8]) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || others.contains(&byte))
}
