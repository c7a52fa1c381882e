//! Rules and values in words. Everything here is bounded, because a model can send any size, and quoted so
//! that a value cannot be mistaken for our own words.

use serde_json::Value;

use super::format;

/// How much of a text is told back. Enough to recognise it, not enough to repeat a private letter.
const QUOTED: usize = 40;
/// How many names or choices are listed.
const LISTED: usize = 30;
/// A pattern is shown up to here: one that is longer explains nothing.
const PATTERN: usize = 200;

/// A text in quotation marks, cut, without control characters.
pub(super) fn quote(text: &str) -> String {
    let shown = text.chars().take(QUOTED).map(|c| match c {
        '\'' => String::from(c),
        _ => c.escape_debug().to_string(),
    });
    let dots = if text.chars().nth(QUOTED).is_some() { "…" } else { "" };
    format!("\"{}{dots}\"", shown.collect::<String>())
}

/// A name for a path: as it is if it is one of ours, else quoted.
pub(super) fn name(name: &str) -> String {
    let plain = name.len() <= QUOTED && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if plain && !name.is_empty() { String::from(name) } else { quote(name) }
}

/// The path of a member of the object at `path`.
pub(super) fn member(path: &str, member: &str) -> String {
    if path.is_empty() { name(member) } else { format!("{path}.{}", name(member)) }
}

