//! What Bedrock takes as an answer, written down a second time: from the service models and the documentation, and
//! without a look at how the doors make their answers. Each function gives the rules that an answer breaks.

#![allow(dead_code)] // each test program uses a part

use serde_json::Value;

pub mod history;

/// The rules of the door that the answer to this event breaks.
pub fn faults(door: &str, event: &Value, answer: &Value) -> Vec<String> {
    faults_of(door, event, false, answer)
}

/// The same, of an event whose payload may have been unclear: `event` is then what was made of it.
pub fn faults_of(door: &str, event: &Value, is_unclear: bool, answer: &Value) -> Vec<String> {
    let mut rules = Rules { broken: Vec::new(), is_unclear };
    match door {
        "gateway" | "flow" => rules.envelope(answer),
        "agent-function" => rules.agent_function(event, answer),
        "agent-openapi" => rules.agent_openapi(event, answer),
        "mcp" => rules.mcp(event, answer),
        "converse" => rules.converse(event, answer),
        "return-of-control" => rules.return_of_control(event, answer),
        other => rules.hold(false, &format!("no rules are written for the door {other}")),
    }
    rules.hold(answer.to_string().len() < 6_000_000, "Lambda carries at most 6 MB");
    rules.broken
}

struct Rules {
    broken: Vec<String>,
    is_unclear: bool,
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect()
}

fn is_filled(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.trim().is_empty())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn has_key(value: &Value, key: &str) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(name, value)| name == key || has_key(value, key)),
        Value::Array(items) => items.iter().any(|item| has_key(item, key)),
        _ => false,
    }
}

impl Rules {
    fn hold(&mut self, holds: bool, rule: &str) {
        if !holds {
            self.broken.push(String::from(rule));
        }
    }

    /// All keys are known, and those without `?` are there.
    fn keys(&mut self, what: &str, value: &Value, known: &[&str]) {
        let names: Vec<_> = known.iter().map(|name| name.trim_end_matches('?')).collect();
        for key in keys(value) {
            self.hold(names.contains(&key), &format!("{what} has the key {key}"));
        }
        for name in known.iter().filter(|name| !name.ends_with('?')) {
            self.hold(value.get(name).is_some(), &format!("{what} has no {name}"));
        }
    }

    fn error(&mut self, error: &Value) {
        self.keys("the error", error, &["kind", "message", "retryable", "changed"]);
        self.hold(is_filled(&error["kind"]) && is_filled(&error["message"]), "an error has a kind and a message");
        self.hold(error["retryable"].is_boolean(), "retryable is a boolean");
        let changed = ["nothing", "unknown", "done"];
        self.hold(error["changed"].as_str().is_some_and(|text| changed.contains(&text)), "changed is one of three");
    }

    fn envelope(&mut self, answer: &Value) {
        if answer["ok"] == true {
            self.keys("the envelope", answer, &["ok", "result", "replayed?"]);
        } else {
            self.keys("the envelope", answer, &["ok", "error"]);
            self.hold(answer["ok"] == false, "ok is a boolean");
            self.error(&answer["error"]);
        }
    }

    fn agent(&mut self, event: &Value, answer: &Value, echoed: &[&str]) {
        let known = ["messageVersion", "response", "sessionAttributes?", "promptSessionAttributes?"];
        self.keys("the answer", answer, &known);
        self.hold(answer["messageVersion"] == "1.0", "the message version is 1.0");
        for name in echoed {
            self.hold(answer["response"].get(name) == event.get(name), &format!("{name} is echoed as it came"));
            self.hold(event[name].is_string(), &format!("{name} is a text, as Bedrock sends it and takes it back"));
            self.as_sent(&event[name], name);
        }
        let mut attributes = 0;
        for name in ["sessionAttributes", "promptSessionAttributes"] {
            let is_map = |attributes: &&Value| {
                attributes.as_object().is_some_and(|attributes| attributes.values().all(Value::is_string))
            };
            let came = event.get(name).filter(is_map).filter(|_| !self.is_unclear);
            self.hold(answer.get(name).is_none_or(|given| is_map(&given)), &format!("{name} are a map of texts"));
            self.hold(answer.get(name) == came, &format!("{name} are echoed if they can be, and the event is clear"));
            attributes += came.map_or(0, |came| came.to_string().len());
        }
        let echo: usize = echoed.iter().map(|name| event[name].to_string().len()).sum();
        self.hold(answer.to_string().len() <= 25_000 + attributes + echo, "an agent's answer has at most 25 KB");
    }

