//! Which schemas Bedrock can enforce while the model writes: `strict` in a `toolSpec`, "structured outputs" in its guide.

use serde_json::Value;

const FORMATS: [&str; 10] =
    ["date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"];

/// Whether all of a schema is in the part of JSON Schema that Bedrock makes a grammar of. It refuses a request with a
/// strict tool whose schema has a keyword beyond that (ranges, lengths, patterns), so that a doubt says no. Source: "Get
/// validated JSON results from models" in Bedrock's user guide.
pub(super) fn enforceable(schema: &Value) -> bool {
    let Some(keywords) = schema.as_object() else { return false };
    let closed = schema["type"] != "object" || schema["additionalProperties"] == false;
    closed
        && keywords.iter().all(|(keyword, value)| match keyword.as_str() {
            "additionalProperties" | "const" | "default" | "description" | "required" | "title" => true,
            "enum" => value
                .as_array()
                .is_some_and(|choices| choices.iter().all(|choice| !choice.is_array() && !choice.is_object())),
            "format" => FORMATS.iter().any(|format| value == format),
            "items" => enforceable(value),
            "minItems" => value == 0 || value == 1,
            "properties" => value.as_object().is_some_and(|properties| properties.values().all(enforceable)),
            "type" => value.is_string(),
            _ => false,
        })
}