/// What was given: `the text "ten"`, `1500.5`, `a list`.
pub(super) fn given(value: &Value) -> String {
    match value {
        Value::String(text) => format!("the text {}", quote(text)),
        Value::Array(_) => String::from("a list"),
        Value::Object(_) => String::from("an object"),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// `a, b, c`, and how many more.
pub(super) fn list<T: ToString>(items: impl ExactSizeIterator<Item = T>) -> String {
    let more = items.len().saturating_sub(LISTED);
    let mut shown: Vec<String> = items.take(LISTED).map(|item| item.to_string()).collect();
    if more > 0 {
        shown.push(format!("{more} more"));
    }
    shown.join(", ")
}

/// What the schema asks for: `a whole number from 1 to 50`.
pub(crate) fn expected(schema: &Value) -> String {
    if let Some(choices) = schema["enum"].as_array() {
        return format!("{}{}", if choices.len() == 1 { "" } else { "one of " }, list(choices.iter()));
    }
    match schema["type"].as_str() {
        Some("integer") => number("a whole number", schema),
        Some("number") => number("a number", schema),
        Some("string") => text(schema),
        Some("boolean") => String::from("true or false"),
        Some("array") => array(schema),
        Some("object") => String::from("an object"),
        _ => String::from("something else"),
    }
}

fn number(noun: &str, schema: &Value) -> String {
    let of = |limit: String| if limit.starts_with("at ") { format!("of {limit}") } else { limit };
    let rules: Vec<String> = limits(schema).map(of).collect();
    if rules.is_empty() { String::from(noun) } else { format!("{noun} {}", rules.join(" and ")) }
}

/// The limits of a number: `from 1 to 50`, `at least 1`, `above 0`, `divisible by 5`.
pub(crate) fn limits(schema: &Value) -> impl Iterator<Item = String> {
    let limit = |word: &str| schema[word].as_number();
    let most = limit("maximum").filter(|most| most.as_i64() != Some(i64::MAX)); // the type's, which helps nobody
    let range = match (limit("minimum"), most) {
        (Some(least), Some(most)) => Some(format!("from {least} to {most}")),
        (Some(least), None) => Some(format!("at least {least}")),
        (None, Some(most)) => Some(format!("at most {most}")),
        (None, None) => None,
    };
    let above = limit("exclusiveMinimum").map(|limit| format!("above {limit}"));
    let below = limit("exclusiveMaximum").map(|limit| format!("below {limit}"));
    let step = limit("multipleOf").map(|step| format!("divisible by {step}"));
    [range, above, below, step].into_iter().flatten()
}

fn text(schema: &Value) -> String {
    let noun = schema["format"].as_str().and_then(format::known).map_or("a text", |format| format.words);
    let length = characters(schema).map(|characters| format!("of {characters}"));
    let pattern = schema["pattern"].as_str().map(|pattern| {
        let shown: String = pattern.chars().take(PATTERN).collect();
        format!("that matches {shown}")
    });
    let words: Vec<String> = [Some(String::from(noun)), length, pattern].into_iter().flatten().collect();
    words.join(" ")
}

fn array(schema: &Value) -> String {
    let items = match schema["items"]["type"].as_str() {
        Some("integer") => "whole numbers",
        Some("number") => "numbers",
        Some("boolean") => "booleans",
        Some("array") => "lists",
        Some("object") => "objects",
        _ => "texts",
    };
    let count = self::items(schema).map(|count| format!("{count} of them"));
    let unique = (schema["uniqueItems"] == true).then(|| String::from("no two alike"));
    let words: Vec<String> = [Some(format!("a list of {items}")), count, unique].into_iter().flatten().collect();
    words.join(", ")
}

/// The length of a text: `1 to 200 characters`.
pub(crate) fn characters(schema: &Value) -> Option<String> {
    let count = count(schema, "minLength", "maxLength")?;
    let plural = if count.ends_with(" 1") { "" } else { "s" };
    Some(format!("{count} character{plural}"))
}

/// The length of a list: `1 to 5`, `at least 1`, `exactly 3`.
pub(crate) fn items(schema: &Value) -> Option<String> {
    count(schema, "minItems", "maxItems")
}

fn count(schema: &Value, least: &str, most: &str) -> Option<String> {
    match (schema[least].as_u64().filter(|least| *least > 0), schema[most].as_u64()) {
        (Some(least), Some(most)) if least == most => Some(format!("exactly {least}")),
        (Some(least), Some(most)) => Some(format!("{least} to {most}")),
        (Some(least), None) => Some(format!("at least {least}")),
        (None, Some(most)) => Some(format!("at most {most}")),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_quoted_text_is_short_and_on_one_line() {
        assert_eq!(quote("ten"), "\"ten\"");
        assert_eq!(quote("a\nb\"c'd\u{202e}\u{0}"), "\"a\\nb\\\"c'd\\u{202e}\\0\"");
        assert_eq!(quote(&"😀".repeat(41)), format!("\"{}…\"", "😀".repeat(40)));
        assert!(quote(&"\u{0}".repeat(1_000_000)).len() < 500);
    }

    #[test]
    fn a_path_cannot_carry_a_sentence() {
        assert_eq!(member("", "amount_cents"), "amount_cents");
        assert_eq!(member("address", "zip-code"), "address.zip-code");
        assert_eq!(member("", "is right. Ignore"), "\"is right. Ignore\"");
        assert_eq!(member("", ""), "\"\"");
    }

    #[test]
    fn rules_read_as_words() {
        for (schema, words) in [
            (json!({"type": "integer"}), "a whole number"),
            (json!({"type": "integer", "minimum": 1}), "a whole number of at least 1"),
            (json!({"type": "integer", "minimum": 1, "maximum": 50}), "a whole number from 1 to 50"),
            (json!({"type": "number", "exclusiveMinimum": 0, "maximum": 1.5}), "a number of at most 1.5 and above 0"),
            (json!({"type": "integer", "multipleOf": 5}), "a whole number divisible by 5"),
            (json!({"type": "string", "minLength": 1, "maxLength": 200}), "a text of 1 to 200 characters"),
            (json!({"type": "string", "minLength": 1}), "a text of at least 1 character"),
            (json!({"type": "string", "minLength": 1, "maxLength": 1}), "a text of exactly 1 character"),
            (json!({"type": "string", "pattern": "^A$"}), "a text that matches ^A$"),
            (json!({"type": "string", "format": "email"}), "an e-mail address"),
            (json!({"type": "string", "enum": ["open", "shut"]}), "one of \"open\", \"shut\""),
            (json!({"type": "string", "enum": ["open"]}), "\"open\""),
            (
                json!({"type": "array", "items": {"type": "string"}, "maxItems": 5}),
                "a list of texts, at most 5 of them",
            ),
        ] {
            assert_eq!(expected(&schema), words);
        }
    }
}
