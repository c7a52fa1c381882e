//! What a failed call of an AWS client says about the request that failed: for tools, for the record table and for the model
//! alike. What each of them makes of it is its own.

use std::{error::Error, io};

use aws_sdk_dynamodb::{config::http::HttpResponse, error::SdkError};
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

/// The codes by which AWS services throttle. DynamoDB and SES use several of them.
pub(crate) const THROTTLING: [&str; 11] = [
    "BandwidthLimitExceeded",
    "LimitExceededException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "SlowDown",
    "ThrottledException",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
];

/// What a failed call of an AWS client says about the request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The service is too busy; nothing was done.
    Throttled,
    /// Nothing was sent.
    NeverSent,
    /// It may have been done.
    NoAnswer,
    /// The service does not take the request, or it could not be built; nothing was done.
    Refused,
}

/// Reads it.
pub(crate) fn meaning<E>(error: &SdkError<E, HttpResponse>) -> Meaning
where
    E: ProvideErrorMetadata + Error + 'static,
{
    match error {
        SdkError::ConstructionFailure(_) => Meaning::Refused,
        SdkError::DispatchFailure(_) if connection_was_refused(error) => Meaning::NeverSent,
        SdkError::ServiceError(answer) => match answer.err().code() {
            Some(code) if THROTTLING.contains(&code) => Meaning::Throttled,
            _ if answer.raw().status().as_u16() == 429 => Meaning::Throttled,
            _ if answer.raw().status().is_server_error() => Meaning::NoAnswer,
            _ => Meaning::Refused,
        },
        _ => Meaning::NoAnswer,
    }
}

/// Whether no connection came about. Only kinds that cannot arise later count; a name that does not resolve and a
/// connection that takes too long have no kind of their own, and stay "no answer".
pub(crate) fn connection_was_refused(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            let kinds =
                [io::ErrorKind::ConnectionRefused, io::ErrorKind::HostUnreachable, io::ErrorKind::NetworkUnreachable];
            if kinds.contains(&error.kind()) {
                return true;
            }
        }
        cause = error.source();
    }
    false
}
