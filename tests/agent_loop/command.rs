//! `dev run-loop` as a process: what it prints, how it ends, and what it says of a bad script.

use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::legal;

const DOCUMENT: &str = include_str!("../../docs/agent-loop.md");

fn dev() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dev"));
    command.stdin(Stdio::null()).env_remove("RUST_LOG").current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}

fn document(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    for request in document["requests"].as_array().expect("requests") {
        assert_eq!(legal::history::faults(request), [""; 0], "{request}");
    }
    document
}

fn run(arguments: &[&str]) -> Value {
    document(&dev().arg("run-loop").args(arguments).output().expect("it runs"))
}

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn script(&self, script: &Value) -> PathBuf {
        let path = self.path("script.json");
        std::fs::write(&path, script.to_string()).expect("a file");
        path
    }
}

fn says(text: &str) -> Value {
    json!({"output": {"message": {"role": "assistant", "content": [{ "text": text }]}}, "stopReason": "end_turn"})
}

#[test]
fn a_loop_prints_how_it_ended_what_it_sent_and_what_it_ran() {
    let loops = run(&["examples/loop/look-up.json"]);
    assert_eq!((&loops["stop"], &loops["answer"]), (&json!("end_turn"), &json!("Your order ORD-12345 is open.")));
    assert_eq!(loops["requests"].as_array().map(Vec::len), Some(2));
    assert_eq!(loops["attempted"], json!([{"tool": "get_order", "outcome": "success"}]));
    assert_eq!(loops["usage"]["totalTokens"], 1821);
    assert_eq!(loops["report"]["stop"], "end_turn");
}

#[test]
fn the_last_reply_is_repeated_and_a_stubborn_model_is_stopped() {
    let loops = run(&["examples/loop/stubborn.json"]);
    assert_eq!((&loops["stop"], loops["attempted"].as_array().map(Vec::len)), (&json!("repeated_failures"), Some(2)));
    assert!(!loops["answer"].as_str().expect("an answer").contains("in a moment"));
}

