//! Lists and objects in the spelling in which agents write them when it is not JSON: that of Java's `toString`.
//!
//! | schema | text | is read as |
//! | --- | --- | --- |
//! | list of texts | `[FHIR, HL7 CDA]` | `["FHIR", "HL7 CDA"]` |
//! | list of texts | `[2024, 007]` | `["2024", "007"]` |
//! | list of objects | `[{name=topic, values=[Image, Genome]}]` | `[{"name": "topic", "values": ["Image", "Genome"]}]` |
//!
//! Nothing is escaped in it, so that it is read along the schema and with its brackets, and only where it can be read in
//! one way. An empty item, quotation marks, brackets inside a text, a part without `=`, a second `=` after a name that the
//! schema does not have: each refuses the value, and asks for JSON. (A text with a comma in it cannot be told from two.)

use serde_json::{Map, Value};

use super::{Fault, text, wording};
use crate::payload;

/// The most parts of a list or an object: six megabytes of `a,` would take hundreds as values.
const MOST_PARTS: usize = 10_000;

/// What a text in quotation marks begins with, and what it ends with where that is no apostrophe.
const MARKS: [char; 10] = ['"', '\'', '`', '“', '”', '„', '‘', '’', '«', '»'];
const CLOSING_MARKS: [char; 6] = ['"', '`', '“', '”', '«', '»'];

/// A list, written as JSON or in brackets.
pub(super) fn list(path: &str, schema: &Value, given: &str) -> Result<Value, Fault> {
    let unclear = |why: &str| Err(fault(path, schema, given, why));
    match payload::read(given.as_bytes()) {
        Ok(json) if json.flaw.is_some() => return unclear(""),
        Ok(json) if json.value.is_array() && !is_texts_without_marks(schema, &json.value) => return Ok(json.value),
        _ => {}
    }
    let Some(inner) = enclosed(given, '[', ']') else { return unclear("") };
    let items = match split(inner) {
        Ok(items) if items.iter().any(|item| item.is_empty()) => return unclear(", which has an empty item"),
        Ok(items) => items,
        Err(why) => return unclear(why),
    };
    let read = |(index, item): (usize, &str)| value(&format!("{path}[{index}]"), &schema["items"], item);
    items.into_iter().enumerate().map(read).collect()
}

/// An object, written as JSON or in braces.
pub(super) fn object(path: &str, schema: &Value, given: &str) -> Result<Value, Fault> {
    let unclear = |why: &str| Err(fault(path, schema, given, why));
    match payload::read(given.as_bytes()) {
        Ok(json) if json.flaw.is_some() => return unclear(""),
        Ok(json) if json.value.is_object() => return Ok(json.value),
        _ => {}
    }
    let Some(inner) = enclosed(given, '{', '}') else { return unclear("") };
    let parts = match split(inner) {
        Ok(parts) => parts,
        Err(why) => return unclear(why),
    };
    let mut fields = Map::new();
    for part in parts {
        let Some((name, given)) = part.split_once('=') else { return unclear(", which has a part without \"=\"") };
        let (name, given) = (name.trim(), given.trim());
        let known = schema["properties"].get(name);
        if known.is_none() && given.contains('=') {
            return unclear(", which has a part with more than one \"=\"");
        }
        let read = value(&wording::member(path, name), known.unwrap_or(&schema["additionalProperties"]), given)?;
        if fields.insert(String::from(name), read).is_some() {
            return unclear(", which has a field twice");
        }
    }
    Ok(Value::Object(fields))
}

/// A value inside brackets.
fn value(path: &str, schema: &Value, given: &str) -> Result<Value, Fault> {
    let is_text = !matches!(schema["type"].as_str(), Some("integer" | "number" | "boolean" | "array" | "object"));
    let open = given.matches('(').count();
    let why = if !is_text {
        return text::read(path, schema, given);
    } else if given.starts_with(MARKS) || given.ends_with(CLOSING_MARKS) || given.contains("\\\"") {
        ", which has quotation marks but is no JSON"
    } else if given.contains(['[', ']', '{', '}']) || open != given.matches(')').count() {
        ", which has brackets in a text"
    } else if given.contains(['，', '、']) {
        ", which has a comma of another script"
    } else if given.eq_ignore_ascii_case("null") || matches!(given, "None" | "undefined") {
        ", which may be a text or nothing"
    } else {
        return Ok(Value::from(given));
    };
    Err(fault(path, schema, given, why))
}

