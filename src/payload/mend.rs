//! What `serde_json` refuses for its content, although it is well-formed: replaced, so that the rest can be read.
//!
//! Not a parser: it only knows where a text is, an escape in it, and a number. What is no JSON stays none.

use std::borrow::Cow;

/// The payload with what `serde_json` refuses for its content replaced, and the flaw; `None` if there is no such thing.
pub(super) fn mend(bytes: &[u8]) -> Option<(Vec<u8>, &'static str)> {
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
