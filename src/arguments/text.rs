//! Values that arrive as text. Agents send every argument as text, whatever its type; it is read by the type that the
//! schema states, never by the one that the event claims.
//!
//! | type | is read as |
//! | --- | --- |
//! | whole number, number | a JSON number, blanks around it aside: `10`, `10.0`, `1e3`; not `ten`, `+5`, `0x10`, `10,000`, `1500 USD` |
//! | boolean | `true` or `false`, in any letter case |
//! | text | as it is |
//! | list, object | JSON text of that type, or the spelling of [`brackets`](super::brackets): `[a, b c]`, `[{k=v}]` |
//!
//! Bounds are not looked at here; [`Checker::check`](super::Checker::check) does so for every door.

use serde_json::{Number, Value};

use super::{Fault, brackets, example, number::Decimal, wording};

/// Reads a value that arrived as text (agents send every value as text) by the schema of its argument.
///
/// # Errors
///
/// The fault, with `path` as its path.
pub fn read_text(path: &str, schema: &Value, text: &str) -> Result<Value, Fault> {
    read(&wording::name(path), schema, text)
}

/// [`read_text`] of a path that is in words already.
pub(super) fn read(path: &str, schema: &Value, text: &str) -> Result<Value, Fault> {
    let (value, how) = match schema["type"].as_str() {
        Some("integer") => (whole(text), ", written in digits"),
        Some("number") => (number(text), ", written in digits"),
        Some("boolean") => (boolean(text), ""),
        Some("array") => return brackets::list(path, schema, text),
        Some("object") => return brackets::object(path, schema, text),
        _ => (Some(Value::from(text)), ""),
    };
    value.ok_or_else(|| fault(path, schema, text, how))
}

/// What a text is not; `how` says how it should be written.
pub(super) fn fault(path: &str, schema: &Value, text: &str, how: &str) -> Fault {
    Fault {
        path: String::from(path),
        rule: format!("must be {}{how}, but is the text {}", wording::expected(schema), wording::quote(text)),
        example: example::of(schema),
    }
}

fn whole(text: &str) -> Option<Value> {
    Decimal::read(text.trim()).and_then(|decimal| decimal.to_whole())
}

fn number(text: &str) -> Option<Value> {
    let text = text.trim();
    Decimal::read(text)?;
    let number: Number = serde_json::from_str(text).ok()?; // refuses what a double cannot hold, such as 1e400
    Some(Value::Number(number))
}

fn boolean(text: &str) -> Option<Value> {
    let text = text.trim();
    [true, false].into_iter().find(|value| text.eq_ignore_ascii_case(&value.to_string())).map(Value::Bool)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(schema: &Value, text: &str) -> Result<Value, String> {
        read_text("field", schema, text).map_err(|fault| fault.to_string())
    }

    #[test]
    fn a_number_as_text_is_exactly_that_number() {
        let integer = json!({"type": "integer"});
        for (text, value) in [
            ("10", json!(10)),
            (" 10 ", json!(10)),
            ("10.0", json!(10)),
            ("1e3", json!(1000)),
            ("-3", json!(-3)),
            ("9007199254740993", json!(9_007_199_254_740_993_i64)),
            ("18446744073709551615", json!(u64::MAX)),
        ] {
            assert_eq!(read(&integer, text), Ok(value), "{text}");
        }
        let number = json!({"type": "number"});
        assert_eq!(read(&number, "19.99"), Ok(json!(19.99)));
        assert_eq!(read(&number, "10"), Ok(json!(10)));
    }

    #[test]
    fn what_is_no_number_is_quoted_with_the_rule_and_an_example() {
        let limit = json!({"type": "integer", "minimum": 1, "maximum": 50, "examples": [10]});
        assert_eq!(
            read(&limit, "ten"),
            Err(String::from(
                "field must be a whole number from 1 to 50, written in digits, but is the text \"ten\"; for example 10."
            ))
        );
        let texts = [
            "", " ", "0x10", "1e400", "-1e400", "NaN", "Infinity", "10,000", "1500 USD", "+5", "٣", "１", "1_0", "null",
        ];
        for kind in ["integer", "number"] {
            for text in texts.into_iter().chain([".5", "5.", "05", "1.9.9", "--1", "true", "\"5\"", "[5]", "1\n2"]) {
                let fault = read(&json!({"type": kind}), text).expect_err(text);
                assert!(fault.contains(&wording::quote(text)), "{fault}");
            }
        }
        assert!(read(&json!({"type": "integer"}), "1.9").is_err());
        assert!(read(&json!({"type": "integer"}), &"9".repeat(1_000_000)).expect_err("too large").len() < 300);
    }

    #[test]
    fn a_boolean_is_the_word_in_any_letter_case_and_nothing_else() {
        let schema = json!({"type": "boolean"});
        for (text, value) in [("true", true), ("True", true), ("FALSE", false), (" false ", false)] {
            assert_eq!(read(&schema, text), Ok(json!(value)));
        }
        for text in ["", "1", "0", "yes", "t", "null", "true false"] {
            assert!(read(&schema, text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_text_stays_as_it_is() {
        for text in ["", " a ", "10", "null", "[1]", "true"] {
            assert_eq!(read(&json!({"type": "string"}), text), Ok(json!(text)));
        }
    }

    #[test]
    fn a_list_or_object_is_json_of_that_type() {
        let tags = json!({"type": "array", "items": {"type": "string"}, "examples": [["gift"]]});
        assert_eq!(read(&tags, " [\"a\",\"b\"] "), Ok(json!(["a", "b"])));
        assert_eq!(
            read(&tags, "a, b"),
            Err(String::from(
                "field must be a list of texts, written as JSON, but is the text \"a, b\"; for example [\"gift\"]."
            ))
        );
        for text in ["", "a", "{}", "[\"a\"", &"[".repeat(100_000)] {
            assert!(read(&tags, text).is_err());
        }
        assert_eq!(read(&json!({"type": "object"}), "{\"a\":1}"), Ok(json!({"a": 1})));
        assert!(read(&json!({"type": "object"}), "[]").is_err());
    }
}
