//! Messages and tools in the SDK's types, and replies in ours.
//!
//! | block | in a request | in a reply |
//! | --- | --- | --- |
//! | `text`, `toolUse`, `toolResult` | as it is | as it is (a `toolResult` there is that of a tool which the provider runs) |
//! | `reasoningContent` | exactly as it came | kept whole: Bedrock checks the signature |
//! | `cachePoint` | as it is | |
//! | `citationsContent` | | its text; the citations are dropped |
//! | any other | dropped, with a log line; a message of no other keeps a sentence instead | dropped, with a log line |
//!
//! A dropped block is one that no text model sends today; to fail would be to lose a conversation for an ornament.

use aws_sdk_bedrockruntime::{
    operation::converse::ConverseOutput,
    types::{
        AnyToolChoice, AutoToolChoice, CachePointBlock, CachePointType, CitationGeneratedContent, ContentBlock,
        ConversationRole, Message as SdkMessage, ReasoningContentBlock, ReasoningTextBlock, SpecificToolChoice,
        TokenUsage, Tool, ToolChoice, ToolConfiguration, ToolInputSchema, ToolResultBlock, ToolResultContentBlock,
        ToolResultStatus, ToolSpecification, ToolUseBlock,
    },
};
use aws_smithy_types::{Blob, error::operation::BuildError};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::document::{from_document, to_document};
use crate::agent::{
    conversation::{Block, Message, Role, Status, ToolResult, ToolUse},
    model::ModelReply,
    usage::Usage,
};

/// Stands in a message whose only blocks were dropped.
const NOTHING_LEFT: &str = "(This message held nothing that can be sent.)";

/// The messages of a request.
pub(super) fn messages(messages: &[Message]) -> Result<Vec<SdkMessage>, BuildError> {
    messages.iter().map(message).collect()
}

fn message(message: &Message) -> Result<SdkMessage, BuildError> {
    let role = match message.role {
        Role::User => ConversationRole::User,
        Role::Assistant => ConversationRole::Assistant,
    };
    let content = message.content.iter().filter_map(|block| to_sdk(block).transpose());
    let mut content: Vec<_> = content.collect::<Result<_, _>>()?;
    if content.is_empty() {
        content.push(ContentBlock::Text(String::from(NOTHING_LEFT))); // Bedrock refuses an empty message, and all after it
    }
    SdkMessage::builder().role(role).set_content(Some(content)).build()
}

fn to_sdk(block: &Block) -> Result<Option<ContentBlock>, BuildError> {
    Ok(match block {
        Block::Text(text) => Some(ContentBlock::Text(text.clone())),
        Block::ToolUse(tool_use) => Some(ContentBlock::ToolUse(asked(tool_use)?)),
        Block::ToolResult(result) => Some(ContentBlock::ToolResult(answered(result)?)),
        Block::Other(value) => other(value)?,
    })
}

fn asked(tool_use: &ToolUse) -> Result<ToolUseBlock, BuildError> {
    ToolUseBlock::builder()
        .tool_use_id(&tool_use.tool_use_id)
        .name(&tool_use.name)
        .input(to_document(&tool_use.input))
        .set_type(tool_use.kind.as_deref().map(Into::into))
        .build()
}

fn answered(result: &ToolResult) -> Result<ToolResultBlock, BuildError> {
    let status = match result.status {
        Status::Success => ToolResultStatus::Success,
        Status::Error => ToolResultStatus::Error,
    };
    let content =
        result.content.iter().map(|part| match (part.get("json"), part.get("text").and_then(Value::as_str)) {
            (Some(json), _) => ToolResultContentBlock::Json(to_document(json)),
            (None, Some(text)) => ToolResultContentBlock::Text(text.to_owned()),
            (None, None) => ToolResultContentBlock::Text(part.to_string()), // nothing of a result is lost
        });
    let block =
        ToolResultBlock::builder().tool_use_id(&result.tool_use_id).status(status).set_type(result.kind.clone());
    block.set_content(Some(content.collect())).build()
}

