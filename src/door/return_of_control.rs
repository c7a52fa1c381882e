//! The door of an agent's return of control: the application that called `InvokeAgent` forwards what it got back.
//!
//! ```json
//! {"returnControl": {"invocationId": "…", "invocationInputs": [{"functionInvocationInput": {
//!   "actionGroup": "orders", "actionInvocationType": "RESULT", "function": "get_order",
//!   "parameters": [{"name": "order_id", "type": "string", "value": "ORD-12345"}]}}]}}
//! ```
//!
//! The answer is the `sessionState` for the next `InvokeAgent`, with a result for each input, in their order:
//! `{"invocationId", "returnControlInvocationResults": [{"functionResult"} or {"apiResult"}, …]}`.
//!
//! What waits for the user is never run. The result says so, and has no `confirmationState`: whether the user agrees
//! is not ours to say. Once the user has agreed the application forwards the input again as a `RESULT`, and adds
//! `"confirmationState": "CONFIRM"` to what comes back.

use serde_json::{Map, Value, json};

use super::{
    Door, Event, Memory, Refusal, Request, agent, agent_function,
    agent_openapi::{self, tool_name},
    as_sent, bounded, envelope, expressible,
    fit::Spare,
    nameless,
};
use crate::{
    call::{Call, kind_of},
    outcome::{Failure, FailureKind, Fixer, Outcome},
    tool::Toolbox,
};

/// A return of control.
pub(super) const DOOR: Door = Door {
    name: "return-of-control",
    limit: agent::LIMIT,
    recognises,
    decode,
    definitions: agent_function::definitions,
    faults: expressible::all,
};

/// The most inputs, and results, that agents have by their service model.
const MOST_INPUTS: usize = 5;

/// Whether an input is to be run, or waits for the user.
const TYPE: &str = "actionInvocationType";

/// How an input is answered: as what it came, with what is echoed of it.
struct Form {
    is_function: bool,
    echo: Map<String, Value>,
}

fn recognises(event: &Event) -> bool {
    event.fields().is_some_and(|fields| fields.contains_key("returnControl") || fields.contains_key("invocationInputs"))
}

fn decode(event: Event, toolbox: &Toolbox) -> Result<Request, Refusal> {
    let body = event.body;
    let control = control(&body)?;
    let inputs = inputs(control)?;
    if !body["sessionId"].is_null() && !body["sessionId"].is_string() {
        return Err(refusal("has a sessionId that is no text beside it"));
    }
    let (mut calls, mut forms, mut spares) = (Vec::new(), Vec::new(), Vec::new());
    for input in inputs {
        let (is_function, input) = input_of(input)?;
        let call = if is_function { function(input, &body, toolbox) } else { operation(input, &body, toolbox) };
        spares.push(Spare::of(toolbox, &call.tool));
        let echo = echo(input, is_function);
        as_sent(event.flawed, echo.values())?;
        forms.push(Form { is_function, echo });
        calls.push(Call { objection: call.objection.or_else(|| waiting(input)), ..call });
    }
    as_sent(event.flawed, [&control["invocationId"]])?;
    let id = match &control["invocationId"] {
        Value::Null => None,
        id @ Value::String(_) => Some(id.clone()),
        _ => return Err(refusal("has an invocationId that is no text")),
    };
    let encode = move |outcomes: Vec<Outcome>| {
        let each = forms.into_iter().zip(&spares).zip(outcomes);
        answer(id, each.map(|((form, spare), outcome)| form.result(agent::body(outcome, spare.as_ref()))).collect())
    };
    Ok(Request { calls, encode: Box::new(encode), memory: Memory::Table })
}

/// What holds the inputs: the `returnControl`, or what is in it.
fn control(body: &Value) -> Result<&Value, Refusal> {
    let Some(control) = body.get("returnControl") else { return Ok(body) };
    if !control.is_object() {
        let what = kind_of(control);
        return Err(Refusal(format!(
            "The returnControl is {what}, and must be an object with an invocationId and a list of invocationInputs, as \
             InvokeAgent gives it. Where these two stand in the event itself, leave the key out."
        )));
    }
    if ["invocationInputs", "invocationId"].iter().any(|name| differs(body, name)) {
        let what = "has invocationInputs or an invocationId both inside and beside, and they are not the same";
        return Err(refusal(what));
    }
    Ok(control)
}

fn inputs(control: &Value) -> Result<&[Value], Refusal> {
    match &control["invocationInputs"] {
        Value::Array(inputs) if (1..=MOST_INPUTS).contains(&inputs.len()) => Ok(inputs),
        Value::Array(inputs) if inputs.is_empty() => Err(refusal("has an empty list of invocationInputs")),
        Value::Array(_) => Err(refusal("has more than 5 invocationInputs")),
        Value::Null => Err(refusal("has no list of invocationInputs")),
        other => Err(refusal(&format!("has {} in the place of its list of invocationInputs", kind_of(other)))),
    }
}

