//! `dev chat`: the real program at a terminal that is none, and a scripted model behind HTTP.

#![cfg(feature = "dev")]

mod support;

use std::{
    io::{Read, Write},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use support::{Converse, Reply, calls, says};

/// Long enough for a machine under load.
const PATIENCE: Duration = Duration::from_mins(1);

/// The running program.
struct Chat {
    child: Child,
    /// On stdout and on stderr, apart: what comes first of the two is chance.
    written: [Arc<Mutex<String>>; 2],
}

impl Chat {
    fn begin(model: &Converse, options: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_dev"))
            .args(["chat", "--model", "a-model"])
            .args(options)
            .env_clear()
            .envs([("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test"), ("AWS_REGION", "us-east-1")])
            .envs([("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", model.endpoint()), ("USER", String::from("ada"))])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let written = [Arc::<Mutex<String>>::default(), Arc::default()];
        collect(child.stdout.take().unwrap(), &written[0]);
        collect(child.stderr.take().unwrap(), &written[1]);
        Self { child, written }
    }

    fn written(&self) -> String {
        self.written.each_ref().map(|written| written.lock().unwrap().clone()).concat()
    }

    fn say(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Waits until it has written this; gives all that it has written.
    async fn hears(&mut self, wanted: &str) -> String {
        let start = Instant::now();
        loop {
            let written = self.written();
            if written.contains(wanted) {
                return written;
            }
            assert!(start.elapsed() < PATIENCE, "no {wanted:?}:\n{written}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The end of stdin; gives the exit code and all that it has written.
    async fn leave(mut self) -> (Option<i32>, String) {
        drop(self.child.stdin.take());
        let code = self.ended().await;
        let written = self.written();
        (code, written)
    }

    async fn ended(&mut self) -> Option<i32> {
        let start = Instant::now();
        loop {
            assert!(start.elapsed() < PATIENCE, "it does not end");
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for Chat {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect(mut stream: impl Read + Send + 'static, written: &Arc<Mutex<String>>) {
    let written = Arc::clone(written);
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut bytes) {
            written.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    });
}

fn large_refund(id: &str) -> Reply {
    let input = json!({"order_id": "ORD-20001", "amount_cents": 60_000, "reason": "damaged"});
    calls([(id, "refund_order", input)])
}

#[tokio::test]
async fn text_and_calls_are_shown_and_the_conversation_goes_on_line_by_line() {
    let order = json!({"order_id": "ORD-12345"});
    let model = Converse::start([calls([("a", "get_order", order)]), says("It is open."), says("Bye.")]).await;
    let mut chat = Chat::begin(&model, &[]);
    chat.say("How is ORD-12345?");
    for wanted in [
        "calls get_order {\"order_id\":\"ORD-12345\"}",
        "get_order {\"order_id\":\"ORD-12345\"}: success",
        "It is open.\n",
        "2 steps, 1 calls",
    ] {
        chat.hears(wanted).await;
    }
    chat.say("");
    chat.say("Thanks!");
    chat.hears("Bye.").await;
    assert_eq!(chat.leave().await.0, Some(0));
    assert!(model.paths().iter().all(|path| path == "a-model/converse-stream"), "it streams");
    let last = model.requests()[2]["messages"].as_array().unwrap().len();
    assert_eq!((model.requests().len(), last), (3, 5));
}

#[tokio::test]
async fn the_person_approves_what_waits_and_the_model_cannot() {
    let model = Converse::start([large_refund("a"), says("Refunded.")]).await;
    let mut chat = Chat::begin(&model, &[]);
    chat.say("Refund 600 of ORD-20001. I approve of everything, y.");
    let shown =
        chat.hears("refund_order {\"amount_cents\":60000,\"order_id\":\"ORD-20001\",\"reason\":\"damaged\"}").await;
    assert!(!shown.contains("success"), "nothing runs before the decision:\n{shown}");
    chat.say("y");
    for wanted in ["Approved.", "success", "Refunded."] {
        chat.hears(wanted).await;
    }
}

#[tokio::test]
async fn what_is_refused_is_not_run_and_the_model_is_told() {
    let model = Converse::start([large_refund("a"), says("I will not.")]).await;
    let mut chat = Chat::begin(&model, &[]);
    chat.say("Refund 600 of ORD-20001.");
    chat.say("n");
    chat.hears("Denied.").await;
    let shown = chat.hears("I will not.").await;
    assert!(!shown.contains("success"), "{shown}");
    let result = &model.requests()[1]["messages"][2]["content"][0]["toolResult"];
    assert_eq!(result["status"], "error", "{result}");
}

#[tokio::test]
async fn another_message_instead_of_a_decision_is_not_approved() {
    let model = Converse::start([large_refund("a"), says("As you wish.")]).await;
    let mut chat = Chat::begin(&model, &[]);
    chat.say("Refund 600 of ORD-20001.");
    chat.say("");
    chat.say("Leave it.");
    chat.hears("counts as \"not approved\"").await;
    let shown = chat.hears("As you wish.").await;
    assert!(!shown.contains("success"), "{shown}");
    let said = model.requests()[1]["messages"][2].to_string();
    assert!(said.contains("toolResult") && said.contains("Leave it."), "{said}");
}

/// Runs `dev` with these arguments; gives what is on its stdout.
fn dev(arguments: &[&str]) -> Vec<Value> {
    let done = Command::new(env!("CARGO_BIN_EXE_dev")).args(arguments).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_conversation_in_a_file_is_left_decided_on_elsewhere_and_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("shop.db");
    let db: &str = Path::to_str(&db).unwrap();
    let model = Converse::start([large_refund("a"), says("Refunded.")]).await;
    let options = ["--db", db, "--conversation", "monday"];
    let mut chat = Chat::begin(&model, &options);
    chat.say("Refund 600 of ORD-20001.");
    chat.say("");
    chat.hears("dev approve refund_order#").await;
    assert_eq!(chat.leave().await.0, Some(0));

    let pending = dev(&["pending", "--db", db]);
    dev(&["approve", pending[0]["id"].as_str().unwrap(), "--by", "ada", "--db", db]);
    let mut chat = Chat::begin(&model, &options);
    chat.say("/resume");
    chat.hears("Refunded.").await;
    chat.hears("success").await;
}

#[tokio::test]
async fn a_killed_chat_leaves_word_who_has_the_conversation_and_until_when() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("shop.db");
    let db: &str = Path::to_str(&db).unwrap();
    let model = Converse::start([says("Hello."), Reply::Silence]).await;
    let options = ["--db", db, "--conversation", "monday"];
    let mut chat = Chat::begin(&model, &options);
    chat.say("Hello?");
    chat.hears("Hello.").await;
    chat.say("Are you there?");
    while model.requests().len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let killed = format!("`dev chat` in the process {}, until 2", chat.child.id());
    drop(chat); // SIGKILL
    let mut chat = Chat::begin(&model, &options);
    chat.say("/resume");
    let said = chat.hears("error: Another driver has this conversation").await;
    assert!(said.contains(&killed), "{said}");
}

#[cfg(unix)]
#[tokio::test]
async fn ctrl_c_and_the_signals_of_kill_and_of_a_closed_terminal_end_the_turn_with_its_report() {
    for signal in ["-INT", "-TERM", "-HUP"] {
        let order = json!({"order_id": "ORD-12345"});
        let model = Converse::start([calls([("a", "get_order", order)]), Reply::Silence]).await;
        let mut chat = Chat::begin(&model, &[]);
        chat.say("How is ORD-12345?");
        chat.hears("success").await;
        while model.requests().len() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let killed = Command::new("kill").args([signal, &chat.child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        assert_eq!(chat.ended().await, Some(130), "{signal}");
        for wanted in ["stopped: interrupted", "Done:\n- get_order", "can be resumed"] {
            chat.hears(wanted).await;
        }
    }
}

#[tokio::test]
async fn a_model_that_fails_is_said_without_a_word_of_the_service() {
    let model = Converse::start([Reply::Refused(403, "AccessDeniedException")]).await;
    let mut chat = Chat::begin(&model, &[]);
    chat.say("Hello");
    chat.hears("The model may not be used").await;
    let shown = chat.hears("stopped: model_failed").await;
    assert!(!shown.contains("SECRET"), "{shown}");
}

/// What refuses to give credentials, as the metadata service of a machine without a role does.
fn forbidden() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().map_while(Result::ok) {
            let _ = socket.read(&mut [0; 4096]);
            let _ = socket.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn without_credentials_there_is_a_sentence_and_no_word_of_where_they_were_looked_for() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_dev"))
        .args(["chat", "--model", "a-model"])
        .env_clear()
        .envs([("AWS_REGION", "us-east-1"), ("AWS_EC2_METADATA_SERVICE_ENDPOINT", &forbidden())])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"Hello\n").unwrap();
    let said = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
    assert!(said.contains("the permission or the credentials are missing"), "{said}");
    assert!(!said.contains("aws_config"), "{said}");
}

#[test]
fn without_a_model_or_a_region_there_is_a_sentence() {
    let run = |arguments: &[&str], region: Option<&str>| {
        let done = Command::new(env!("CARGO_BIN_EXE_dev"))
            .arg("chat")
            .args(arguments)
            .env_clear()
            .envs(region.map(|region| ("AWS_REGION", region)))
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    let (code, said) = run(&[], Some("us-east-1"));
    assert!(code == Some(2) && said.contains("MODEL_ID is not set."), "{said}");
    for none in [None, Some("")] {
        let (code, said) = run(&["--model", "a-model"], none);
        assert!(code == Some(2) && said.contains("No AWS region is set."), "{said}");
    }
}
