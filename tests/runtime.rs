//! The loop against a stub of the Runtime API, in this process, with handlers that no sane program has.

mod support;

use std::{future::pending, thread, time::Duration};

use action_group::{
    ending::Ending,
    runtime::{Answer, Api, ApiError, run},
    runtime::{FunctionError, Invocation},
};
use axum::http::StatusCode;
use serde_json::{Value, json};
use support::{Event, RuntimeApi};
use tokio::runtime::Handle;

/// Does what the payload says.
async fn serve(invocation: Invocation) -> Answer {
    match std::str::from_utf8(&invocation.payload) {
        Ok("panic") => panic!("SECRET-1"),
        Ok("hang") => pending().await,
        Ok("block") => loop {
            thread::park();
        },
        Ok("refuse") => Err(FunctionError::new("NotAToolCall", "No.")),
        _ => Ok(json!({
            "bytes": invocation.payload.len(),
            "clientContext": invocation.client_context.map(|bytes| bytes.to_vec()),
            "requestId": invocation.request_id,
            "traceId": invocation.trace_id,
            "knowsDeadline": invocation.deadline.is_some(),
        })),
    }
}

/// A stub, and the loop on threads of its own, as in the real program.
async fn serving(concurrency: usize) -> RuntimeApi {
    let stub = RuntimeApi::start().await;
    let api = Api::at(&stub.address(), concurrency).unwrap();
    thread::spawn(move || {
        let work = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let own = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        own.block_on(run(&api, work.handle(), concurrency, &Ending::new(), serve)).unwrap_err();
    });
    stub
}

async fn assert_goes_on(stub: &RuntimeApi) {
    assert_eq!(stub.invoke(Event::raw("hello")).await.response()["bytes"], 5);
}

#[tokio::test]
async fn an_answer_and_an_error_go_where_they_belong() {
    let stub = serving(1).await;
    assert_eq!(stub.invoke(Event::raw("hello")).await.response()["bytes"], 5);
    let error = stub.invoke(Event::raw("refuse")).await.error();
    assert_eq!(error, json!({"errorType": "NotAToolCall", "errorMessage": "No."}));
}

#[tokio::test]
async fn every_client_context_reaches_the_handler_byte_for_byte() {
    let stub = serving(1).await;
    for context in [
        &br#"{"custom":{"bedrockAgentCorePropagatedHeaders":{"x-user":"u-1"},"bedrockAgentCoreToolName":"t___get_order"}}"#
            [..],
        br#"{"client":null,"custom":null,"env":null}"#,
        br#"{"client":{},"custom":{"n":1}}"#,
        b"null",
        b"not json",
        b"eyJjdXN0b20iOnt9fQ==",
        b"\xff\xfe",
    ] {
        let answer = stub.invoke(Event::raw("{}").client_context(context)).await.response();
        assert_eq!(answer["clientContext"], json!(context));
    }
}

#[tokio::test]
async fn every_payload_reaches_the_handler() {
    let stub = serving(1).await;
    let largest = vec![b'x'; 6 * 1024 * 1024];
    for payload in [&b""[..], b"null", b"{", b"\xff\x00", &largest] {
        let answer = stub.invoke(Event::raw(payload.to_vec())).await.response();
        assert_eq!(answer["bytes"], payload.len());
    }
}

#[tokio::test]
async fn an_invocation_needs_no_header_but_the_request_id() {
    let stub = serving(1).await;
    let answer = stub.invoke(Event::raw("{}").bare()).await.response();
    assert_eq!(answer["knowsDeadline"], false);
    assert_eq!(answer["traceId"], Value::Null);
    assert_ne!(answer["requestId"], "");
    stub.hand_out_without_id(Event::raw("{}"));
    assert_goes_on(&stub).await;
}

