//! What a forwarded Converse event holds: its form, its calls, and what speaks against running them.
//!
//! Whoever takes a response apart may forward any piece of it. A call stands at one place of the event (a block, a
//! message, a list), and whatever any part around it says counts: a role, a stop reason, the mark of a server tool. The
//! data inside of calls and results is never looked at.

use serde_json::Value;

use super::{Event, Refusal, spelling::Spelling};
use crate::{
    call::kind_of,
    outcome::{Failure, FailureKind},
};

/// The form of the event, which the answer takes too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `{"toolUse": {…}}`.
    Block,
    /// What is in a block.
    Bare,
    /// Blocks without a message.
    List,
    /// A message, or a whole response.
    Message,
}

/// Keys that tell the spelling, wherever they stand.
const KEYS: [&str; 11] =
    ["output", "message", "role", "content", "stopReason", "toolUse", "toolUseId", "name", "input", "type", SESSION];

/// Where the sender says the conversation, as beside a return of control. Converse itself has none.
const SESSION: &str = "sessionId";

/// The form of the event and its spelling, if it is one of Converse's.
pub(super) fn form(event: &Event) -> Option<(Form, Spelling)> {
    Spelling::ALL.into_iter().find_map(|spelling| Some((form_in(event, spelling)?, spelling)))
}

fn form_in(event: &Event, spelling: Spelling) -> Option<Form> {
    let body = &event.body;
    if body.is_array() {
        return (!tool_uses(body, spelling).is_empty()).then_some(Form::List);
    }
    event.fields()?;
    if spelling.get(body, "toolUse").is_some() {
        Some(Form::Block)
    } else if spelling.get(body, "toolUseId").is_some() && spelling.get(body, "name").is_some() {
        Some(Form::Bare)
    } else {
        message(body, spelling).is_some_and(|message| is_message(message, spelling)).then_some(Form::Message)
    }
}

/// The message of a whole response, or the body as a message.
fn message(body: &Value, spelling: Spelling) -> Option<&Value> {
    match spelling.get(body, "output") {
        Some(output) => spelling.get(output, "message"),
        None => Some(body),
    }
}

fn is_message(message: &Value, spelling: Spelling) -> bool {
    let has_role = spelling.get(message, "role").is_some_and(Value::is_string);
    spelling.get(message, "content").is_some_and(|content| has_role || !tool_uses(content, spelling).is_empty())
}

/// What the blocks hold under `toolUse`. Some serialisers write a union with `null` for each member that it is not.
fn tool_uses(blocks: &Value, spelling: Spelling) -> Vec<&Value> {
    blocks.as_array().into_iter().flatten().filter_map(|block| tool_use(block, spelling)).collect()
}

fn tool_use(block: &Value, spelling: Spelling) -> Option<&Value> {
    spelling.get(block, "toolUse").filter(|tool_use| !tool_use.is_null())
}

/// The calls of an event.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    /// The `toolUse` of each call that is ours to run.
    pub(super) tool_uses: Vec<&'a Value>,
    /// The conversation that they belong to, if the sender has said it.
    pub(super) conversation: Option<&'a str>,
    /// Why none of them may run.
    pub(super) objection: Option<Failure>,
}

impl<'a> Asked<'a> {
    /// The calls of a body of this form. A message may have none; an event that is one call may not.
    pub(super) fn of(form: Form, spelling: Spelling, body: &'a Value) -> Result<Self, Refusal> {
        let blocks = blocks(form, spelling, body)?;
        let asked = asked(form, spelling, body, &blocks);
        let all = || asked.iter().map(|(_, tool_use)| *tool_use);
        let parts: Vec<_> = levels(body, spelling).into_iter().chain(blocks.iter().copied()).chain(all()).collect();
        refuse_mixed(&parts, spelling)?;
        refuse_shapeless(all(), spelling)?;
        refuse_scattered(spelling, body, &blocks, all())?;
        let conversation = conversation(spelling, body, &parts)?;
        let is_servers = |part: &Value| spelling.get(part, "type").is_some_and(|kind| kind == "server_tool_use");
        let ours = asked.iter().filter(|(block, tool_use)| !is_servers(block) && !is_servers(tool_use));
        let tool_uses: Vec<_> = ours.map(|(_, tool_use)| *tool_use).collect();
        if tool_uses.is_empty() && matches!(form, Form::Bare | Form::Block) {
            let text =
                "The toolUse is of the type server_tool_use: its provider runs it, and nothing is to be run here.";
            return Err(Refusal(String::from(text)));
        }
        Ok(Self { tool_uses, conversation, objection: objection(form, spelling, body, &parts) })
    }
}

