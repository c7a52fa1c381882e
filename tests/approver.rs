//! A person approves by a function of its own: both real programs, on one table.

#![cfg(feature = "dev")] // the embedded DynamoDB

mod support;

use std::process::Command;

use serde_json::{Value, json};
use support::{Event, Function, WRONG, World};

const TOOLS: &str = env!("CARGO_BIN_EXE_action-group");
const APPROVER: &str = env!("CARGO_BIN_EXE_approver");

fn refund(cents: u64) -> Event {
    let input = json!({"order_id": "ORD-20001", "amount_cents": cents, "reason": "damaged"});
    Event::json(&json!({"toolUse": {"toolUseId": "t1", "name": "refund_order", "input": input}}))
}

async fn status(function: &mut Function, event: Event) -> String {
    let answer = function.invoke(event).await.response();
    answer["toolResult"]["status"].as_str().expect("a status").to_owned()
}

async fn asked(approver: &mut Function, request: Value) -> Value {
    approver.invoke(Event::json(&request)).await.response()
}

/// The calls that wait, as the list shows them.
async fn waiting(approver: &mut Function) -> Vec<Value> {
    let listed = asked(approver, json!({"action": "list"})).await;
    assert_eq!(listed["next"], Value::Null, "it is the whole list");
    listed["pending"].as_array().expect("a list").clone()
}

/// The one among them with these cents.
fn of(cents: u64, pending: &[Value]) -> &Value {
    let is_it = |call: &&Value| call["arguments"].as_str().expect("a text").contains(&cents.to_string());
    pending.iter().find(is_it).expect("the call")
}

fn decision(action: &str, id: &Value, by: &str) -> Value {
    json!({"action": action, "id": id, "by": by})
}

#[tokio::test]
async fn what_a_person_approves_runs_once_and_what_a_person_refuses_does_not() {
    let mut world = World::start(TOOLS).await;
    let mut approver = world.beside(APPROVER).await;
    assert_eq!(status(&mut world.function, refund(60_000)).await, "error");
    assert_eq!(status(&mut world.function, refund(50_001)).await, "error");

    let pending = waiting(&mut approver).await;
    assert_eq!(pending.len(), 2, "{pending:?}");
    for time in [&pending[0]["asked_at"], &pending[0]["expires_at"]] {
        let text = time.as_str().expect("a text");
        assert!(text.starts_with("20") && text.ends_with('Z') && text.len() == "2026-11-30T09:48:21Z".len(), "{text}");
    }
    let [large, small] = [60_000, 50_001].map(|cents| &of(cents, &pending)["id"]);
    let decided = asked(&mut approver, decision("approve", large, "ada")).await;
    assert_eq!((&decided["ok"], &decided["decided"]["tool"]), (&json!(true), &json!("refund_order")), "{decided}");
    assert_eq!(asked(&mut approver, decision("deny", small, "ada")).await["ok"], true);

    assert_eq!(status(&mut world.function, refund(60_000)).await, "success");
    assert_eq!(status(&mut world.function, refund(50_001)).await, "error");
    let again = asked(&mut approver, decision("approve", large, "ada")).await;
    assert_eq!(again["ok"], false, "an approval is used once");
}

/// Ada has listed one; before she decides, Bob has refused it, and another one waits.
#[tokio::test]
async fn a_person_cannot_approve_what_was_never_shown() {
    let mut world = World::start(TOOLS).await;
    let mut approver = world.beside(APPROVER).await;
    status(&mut world.function, refund(60_000)).await;
    let shown = waiting(&mut approver).await.remove(0);
    assert_eq!(asked(&mut approver, decision("deny", &shown["id"], "bob")).await["ok"], true);
    status(&mut world.function, refund(59_000)).await;

    let other = waiting(&mut approver).await.remove(0);
    let id = other["id"].as_str().expect("a text");
    let (key, _) = id.split_once('.').expect("the key and what was shown");
    for short in ["refund_order#", "refund_order", key, &key[..20], &id[..id.len() - 1], ""] {
        let refused = asked(&mut approver, decision("approve", &json!(short), "ada")).await;
        assert_eq!(refused["ok"], false, "{short}: {refused}");
        let text = refused["error"].as_str().expect("a sentence");
        assert!(text.contains("whole `id`"), "{text}");
    }
    let late = asked(&mut approver, decision("approve", &shown["id"], "ada")).await;
    assert!(late["error"].as_str().expect("a sentence").contains("any more"), "{late}");
    assert_eq!(waiting(&mut approver).await, [other], "nobody has decided on what nobody has seen");
    assert_eq!(status(&mut world.function, refund(59_000)).await, "error");
}

