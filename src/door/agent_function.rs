//! The door of a Bedrock Agents action group with function details.
//!
//! ```json
//! {"messageVersion": "1.0", "actionGroup": "orders", "function": "get_order", "sessionId": "s-1",
//!  "parameters": [{"name": "order_id", "type": "string", "value": "ORD-12345"}]}
//! ```
//!
//! A result is the JSON text under `TEXT`, the one key that agents know; a failure is plain sentences. `REPROMPT` hands
//! them to the model as something to mend, and is set only if the model can. `FAILURE` is never set: it ends the user's
//! turn with a dependencyFailedException.

use serde_json::{Map, Value, json};

use super::{Door, Event, Refusal, Request, agent, as_sent, expressible, prose};
use crate::{
    outcome::{Failure, Fixer},
    tool::{Definition, Toolbox},
};

/// An action group with function details.
pub(super) const DOOR: Door =
    Door { name: "agent-function", limit: agent::LIMIT, recognises, decode, definitions, faults: expressible::all };

/// The most characters of a description. A function may have 1200, a parameter 500; one bound is easier to remember.
const DESCRIPTION_MAX: usize = 500;

fn recognises(event: &Event) -> bool {
    event.fields().is_some_and(|fields| {
        let is_text = |name| fields.get(name).is_some_and(Value::is_string);
        is_text("actionGroup") && is_text("function")
    })
}

fn decode(event: Event, toolbox: &Toolbox) -> Result<Request, Refusal> {
    let body = &event.body;
    let Some(name) = body["function"].as_str() else {
        return Err(Refusal(String::from("The agent's event names no function.")));
    };
    let call = agent::call(name, &[("parameters", &body["parameters"])], body, toolbox);
    as_sent(event.flawed, [&body["actionGroup"], &body["function"]])?;
    let (group, function) = (body["actionGroup"].clone(), body["function"].clone());
    let respond =
        move |outcome| json!({ "actionGroup": group, "function": function, "functionResponse": response(outcome) });
    Ok(agent::request(call, event, toolbox, respond))
}

/// `{responseBody, responseState}` of a body, which is JSON text, or of a failure.
pub(super) fn response(outcome: Result<String, Failure>) -> Value {
    match outcome {
        Ok(body) => json!({ "responseBody": { "TEXT": { "body": body } } }),
        Err(failure) => {
            let mut response = json!({ "responseBody": { "TEXT": { "body": failure.message() } } });
            if failure.kind().fixer() == Fixer::Model {
                response["responseState"] = json!("REPROMPT");
            }
            response
        }
    }
}

/// `functionSchema` of an action group: `{"functions": [{name, description, parameters, requireConfirmation}]}`.
pub(super) fn definitions(toolbox: &Toolbox) -> Value {
    let functions: Vec<_> = toolbox.iter().map(|entry| function(entry.definition())).collect();
    json!({ "functions": functions })
}

fn function(definition: &Definition) -> Value {
    let parameters: Map<_, _> =
        definition.properties().map(|(name, schema)| (name.clone(), parameter(definition, name, schema))).collect();
    json!({
        "name": definition.name,
        "description": prose::shortened(&definition.description, DESCRIPTION_MAX),
        "parameters": parameters,
        "requireConfirmation": if definition.may_need_approval { "ENABLED" } else { "DISABLED" },
    })
}

fn parameter(definition: &Definition, name: &str, schema: &Value) -> Value {
    const AS_JSON: &str = "As JSON."; // agents know no objects
    let (kind, room) = match prose::type_of(schema) {
        "object" => ("string", DESCRIPTION_MAX - AS_JSON.len() - 1),
        other => (other, DESCRIPTION_MAX),
    };
    let mut description = prose::short_description(schema, room);
    if description.is_empty() {
        description = prose::fallback(name);
    }
    if room < DESCRIPTION_MAX {
        description = format!("{description} {AS_JSON}");
    }
    json!({ "type": kind, "description": description, "required": definition.requires(name) })
}
