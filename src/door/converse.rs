//! The door of the Converse API: the program that talks to the model forwards its `toolUse` blocks.
//!
//! | event | answer |
//! | --- | --- |
//! | a block `{"toolUse": {…}}` | `{"toolResult": {…}}` |
//! | what is in it, `{"toolUseId", "name", "input"}` | `{"toolUseId", "status", "content"}` |
//! | a list of blocks | a list of `{"toolResult": {…}}` |
//! | a message, or a whole response | `{"role": "user", "content": [{"toolResult": {…}}, …]}`: the next message |
//!
//! Each `toolUse` gets exactly one `toolResult`, in the order of the request; Bedrock refuses a conversation where one
//! is missing, doubled or malformed, for good. Hence a `toolUseId` that no legal result could carry refuses the event,
//! and two calls with one id get one error. A server tool's block is the provider's to run, and is skipped.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{
    Door, Event, REPLAYED, Refusal, Request, bounded,
    fit::{self, Spare},
    nameless,
};
use crate::{
    call::{Arguments, Call},
    outcome::{Failure, FailureKind, Outcome},
    tool::Toolbox,
};

/// Forwarded Converse blocks.
pub(super) const DOOR: Door = Door {
    name: "converse",
    // For each result. What fits a record (a DynamoDB item, 400 KB) can be replayed in full; and a model's context has
    // no room for more.
    limit: 350_000,
    recognises,
    decode,
    definitions,
};

/// For all results of one answer: under the 6 MB that Lambda carries.
const ANSWER_LIMIT: usize = 5_500_000;

/// The form of the event, which the answer takes too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Block,
    Bare,
    List,
    Message,
}

fn recognises(event: &Event) -> bool {
    form(event).is_some()
}

fn form(event: &Event) -> Option<Form> {
    if event.body.is_array() {
        return (!tool_uses(&event.body).is_empty()).then_some(Form::List);
    }
    let fields = event.fields()?;
    if fields.contains_key("toolUse") {
        Some(Form::Block)
    } else if fields.contains_key("toolUseId") && fields.contains_key("name") {
        Some(Form::Bare)
    } else {
        is_message(message(&event.body)).then_some(Form::Message)
    }
}

/// The message of a whole response, or the body as a message.
fn message(body: &Value) -> &Value {
    body.get("output").map_or(body, |output| &output["message"])
}

fn is_message(message: &Value) -> bool {
    let has_role = message.get("role").is_some_and(Value::is_string);
    message.get("content").is_some_and(|content| has_role || !tool_uses(content).is_empty())
}

/// What the blocks hold under `toolUse`.
fn tool_uses(blocks: &Value) -> Vec<&Value> {
    blocks.as_array().into_iter().flatten().filter_map(|block| block.get("toolUse")).collect()
}

fn decode(event: Event, toolbox: &Toolbox) -> Result<Request, Refusal> {
    let form = form(&event).ok_or_else(|| Refusal(String::from("The event holds no toolUse.")))?;
    let body = event.body;
    let objection = objection(form, &body);
    let calls = calls(&asked(form, &body)?, objection.as_ref(), toolbox)?;
    let ids: Vec<_> = calls.iter().filter_map(|call| call.id.clone()).collect();
    let spares: Vec<_> = calls.iter().map(|call| Spare::of(toolbox, &call.tool)).collect();
    let encode = move |outcomes| answer(form, results(&ids, &spares, outcomes));
    Ok(Request { calls, encode: Box::new(encode) })
}

/// The calls that are ours to run. A message may have none; an event that is one call may not.
fn asked(form: Form, body: &Value) -> Result<Vec<&Value>, Refusal> {
    let all = match form {
        Form::Bare => vec![body],
        Form::Block => vec![&body["toolUse"]],
        Form::List => tool_uses(body),
        Form::Message => tool_uses(content(message(body))?),
    };
    let ours: Vec<_> = all.into_iter().filter(|asked| asked["type"] != "server_tool_use").collect();
    if ours.is_empty() && matches!(form, Form::Bare | Form::Block) {
        let text = "The toolUse is of the type server_tool_use: its provider runs it, and nothing is to be run here.";
        return Err(Refusal(String::from(text)));
    }
    Ok(ours)
}

/// The content of a message, if it is Converse's: calls in another API's form would be left unanswered.
fn content(message: &Value) -> Result<&Value, Refusal> {
    let content = &message["content"];
    let is_anthropic = |block: &Value| block["type"] == "tool_use";
    if content.as_array().is_some_and(|blocks| blocks.iter().any(is_anthropic)) {
        let text = "The message has `tool_use` blocks of Anthropic's Messages API. Converse's blocks are `toolUse`.";
        Err(Refusal(String::from(text)))
    } else if message.get("tool_calls").is_some_and(|calls| !calls.is_null()) {
        let text = "The message has the `tool_calls` of a Chat Completions API. Converse's blocks are `toolUse`.";
        Err(Refusal(String::from(text)))
    } else if content.is_array() || content.is_null() {
        Ok(content)
    } else {
        Err(Refusal(String::from("The content of the message must be a list of blocks.")))
    }
}

