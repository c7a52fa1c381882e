//! A value that would be right, to be told beside a fault.

use serde_json::{Map, Value};

use super::{
    format,
    rules::{Patterns, breach},
};

/// An example longer than this explains nothing.
const LONGEST: usize = 200;

/// A value that would be right, as JSON: the author's, else one made from the rules. `None` if that would be a guess.
pub(super) fn of(schema: &Value) -> Option<String> {
    value(schema).map(|value| value.to_string()).filter(|text| text.len() <= LONGEST)
}

fn value(schema: &Value) -> Option<Value> {
    let told = [&schema["examples"][0], &schema["default"], &schema["enum"][0]];
    if let Some(value) = told.into_iter().find(|value| !value.is_null()) {
        return Some(value.clone());
    }
    let keeps = |value: &Value| breach(schema, value, &Patterns::default()).is_none(); // never one with a pattern
    let made = match schema["type"].as_str()? {
        "integer" | "number" => {
            let limits = [&schema["minimum"], &schema["maximum"], &schema["multipleOf"]];
            let limits = limits.into_iter().filter(|limit| limit.is_number()).cloned();
            [Value::from(10), Value::from(1)].into_iter().chain(limits).find(|value| keeps(value))?
        }
        "boolean" => Value::from(true),
        "string" => {
            Value::from(schema["format"].as_str().and_then(format::known).map_or("text", |known| known.example))
        }
        "array" => Value::from(vec![value(&schema["items"])?]),
        "object" => {
            let names = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let members = names.map(|name| Some((String::from(name), value(&schema["properties"][name])?)));
            Value::Object(members.collect::<Option<Map<_, _>>>()?)
        }
        _ => return None,
    };
    keeps(&made).then_some(made)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_example_is_the_authors_or_keeps_the_rules_or_is_left_out() {
        for (schema, made) in [
            (json!({"type": "integer", "examples": [1500, 2]}), Some("1500")),
            (json!({"type": "integer", "minimum": 1, "maximum": 5}), Some("1")),
            (json!({"type": "integer", "minimum": 30}), Some("30")),
            (json!({"type": "integer", "exclusiveMinimum": 30}), None),
            (json!({"type": "string", "enum": ["open", "shut"]}), Some("\"open\"")),
            (json!({"type": "string", "minLength": 1, "maxLength": 200}), Some("\"text\"")),
            (json!({"type": "string", "minLength": 5}), None),
            (json!({"type": "string", "pattern": "^A$"}), None),
            (json!({"type": "array", "items": {"type": "string", "examples": ["gift"]}}), Some("[\"gift\"]")),
            (json!({"type": "array", "items": {"type": "string"}, "minItems": 2}), None),
            (
                json!({"type": "object", "properties": {"a": {"type": "boolean"}, "b": {}}, "required": ["a"]}),
                Some("{\"a\":true}"),
            ),
        ] {
            assert_eq!(of(&schema).as_deref(), made, "{schema}");
        }
    }
}
