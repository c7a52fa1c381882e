//! What makes two calls the same action.
//!
//! `pk = <tool>#<hex sha-256>` over length-prefixed parts: version, tool, scope, canonical key arguments. Length
//! prefixes keep `("ab", "c")` and `("a", "bc")` apart; the tool's stable name and the version keep a refactoring from
//! changing keys. The id that the caller gave the call (`toolUseId`, a JSON-RPC id) plays no part: models repeat ids, and
//! choose another when they ask again.

use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::tool::Definition;

/// The scheme of this file. Change it when the parts or their order change.
const SCHEME: &str = "1";

/// The largest integer up to which a JSON number is exact in RFC 8785, which writes every number as a double.
const EXACT: u64 = 1 << 53;

/// The key of one action. Made from a tool and arguments only, once a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    pk: String,
    args_hash: String,
    digest_at: usize,
}

/// Why there is no key: the key arguments are null, or hold a null, and would be shared by unrelated calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the key arguments are null or hold a null")]
pub struct KeyFault;

impl Key {
    /// The key of a call.
    ///
    /// # Errors
    ///
    /// [`KeyFault`] if `key` is null or holds a null at any depth.
    pub fn new(tool: &Definition, scope: &str, key: &Value, arguments: &Value) -> Result<Self, KeyFault> {
        if holds_null(key) {
            return Err(KeyFault);
        }
        let version = tool.key_version.to_string();
        let parts = [SCHEME.as_bytes(), version.as_bytes(), tool.name.as_bytes(), scope.as_bytes(), &canonical(key)];
        let pk = format!("{}#{}", tool.name, digest_of(parts));
        Ok(Self { pk, digest_at: tool.name.len() + 1, args_hash: hex(&Sha256::digest(canonical(arguments))) })
    }

    /// The partition key of the record.
    pub fn pk(&self) -> &str {
        &self.pk
    }

    /// 64 hexadecimal digits: what a tool hands to a system that dedupes.
    pub fn digest(&self) -> &str {
        &self.pk[self.digest_at..]
    }

    /// The digest of all arguments; it tells a repetition from a key that is used for something else.
    pub fn args_hash(&self) -> &str {
        &self.args_hash
    }
}

fn holds_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(holds_null),
        Value::Object(fields) => fields.values().any(holds_null),
        _ => false,
    }
}

/// Canonical JSON by RFC 8785: sorted keys, one form of each number, so that 1, 1.0 and 1e0 agree. Integers beyond 2^53,
/// which RFC 8785 would round, keep their digits, in a text of a form that no other text has.
pub(crate) fn canonical(value: &Value) -> Vec<u8> {
    let kept = keep_large_integers(value.clone());
    // Fails only on a number that is not finite, which a JSON value cannot hold, or on a writer that fails.
    serde_json_canonicalizer::to_vec(&kept).unwrap_or_else(|_| kept.to_string().into_bytes())
}

fn keep_large_integers(value: Value) -> Value {
    match value {
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(large), _) if large > EXACT => Value::String(format!("integer:{large}")),
            (None, Some(small)) if small.unsigned_abs() > EXACT => Value::String(format!("integer:{small}")),
            _ => Value::Number(number),
        },
        Value::String(text) if text.starts_with("integer:") || text.starts_with("text:") => {
            Value::String(format!("text:{text}"))
        }
        Value::Array(items) => items.into_iter().map(keep_large_integers).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, field)| (name, keep_large_integers(field))).collect(),
        other => other,
    }
}

/// The hex SHA-256 of these parts, each behind its length, so that what is moved from one to the next makes another digest.
pub(crate) fn digest_of<const N: usize>(parts: [&[u8]; N]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    hex(&digest.finalize())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // writing to a String cannot fail
        text
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tool::Effect;

    fn key(name: &'static str, scope: &str, value: &Value) -> Key {
        Key::new(&Definition::sample(name, Effect::Once), scope, value, value).expect("a key")
    }

    #[test]
    fn the_form_of_a_number_and_the_order_of_fields_make_no_difference() {
        let a: Value = serde_json::from_str(r#"{"a": 1, "b": [1.0, -0.0]}"#).unwrap();
        let b: Value = serde_json::from_str(r#"{"b": [1e0, 0], "a": 1.0}"#).unwrap();
        assert_eq!(key("t", "s", &a), key("t", "s", &b));
    }

    #[test]
    fn integers_beyond_2_to_53_are_kept_apart() {
        assert_ne!(key("t", "s", &json!(9_007_199_254_740_993_u64)), key("t", "s", &json!(9_007_199_254_740_992_u64)));
        assert_ne!(
            key("t", "s", &json!(-9_007_199_254_740_993_i64)),
            key("t", "s", &json!(-9_007_199_254_740_994_i64))
        );
        assert_ne!(key("t", "s", &json!(u64::MAX)), key("t", "s", &json!(u64::MAX - 1)));
    }

    #[test]
    fn tool_scope_and_arguments_cannot_be_shifted_into_each_other() {
        let keys = [
            key("ab", "c", &json!("d")),
            key("a", "bc", &json!("d")),
            key("a", "b", &json!("cd")),
            key("ab", "cd", &json!("")),
            key("ab", "", &json!("cd")),
        ];
        let distinct: std::collections::HashSet<_> = keys.iter().map(Key::digest).collect();
        assert_eq!(distinct.len(), keys.len());
    }

    #[test]
    fn a_null_is_never_part_of_a_key() {
        for value in [json!(null), json!([null]), json!(["a", {"b": null}])] {
            assert_eq!(
                Key::new(&Definition::sample("t", Effect::Once), "s", &value, &json!({})),
                Err(KeyFault),
                "{value}"
            );
        }
        for value in [json!(0), json!(false), json!(""), json!([]), json!({})] {
            assert!(Key::new(&Definition::sample("t", Effect::Once), "s", &value, &json!({})).is_ok(), "{value}");
        }
    }
}