/// Why no call of this event may run.
fn objection(form: Form, body: &Value) -> Option<Failure> {
    if form == Form::Message && message(body)["role"] != "assistant" {
        let text = "The tool calls are not in a message of the assistant, so they were not run. Only the assistant's \
                    calls are.";
        return Some(Failure::new(FailureKind::Rejected, text));
    }
    body.get("stopReason").and_then(cut_short)
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

/// One call for each id.
fn calls(asked: &[&Value], objection: Option<&Failure>, toolbox: &Toolbox) -> Result<Vec<Call>, Refusal> {
    let mut calls: Vec<Call> = Vec::new();
    let mut places = HashMap::new();
    for (number, tool_use) in asked.iter().enumerate() {
        let id = legal_id(tool_use).ok_or_else(|| refused_id(number + 1, tool_use))?;
        if let Some(&place) = places.get(id) {
            let first: &mut Call = &mut calls[place];
            first.arguments = Arguments::default();
            first.objection = Some(objection.cloned().unwrap_or_else(|| doubled(id)));
        } else {
            places.insert(id, calls.len());
            calls.push(call(id, tool_use, objection, toolbox));
        }
    }
    Ok(calls)
}

fn call(id: &str, tool_use: &Value, objection: Option<&Failure>, toolbox: &Toolbox) -> Call {
    let name = tool_use["name"].as_str();
    Call {
        tool: name.map(bounded).unwrap_or_default(),
        arguments: Arguments::from_json(tool_use["input"].clone()),
        id: Some(String::from(id)),
        objection: objection.cloned().or_else(|| name.is_none().then(|| nameless("The call", toolbox))),
        ..Call::default()
    }
}

/// `[a-zA-Z0-9_.:-]{1,64}`, as the service model of bedrock-runtime has it.
fn legal_id(tool_use: &Value) -> Option<&str> {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
    let id = tool_use.get("toolUseId")?.as_str()?;
    ((1..=64).contains(&id.len()) && id.bytes().all(is_legal)).then_some(id)
}

fn refused_id(number: usize, tool_use: &Value) -> Refusal {
    let what = match tool_use.get("toolUseId") {
        None => String::from("is missing"),
        Some(Value::String(id)) => format!("is {:?}", bounded(id)),
        Some(_) => String::from("is no text"),
    };
    Refusal(format!(
        "The toolUseId of call {number} {what}. It must be 1 to 64 of the characters a-z A-Z 0-9 _ . : - because Bedrock \
         refuses a toolResult with any other. No call of the event was run."
    ))
}

fn doubled(id: &str) -> Failure {
    let text = format!(
        "Several calls of this message have the toolUseId {id:?}, and only one result can be given for an id, so none of \
         them was run. Make each call again, with an id of its own."
    );
    Failure::new(FailureKind::InvalidInput, text)
}

/// The results in the order of the calls: `{toolUseId, status, content}`.
fn results(ids: &[String], spares: &[Option<Spare>], outcomes: Vec<Outcome>) -> Vec<Value> {
    let mut left = ANSWER_LIMIT;
    let each = ids.iter().zip(spares).zip(outcomes);
    each.map(|((id, spare), outcome)| {
        let size = match &outcome {
            Outcome::Success { result, .. } => result.to_string().len(),
            Outcome::Failure(_) => 0,
        };
        let outcome = fit::within(outcome, spare.as_ref(), size, left);
        left -= if size > left { 0 } else { size };
        tool_result(id, outcome)
    })
    .collect()
}

fn tool_result(id: &str, outcome: Outcome) -> Value {
    let (status, content) = match outcome {
        Outcome::Success { result, replayed } => {
            let note = replayed.then(|| json!({ "text": REPLAYED }));
            ("success", std::iter::once(block(&result)).chain(note).collect())
        }
        // Bedrock refuses an error without content, and a blank text.
        Outcome::Failure(failure) => ("error", vec![json!({ "text": failure.message() })]),
    };
    json!({ "toolUseId": id, "status": status, "content": Value::Array(content) })
}

/// A result as a content block. `json` must be an object, and Bedrock refuses one with a key `__type` at any depth
/// ("Provide a json object for the field"), after which every later turn of the conversation fails too.
fn block(result: &Value) -> Value {
    if has_dunder_type(result) {
        json!({ "text": result.to_string() })
    } else if result.is_object() {
        json!({ "json": result })
    } else {
        json!({ "json": { "result": result } })
    }
}

fn has_dunder_type(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(name, value)| name == "__type" || has_dunder_type(value)),
        Value::Array(items) => items.iter().any(has_dunder_type),
        _ => false,
    }
}

fn answer(form: Form, results: Vec<Value>) -> Value {
    let wrapped = |result| json!({ "toolResult": result });
    let mut results = results.into_iter();
    match form {
        Form::Bare => results.next().unwrap_or_default(),
        Form::Block => results.next().map(wrapped).unwrap_or_default(),
        Form::List => results.map(wrapped).collect(),
        Form::Message => json!({ "role": "user", "content": results.map(wrapped).collect::<Vec<_>>() }),
    }
}

/// A `toolConfig`.
fn definitions(toolbox: &Toolbox) -> Value {
    let tools = toolbox.iter().map(|entry| {
        let tool = entry.definition();
        let schema = json!({ "json": tool.schema });
        json!({ "toolSpec": { "name": tool.name, "description": tool.description, "inputSchema": schema } })
    });
    json!({ "tools": tools.collect::<Vec<_>>() })
}
