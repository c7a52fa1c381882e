//! The walk through the values: all faults, in a stable order.
//!
//! The walk is along the schema, so its depth is that of the Rust type, whatever was sent.

use std::{fmt, sync::OnceLock};

use serde_json::{Map, Value};

use super::{
    Fault, example, number,
    rules::{self, Patterns},
    wording,
};

/// The check stops after so many faults: an answer tells fewer, and a hostile list may hold millions.
pub(super) const MOST: usize = 200;

/// The check of one tool's arguments.
pub struct Checker {
    schema: Value,
    patterns: OnceLock<Patterns>,
}

impl fmt::Debug for Checker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checker").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl Checker {
    /// A check against this schema. Its patterns are compiled at the first check, because a cold start should not pay
    /// for every tool.
    pub fn new(schema: &Value) -> Self {
        Self { schema: schema.clone(), patterns: OnceLock::new() }
    }

    /// Brings the arguments into the one form that the tool and the key see: an optional argument that is `null` is
    /// left out, a whole number written `1500.0` becomes `1500`. Nothing else is touched.
    pub fn normalise(&self, arguments: Map<String, Value>) -> Value {
        let mut value = Value::Object(arguments);
        normalise(&self.schema, &mut value);
        value
    }

    /// Every fault, in the order of the arguments' names, unknown ones last; empty if the arguments are good. Stops
    /// after 200 faults. Takes what [`normalise`](Self::normalise) has made. See [`in_words`](super::in_words).
    pub fn check(&self, arguments: &Value) -> Vec<Fault> {
        if !arguments.is_object() {
            let rule = format!("The arguments must be a JSON object, but are {}", wording::given(arguments));
            return vec![Fault { path: String::new(), rule, example: None }];
        }
        let patterns = self.patterns.get_or_init(|| Patterns::of(&self.schema));
        let mut walk = Walk { patterns, faults: Vec::new() };
        walk.visit("", &self.schema, arguments);
        walk.faults
    }
}

/// Whether a value keeps a schema that is not the whole of a tool's: an example, a default.
pub(super) fn keeps(schema: &Value, value: &Value) -> bool {
    let mut walk = Walk { patterns: &Patterns::of(schema), faults: Vec::new() };
    walk.visit("value", schema, value);
    walk.faults.is_empty()
}

fn normalise(schema: &Value, value: &mut Value) {
    match value {
        Value::Number(given) if schema["type"] == "integer" => {
            if let Some(whole) = number::whole(given) {
                *value = Value::from(whole);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| normalise(&schema["items"], item)),
        Value::Object(members) => {
            let known = &schema["properties"];
            members.retain(|name, value| !value.is_null() || known.get(name).is_none() || requires(schema, name));
            for (name, value) in members {
                normalise(known.get(name).unwrap_or(&schema["additionalProperties"]), value);
            }
        }
        _ => {}
    }
}

fn requires(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|names| names.iter().any(|required| required == name))
}

struct Walk<'a> {
    patterns: &'a Patterns,
    faults: Vec<Fault>,
}

impl Walk<'_> {
    fn visit(&mut self, path: &str, schema: &Value, value: &Value) {
        if let Some(breach) = rules::breach(schema, value, self.patterns) {
            self.report(path, format!("must be {}, but {breach}", wording::expected(schema)), example::of(schema));
        }
        match value {
            Value::Object(members) if schema["type"] == "object" => self.visit_object(path, schema, members),
            Value::Array(items) if schema["type"] == "array" => {
                for (index, item) in items.iter().enumerate() {
                    if self.is_full() {
                        break;
                    }
                    self.visit(&format!("{path}[{index}]"), &schema["items"], item);
                }
            }
            _ => {}
        }
    }

    fn visit_object(&mut self, path: &str, schema: &Value, members: &Map<String, Value>) {
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            let path = wording::member(path, name);
            match members.get(name) {
                Some(value) => self.visit(&path, inner, value),
                None if requires(schema, name) => {
                    self.report(&path, format!("is missing: {}", wording::expected(inner)), example::of(inner));
                }
                None => {}
            }
        }
        let unknown = members.iter().filter(|(name, _)| schema["properties"].get(name).is_none());
        for (count, (name, value)) in unknown.enumerate() {
            if self.is_full() {
                break;
            }
            let inner = &schema["additionalProperties"];
            let here = wording::member(path, name);
            if inner.is_object() {
                self.visit(&here, inner, value);
            } else {
                self.report(&here, unknown_name(path, schema, members, name, count == 0), None);
            }
        }
    }

    fn is_full(&self) -> bool {
        self.faults.len() >= MOST
    }

    fn report(&mut self, path: &str, rule: String, example: Option<String>) {
        if !self.is_full() {
            self.faults.push(Fault { path: String::from(path), rule, example });
        }
    }
}

/// Why a name has no place. The first one in an object tells the names that have.
fn unknown_name(path: &str, schema: &Value, given: &Map<String, Value>, name: &str, first: bool) -> String {
    let owner = if path.is_empty() { String::from("an argument of this tool") } else { format!("a field of {path}") };
    let known: Vec<&String> = schema["properties"].as_object().into_iter().flat_map(Map::keys).collect();
    let meant = known.iter().find(|known| !given.contains_key(**known) && resembles(name, known));
    let names = match (first, known.is_empty()) {
        (true, true) => String::from(", which takes none"),
        (true, false) => format!(", which has {}", wording::list(known.iter())),
        (false, _) => String::new(),
    };
    let hint = meant.map(|meant| format!("; use {meant}")).unwrap_or_default();
    format!("is not {owner}{names}{hint}")
}

/// Whether a name is another spelling or a part of a known one: `orderId` or `order` for `order_id`.
fn resembles(name: &str, known: &str) -> bool {
    let plain = |text: &str| -> String {
        text.chars().take(100).filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
    };
    let (name, known) = (plain(name), plain(known));
    name.len() >= 3 && (known.starts_with(&name) || (known.len() >= 3 && name.starts_with(&known)))
}
