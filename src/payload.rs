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
//! | more than 100 000 values: six megabytes of `[]` would take hundreds as values | the first 100 000 |
//! | a number beyond a double, such as `1e400` | `null` |
//! | half of a character (`\ud800` alone), bytes that are no UTF-8 | U+FFFD |
//!
//! A byte order mark is skipped. What is not even such JSON has no ids, and fails as a whole.

use std::{borrow::Cow, fmt};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value, map::Entry};

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
#[error("The payload is no JSON that can be read (line {line}, column {column}).")]
pub struct Unreadable {
    line: usize,
    column: usize,
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
        Err(fault) => Unreadable { line: fault.line(), column: fault.column() },
    };
    // Only what serde_json refuses is read twice.
    let (mended, flaw) = mend(bytes).ok_or(fault)?;
    let payload = parse(&mended).map_err(|_| fault)?;
    Ok(Payload { flaw: Some(String::from(flaw)), ..payload })
}

fn parse(bytes: &[u8]) -> serde_json::Result<Payload> {
    let mut found = Found::default();
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = Reader { found: &mut found, level: 0 }.deserialize(&mut json)?;
    json.end()?;
    Ok(Payload { value, flaw: found.flaw })
}

/// What was met on the way.
#[derive(Default)]
struct Found {
    values: usize,
    flaw: Option<String>,
}

impl Found {
    fn is_full(&self) -> bool {
        self.values >= MOST_VALUES
    }

    fn too_many(&mut self) {
        self.flaw.get_or_insert_with(|| format!("holds more than {MOST_VALUES} values, which is too many."));
    }

    fn doubled(&mut self, name: &str) {
        let name: String = name.chars().take(40).collect();
        self.flaw.get_or_insert_with(|| {
            format!("has the field {name:?} twice in one object, and it is not clear which one is meant.")
        });
    }

    fn too_deep(&mut self) {
        self.flaw.get_or_insert_with(|| format!("is nested more than {MOST_LEVELS} levels deep."));
    }
}

/// Reads one value.
struct Reader<'a> {
    found: &'a mut Found,
    level: usize,
}

impl Reader<'_> {
    fn inner(&mut self) -> Reader<'_> {
        Reader { found: self.found, level: self.level + 1 }
    }

    fn is_too_deep(&mut self) -> bool {
        let too_deep = self.level >= MOST_LEVELS;
        if too_deep {
            self.found.too_deep();
        }
        too_deep
    }
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.found.values += 1;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        let skip = self.is_too_deep();
        while !skip && !self.found.is_full() {
            match items.next_element_seed(self.inner())? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
        // Skipping takes no stack, however deep the values are.
        while items.next_element::<IgnoredAny>()?.is_some() {
            self.found.too_many(); // unless it is too deep, which has been noted already
        }
        Ok(if skip { Value::Null } else { Value::Array(list) })
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        let skip = self.is_too_deep();
        while let Some(name) = entries.next_key::<String>()? {
            if skip || self.found.is_full() {
                self.found.too_many(); // unless it is too deep, which has been noted already
                entries.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = entries.next_value_seed(self.inner())?;
            match fields.entry(name) {
                Entry::Vacant(place) => drop(place.insert(value)),
                Entry::Occupied(mut place) => {
                    self.found.doubled(place.key());
                    place.insert(value);
                }
            }
        }
        Ok(if skip { Value::Null } else { Value::Object(fields) })
    }
}

/// The payload with what `serde_json` refuses for its content replaced, and the flaw; `None` if there is no such thing.
fn mend(bytes: &[u8]) -> Option<(Vec<u8>, &'static str)> {
    let text = String::from_utf8_lossy(bytes);
    let mut flaw = matches!(text, Cow::Owned(_)).then_some("is not valid UTF-8.");
    let bytes = text.as_bytes();
    let mut mended = Vec::with_capacity(bytes.len());
    let (mut at, mut in_text) = (0, false);
    while let Some(&byte) = bytes.get(at) {
        let rest = &bytes[at..];
        let (taken, kept) = match byte {
            b'\\' if in_text => escape(rest),
            b'-' | b'0'..=b'9' if !in_text => number(rest),
            _ => (1, None),
        };
        in_text ^= byte == b'"';
        if let Some((replacement, why)) = kept {
            flaw.get_or_insert(why);
            mended.extend_from_slice(replacement);
        } else {
            mended.extend_from_slice(&rest[..taken]);
        }
        at += taken;
    }
    Some((mended, flaw?))
}

/// How many bytes a piece of JSON has, and what stands in for it and why.
type Piece = (usize, Option<(&'static [u8], &'static str)>);

/// The escape at the beginning. Half of a pair of surrogates is no character.
fn escape(rest: &[u8]) -> Piece {
    const HALF: &str = "holds half of a character in a text (a surrogate without its other half).";
    match (unit(rest), rest.get(6..).and_then(unit)) {
        (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (12, None),
        (Some(0xd800..=0xdfff), _) => (6, Some((b"\\ufffd", HALF))),
        (Some(_), _) => (6, None),
        (None, _) => (rest.len().min(2), None),
    }
}

/// The UTF-16 unit of `\uXXXX` at the beginning.
fn unit(rest: &[u8]) -> Option<u16> {
    let digits = rest.strip_prefix(b"\\u")?.get(..4).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// The number at the beginning.
fn number(rest: &[u8]) -> Piece {
    const TOO_LARGE: &str = "holds a number that is too large (above 1.79e308).";
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit() || b"+-.eE".contains(byte)).count();
    let value = std::str::from_utf8(&rest[..length]).ok().and_then(|text| text.parse::<f64>().ok());
    (length, value.is_some_and(f64::is_infinite).then_some((b"null", TOO_LARGE)))
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
        assert!(value["list"].as_array().unwrap().len() < MOST_VALUES);
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
    fn bytes_that_are_no_utf_8_are_a_flaw_in_a_text_and_no_json_elsewhere() {
        let (flaw, value) = flaw(b"{\"id\":7,\"text\":\"a\xffb\"}");
        assert!(flaw.contains("UTF-8"));
        assert_eq!(value, json!({ "id": 7, "text": "a\u{fffd}b" }));
        assert!(read(b"\xff\xfe{\x00}\x00").is_err());
    }

    #[test]
    fn what_is_no_json_says_where() {
        for (bytes, at) in [
            (&b""[..], "line 1, column 0"),
            (b"{", "line 1, column 1"),
            (b"{\"a\":1}\n}", "line 2, column 1"),
            (b"NaN", "line 1, column 1"),
            (b"{\"a\":\"\x00\"}", "line 1, column 7"),
        ] {
            assert!(read(bytes).unwrap_err().to_string().contains(at), "{:?}", read(bytes));
        }
    }
}