#[test]
fn a_script_is_read_from_stdin_too_and_a_model_can_fail_by_script() {
    let script = json!({"prompt": "Hello.", "replies": [{"failure": "model"}, says("Hi.")]});
    let mut child = dev()
        .args(["run-loop", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    child.stdin.take().expect("stdin").write_all(script.to_string().as_bytes()).expect("written");
    let loops = document(&child.wait_with_output().expect("it ends"));
    assert_eq!((&loops["answer"], loops["requests"].as_array().map(Vec::len)), (&json!("Hi."), Some(2)));
}

#[test]
fn a_bad_script_is_told_in_a_sentence_and_ends_with_2() {
    let folder = Folder::new();
    for (script, words) in [
        (json!([]), "is no script"),
        (json!({"prompt": "x"}), "replies"),
        (json!({"prompt": "x", "replies": []}), "no replies"),
        (json!({"prompt": "x", "replies": [{"outptu": {}}]}), "Reply 1"),
        (json!({"prompt": "x", "replies": [{"failure": "boredom"}]}), "Reply 1"),
        (json!({"replies": [says("x")]}), "no prompt"),
        (json!({"prompt": "x", "limits": {"max_stpes": 1}, "replies": [says("x")]}), "max_stpes"),
        (json!({"prompt": "x", "limits": {"max_steps": -1}, "replies": [says("x")]}), "-1"),
        (json!({"prompt": "x", "limits": {"max_cost": 1.0}, "replies": [says("x")]}), "without prices"),
        (json!({"prompt": 7, "replies": [says("x")]}), "is no script"),
        (json!({"prompt": " ", "replies": [says("x")]}), "The prompt of the script"),
        (json!({"prompt": "x", "system": "", "replies": [says("x")]}), "The system of the script"),
    ] {
        let output = dev().arg("run-loop").arg(folder.script(&script)).output().expect("it runs");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{script}");
        assert!(stderr.contains(words), "{script}: {stderr}");
    }
    for arguments in [&["no/such/script.json"][..], &[], &["--deadline-ms", "soon", "x.json"]] {
        let output = dev().arg("run-loop").args(arguments).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_field_of_a_reply_that_is_not_read_is_told() {
    let folder = Folder::new();
    let told = |change: &dyn Fn(&mut Value)| {
        let mut reply = json!({
            "output": {"message": {"role": "assistant", "content": [
                {"toolUse": {"toolUseId": "a", "name": "get_order", "input": {"any": 1}}},
            ]}},
            "stopReason": "tool_use",
            "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
            "ResponseMetadata": {"RetryAttempts": 0},
        });
        change(&mut reply);
        let script = folder.script(&json!({"prompt": "x", "replies": [reply, says("Bye.")]}));
        let output = dev().arg("run-loop").arg(script).output().expect("it runs");
        assert!(output.status.success());
        String::from_utf8(output.stderr).expect("UTF-8")
    };
    assert!(!told(&|_| {}).contains("not read"));
    for (place, name) in
        [("", "stop_reason"), ("/output", "mesage"), ("/output/message", "contents"), ("/usage", "input")]
    {
        let said = told(&|reply| reply.pointer_mut(place).expect("a place")[name] = json!("x"));
        assert!(
            said.contains("Reply 1 has ") && said.contains(&format!("{name}, which no Converse response has")),
            "{said}"
        );
    }
    for (place, name) in [("", "toolUses"), ("/toolUse", "toolUseID")] {
        let said = told(&|reply| {
            let block = &mut reply["output"]["message"]["content"][0];
            block.pointer_mut(place).expect("a place")[name] = json!({});
        });
        assert!(said.contains(&format!("{name}, which no Converse response has")), "{said}");
    }
}

#[test]
fn a_conversation_that_cannot_be_kept_is_told_before_the_loop_begins() {
    let folder = Folder::new();
    let state = folder.path("");
    for (path, why) in [
        ("no/such/folder/talk.json", "cannot be kept in no/such/folder/talk.json: No such file"),
        (state.to_str().expect("UTF-8"), "is no conversation"),
    ] {
        let arguments = ["run-loop", "--state", path, "examples/loop/look-up.json"];
        let output = dev().args(arguments).output().expect("it runs");
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{said}");
        assert!(said.contains(why) && !said.contains("request 1"), "{said}");
    }
}

#[test]
fn a_call_that_needs_approval_is_answered_unless_the_loop_is_told_to_pause() {
    let loops = run(&["examples/loop/large-refund.json"]);
    let outcomes =
        json!([{"tool": "refund_order", "outcome": "approval_required"}, {"tool": "get_order", "outcome": "success"}]);
    assert_eq!((&loops["stop"], &loops["attempted"]), (&json!("end_turn"), &outcomes));
}

#[test]
fn a_paused_loop_goes_on_in_another_process_after_the_approval() {
    let folder = Folder::new();
    let (db, state) = (folder.path("shop.db"), folder.path("talk.json"));
    let (db, state) = (db.to_str().expect("UTF-8"), state.to_str().expect("UTF-8"));
    let kept = ["--pause", "--db", db, "--state", state];
    let paused = run(&[&kept[..], &["examples/loop/large-refund.json"]].concat());
    assert_eq!((&paused["stop"], &paused["attempted"]), (&json!("awaiting_approval"), &json!([])));
    let id = paused["report"]["waiting"][0]["approval_id"].as_str().expect("an id");
    let approved = dev().args(["approve", id, "--by", "ada", "--db", db]).output().expect("it runs");
    assert_eq!(approved.status.code(), Some(0));
    let effects = folder.path("effects.json");
    let more = ["--effects", effects.to_str().expect("UTF-8"), "examples/loop/after-approval.json"];
    let done = run(&[&kept[..], &more].concat());
    assert_eq!((&done["stop"], done["attempted"].as_array().map(Vec::len)), (&json!("end_turn"), Some(2)));
    let effects: Value = serde_json::from_slice(&std::fs::read(effects).expect("written")).expect("JSON");
    assert_eq!(effects["refunds"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_process_that_died_right_after_an_effect_is_followed_by_one_that_does_not_repeat_it() {
    let folder = Folder::new();
    let (db, state) = (folder.path("shop.db"), folder.path("talk.json"));
    let (db, state) = (db.to_str().expect("UTF-8"), state.to_str().expect("UTF-8"));
    let reply = json!({
        "output": {"message": {"role": "assistant", "content": [{"toolUse": {
            "toolUseId": "a", "name": "refund_order",
            "input": {"order_id": "ORD-12345", "amount_cents": 1500, "reason": "Late"}
        }}]}},
        "stopReason": "tool_use",
    });
    let script = folder.script(&json!({"prompt": "Refund.", "replies": [reply]}));
    let kill = ["--db", db, "--state", state, "--fault", "refund_order=kill-after-effect"];
    let killed = dev().arg("run-loop").args(kill).arg(&script).output().expect("it runs");
    assert_ne!(killed.status.code(), Some(0));
    let effects = folder.path("effects.json");
    let script = folder.script(&json!({"replies": [says("It is done.")]}));
    let (effects, script) = (effects.to_str().expect("UTF-8"), script.to_str().expect("UTF-8"));
    let done = run(&["--db", db, "--state", state, "--effects", effects, script]);
    assert_eq!((&done["answer"], &done["attempted"][0]["outcome"]), (&json!("It is done."), &json!("replayed")));
    let effects: Value = serde_json::from_slice(&std::fs::read(effects).expect("written")).expect("JSON");
    assert_eq!(effects["refunds"].as_array().map(Vec::len), Some(1));
}

#[test]
fn of_two_loops_on_one_conversation_the_second_is_refused_and_a_killed_one_is_in_nobodys_way() {
    let folder = Folder::new();
    let state = folder.path("talk.json");
    let loops = ["run-loop", "--state", state.to_str().expect("UTF-8"), "examples/loop/look-up.json"];
    let mut first =
        dev().args(loops).args(["--fault", "get_order=hang"]).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut told = BufReader::new(first.stderr.take().expect("stderr")).lines();
    assert!(told.any(|line| line.expect("UTF-8").starts_with("request 1")));
    let before = std::fs::read(&state).expect("it is kept");
    let second = dev().args(loops).output().expect("it runs");
    let said = String::from_utf8(second.stderr).expect("UTF-8");
    assert_eq!((second.status.code(), second.stdout.len()), (Some(2), 0), "{said}");
    assert!(said.contains("Another `dev run-loop` is at the conversation in") && said.contains("talk.json"), "{said}");
    assert!(!before.is_empty() && !said.contains("request 1"), "nothing was begun: {said}");
    first.kill().expect("it can be killed");
    first.wait().expect("it ends");
    assert_eq!(run(&loops[1..])["stop"], "end_turn");
    assert!(!folder.path("talk.json.lock").exists(), "the lock is left behind");
}

#[cfg(unix)]
#[test]
fn a_signal_ends_the_loop_with_its_report() {
    for signal in ["-INT", "-TERM"] {
        let mut child = dev()
            .args(["run-loop", "--fault", "get_order=hang", "examples/loop/look-up.json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        // The first request is told after the loop has begun to listen for signals.
        let mut told = BufReader::new(child.stderr.take().expect("stderr")).lines();
        assert!(told.any(|line| line.expect("UTF-8").starts_with("request 1")));
        let killed = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill runs");
        assert!(killed.success());
        let rest = std::thread::spawn(move || told.for_each(drop)); // a full pipe would hold it up
        let loops = document(&child.wait_with_output().expect("it ends"));
        rest.join().expect("read to its end");
        assert_eq!(
            (&loops["stop"], &loops["report"]["resume"]),
            (&json!("interrupted"), &json!("continue")),
            "{signal}"
        );
    }
}

/// What stands in the document between two lines of a fenced block.
fn block(after: &str, fence: &str) -> &'static str {
    let (_, rest) = DOCUMENT.split_once(after).expect("the chapter");
    let (_, rest) = rest.split_once(&format!("{fence}\n")).expect("the block");
    rest.split_once("```").expect("its end").0
}

#[test]
fn the_handoff_in_the_document_is_what_the_command_there_prints() {
    let command = block("## A hand-off in full", "```sh").trim();
    let arguments = command.strip_prefix("cargo run -- run-loop ").expect("the command");
    let loops = run(&arguments.split_whitespace().collect::<Vec<_>>());
    let printed: Value = serde_json::from_str(block("## A hand-off in full", "```json")).expect("JSON");
    assert_eq!(loops["report"], printed);
    let text = block("## A hand-off in full", "```text");
    assert_eq!(loops["answer"].as_str().map(str::trim), Some(text.trim()));
}

#[test]
fn the_documents_table_of_known_bugs_has_26_rows_and_every_test_in_it_exists() {
    let (_, table) = DOCUMENT.split_once("## Known bugs of agent loops").expect("the chapter");
    let rows = table.lines().map(|line| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>());
    let rows: Vec<_> = rows.filter(|cells| cells[0].parse::<u8>().is_ok()).collect();
    let numbers: Vec<u8> = rows.iter().map(|cells| cells[0].parse().expect("a number")).collect();
    assert_eq!(numbers, (1..=26).collect::<Vec<_>>());
    let mut code = String::new();
    for folder in ["src", "tests"] {
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut code);
    }
    for cells in rows {
        let tests: Vec<_> = cells[2].split(',').map(|name| name.trim().trim_matches('`')).collect();
        assert!(tests.iter().all(|name| code.contains(&format!("fn {name}("))), "{cells:?}");
    }
}

fn sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&std::fs::read_to_string(path).expect("a file"));
        }
    }
}
