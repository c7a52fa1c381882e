//! What a failed call of the model means, in a sentence of ours.
//!
//! | the SDK says | kind | may the loop repeat it |
//! | --- | --- | --- |
//! | throttled, or a quota | `throttled` | no: the client has |
//! | 5xx, no connection, half an answer | `unavailable` | no: the client has, where it could |
//! | `ModelTimeout`, `ModelError`, `ModelNotReady`, `ModelStreamError` | `model` | once: the client repeats only `ModelNotReady` |
//! | the time of the call is up | `timeout` | no |
//! | `ValidationException`, a request that cannot be built | `invalid` | no |
//! | no permission, no or bad credentials, no such model, a `ValidationException` that is about the model's id | `denied` | no |
//!
//! The service's own text is read where its code says too little. It is shown to nobody: it may quote the conversation.

use std::error::Error;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_bedrockruntime::{
    config::http::HttpResponse,
    error::{ProvideErrorMetadata, SdkError},
    types::error::ConverseStreamOutputError,
};
use aws_smithy_types::event_stream::RawMessage;

use crate::{
    agent::model::{ModelFailure, ModelFailureKind as Kind},
    aws::THROTTLING,
};

/// What an error of a request means.
pub(super) fn failure<E>(error: &SdkError<E, HttpResponse>) -> ModelFailure
where
    E: ProvideErrorMetadata + Error + 'static,
{
    let said = error.as_service_error();
    let status = error.raw_response().map(|response| response.status().as_u16());
    let about_id = said.and_then(ProvideErrorMetadata::message).is_some_and(is_about_the_id);
    read(error, said.and_then(ProvideErrorMetadata::code), status, about_id)
}

/// What an exception in the middle of a stream means. The SDK knows its type, and not its code.
pub(super) fn stream_failure(error: &SdkError<ConverseStreamOutputError, RawMessage>) -> ModelFailure {
    let code = error.as_service_error().map(|error| match error {
        ConverseStreamOutputError::ThrottlingException(_) => "ThrottlingException",
        ConverseStreamOutputError::ModelStreamErrorException(_) => "ModelStreamErrorException",
        ConverseStreamOutputError::ValidationException(_) => "ValidationException",
        _ => "InternalServerException",
    });
    read(error, code, None, false)
}

fn read<E, R>(error: &SdkError<E, R>, code: Option<&str>, status: Option<u16>, about_id: bool) -> ModelFailure
where
    E: Error + 'static,
    R: std::fmt::Debug + 'static,
{
    let kind = match error {
        SdkError::ConstructionFailure(_) => Kind::Invalid,
        SdkError::TimeoutError(_) => Kind::Timeout,
        SdkError::DispatchFailure(_) if has_no_credentials(error) => Kind::Denied,
        SdkError::ServiceError(_) if about_id && code == Some("ValidationException") => Kind::Denied,
        SdkError::ServiceError(_) => refusal(code, status),
        _ => Kind::Unavailable, // no connection, or half an answer
    };
    tracing::warn!(kind = ?kind, code = code.unwrap_or_default(), status, "a call of the model failed");
    ModelFailure { kind, sentence: String::from(sentence(kind)) }
}

/// A failure that has no error of the SDK.
pub(super) fn failed(kind: Kind, sentence: &str) -> ModelFailure {
    tracing::warn!(kind = ?kind, "a call of the model failed");
    ModelFailure { kind, sentence: String::from(sentence) }
}

