//! JSON as the SDK has it, and back: every number stays the number that it was.
//!
//! | in a reply | here | why |
//! | --- | --- | --- |
//! | a whole number, up to 64 bits | the same | an order's number or an amount must not be rounded |
//! | any other finite number | the same `f64` | `1.0` stays `1.0`; a key takes it for `1` anyway |
//! | more than 64 levels, of which the SDK takes 256 | a text that says so | what is written down deeper can never be read again; the schema's check refuses a text |
//! | `1e400`, which the SDK reads as infinity | the text `"inf"` | JSON has no such number; `null` would look as if it was left out, and the schema's check refuses a text with a sentence |

use std::collections::HashMap;

use aws_smithy_types::{Document, Number};
use serde_json::Value;

use crate::payload::MOST_LEVELS;

/// JSON for the SDK.
pub(super) fn to_document(value: &Value) -> Document {
    match value {
        Value::Null => Document::Null,
        Value::Bool(flag) => Document::Bool(*flag),
        Value::Number(number) => Document::Number(to_number(number)),
        Value::String(text) => Document::String(text.clone()),
        Value::Array(items) => Document::Array(items.iter().map(to_document).collect()),
        Value::Object(fields) => {
            let fields: HashMap<_, _> = fields.iter().map(|(name, value)| (name.clone(), to_document(value))).collect();
            Document::Object(fields)
        }
    }
}

fn to_number(number: &serde_json::Number) -> Number {
    match (number.as_u64(), number.as_i64()) {
        (Some(whole), _) => Number::PosInt(whole),
        (None, Some(whole)) => Number::NegInt(whole),
        (None, None) => Number::Float(number.as_f64().unwrap_or_default()), // always one: this is built without big numbers
    }
}

/// JSON from the SDK.
pub(super) fn from_document(document: &Document) -> Value {
    if is_within(document, MOST_LEVELS) {
        json_of(document)
    } else {
        Value::from(format!("(nested more than {MOST_LEVELS} levels deep)"))
    }
}

fn is_within(document: &Document, levels: usize) -> bool {
    match document {
        Document::Array(items) => levels > 0 && items.iter().all(|item| is_within(item, levels - 1)),
        Document::Object(fields) => levels > 0 && fields.values().all(|field| is_within(field, levels - 1)),
        _ => true,
    }
}

fn json_of(document: &Document) -> Value {
    match document {
        Document::Null => Value::Null,
        Document::Bool(flag) => Value::Bool(*flag),
        Document::Number(Number::PosInt(whole)) => Value::from(*whole),
        Document::Number(Number::NegInt(whole)) => Value::from(*whole),
        Document::Number(Number::Float(number)) => {
            serde_json::Number::from_f64(*number).map_or_else(|| Value::from(number.to_string()), Value::Number)
        }
        Document::String(text) => Value::from(text.as_str()),
        Document::Array(items) => items.iter().map(json_of).collect(),
        Document::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), json_of(value))).collect::<serde_json::Map<_, _>>().into()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_keep_their_kind_and_their_digits() {
        for value in [json!(0), json!(u64::MAX), json!(i64::MIN), json!(-1), json!(1.0), json!(0.1), json!(1e300)] {
            let there = to_document(&value);
            assert_eq!(from_document(&there).to_string(), value.to_string());
        }
    }

    #[test]
    fn what_is_no_number_in_json_becomes_a_text_that_the_schema_refuses() {
        for (number, text) in [(f64::INFINITY, "inf"), (f64::NEG_INFINITY, "-inf"), (f64::NAN, "NaN")] {
            assert_eq!(from_document(&Document::Number(Number::Float(number))), json!(text));
        }
    }

    #[test]
    fn what_is_nested_too_deeply_is_a_text_as_a_whole() {
        let nested = |levels| (1..levels).fold(json!([1]), |inner, _| json!({ "a": inner }));
        assert_eq!(from_document(&to_document(&nested(64))), nested(64));
        assert_eq!(from_document(&to_document(&nested(65))), json!("(nested more than 64 levels deep)"));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_filter("JSON has no others", |n| n.is_finite()).prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".{0,4}", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_json_comes_back_as_it_was(value in any_json()) {
            prop_assert_eq!(from_document(&to_document(&value)), value);
        }
    }
}
