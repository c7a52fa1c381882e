//! What a tool or a backend says is data, which the model reads: characters that a person would not see are made visible.
//!
//! | characters | what they can do | what becomes of them |
//! | --- | --- | --- |
//! | controls (U+0000 to U+001F, U+007F to U+009F) but tab and line breaks | terminals obey them; some callers refuse them | U+FFFD |
//! | changes of the writing direction (U+202A to U+202E, U+2066 to U+2069) | a reviewer sees another text than the model | U+FFFD |
//! | tags (U+E0000 to U+E007F) outside of a flag | invisible, and models read them as letters | U+FFFD |
//!
//! All else is left as it is, also text that reads like an order to the model: nobody can tell that from data.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// The text, with a replacement character for each that cannot be seen.
pub fn text(text: &str) -> Cow<'_, str> {
    let mut hidden = Hidden::default();
    if !text.chars().any(|c| hidden.is(c)) {
        return Cow::Borrowed(text);
    }
    hidden = Hidden::default();
    Cow::Owned(text.chars().map(|c| if hidden.is(c) { char::REPLACEMENT_CHARACTER } else { c }).collect())
}

/// The same for every text and every name in a value.
pub fn value(value: Value) -> Value {
    match value {
        Value::String(string) => Value::String(owned(string)),
        Value::Array(items) => items.into_iter().map(self::value).collect(),
        Value::Object(fields) => {
            let fields: Map<_, _> = fields.into_iter().map(|(name, field)| (owned(name), self::value(field))).collect();
            Value::Object(fields)
        }
        other => other,
    }
}

fn owned(string: String) -> String {
    match text(&string) {
        Cow::Borrowed(_) => string,
        Cow::Owned(readable) => readable,
    }
}

/// Tells hidden characters, one after the other: the flags of England, Scotland and Wales are written with tags.
#[derive(Default)]
struct Hidden {
    in_a_flag: bool,
}

impl Hidden {
    fn is(&mut self, c: char) -> bool {
        let is_tag = matches!(c, '\u{e0000}'..='\u{e007f}');
        let is_hidden = match c {
            '\t' | '\n' | '\r' => false,
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
            _ if is_tag => !self.in_a_flag,
            c => c.is_control(),
        };
        self.in_a_flag = c == '\u{1f3f4}' || is_tag && self.in_a_flag && c != '\u{e007f}';
        is_hidden
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_cannot_be_seen_is_made_visible() {
        for hidden in ["\u{0}", "\u{1b}", "\u{7f}", "\u{9b}", "\u{202e}", "\u{2066}", "\u{e0041}", "\u{e007f}"] {
            assert_eq!(text(&format!("a{hidden}b")), "a\u{fffd}b", "{hidden:?}");
        }
        assert_eq!(text("\u{1f3f4}\u{e0067}\u{e007f}\u{e0067}"), "\u{1f3f4}\u{e0067}\u{e007f}\u{fffd}", "after a flag");
    }

    #[test]
    fn what_people_write_is_left_as_it_is() {
        let written = "Line\r\nand\ttab, na\u{ef}ve, \u{5e9}\u{5dc}\u{5d5}\u{5dd}, \u{645}\u{6cc}\u{200c}\u{62e}, \u{1f469}\u{200d}\u{1f680}, \u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}";
        assert!(matches!(text(written), Cow::Borrowed(same) if same == written));
    }

    #[test]
    fn names_and_nested_texts_are_read_as_well() {
        let hostile = json!({"a\u{1b}": [{"b": "\u{202e}x"}, 1, null, false]});
        assert_eq!(value(hostile), json!({"a\u{fffd}": [{"b": "\u{fffd}x"}, 1, null, false]}));
    }

    proptest! {
        #[test]
        fn a_readable_text_stays_as_it_is(any in ".*") {
            let once = text(&any).into_owned();
            prop_assert_eq!(text(&once), once.clone());
            prop_assert_eq!(once.chars().count(), any.chars().count());
        }
    }
}
