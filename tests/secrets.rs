//! What a caller sends and what a backend's error says comes out nowhere: not in answers, metrics or log lines.
#![cfg(feature = "dev")]

mod support;

use std::process::{Command, Stdio};

use action_group::{
    agent::drive::SaveError,
    call::Arguments,
    clock::Timestamp,
    door::Event as DoorEvent,
    idempotency::{Asking, Claim, Stored},
    outcome::Outcome,
    payload,
    runtime::Invocation,
    tool::{Caller, Effect, Success, ToolError},
};
use serde_json::{Value, json};
use support::{Event, Fault, World};

const WORDS: [&str; 4] = ["SECRET-1", "SECRET-2", "SECRET-3", "db.internal"];

fn assert_clean(what: &str, text: &str) {
    for word in WORDS {
        assert!(!text.contains(word), "{word} in {what}:\n{text}");
    }
}

/// A gateway's call with a token in a header and in a query parameter.
fn gateway_call(tool: &str, event: &Value) -> Value {
    json!({
        "event": event,
        "clientContext": {"custom": {
            "bedrockAgentCoreToolName": format!("orders___{tool}"),
            "bedrockAgentCorePropagatedHeaders": {"Authorization": "Bearer SECRET-1"},
            "bedrockAgentCorePropagatedQueryParameters": {"token": "SECRET-2"},
        }},
    })
}

#[test]
fn a_backend_that_leaks_secrets_leaks_them_nowhere_at_any_level_but_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, metrics) = (folder.path().join("event.json"), folder.path().join("metrics"));
    for (tool, event) in [
        ("get_order", json!({"order_id": "ORD-12345"})),
        ("refund_order", json!({"order_id": "ORD-12345", "amount_cents": 100, "reason": "SECRET-3"})),
        ("create_shipping_label", json!({"order_id": "ORD-12345", "carrier": "ups"})),
        ("send_email", json!({"to": "a@example.com", "subject": "SECRET-3", "body": "SECRET-3"})),
    ] {
        std::fs::write(&file, gateway_call(tool, &event).to_string()).expect("a file");
        for level in ["info", "debug"] {
            let mut dev = Command::new(env!("CARGO_BIN_EXE_dev"));
            dev.args(["invoke", "--fault", &format!("{tool}=leak"), "--metrics"]).arg(&metrics).arg(&file);
            let output = dev.stdin(Stdio::null()).env("RUST_LOG", level).output().expect("the program runs");
            let said = [&output.stdout[..], &output.stderr, &std::fs::read(&metrics).expect("metrics")].concat();
            let said = String::from_utf8(said).expect("UTF-8");
            assert!(said.contains(tool) && said.contains("\"Errors\":1"), "{said}");
            assert_clean(&format!("{tool} at {level}"), &said);
        }
    }
}

#[tokio::test]
async fn the_real_program_logs_no_arguments_headers_or_answers_of_backends_at_debug() {
    let world = World::start(env!("CARGO_BIN_EXE_action-group")).await;
    let mut function = world.launch_beside(env!("CARGO_BIN_EXE_action-group"), &[("RUST_LOG", "debug")]).await;
    world.faults.misbehave("PutItem", [Fault::Silence]);
    let mail = json!({"to": "a@example.com", "subject": "SECRET-3", "body": "SECRET-3"});
    for event in [json!({"order_id": "db.internal"}), json!({"order_id": "ORD-12345"})] {
        let call = gateway_call("get_order", &event);
        function.invoke(Event::json(&call["event"]).client_context(call["clientContext"].to_string())).await.response();
    }
    let call = gateway_call("send_email", &mail);
    function.invoke(Event::json(&mail).client_context(call["clientContext"].to_string())).await.response();
    let output = function.output_when(|output| output.matches("\"message\":\"call\"").count() == 3).await;
    assert!(output.contains("\"message\":\"attempt\""), "{output}");
    assert_clean("the log", &output);
}

#[test]
fn what_holds_a_secret_does_not_show_it_for_debugging() {
    let secret = json!({"token": "SECRET-1"});
    let asking = Asking::of(&secret, &Caller::default().with_identity("SECRET-2"));
    let shown = [
        format!("{:?}", Arguments::from_json(secret.clone())),
        format!("{:?}", Outcome::Success { result: secret.clone(), replayed: false }),
        format!("{:?}", Stored::of(secret.to_string())),
        format!("{:?}", Success::from(secret.clone())),
        format!("{:?}", DoorEvent { body: secret.clone(), client_context: Some(secret.clone()), flawed: false }),
        format!("{:?}", payload::read(secret.to_string().as_bytes())),
        format!("{:?}", ToolError::internal("SECRET-1")),
        format!("{:?}", SaveError::Unavailable("SECRET-1".into())),
        format!("{asking:?}"),
        format!("{:?}", Invocation { payload: secret.to_string().into(), ..Invocation::default() }),
        format!(
            "{:?}",
            Claim {
                owner: String::from("o"),
                effect: Effect::Once,
                lease_until: Timestamp::default(),
                expires_at: Timestamp::default(),
                for_approval: Some(Box::new(asking.clone())),
            }
        ),
    ];
    for shown in shown {
        assert_clean("the text", &shown);
    }
}