/// Each `toolUse` with the block around it, or with itself where there is none.
fn asked<'a>(form: Form, spelling: Spelling, body: &'a Value, blocks: &[&'a Value]) -> Vec<(&'a Value, &'a Value)> {
    match form {
        Form::Bare => vec![(body, body)],
        Form::Block => spelling.get(body, "toolUse").map(|tool_use| (body, tool_use)).into_iter().collect(),
        Form::List | Form::Message => {
            blocks.iter().filter_map(|block| Some((*block, tool_use(block, spelling)?))).collect()
        }
    }
}

/// The blocks that the body holds.
pub(super) fn blocks(form: Form, spelling: Spelling, body: &Value) -> Result<Vec<&Value>, Refusal> {
    let list = match form {
        Form::Bare | Form::Block => None,
        Form::List => Some(body),
        Form::Message => content(message(body, spelling).unwrap_or(&Value::Null), spelling)?,
    };
    Ok(list.and_then(Value::as_array).into_iter().flatten().collect())
}

/// The content of a message, if it is Converse's: calls in another API's form would be left unanswered.
fn content(message: &Value, spelling: Spelling) -> Result<Option<&Value>, Refusal> {
    let content = spelling.get(message, "content").filter(|content| !content.is_null());
    let is_anthropic = |block: &Value| block["type"] == "tool_use";
    if content.and_then(Value::as_array).is_some_and(|blocks| blocks.iter().any(is_anthropic)) {
        let text = "The message has `tool_use` blocks of Anthropic's Messages API. Converse's blocks are `toolUse`.";
        Err(Refusal(String::from(text)))
    } else if message.get("tool_calls").is_some_and(|calls| !calls.is_null()) {
        let text = "The message has the `tool_calls` of a Chat Completions API. Converse's blocks are `toolUse`.";
        Err(Refusal(String::from(text)))
    } else if content.is_none_or(Value::is_array) {
        Ok(content)
    } else {
        Err(Refusal(String::from("The content of the message must be a list of blocks.")))
    }
}

/// The event, and what is in it down to the message.
fn levels(value: &Value, spelling: Spelling) -> Vec<&Value> {
    let inner = ["output", "message"].into_iter().filter_map(|name| spelling.get(value, name));
    std::iter::once(value).chain(inner.flat_map(|inner| levels(inner, spelling))).collect()
}

/// Refuses an event in two spellings: what is written in the other one would be overlooked, a call or a stop reason.
fn refuse_mixed(parts: &[&Value], spelling: Spelling) -> Result<(), Refusal> {
    if parts.iter().any(|part| spelling.other().has_any(part, &KEYS)) {
        let text = "The event has keys in the API's spelling (`toolUse`) and in Step Functions' (`ToolUse`). Use one.";
        return Err(Refusal(String::from(text)));
    }
    Ok(())
}

/// Refuses an event where something else than one call stands under a `toolUse`: several, or a call as text.
fn refuse_shapeless<'a>(mut tool_uses: impl Iterator<Item = &'a Value>, spelling: Spelling) -> Result<(), Refusal> {
    let Some(odd) = tool_uses.find(|tool_use| !tool_use.is_object()) else { return Ok(()) };
    let [tool_use, id, name, input] = ["toolUse", "toolUseId", "name", "input"].map(|name| spelling.key(name));
    Err(Refusal(format!(
        "A `{tool_use}` is {}, and must be an object with {id}, {name} and {input}. For several calls send a list of blocks, \
         `[{{\"{tool_use}\": {{…}}}}, …]`. No call of the event was run.",
        kind_of(odd)
    )))
}

/// Refuses an event with calls at two places, as a block that is a message too: the answer has the form of one of them,
/// and the calls of the other would be left without a result.
fn refuse_scattered<'a>(
    spelling: Spelling,
    body: &Value,
    blocks: &[&Value],
    mut tool_uses: impl Iterator<Item = &'a Value>,
) -> Result<(), Refusal> {
    let is_alone = |part: &Value, own: &str| places(part) == usize::from(is_filled(part, spelling, own));
    let is_scattered = body.is_object() && places(body) > 1
        || !blocks.iter().all(|block| is_alone(block, "toolUse"))
        || !tool_uses.all(|tool_use| is_alone(tool_use, "toolUseId"));
    if is_scattered {
        let text = "The event has tool calls at more than one place, and one form of answer cannot hold the results of \
                    all. Send one block, one list of blocks, one message or one response. No call of the event was run.";
        return Err(Refusal(String::from(text)));
    }
    Ok(())
}

