//! Any text as the value of an argument, of each type that a schema can have, as agents send it.
#![no_main]

use std::sync::LazyLock;

use action_group::{
    door::{self, DOORS, Event},
    tool::Toolbox,
};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

static TOOLS: LazyLock<Toolbox> = LazyLock::new(fuzz::toolbox);

fuzz_target!(|text: &str| {
    for name in ["text", "limit", "price", "open", "tags", "numbers", "line", "lines"] {
        let parameters = json!([{ "name": name, "type": "string", "value": text }]);
        let body = json!({ "actionGroup": "g", "function": "search_orders", "parameters": parameters });
        let event = Event { body, flawed: false, client_context: None };
        let door = door::detect(&event, &DOORS.iter().collect::<Vec<_>>()).expect("an agent's event");
        let call = (door.decode)(event, &TOOLS).expect("a call").calls.remove(0);
        let entry = TOOLS.get(&call.tool).expect("a tool");
        let arguments = entry.checker().normalise(call.arguments.values);
        if call.arguments.faults.is_empty() && entry.checker().check(&arguments).is_empty() {
            assert!(entry.tool().plan(&arguments).is_ok(), "the tool's type refuses {arguments}");
            if name == "text" {
                assert_eq!(arguments["text"], text, "a text stays as it is");
            }
        }
    }
});