/// A block that is given back as it came.
fn other(value: &Value) -> Result<Option<ContentBlock>, BuildError> {
    if let Some(reasoning) = value.get("reasoningContent") {
        let block = to_reasoning(reasoning)?;
        return Ok(block.map(ContentBlock::ReasoningContent).or_else(|| dropped("reasoningContent")));
    }
    if value.get("cachePoint").is_some() {
        let point = CachePointBlock::builder().r#type(CachePointType::Default).build()?;
        return Ok(Some(ContentBlock::CachePoint(point)));
    }
    let name = value.as_object().and_then(|fields| fields.keys().next()).map_or("none", String::as_str);
    Ok(dropped(name))
}

fn to_reasoning(reasoning: &Value) -> Result<Option<ReasoningContentBlock>, BuildError> {
    if let Some(text) = reasoning.get("reasoningText") {
        let part = |name: &str| text.get(name).and_then(Value::as_str).map(str::to_owned);
        let block = ReasoningTextBlock::builder().set_text(part("text")).set_signature(part("signature")).build()?;
        return Ok(Some(ReasoningContentBlock::ReasoningText(block)));
    }
    let redacted = reasoning.get("redactedContent").and_then(Value::as_str);
    let bytes = redacted.and_then(|text| STANDARD.decode(text).ok());
    Ok(bytes.map(|bytes| ReasoningContentBlock::RedactedContent(Blob::new(bytes))))
}

/// The name is the API's, or a model's at worst: it is cut.
pub(super) fn dropped<T>(block: &str) -> Option<T> {
    let block: String = block.chars().filter(char::is_ascii_alphanumeric).take(40).collect();
    tracing::warn!(block, "a content block that cannot be carried was dropped from a conversation");
    None
}

