//! What `serde_json` refuses for its content, although it is well-formed: replaced, so that the rest can be read.
//!
//! Not a parser: it only knows where a text is, an escape in it, and a number. What is no JSON stays none.

use std::borrow::Cow;

/// The payload with what `serde_json` refuses for its content replaced, and the flaw; `None` if there is no such thing.
pub(super) fn mend(bytes: &[u8]) -> Option<(Vec<u8>, &'static str)> {
    let text = String::from_utf8_lossy(bytes);
    let mut flaw = matches!(text, Cow::Owned(_)).then_some("is not valid UTF-8.");
    let bytes = text.as_bytes();
    let (mut mended, mut copied) = (Vec::new(), 0);
    let (mut at, mut in_text) = (0, false);
    while let Some(skipped) = bytes[at..].iter().position(|byte| matters(*byte, in_text)) {
        at += skipped;
        let rest = &bytes[at..];
        let (taken, instead) = match rest[0] {
            b'"' => (1, None),
            b'\\' => escape(rest),
            _ => number(rest),
        };
        in_text ^= rest[0] == b'"';
        if let Some((replacement, why)) = instead {
            flaw.get_or_insert(why);
            mended.extend_from_slice(&bytes[copied..at]);
            mended.extend_from_slice(replacement);
            copied = at + taken;
        }
        at += taken;
    }
    let flaw = flaw?;
    mended.extend_from_slice(&bytes[copied..]);
    Some((mended, flaw))
}

/// Whether something begins here that is looked at. Most of a payload is skipped: byte by byte it would take a debug build
/// most of a second for each megabyte.
const fn matters(byte: u8, in_text: bool) -> bool {
    match byte {
        b'"' => true,
        b'\\' => in_text,
        b'-' | b'0'..=b'9' => !in_text,
        _ => false,
    }
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
