//! The payload as JSON, within limits, and unambiguous.
//!
//! Parsers disagree about some JSON: of two fields with one name most take the last, some the first. A check that saw one
//! and a tool that saw the other would be no check. Such a payload, and one beyond the limits, is still read as far as it
//! goes, so that its calls can be answered by their ids, each with the flaw; none of them is run.
//!
//! | flaw | read as |
//! | --- | --- |
//! | a field twice in one object | the last one |
//! | more than 64 levels deep | `null` from there on |
//! | more than 100 000 values: six megabytes of `[]` would take hundreds as values | the first 100 000, with `null` for the rest of a list |
//! | a number beyond a double, such as `1e400` | `null` |
//! | half of a character (`\ud800` alone), bytes that are no UTF-8 | U+FFFD |
//!
//! A byte order mark is skipped. What is not even such JSON has no ids, and fails as a whole.

mod mend;
mod reader;

use std::fmt;

use serde_json::Value;

use self::mend::mend;

/// The deepest nesting: an envelope takes a dozen levels, and no tool's arguments need as many again.
pub const MOST_LEVELS: usize = 64;
/// The most values, each object, list, text, number, boolean and `null` counted.
pub const MOST_VALUES: usize = 100_000;

/// What was read.
#[derive(Clone, PartialEq)]
pub struct Payload {
    /// The value; not to be run if there is a flaw.
    pub value: Value,
    /// The first thing that makes the payload unclear: the rest of a sentence that begins with "The event" or the like.
    pub flaw: Option<String>,
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Payload").field("flaw", &self.flaw).finish_non_exhaustive() // the value holds arguments
    }
}

/// The payload is no JSON, or not UTF-8 text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// There is nothing, or white space only.
    #[error("The payload is empty; it should be one JSON event.")]
    Empty,
    /// From this place on.
    #[error("The payload is no JSON that can be read (line {line}, column {column}).")]
    At {
        /// From 1.
        line: usize,
        /// From 1; 0 at the end of a line.
        column: usize,
    },
}

/// Reads a payload.
///
/// # Errors
///
/// Where it is no JSON at all.
pub fn read(bytes: &[u8]) -> Result<Payload, Unreadable> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let fault = match parse(bytes) {
        Ok(payload) => return Ok(payload),
        Err(_) if bytes.trim_ascii().is_empty() => return Err(Unreadable::Empty),
        Err(fault) => Unreadable::At { line: fault.line(), column: fault.column() },
    };
    // Only what serde_json refuses is read twice.
    let (mended, flaw) = mend(bytes).ok_or(fault)?;
    let payload = parse(&mended).map_err(|_| fault)?;
    Ok(Payload { flaw: Some(String::from(flaw)), ..payload })
}

