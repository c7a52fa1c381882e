//! The door of a flow's Lambda node (Bedrock Flows).
//!
//! ```json
//! {"messageVersion": "1.0", "flow": {"flowArn": "…", "flowAliasArn": "…"},
//!  "node": {"name": "get_order", "inputs": [{"name": "order_id", "type": "String", "expression": "$.data", "value": "ORD-12345"}]}}
//! ```
//!
//! The node's name is the tool's name, exactly; any other rule would guess which tool a renamed node means. (Names of
//! nodes are unique, so a flow has one node for each tool.) Values are native, as the node's expressions made them. A flow
//! takes any JSON as the node's output, so that errors are data, which a condition node can look at; a failed invocation
//! would end the flow.

use serde_json::{Value, json};

use super::{
    Door, Event, Memory, Refusal, Request, bounded, envelope, expressible, nameless,
    parameters::{List, Values, arguments},
    prose,
};
use crate::{
    call::Call,
    tool::{Definition, Entry, Toolbox},
};

/// A flow's Lambda node.
pub(super) const DOOR: Door = Door {
    name: "flow",
    limit: 350_000, // as at the gateway: what fits a record can be replayed in full
    recognises,
    decode,
    definitions,
    faults: expressible::in_flow,
};

/// The lists of inputs: today's spelling, and an older one.
const INPUTS: [&str; 2] = ["inputs", "nodeInputs"];

fn recognises(event: &Event) -> bool {
    let is_object = |name| event.fields().is_some_and(|fields| fields.get(name).is_some_and(Value::is_object));
    is_object("flow") && is_object("node")
}

#[allow(clippy::unnecessary_wraps)] // the type of every door's function; here each event has an answer
fn decode(event: Event, toolbox: &Toolbox) -> Result<Request, Refusal> {
    let body = event.body;
    let node = &body["node"];
    let name = node["name"].as_str();
    let lists: Vec<List<'_>> = INPUTS.iter().map(|name| ("inputs of the node", &node[name])).collect();
    let definition = name.and_then(|name| toolbox.get(name)).map(Entry::definition);
    let call = Call {
        tool: name.map(bounded).unwrap_or_default(),
        arguments: definition.map(|tool| arguments(&lists, tool, Values::Native)).unwrap_or_default(),
        objection: name.is_none().then(|| nameless("The flow's node", toolbox)),
        ..Call::default()
    };
    let encode = |outcomes: Vec<_>| outcomes.first().map_or(Value::Null, envelope::of);
    Ok(Request { calls: vec![call], encode: Box::new(encode), memory: Memory::Table })
}

/// The nodes of a flow's definition, one for each tool. The ARN and the expressions are to be filled in.
fn definitions(toolbox: &Toolbox) -> Value {
    let nodes: Vec<_> = toolbox.iter().map(|entry| node(entry.definition())).collect();
    json!({ "nodes": nodes })
}

fn node(tool: &Definition) -> Value {
    let inputs: Vec<_> = tool
        .properties()
        .map(|(name, schema)| json!({ "name": name, "type": type_of(schema), "expression": format!("$.data.{name}") }))
        .collect();
    json!({
        "name": tool.name,
        "type": "LambdaFunction",
        "configuration": { "lambdaFunction": { "lambdaArn": "arn:aws:lambda:REGION:ACCOUNT:function:NAME" } },
        "inputs": inputs,
        "outputs": [{ "name": "functionResponse", "type": "Object" }],
    })
}

fn type_of(schema: &Value) -> &'static str {
    match prose::type_of(schema) {
        "object" => "Object",
        "array" => "Array",
        "boolean" => "Boolean",
        "integer" | "number" => "Number",
        _ => "String",
    }
}
