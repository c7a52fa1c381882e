//! The door of MCP as bare JSON-RPC: the Responses API calls a function that is set as its connector so.
//!
//! ```json
//! {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "get_order", "arguments": {"order_id": "ORD-12345"}}}
//! ```
//!
//! One message is one invocation, and nothing is kept between two. So the handshake of older versions and the stateless
//! requests of 2026-07-28 are served side by side, and the fields that only one of them knows are always sent:
//!
//! | message | answer |
//! | --- | --- |
//! | `tools/list`, `tools/call` | the tools, a call's result |
//! | `initialize`, `ping` (until 2025-11-25), `server/discover` (2026-07-28) | who we are |
//! | a notification | `null`, because an invocation must return something |
//! | anything else | a JSON-RPC error |
//!
//! What a tool refuses is a result with `isError`, which the model reads; an unknown tool is a JSON-RPC error, which the
//! client reads. The id of a message is no idempotency key: clients count 1, 2, 3, each from the start.

use serde_json::{Value, json};

use super::{Door, Event, Memory, Refusal, Request, as_sent, bounded, expressible};
use crate::{
    call::{Arguments, Call},
    outcome::{Failure, FailureKind, Outcome},
    tool::{Definition, Effect, Toolbox},
};

/// MCP messages.
pub(super) const DOOR: Door = Door {
    name: "mcp",
    // A result is sent twice, as text and as data. What fits a record (a DynamoDB item, 400 KB) can be replayed in full.
    limit: 350_000,
    recognises,
    decode,
    definitions,
    faults: expressible::all,
};

/// Every version that is served, the newest first.
const VERSIONS: [&str; 5] = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The newest version that begins with a handshake.
const NEWEST_HANDSHAKE: &str = "2025-11-25";
/// Where a request of 2026-07-28 states its version.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
/// How long a client may keep the list of tools. It changes with a deployment only.
const TTL_MS: u32 = 300_000;

const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
const UNSUPPORTED_VERSION: i32 = -32022;

/// A JSON-RPC error.
struct RpcError {
    code: i32,
    message: String,
    data: Option<Value>,
}

type Reply = Result<Value, RpcError>;

fn error(code: i32, message: impl Into<String>) -> RpcError {
    RpcError { code, message: message.into(), data: None }
}

fn recognises(event: &Event) -> bool {
    match &event.body {
        Value::Array(items) => items.iter().any(|item| item.get("jsonrpc").is_some()),
        _ => event.fields().is_some_and(|fields| fields.contains_key("jsonrpc")),
    }
}

fn decode(event: Event, toolbox: &Toolbox) -> Result<Request, Refusal> {
    let message = event.body;
    as_sent(event.flawed, [&message["id"]])?;
    let id = id(&message);
    let reply = match method(&message) {
        Ok(None) => return Ok(answered(Value::Null)),
        Ok(Some("tools/call")) => return Ok(call(id, &message["params"], toolbox)),
        Ok(Some(method)) => serve(method, &message["params"], toolbox),
        Err(error) => Err(error),
    };
    Ok(answered(response(&id, reply)))
}

/// A request that holds no call.
fn answered(answer: Value) -> Request {
    Request { calls: Vec::new(), encode: Box::new(|_| answer), memory: Memory::None }
}

/// The id for the answer: a text or a number as it came, 0 included; `null` where none can be read.
fn id(message: &Value) -> Value {
    message.get("id").filter(|id| is_id(id)).cloned().unwrap_or_default()
}

/// A text, or a number that is answered as it came: one beyond 64 bits would be rounded, and its client wait for ever.
fn is_id(id: &Value) -> bool {
    const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53
    let is_exact = |id: f64| id.abs() < EXACT && (id != 0.0 || id.is_sign_positive());
    id.is_string() || id.is_i64() || id.is_u64() || id.as_f64().is_some_and(is_exact)
}

/// The method of a request, or nothing for a notification.
fn method(message: &Value) -> Result<Option<&str>, RpcError> {
    let refuse = |why: &str| Err(error(INVALID_REQUEST, why));
    if message.is_array() {
        return refuse("Batches are not served (MCP removed them in 2025-06-18). Send each message by itself.");
    }
    if message.get("jsonrpc").is_none_or(|version| version != "2.0") {
        return refuse("The message must have \"jsonrpc\": \"2.0\".");
    }
    let Some(method) = message.get("method").and_then(Value::as_str) else {
        return refuse("The message must be a request, with a \"method\" that is a text.");
    };
    match message.get("id") {
        None if method.starts_with("notifications/") => Ok(None),
        None => refuse("The request must have an \"id\". Nothing was run, since nobody would get the answer."),
        Some(id) if is_id(id) => supported(message).map(|()| Some(method)),
        Some(_) => refuse("The \"id\" must be a text or a whole number of 64 bits. Nothing was run."),
    }
}

/// Whether the version is served that the request states. One without a version is of an older client, or of one whose
/// host leaves it out.
fn supported(message: &Value) -> Result<(), RpcError> {
    let stated = message.get("params").and_then(|params| params.get("_meta")?.get(VERSION_KEY));
    match stated {
        None => Ok(()),
        Some(Value::String(version)) if VERSIONS.contains(&version.as_str()) => Ok(()),
        Some(other) => {
            let requested = bounded(other.as_str().unwrap_or_default());
            let message =
                format!("The protocol version {requested:?} is not served. Use one of {}.", VERSIONS.join(", "));
            let data = json!({ "supported": VERSIONS, "requested": requested });
            Err(RpcError { data: Some(data), ..error(UNSUPPORTED_VERSION, message) })
        }
    }
}