/// Whether the request could not be signed: that ends like a connection that does not come about.
fn has_no_credentials(error: &(dyn Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |error: &&(dyn Error + 'static)| (*error).source());
    causes.any(<dyn Error>::is::<CredentialsError>)
}

/// Whether a `ValidationException` says that nobody can ask a model by this id. Most of the newer models are asked by the id of
/// an inference profile; by their own, Bedrock takes the request for invalid.
fn is_about_the_id(message: &str) -> bool {
    const WORDS: [&str; 3] = [
        "on-demand throughput", // "… isn't supported. Retry your request with the ID or ARN of an inference profile"
        "model identifier is invalid", // "The provided …"
        "support the model that you provided", // "This action doesn't …"
    ];
    WORDS.iter().any(|words| message.contains(words))
}

/// By the code first: the codes are the API's promise, the status is what is left where there is none.
fn refusal(code: Option<&str>, status: Option<u16>) -> Kind {
    match (code.unwrap_or_default(), status) {
        (
            "ModelTimeoutException" | "ModelErrorException" | "ModelNotReadyException" | "ModelStreamErrorException",
            _,
        ) => Kind::Model,
        ("ServiceQuotaExceededException", _) => Kind::Throttled,
        (code, _) if THROTTLING.contains(&code) => Kind::Throttled,
        ("ServiceUnavailableException" | "InternalServerException", _) => Kind::Unavailable,
        ("ValidationException", _) => Kind::Invalid,
        (_, Some(429)) => Kind::Throttled,
        // Bad and expired credentials have many codes.
        ("AccessDeniedException" | "ResourceNotFoundException", _) | (_, Some(401 | 403 | 404)) => Kind::Denied,
        (_, Some(400..=499)) => Kind::Invalid,
        _ => Kind::Unavailable,
    }
}

/// The sentence for each kind.
pub(super) const fn sentence(kind: Kind) -> &'static str {
    match kind {
        Kind::Throttled => "The model is too busy: its service throttles requests, or a quota is used up.",
        Kind::Model => "The model failed, or took too long to answer.",
        Kind::Timeout => "The model did not answer in the time that was left.",
        // Most models answer so where a conversation is longer than they can read.
        Kind::Invalid => {
            "The model's service refused the request as invalid. It may be too long for the model: if this happens again, \
             begin another conversation."
        }
        Kind::Denied => {
            "The model may not be used: the permission or the credentials are missing, or no model can be asked by this id; \
             many need the id of an inference profile."
        }
        _ => "The model's service cannot be reached, or failed.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_reads_that_a_request_is_invalid_reads_what_it_may_be_and_what_helps() {
        let sentence = sentence(Kind::Invalid);
        assert!(sentence.contains("too long for the model") && sentence.contains("another conversation"), "{sentence}");
    }

    #[test]
    fn bedrock_speaks_of_the_models_id_in_several_ways_and_of_other_things_in_others() {
        for message in [
            "Invocation of model ID a.b-v1:0 with on-demand throughput isn\u{2019}t supported. Retry your request with the ID or ARN of an inference profile that contains this model.",
            "The provided model identifier is invalid.",
            "The provided model doesn't support on-demand throughput.",
            "This action doesn't support the model that you provided. Try again with a supported text or chat model.",
        ] {
            assert!(is_about_the_id(message), "{message}");
        }
        for message in [
            "Input is too long for requested model.",
            "The model returned the following errors: prompt is too long: 200049 tokens > 200000 maximum",
            "The toolConfig field must be defined when using toolUse and toolResult content blocks.",
        ] {
            assert!(!is_about_the_id(message), "{message}");
        }
    }

    #[test]
    fn the_code_decides_and_the_status_where_there_is_none() {
        for (code, status, kind) in [
            (Some("ThrottlingException"), 429, Kind::Throttled),
            (Some("ThrottlingException"), 400, Kind::Throttled),
            (Some("ServiceQuotaExceededException"), 400, Kind::Throttled),
            (Some("SomethingNew"), 429, Kind::Throttled),
            (None, 529, Kind::Unavailable),
            (Some("ServiceUnavailableException"), 503, Kind::Unavailable),
            (Some("InternalServerException"), 500, Kind::Unavailable),
            (Some("ModelTimeoutException"), 408, Kind::Model),
            (Some("ModelErrorException"), 424, Kind::Model),
            (Some("ModelNotReadyException"), 429, Kind::Model),
            (Some("ValidationException"), 400, Kind::Invalid),
            (Some("SomethingNew"), 400, Kind::Invalid),
            (Some("AccessDeniedException"), 403, Kind::Denied),
            (Some("ResourceNotFoundException"), 404, Kind::Denied),
            (Some("ExpiredTokenException"), 403, Kind::Denied),
        ] {
            assert_eq!(refusal(code, Some(status)), kind, "{code:?} {status}");
        }
    }
}
