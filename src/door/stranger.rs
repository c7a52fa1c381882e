//! Events that are no tool call, or none that is served: what they look like.
//!
//! They reach the function when it is set as the target of something else, or called by hand. A refusal that names the
//! sender saves its reader the search; see `events/not-a-call/`.

use serde_json::{Map, Value};

use super::Event;

/// The field that marks the event of a gateway interceptor.
pub(super) const INTERCEPTOR: &str = "interceptorInputVersion";

type Fields = Map<String, Value>;

/// How an event is known, and what it looks like.
type Stranger = (fn(&Fields) -> bool, &'static str);

/// In the order in which they are tried: the surest marks first.
static STRANGERS: [Stranger; 18] = [
    (|f| has(f, INTERCEPTOR), "the event of a gateway interceptor"),
    (
        |f| has(f, "invokeModelRawResponse") || has(f, "overrideType"),
        "the event of an agent's parser function (advanced prompts)",
    ),
    (
        |f| f.get("actionGroup").is_some_and(|group| !group.is_string()),
        "an agent's event whose `actionGroup` is no text",
    ),
    (
        |f| has(f, "actionGroup"),
        "an agent's event with neither `function` nor `apiPath` and `httpMethod`, which name the tool",
    ),
    (|f| has(f, "flow"), "a flow's event in which `flow` or `node` is missing or no object"),
    (
        |f| f.get("sessionState").is_some_and(|s| s.get("returnControlInvocationResults").is_some()),
        "the answer to an agent's return of control; it belongs to InvokeAgent",
    ),
    (
        |f| has(f, "bot") && (has(f, "invocationSource") || has(f, "interpretations") || has(f, "currentIntent")),
        "the event of a Lex bot",
    ),
    (|f| has(f, "toolResult"), "a toolResult, which is an answer"),
    (
        |f| has(f, "output") && has(f, "stopReason") || has(f, "Output") && has(f, "StopReason"),
        "a Converse response without a message",
    ),
    (
        |f| is(f, "type", "function_call") || f.get("output").is_some_and(Value::is_array),
        "a function call of the Responses API; Converse's is a `toolUse`",
    ),
    (
        |f| has(f, "tool_calls") || has(f, "choices") || is(f, "type", "function") && has(f, "function"),
        "a call of a Chat Completions API; Converse's is a `toolUse`",
    ),
    (|f| f.get("messages").is_some_and(Value::is_array), "a whole conversation; send the model's last message"),
    (
        |f| has(f, "contentBlockStart") || has(f, "contentBlockDelta"),
        "an event of ConverseStream; send the whole message",
    ),
    (|f| is(f, "type", "tool_use"), "a call of Anthropic's Messages API; Converse's is a `toolUse`"),
    (
        |f| has(f, "requestContext") || has(f, "routeKey") || has(f, "resource") && has(f, "httpMethod"),
        "an HTTP request from API Gateway, a load balancer or a function URL",
    ),
    (|f| has(f, "detail-type") && has(f, "detail"), "an EventBridge event"),
    (|f| has(f, "messageVersion") && has(f, "agent"), "an agent's event that names no action group"),
    (Map::is_empty, "an empty object"),
];

fn has(fields: &Fields, name: &str) -> bool {
    fields.contains_key(name)
}

fn is(fields: &Fields, name: &str, value: &str) -> bool {
    fields.get(name).is_some_and(|found| found == value)
}

/// What an event that no door has recognised looks like: the end of the sentence "it looks like …".
pub(super) fn description(event: &Event) -> &'static str {
    match &event.body {
        Value::Object(fields) => object(fields),
        Value::Array(items) if items.is_empty() => "an empty list",
        Value::Array(_) => "a list without `toolUse` blocks",
        Value::String(_) => "a text",
        Value::Number(_) => "a number",
        Value::Bool(_) => "a boolean",
        Value::Null => "null",
    }
}

fn object(fields: &Fields) -> &'static str {
    if let Some(records) = fields.get("Records") {
        return records_of(records);
    }
    let found = STRANGERS.iter().find(|(is_it, _)| is_it(fields)).map(|(_, what)| *what);
    found.unwrap_or(
        "bare arguments, or another event; a gateway's call has the tool's name in the client context \
         (bedrockAgentCoreToolName)",
    )
}

fn records_of(records: &Value) -> &'static str {
    let first = &records[0];
    let source = first.get("eventSource").or_else(|| first.get("EventSource")).and_then(Value::as_str);
    match source {
        Some("aws:s3") => "records of S3",
        Some("aws:sqs") => "records of an SQS queue",
        Some("aws:sns") => "records of an SNS topic",
        Some("aws:dynamodb") => "records of a DynamoDB stream",
        Some("aws:kinesis") => "records of a Kinesis stream",
        _ => "records of an event source",
    }
}
