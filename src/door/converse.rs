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
//!
//! A `sessionId` beside what is forwarded names the conversation. Converse has none, so that no answer repeats it.
//!
//! Step Functions writes every key with a capital (`ToolUse`), and is answered in the same way.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{
    ANSWER_LIMIT, Door, Event, Memory, Refusal, Request, as_sent, bounded,
    converse_form::{Asked, Form, blocks, form},
    expressible,
    fit::{self, Spare},
    nameless,
    spelling::Spelling,
    strict,
    tool_result::{self, is_legal_id},
};
use crate::{
    call::{Arguments, Call},
    outcome::{Failure, FailureKind, Outcome},
    tool::{Caller, Toolbox},
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
    faults: expressible::on_converse,
};

/// The most calls of one message that are run. They run at once, and what their tools hold is in memory together.
const MOST_CALLS: usize = 256;
/// The most calls that are still answered, each with the reason why it was not run, so that the conversation can go on. No
/// model makes more; whoever sends them gets an error.
const MOST_ANSWERED: usize = 1_024;

fn recognises(event: &Event) -> bool {
    form(event).is_some()
}

fn decode(event: Event, toolbox: &Toolbox) -> Result<Request, Refusal> {
    let (form, spelling) = form(&event).ok_or_else(|| Refusal(String::from("The event holds no toolUse.")))?;
    let body = event.body;
    as_sent(event.flawed, blocks(form, spelling, &body)?)?; // what could not be read may have been a call
    let Asked { tool_uses, conversation, objection } = Asked::of(form, spelling, &body)?;
    let objection = objection.or(too_many(tool_uses.len())?);
    let caller = Caller::default().with_conversation(conversation.unwrap_or_default());
    let calls = calls(&tool_uses, spelling, objection.as_ref(), toolbox)?;
    let calls: Vec<_> = calls.into_iter().map(|call| Call { caller: caller.clone(), ..call }).collect();
    let ids: Vec<_> = calls.iter().filter_map(|call| call.id.clone()).collect();
    let spares: Vec<_> = calls.iter().map(|call| Spare::of(toolbox, &call.tool)).collect();
    let encode = move |outcomes| answer(form, spelling, results(spelling, &ids, &spares, outcomes));
    Ok(Request { calls, encode: Box::new(encode), memory: Memory::Table })
}

/// Why no call of so many may run: to run some of them would be to choose.
fn too_many(calls: usize) -> Result<Option<Failure>, Refusal> {
    let text = format!("The message holds {calls} calls, and {MOST_CALLS} are served at most. None of them was run.");
    if calls > MOST_ANSWERED {
        return Err(Refusal(text));
    }
    let failure = || Failure::new(FailureKind::InvalidInput, text + " Make fewer calls at once.");
    Ok((calls > MOST_CALLS).then(failure))
}

/// One call for each id.
fn calls(
    asked: &[&Value],
    spelling: Spelling,
    objection: Option<&Failure>,
    toolbox: &Toolbox,
) -> Result<Vec<Call>, Refusal> {
    let mut calls: Vec<Call> = Vec::new();
    let mut places = HashMap::new();
    for (number, tool_use) in asked.iter().enumerate() {
        let sent = spelling.get(tool_use, "toolUseId");
        let id =
            sent.and_then(Value::as_str).filter(|id| is_legal_id(id)).ok_or_else(|| refused_id(number + 1, sent))?;
        if let Some(&place) = places.get(id) {
            let first: &mut Call = &mut calls[place];
            first.arguments = Arguments::default();
            first.objection = Some(objection.cloned().unwrap_or_else(|| doubled(id)));
        } else {
            places.insert(id, calls.len());
            let objection = objection.cloned().or_else(|| strange(spelling.get(tool_use, "type")));
            calls.push(call(id, [spelling.get(tool_use, "name"), spelling.get(tool_use, "input")], objection, toolbox));
        }
    }
    Ok(calls)
}

fn call(id: &str, [name, input]: [Option<&Value>; 2], objection: Option<Failure>, toolbox: &Toolbox) -> Call {
    let name = name.and_then(Value::as_str);
    Call {
        tool: name.map(bounded).unwrap_or_default(),
        arguments: Arguments::from_json(input.cloned().unwrap_or_default()),
        id: Some(String::from(id)),
        objection: objection.or_else(|| name.is_none().then(|| nameless("The call", toolbox))),
        ..Call::default()
    }
}

/// What is said of a call of a type that is not known. A client's call has none (some write Anthropic's `tool_use`); one
/// whose provider may have run it already must not be run a second time here.
fn strange(kind: Option<&Value>) -> Option<Failure> {
    let kind = kind.filter(|kind| !kind.is_null() && *kind != "tool_use")?;
    let name = kind.as_str().map_or_else(|| String::from("that is no text"), |kind| format!("{:?}", bounded(kind)));
    let text = format!("The call has a type {name}, which is not known here, so it was not run.");
    Some(Failure::new(FailureKind::Rejected, text))
}

fn refused_id(number: usize, id: Option<&Value>) -> Refusal {
    let what = match id {
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
fn results(spelling: Spelling, ids: &[String], spares: &[Option<Spare>], outcomes: Vec<Outcome>) -> Vec<Value> {
    let failures = outcomes.iter().filter_map(Outcome::failure);
    let told: usize = failures.map(|failure| Value::from(failure.message()).to_string().len()).sum();
    let mut left = ANSWER_LIMIT.saturating_sub(told); // a failure is never left out, so that it counts first
    let each = ids.iter().zip(spares).zip(outcomes);
    each.map(|((id, spare), outcome)| {
        let size = match &outcome {
            Outcome::Success { result, .. } => tool_result::written(result),
            Outcome::Failure(_) => 0,
        };
        let outcome = fit::beside(outcome, spare.as_ref(), size, left);
        left -= if size > left { 0 } else { size };
        tool_result::spelt(spelling, id, outcome)
    })
    .collect()
}

fn answer(form: Form, spelling: Spelling, results: Vec<Value>) -> Value {
    let wrapped = |result| spelling.object([("toolResult", result)]);
    let mut results = results.into_iter();
    match form {
        Form::Bare => results.next().unwrap_or_default(),
        Form::Block => results.next().map(wrapped).unwrap_or_default(),
        Form::List => results.map(wrapped).collect(),
        Form::Message => spelling.object([("role", "user".into()), ("content", results.map(wrapped).collect())]),
    }
}

/// A `toolConfig`. A tool whose schema Bedrock can enforce is strict.
fn definitions(toolbox: &Toolbox) -> Value {
    let tools = toolbox.iter().map(|entry| {
        let tool = entry.definition();
        let schema = json!({ "json": tool.schema });
        let mut spec = json!({ "name": tool.name, "description": tool.description, "inputSchema": schema });
        if strict::enforceable(&tool.schema) {
            spec["strict"] = true.into();
        }
        json!({ "toolSpec": spec })
    });
    json!({ "tools": tools.collect::<Vec<_>>() })
}
