//! The door of a Bedrock Agents action group with an OpenAPI schema.
//!
//! ```json
//! {"messageVersion": "1.0", "actionGroup": "orders", "apiPath": "/orders/{order_id}", "httpMethod": "GET",
//!  "parameters": [{"name": "order_id", "type": "string", "value": "ORD-12345"}], "sessionId": "s-1"}
//! ```
//!
//! `apiPath` is the template of the schema, and the values are in `parameters` and in the body's `properties`. The
//! status is always 200: another one can end the user's turn. A failure is told in the body.

use serde_json::{Map, Value, json};

use super::{Door, Event, Refusal, Request, agent, as_sent, envelope, expressible, parameters::List, prose};
use crate::{
    arguments::Fault,
    call::Call,
    tool::{Definition, Entry, Method, Toolbox},
};

/// An action group with an OpenAPI schema.
pub(super) const DOOR: Door = Door {
    name: "agent-openapi",
    limit: agent::LIMIT,
    recognises,
    decode,
    definitions,
    faults: expressible::in_openapi,
};

/// The one media type of an answer. With a charset behind it agents end the turn: "must be of type 'application/json'".
const JSON: &str = "application/json";

fn recognises(event: &Event) -> bool {
    event.fields().is_some_and(|fields| {
        let is_text = |name| fields.get(name).is_some_and(Value::is_string);
        is_text("actionGroup") && is_text("apiPath") && is_text("httpMethod")
    })
}

fn decode(event: Event, toolbox: &Toolbox) -> Result<Request, Refusal> {
    let body = &event.body;
    let (Some(path), Some(method)) = (body["apiPath"].as_str(), body["httpMethod"].as_str()) else {
        return Err(Refusal(String::from("The agent's event names no path with a method.")));
    };
    let call = call(&tool_name(method, path, toolbox), body, body, toolbox);
    as_sent(event.flawed, ["actionGroup", "apiPath", "httpMethod"].map(|name| &body[name]))?;
    let [group, path, method] = ["actionGroup", "apiPath", "httpMethod"].map(|name| body[name].clone());
    let respond = move |outcome: Result<String, _>| {
        let body = outcome.unwrap_or_else(|failure| envelope::of_failure(&failure).to_string());
        json!({
            "actionGroup": group,
            "apiPath": path,
            "httpMethod": method,
            "httpStatusCode": 200,
            "responseBody": { JSON: { "body": body } },
        })
    };
    Ok(agent::request(call, event, toolbox, respond))
}

/// The name of the tool with this route; of an unknown route its method and path, which are no tool's name.
pub(super) fn tool_name(method: &str, path: &str, toolbox: &Toolbox) -> String {
    let mut definitions = toolbox.iter().map(Entry::definition);
    let found = definitions
        .find(|tool| tool.route.path == path && tool.route.method.name().eq_ignore_ascii_case(method))
        .map(|tool| String::from(tool.name));
    found.unwrap_or_else(|| format!("{method} {path}"))
}

/// The call of an operation, with the `parameters` and the `requestBody` that are in `holder`.
pub(super) fn call(name: &str, holder: &Value, event: &Value, toolbox: &Toolbox) -> Call {
    let (in_body, fault) = match properties(&holder["requestBody"]) {
        Ok(lists) => (lists, None),
        Err(fault) => (Vec::new(), Some(fault)),
    };
    let lists: Vec<List<'_>> = [("parameters", &holder["parameters"])].into_iter().chain(in_body).collect();
    let mut call = agent::call(name, &lists, event, toolbox);
    call.arguments.faults.splice(0..0, fault);
    drop_media_type(&mut call, &holder["requestBody"], toolbox);
    call
}

/// The body's properties, of every media type: one that was left out would run the tool with less than was asked for.
fn properties(request_body: &Value) -> Result<Vec<List<'_>>, Fault> {
    let Some(content) = member(request_body, "content")? else { return Ok(Vec::new()) };
    let lists = content.as_object().ok_or_else(malformed)?.values().map(|media| member(media, "properties"));
    lists.filter_map(Result::transpose).map(|list| Ok(("properties of the body", list?))).collect()
}

/// The one member of an object, or none where there is nothing at all.
fn member<'a>(holder: &'a Value, name: &str) -> Result<Option<&'a Value>, Fault> {
    let fields = match holder {
        Value::Null => return Ok(None),
        holder => holder.as_object().ok_or_else(malformed)?,
    };
    let found = fields.get(name).filter(|found| !found.is_null());
    if found.is_none() && !fields.values().all(Value::is_null) {
        return Err(malformed());
    }
    Ok(found)
}

fn malformed() -> Fault {
    let form = "{\"content\": {\"application/json\": {\"properties\": [{\"name\": …, \"value\": …}]}}}";
    Fault {
        path: String::new(),
        rule: format!("The body could not be read: requestBody must be {form}"),
        example: None,
    }
}

