//! The example with a policy, as a real program: what the engine is asked, and what its answers do. Also that nothing
//! about a caller is in the program's output.

mod support;

use std::sync::{Arc, Mutex};

use axum::{Json, Router, extract::State, http::StatusCode, routing::post};
use serde_json::{Value, json};
use support::{Event, Function, RuntimeApi, example};

/// An engine that allows what user u-17 does, fails for "broken", and keeps the questions.
#[derive(Clone, Default)]
struct Engine(Arc<Mutex<Vec<Value>>>);

async fn decide(State(engine): State<Engine>, Json(question): Json<Value>) -> Result<Json<Value>, StatusCode> {
    let principal = question["principal"].clone();
    engine.0.lock().unwrap().push(question);
    match principal.as_str() {
        Some("u-17" | "eu-central-1:cognito") => Ok(Json(json!({"decision": "Allow"}))),
        Some("broken") => Err(StatusCode::SERVICE_UNAVAILABLE),
        _ => Ok(Json(json!({"decision": "Deny", "rule": "only-u-17"}))),
    }
}

async fn guarded() -> (Function, Engine) {
    let engine = Engine::default();
    let router = Router::new().route("/decide", post(decide)).with_state(engine.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/decide", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let settings = [("IDEMPOTENCY_TABLE", "idempotency"), ("POLICY_URL", &*url), ("RUST_LOG", "trace")];
    let mut function = RuntimeApi::start().await.launch(example("authorise"), &settings);
    function.ready().await;
    (function, engine)
}

fn asked_by(user: &str) -> Event {
    Event::json(&json!({
        "actionGroup": "g", "function": "note", "sessionId": "s-1", "sessionAttributes": {"user_id": user},
        "parameters": [{"name": "thing", "type": "string", "value": "milk"}],
    }))
}

fn text(answer: &Value) -> &str {
    answer["response"]["functionResponse"]["responseBody"]["TEXT"]["body"].as_str().expect("a text")
}

#[tokio::test]
async fn the_engine_decides_by_what_the_model_cannot_choose() {
    let (mut function, engine) = guarded().await;
    let allowed = function.invoke(asked_by("u-17")).await.response();
    assert_eq!(text(&allowed), "\"noted: milk\"");
    let question = json!({
        "principal": "u-17", "action": "note", "resource": "tools",
        "context": {"tenant": null, "arguments": {"thing": "milk"}},
    });
    assert_eq!(engine.0.lock().unwrap().as_slice(), [question]);

    let denied = function.invoke(asked_by("u-18")).await.response();
    assert_eq!(text(&denied), "The caller may not make this call. This call changed nothing.");
    let log = function.output_when(|output| output.contains("only-u-17")).await;
    let line = log.lines().find(|line| line.contains("only-u-17")).unwrap();
    let line: Value = serde_json::from_str(line).expect("a log line");
    assert_eq!((&line["level"], &line["outcome"]), (&json!("ERROR"), &json!("denied")), "somebody is to be woken");
    let metric = log.lines().find(|line| line.contains("\"Denied\":1"));
    assert!(metric.is_some_and(|line| !line.contains("only-u-17")), "{log}");

    let unclear = function.invoke(asked_by("broken")).await.response();
    assert!(text(&unclear).starts_with("Whether the caller may make this call could not be found out."), "{unclear}");
}

#[tokio::test]
async fn the_hosts_headers_say_who_asks_and_nobody_reads_it_in_the_log() {
    let (mut function, engine) = guarded().await;
    let event = asked_by("SECRET-user")
        .header("lambda-runtime-cognito-identity", r#"{"identityId":"eu-central-1:cognito","identityPoolId":"SECRET"}"#)
        .header("lambda-runtime-aws-tenant-id", "SECRET-tenant");
    assert_eq!(text(&function.invoke(event).await.response()), "\"noted: milk\"");
    assert_eq!(engine.0.lock().unwrap()[0]["context"]["tenant"], "SECRET-tenant");

    let context = json!({"custom": {
        "bedrockAgentCoreToolName": "t___note",
        "bedrockAgentCorePropagatedHeaders": {"Authorization": "Bearer SECRET"},
        "bedrockAgentCorePropagatedQueryParameters": {"token": "SECRET"},
    }});
    let event = Event::json(&json!({"thing": "milk"})).client_context(context.to_string());
    assert_eq!(function.invoke(event).await.response()["error"]["kind"], "denied");
    let output = function.output_when(|output| output.contains("only-u-17")).await;
    assert!(!output.contains("SECRET") && !output.contains("cognito"), "{output}");
}