#[tokio::test]
async fn headers_that_other_runtimes_choke_on_do_no_harm() {
    let stub = serving(1).await;
    for (name, value) in [
        ("lambda-runtime-cognito-identity", &b"{}"[..]),
        ("lambda-runtime-cognito-identity", b"null"),
        ("lambda-runtime-cognito-identity", b"\xff"),
        ("lambda-runtime-invoked-function-arn", b"\xff"),
        ("lambda-runtime-trace-id", b"\xff"),
        ("lambda-runtime-aws-tenant-id", b"\xff"),
    ] {
        let answer = stub.invoke(Event::raw("{}").header(name, value)).await;
        assert_eq!(answer.response()["bytes"], 2, "{name}");
    }
}

#[tokio::test]
async fn a_deadline_that_says_nothing_is_not_known() {
    let stub = serving(1).await;
    for nonsense in ["600000", "", "soon", "-1", "18446744073709551615"] {
        let answer = stub.invoke(Event::raw("{}").deadline_header(nonsense)).await.response();
        assert_eq!(answer["knowsDeadline"], false, "{nonsense}");
    }
    assert_eq!(stub.invoke(Event::raw("{}")).await.response()["knowsDeadline"], true);
}

#[tokio::test]
async fn the_invocation_id_is_echoed_if_there_is_one() {
    let stub = serving(1).await;
    for payload in ["{}", "refuse"] {
        let answer = stub.invoke(Event::raw(payload).header("lambda-runtime-invocation-id", "inv-7")).await;
        assert_eq!(answer.headers["lambda-runtime-invocation-id"], "inv-7");
        let answer = stub.invoke(Event::raw(payload)).await;
        assert!(!answer.headers.contains_key("lambda-runtime-invocation-id"));
    }
}

#[tokio::test]
async fn a_panic_of_the_handler_is_answered_flatly() {
    let stub = serving(1).await;
    let error = stub.invoke(Event::raw("panic")).await.error();
    assert_eq!(error["errorType"], "Internal");
    assert!(!error.to_string().contains("SECRET"), "{error}");
    assert_goes_on(&stub).await;
}

#[tokio::test]
async fn a_hang_of_the_handler_is_answered_before_the_deadline() {
    let stub = serving(1).await;
    let answer = stub.invoke(Event::raw("hang").time_left(Duration::from_secs(1))).await;
    assert_eq!(answer.error()["errorType"], "Internal");
    assert!(answer.in_time);
    assert_goes_on(&stub).await;
}

#[tokio::test]
async fn blocking_every_thread_of_the_handler_does_not_stop_the_answers() {
    let stub = serving(1).await;
    for _ in 0..3 {
        let answer = stub.invoke(Event::raw("block").time_left(Duration::from_secs(1))).await;
        assert_eq!(answer.error()["errorType"], "Internal");
        assert!(answer.in_time);
    }
}

#[tokio::test]
async fn an_answer_that_is_too_large_becomes_an_error() {
    let stub = serving(1).await;
    let answer = stub.invoke(Event::raw("{}").refuse(StatusCode::PAYLOAD_TOO_LARGE)).await;
    assert_eq!(answer.refused, 1);
    assert!(answer.error()["errorMessage"].as_str().unwrap().contains("too large"));
    assert_goes_on(&stub).await;
}

#[tokio::test]
async fn a_refused_answer_does_not_end_the_loop() {
    let stub = serving(1).await;
    for status in [StatusCode::BAD_REQUEST, StatusCode::FORBIDDEN, StatusCode::INTERNAL_SERVER_ERROR] {
        stub.invoke(Event::raw("{}").refuse(status)).await;
        assert_goes_on(&stub).await;
    }
}

#[tokio::test]
async fn one_slow_invocation_does_not_hold_up_the_others() {
    let stub = serving(2).await;
    let mut slow = stub.hand_out(Event::raw("hang").time_left(Duration::from_secs(30)));
    for _ in 0..3 {
        assert_goes_on(&stub).await;
    }
    assert!(slow.try_recv().is_err(), "still running");
}

#[tokio::test(start_paused = true)]
async fn the_loop_ends_when_the_runtime_api_has_gone() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let api = Api::at(&address, 1).unwrap();
    let error = run(&api, &Handle::current(), 1, &Ending::new(), serve).await.unwrap_err();
    assert!(matches!(error, ApiError::Connection(_)), "{error}");
}