/// Takes away the `contentType` that the import proxy adds to every body: it says again under which media type the body
/// stands, and is no argument unless the tool has one of that name.
fn drop_media_type(call: &mut Call, request_body: &Value, toolbox: &Toolbox) {
    const NAME: &str = "contentType";
    let is_argument = |entry: &Entry| entry.definition().properties().any(|(name, _)| name == NAME);
    let is_media_type = |value: &Value| value.as_str().is_some_and(|text| request_body["content"].get(text).is_some());
    if call.arguments.values.get(NAME).is_some_and(is_media_type) && !toolbox.get(&call.tool).is_some_and(is_argument) {
        call.arguments.values.remove(NAME);
    }
}

/// An OpenAPI 3.0 document with one operation for each tool.
fn definitions(toolbox: &Toolbox) -> Value {
    let mut paths = Map::new();
    for entry in toolbox.iter() {
        let definition = entry.definition();
        let path = paths.entry(definition.route.path.clone()).or_insert_with(|| json!({}));
        path[definition.route.method.name().to_ascii_lowercase()] = operation(definition);
    }
    json!({ "openapi": "3.0.3", "info": { "title": "Tools", "version": "1.0.0" }, "paths": paths })
}

fn operation(definition: &Definition) -> Value {
    let in_path: Vec<_> = definition.route.path_parameters().collect();
    let (in_path, rest): (Vec<_>, Vec<_>) =
        definition.properties().partition(|(name, _)| in_path.contains(&name.as_str()));
    let has_body = definition.route.method == Method::Post;
    let path = in_path.into_iter().map(|(name, schema)| parameter(definition, "path", name, schema));
    let query = rest.iter().filter(|_| !has_body).map(|(name, schema)| parameter(definition, "query", name, schema));
    let mut operation = json!({
        "operationId": definition.name,
        "description": definition.description,
        "parameters": path.chain(query).collect::<Vec<_>>(),
        "responses": { "200": {
            "description": "The result, or {\"ok\":false,\"error\":{…}} with the reason why there is none.",
            "content": { JSON: { "schema": { "description": "Any JSON value." } } },
        } },
    });
    if has_body && !rest.is_empty() {
        operation["requestBody"] = request_body(definition, &rest);
    }
    if definition.may_need_approval {
        operation["x-requireConfirmation"] = json!("ENABLED");
    }
    operation
}

fn parameter(definition: &Definition, place: &str, name: &str, schema: &Value) -> Value {
    let mut schema = translated(schema);
    let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
    json!({
        "name": name,
        "in": place,
        "description": description.unwrap_or_else(|| prose::fallback(name).into()),
        "required": definition.requires(name),
        "schema": schema,
    })
}

fn request_body(definition: &Definition, properties: &[(&String, &Value)]) -> Value {
    let required: Vec<_> =
        properties.iter().map(|(name, _)| name.as_str()).filter(|name| definition.requires(name)).collect();
    let properties: Map<_, _> =
        properties.iter().map(|(name, schema)| ((*name).clone(), property(name, schema))).collect();
    let is_required = !required.is_empty();
    let mut schema = json!({ "type": "object", "properties": properties });
    if is_required {
        schema["required"] = json!(required); // an empty list is no OpenAPI 3.0
    }
    json!({ "required": is_required, "content": { JSON: { "schema": schema } } })
}

fn property(name: &str, schema: &Value) -> Value {
    let mut property = translated(schema);
    if property.get("description").is_none() {
        property["description"] = prose::fallback(name).into();
    }
    property
}

/// The schema in OpenAPI 3.0's older dialect: one `example`, no `const`, bounds exclusive by a flag.
fn translated(schema: &Value) -> Value {
    let Some(fields) = schema.as_object() else { return schema.clone() };
    let mut translated = Map::new();
    for (name, value) in fields {
        match name.as_str() {
            "examples" => drop(value.get(0).map(|first| translated.insert("example".into(), first.clone()))),
            "const" => drop(translated.insert("enum".into(), json!([value]))),
            "exclusiveMinimum" => translated.extend([("minimum".into(), value.clone()), (name.clone(), json!(true))]),
            "exclusiveMaximum" => translated.extend([("maximum".into(), value.clone()), (name.clone(), json!(true))]),
            "items" => drop(translated.insert(name.clone(), self::translated(value))),
            "properties" => drop(translated.insert(name.clone(), each_translated(value))),
            // The body is taken apart into names and values on the way; what is not declared cannot come through. What a
            // map holds is said in words.
            "additionalProperties" | "$schema" | "title" => {}
            _ => drop(translated.insert(name.clone(), value.clone())),
        }
    }
    if let Some(values) = prose::values(schema) {
        let own = schema["description"].as_str().into_iter().map(String::from);
        translated.insert("description".into(), own.chain([values]).collect::<Vec<_>>().join(" ").into());
    }
    Value::Object(translated)
}

fn each_translated(properties: &Value) -> Value {
    let properties = properties.as_object().into_iter().flatten();
    Value::Object(properties.map(|(name, schema)| (name.clone(), translated(schema))).collect())
}
