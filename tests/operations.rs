//! `docs/operations.md` is what people read when they are woken: its tables and queries are those of the code.
#![cfg(feature = "dev")]

use std::{
    collections::BTreeSet,
    process::{Command, Stdio},
};

mod support;

use action_group::{
    agent::metrics::{OF_REQUESTS, OF_TURNS},
    telemetry::metrics::METRICS,
};
use serde_json::{Value, json};
use support::{Event, Fault, World};

const DOCUMENT: &str = include_str!("../docs/operations.md");

fn chapter(heading: &str) -> &'static str {
    let rest = DOCUMENT.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no chapter {heading}")).1;
    rest.split("\n## ").next().unwrap_or(rest)
}

/// The cells of a chapter's table, its two heads left out.
fn rows(heading: &str) -> Vec<Vec<String>> {
    let lines = chapter(heading).lines().filter(|line| line.starts_with('|')).skip(2);
    lines.map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

#[test]
fn the_table_of_metrics_is_that_of_the_code() {
    let told: Vec<_> = rows("Metrics").iter().map(|row| row.join(" | ")).collect();
    let known: Vec<_> =
        METRICS.iter().map(|metric| format!("`{}` | {} | {}", metric.name, metric.unit(), metric.meaning)).collect();
    assert_eq!(told, known, "the rows should be:\n| {} |\n", known.join(" |\n| "));
    let always = METRICS.iter().take_while(|metric| metric.is_in_every_line()).count();
    assert_eq!(always, METRICS.iter().filter(|metric| metric.is_in_every_line()).count());
    assert!(chapter("Metrics").contains("The first eight are in every line") && always == 8, "{always}");
}

#[test]
fn the_table_of_the_loops_metrics_is_that_of_the_code() {
    let told: Vec<_> = rows("Metrics of the loop").iter().map(|row| row.join(" | ")).collect();
    let row = |name: &str, unit: &str, always: bool, meaning: &str| {
        format!("`{name}` | {unit} | {} | {meaning}", if always { "each" } else { "when it counts" })
    };
    let known: Vec<_> = (OF_REQUESTS.iter().map(|one| row(one.name, one.unit, one.is_in_every_line, one.meaning)))
        .chain(OF_TURNS.iter().map(|one| row(one.name, one.unit, one.is_in_every_line, one.meaning)))
        .collect();
    assert_eq!(told, known, "the rows should be:\n| {} |\n", known.join(" |\n| "));
}

/// The names in the first column.
fn fields() -> BTreeSet<String> {
    rows("Log lines").iter().map(|row| row[0].trim_matches('`').to_owned()).collect()
}

/// The lines of some calls of the real program, at DEBUG.
async fn lines() -> Vec<Value> {
    let world = World::start(env!("CARGO_BIN_EXE_action-group")).await;
    let mut function = world.launch_beside(env!("CARGO_BIN_EXE_action-group"), &[("RUST_LOG", "debug")]).await;
    world.faults.misbehave("UpdateItem", [Fault::Silence]);
    for event in ["create-shipping-label", "get-order", "refund-order"] {
        function.invoke(Event::file(&format!("converse/{event}.json"))).await;
    }
    let missing = json!({"toolUse": {"toolUseId": "t1", "name": "get_order", "input": {"order_id": "ORD-00000"}}});
    function.invoke(Event::json(&missing)).await;
    function.invoke(Event::file("agent-function/get-order.json")).await;
    let output = function.output_when(|output| output.matches("\"message\":\"call\"").count() == 5).await;
    output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[tokio::test]
async fn every_field_of_a_line_is_explained_and_every_field_that_is_explained_exists() {
    let fields = fields();
    let lines = lines().await;
    let mut seen = BTreeSet::new();
    for line in lines.iter().filter(|line| ["call", "attempt"].contains(&line["message"].as_str().unwrap_or_default()))
    {
        seen.extend(line.as_object().expect("an object").keys().cloned());
    }
    assert!(seen.is_subset(&fields), "not explained: {:?}", seen.difference(&fields));
    // These need a fault of ours.
    let rare = BTreeSet::from(["reference", "fault"].map(str::to_owned));
    let missing: BTreeSet<_> = fields.difference(&seen).filter(|field| !rare.contains(*field)).collect();
    assert!(missing.is_empty(), "never seen: {missing:?}");
}

/// Runs one call of `name`, while `break_it` is in force; its log line, and the answer.
async fn broken(world: &mut World, name: &str, arguments: Value, break_it: impl FnOnce(&World)) -> (Value, String) {
    break_it(world);
    let block = json!({"toolUse": {"toolUseId": "t1", "name": name, "input": arguments}});
    let seen = world.function.output().matches("\"message\":\"call\"").count();
    let answer = world.function.invoke(Event::json(&block)).await.response().to_string();
    let output = world.function.output_when(move |output| output.matches("\"message\":\"call\"").count() > seen).await;
    let line = output.lines().filter(|line| line.contains("\"message\":\"call\"")).nth(seen).expect("a line");
    (serde_json::from_str(line).expect("JSON"), answer)
}

#[tokio::test]
async fn the_line_of_a_fault_names_its_cause_and_the_reference_that_the_model_was_told() {
    const REFUSED: Fault = Fault::Instead(400, r#"{"__type":"x#AccessDeniedException","message":"SECRET-1 may not"}"#);
    let mut world = World::start(env!("CARGO_BIN_EXE_action-group")).await;
    let order = json!({"order_id": "ORD-12345"});
    let label = |carrier: &str| json!({"order_id": "ORD-12345", "carrier": carrier});
    let check = |(line, answer): (Value, String), outcome: &str, fault: Value| {
        assert_eq!((&line["outcome"], &line["fault"]), (&json!(outcome), &fault), "{line}");
        let told = answer.contains("(reference ");
        assert_eq!(line["reference"].as_str().is_some_and(|reference| answer.contains(reference)), told, "{line}");
        assert_eq!((told, line.get("reference").is_some()), (outcome == "internal", outcome == "internal"), "{line}");
        assert!(!line.to_string().contains("SECRET"), "{line}");
    };

    let read = broken(&mut world, "get_order", order.clone(), |at| at.faults.misbehave("GetItem", [REFUSED])).await;
    check(read, "internal", json!("AccessDeniedException"));
    let lost = [Fault::Instead(500, "<html>SECRET-2</html>"); 3];
    let read = broken(&mut world, "get_order", order.clone(), |at| at.faults.misbehave("GetItem", lost)).await;
    check(read, "transient", json!("HTTP 500"));

    let unknown = [Fault::Instead(401, "SECRET-3")];
    let bought = broken(&mut world, "create_shipping_label", label("dhl"), |at| {
        at.backend_faults.misbehave("/labels", unknown);
    });
    check(bought.await, "internal", json!("HTTP 401"));
    let refused = [Fault::Instead(422, "SECRET-4")];
    let bought = broken(&mut world, "create_shipping_label", label("dhl"), |at| {
        at.backend_faults.misbehave("/labels", refused);
    });
    check(bought.await, "rejected", json!("HTTP 422"));
    let unclear = [Fault::Instead(409, "SECRET-5"); 3];
    let bought = broken(&mut world, "create_shipping_label", label("ups"), |at| {
        at.backend_faults.misbehave("/labels", unclear);
    });
    check(bought.await, "outcome_unknown", json!("HTTP 409"));
    let mended = [Fault::Instead(502, "SECRET-6")];
    let bought = broken(&mut world, "create_shipping_label", label("fedex"), |at| {
        at.backend_faults.misbehave("/labels", mended);
    });
    check(bought.await, "success", Value::Null);

    let mail = |subject: &str| json!({"to": "ada@example.com", "subject": subject, "body": "SECRET"});
    let sandbox = Fault::Instead(
        400,
        r#"{"__type":"MessageRejected","message":"Email address is not verified. The following identities failed the check in region EU-WEST-1: SECRET@example.com"}"#,
    );
    let sent = broken(&mut world, "send_email", mail("sandbox"), |at| {
        at.backend_faults.misbehave("/v2/email/outbound-emails", [sandbox]);
    });
    check(sent.await, "internal", json!("MessageRejected: not verified"));
    let virus = Fault::Instead(400, r#"{"__type":"MessageRejected","message":"SECRET-8 holds a virus"}"#);
    let sent = broken(&mut world, "send_email", mail("virus"), |at| {
        at.backend_faults.misbehave("/v2/email/outbound-emails", [virus]);
    });
    check(sent.await, "rejected", json!("MessageRejected"));

    let refund = |cents: u64| json!({"order_id": "ORD-12345", "amount_cents": cents, "reason": "broken"});
    let begun = broken(&mut world, "create_shipping_label", json!({"order_id": "ORD-54321", "carrier": "dhl"}), |at| {
        at.faults.misbehave("PutItem", [REFUSED]);
    });
    check(begun.await, "internal", json!("PutItem of the record table: AccessDeniedException"));
    let committed = broken(&mut world, "refund_order", refund(100), |at| {
        at.faults.misbehave("TransactWriteItems", [REFUSED]);
    });
    check(committed.await, "internal", json!("TransactWriteItems of the record table: AccessDeniedException"));
    let lost = broken(&mut world, "refund_order", refund(200), |at| {
        at.faults.misbehave("TransactWriteItems", [Fault::Instead(502, "<html>SECRET-7</html>"); 3]);
    });
    let (line, answer) = lost.await;
    assert_eq!(line["fault"], "TransactWriteItems of the record table: HTTP 502", "{line}");
    assert!(line["outcome"] != "success" && !answer.contains("(reference "), "{line} {answer}");
}

#[test]
fn a_fault_without_a_name_is_known_by_its_place_in_the_code_and_its_text_stays_away() {
    let event = concat!(env!("CARGO_MANIFEST_DIR"), "/events/converse/get-order.json");
    let mut dev = Command::new(env!("CARGO_BIN_EXE_dev"));
    dev.args(["invoke", "--fault", "get_order=leak", event]).env("RUST_LOG", "info").stdin(Stdio::null());
    let output = dev.output().expect("the program runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let after = |start: &str| said.split_once(start).unwrap_or_else(|| panic!("no {start} in {said}")).1;
    let reference = after("reference=\"").split('"').next().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains(&format!("(reference {reference})")), "{said}");
    let line = after("fault=\"src/dev/faulty.rs:").split('"').next().unwrap();
    assert!(line.parse::<u32>().is_ok() && !said.contains("SECRET"), "{said}");
}

#[test]
fn the_queries_ask_for_fields_that_exist() {
    let fields = fields();
    let words = [
        "fields", "filter", "sort", "desc", "limit", "stats", "count", "as", "pct", "min", "sum", "by", "and", "or",
        "like", "true",
    ];
    let made = ["calls", "p50", "p99", "least_headroom"];
    let queries: Vec<_> = chapter("Queries").split("```").skip(1).step_by(2).collect();
    assert_eq!(queries.len(), 3);
    for query in queries {
        let outside = query.split('"').step_by(2).collect::<String>(); // without texts in quotes
        for word in outside.split(|c: char| !c.is_ascii_alphanumeric() && !"_@".contains(c)) {
            let is_name = word.starts_with(|c: char| c.is_ascii_alphabetic());
            let known = words.contains(&word) || made.contains(&word) || fields.contains(word);
            assert!(!is_name || known, "{word} in {query}");
        }
    }
}