/// Everything but a call.
fn serve(method: &str, params: &Value, toolbox: &Toolbox) -> Reply {
    match method {
        "tools/list" => list(params, toolbox),
        "server/discover" => Ok(discovery()),
        "initialize" => Ok(handshake(params)),
        "ping" => Ok(json!({})),
        _ => {
            let text = format!("There is no method {:?} here; tools/list and tools/call are.", bounded(method));
            Err(error(METHOD_NOT_FOUND, text))
        }
    }
}

fn list(params: &Value, toolbox: &Toolbox) -> Reply {
    match params.get("cursor") {
        None | Some(Value::Null) => Ok(definitions(toolbox)),
        Some(_) => Err(error(INVALID_PARAMS, "The cursor is not known: the list of tools has one page.")),
    }
}

fn server() -> Value {
    json!({ "name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION") })
}

fn discovery() -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": VERSIONS,
        "capabilities": { "tools": {} },
        "ttlMs": TTL_MS,
        "cacheScope": "public",
        "_meta": { "io.modelcontextprotocol/serverInfo": server() },
    })
}

/// The answer to `initialize`: the client's version if it is served and has a handshake, else the newest that has one.
fn handshake(params: &Value) -> Value {
    let asked = params.get("protocolVersion").and_then(Value::as_str);
    let has_handshake = |version: &&str| *version <= NEWEST_HANDSHAKE; // dates, so that the order of texts is theirs
    let found = VERSIONS.into_iter().filter(has_handshake).find(|version| Some(*version) == asked);
    json!({
        "protocolVersion": found.unwrap_or(NEWEST_HANDSHAKE),
        "capabilities": { "tools": {} },
        "serverInfo": server(),
    })
}

/// A call. One without a tool's name goes the same way as one with an unknown name, so that it is counted too.
fn call(id: Value, params: &Value, toolbox: &Toolbox) -> Request {
    let name = params.get("name").and_then(Value::as_str);
    let call = Call {
        tool: name.map(bounded).unwrap_or_default(),
        arguments: Arguments::from_json(params.get("arguments").cloned().unwrap_or_default()),
        id: Some(bounded(&id.as_str().map_or_else(|| id.to_string(), String::from))),
        objection: name.is_none().then(|| super::nameless("The call", toolbox)),
        ..Call::default()
    };
    let encode = move |outcomes: Vec<Outcome>| match outcomes.into_iter().next() {
        Some(outcome) => response(&id, result(outcome)),
        None => Value::Null,
    };
    Request { calls: vec![call], encode: Box::new(encode), memory: Memory::Table }
}

/// A call's end. `structuredContent` is an object also for clients that would take any value, so that no result changes
/// its shape with the client.
fn result(outcome: Outcome) -> Reply {
    match outcome {
        Outcome::Success { result, replayed } => {
            let note = replayed.then(|| text(super::REPLAYED));
            let content: Vec<_> = std::iter::once(text(&result.to_string())).chain(note).collect();
            let structured = if result.is_object() { result } else { json!({ "result": result }) };
            Ok(json!({
                "resultType": "complete",
                "content": content,
                "structuredContent": structured,
                "isError": false,
            }))
        }
        Outcome::Failure(failure) if failure.kind() == FailureKind::UnknownTool => Err(RpcError {
            data: Some(json!({ "error": failure.to_json() })),
            ..error(INVALID_PARAMS, failure.message())
        }),
        Outcome::Failure(failure) => Ok(refused(&failure)),
    }
}

fn refused(failure: &Failure) -> Value {
    json!({
        "resultType": "complete",
        "content": [text(&failure.message())],
        "structuredContent": { "error": failure.to_json() },
        "isError": true,
    })
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn response(id: &Value, reply: Reply) -> Value {
    let (name, content) = match reply {
        Ok(result) => ("result", result),
        Err(RpcError { code, message, data: None }) => ("error", json!({ "code": code, "message": message })),
        Err(RpcError { code, message, data: Some(data) }) => {
            ("error", json!({ "code": code, "message": message, "data": data }))
        }
    };
    json!({ "jsonrpc": "2.0", "id": id, name: content })
}

/// The result of `tools/list`. It is the same for each caller, hence `public`.
fn definitions(toolbox: &Toolbox) -> Value {
    let tools: Vec<_> = toolbox.iter().map(|entry| definition(entry.definition())).collect();
    json!({ "resultType": "complete", "tools": tools, "ttlMs": TTL_MS, "cacheScope": "public" })
}

fn definition(tool: &Definition) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.schema,
        "annotations": annotations(tool.effect),
    })
}

/// What a client is told of the effect. Hints: it decides by them whether to ask its user, or whether to ask us again.
///
/// A tool with an effect counts as destructive, which is also MCP's default. Its effect does not say whether it only
/// adds something; and to a user who is asked once too often less harm is done than to one who was not asked.
fn annotations(effect: Effect) -> Value {
    match effect {
        Effect::ReadOnly => json!({ "readOnlyHint": true }),
        Effect::Keyed | Effect::Atomic => {
            json!({ "readOnlyHint": false, "destructiveHint": true, "idempotentHint": true })
        }
        Effect::Once => json!({ "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false }),
    }
}