#[tokio::test]
async fn a_request_that_is_none_and_a_decision_of_nobody_are_refused() {
    let mut world = World::start(TOOLS).await;
    let mut approver = world.beside(APPROVER).await;
    let no_key = json!({"action": "approve", "key": "refund_order#", "by": "ada"});
    for nonsense in [json!({}), json!({"action": "approve"}), json!({"action": "list", "all": true}), json!([]), no_key]
    {
        let error = approver.invoke(Event::json(&nonsense)).await.error();
        assert_eq!(error["errorType"], "InvalidPayload", "{nonsense}");
    }
    let nowhere = asked(&mut approver, json!({"action": "list", "after": "refund_order#"})).await;
    assert!(nowhere["error"].as_str().expect("a sentence").contains("`next`"), "{nowhere}");
    status(&mut world.function, refund(60_000)).await;
    let pending = waiting(&mut approver).await;
    let nobody = asked(&mut approver, decision("approve", &pending[0]["id"], " ")).await;
    assert_eq!(nobody["ok"], false);
    assert_eq!(waiting(&mut approver).await, pending);
}

/// The index is missing, or may not be read. Whoever has to mend it reads in the log what it was.
#[tokio::test]
async fn why_the_table_refuses_a_person_is_in_the_log() {
    let mut world = World::start(TOOLS).await;
    let mut approver = world.beside(APPROVER).await;
    status(&mut world.function, refund(60_000)).await;
    let shown = waiting(&mut approver).await.remove(0);
    let requests = [("Query", json!({"action": "list"})), ("GetItem", decision("approve", &shown["id"], "ada"))];
    for (operation, request) in requests {
        world.faults.misbehave(operation, [WRONG]);
        let refused = asked(&mut approver, request).await;
        assert!(refused["error"].as_str().expect("a sentence").contains("ValidationException"), "{refused}");
        let has_line = |output: &str| {
            let of_it = format!("\"operation\":\"{operation}\"");
            let is_it = |line: &str| {
                ["the record table failed", "ValidationException", &of_it].iter().all(|part| line.contains(part))
            };
            output.lines().any(is_it)
        };
        approver.output_when(has_line).await;
    }
}

/// The commands of the first block of a document that approves something, without the program's name.
fn shown_in(document: &str) -> Vec<Vec<&str>> {
    let blocks = document.split("\n```").filter_map(|block| block.strip_prefix("sh\n"));
    let block = blocks.into_iter().find(|block| block.contains(" approve ")).expect("a block that approves");
    let commands = block.lines().map(|line| line.split(" #").next().unwrap_or(line));
    commands
        .filter_map(|line| line.split_once(" -- "))
        .map(|(_, options)| options.split_whitespace().collect())
        .collect()
}

#[test]
fn the_approvals_that_the_documents_show_can_be_typed_as_they_stand() {
    for document in [include_str!("../README.md"), include_str!("../docs/agent-loop.md")] {
        let folder = tempfile::tempdir().expect("a folder");
        let commands = shown_in(document);
        assert_eq!(commands.len(), 4, "call, list, approve, call again: {commands:?}");
        let ran: Vec<_> = commands.into_iter().map(|command| run(&folder, &command)).collect();
        assert!(ran[2].contains("\"tool\":\"refund_order\""), "{ran:?}");
        assert!(!ran[0].contains("refund_id") && ran[3].contains("refund_id"), "{ran:?}");
    }
}

/// Runs `dev`, with the files that it makes in this folder; gives its stdout.
fn run(folder: &tempfile::TempDir, command: &[&str]) -> String {
    let is_made = |word: &&str| ["orders.db", "shop.db", "talk.json"].contains(word);
    let path = |word: &str| folder.path().join(word).display().to_string();
    let words = command.iter().map(|word| if is_made(word) { path(word) } else { String::from(*word) });
    let output = Command::new(env!("CARGO_BIN_EXE_dev")).args(words).output().expect("it runs");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}
