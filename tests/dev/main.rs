//! The program `dev`, run as a process: what it prints where, and how it ends. `files` has what it does with the files that its
//! options name.

mod files;

use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use action_group::door::DOORS;
use serde_json::{Value, json};
use tempfile::TempDir;

fn dev() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dev"));
    command.stdin(Stdio::null()).env_remove("RUST_LOG").env_remove("NO_COLOR");
    command
}

fn run(arguments: &[&str]) -> Output {
    dev().args(arguments).output().expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// A folder with events in it.
struct Events(TempDir);

impl Events {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).expect("a file");
        path
    }

    fn tool_use(&self, tool: &str, input: &Value) -> PathBuf {
        let event = json!({"toolUse": {"toolUseId": "tooluse_1", "name": tool, "input": input}});
        self.write(&format!("{tool}.json"), &event.to_string())
    }

    /// What `--effects` wrote after these arguments and files.
    fn effects_of(&self, arguments: &[&str], files: &[&Path]) -> (Output, Value) {
        let effects = self.path("effects.json");
        let output =
            dev().args(["invoke", "--effects"]).arg(&effects).args(arguments).args(files).output().expect("it runs");
        let effects = std::fs::read(&effects).map(|json| serde_json::from_slice(&json).expect("JSON"));
        (output, effects.unwrap_or_default())
    }
}

