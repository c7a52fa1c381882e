//! By what a person says which call is meant: the key of its record, and a digest of what the record was shown with.
//!
//! ```text
//! refund_order#35f5…e0c1.9b27…44d0
//! └ the whole key ──────┘└ 128 bits of the digest of all arguments, and of whether it may have been done
//! ```
//!
//! Why not the key alone? A call with other arguments may wait under the same key by the time that the person decides, and
//! the same call may wait again after an attempt that may have been done. Why not as much of the key as tells it apart? By
//! then it may tell another one apart.

use std::{fmt, str::FromStr};

use super::super::key::{Key, digest_of};

/// How many hexadecimal digits the digest of what was shown has.
const DIGITS: usize = 32;
/// The same of the digest in a key.
const KEY_DIGITS: usize = 64;

/// The id of a call that waits for a person, as it was shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalId {
    pub(super) pk: String,
    shown: String,
}

/// A text that is no id of a call that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no id of a call that waits")]
pub struct NoApprovalId;

impl ApprovalId {
    /// The id of the call with this key. `maybe_done`: its record waits after an attempt that may have been done.
    pub fn of(key: &Key, maybe_done: bool) -> Self {
        Self::new(key.pk(), key.args_hash(), maybe_done)
    }

    pub(super) fn new(pk: &str, args_hash: &str, maybe_done: bool) -> Self {
        let mut shown = digest_of([args_hash.as_bytes(), &[u8::from(maybe_done)]]);
        shown.truncate(DIGITS);
        Self { pk: pk.to_owned(), shown }
    }
}

/// The text to copy.
impl fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.pk, self.shown)
    }
}

/// What was copied. Space around it does not count.
impl FromStr for ApprovalId {
    type Err = NoApprovalId;

    fn from_str(text: &str) -> Result<Self, NoApprovalId> {
        let (pk, shown) = text.trim().rsplit_once('.').ok_or(NoApprovalId)?;
        let (tool, digest) = pk.rsplit_once('#').ok_or(NoApprovalId)?;
        let is_hex =
            |text: &str, digits| text.len() == digits && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if tool.is_empty() || !is_hex(digest, KEY_DIGITS) || !is_hex(shown, DIGITS) {
            return Err(NoApprovalId);
        }
        Ok(Self { pk: pk.to_owned(), shown: shown.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::tool::{Definition, Effect};

    fn key(key: &Value, arguments: &Value) -> Key {
        Key::new(&Definition::sample("refund_order", Effect::Atomic), "", key, arguments).expect("a key")
    }

    #[test]
    fn an_id_is_read_as_it_is_written_and_no_part_of_it_is_one() {
        let key = key(&json!(1), &json!(1));
        let id = ApprovalId::of(&key, false);
        let text = id.to_string();
        assert_eq!(text.parse(), Ok(id.clone()));
        assert_eq!(format!(" {text}\n").parse(), Ok(id));
        for cut in (0..text.len()).flat_map(|at| [&text[..at], &text[at + 1..]]) {
            // A shorter name of a tool is another tool's id.
            let is_whole = text.ends_with(cut) && cut.len() > text.len() - "refund_order".len();
            assert_eq!(cut.parse::<ApprovalId>().is_ok(), is_whole, "{cut}");
        }
        for other in [key.pk(), key.digest(), &text.to_uppercase(), &text.replace('.', ""), &format!("{text}.")] {
            assert_eq!(other.parse::<ApprovalId>(), Err(NoApprovalId), "{other}");
        }
    }

    #[test]
    fn an_id_tells_apart_key_arguments_and_doubt() {
        let [one, two] = [json!(1), json!(2)];
        let all = [
            ApprovalId::of(&key(&one, &one), false),
            ApprovalId::of(&key(&one, &one), true),
            ApprovalId::of(&key(&one, &two), false),
            ApprovalId::of(&key(&two, &one), false),
        ];
        for (at, id) in all.iter().enumerate() {
            assert!(!all[..at].contains(id), "{id}");
        }
    }
}
