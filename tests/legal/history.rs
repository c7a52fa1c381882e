//! What Converse takes as a request, from the service model and the errors that people have met.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{has_key, is_filled, list};

/// The rules that this request (`messages`, `toolConfig`, …) breaks.
pub fn faults(request: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let mut hold = |holds: bool, rule: String| {
        if !holds {
            faults.push(rule);
        }
    };
    let messages = list(&request["messages"]);
    let tools = list(&request["toolConfig"]["tools"]);
    hold(!messages.is_empty(), String::from("there are messages"));
    hold(messages.len() % 2 == 1, String::from("the last message is the user's"));
    let (mut asked, mut ids) = (Vec::new(), BTreeSet::new());
    for (index, message) in messages.iter().enumerate() {
        let speaker = ["user", "assistant"][index % 2];
        let content = list(&message["content"]);
        hold(message["role"] == speaker, format!("message {index} is the {speaker}'s"));
        hold(!content.is_empty(), format!("message {index} has content"));
        let of = |name: &str| content.iter().filter_map(|block| block.get(name)).collect::<Vec<_>>();
        hold(of("text").into_iter().all(is_filled), format!("message {index} has no blank text"));
        let (uses, results) = (of("toolUse"), of("toolResult"));
        hold(uses.is_empty() || speaker == "assistant", format!("message {index}: only the model asks for calls"));
        hold(uses.len() + results.len() == 0 || !tools.is_empty(), format!("message {index}: toolConfig is defined"));
        let is_clients = |one: &Value| one["type"].is_null() || one["type"] == "tool_use";
        let server: Vec<_> = uses.iter().filter(|one| !is_clients(one)).collect();
        let given: Vec<_> = results.iter().map(|result| result["toolUseId"].clone()).collect();
        if speaker == "user" {
            hold(given == asked, format!("message {index} answers {asked:?} with {given:?}"));
            let first = content.iter().take(given.len());
            hold(
                first.filter(|block| block.get("toolResult").is_some()).count() == given.len(),
                format!("message {index}: results come first"),
            );
        } else {
            let all_known = given.iter().all(|id| server.iter().any(|one| one["toolUseId"] == *id));
            hold(all_known, format!("message {index}: only server tools have results here"));
            let at = |name: &str, id: &Value| content.iter().position(|block| block[name]["toolUseId"] == *id);
            for id in server.iter().map(|one| &one["toolUseId"]) {
                hold(
                    given.iter().filter(|given| *given == id).count() == 1 && at("toolUse", id) < at("toolResult", id),
                    format!("message {index}: the server tool {id} has its one result, after it"),
                );
            }
        }
        let ours = uses.iter().filter(|one| is_clients(one));
        asked = ours.map(|one| one["toolUseId"].clone()).collect();
        for one in &uses {
            let (id, name) = (one["toolUseId"].as_str().unwrap_or_default(), one["name"].as_str().unwrap_or_default());
            hold(is_word(id, b"_.:-"), format!("message {index}: a legal id, not {id:?}"));
            hold(is_word(name, b"_-"), format!("message {index}: a legal name, not {name:?}"));
            hold(ids.insert(id.to_owned()), format!("message {index}: the id {id} is there once"));
            hold(
                one["input"].is_object() && !has_key(&one["input"], "__type"),
                format!("message {index}: input of {id}"),
            );
        }
        for result in &results {
            let id = &result["toolUseId"];
            let content = list(&result["content"]);
            hold(!content.is_empty(), format!("message {index}: the result of {id} has content"));
            hold(
                result["status"] == "success" || result["status"] == "error",
                format!("message {index}: status of {id}"),
            );
            for block in content {
                let is_text = block.get("text").is_some_and(is_filled);
                let is_json = block.get("json").is_some_and(|json| json.is_object() && !has_key(json, "__type"));
                let members = block.as_object().map_or(0, serde_json::Map::len);
                hold(members == 1 && (is_text || is_json), format!("message {index}: a block of the result of {id}"));
            }
        }
    }
    for tool in tools {
        let name = tool["toolSpec"]["name"].as_str().unwrap_or_default();
        hold(is_word(name, b"_-"), format!("the tool's name {name:?}"));
    }
    hold(
        request.get("maxOutputTokens").is_none_or(|most| most.as_u64() > Some(0)),
        String::from("some output is asked for"),
    );
    faults
}

fn is_word(text: &str, others: &[u8]) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || others.contains(&byte))
}
