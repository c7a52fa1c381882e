//! What the two doors of Bedrock Agents share: the one call of an event, and the echo around its answer.

use serde_json::{Map, Value, json};

use super::{
    Event, Memory, Request, bounded,
    fit::{self, Spare},
    parameters::{List, Values, arguments},
};
use crate::{
    call::Call,
    outcome::{Failure, Outcome},
    tool::{Caller, Entry, Toolbox},
};

/// The largest answer of an agent's function. Today's page says 6 MB, older ones said 25 KB, and larger bodies are
/// reported to end the user's turn (dependencyFailedException).
pub(super) const LIMIT: usize = 25_000;

/// The largest body in the answer: the limit without the envelope. The echoed attributes are not counted; they have come
/// the same way.
const BODY_LIMIT: usize = LIMIT - 1_000;

/// The attributes of the session, and those of one prompt.
const SESSION: &str = "sessionAttributes";
const PROMPT: &str = "promptSessionAttributes";

/// The attribute of the session that holds the counts of the conversation.
const COUNTS: &str = "toolCallCounts";

/// The one call of an agent's event. The arguments of a tool that does not exist are not read.
pub(super) fn call(name: &str, lists: &[List<'_>], body: &Value, toolbox: &Toolbox) -> Call {
    let definition = toolbox.get(name).map(Entry::definition);
    Call {
        tool: bounded(name),
        arguments: definition.map(|definition| arguments(lists, definition, Values::Text)).unwrap_or_default(),
        caller: caller(body),
        ..Call::default()
    }
}

/// Who asks: the session, and what the application said with it.
fn caller(body: &Value) -> Caller {
    let session = body.get("sessionId").and_then(Value::as_str).unwrap_or_default();
    let caller = texts(body, SESSION).fold(Caller::default().with_conversation(session), |caller, (name, value)| {
        caller.with_session_attribute(name, value)
    });
    texts(body, PROMPT).fold(caller, |caller, (name, value)| caller.with_prompt_session_attribute(name, value))
}

/// The fields of an object that are texts, as all attributes are.
fn texts<'a>(body: &'a Value, name: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let fields = body.get(name).and_then(Value::as_object).into_iter().flatten();
    fields.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
}

/// The request of an agent's event: `respond` makes the `response` object of a body, which is JSON text, or of a failure.
pub(super) fn request(
    call: Call,
    event: Event,
    toolbox: &Toolbox,
    respond: impl FnOnce(Result<String, Failure>) -> Value + Send + 'static,
) -> Request {
    let came = call.caller.session_attribute(COUNTS).unwrap_or_default().to_owned();
    // Where the session's attributes are not echoed, the counts alone would replace them.
    let is_known = event.body[SESSION].is_null() || can_be_echoed(&event, SESSION);
    let memory = if event.flawed || !is_known { Memory::None } else { Memory::Answer { came, keep } };
    let (echo, spare) = (echo(event), Spare::of(toolbox, &call.tool));
    let encode = move |outcomes: Vec<Outcome>| {
        let Some(outcome) = outcomes.into_iter().next() else { return Value::Null };
        let mut answer = echo;
        answer.insert("response".into(), respond(body(outcome, spare.as_ref())));
        Value::Object(answer)
    };
    Request { calls: vec![call], encode: Box::new(encode), memory }
}

/// Puts the counts of the conversation into the session's attributes, which come back with its next event.
fn keep(answer: &mut Value, counts: &str) {
    answer[SESSION][COUNTS] = counts.into();
}

/// What every answer has, and the attributes if the event had them: an agent without them must not get them.
fn echo(mut event: Event) -> Map<String, Value> {
    let names = [SESSION, PROMPT].into_iter().filter(|name| can_be_echoed(&event, name)).collect::<Vec<_>>();
    let attributes = names.into_iter().map(|name| (String::from(name), event.body[name].take()));
    attributes.chain([(String::from("messageVersion"), json!("1.0"))]).collect()
}

/// Whether the event has these attributes, and they are what Bedrock sends and takes back: a map of texts. An answer with
/// another value would end the user's turn, and without one entry it would take that from the session. Nor are those of
/// an unclear event known: they would replace the session's, and may not be what was sent.
fn can_be_echoed(event: &Event, attributes: &str) -> bool {
    let attributes = event.body.get(attributes).and_then(Value::as_object);
    !event.flawed && attributes.is_some_and(|attributes| attributes.values().all(Value::is_string))
}

/// The bare result as JSON text, which is never blank.
pub(super) fn body(outcome: Outcome, spare: Option<&Spare>) -> Result<String, Failure> {
    let size = match &outcome {
        // The body is a text in JSON, where each quotation mark takes two bytes.
        Outcome::Success { result, .. } => Value::from(result.to_string()).to_string().len(),
        Outcome::Failure(_) => 0,
    };
    match fit::within(outcome, spare, size, BODY_LIMIT) {
        Outcome::Success { result, .. } => Ok(result.to_string()),
        Outcome::Failure(failure) => Err(failure),
    }
}