    /// A text with U+FFFD in an unclear event may be none of its sender's: nobody would know it again.
    fn as_sent(&mut self, repeated: &Value, name: &str) {
        let is_mended = repeated.as_str().is_some_and(|text| text.contains('\u{fffd}'));
        self.hold(!self.is_unclear || !is_mended, &format!("{name} is not repeated where it was mended"));
    }

    /// One key, under which there is a text.
    fn body<'a>(&mut self, holder: &'a Value, key: &str) -> &'a str {
        self.hold(keys(holder) == [key], &format!("the one key of the body is {key}"));
        self.keys("the body", &holder[key], &["body"]);
        self.hold(is_filled(&holder[key]["body"]), "the body is a text that is not blank");
        holder[key]["body"].as_str().unwrap_or_default()
    }

    fn state(&mut self, holder: &Value) {
        let state = holder.get("responseState");
        self.hold(state.is_none_or(|state| state == "REPROMPT"), "FAILURE would end the user's turn");
    }

    fn agent_function(&mut self, event: &Value, answer: &Value) {
        self.agent(event, answer, &["actionGroup", "function"]);
        self.keys("the response", &answer["response"], &["actionGroup", "function", "functionResponse"]);
        let response = &answer["response"]["functionResponse"];
        self.keys("the function's response", response, &["responseBody", "responseState?"]);
        self.body(&response["responseBody"], "TEXT");
        self.state(response);
    }

    fn agent_openapi(&mut self, event: &Value, answer: &Value) {
        self.agent(event, answer, &["actionGroup", "apiPath", "httpMethod"]);
        let response = &answer["response"];
        let known = ["actionGroup", "apiPath", "httpMethod", "httpStatusCode", "responseBody"];
        self.keys("the response", response, &known);
        self.hold(response["httpStatusCode"] == 200, "another status could end the user's turn");
        let body = self.body(&response["responseBody"], "application/json");
        self.hold(serde_json::from_str::<Value>(body).is_ok(), "the body is JSON");
    }

    fn mcp(&mut self, message: &Value, answer: &Value) {
        let method = message["method"].as_str().unwrap_or_default();
        if answer.is_null() {
            let is_notification = method.starts_with("notifications/") && message.get("id").is_none();
            return self.hold(is_notification, "only a notification is not answered");
        }
        let id = message.get("id").filter(|id| id.is_string() || id.is_number());
        self.hold(answer["jsonrpc"] == "2.0", "the answer is of JSON-RPC 2.0");
        // A number beyond 64 bits would come back as another one, so it counts as unreadable: null, and an error.
        let is_unread = answer["id"].is_null() && answer.get("error").is_some() && id.is_none_or(Value::is_f64);
        self.hold(is_unread || answer.get("id") == id, "the id is the request's");
        self.as_sent(&answer["id"], "the id");
        if let Some(error) = answer.get("error") {
            self.keys("the answer", answer, &["jsonrpc", "id", "error"]);
            self.keys("the error", error, &["code", "message", "data?"]);
            self.hold(error["code"].is_i64() && is_filled(&error["message"]), "an error has a code and a message");
            return;
        }
        self.keys("the answer", answer, &["jsonrpc", "id", "result"]);
        self.hold(id.is_some(), "only a request with an id has a result");
        self.mcp_result(method, &answer["result"]);
    }

    fn mcp_result(&mut self, method: &str, result: &Value) {
        match method {
            "tools/call" => {
                let known = ["resultType", "content", "structuredContent", "isError"];
                self.keys("the result", result, &known);
                self.hold(!list(&result["content"]).is_empty(), "there is content");
                for block in list(&result["content"]) {
                    self.keys("the block", block, &["type", "text"]);
                    self.hold(block["type"] == "text" && is_filled(&block["text"]), "a block is a text");
                }
                self.hold(result["structuredContent"].is_object(), "data is an object, for clients before 2026-07-28");
                self.hold(result["isError"].is_boolean(), "isError is a boolean");
                if result["isError"] == true {
                    self.error(&result["structuredContent"]["error"]);
                }
            }
            "tools/list" => {
                self.keys("the list", result, &["resultType", "tools", "ttlMs", "cacheScope"]);
                for tool in list(&result["tools"]) {
                    self.keys("the tool", tool, &["name", "description", "inputSchema", "annotations"]);
                    self.hold(tool["inputSchema"]["type"] == "object", "the schema is of an object");
                }
            }
            "initialize" => self.keys("the handshake", result, &["protocolVersion", "capabilities", "serverInfo"]),
            "server/discover" => {
                let known = ["resultType", "supportedVersions", "capabilities", "ttlMs", "cacheScope", "_meta?"];
                self.keys("the discovery", result, &known);
            }
            "ping" => self.keys("the pong", result, &[]),
            other => self.hold(false, &format!("the method {other} has no result")),
        }
    }

    fn converse(&mut self, event: &Value, answer: &Value) {
        let capital = has_capital(event);
        let key = |name: &str| if capital { name[..1].to_uppercase() + &name[1..] } else { String::from(name) };
        let get = |value: &Value, name: &str| value.get(key(name)).cloned().unwrap_or_default();
        // A union may come with null for each member that it is not.
        let has = |name: &str| !get(event, name).is_null();
        let message = if has("output") { get(&get(event, "output"), "message") } else { event.clone() };
        let is_message = get(&message, "content").is_array() || has("output");
        let is_bare = has("toolUseId") && !has("toolUse");
        let (asked, answered) = if has("toolUse") {
            (vec![get(event, "toolUse")], vec![get(answer, "toolResult")])
        } else if event.is_array() {
            self.hold(list(answer).iter().all(|block| keys(block) == [key("toolResult")]), "a list of results");
            (uses(event, &key), list(answer).iter().map(|block| get(block, "toolResult")).collect())
        } else if is_bare {
            (vec![event.clone()], vec![answer.clone()])
        } else {
            self.hold(is_message || get(&message, "role").is_string(), "it was a message");
            self.keys("the message", answer, &[&key("role"), &key("content")]);
            self.hold(get(answer, "role") == "user", "results come from the user");
            let content = get(answer, "content");
            (uses(&get(&message, "content"), &key), list(&content).iter().map(|b| get(b, "toolResult")).collect())
        };
        let mut ids: Vec<Value> = Vec::new();
        for asked in asked.iter().filter(|asked| get(asked, "type") != "server_tool_use") {
            let id = get(asked, "toolUseId");
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        let given: Vec<_> = answered.iter().map(|result| get(result, "toolUseId")).collect();
        self.hold(ids == given, &format!("one result for each id in their order: {ids:?} and {given:?}"));
        for id in everywhere(event) {
            self.hold(ids.contains(&id), &format!("the call {id} is answered, wherever it stands"));
        }
        for result in &answered {
            self.keys("the result", result, &[&key("toolUseId"), &key("status"), &key("content")]);
            self.tool_result(&get(result, "toolUseId"), &get(result, "status"), &get(result, "content"), &key);
        }
    }

    fn tool_result(&mut self, id: &Value, status: &Value, content: &Value, key: &dyn Fn(&str) -> String) {
        let is_legal = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
        let id = id.as_str().unwrap_or_default();
        self.hold((1..=64).contains(&id.len()) && id.chars().all(is_legal), "an id has 1 to 64 legal characters");
        self.hold(status == "success" || status == "error", "the status is success or error");
        self.hold(!list(content).is_empty(), "the content is not empty");
        for block in list(content) {
            match (block.get(key("json")), block.get(key("text"))) {
                (Some(json), None) => {
                    self.hold(json.is_object(), "json is an object");
                    self.hold(!has_key(json, "__type"), "json has no key __type at any depth");
                    self.hold(status == "success", "an error is a text");
                }
                (None, Some(text)) => self.hold(is_filled(text), "a text is not blank"),
                _ => self.hold(false, "a block has one of json and text"),
            }
            self.hold(keys(block).len() == 1, "a block has one key");
        }
    }

    fn return_of_control(&mut self, event: &Value, answer: &Value) {
        self.keys("the state", answer, &["returnControlInvocationResults", "invocationId?"]);
        let control = event.get("returnControl").unwrap_or(event);
        self.hold(answer.get("invocationId") == control.get("invocationId"), "the id is the event's");
        self.as_sent(&answer["invocationId"], "the id");
        let beside = event.get("invocationInputs").filter(|inputs| !inputs.is_null());
        let is_one = beside.is_none_or(|beside| *beside == control["invocationInputs"]);
        self.hold(is_one, "every input is answered, inside of returnControl or beside it");
        let (inputs, results) = (list(&control["invocationInputs"]), list(&answer["returnControlInvocationResults"]));
        self.hold(inputs.len() == results.len() && !results.is_empty(), "one result for each input");
        for (input, result) in inputs.iter().zip(results) {
            let function = &input["functionInvocationInput"];
            let (from, to, echoed) = if function.is_object() {
                (function, "functionResult", &["actionGroup", "function", "agentId"][..])
            } else {
                let echoed = &["actionGroup", "apiPath", "httpMethod", "agentId"][..];
                (&input["apiInvocationInput"], "apiResult", echoed)
            };
            self.hold(keys(result) == [to], "a result is of the kind of its input");
            let status = if to == "apiResult" { &["httpStatusCode"][..] } else { &[] };
            let optional: Vec<_> = echoed[1..].iter().map(|name| format!("{name}?")).collect();
            let optional = optional.iter().map(String::as_str).chain(["responseState?", "responseBody", "actionGroup"]);
            self.keys("the result", &result[to], &optional.chain(status.iter().copied()).collect::<Vec<_>>());
            for name in echoed {
                let came = from.get(name).filter(|value| value.is_string());
                self.hold(result[to].get(name) == came, &format!("{name} is echoed"));
                self.as_sent(&result[to][name], name);
            }
            self.body(&result[to]["responseBody"], "TEXT");
            self.state(&result[to]);
        }
    }
}

