//! The two spellings of Converse's keys: `toolUse`, and `ToolUse` as Step Functions' SDK integrations write them.

use serde_json::{Map, Value};

/// How the keys of an event are written, and so those of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spelling {
    /// `toolUse`: the API itself, and every SDK.
    Api,
    /// `ToolUse`: Step Functions.
    StepFunctions,
}

impl Spelling {
    pub(super) const ALL: [Self; 2] = [Self::Api, Self::StepFunctions];

    pub(super) const fn other(self) -> Self {
        match self {
            Self::Api => Self::StepFunctions,
            Self::StepFunctions => Self::Api,
        }
    }

    /// A key of the API in this spelling.
    pub(super) fn key(self, name: &str) -> String {
        match (self, name.split_at_checked(1)) {
            (Self::StepFunctions, Some((first, rest))) => first.to_ascii_uppercase() + rest,
            _ => String::from(name),
        }
    }

    /// The field of that name.
    pub(super) fn get<'a>(self, value: &'a Value, name: &str) -> Option<&'a Value> {
        value.get(self.key(name))
    }

    /// Whether the value has one of these fields.
    pub(super) fn has_any(self, value: &Value, names: &[&str]) -> bool {
        names.iter().any(|name| self.get(value, name).is_some())
    }

    /// An object with these fields.
    pub(super) fn object<const N: usize>(self, fields: [(&str, Value); N]) -> Value {
        Value::Object(fields.into_iter().map(|(name, value)| (self.key(name), value)).collect::<Map<_, _>>())
    }
}
