//! What the two doors of Bedrock Agents share: the arguments as lists of `{name, type, value}`, and the echo.
//!
//! Agents send every value as text, and sometimes leave out lists, types or names; the import proxy of AgentCore's
//! starter toolkit sends native values instead. Rules for what is odd:
//!
//! | in the event | read as |
//! | --- | --- |
//! | a list that is absent, `null` or empty | no arguments |
//! | a text | by the schema of the tool's argument, never by the event's `type`, which the model may get wrong |
//! | any other value | as it is |
//! | a name that the tool does not have | passed on; the check refuses it by name |
//! | one name, equal values | one argument |
//! | one name, different values | a fault; none is picked |
//! | an entry with neither name nor value | nothing |
//! | a value without a name | a fault: to drop it would run the tool with less than was asked for |

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    Request, bounded,
    fit::{self, Spare},
};
use crate::{
    arguments::{Fault, read_text},
    call::{Arguments, Call, kind_of},
    outcome::{Failure, Outcome},
    tool::{Caller, Definition, Entry, Toolbox},
};

/// The largest answer of an agent's function. Today's page says 6 MB, older ones said 25 KB, and larger bodies are
/// reported to end the user's turn (dependencyFailedException).
pub(super) const LIMIT: usize = 25_000;

/// The largest body in the answer: the limit without the envelope. The echoed attributes are not counted; they have come
/// the same way.
const BODY_LIMIT: usize = LIMIT - 1_000;

/// A list of arguments, and how the event calls it.
pub(super) type List<'a> = (&'static str, &'a Value);

/// The one call of an agent's event. The arguments of a tool that does not exist are not read.
pub(super) fn call(name: &str, lists: &[List<'_>], body: &Value, toolbox: &Toolbox) -> Call {
    let definition = toolbox.get(name).map(Entry::definition);
    let session = body.get("sessionId").and_then(Value::as_str).filter(|id| !id.is_empty());
    Call {
        tool: bounded(name),
        arguments: definition.map(|definition| arguments(lists, definition)).unwrap_or_default(),
        caller: Caller { conversation: session.map(String::from), identity: None },
        ..Call::default()
    }
}

/// The request of an agent's event: `respond` makes the `response` object of a body, which is JSON text, or of a failure.
pub(super) fn request(
    call: Call,
    event: &Value,
    toolbox: &Toolbox,
    respond: impl FnOnce(Result<String, Failure>) -> Value + Send + 'static,
) -> Request {
    let (echo, spare) = (echo(event), Spare::of(toolbox, &call.tool));
    let encode = move |outcomes: Vec<Outcome>| {
        let Some(outcome) = outcomes.into_iter().next() else { return Value::Null };
        let mut answer = echo;
        answer.insert("response".into(), respond(body(outcome, spare.as_ref())));
        Value::Object(answer)
    };
    Request { calls: vec![call], encode: Box::new(encode) }
}

/// What every answer has, and the attributes if the event had them: an agent without them must not get them.
fn echo(event: &Value) -> Map<String, Value> {
    let attributes = ["sessionAttributes", "promptSessionAttributes"].into_iter().filter_map(|name| {
        let attributes = event.get(name).filter(|attributes| attributes.is_object())?;
        Some((String::from(name), attributes.clone()))
    });
    attributes.chain([(String::from("messageVersion"), json!("1.0"))]).collect()
}

/// The bare result as JSON text, which is never blank.
fn body(outcome: Outcome, spare: Option<&Spare>) -> Result<String, Failure> {
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

fn arguments(lists: &[List<'_>], definition: &Definition) -> Arguments {
    let (named, mut faults) = gather(lists);
    let mut values = Map::new();
    for (name, all) in named {
        match read_all(name, &all, definition) {
            Ok(value) => drop(values.insert(String::from(name), value)),
            Err(fault) => faults.push(fault),
        }
    }
    Arguments { values, faults }
}

/// Every value under its name, and what has none.
fn gather<'a>(lists: &[List<'a>]) -> (BTreeMap<&'a str, Vec<&'a Value>>, Vec<Fault>) {
    let (mut values, mut faults, mut nameless) = (BTreeMap::<_, Vec<_>>::new(), Vec::new(), 0_usize);
    for (place, list) in lists {
        if !list.is_array() && !list.is_null() {
            let kind = kind_of(list);
            faults.push(whole(format!("The {place} must be a list of names and values, but are {kind}.")));
        }
        for entry in list.as_array().into_iter().flatten() {
            match entry.get("name").and_then(Value::as_str) {
                Some(name) => values.entry(name).or_default().push(&entry["value"]),
                None if says_nothing(entry) => {}
                None => nameless += 1,
            }
        }
    }
    if nameless > 0 {
        faults.push(whole(format!("{nameless} of the values came without a name. Give each value its name.")));
    }
    (values, faults)
}

/// Whether nothing is lost with an entry that has no name.
fn says_nothing(entry: &Value) -> bool {
    entry.is_null() || entry.as_object().is_some_and(|fields| !fields.contains_key("value"))
}

fn whole(rule: String) -> Fault {
    Fault { path: String::new(), rule, example: None }
}

/// The one value that all of them say.
fn read_all(name: &str, values: &[&Value], definition: &Definition) -> Result<Value, Fault> {
    let Some((first, others)) = values.split_first() else { return Ok(Value::Null) };
    let first_read = read(name, first, definition);
    let agrees = |other: &&Value| other == first || read(name, other, definition) == first_read;
    if others.iter().all(agrees) {
        first_read
    } else {
        let rule = String::from("must be given once, but came with different values");
        Err(Fault { path: bounded(name), rule, example: None })
    }
}

fn read(name: &str, value: &Value, definition: &Definition) -> Result<Value, Fault> {
    let schema = definition.schema.get("properties").and_then(|properties| properties.get(name));
    match (value, schema) {
        (Value::String(text), Some(schema)) => read_text(name, schema, text),
        _ => Ok(value.clone()),
    }
}
