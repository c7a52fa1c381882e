//! What the client repeats, what it tells of that, and when it gives up.

use std::time::Duration;

use action_group::{
    agent::{
        bedrock::Bedrock,
        drive::{Heard, Model},
        model::{ModelFailure, ModelFailureKind as Kind},
    },
    dev::{database::http_client, sdk_config},
};
use aws_credential_types::{
    credential_fn::provide_credentials_fn,
    provider::{SharedCredentialsProvider, error::CredentialsError},
};
use aws_smithy_types::retry::RetryConfig;
use serde_json::Value;

use super::{
    PATIENCE, SHORT, asked, hello, model,
    support::{Converse, Reply, says},
};

async fn failure(reply: Reply) -> (ModelFailure, usize) {
    let endpoint = Converse::start([reply]).await;
    let failure = asked(&model(&endpoint), &hello()).await.expect_err("a failure");
    assert!(!failure.sentence.contains("SECRET"), "{failure:?}");
    (failure, endpoint.requests().len())
}

#[tokio::test]
async fn the_client_repeats_what_was_throttled_or_not_available_and_nothing_else() {
    for (status, code, kind, requests) in [
        (429, "ThrottlingException", Kind::Throttled, 3),
        (503, "ServiceUnavailableException", Kind::Unavailable, 3),
        (500, "InternalServerException", Kind::Unavailable, 3),
        (429, "ModelNotReadyException", Kind::Model, 3),
        (408, "ModelTimeoutException", Kind::Model, 1),
        (424, "ModelErrorException", Kind::Model, 1),
        (400, "ValidationException", Kind::Invalid, 1),
        (403, "AccessDeniedException", Kind::Denied, 1),
        (404, "ResourceNotFoundException", Kind::Denied, 1),
        (403, "ExpiredTokenException", Kind::Denied, 1),
        (400, "ServiceQuotaExceededException", Kind::Throttled, 1),
    ] {
        let (failure, sent) = failure(Reply::Refused(status, code)).await;
        assert_eq!((failure.kind, sent), (kind, requests), "{code}");
    }
}

#[tokio::test]
async fn an_id_by_which_no_model_can_be_asked_is_not_told_as_a_conversation_that_is_too_long() {
    let text = "Invocation of model ID SECRET-1 with on-demand throughput isn\u{2019}t supported. Retry your request.";
    let (failure, _) = failure(Reply::Says(400, "ValidationException", text)).await;
    assert_eq!(failure.kind, Kind::Denied);
    assert!(failure.sentence.contains("inference profile") && !failure.sentence.contains("too long"), "{failure:?}");
}

#[tokio::test]
async fn one_throttle_and_then_an_answer_is_an_answer() {
    let endpoint = Converse::start([Reply::Refused(429, "ThrottlingException"), says("Hello.")]).await;
    let reply = asked(&model(&endpoint), &hello()).await.expect("a reply");
    assert_eq!((reply.message.text().as_str(), endpoint.requests().len()), ("Hello.", 2));
}

#[tokio::test]
async fn the_attempts_of_the_client_are_told_and_which_of_them_were_throttled() {
    let throttled = Reply::Refused(429, "ThrottlingException");
    for streams in [false, true] {
        for (replies, wanted) in [
            (vec![says("Hello.")], vec![false]),
            (
                vec![throttled.clone(), Reply::Refused(503, "ServiceUnavailableException"), says("Hello.")],
                vec![true, false, false],
            ),
            (vec![throttled.clone()], vec![true; 3]),
            (vec![Reply::Refused(429, "ModelNotReadyException"), says("Hello.")], vec![false; 2]),
        ] {
            let endpoint = Converse::start(replies).await;
            let model = if streams { model(&endpoint).streaming() } else { model(&endpoint) };
            let mut told = Vec::new();
            let mut hear = |heard: Heard<'_>| {
                if let Heard::Attempt { number, throttled } = heard {
                    assert_eq!(usize::try_from(number), Ok(told.len() + 1));
                    told.push(throttled);
                }
            };
            let _ = model.converse(&hello(), PATIENCE, &mut hear).await; // it may fail
            assert_eq!(told, wanted);
        }
    }
}

