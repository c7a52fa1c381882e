//! Whether a tool can be offered at a door: what its dialect cannot say is told before the function starts, not by AWS
//! at the next deployment, or by a model that was told half.
//!
//! What no door could say, the toolbox has refused already. These rules are a single door's:
//!
//! | door | rule | from |
//! | --- | --- | --- |
//! | `converse` | names of arguments have 64 characters at most | the Claude models' pattern for them |
//! | `agent-openapi` | an argument in the path is one value, one in the query no object | neither has a form for it |
//! | `flow` | names of tools and arguments are `[a-zA-Z]([_]?[0-9a-zA-Z]){1,50}`; 20 arguments at most | the service model of bedrock-agent |
//!
//! A door that is closed by `DOORS` has no say. Quotas that AWS raises on request are none of these.

use serde_json::Value;

use super::{Door, prose};
use crate::tool::{Definition, Entry, Method, Toolbox};

/// Why these doors cannot offer these tools: one sentence for each tool, argument and door.
pub fn faults(toolbox: &Toolbox, doors: &[&'static Door]) -> Vec<String> {
    let tools = || toolbox.iter().map(Entry::definition);
    let of = |door: &'static Door, tool| {
        let (tool, faults): (&Definition, _) = (tool, (door.faults)(tool));
        let tell = move |fault| format!("Tool {:?} at the door {}: {fault} Or close the door.", tool.name, door.name);
        faults.into_iter().map(tell)
    };
    doors.iter().flat_map(|door| tools().flat_map(move |tool| of(door, tool))).collect()
}

/// A door that can offer every tool of a toolbox.
pub(super) fn all(_: &Definition) -> Vec<String> {
    Vec::new()
}

/// Names that a Claude model takes on Converse.
pub(super) fn on_converse(tool: &Definition) -> Vec<String> {
    const LONGEST: usize = 64;
    let long = tool.properties().filter(|(name, _)| name.len() > LONGEST);
    long.map(|(name, _)| format!("The name of the argument {name:?} is longer than {LONGEST} characters. Shorten it."))
        .collect()
}

/// What stands in a path is one value; what stands in a query is one or a list.
pub(super) fn in_openapi(tool: &Definition) -> Vec<String> {
    let in_path: Vec<_> = tool.route.path_parameters().collect();
    let fault = |name: &str, schema: &Value| match (in_path.contains(&name), prose::type_of(schema)) {
        (true, "object" | "array") => Some(format!(
            "The argument {name:?} is a list or an object, and the path {:?} has no form for it. Take it out of the path.",
            tool.route.path
        )),
        (false, "object") if tool.route.method == Method::Get => Some(format!(
            "The argument {name:?} is an object, and a query has no form for it. Use `Route::post`, which has a body."
        )),
        _ => None,
    };
    tool.properties().filter_map(|(name, schema)| fault(name, schema)).collect()
}

/// The names and the number of a node's inputs.
pub(super) fn in_flow(tool: &Definition) -> Vec<String> {
    const MOST_INPUTS: usize = 20;
    const RULE: &str = "letters and digits with single underscores between them, a letter first, 2 to 51 in all";
    let mut faults = Vec::new();
    if !is_flow_name(tool.name) {
        faults.push(format!("The tool's name is the node's, so it must be {RULE}. Rename it."));
    }
    for (name, _) in tool.properties().filter(|(name, _)| !is_flow_name(name)) {
        faults.push(format!("The name of the argument {name:?} must be {RULE}. Rename it."));
    }
    let count = tool.properties().count();
    if count > MOST_INPUTS {
        faults.push(format!("It has {count} arguments, and a node takes {MOST_INPUTS}. Put some into a struct."));
    }
    faults
}

/// `[a-zA-Z]([_]?[0-9a-zA-Z]){1,50}`, and not longer than an expression has room for (`$.data.` and 57 characters).
fn is_flow_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && (2..=51).contains(&name.len())
        && name.split('_').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        door::{
            DOORS, named,
            testing::{tool, toolbox, toolbox_of},
        },
        tool::{Effect, Route},
    };

    fn found(door: &str, name: &'static str, route: Route, properties: &Value) -> Vec<String> {
        let toolbox = toolbox_of(tool(name, Effect::Once, route, properties, &[]));
        faults(&toolbox, &[named(door).expect("a door")])
    }

    fn properties(names: &[&str]) -> Value {
        names.iter().map(|name| (String::from(*name), json!({ "type": "string", "description": "A text." }))).collect()
    }

    #[test]
    fn each_door_can_offer_the_demos_tools() {
        assert_eq!(faults(&toolbox(), &DOORS.iter().collect::<Vec<_>>()), [""; 0]);
    }

    #[test]
    fn a_fault_names_the_tool_the_door_and_the_argument() {
        let faults = found("flow", "some_tool", Route::post("/some"), &properties(&["good", "order-id"]));
        assert_eq!(faults.len(), 1);
        for word in ["some_tool", "door flow", "\"order-id\"", "Rename it"] {
            assert!(faults[0].contains(word), "{faults:?}");
        }
    }

    #[test]
    fn a_flows_names_are_as_its_service_model_has_them() {
        let refused = |name: &str| !found("flow", "some_tool", Route::post("/some"), &properties(&[name])).is_empty();
        for legal in ["id", "a1", "a_1", "orderId", &"a".repeat(51)] {
            assert!(!refused(legal), "{legal}");
        }
        for illegal in ["a", "1a", "a-b", "a__b", "_a", "a_", &"a".repeat(52)] {
            assert!(refused(illegal), "{illegal}");
        }
        assert_eq!(found("flow", "2fa", Route::post("/some"), &json!({})).len(), 1);
    }

    #[test]
    fn a_node_has_twenty_inputs_at_most() {
        for (count, faults) in [(20, 0), (21, 1)] {
            let numbered: Vec<_> = (0..count).map(|n| format!("a{n}")).collect();
            let arguments = properties(&numbered.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(found("flow", "some_tool", Route::post("/some"), &arguments).len(), faults);
        }
    }

    #[test]
    fn paths_and_queries_hold_no_objects_and_a_body_does() {
        let object = json!({ "where": { "type": "object", "description": "A place.", "properties": {} } });
        let list = json!({ "where": { "type": "array", "description": "Places.", "items": { "type": "string" } } });
        for (route, of_object, of_list) in
            [(Route::post("/some"), 0, 0), (Route::get("/some"), 1, 0), (Route::post("/some/{where}"), 1, 1)]
        {
            assert_eq!(found("agent-openapi", "some_tool", route.clone(), &object).len(), of_object, "{route:?}");
            assert_eq!(found("agent-openapi", "some_tool", route.clone(), &list).len(), of_list, "{route:?}");
        }
    }

    #[test]
    fn a_closed_door_has_no_say() {
        assert!(found("converse", "some_tool", Route::get("/some"), &properties(&["a-b"])).is_empty());
        assert_eq!(found("converse", "some_tool", Route::get("/some"), &properties(&[&"a".repeat(65)])).len(), 1);
    }
}
