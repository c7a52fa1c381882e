//! What is asked of a model and what it answers: the border between the loop's decisions and the network.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    conversation::{Message, Role},
    usage::Usage,
};

/// One request to the model. `dev run-loop` prints it as it is: the body of a Converse request.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelRequest {
    /// The whole conversation, valid for Bedrock.
    pub messages: Vec<Message>,
    /// The system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The tools, as `{"tools": [{"toolSpec": …}, …]}`. Kept even where no tool may be used, since Bedrock demands it of a
    /// conversation that holds tool blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_config: Option<Value>,
    /// The most tokens that the answer may have: what the budget has left, if that is less than the model's own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
}

impl fmt::Debug for ModelRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelRequest").field("messages", &self.messages.len()).finish_non_exhaustive()
    }
}

/// One answer of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelReply {
    /// The assistant's message.
    pub message: Message,
    /// Bedrock's stop reason, as it came: `end_turn`, `tool_use`, `max_tokens`, …; new ones appear.
    pub stop_reason: String,
    /// What it cost, if Bedrock said so.
    pub usage: Option<Usage>,
}

impl ModelReply {
    /// Reads the body of a Converse response, as far as it can be read: what is missing is blank.
    pub fn from_converse(body: &Value) -> Self {
        let content = body["output"]["message"]["content"].as_array().cloned().unwrap_or_default();
        // Every value is a block of some kind.
        let content = content.into_iter().filter_map(|block| serde_json::from_value(block).ok()).collect();
        Self {
            message: Message { role: Role::Assistant, content },
            stop_reason: body["stopReason"].as_str().unwrap_or_default().to_owned(),
            usage: body.get("usage").and_then(|usage| serde_json::from_value(usage.clone()).ok()),
        }
    }
}

/// A call of the model that failed, after the SDK's own retries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFailure {
    /// What kind of failure.
    pub kind: ModelFailureKind,
    /// One sentence of ours, without the service's text.
    pub sentence: String,
}

/// What kind of failure a model's call ended in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelFailureKind {
    /// Throttled, after the SDK's retries.
    Throttled,
    /// The service or the connection failed, after the SDK's retries.
    Unavailable,
    /// `ModelTimeout`, `ModelError`, `ModelNotReady`: the SDK does not repeat them; the loop may, once.
    Model,
    /// No answer within the time that the call was given.
    Timeout,
    /// The request was refused: a fault of ours or of the conversation (`ValidationException`).
    Invalid,
    /// No permission, no credentials, or no model that can be asked by this id.
    Denied,
}

impl ModelFailureKind {
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::Throttled, Self::Unavailable, Self::Model, Self::Timeout, Self::Invalid, Self::Denied];

    /// The name in lines and scripts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Throttled => "throttled",
            Self::Unavailable => "unavailable",
            Self::Model => "model",
            Self::Timeout => "timeout",
            Self::Invalid => "invalid",
            Self::Denied => "denied",
        }
    }

    /// Whether the same request may be sent once more by the loop.
    pub const fn may_be_repeated(self) -> bool {
        matches!(self, Self::Model)
    }
}