fn answers(output: &Output) -> Vec<Value> {
    text(&output.stdout).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn help_is_everywhere_and_has_examples() {
    for arguments in [
        &["--help"][..],
        &["-h"],
        &["help"],
        &["invoke", "--help"],
        &["invoke", "-h"],
        &["help", "invoke"],
        &["schema", "-h"],
        &["dynamodb", "-h"],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(text(&output.stdout).contains("Examples:"), "{arguments:?}");
    }
}

#[test]
fn help_for_a_command_is_the_same_by_both_ways() {
    for command in
        ["invoke", "run-loop", "chat", "schema", "pending", "approve", "deny", "dashboard", "alarms", "dynamodb"]
    {
        assert_eq!(text(&run(&["help", command]).stdout), text(&run(&[command, "--help"]).stdout), "{command}");
    }
    assert_eq!(run(&["help", "window"]).status.code(), Some(2));
}

#[test]
fn bad_usage_ends_with_2_and_nothing_on_stdout() {
    for arguments in [
        &[][..],
        &["invoke"],
        &["invoke", "no/such/file.json"],
        &["invoke", "--fault", "get_order=explode", "Cargo.toml"],
        &["invoke", "--metrics", "no/such/folder/metrics", "Cargo.toml"],
        &["schema", "window"],
        &["fly"],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_reader_that_has_had_enough_ends_nothing_and_is_told_nothing() {
    let events = Events::new();
    let refund =
        events.tool_use("refund_order", &json!({"order_id": "ORD-12345", "amount_cents": 1500, "reason": "Broken"}));
    let (refund, effects) = (refund.display().to_string(), events.path("effects.json").display().to_string());
    for arguments in [
        &["schema", "converse"][..],
        &["dashboard"],
        &["alarms"],
        &["run-loop", "examples/loop/look-up.json"],
        &["invoke", "--effects", &effects, &refund],
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = dev().args(arguments).stdout(writer).stderr(Stdio::piped()).output().expect("it runs");
        let said = text(&output.stderr);
        assert!(output.status.success() && !said.contains("error"), "{arguments:?}: {said}");
    }
    let effects: Value = serde_json::from_slice(&std::fs::read(effects).expect("written")).expect("JSON");
    assert_eq!(effects["refunds"].as_array().map(Vec::len), Some(1));
}

#[test]
fn the_database_is_served_with_the_lines_that_lead_to_it() {
    let mut server = dev().args(["dynamodb", "--port", "0"]).stdout(Stdio::piped()).spawn().expect("it runs");
    let mut first = String::new();
    BufReader::new(server.stdout.take().expect("stdout")).read_line(&mut first).expect("a line");
    let address =
        first.trim().strip_prefix("export AWS_ENDPOINT_URL_DYNAMODB=http://").expect("the endpoint").to_owned();
    let mut socket = std::net::TcpStream::connect(&address).expect("somebody listens");
    socket.write_all(b"GET / HTTP/1.1\r\nhost: db\r\nconnection: close\r\n\r\n").expect("a request");
    let mut status = String::new();
    BufReader::new(socket).read_line(&mut status).expect("an answer");
    server.kill().expect("it was running");
    server.wait().expect("it ends");
    assert!(status.starts_with("HTTP/1.1 200"), "{status}");
}

#[test]
fn an_unknown_tool_to_misbehave_is_bad_usage_and_the_tools_are_named() {
    let output = run(&["invoke", "--fault", "get=hang", "Cargo.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert!(text(&output.stderr).contains("search_orders"));
}

#[test]
fn each_invocation_has_one_line_and_a_function_error_ends_with_1() {
    let events = Events::new();
    let good = events.tool_use("get_order", &json!({"order_id": "ORD-12345"}));
    let broken = events.write("broken.raw", "{");
    let (output, effects) = events.effects_of(&[], &[&broken, &good]);
    assert_eq!(output.status.code(), Some(1));
    let answers = answers(&output);
    assert!(answers[0]["functionError"]["errorType"].is_string());
    assert_eq!(answers[1]["toolResult"]["status"], "success");
    assert_eq!(effects["calls"]["get_order"], 1);
}

#[test]
fn the_same_refund_asked_for_twice_is_made_once() {
    let events = Events::new();
    let refund =
        events.tool_use("refund_order", &json!({"order_id": "ORD-12345", "amount_cents": 1500, "reason": "Broken"}));
    let (output, effects) = events.effects_of(&[], &[&refund, &refund]);
    assert_eq!(output.status.code(), Some(0));
    let answers = answers(&output);
    assert_eq!(answers[0]["toolResult"]["content"][0], answers[1]["toolResult"]["content"][0]);
    assert_eq!(effects["refunds"].as_array().map(Vec::len), Some(1));
    assert_eq!(effects["calls"]["refund_order"], 1);
}

#[test]
fn a_process_that_is_killed_after_a_refund_leaves_the_refund_for_the_next_to_find() {
    let events = Events::new();
    let db = events.path("orders.db");
    let db = db.to_str().expect("UTF-8");
    let refund =
        events.tool_use("refund_order", &json!({"order_id": "ORD-12345", "amount_cents": 1500, "reason": "Broken"}));
    let (killed, _) = events.effects_of(&["--db", db, "--fault", "refund_order=kill-after-effect"], &[&refund]);
    assert_eq!((killed.status.code(), killed.stdout.len()), (Some(137), 0));
    let (output, effects) = events.effects_of(&["--db", db], &[&refund]);
    assert_eq!(answers(&output)[0]["toolResult"]["status"], "success");
    assert_eq!(effects["refunds"][0]["amount_cents"], 1500);
    assert_eq!((effects["refunds"].as_array().map(Vec::len), &effects["calls"]["refund_order"]), (Some(1), &json!(0)));
}

/// The walk through it, in `docs/idempotency.md`.
#[test]
fn a_mail_of_unknown_outcome_is_sent_once_and_found_out_once_the_mailer_can_be_asked() {
    let events = Events::new();
    let database = events.path("shop.db").display().to_string();
    let event = events.tool_use("send_email", &json!({"to": "a@example.com", "subject": "s", "body": "b"}));
    let call = |options: &[&str]| {
        let arguments = [&["--db", &database, "--deadline-ms", "1500"], options].concat();
        let (output, effects) = events.effects_of(&arguments, &[&event]);
        (answers(&output)[0]["toolResult"]["status"].clone(), effects["emails"].as_array().map(Vec::len))
    };
    assert_eq!(call(&["--fault", "send_email=hang-after-effect"]), (json!("error"), Some(1)));
    assert_eq!(call(&[]), (json!("error"), Some(1)), "it cannot be known, and is not sent again");
    assert_eq!(call(&["--mail-log"]), (json!("success"), Some(1)), "the mailer says that it was sent");
    assert_eq!(call(&[]), (json!("success"), Some(1)), "and from now on the record does");
}

#[test]
fn stdout_holds_answers_only_whatever_is_logged() {
    let events = Events::new();
    let good = events.tool_use("get_order", &json!({"order_id": "ORD-12345"}));
    for level in ["trace", "debug", "info", "warn,action_group=debug"] {
        let output = dev().env("RUST_LOG", level).arg("invoke").arg(&good).output().expect("it runs");
        assert_eq!(text(&output.stdout).lines().count(), 1, "{level}");
        assert_eq!(answers(&output)[0]["toolResult"]["status"], "success");
        assert!(!text(&output.stderr).contains('\x1b'), "colours without a terminal");
    }
    let output = dev().env("RUST_LOG", "a=b=c").arg("invoke").arg(&good).output().expect("it runs");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert!(text(&output.stderr).contains("RUST_LOG"), "{}", text(&output.stderr));
}

#[cfg(target_os = "linux")]
#[test]
fn a_stderr_that_takes_nothing_changes_no_answer() {
    let full = || std::fs::File::options().write(true).open("/dev/full").expect("the device");
    let events = Events::new();
    let event = events.tool_use("send_email", &json!({"to": "a@example.com", "subject": "s", "body": "b"}));
    let output = dev().arg("invoke").arg(event).env("RUST_LOG", "debug").stderr(full()).output().expect("it runs");
    assert_eq!(answers(&output)[0]["toolResult"]["status"], "success");
    assert!(output.status.success());
    assert_eq!(dev().args(["invoke", "no/such/file"]).stderr(full()).status().expect("it runs").code(), Some(2));
}

#[test]
fn answers_of_files_started_at_once_come_in_the_order_of_the_files() {
    let events = Events::new();
    let first = events.tool_use("get_order", &json!({"order_id": "ORD-12345"}));
    let second = events.tool_use("search_orders", &json!({"customer_id": "C-2"}));
    let (output, _) = events.effects_of(&["--concurrent", "--fault", "get_order=retry-after:1*1"], &[&first, &second]);
    let answers = answers(&output);
    assert_eq!(answers[0]["toolResult"]["content"][0]["json"]["order_id"], "ORD-12345");
    assert!(answers[1].to_string().contains("ORD-20001"));
}

#[test]
fn an_event_is_read_from_stdin() {
    let mut child = dev()
        .args(["invoke", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    let event = json!({"toolUse": {"toolUseId": "t", "name": "get_order", "input": {"order_id": "ORD-12345"}}});
    child.stdin.take().expect("stdin").write_all(event.to_string().as_bytes()).expect("written");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(answers(&output)[0]["toolResult"]["toolUseId"], "t");
}

#[test]
fn each_door_has_one_json_document_of_definitions() {
    let help = String::from_utf8(run(&["schema", "--help"]).stdout).expect("text");
    for door in DOORS.iter().map(|door| door.name) {
        assert!(help.contains(&format!("\n  {door} ")), "{door} is not in the help");
        let output = run(&["schema", door]);
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert!(document.to_string().contains("order_id"), "{door}");
    }
}
