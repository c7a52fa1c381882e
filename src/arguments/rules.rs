//! One value against the rules of its own schema: its type and its bounds, not what is inside of it.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

use regex_lite::Regex;
use serde_json::{Map, Number, Value};

use super::{
    format,
    number::{compare, fits_double, whole},
    wording,
};

const INEXACT: &str = "too large to be exact";

/// The patterns of a schema, compiled.
#[derive(Default)]
pub(super) struct Patterns(BTreeMap<String, Regex>);

impl Patterns {
    /// Compiles those of the schema and of all inside of it.
    pub(super) fn of(schema: &Value) -> Self {
        let mut patterns = Self::default();
        patterns.collect(schema);
        patterns
    }

    fn collect(&mut self, schema: &Value) {
        let pattern = schema["pattern"].as_str();
        self.0.extend(pattern.and_then(|pattern| Some((String::from(pattern), compile(pattern)?))));
        for inner in inner_schemas(schema) {
            self.collect(inner);
        }
    }

    /// Whether the text matches; one that is not known, or no pattern, matches nothing.
    fn hold(&self, pattern: &str, text: &str) -> bool {
        self.0.get(pattern).is_some_and(|regex| regex.is_match(text))
    }
}

/// The pattern, if it is one.
pub(super) fn compile(pattern: &str) -> Option<Regex> {
    Regex::new(pattern).ok()
}

/// The schemas directly inside of this one.
fn inner_schemas(schema: &Value) -> impl Iterator<Item = &Value> {
    let members = schema["properties"].as_object().into_iter().flat_map(Map::values);
    members.chain([&schema["items"], &schema["additionalProperties"]]).filter(|inner| inner.is_object())
}

/// In which way the value breaks a rule, or `None`: `is the text "ten"`, `has 201`.
pub(super) fn breach(schema: &Value, value: &Value, patterns: &Patterns) -> Option<String> {
    let is = || Some(format!("is {}", wording::given(value)));
    if let Some(choices) = schema["enum"].as_array()
        && !choices.iter().any(|choice| same(choice, value))
    {
        return is();
    }
    match (schema["type"].as_str(), value) {
        (Some("integer"), Value::Number(number)) if number.is_f64() => whole_breach(number),
        (Some("integer"), Value::Number(number)) if exceeds_type(schema, number) => {
            Some(format!("is {number}, too large"))
        }
        (Some("number"), Value::Number(number)) if !fits_double(number) => Some(format!("is {number}, {INEXACT}")),
        (Some("integer" | "number"), Value::Number(number)) => is().filter(|_| !in_range(schema, number)),
        (Some("string"), Value::String(text)) => text_breach(schema, text, patterns),
        (Some("array"), Value::Array(items)) => list_breach(schema, items),
        (Some("boolean"), Value::Bool(_)) | (Some("object"), Value::Object(_)) => None,
        _ => is(),
    }
}

/// Whether two values say the same: 1, 1.0 and 1e0 are one number, at any depth.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare(a, b) == Ordering::Equal,
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

/// A float in the place of a whole number; those that are surely whole were made so by `normalise`.
#[allow(clippy::unnecessary_wraps)] // one arm of a match of options
fn whole_breach(number: &Number) -> Option<String> {
    let too_large = number.as_f64().is_some_and(|float| float.fract() == 0.0) && whole(number).is_none();
    Some(if too_large { format!("is {number}, {INEXACT}") } else { format!("is {number}") })
}

/// Whether it is above the largest `i64`, a bound that the rule in words leaves out.
fn exceeds_type(schema: &Value, number: &Number) -> bool {
    schema["maximum"].as_i64() == Some(i64::MAX) && !number.is_i64()
}

fn in_range(schema: &Value, number: &Number) -> bool {
    let holds = |word: &str, test: fn(Ordering) -> bool| {
        schema[word].as_number().is_none_or(|limit| test(compare(number, limit)))
    };
    holds("minimum", Ordering::is_ge)
        && holds("maximum", Ordering::is_le)
        && holds("exclusiveMinimum", Ordering::is_gt)
        && holds("exclusiveMaximum", Ordering::is_lt)
        && schema["multipleOf"].as_i64().is_none_or(|step| {
            let rest = number.as_i128().and_then(|number| number.checked_rem(i128::from(step)));
            rest == Some(0)
        })
}

fn text_breach(schema: &Value, text: &str, patterns: &Patterns) -> Option<String> {
    let length = text.chars().count() as u64;
    let fits =
        |word: &str, test: fn(&u64, &u64) -> bool| schema[word].as_u64().is_none_or(|limit| test(&length, &limit));
    if !fits("minLength", u64::ge) || !fits("maxLength", u64::le) {
        return Some(if length == 0 { String::from("is empty") } else { format!("has {length}") });
    }
    let holds = schema["pattern"].as_str().is_none_or(|pattern| patterns.hold(pattern, text));
    let kept =
        schema["format"].as_str().is_none_or(|name| format::known(name).is_some_and(|known| (known.holds)(text)));
    (!holds || !kept).then(|| format!("is {}", wording::given(&Value::from(text))))
}

fn list_breach(schema: &Value, items: &[Value]) -> Option<String> {
    let length = items.len() as u64;
    let fits =
        |word: &str, test: fn(&u64, &u64) -> bool| schema[word].as_u64().is_none_or(|limit| test(&length, &limit));
    if !fits("minItems", u64::ge) || !fits("maxItems", u64::le) {
        return Some(if length == 0 { String::from("is empty") } else { format!("has {length}") });
    }
    let alike = || {
        let mut seen = BTreeSet::new();
        !items.iter().all(|item| seen.insert(item.to_string()))
    };
    (schema["uniqueItems"] == true && alike()).then(|| String::from("repeats one"))
}