#[tokio::test]
async fn the_attempts_of_a_request_that_is_given_up_are_told_and_the_one_on_its_way_is_one_of_them() {
    for streams in [false, true] {
        for has_time in [true, false] {
            let endpoint = Converse::start([Reply::Refused(429, "ThrottlingException"), Reply::Silence]).await;
            let model = if streams { model(&endpoint).streaming() } else { model(&endpoint) };
            let mut told = Vec::new();
            let mut hear = |heard: Heard<'_>| {
                if let Heard::Attempt { number, throttled } = heard {
                    told.push((number, throttled));
                }
            };
            let request = hello();
            let asked = model.converse(&request, if has_time { PATIENCE } else { SHORT }, &mut hear);
            if has_time {
                let second = async {
                    while endpoint.requests().len() < 2 {
                        tokio::task::yield_now().await;
                    }
                };
                tokio::select! {
                    () = second => {} // and nobody waits for the model any more
                    _ = asked => panic!("it was answered"),
                }
            } else {
                assert_eq!(asked.await.expect_err("no answer").kind, Kind::Timeout);
            }
            assert_eq!(told, [(1, true), (2, false)], "streams: {streams}, has time: {has_time}");
        }
    }
}

#[tokio::test]
async fn half_an_answer_is_asked_for_again_by_the_client() {
    let endpoint = Converse::start([Reply::BrokenOff(Value::Null, 0), says("Hello.")]).await;
    assert!(asked(&model(&endpoint), &hello()).await.is_ok());
    assert_eq!(endpoint.requests().len(), 2);
}

#[tokio::test]
async fn a_model_that_never_answers_is_asked_once_and_given_up_in_time() {
    for streams in [false, true] {
        let endpoint = Converse::start([Reply::Silence]).await;
        let model = if streams { model(&endpoint).streaming() } else { model(&endpoint) };
        let failure = model.converse(&hello(), SHORT, &mut |_| {}).await.expect_err("no answer");
        assert_eq!((failure.kind, endpoint.requests().len()), (Kind::Timeout, 1));
    }
}

#[tokio::test]
async fn after_a_storm_of_failures_a_call_still_has_its_retries() {
    let endpoint = Converse::start([Reply::Refused(503, "ServiceUnavailableException")]).await;
    let model = model(&endpoint);
    for _ in 0..30 {
        asked(&model, &hello()).await.expect_err("a storm");
    }
    assert_eq!(endpoint.requests().len(), 90);
    endpoint.then([Reply::Refused(503, "ServiceUnavailableException"), says("Hello.")]);
    assert!(asked(&model, &hello()).await.is_ok(), "the storm has used up the retries of a healthy call");
}

#[tokio::test]
async fn no_credentials_and_no_connection_are_told_apart() {
    let endpoint = Converse::start([says("Hello.")]).await;
    let sdk = sdk_config(&endpoint.endpoint(), http_client());
    let none = provide_credentials_fn(async || Err(CredentialsError::not_loaded("none")));
    let nobody = sdk.clone().into_builder().credentials_provider(SharedCredentialsProvider::new(none)).build();
    let failure = asked(&Bedrock::new(&nobody, "a-model"), &hello()).await.expect_err("no credentials");
    assert_eq!((failure.kind, endpoint.requests().len()), (Kind::Denied, 0));

    let blink = RetryConfig::standard().with_initial_backoff(Duration::from_millis(1));
    let nowhere = sdk.into_builder().endpoint_url("http://127.0.0.1:9").retry_config(blink).build();
    let failure = asked(&Bedrock::new(&nowhere, "a-model"), &hello()).await.expect_err("no connection");
    assert_eq!(failure.kind, Kind::Unavailable);
}
