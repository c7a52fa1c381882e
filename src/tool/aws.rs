//! What a failed AWS SDK call means for a tool.
//!
//! | the SDK says | the tool error | promise |
//! | --- | --- | --- |
//! | a throttling code, or 429 | [`ToolError::transient`] | nothing was done |
//! | the connection was refused | [`ToolError::transient`] | nothing was sent |
//! | a timeout, a broken connection, an answer it cannot read, a 5xx | [`ToolError::no_answer`] | it may have been done |
//! | the request could not be built | [`ToolError::internal`] | nothing was sent |
//! | any other refusal (4xx) | [`ToolError::internal`] | nothing was done |
//!
//! A refusal that is the model's or the user's business (a failed condition, a rejected mail) is matched by the tool
//! before it comes here. The SDK's error becomes the cause: its code is in the log, and no word of it
//! reaches the model.

use std::{error::Error, time::SystemTime};

use aws_sdk_dynamodb::{config::http::HttpResponse, error::SdkError};
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

use super::{ToolError, name_of_sdk, retry_after};
use crate::aws::{Meaning, meaning};

impl ToolError {
    /// The error of an AWS client with its usual retries: they have been made, so that nobody repeats them.
    /// `service` begins the sentences that the model reads, for example `The order database`.
    pub fn from_sdk<E>(error: SdkError<E, HttpResponse>, service: &str) -> Self
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    {
        Self::from_sdk_unretried(error, service).already_retried()
    }

    /// The error of an AWS client whose retries are switched off, as a [`Once`](super::Effect::Once) tool needs it.
    pub fn from_sdk_unretried<E>(error: SdkError<E, HttpResponse>, service: &str) -> Self
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    {
        let headers = error.raw_response().map(HttpResponse::headers);
        let wait = headers.and_then(|headers| retry_after(|name| headers.get_all(name), SystemTime::now()));
        let name = name_of_sdk(&error);
        let said = match meaning(&error) {
            Meaning::Throttled => Self::transient(format!("{service} is too busy for now.")).with_source(error),
            Meaning::NeverSent => Self::transient(format!("{service} cannot be reached for now.")).with_source(error),
            Meaning::NoAnswer => Self::no_answer(format!("{service} gave no clear answer.")).with_source(error),
            Meaning::Refused => Self::internal(error).nothing_sent(),
        }
        .named(name);
        match wait {
            Some(wait) => said.retry_after(wait),
            None => said,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use aws_sdk_dynamodb::operation::get_item::GetItemError;
    use aws_smithy_runtime_api::client::result::ConnectorError;
    use aws_smithy_types::{body::SdkBody, error::ErrorMetadata};

    use super::*;
    use crate::tool::{Phase, ToolErrorKind};

    type GetError = SdkError<GetItemError, HttpResponse>;

    fn answered(status: u16, code: &str) -> GetError {
        let metadata = ErrorMetadata::builder().code(code).message("db.internal says SECRET-1").build();
        let status = status.try_into().expect("a status");
        SdkError::service_error(GetItemError::generic(metadata), HttpResponse::new(status, SdkBody::empty()))
    }

    fn io_failure(kind: io::ErrorKind) -> GetError {
        SdkError::dispatch_failure(ConnectorError::io(Box::new(io::Error::from(kind))))
    }

    #[test]
    fn each_way_to_fail_says_whether_something_may_have_been_done() {
        let table = [
            (answered(400, "ThrottlingException"), ToolErrorKind::Transient, Phase::NothingSent),
            (answered(400, "ProvisionedThroughputExceededException"), ToolErrorKind::Transient, Phase::NothingSent),
            (answered(429, "SomethingNew"), ToolErrorKind::Transient, Phase::NothingSent),
            (answered(400, "ValidationException"), ToolErrorKind::Internal, Phase::NothingSent),
            (answered(500, "InternalServerError"), ToolErrorKind::Transient, Phase::MaybeDone),
            (io_failure(io::ErrorKind::ConnectionRefused), ToolErrorKind::Transient, Phase::NothingSent),
            (io_failure(io::ErrorKind::ConnectionReset), ToolErrorKind::Transient, Phase::MaybeDone),
            (SdkError::timeout_error("late"), ToolErrorKind::Transient, Phase::MaybeDone),
            (SdkError::construction_failure("bad"), ToolErrorKind::Internal, Phase::NothingSent),
        ];
        for (error, kind, phase) in table {
            let shown = format!("{error:?}");
            let error = ToolError::from_sdk(error, "The order database");
            assert_eq!((error.kind(), error.phase()), (kind, phase), "{shown}");
        }
    }

    #[test]
    fn the_model_reads_nothing_of_the_source_and_the_log_all_of_it() {
        let error = ToolError::from_sdk(answered(400, "ThrottlingException"), "The order database");
        assert_eq!(error.text, "The order database is too busy for now.");
        assert!(error.cause().is_some());
    }

    #[test]
    fn only_a_client_with_retries_has_retried() {
        assert!(ToolError::from_sdk(answered(400, "Throttling"), "SES").already_retried);
        assert!(!ToolError::from_sdk_unretried(answered(400, "Throttling"), "SES").already_retried);
    }
}