/// The conversation: what the sender has put beside a block, a message or a response. Within a list or a call it counts
/// for nothing, for there stands what a provider has made of a model's words. One that would be overlooked refuses the
/// event, since keys would count among more than was meant.
fn conversation<'a>(spelling: Spelling, body: &'a Value, parts: &[&'a Value]) -> Result<Option<&'a str>, Refusal> {
    let said = |part: &'a Value| spelling.get(part, SESSION).filter(|id| !id.is_null());
    let id = levels(body, spelling).into_iter().find_map(said);
    let other = parts.iter().copied().filter_map(said).find(|other| Some(*other) != id);
    let text = match (id, other) {
        (None, None) => return Ok(None),
        (Some(Value::String(id)), None) => return Ok(Some(id)),
        (Some(_), None) => "The sessionId of the event is no text.",
        (Some(_), Some(_)) => "The event has several values of sessionId, and they are not the same. Send one.",
        (None, Some(_)) => {
            "The event has a sessionId inside of a toolUse or of a list of blocks, where it counts for nothing. Put it beside: \
             at the top of a block, a message or a response."
        }
    };
    Err(Refusal(String::from(text)))
}

/// At how many places of this part calls may stand, in either spelling.
fn places(part: &Value) -> usize {
    if let Some(parts) = part.as_array() {
        return parts.iter().map(places).sum();
    }
    let here =
        |spelling| ["toolUse", "toolUseId", "content"].into_iter().filter(move |key| is_filled(part, spelling, key));
    let inner = |spelling: Spelling| ["output", "message"].into_iter().filter_map(move |key| spelling.get(part, key));
    let in_spelling = |spelling| here(spelling).count() + inner(spelling).map(places).sum::<usize>();
    Spelling::ALL.into_iter().map(in_spelling).sum()
}

fn is_filled(part: &Value, spelling: Spelling, key: &str) -> bool {
    spelling.get(part, key).is_some_and(|value| !value.is_null())
}

/// Why no call of this event may run: one part that objects is enough.
fn objection(form: Form, spelling: Spelling, body: &Value, parts: &[&Value]) -> Option<Failure> {
    let roles = || parts.iter().filter_map(|part| spelling.get(part, "role")).filter(|role| !role.is_null());
    let has_role = || message(body, spelling).is_some_and(|message| is_filled(message, spelling, "role"));
    if roles().any(|role| role != "assistant") || form == Form::Message && !has_role() {
        let text = "The tool calls are not in a message of the assistant, so they were not run. Only the assistant's \
                    calls are.";
        return Some(Failure::new(FailureKind::Rejected, text));
    }
    // Anthropic's own API writes `stop_reason`, and a program that speaks both may carry either along.
    let reasons = |part| [spelling.get(part, "stopReason"), part.get("stop_reason")].into_iter().flatten();
    parts.iter().flat_map(|part: &&Value| reasons(part)).find_map(cut_short)
}

/// Why calls of a response that ended so may not run. Only `tool_use` promises whole calls. `end_turn` is let pass,
/// because some models end so with whole calls in the message; a reason that is not known is not.
fn cut_short(reason: &Value) -> Option<Failure> {
    let (kind, what) = match reason.as_str() {
        None if reason.is_null() => return None,
        Some("tool_use" | "end_turn") => return None,
        Some("max_tokens") => (FailureKind::InvalidInput, "was cut off at its limit of tokens (max_tokens)"),
        Some("model_context_window_exceeded") => {
            (FailureKind::InvalidInput, "was cut off, because the context window is full")
        }
        Some("stop_sequence") => (FailureKind::InvalidInput, "was cut off at a stop sequence"),
        Some("malformed_tool_use" | "malformed_model_output") => {
            (FailureKind::InvalidInput, "was cut off, because a tool call in it is malformed")
        }
        Some("guardrail_intervened" | "content_filtered") => {
            (FailureKind::Rejected, "was cut off by a guardrail or a content filter")
        }
        _ => (FailureKind::InvalidInput, "did not end as one with tool calls does, and may be cut off"),
    };
    let next = if kind == FailureKind::Rejected {
        "Do not make the call again as it is."
    } else {
        "Make the call again, in full."
    };
    Some(Failure::new(kind, format!("The message with this call {what}, so the call was not run. {next}")))
}