fn parse(bytes: &[u8]) -> serde_json::Result<Payload> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let payload = reader::read(&mut json)?;
    json.end()?;
    Ok(payload)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value(text: impl AsRef<[u8]>) -> Value {
        let payload = read(text.as_ref()).expect("JSON");
        assert_eq!(payload.flaw, None);
        payload.value
    }

    /// The flaw, and what was read all the same.
    fn flaw(text: impl AsRef<[u8]>) -> (String, Value) {
        let payload = read(text.as_ref()).expect("JSON");
        (payload.flaw.expect("a flaw"), payload.value)
    }

    #[test]
    fn plain_json_is_read_as_by_serde_json() {
        for text in [
            "null",
            " [] ",
            "\"\\u0000\\ud83d\\ude00\\n\"",
            "[0, -0.0, 1.5e3, 18446744073709551615, 18446744073709551616, -9223372036854775808, 1e308, 1e-400]",
            "{\"a\": {\"b\": [true, false, null, {}]}, \"\": \"\"}",
        ] {
            assert_eq!(value(text), serde_json::from_str::<Value>(text).unwrap(), "{text}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        assert_eq!(value("\u{feff}{\"a\":1}"), json!({ "a": 1 }));
    }

    #[test]
    fn a_key_that_serde_json_keeps_for_itself_is_a_key_like_any_other() {
        let text = r#"{"$serde_json::private::RawValue":"{\"a\":1}"}"#;
        assert_eq!(value(text)["$serde_json::private::RawValue"], "{\"a\":1}");
    }

    #[test]
    fn a_field_twice_is_named_and_the_last_one_is_read() {
        let (flaw, value) = flaw(r#"{"x":{"amount_cents":1,"b":2,"amount_cents":3}}"#);
        assert!(flaw.contains("\"amount_cents\" twice"), "{flaw}");
        assert_eq!(value, json!({ "x": { "amount_cents": 3, "b": 2 } }));
        let (same, _) = self::flaw(r#"{"a":1,"\u0061":1}"#);
        assert!(same.contains("\"a\" twice"), "{same}");
        let long = "k\\n".repeat(5_000);
        assert!(self::flaw(format!("{{\"{long}\":1,\"{long}\":1}}")).0.len() < 200);
    }

    #[test]
    fn nesting_ends_at_its_limit_and_never_the_stack() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert_eq!(read(nested(64).as_bytes()).unwrap().flaw, None);
        for levels in [65, 127, 128, 129, 1_000_000] {
            assert!(flaw(nested(levels)).0.contains("64 levels"), "{levels}");
        }
        let objects = "{\"a\":".repeat(100_000) + "1" + &"}".repeat(100_000);
        assert!(flaw(objects).0.contains("64 levels"));
        let (_, value) = flaw(format!("{{\"id\":7,\"deep\":{}}}", nested(1_000)));
        assert_eq!(value["id"], 7, "what stands beside it is read");
        assert!(read("[".repeat(1_000_000).as_bytes()).is_err());
    }

    #[test]
    fn more_values_than_allowed_take_no_memory() {
        let list = |count: usize| format!("[{}0]", "0,".repeat(count - 1));
        assert_eq!(value(list(MOST_VALUES - 1)).as_array().unwrap().len(), MOST_VALUES - 1);
        let (flaw, value) = flaw(format!("{{\"id\":7,\"list\":{}}}", list(3_000_000)));
        assert!(flaw.contains("more than 100000 values"), "{flaw}");
        assert_eq!(value["id"], 7);
        let read = value["list"].as_array().unwrap();
        assert!(read.len() < MOST_VALUES && read.last() == Some(&Value::Null), "it is seen that there were more");
        let fields: Vec<_> = (0..200_000).map(|n| format!("\"{n}\":0")).collect();
        assert!(self::flaw(format!("{{{}}}", fields.join(","))).1.as_object().unwrap().len() < MOST_VALUES);
    }

    #[test]
    fn a_number_too_large_is_a_flaw_and_everything_else_is_read() {
        let numbers = ["1e400", "-1e400", "1E+309", &"9".repeat(400), &format!("0.1e{}", "9".repeat(30))];
        for number in numbers {
            let (flaw, value) = flaw(format!("{{\"id\":\"1e400 \\\" 1e400\",\"n\":{number}}}"));
            assert!(flaw.contains("number that is too large"), "{flaw}");
            assert_eq!(value, json!({ "id": "1e400 \" 1e400", "n": null }), "{number}");
        }
        assert!(read(b"{\"n\":1e}").is_err() && read(b"{\"n\":+1e400}").is_err());
    }

    #[test]
    fn half_a_character_is_a_flaw() {
        for half in ["\\ud800", "\\udc00", "\\ud83d\\ud83d", "\\udE00x", "\\ud83d\\n", "\\ud83d\\\\udE00"] {
            let (flaw, value) = flaw(format!("{{\"id\":7,\"text\":\"a{half}b\"}}"));
            assert!(flaw.contains("half of a character"), "{half}");
            assert_eq!(value["id"], 7);
            assert!(value["text"].as_str().unwrap().contains('\u{fffd}'), "{half}");
        }
        assert_eq!(value("\"\\\\ud800\""), "\\ud800", "an escaped backslash is none of these");
    }

    #[test]
    fn what_stands_before_between_and_after_several_flaws_is_read_as_it_is() {
        let (first, value) = flaw(b"{\"a\":[1,\"\\ud800 \\\" 1e400\",1e400,-2],\"b\xff\":\"\\udc00\",\"c\":3}");
        assert!(first.contains("UTF-8"), "{first}");
        let half = '\u{fffd}';
        let whole =
            json!({ "a": [1, format!("{half} \" 1e400"), null, -2], format!("b{half}"): half.to_string(), "c": 3 });
        assert_eq!(value, whole);
    }

    #[test]
    fn bytes_that_are_no_utf_8_are_a_flaw_in_a_text_and_no_json_elsewhere() {
        let (flaw, value) = flaw(b"{\"id\":7,\"text\":\"a\xffb\"}");
        assert!(flaw.contains("UTF-8"));
        assert_eq!(value, json!({ "id": 7, "text": "a\u{fffd}b" }));
        assert!(read(b"\xff\xfe{\x00}\x00").is_err());
    }

    #[test]
    fn what_is_no_json_says_where_or_that_there_is_nothing() {
        for (bytes, at) in [
            (&b""[..], "is empty"),
            (b" \n", "is empty"),
            (b"\xef\xbb\xbf", "is empty"),
            (b"{", "line 1, column 1"),
            (b"{\"a\":1}\n}", "line 2, column 1"),
            (b"NaN", "line 1, column 1"),
            (b"{\"a\":\"\x00\"}", "line 1, column 7"),
        ] {
            assert!(read(bytes).unwrap_err().to_string().contains(at), "{:?}", read(bytes));
        }
    }
}
