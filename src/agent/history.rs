//! A history that Bedrock accepts, whatever the model has written and however a turn has ended.
//!
//! A conversation with one malformed message is refused for good, so that nothing goes in unchecked:
//!
//! | found | becomes |
//! | --- | --- |
//! | a blank text, an empty message | left out |
//! | an id that is not 1 to 64 of `a-z A-Z 0-9 _ . : -`, or that was there before | an alias, the same for call and result |
//! | a tool's name that is not 1 to 64 of `a-z A-Z 0-9 _ -` | an alias that is no tool's name |
//! | arguments that are no object, or hold a key `__type` | an object around them |
//! | a call without result | gets one: interrupted |
//! | a result that nobody asked for, a second one | left out |
//! | a call that the provider runs, without its result in the same message | left out: a search that was cut off is never made up |
//! | two messages of one speaker | one message |
//! | messages of the model before the first of the person | left out |

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    conversation::{Block, Message, Role, Status, ToolResult, ToolUse},
    tools::Tools,
    words,
};
use crate::{
    door::tool_result::{self, has_dunder_type, is_legal_id, is_legal_name},
    idempotency::hex,
};

/// Whether a call of this type is one that the provider runs, and we must not. Bedrock marks those with `server_tool_use`;
/// a type that is not known may be the next mark. A client's call has none (some write Anthropic's `tool_use`).
fn is_providers(kind: Option<&str>) -> bool {
    kind.is_some_and(|kind| kind != "tool_use")
}

/// A call that a message asks for: with the id that its result must have, but the name and arguments that the model wrote.
#[derive(Clone, PartialEq)]
pub(super) struct Wanted {
    /// The id as the model wrote it.
    pub original: String,
    pub id: String,
    pub tool: String,
    pub input: Value,
}

/// A message of the model, made valid, and the calls in it that are ours to run. `seen` are the ids that are in use.
pub(super) fn clean(message: Message, tools: &Tools, mut seen: BTreeSet<String>) -> (Message, Vec<Wanted>) {
    let mut wanted = Vec::new();
    let mut of_server: Vec<(String, String)> = Vec::new();
    let mut content = Vec::new();
    for block in message.content.into_iter().filter_map(Block::tidy) {
        match block {
            Block::ToolUse(tool_use) => {
                let id = alias(&tool_use.tool_use_id, &seen);
                seen.insert(id.clone());
                let ToolUse { tool_use_id: original, name, input, kind } = tool_use;
                let shown = ToolUse {
                    tool_use_id: id.clone(),
                    name: legal_name(&name, tools),
                    input: legal_input(&input),
                    kind: kind.clone(),
                };
                content.push(Block::ToolUse(shown));
                if is_providers(kind.as_deref()) {
                    of_server.push((original, id));
                } else {
                    wanted.push(Wanted { original, id, tool: name, input });
                }
            }
            // Only a tool of the provider has its result in the model's own message.
            Block::ToolResult(result) => {
                if let Some(at) = of_server.iter().position(|(original, _)| *original == result.tool_use_id) {
                    let (_, id) = of_server.remove(at);
                    content.push(Block::ToolResult(ToolResult { tool_use_id: id, ..result }));
                }
            }
            other => content.push(other),
        }
    }
    pair(&mut content);
    // Reasoning alone is no message.
    if content.iter().all(Block::is_reasoning) {
        content.clear();
    }
    (Message { role: Role::Assistant, content }, wanted)
}

/// Of what the provider runs, keeps calls that have a result after them, and results of those calls. Nobody else can give
/// the result, so that a call without one would stay open for good.
fn pair(content: &mut Vec<Block>) {
    let (mut open, mut alone) = (Vec::new(), Vec::new());
    for (index, block) in content.iter_mut().enumerate() {
        match block {
            Block::ToolUse(asked) if is_providers(asked.kind.as_deref()) => {
                open.push((asked.tool_use_id.clone(), index));
            }
            Block::ToolResult(result) => match open.iter().position(|(id, _)| *id == result.tool_use_id) {
                Some(at) => {
                    open.remove(at);
                    result.content = legal_content(std::mem::take(&mut result.content), result.status);
                }
                None => alone.push(index),
            },
            _ => {}
        }
    }
    alone.extend(open.into_iter().map(|(_, index)| index));
    let mut index = 0..;
    content.retain(|_| index.next().is_none_or(|index| !alone.contains(&index)));
}

/// Messages as another version has kept them. Their number stays, and what is still open in the last one.
pub(super) fn mend(messages: &mut [Message]) {
    for message in messages.iter_mut().filter(|message| message.role == Role::Assistant) {
        pair(&mut message.content);
        if message.content.iter().all(Block::is_reasoning) {
            message.content.push(Block::Text(String::from("(The rest of this message was cut off.)")));
        }
    }
}

/// The ids of all calls so far.
pub(super) fn ids(messages: &[Message]) -> BTreeSet<String> {
    messages.iter().flat_map(Message::tool_uses).map(|tool_use| tool_use.tool_use_id.clone()).collect()
}

