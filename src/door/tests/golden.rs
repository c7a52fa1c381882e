//! Events as others have seen them: what is read in each, and its answers, against a file that was looked through by a
//! person. `UPDATE_GOLDEN=1 cargo test --lib golden` writes it anew.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use serde_json::{Value, json};

use super::{faults, invalid};
use crate::{
    door::{
        detect,
        testing::{all, read, success, tool},
    },
    outcome::Outcome,
    tool::{AnyTool, Effect, Route, Toolbox},
};

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// The tools that the events call.
fn toolbox() -> Toolbox {
    let text = || json!({ "type": "string" });
    let texts = || json!({ "type": "array", "items": { "type": "string" } });
    let line = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let order = json!({ "type": "object", "properties": { "sku": text(), "qty": { "type": "integer" } } });
    let facet = json!({ "type": "object", "properties": { "columnName": text(), "values": texts() } });
    let rows = json!({ "type": "array", "items": { "type": "object", "additionalProperties": text() } });
    let stock = json!({ "itemId": text(), "delta": { "type": "integer" }, "unitPrice": { "type": "number" }, "urgent": { "type": "boolean" } });
    let functions = [
        ("getStock", json!({ "itemId": text() })),
        ("getStockMany", json!({ "itemIds": texts() })),
        ("adjustStock", stock),
        ("buildChart", json!({ "rows": rows, "xAxis": text() })),
        ("get_stock", json!({ "itemId": text() })),
        ("StockNode", json!({ "itemId": text(), "count": { "type": "integer" }, "flags": { "type": "array" } })),
        ("listWarehouses", json!({})),
        ("list_warehouses", json!({})),
        ("goto", json!({})),
        ("get_order_status", json!({ "orderId": text() })),
        ("save_note", json!({})),
        ("searchProducts", json!({})),
        ("internal.create_task", json!({})),
        ("placeholder_tool", json!({})),
        ("ping", json!({})),
        ("get_server_status", json!({})),
        ("n", json!({})),
    ];
    let routes = [
        ("list_claims", Route::get("/claims"), json!({})),
        ("get_claim", Route::get("/claims/{claimId}"), json!({ "claimId": text() })),
        ("one_property", Route::post("/api/path"), json!({ "prop1": text() })),
        ("search", Route::get("/go_search"), json!({ "searchQueries": texts() })),
        (
            "portal",
            Route::post("/portal-url"),
            json!({ "facets": { "type": "array", "items": facet }, "tags": texts(), "ids": texts() }),
        ),
        ("remind", Route::post("/send-reminders"), json!({ "claimId": text(), "pendingDocuments": text() })),
        ("query", Route::post("/sql-query"), json!({ "table": text() })),
        (
            "place_order",
            Route::post("/orders"),
            json!({ "dryRun": { "type": "boolean" }, "order": order, "lines": { "type": "array", "items": line } }),
        ),
    ];
    let functions = functions.into_iter().map(|(name, properties)| (name, Route::post("/no-route"), properties));
    let tools = functions.chain(routes).map(|(name, route, properties)| {
        Arc::new(crate::door::testing::Data(tool(name, Effect::ReadOnly, route, &properties, &[]))) as Arc<dyn AnyTool>
    });
    Toolbox::unchecked(tools)
}

/// What becomes of an event: its calls and its answers, or the refusal.
fn account(name: &str, toolbox: &Toolbox) -> Value {
    let event = || read(&path("doors").join(name));
    let door = match detect(&event(), &all()) {
        Ok(door) => door,
        Err(refusal) => return json!({ "refused": refusal.to_string().split(" Open doors").next() }),
    };
    let answered = |outcome: Option<Outcome>| {
        let request = (door.decode)(event(), toolbox).expect("a request");
        let end = |objection: &Option<_>| objection.clone().map(Outcome::Failure).or(outcome.clone());
        let outcomes = request.calls.iter().filter_map(|call| end(&call.objection)).collect();
        let mut answer = (request.encode)(outcomes);
        if let Some(server) = answer.pointer_mut("/result/serverInfo") {
            *server = json!("…"); // the package's name and version, which a project of its own changes
        }
        answer
    };
    let calls = (door.decode)(event(), toolbox).expect("a request").calls;
    if calls.is_empty() {
        return json!({ "door": door.name, "answer": answered(None) });
    }
    let told: Vec<_> = calls
        .iter()
        .map(|call| {
            json!({
                "tool": call.tool,
                "known": toolbox.get(&call.tool).is_some(),
                "arguments": call.arguments.values,
                "faults": faults(&call.arguments),
                "objection": call.objection.as_ref().map(|objection| objection.kind().name()),
            })
        })
        .collect();
    json!({
        "door": door.name,
        "calls": told,
        "success": answered(Some(success(json!({ "left": 12 })))),
        "failure": answered(Some(invalid())),
    })
}

#[test]
fn events_as_others_have_seen_them_are_read_and_answered_as_written_down() {
    let toolbox = toolbox();
    let mut names: Vec<_> = std::fs::read_dir(path("doors"))
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    assert!(names.len() > 40);
    let accounts: BTreeMap<_, _> = names.iter().map(|name| (name.clone(), account(name, &toolbox))).collect();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let text = serde_json::to_string_pretty(&accounts).expect("JSON") + "\n";
        std::fs::write(path("doors.golden.json"), text).expect("the file can be written");
        return;
    }
    let golden = std::fs::read_to_string(path("doors.golden.json")).expect("the file");
    let golden: BTreeMap<String, Value> = serde_json::from_str(&golden).expect("JSON");
    for (name, account) in &accounts {
        assert_eq!(Some(account), golden.get(name), "{name}");
    }
    assert_eq!(accounts.len(), golden.len());
}
