//! The messages of a conversation, as Bedrock's Converse API writes them.
//!
//! ```json
//! {"role": "assistant", "content": [{"text": "Let me look."}, {"toolUse": {"toolUseId": "a", "name": "get_order", "input": {}}}]}
//! ```
//!
//! Own types rather than the SDK's: those cannot be serialised, and their `Debug` prints what people have written.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person, and the results of tools.
    User,
    /// The model.
    Assistant,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub content: Vec<Block>,
}

impl Message {
    /// A message of the person.
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, content: vec![Block::Text(text.into())] }
    }

    /// The calls that the message asks for, in order.
    pub fn tool_uses(&self) -> impl Iterator<Item = &ToolUse> {
        self.content.iter().filter_map(|block| match block {
            Block::ToolUse(tool_use) => Some(tool_use),
            _ => None,
        })
    }

    /// The texts of the message, a line each, those with citations included; blank ones are left out.
    pub fn text(&self) -> String {
        let texts = self.content.iter().flat_map(|block| match block {
            Block::Text(text) => vec![text.as_str()],
            Block::Other(other) => {
                let cited = other["citationsContent"]["content"].as_array().into_iter().flatten();
                cited.filter_map(|part| part["text"].as_str()).collect()
            }
            _ => vec![],
        });
        texts.map(str::trim).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
    }
}

/// A part of a message.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Block {
    /// Text.
    Text(String),
    /// A call that the model asks for.
    ToolUse(ToolUse),
    /// The answer to a call.
    ToolResult(ToolResult),
    /// Any other block, whole: it is given back as it came, as Bedrock demands of reasoning and its signature.
    #[serde(untagged)]
    Other(Value),
}

impl Block {
    /// The block as it may be sent: none if it is blank, and a call even if parts of it are missing or null. Some
    /// serialisers write a union with `null` for each member that it is not.
    pub(super) fn tidy(self) -> Option<Self> {
        match self {
            Self::Text(text) if text.trim().is_empty() => None,
            Self::Other(Value::Object(mut members)) => {
                members.retain(|_, member| !member.is_null());
                let text = |member: Option<&Value>| member.and_then(Value::as_str).map(str::to_owned);
                match members.get("toolUse") {
                    Some(asked) => Some(Self::ToolUse(ToolUse {
                        tool_use_id: text(asked.get("toolUseId")).unwrap_or_default(),
                        name: text(asked.get("name")).unwrap_or_default(),
                        input: asked.get("input").cloned().unwrap_or_default(),
                        kind: text(asked.get("type")),
                    })),
                    None if members.contains_key("text") => text(members.get("text")).map(Self::Text)?.tidy(),
                    None => Some(Self::Other(Value::Object(members))).filter(|block| !block.is_hollow()),
                }
            }
            Self::Other(_) => None,
            other => Some(other),
        }
    }

    /// Whether it is the model's reasoning, which is given back, but says nothing to the person.
    pub(super) fn is_reasoning(&self) -> bool {
        matches!(self, Self::Other(other) if other.get("reasoningContent").is_some())
    }

    /// Whether nothing of it is left that could be sent.
    fn is_hollow(&self) -> bool {
        match self {
            Self::Other(Value::Object(members)) => members.is_empty() || members.contains_key("toolResult"),
            _ => false,
        }
    }
}

/// A call that the model asks for.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolUse {
    /// The id that its result must carry. Models repeat ids: it is no idempotency key.
    #[serde(default)]
    pub tool_use_id: String,
    /// The tool's name, as the model wrote it.
    #[serde(default)]
    pub name: String,
    /// The arguments, as the model wrote them.
    #[serde(default)]
    pub input: Value,
    /// `server_tool_use` where the provider runs it, and we must not; nothing in a call of ours.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// The answer to a call.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// The id of the call.
    pub tool_use_id: String,
    /// How it ended. Where nothing is said, Bedrock means a success.
    #[serde(default)]
    pub status: Status,
    /// `{"json": {…}}` or `{"text": "…"}` blocks; never empty.
    pub content: Vec<Value>,
    /// What kind of result it is, where the provider has run the tool: it is given back as it came.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// How a call ended, for the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It has a result.
    #[default]
    Success,
    /// It has none.
    Error,
}

// What people and models write stays out of logs: Debug shows shapes and ids only.

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "Text({} bytes)", text.len()),
            Self::ToolUse(tool_use) => tool_use.fmt(f),
            Self::ToolResult(result) => result.fmt(f),
            Self::Other(_) => f.write_str("Other"),
        }
    }
}

impl fmt::Debug for ToolUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolUse").field("tool_use_id", &self.tool_use_id).finish_non_exhaustive()
    }
}

impl fmt::Debug for ToolResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ToolResult");
        shown.field("tool_use_id", &self.tool_use_id).field("status", &self.status).finish_non_exhaustive()
    }
}
