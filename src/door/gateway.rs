//! The door of an `AgentCore` gateway's Lambda target.
//!
//! The tool's name stands in the client context, and the whole event is the arguments:
//!
//! ```json
//! {"clientContext": {"custom": {"bedrockAgentCoreToolName": "orders___get_order"}}, "event": {"order_id": "ORD-12345"}}
//! ```
//!
//! The body is chosen by the model, so that its shape is never looked at once a key of the gateway is there. The
//! client context may hold bearer tokens (propagated headers): they go to the tool as its `Caller`, and are never logged.

use serde_json::{Map, Value, json};

use super::{Door, Event, Memory, Refusal, Request, bounded, envelope, expressible, prose};
use crate::{
    call::{Arguments, Call},
    tool::{Caller, Definition, Toolbox},
};

/// The gateway Lambda target.
pub(super) const DOOR: Door = Door {
    name: "gateway",
    // The gateway carries 6 MB. What fits a record (a DynamoDB item, 400 KB) can be replayed in full; and a model's
    // context has no room for more.
    limit: 350_000,
    recognises,
    decode,
    definitions,
    faults: expressible::all,
};

/// Every key of the gateway begins so, in any letter case: at the preview it was `bedrockagentcore`.
const PREFIX: &str = "bedrockagentcore";
const TOOL_NAME: &str = "bedrockagentcoretoolname";
const REQUEST_ID: &str = "bedrockagentcoreawsrequestid";
/// Objects of texts, which are there only if the target lets headers or query parameters pass.
const HEADERS: &str = "bedrockagentcorepropagatedheaders";
const QUERY_PARAMETERS: &str = "bedrockagentcorepropagatedqueryparameters";
/// Between the target's name, which has no underscore, and the tool's, which may hold this again.
const SEPARATOR: &str = "___";

fn custom(event: &Event) -> Option<&Map<String, Value>> {
    event.client_context.as_ref()?.get("custom")?.as_object()
}

/// The values under a key in any letter case.
fn values<'a>(event: &'a Event, key: &str) -> Vec<&'a Value> {
    let matching = custom(event).into_iter().flatten().filter(|(name, _)| name.eq_ignore_ascii_case(key));
    matching.map(|(_, value)| value).collect()
}

/// True for any key of the gateway at any place, not only the tool's name in `custom`: without that one it is a broken
/// call, but still one whose body the model has chosen.
fn recognises(event: &Event) -> bool {
    event.client_context.as_ref().is_some_and(holds_our_key)
}

fn holds_our_key(value: &Value) -> bool {
    let is_ours = |key: &String| key.get(..PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(PREFIX));
    match value {
        Value::Object(fields) => fields.iter().any(|(key, value)| is_ours(key) || holds_our_key(value)),
        Value::Array(items) => items.iter().any(holds_our_key),
        _ => false,
    }
}

fn decode(event: Event, _: &Toolbox) -> Result<Request, Refusal> {
    let call = Call {
        tool: bounded(tool_name(&event)?),
        caller: caller(&event),
        id: values(&event, REQUEST_ID).first().and_then(|id| id.as_str()).map(bounded),
        arguments: Arguments::from_json(event.body),
        ..Call::default()
    };
    let encode = |outcomes: Vec<_>| outcomes.first().map_or(Value::Null, envelope::of);
    Ok(Request { calls: vec![call], encode: Box::new(encode), memory: Memory::Table })
}

/// Who asks: what the gateway has passed on of its client's request.
fn caller(event: &Event) -> Caller {
    let caller = texts(event, HEADERS).fold(Caller::default(), |caller, (name, value)| caller.with_header(name, value));
    texts(event, QUERY_PARAMETERS).fold(caller, |caller, (name, value)| caller.with_query_parameter(name, value))
}

fn texts<'a>(event: &'a Event, key: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let fields = values(event, key).into_iter().filter_map(Value::as_object).flatten();
    fields.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
}

/// The tool's name without the target's. A name without a separator is a tool's name as it is.
fn tool_name(event: &Event) -> Result<&str, Refusal> {
    let names = values(event, TOOL_NAME);
    let refuse = |what: &str| {
        Err(Refusal(format!(
            "The client context is a gateway's, but its bedrockAgentCoreToolName {what}. It must be one text, for \
             example \"orders___get_order\"."
        )))
    };
    match names.as_slice() {
        [] => refuse("is missing in `custom`"),
        [Value::String(name), others @ ..] if others.iter().all(|other| *other == name.as_str()) => {
            Ok(name.split_once(SEPARATOR).map_or(name.as_str(), |(_, tool)| tool))
        }
        [_] => refuse("is no text"),
        _ => refuse("is there more than once, with different values"),
    }
}

/// The tool schema of the Lambda target: a list of `{name, description, inputSchema}`.
fn definitions(toolbox: &Toolbox) -> Value {
    toolbox.iter().map(|entry| definition(entry.definition())).collect()
}

fn definition(definition: &Definition) -> Value {
    let mut schema = reduced(&definition.schema);
    schema.as_object_mut().map(|schema| schema.remove("description")); // the tool has it
    json!({ "name": definition.name, "description": definition.description, "inputSchema": schema })
}

/// The schema in the few words a target knows: `type`, `description`, `properties`, `required`, `items`. What else it
/// says is said in the description (`SchemaDefinition` of bedrock-agentcore-control).
fn reduced(schema: &Value) -> Value {
    let mut kept = Map::new();
    kept.insert("type".into(), Value::from(prose::type_of(schema)));
    let description = prose::description(schema);
    if !description.is_empty() {
        kept.insert("description".into(), Value::from(description));
    }
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        let properties = properties.iter().map(|(name, schema)| (name.clone(), named(name, schema)));
        kept.insert("properties".into(), Value::Object(properties.collect()));
    }
    if let Some(items) = schema.get("items") {
        kept.insert("items".into(), reduced(items));
    }
    if let Some(required) = schema.get("required").filter(|names| names.as_array().is_some_and(|n| !n.is_empty())) {
        kept.insert("required".into(), required.clone());
    }
    Value::Object(kept)
}

/// A property, which is never without a description.
fn named(name: &str, schema: &Value) -> Value {
    let mut property = reduced(schema);
    if property.get("description").is_none() {
        property["description"] = Value::from(prose::fallback(name));
    }
    property
}