/// Puts a block into the person's last message, or into a new one if the model spoke last.
pub(super) fn say(messages: &mut Vec<Message>, block: Block) {
    match messages.last_mut() {
        Some(last) if last.role == Role::User => last.content.push(block),
        _ => messages.push(Message { role: Role::User, content: vec![block] }),
    }
}

/// The messages, made valid.
pub(super) fn repaired(messages: Vec<Message>, tools: &Tools) -> Vec<Message> {
    let mut valid: Vec<Message> = Vec::new();
    let mut open: Vec<Wanted> = Vec::new();
    for message in messages {
        match message.role {
            Role::User => answer(&mut valid, std::mem::take(&mut open), message.content, tools),
            Role::Assistant if valid.is_empty() => {}
            Role::Assistant => {
                answer(&mut valid, std::mem::take(&mut open), Vec::new(), tools);
                let (message, wanted) = clean(message, tools, ids(&valid));
                open = wanted;
                match valid.last_mut() {
                    Some(last) if last.role == Role::Assistant => last.content.extend(message.content),
                    _ if message.content.is_empty() => {}
                    _ => valid.push(message),
                }
            }
        }
    }
    answer(&mut valid, open, Vec::new(), tools);
    valid
}

/// Adds a message of the person: first the results of what is open, each once and in order, then the rest.
fn answer(valid: &mut Vec<Message>, open: Vec<Wanted>, content: Vec<Block>, tools: &Tools) {
    let (mut results, mut rest) = (Vec::new(), Vec::new());
    for block in content.into_iter().filter_map(Block::tidy) {
        match block {
            Block::ToolResult(result) => results.push(result),
            Block::ToolUse(_) => {}
            other => rest.push(other),
        }
    }
    for wanted in open {
        let given =
            results.iter().position(|result| result.tool_use_id == wanted.original).map(|at| results.remove(at));
        let result = given.map_or_else(
            || error(&wanted.id, &interrupted(tools, &wanted.tool)),
            |result| ToolResult { tool_use_id: wanted.id.clone(), ..legal_result(result) },
        );
        say(valid, Block::ToolResult(result));
    }
    for block in rest {
        say(valid, block);
    }
}

/// A result that says why there is none.
pub(super) fn error(id: &str, text: &str) -> ToolResult {
    let content = vec![json!({ "text": text })];
    ToolResult { tool_use_id: id.to_owned(), status: Status::Error, content, kind: None }
}

/// What is said of a call whose end is not known.
fn interrupted(tools: &Tools, tool: &str) -> String {
    let (text, closing) = words::interrupted(tools.get(tool));
    format!("{text} {closing}")
}

/// A result with content that Bedrock takes.
pub(super) fn legal_result(result: ToolResult) -> ToolResult {
    ToolResult { content: legal_content(result.content, result.status), ..result }
}

fn legal_content(content: Vec<Value>, status: Status) -> Vec<Value> {
    let block = |block: Value| match block.get("json") {
        Some(json) => Some(tool_result::content(json)),
        None => Some(block).filter(|block| {
            let is_filled = |text: &Value| text.as_str().is_some_and(|text| !text.trim().is_empty());
            block.as_object().is_some_and(|fields| fields.len() == 1) && block.get("text").is_none_or(is_filled)
        }),
    };
    let mut content: Vec<_> = content.into_iter().filter_map(block).collect();
    if content.is_empty() {
        let text = match status {
            Status::Success => "(The result is empty.)",
            Status::Error => "The call failed, without a reason.",
        };
        content.push(json!({ "text": text }));
    }
    content
}

/// The id, if it is legal and not in use; else another one, the same for the same id and ids in use.
fn alias(id: &str, seen: &BTreeSet<String>) -> String {
    let legal = if is_legal_id(id) { id.to_owned() } else { format!("id-{}", digest(id)) };
    if !seen.contains(&legal) {
        return legal;
    }
    let stem: String = legal.chars().take(50).collect();
    let mut number = 2_u32;
    loop {
        let other = format!("{stem}.{number}");
        if !seen.contains(&other) {
            return other;
        }
        number += 1;
    }
}

/// The name, if it is legal; else one that no tool has.
fn legal_name(name: &str, tools: &Tools) -> String {
    if is_legal_name(name) {
        return name.to_owned();
    }
    let shown: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')).take(40).collect();
    let shown = if shown.is_empty() { String::from("nameless") } else { shown };
    if tools.get(&shown).is_some() || shown == "nameless" { format!("{shown}-{}", &digest(name)[..8]) } else { shown }
}

fn legal_input(input: &Value) -> Value {
    match input {
        Value::Null => json!({}),
        other if has_dunder_type(other) => json!({ "input": other.to_string() }),
        Value::Object(_) => input.clone(),
        other => json!({ "input": other }),
    }
}

fn digest(text: &str) -> String {
    hex(&Sha256::digest(text))[..32].to_owned()
}