fn fault(path: &str, schema: &Value, given: &str, why: &str) -> Fault {
    let fault = text::fault(path, schema, given, ", written as JSON");
    Fault { rule: fault.rule + why, ..fault }
}

/// Whether a list that happens to be JSON is one of texts without quotation marks: `[2024, 7]`.
fn is_texts_without_marks(schema: &Value, list: &Value) -> bool {
    let is_bare = |item: &Value| !item.is_string() && !item.is_array() && !item.is_object();
    schema["items"]["type"] == "string" && list.as_array().is_some_and(|items| items.iter().any(is_bare))
}

/// What stands between the brackets around the whole.
fn enclosed(given: &str, open: char, close: char) -> Option<&str> {
    given.trim().strip_prefix(open)?.strip_suffix(close)
}

/// The parts between the commas that are in no inner brackets, without the blanks around them.
fn split(inner: &str) -> Result<Vec<&str>, &'static str> {
    const UNEQUAL: &str = ", which has brackets that do not match";
    const MANY: &str = ", which has more than 10000 parts";
    let (mut parts, mut start, mut closing) = (Vec::new(), 0, Vec::new());
    for (at, c) in inner.char_indices() {
        match c {
            '[' => closing.push(']'),
            '{' => closing.push('}'),
            ']' | '}' if closing.pop() != Some(c) => return Err(UNEQUAL),
            ',' if closing.is_empty() && parts.len() + 1 == MOST_PARTS => return Err(MANY), // and one comes after it
            ',' if closing.is_empty() => {
                parts.push(inner[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = inner[start..].trim();
    if !parts.is_empty() || !last.is_empty() {
        parts.push(last);
    }
    if closing.is_empty() { Ok(parts) } else { Err(UNEQUAL) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(schema: &Value, text: &str) -> Result<Value, String> {
        super::super::read_text("field", schema, text).map_err(|fault| fault.to_string())
    }

    fn texts() -> Value {
        json!({ "type": "array", "items": { "type": "string" }, "examples": [["gift"]] })
    }

    #[test]
    fn a_list_in_brackets_has_an_end() {
        let list = |items: usize| format!("[{}]", vec!["a"; items].join(","));
        assert_eq!(read(&texts(), &list(MOST_PARTS)).map(|list| list.as_array().map(Vec::len)), Ok(Some(MOST_PARTS)));
        for more in [MOST_PARTS + 1, 3_000_000] {
            let fault = read(&texts(), &list(more)).expect_err("too many");
            assert!(fault.contains("more than 10000 parts") && fault.len() < 1_000, "{fault}");
        }
    }

    #[test]
    fn a_list_of_texts_may_stand_in_brackets() {
        for (text, value) in [
            ("[FHIR, HL7 CDA]", json!(["FHIR", "HL7 CDA"])),
            (" [ a ,b ] ", json!(["a", "b"])),
            ("[a]", json!(["a"])),
            ("[]", json!([])),
            ("[2024, 007]", json!(["2024", "007"])),
            ("[1.0, true]", json!(["1.0", "true"])),
            ("[a=b, c (d)]", json!(["a=b", "c (d)"])),
            ("[O'Neill, 5\" pipe]", json!(["O'Neill", "5\" pipe"])),
            ("[\"a, b\", \"c\"]", json!(["a, b", "c"])),
        ] {
            assert_eq!(read(&texts(), text), Ok(value), "{text}");
        }
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused_with_its_reason() {
        for (text, why) in [
            ("[a, , b]", "an empty item"),
            ("[a,]", "an empty item"),
            ("[,]", "an empty item"),
            ("[\"a\", b]", "quotation marks"),
            ("['a', 'b']", "quotation marks"),
            ("[a, \"b\"]", "quotation marks"),
            ("[x \"a, b\"]", "quotation marks"),
            ("[“a”]", "quotation marks"),
            ("[„a“]", "quotation marks"),
            ("[‘a’]", "quotation marks"),
            ("[«a»]", "quotation marks"),
            ("[`a`]", "quotation marks"),
            ("[\\\"a\\\"]", "quotation marks"),
            ("[a，b]", "a comma of another script"),
            ("[None]", "may be a text or nothing"),
            ("[NULL]", "may be a text or nothing"),
            ("[\"a\", 1]", "quotation marks"),
            ("[a [b], c]", "brackets in a text"),
            ("[a (b, c)]", "brackets in a text"),
            ("[{k=v}]", "brackets in a text"),
            ("[null]", "may be a text or nothing"),
            ("[a], [b]", "do not match"),
            ("[a]]", "do not match"),
            ("[[a]", "do not match"),
            ("[[a}]", "do not match"),
            ("a and b", "written as JSON"),
            ("a, b", "written as JSON"),
            ("", "written as JSON"),
            ("[", "written as JSON"),
            ("{a=1}", "written as JSON"),
            ("{\"a\":1}", "written as JSON"),
            ("[{\"a\":1,\"a\":2}]", "written as JSON"),
            ("[1e400]", "written as JSON"),
        ] {
            let fault = read(&texts(), text).expect_err(text);
            assert!(fault.starts_with("field") && fault.contains(why), "{text}: {fault}");
        }
    }

    #[test]
    fn a_fault_names_the_place_and_shows_json() {
        assert_eq!(
            read(&texts(), "[a, , b]"),
            Err(String::from(
                "field must be a list of texts, written as JSON, but is the text \"[a, , b]\", which has an empty item; \
                 for example [\"gift\"]."
            ))
        );
        let numbers = json!({ "type": "array", "items": { "type": "integer", "examples": [3] } });
        assert_eq!(read(&numbers, "[1, 2.0, 30]"), Ok(json!([1, 2.0, 30])));
        assert_eq!(
            read(&numbers, "[1, two]"),
            Err(String::from(
                "field[1] must be a whole number, written in digits, but is the text \"two\"; for example 3."
            ))
        );
    }

    #[test]
    fn objects_are_read_along_the_schema() {
        let facet = json!({ "type": "object", "properties": {
            "columnName": { "type": "string" },
            "values": { "type": "array", "items": { "type": "string" } },
            "limit": { "type": "integer" },
        } });
        let facets = json!({ "type": "array", "items": facet });
        assert_eq!(
            read(&facets, "[{columnName=colour, values=[Red, Dark Blue]}, {columnName=size, limit=2, values=[]}]"),
            Ok(json!([
                { "columnName": "colour", "values": ["Red", "Dark Blue"] },
                { "columnName": "size", "limit": 2, "values": [] },
            ]))
        );
        let totals = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
        assert_eq!(read(&totals, "{SUM(total)=805, Walk In = 7}"), Ok(json!({ "SUM(total)": 805, "Walk In": 7 })));
        assert_eq!(read(&facet, "{columnName=a=b}"), Ok(json!({ "columnName": "a=b" })), "the schema has that name");
        assert_eq!(read(&facet, "{columnName=}"), Ok(json!({ "columnName": "" })));
        assert_eq!(read(&facet, "{}"), Ok(json!({})));
        assert_eq!(read(&facet, "{other=1}"), Ok(json!({ "other": "1" })), "left for the check to refuse by name");
        for (text, why) in [
            ("{columnName=a, b}", "a part without \"=\""),
            ("{columnName=a,}", "a part without \"=\""),
            ("{other=a=b}", "more than one \"=\""),
            ("{limit=1, limit=2}", "a field twice"),
            ("{\"limit\":1,\"limit\":2}", "written as JSON"),
            ("{limit: 1}", "a part without \"=\""),
            ("{limit=one}", "field.limit must be a whole number"),
            ("{values=[a, \"b\"]}", "field.values[1]"),
            ("{values=a}", "field.values must be a list"),
            ("columnName=a", "written as JSON"),
            ("[]", "written as JSON"),
        ] {
            let fault = read(&facet, text).expect_err(text);
            assert!(fault.contains(why), "{text}: {fault}");
        }
    }

    #[test]
    fn no_depth_of_brackets_reaches_the_stack() {
        for text in ["[".repeat(1_000_000), "[{a=".repeat(300_000), "[".repeat(500_000) + &"]".repeat(500_000)] {
            assert!(read(&texts(), &text).expect_err("too deep").len() < 400);
        }
    }
}