fn has_capital(event: &Value) -> bool {
    let is_capital = |value: &Value| {
        ["Output", "ToolUse", "ToolUseId", "Role", "Content"].iter().any(|key| value.get(key).is_some())
    };
    is_capital(event) || list(event).iter().any(is_capital)
}

/// The ids of all calls that stand where Converse has them, at whatever level: data in calls and results is none.
fn everywhere(value: &Value) -> Vec<Value> {
    if value.get("type").or(value.get("Type")).is_some_and(|kind| kind == "server_tool_use") {
        return Vec::new();
    }
    let own = ["toolUseId", "ToolUseId"].iter().filter_map(|key| value.get(key).cloned());
    let inner = ["output", "message", "content", "toolUse", "Output", "Message", "Content", "ToolUse"];
    let inner = inner.iter().filter_map(|key| value.get(key)).chain(list(value));
    own.chain(inner.flat_map(everywhere)).collect()
}

fn uses(blocks: &Value, key: &dyn Fn(&str) -> String) -> Vec<Value> {
    list(blocks)
        .iter()
        .filter(|block| block.get(key("type")).is_none_or(|kind| kind != "server_tool_use"))
        .filter_map(|block| block.get(key("toolUse")).filter(|tool_use| !tool_use.is_null()).cloned())
        .collect()
}
