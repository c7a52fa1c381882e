//! What a person is shown of a call that waits: what it would do, and who asks for it. The record holds both until the call
//! begins; nothing else does, and no log.

use std::fmt;

use aws_sdk_dynamodb::types::AttributeValue;
use serde::Serialize;
use serde_json::Value;

use super::record::{Item, s};
use crate::{readable, tool::Caller};

/// The attribute that puts a record into the index of what waits, and what all that wait have in it.
pub(super) const WAITS_FOR: (&str, &str) = ("waits_for", "approval");

/// So many characters of a name are kept: the person needs to tell callers apart, and a caller may send a long one.
const NAME_MAX: usize = 256;

/// What a person is to decide on.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Asking {
    arguments: String,
    by: AskedBy,
}

/// Who asks, as far as the door and the host can tell, and as far as [`Caller`] says that each of it is to be trusted.
#[derive(Clone, Default, PartialEq, Eq, Serialize)]
pub struct AskedBy {
    /// The tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// The session or conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
}

impl Asking {
    /// That this caller asks for a call with these arguments.
    pub fn of(arguments: &Value, caller: &Caller) -> Self {
        Self { arguments: arguments.to_string(), by: AskedBy::of(caller) }
    }

    /// The attributes that keep it, and have it listed, and their values.
    pub(super) fn attributes(&self) -> [(&'static str, AttributeValue); 3] {
        let by = AttributeValue::M(self.by.to_item());
        [("arguments", s(&self.arguments)), ("asked_by", by), (WAITS_FOR.0, s(WAITS_FOR.1))]
    }
}

impl AskedBy {
    fn of(caller: &Caller) -> Self {
        let kept = |name: Option<&str>| name.map(bounded);
        Self {
            tenant: kept(caller.tenant()),
            identity: kept(caller.identity()),
            conversation: kept(caller.conversation()),
        }
    }

    fn to_item(&self) -> Item {
        let names = [("tenant", &self.tenant), ("identity", &self.identity), ("conversation", &self.conversation)];
        names.into_iter().filter_map(|(name, value)| Some((name.to_owned(), s(value.as_ref()?)))).collect()
    }

    /// As a person reads it, without characters that nobody sees: a caller may have chosen them.
    pub(super) fn from_item(item: &Item) -> Self {
        let kept = item.get("asked_by").and_then(|by| by.as_m().ok());
        let text = |name: &str| Some(readable::text(kept?.get(name)?.as_s().ok()?).into_owned());
        Self { tenant: text("tenant"), identity: text("identity"), conversation: text("conversation") }
    }
}

fn bounded(name: &str) -> String {
    match name.char_indices().nth(NAME_MAX) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking").finish_non_exhaustive() // it is for the person only
    }
}

impl fmt::Debug for AskedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AskedBy").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(caller: &Caller) -> Value {
        let item = Asking::of(&Value::Null, caller).attributes().map(|(name, value)| (name.to_owned(), value)).into();
        serde_json::to_value(AskedBy::from_item(&item)).expect("names are texts")
    }

    #[test]
    fn a_person_reads_who_asks_and_nothing_else_of_the_caller() {
        let caller = Caller::default().with_tenant("t-1").with_identity("eve").with_conversation("c-1");
        let caller = caller.with_header("authorization", "Bearer 1").with_session_attribute("role", "clerk");
        assert_eq!(shown(&caller), serde_json::json!({"tenant": "t-1", "identity": "eve", "conversation": "c-1"}));
        assert_eq!(shown(&Caller::default()), serde_json::json!({}));
        assert_eq!(AskedBy::from_item(&Item::new()), AskedBy::default(), "a record from before this was kept");
    }

    #[test]
    fn a_name_can_neither_hide_nor_fill_what_a_person_reads() {
        let caller = Caller::default().with_identity(format!("a\u{1b}[2K\u{202e}{}", "x".repeat(100_000)));
        let identity = shown(&caller)["identity"].as_str().expect("a text").to_owned();
        assert!(identity.starts_with("a\u{fffd}[2K\u{fffd}x") && identity.ends_with('…'), "{identity}");
        assert_eq!(identity.chars().count(), NAME_MAX + 1);
    }
}
