//! Tools for the tests of doors: as data only, like the demo's, so that no test depends on what a tool does.

use std::{borrow::Cow, path::Path, sync::Arc};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::{Event, Request, detect};
use crate::{
    outcome::Outcome,
    payload,
    tool::{AnyTool, CallContext, Definition, Effect, Plan, Reconciled, Route, Success, ToolError, Toolbox, Wording},
};

/// A tool that is only its definition.
pub(super) struct Data(pub(super) Definition);

impl AnyTool for Data {
    fn definition(&self) -> &Definition {
        &self.0
    }

    fn plan(&self, _: &Value) -> Result<Plan, String> {
        unreachable!("doors run nothing")
    }

    fn call(&self, _: Value, _: CallContext) -> BoxFuture<'static, Result<Success<Value>, ToolError>> {
        unreachable!("doors run nothing")
    }

    fn reconcile(&self, _: Value, _: CallContext) -> BoxFuture<'static, Result<Reconciled<Value>, ToolError>> {
        Box::pin(std::future::ready(Ok(Reconciled::Unknown)))
    }
}

/// `get_order`, `search_orders`, `refund_order`, `create_shipping_label` and `send_email`.
pub(super) fn toolbox() -> Toolbox {
    let order_id = || json!({ "type": "string", "description": "The order.", "pattern": "^ORD-[0-9]{5}$", "examples": ["ORD-12345"] });
    let text = |description: &str, most: u32| json!({ "type": "string", "description": description, "minLength": 1, "maxLength": most });
    let tools = [
        tool(
            "get_order",
            Effect::ReadOnly,
            Route::get("/orders/{order_id}"),
            &json!({ "order_id": order_id() }),
            &["order_id"],
        ),
        tool(
            "search_orders",
            Effect::ReadOnly,
            Route::get("/orders"),
            &json!({
                "customer_id": text("The customer.", 40),
                "status": { "type": "string", "description": "Only orders in this state.", "enum": ["open", "shipped", "cancelled"] },
                "limit": { "type": "integer", "description": "The most orders to return.", "minimum": 1, "maximum": 50 },
                "tags": { "type": "array", "description": "Only orders with all of these.", "items": { "type": "string" } },
            }),
            &["customer_id"],
        ),
        tool(
            "refund_order",
            Effect::Atomic,
            Route::post("/orders/{order_id}/refunds"),
            &json!({
                "order_id": order_id(),
                "amount_cents": { "type": "integer", "description": "What to pay back.", "minimum": 1 },
                "reason": text("Why.", 200),
            }),
            &["order_id", "amount_cents", "reason"],
        ),
        tool(
            "create_shipping_label",
            Effect::Keyed,
            Route::post("/orders/{order_id}/labels"),
            &json!({
                "order_id": order_id(),
                "carrier": { "type": "string", "description": "Who carries it.", "enum": ["dhl", "ups", "fedex"] },
            }),
            &["order_id", "carrier"],
        ),
        tool(
            "send_email",
            Effect::Once,
            Route::post("/emails"),
            &json!({ "to": text("The recipient.", 254), "subject": text("The subject.", 200), "body": text("The text.", 10_000) }),
            &["to", "subject", "body"],
        ),
    ];
    Toolbox::unchecked(tools.map(|tool| Arc::new(Data(tool)) as Arc<dyn AnyTool>))
}

pub(super) fn tool(
    name: &'static str,
    effect: Effect,
    route: Route,
    properties: &Value,
    required: &[&str],
) -> Definition {
    Definition {
        description: format!("What {name} does."),
        schema: json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false }),
        may_need_approval: name == "refund_order",
        route,
        wording: Wording { nothing: Cow::Borrowed("Nothing was done."), ..Wording::default() },
        ..Definition::sample(name, effect)
    }
}

/// A toolbox of one tool.
pub(super) fn toolbox_of(tool: Definition) -> Toolbox {
    Toolbox::unchecked([Arc::new(Data(tool)) as Arc<dyn AnyTool>])
}

/// An event without a client context.
pub(super) fn event(body: Value) -> Event {
    Event { body, flawed: false, client_context: None }
}

/// A payload, as far as it can be read.
pub(super) fn payload(bytes: &[u8]) -> Event {
    let read = payload::read(bytes).expect("JSON");
    Event { flawed: read.flaw.is_some(), ..event(read.value) }
}

/// A file below `events/`, which may be an event or an invocation object.
pub(super) fn file(name: &str) -> Event {
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("events").join(name))
}

pub(super) fn read(path: &Path) -> Event {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut value: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let is_invocation = value.as_object().is_some_and(|fields| {
        fields.len() == 2 && fields.contains_key("event") && fields.contains_key("clientContext")
    });
    if is_invocation {
        Event { body: value["event"].take(), flawed: false, client_context: Some(value["clientContext"].take()) }
    } else {
        event(value)
    }
}

/// Every door, open.
pub(super) fn all() -> Vec<&'static super::Door> {
    super::DOORS.iter().collect()
}

/// The request in an event, by the door that recognises it.
pub(super) fn request(event: Event) -> Request {
    let door = detect(&event, &all()).expect("a tool call");
    (door.decode)(event, &toolbox()).expect("a request")
}

/// A new result.
pub(super) fn success(result: Value) -> Outcome {
    Outcome::Success { result, replayed: false }
}

/// The stored result of an earlier call.
pub(super) fn replay(result: Value) -> Outcome {
    Outcome::Success { result, replayed: true }
}

/// The answer to a request whose calls end so.
pub(super) fn answer(event: Event, outcomes: Vec<Outcome>) -> Value {
    (request(event).encode)(outcomes)
}
