//! A streamed reply, joined from its pieces. A pure accumulator: events in, one whole reply out, or none.
//!
//! Blocks are told apart by their index, since their events may alternate. The pieces of a tool's input are text until the
//! stream says that the message is whole; only then are they read as JSON. An input that is none makes the whole reply a
//! `malformed_tool_use`, which is what Bedrock itself calls it, so that nothing of it is run.

use std::collections::BTreeMap;

use aws_sdk_bedrockruntime::types::{
    ContentBlockDelta, ContentBlockStart, ConverseStreamOutput, ReasoningContentBlockDelta as Reasoning,
    ToolResultBlockDelta, ToolResultStatus,
};
use serde_json::{Map, Value, json};

use super::{blocks, document::from_document};
use crate::{
    agent::{
        conversation::{Block, Message, Role, ToolUse},
        model::ModelReply,
        usage::Usage,
    },
    payload,
};

/// What has come so far.
#[derive(Default)]
pub(super) struct Joined {
    parts: BTreeMap<i32, Part>,
    stop_reason: Option<String>,
    usage: Option<Usage>,
}

enum Part {
    Text(String),
    ToolUse { id: String, name: String, kind: Option<String>, input: String },
    Reasoning { text: String, signature: Option<String> },
    Redacted(Vec<u8>),
    Result { id: String, kind: Option<String>, status: Option<ToolResultStatus>, content: Vec<Value> },
    Dropped,
}

impl Part {
    /// Only tools, images and results announce themselves; any other block begins by its first piece.
    fn begun_by(delta: &ContentBlockDelta) -> Self {
        match delta {
            ContentBlockDelta::Text(_) | ContentBlockDelta::Citation(_) => Self::Text(String::new()),
            ContentBlockDelta::ReasoningContent(Reasoning::RedactedContent(_)) => Self::Redacted(Vec::new()),
            ContentBlockDelta::ReasoningContent(_) => Self::Reasoning { text: String::new(), signature: None },
            _ => blocks::dropped("delta").unwrap_or(Self::Dropped),
        }
    }
}

/// The bytes of an event that the model has made and nobody is shown.
pub(super) fn hidden(event: &ConverseStreamOutput) -> usize {
    let ConverseStreamOutput::ContentBlockDelta(delta) = event else { return 0 };
    match &delta.delta {
        Some(ContentBlockDelta::ToolUse(piece)) => piece.input.len(),
        Some(ContentBlockDelta::ReasoningContent(Reasoning::Text(text))) => text.len(),
        Some(ContentBlockDelta::ReasoningContent(Reasoning::RedactedContent(bytes))) => bytes.as_ref().len(),
        _ => 0,
    }
}

impl Joined {
    /// Takes one event; hands back the text that a person may hear at once.
    pub(super) fn take(&mut self, event: ConverseStreamOutput) -> Option<String> {
        match event {
            ConverseStreamOutput::ContentBlockStart(start) => self.start(start.content_block_index, start.start),
            ConverseStreamOutput::ContentBlockDelta(delta) => {
                return self.add(delta.content_block_index, delta.delta?);
            }
            ConverseStreamOutput::MessageStop(stop) => self.stop_reason = Some(stop.stop_reason.as_str().to_owned()),
            ConverseStreamOutput::Metadata(metadata) => self.usage = metadata.usage.as_ref().map(blocks::usage),
            _ => {} // the start of the message and the ends of blocks say nothing more
        }
        None
    }

    fn start(&mut self, index: i32, start: Option<ContentBlockStart>) {
        let part = match start {
            Some(ContentBlockStart::ToolUse(start)) => Part::ToolUse {
                id: start.tool_use_id,
                name: start.name,
                kind: start.r#type.map(|kind| kind.as_str().to_owned()),
                input: String::new(),
            },
            Some(ContentBlockStart::ToolResult(start)) => {
                Part::Result { id: start.tool_use_id, kind: start.r#type, status: start.status, content: Vec::new() }
            }
            Some(_) => blocks::dropped("start").unwrap_or(Part::Dropped),
            None => return,
        };
        self.parts.insert(index, part);
    }

    fn add(&mut self, index: i32, delta: ContentBlockDelta) -> Option<String> {
        let part = self.parts.entry(index).or_insert_with(|| Part::begun_by(&delta));
        match (part, delta) {
            (Part::Text(text), ContentBlockDelta::Text(more)) => {
                text.push_str(&more);
                return Some(more);
            }
            (Part::ToolUse { input, .. }, ContentBlockDelta::ToolUse(more)) => input.push_str(&more.input),
            (Part::Reasoning { text, .. }, ContentBlockDelta::ReasoningContent(Reasoning::Text(more))) => {
                text.push_str(&more);
            }
            (Part::Reasoning { signature, .. }, ContentBlockDelta::ReasoningContent(Reasoning::Signature(more))) => {
                signature.get_or_insert_default().push_str(&more);
            }
            (Part::Redacted(all), ContentBlockDelta::ReasoningContent(Reasoning::RedactedContent(more))) => {
                all.extend_from_slice(more.as_ref());
            }
            (Part::Result { content, .. }, ContentBlockDelta::ToolResult(more)) => {
                content.extend(more.into_iter().filter_map(|part| match part {
                    ToolResultBlockDelta::Json(json) => Some(json!({ "json": from_document(&json) })),
                    ToolResultBlockDelta::Text(text) => Some(json!({ "text": text })),
                    _ => blocks::dropped("part"),
                }));
            }
            _ => {} // of a block that is dropped, or a piece of another kind such as a citation
        }
        None
    }

    /// Whether the message is whole. What may still come is its tokens.
    pub(super) const fn is_whole(&self) -> bool {
        self.stop_reason.is_some()
    }

    /// The reply, if the message is whole.
    pub(super) fn reply(self) -> Option<ModelReply> {
        let mut stop_reason = self.stop_reason?;
        let mut content = Vec::new();
        for part in self.parts.into_values() {
            match part {
                Part::Text(text) => content.push(Block::Text(text)),
                Part::Reasoning { text, signature } => {
                    content.push(blocks::reasoning_text(&text, signature.as_deref()));
                }
                Part::Redacted(bytes) => content.push(blocks::redacted(&bytes)),
                Part::ToolUse { id, name, kind, input } => {
                    let input = read(&input).unwrap_or_else(|| {
                        stop_reason = malformed(&stop_reason);
                        Value::Object(Map::new())
                    });
                    content.push(Block::ToolUse(ToolUse { tool_use_id: id, name, input, kind }));
                }
                Part::Result { id, kind, status, content: parts } => {
                    content.push(blocks::result_of(id, kind, status.as_ref(), parts));
                }
                Part::Dropped => {}
            }
        }
        Some(ModelReply { message: Message { role: Role::Assistant, content }, stop_reason, usage: self.usage })
    }
}

/// The arguments of a call, if they are JSON and unambiguous. A tool without arguments is called without any piece.
fn read(input: &str) -> Option<Value> {
    if input.trim().is_empty() {
        return Some(Value::Object(Map::new()));
    }
    payload::read(input.as_bytes()).ok().filter(|read| read.flaw.is_none()).map(|read| read.value)
}

/// A reply that was cut off says so itself, and better.
fn malformed(stop_reason: &str) -> String {
    String::from(if matches!(stop_reason, "tool_use" | "end_turn") { "malformed_tool_use" } else { stop_reason })
}
