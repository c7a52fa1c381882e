//! A scripted conversation: what the person says, and what the model will answer.
//!
//! ```json
//! {"prompt": "Where is my order?", "limits": {"max_steps": 3}, "replies": [{"output": {"message": …}, "stopReason": "end_turn"}]}
//! ```

use std::{
    path::Path,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use serde::Deserialize;
use serde_json::Value;

use super::{
    Trouble,
    account::{Tone, tell},
};
use crate::agent::{
    conversation::Message,
    drive::{Heard, Model},
    limits::{Limits, Prices},
    model::{ModelFailure, ModelFailureKind, ModelReply, ModelRequest},
};

/// The tokens of a turn, where the script sets no limit.
const MAX_TOKENS: u64 = 200_000;

/// What a script holds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// What the person says. Without it, a turn goes on that stands in `--state`.
    pub prompt: Option<String>,
    /// The system prompt.
    pub system: Option<String>,
    /// What was said before.
    #[serde(default)]
    pub history: Vec<Message>,
    #[serde(default)]
    limits: Option<Given>,
    replies: Vec<Value>,
}

/// The limits that a script sets.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    max_steps: Option<u32>,
    max_tool_calls: Option<u32>,
    max_consecutive_failures: Option<u32>,
    max_identical_failures: Option<u32>,
    max_tokens: Option<u64>,
    max_cost: Option<f64>,
    prices: Option<Prices>,
    max_output_tokens: Option<u32>,
    max_result_bytes: Option<usize>,
}

impl Script {
    /// Reads it.
    pub fn read(file: &Path) -> Result<Self, Trouble> {
        let name = file.display();
        let text = super::input::bytes(file)?;
        let script: Self = serde_json::from_slice(&text).map_err(|error| {
            Trouble(format!("The file {name} is no script: {error}. `dev run-loop --help` says what a script holds."))
        })?;
        for (said, text) in [("prompt", &script.prompt), ("system", &script.system)] {
            if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
                return Err(Trouble(format!(
                    "The {said} of the script {name} is blank, which Bedrock takes from nobody. Say something, or leave it out."
                )));
            }
        }
        if script.replies.is_empty() {
            return Err(Trouble(format!("The script {name} has no replies. Give the model at least one.")));
        }
        if script.limits.as_ref().is_some_and(|limits| limits.max_cost.is_some() && limits.prices.is_none()) {
            return Err(Trouble(format!(
                "The script {name} has max_cost without prices, which limits nothing. Give it prices."
            )));
        }
        for (index, reply) in script.replies.iter().enumerate() {
            if !reply["output"].is_object() && failure(reply).is_none() {
                return Err(Trouble(format!(
                    "Reply {} of the script {name} is neither a Converse response (with `output`, `stopReason` and `usage`) \
                     nor a failure (for example {{\"failure\": \"throttled\"}}).",
                    index + 1
                )));
            }
            for field in unread(reply) {
                tell(Tone::Bad, &format!("Reply {} has {field}, which no Converse response has: not read.", index + 1));
            }
        }
        Ok(script)
    }

    /// The limits of its turns.
    pub fn limits(&self) -> Limits {
        let defaults = Limits::new(MAX_TOKENS);
        let Some(given) = &self.limits else { return defaults };
        Limits {
            max_steps: given.max_steps.unwrap_or(defaults.max_steps),
            max_tool_calls: given.max_tool_calls.unwrap_or(defaults.max_tool_calls),
            max_consecutive_failures: given.max_consecutive_failures.unwrap_or(defaults.max_consecutive_failures),
            max_identical_failures: given.max_identical_failures.unwrap_or(defaults.max_identical_failures),
            max_tokens: given.max_tokens.unwrap_or(defaults.max_tokens),
            max_cost: given.max_cost.or(defaults.max_cost),
            prices: given.prices.or(defaults.prices),
            max_output_tokens: given.max_output_tokens.unwrap_or(defaults.max_output_tokens),
            max_result_bytes: given.max_result_bytes.unwrap_or(defaults.max_result_bytes),
            ..defaults
        }
    }

    /// The model that gives its replies.
    pub fn model(&self) -> Scripted {
        Scripted { replies: self.replies.clone(), given: Mutex::new(0) }
    }
}

/// The fields of a reply that have no meaning, such as a misspelt one. They are told and not refused, since Bedrock's own
/// responses get new ones.
fn unread(reply: &Value) -> Vec<String> {
    let mut unread = Vec::new();
    let mut look = |place: &str, value: &Value, known: &[&str]| {
        let fields = value.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
        unread.extend(fields.filter(|name| !known.contains(name)).map(|name| format!("{place}{name}")));
    };
    look("", reply, if failure(reply).is_some() { &["failure"] } else { &RESPONSE });
    look("output.", &reply["output"], &["message"]);
    let message = &reply["output"]["message"];
    look("output.message.", message, &["role", "content"]);
    for block in message["content"].as_array().into_iter().flatten() {
        look("output.message.content.", block, &BLOCKS);
        look("toolUse.", &block["toolUse"], &["toolUseId", "name", "input", "type"]);
    }
    look("usage.", &reply["usage"], &USAGE);
    unread
}

/// The fields of a Converse response, and what boto3 puts beside them.
const RESPONSE: [&str; 9] = [
    "output",
    "stopReason",
    "usage",
    "metrics",
    "additionalModelResponseFields",
    "trace",
    "performanceConfig",
    "serviceTier",
    "ResponseMetadata",
];
const USAGE: [&str; 6] =
    ["inputTokens", "outputTokens", "totalTokens", "cacheReadInputTokens", "cacheWriteInputTokens", "cacheDetails"];
/// The kinds of blocks that a message may have.
const BLOCKS: [&str; 14] = [
    "text",
    "toolUse",
    "toolResult",
    "reasoningContent",
    "citationsContent",
    "image",
    "document",
    "video",
    "audio",
    "searchResult",
    "guardContent",
    "cachePoint",
    "toolAddition",
    "toolRemoval",
];

/// A reply that is none: the model's call fails so.
fn failure(reply: &Value) -> Option<ModelFailure> {
    let kind: ModelFailureKind = serde_json::from_value(reply["failure"].clone()).ok()?;
    let sentence =
        format!("The script lets the model's call fail ({}).", reply["failure"].as_str().unwrap_or_default());
    Some(ModelFailure { kind, sentence })
}

/// A model that gives the replies of a script, the last one again and again.
pub struct Scripted {
    replies: Vec<Value>,
    given: Mutex<usize>,
}

impl Model for Scripted {
    fn converse<'a>(
        &'a self,
        _: &'a ModelRequest,
        _: Duration,
        heard: &'a mut (dyn FnMut(Heard<'_>) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelFailure>> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let reply = &self.replies[(*given).min(self.replies.len() - 1)]; // a script has at least one
        *given += 1;
        let answer = match failure(reply) {
            Some(failure) => Err(failure),
            None => Ok(ModelReply::from_converse(reply)),
        };
        if let Ok(reply) = &answer {
            heard(Heard::Text(&reply.message.text()));
        }
        async move { answer }.boxed()
    }
}
