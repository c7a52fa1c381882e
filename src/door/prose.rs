//! The rules of an argument's schema in words, for doors whose definitions cannot carry them.
//!
//! Agents know a parameter's type and description, a gateway target little more. Without these words the model would
//! learn a range only by breaking it:
//!
//! | schema | words |
//! | --- | --- |
//! | `"minimum": 1, "maximum": 50` | `From 1 to 50.` |
//! | `"enum": ["dhl", "ups"]` | `One of "dhl", "ups".` |
//! | `"minLength": 1, "maxLength": 200` | `1 to 200 characters.` |
//! | `"pattern": "^ORD-[0-9]{5}$"` | `Pattern: ^ORD-[0-9]{5}$` |
//! | `"additionalProperties": {"type": "integer"}` | `Any names, each value a whole number.` |
//! | `"properties": {"sku": {"type": "string"}}`, for agents | `With sku (a text).` |

use serde_json::Value;

use crate::arguments::wording;

/// The one type of a schema. Where it names none, an example value tells; else it is text.
pub(super) fn type_of(schema: &Value) -> &'static str {
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => "object",
        Some("array") => "array",
        Some("boolean") => "boolean",
        Some("integer") => "integer",
        Some("number") => "number",
        _ => "string",
    }
}

/// A description for an argument that has none.
pub(super) fn fallback(name: &str) -> String {
    format!("The argument {name}.")
}

/// The description with the rules after it; empty if there is neither.
pub(super) fn description(schema: &Value) -> String {
    sentences(schema).join(" ")
}

/// [`description`] with the fields of an object, or of the objects in a list, in `most` characters: what does not fit is
/// left out, sentence by sentence from the end.
pub(super) fn short_description(schema: &Value, most: usize) -> String {
    let own = fields(schema).map(|fields| format!("With {fields}."));
    let each = fields(&schema["items"]).map(|fields| format!("Each with {fields}."));
    joined_within(sentences(schema).into_iter().chain(own).chain(each).collect(), most)
}

/// The fields of an object: `sku (a text), count (a whole number; optional)`.
fn fields(schema: &Value) -> Option<String> {
    let properties = schema["properties"].as_object().filter(|properties| !properties.is_empty())?;
    let is_required = |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|n| n == name));
    let (required, optional): (Vec<_>, Vec<_>) = properties.iter().partition(|(name, _)| is_required(name));
    let required = required.into_iter().map(|(name, schema)| format!("{name} ({})", shape(schema)));
    let optional = optional.into_iter().map(|(name, schema)| format!("{name} ({}; optional)", shape(schema)));
    Some(required.chain(optional).collect::<Vec<_>>().join(", "))
}

/// What the schema asks for, down to the last field.
fn shape(schema: &Value) -> String {
    let own = fields(schema).map(|fields| format!(" with {fields}"));
    let each = fields(&schema["items"]).map(|fields| format!(", each with {fields}"));
    let any = any(schema).map(|any| format!(" with {any}"));
    std::iter::once(wording::expected(schema)).chain(own).chain(each).chain(any).collect()
}

/// What a map holds, whose names are anyone's.
fn any(schema: &Value) -> Option<String> {
    let values = schema.get("additionalProperties").filter(|values| values.is_object())?;
    Some(format!("any names, each value {}", shape(values)))
}

/// [`any`] as a sentence.
pub(super) fn values(schema: &Value) -> Option<String> {
    any(schema).map(|words| sentence(&words))
}

/// The text in `most` characters.
pub(super) fn shortened(text: &str, most: usize) -> String {
    joined_within(vec![String::from(text)], most)
}

fn joined_within(sentences: Vec<String>, most: usize) -> String {
    let mut joined = String::new();
    for sentence in sentences {
        let gap = usize::from(!joined.is_empty());
        let room = most.saturating_sub(joined.chars().count() + gap);
        if sentence.chars().count() <= room {
            joined.extend(std::iter::repeat_n(' ', gap));
            joined.push_str(&sentence);
        } else if joined.is_empty() {
            joined.extend(sentence.chars().take(most.saturating_sub(1)));
            joined.push('…');
        }
    }
    joined
}

fn sentences(schema: &Value) -> Vec<String> {
    let own = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let own = own.split_whitespace().collect::<Vec<_>>().join(" ");
    let examples = example(schema).filter(|example| !own.contains(example)).map(|e| format!("Example: {e}."));
    let rules = [
        choice(schema),
        range(schema),
        length(schema),
        pattern(schema),
        items(schema),
        values(schema),
        default(schema),
    ];
    let own = (!own.is_empty()).then_some(own);
    own.into_iter().chain(rules.into_iter().flatten()).chain(examples).collect()
}

fn choice(schema: &Value) -> Option<String> {
    if let Some(only) = schema.get("const") {
        return Some(format!("Always {only}."));
    }
    let values: Vec<_> = schema.get("enum")?.as_array()?.iter().map(Value::to_string).collect();
    Some(format!("One of {}.", values.join(", ")))
}

fn range(schema: &Value) -> Option<String> {
    let limits = wording::limits(schema).map(|limit| sentence(&limit));
    Some(limits.collect::<Vec<_>>().join(" ")).filter(|limits| !limits.is_empty())
}

fn length(schema: &Value) -> Option<String> {
    let characters = wording::characters(schema).map(|characters| sentence(&characters));
    let items = wording::items(schema).map(|count| {
        let plural = if count.ends_with(" 1") { "" } else { "s" };
        sentence(&format!("{count} item{plural}"))
    });
    joined([characters, items])
}

/// Words with a capital and a full stop.
fn sentence(words: &str) -> String {
    let (first, rest) = words.split_at_checked(1).unwrap_or_default();
    format!("{}{rest}.", first.to_ascii_uppercase())
}

fn pattern(schema: &Value) -> Option<String> {
    // No full stop after a pattern: it would read as part of it.
    let pattern = schema.get("pattern").and_then(Value::as_str).map(|pattern| format!("Pattern: {pattern}"));
    let format = schema.get("format").and_then(Value::as_str).map(|format| format!("Format: {format}."));
    joined([format, pattern])
}

fn items(schema: &Value) -> Option<String> {
    let items = schema.get("items")?;
    let unique = schema.get("uniqueItems").and_then(Value::as_bool).unwrap_or(false);
    let kind = match type_of(items) {
        "string" => "texts",
        "integer" => "whole numbers",
        "number" => "numbers",
        "boolean" => "booleans",
        "array" => "lists",
        _ => "objects",
    };
    let different = if unique { "different " } else { "" };
    let each = description(items);
    let list = format!("A list of {different}{kind}.");
    Some(if each.is_empty() { list } else { format!("{list} Each: {each}") })
}

fn default(schema: &Value) -> Option<String> {
    schema.get("default").map(|value| format!("Default: {value}."))
}

fn example(schema: &Value) -> Option<String> {
    let first = schema.get("examples").and_then(|examples| examples.get(0));
    first.or_else(|| schema.get("example")).map(Value::to_string)
}

fn joined<const N: usize>(sentences: [Option<String>; N]) -> Option<String> {
    let joined = sentences.into_iter().flatten().collect::<Vec<_>>().join(" ");
    (!joined.is_empty()).then_some(joined)
}