/// Whether the field beside the `returnControl` is another one than that inside of it: it would be overlooked.
fn differs(body: &Value, name: &str) -> bool {
    !body[name].is_null() && body[name] != body["returnControl"][name]
}

fn refusal(what: &str) -> Refusal {
    Refusal(format!("The return of control {what}. Forward the returnControl of InvokeAgent as it came."))
}

/// What the input holds: a function, or else an operation of an API. No result is legal without its `actionGroup`.
fn input_of(input: &Value) -> Result<(bool, &Value), Refusal> {
    let (is_function, input) = match (&input["functionInvocationInput"], &input["apiInvocationInput"]) {
        (function @ Value::Object(_), Value::Null) => (true, function),
        (Value::Null, api @ Value::Object(_)) => (false, api),
        _ => return Err(refusal("has an input that is not one of functionInvocationInput and apiInvocationInput")),
    };
    let is_misspelt = |name: &String| name != TYPE && name.eq_ignore_ascii_case(TYPE);
    if input.as_object().is_some_and(|fields| fields.keys().any(is_misspelt)) {
        return Err(refusal("has an input whose actionInvocationType is spelt with other capitals"));
    }
    if input["actionGroup"].is_string() {
        Ok((is_function, input))
    } else {
        Err(refusal("has an input without actionGroup"))
    }
}

fn function(input: &Value, event: &Value, toolbox: &Toolbox) -> Call {
    let name = input["function"].as_str();
    let call = agent::call(name.unwrap_or_default(), &[("parameters", &input["parameters"])], event, toolbox);
    Call { objection: name.is_none().then(|| nameless("The function", toolbox)), ..call }
}

fn operation(input: &Value, event: &Value, toolbox: &Toolbox) -> Call {
    let (path, method) = (input["apiPath"].as_str(), input["httpMethod"].as_str());
    let name = path.zip(method).map(|(path, method)| tool_name(method, path, toolbox)).unwrap_or_default();
    let call = agent_openapi::call(&name, input, event, toolbox);
    Call { objection: name.is_empty().then(|| nameless("The operation", toolbox)), ..call }
}

/// Why an input may not run. Agents from before confirmation send no type, and mean `RESULT`.
fn waiting(input: &Value) -> Option<Failure> {
    match &input[TYPE] {
        Value::Null => None,
        Value::String(kind) if kind == "RESULT" => None,
        Value::String(kind) if kind.starts_with("USER_CONFIRMATION") => {
            let text = "This call waits for the user's confirmation, so it was not run. The application has to ask the \
                        user.";
            Some(Failure::new(FailureKind::ApprovalRequired, text))
        }
        other => {
            let kind = bounded(&other.to_string());
            let text = format!("The call has the actionInvocationType {kind}, which is not known, so it was not run.");
            Some(Failure::new(FailureKind::ApprovalRequired, text))
        }
    }
}

/// What the result repeats of the input.
fn echo(input: &Value, is_function: bool) -> Map<String, Value> {
    let names = if is_function {
        &["actionGroup", "function", "agentId"][..]
    } else {
        &["actionGroup", "apiPath", "httpMethod", "agentId"]
    };
    names
        .iter()
        .filter_map(|name| Some((String::from(*name), input.get(name).filter(|v| v.is_string())?.clone())))
        .collect()
}

impl Form {
    /// A body, which is JSON text, or a failure as a result. Both kinds know one key of a body, `TEXT`.
    fn result(self, outcome: Result<String, Failure>) -> Value {
        let mut result = self.echo;
        if self.is_function {
            if let Value::Object(response) = agent_function::response(outcome) {
                result.extend(response);
            }
            return json!({ "functionResult": result });
        }
        let is_for_the_model = outcome.as_ref().is_err_and(|failure| failure.kind().fixer() == Fixer::Model);
        if is_for_the_model {
            result.insert(String::from("responseState"), json!("REPROMPT"));
        }
        let body = outcome.unwrap_or_else(|failure| envelope::of_failure(&failure).to_string());
        result.insert(String::from("httpStatusCode"), json!(200));
        result.insert(String::from("responseBody"), json!({ "TEXT": { "body": body } }));
        json!({ "apiResult": result })
    }
}

fn answer(id: Option<Value>, results: Vec<Value>) -> Value {
    let mut answer = json!({ "returnControlInvocationResults": Value::Array(results) });
    if let Some(id) = id {
        answer["invocationId"] = id;
    }
    answer
}