/// The tools of a request: `{"tools": [{"toolSpec": …} | {"cachePoint": …}, …], "toolChoice"}`.
pub(super) fn tool_configuration(config: &Value) -> Result<ToolConfiguration, BuildError> {
    let tools = config["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let tools = tools.iter().filter_map(|tool| tool_of(tool).transpose()).collect::<Result<Vec<_>, _>>()?;
    let choice = config.get("toolChoice").map(choice).transpose()?.flatten();
    ToolConfiguration::builder().set_tools(Some(tools)).set_tool_choice(choice).build()
}

fn tool_of(tool: &Value) -> Result<Option<Tool>, BuildError> {
    if tool.get("cachePoint").is_some() {
        return Ok(Some(Tool::CachePoint(CachePointBlock::builder().r#type(CachePointType::Default).build()?)));
    }
    let Some(spec) = tool.get("toolSpec") else { return Ok(dropped("tool")) };
    let text = |name: &str| spec.get(name).and_then(Value::as_str).map(str::to_owned);
    let spec = ToolSpecification::builder()
        .set_name(text("name"))
        .set_description(text("description"))
        .input_schema(ToolInputSchema::Json(to_document(&spec["inputSchema"]["json"])))
        .set_strict(spec.get("strict").and_then(Value::as_bool))
        .build()?;
    Ok(Some(Tool::ToolSpec(spec)))
}

fn choice(choice: &Value) -> Result<Option<ToolChoice>, BuildError> {
    if let Some(name) = choice["tool"]["name"].as_str() {
        return Ok(Some(ToolChoice::Tool(SpecificToolChoice::builder().name(name).build()?)));
    }
    if choice.get("any").is_some() {
        return Ok(Some(ToolChoice::Any(AnyToolChoice::builder().build())));
    }
    Ok(choice.get("auto").map(|_| ToolChoice::Auto(AutoToolChoice::builder().build())))
}

/// The reply of Converse.
pub(super) fn reply(output: &ConverseOutput) -> ModelReply {
    let blocks = output.output().and_then(|output| output.as_message().ok()).map(SdkMessage::content);
    let content = blocks.unwrap_or_default().iter().filter_map(from_sdk).collect();
    ModelReply {
        message: Message { role: Role::Assistant, content },
        stop_reason: output.stop_reason().as_str().to_owned(),
        usage: output.usage().map(usage),
    }
}

fn from_sdk(block: &ContentBlock) -> Option<Block> {
    match block {
        ContentBlock::Text(text) => Some(Block::Text(text.clone())),
        ContentBlock::ToolUse(asked) => Some(Block::ToolUse(ToolUse {
            tool_use_id: asked.tool_use_id().to_owned(),
            name: asked.name().to_owned(),
            input: from_document(asked.input()),
            kind: asked.r#type().map(|kind| kind.as_str().to_owned()),
        })),
        ContentBlock::ReasoningContent(ReasoningContentBlock::ReasoningText(reasoning)) => {
            Some(reasoning_text(reasoning.text(), reasoning.signature()))
        }
        ContentBlock::ReasoningContent(ReasoningContentBlock::RedactedContent(bytes)) => Some(redacted(bytes.as_ref())),
        ContentBlock::CitationsContent(cited) => {
            let texts = cited.content().iter().filter_map(|part| match part {
                CitationGeneratedContent::Text(text) => Some(text.as_str()),
                _ => None,
            });
            Some(Block::Text(texts.collect()))
        }
        ContentBlock::ToolResult(result) => {
            let content = result.content().iter().filter_map(|part| match part {
                ToolResultContentBlock::Json(json) => Some(json!({ "json": from_document(json) })),
                ToolResultContentBlock::Text(text) => Some(json!({ "text": text })),
                _ => dropped("part"),
            });
            let kind = result.r#type().map(str::to_owned);
            Some(result_of(result.tool_use_id().to_owned(), kind, result.status(), content.collect()))
        }
        ContentBlock::Image(_) => dropped("image"),
        _ => dropped("other"),
    }
}

/// The result of a tool that the provider has run. Without a status it is a success.
pub(super) fn result_of(
    tool_use_id: String,
    kind: Option<String>,
    status: Option<&ToolResultStatus>,
    content: Vec<Value>,
) -> Block {
    let status = if status == Some(&ToolResultStatus::Error) { Status::Error } else { Status::Success };
    Block::ToolResult(ToolResult { tool_use_id, status, content, kind })
}

/// Reasoning as Converse writes it in JSON.
pub(super) fn reasoning_text(text: &str, signature: Option<&str>) -> Block {
    let mut reasoning = json!({ "text": text });
    if let Some(signature) = signature {
        reasoning["signature"] = signature.into();
    }
    Block::Other(json!({"reasoningContent": {"reasoningText": reasoning}}))
}

/// Reasoning that the provider has encrypted.
pub(super) fn redacted(bytes: &[u8]) -> Block {
    Block::Other(json!({"reasoningContent": {"redactedContent": STANDARD.encode(bytes)}}))
}

/// The tokens of a reply. Bedrock counts with signs, and never below zero.
pub(super) fn usage(usage: &TokenUsage) -> Usage {
    let count = |tokens: i32| u64::try_from(tokens).unwrap_or_default();
    Usage {
        input_tokens: count(usage.input_tokens()),
        output_tokens: count(usage.output_tokens()),
        cache_read_input_tokens: count(usage.cache_read_input_tokens().unwrap_or_default()),
        cache_write_input_tokens: count(usage.cache_write_input_tokens().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An imported history may hold a picture.
    #[test]
    fn a_message_is_never_empty_because_its_blocks_cannot_be_carried() {
        let picture = Block::Other(json!({"image": {"format": "png", "source": {"bytes": "AA=="}}}));
        for role in [Role::User, Role::Assistant] {
            let sent = messages(&[Message { role, content: vec![picture.clone()] }]).expect("a message");
            let [ContentBlock::Text(text)] = sent[0].content() else { panic!("{sent:?}") };
            assert_eq!(text, NOTHING_LEFT);
        }
    }
}
