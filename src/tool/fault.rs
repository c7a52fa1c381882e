//! The name by which a log line tells the cause of a failure. Never its text, which may hold hosts, queries and secrets.
//!
//! | the cause | its name |
//! | --- | --- |
//! | a refusal by AWS | its code: `AccessDeniedException` |
//! | an answer over HTTP, of AWS also where it has no code | its status: `HTTP 401` |
//! | no answer in time, no connection, no credentials, a request that cannot be built | `timed_out`, `no_connection`, `no_credentials`, `not_built` |
//! | an [`io::Error`], also as the cause of another | its kind: `ConnectionRefused` |
//! | any other error | its type and the place that reported it: `serde_json::error::Error at src/tools/carrier.rs:81` |
//! | a text, or nothing at all | the place: `src/tools/carrier.rs:81` |

use std::{any::type_name, borrow::Cow, error::Error, fmt, io, iter::successors, panic::Location};

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_dynamodb::{config::http::HttpResponse, error::SdkError};
use aws_smithy_types::error::{ErrorMetadata, metadata::ProvideErrorMetadata};
use http::StatusCode;

/// An answer over HTTP that is no success, as a cause. Its body and headers may hold anything, and are not in it.
#[derive(Debug, thiserror::Error)]
#[error("{service} answered {status}")]
pub(super) struct Answered {
    pub service: &'static str,
    pub status: StatusCode,
}

/// An error whose name is known where its type is, which is lost further up.
#[derive(Debug, thiserror::Error)]
#[error("{name}")]
pub(crate) struct Named {
    name: String,
    source: Box<dyn Error + Send + Sync>,
}

impl Named {
    /// What an AWS client reports.
    pub(crate) fn from_sdk<E>(error: SdkError<E, HttpResponse>) -> Self
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    {
        Self { name: name_of_sdk(&error), source: error.into() }
    }
}

/// The name of a cause of type `S`. The place is that of whoever reported it.
pub(super) fn name_of<S>(cause: &(dyn Error + 'static), place: &'static Location<'static>) -> String {
    let is_text = [type_name::<&str>(), type_name::<String>(), type_name::<Cow<'_, str>>(), type_name::<Box<str>>()];
    match well_known(cause) {
        Some(name) => name,
        None if cause.downcast_ref::<reqwest::Error>().is_some_and(reqwest::Error::is_connect) => {
            String::from("no_connection")
        }
        None if is_text.contains(&type_name::<S>()) => At(place).to_string(),
        // What stands in angle brackets makes it long and tells no more.
        None => format!("{} at {}", type_name::<S>().split('<').next().unwrap_or_default(), At(place)),
    }
}

/// The name of what an AWS client reports.
pub(crate) fn name_of_sdk<E>(error: &SdkError<E, HttpResponse>) -> String
where
    E: ProvideErrorMetadata + Error + 'static,
{
    let status =
        || error.raw_response().map_or_else(|| String::from("no_answer"), |answer| http(answer.status().into()));
    match error {
        SdkError::ServiceError(answer) => code_of(answer.err().code()).unwrap_or_else(status),
        SdkError::TimeoutError(_) => String::from("timed_out"),
        SdkError::ConstructionFailure(_) => String::from("not_built"),
        SdkError::DispatchFailure(_) => well_known(error).unwrap_or_else(|| String::from("no_connection")),
        _ => status(), // half an answer, or one that cannot be read
    }
}

/// A place in the code.
pub(super) struct At(pub &'static Location<'static>);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.0.file(), self.0.line())
    }
}

/// The first name along the chain of causes.
pub(crate) fn well_known(cause: &(dyn Error + 'static)) -> Option<String> {
    successors(Some(cause), |cause: &&(dyn Error + 'static)| (*cause).source()).find_map(name)
}

fn name(cause: &(dyn Error + 'static)) -> Option<String> {
    if let Some(answered) = cause.downcast_ref::<Answered>() {
        return Some(http(answered.status.as_u16()));
    }
    if let Some(error) = cause.downcast_ref::<reqwest::Error>() {
        let status = error.status().map(|status| http(status.as_u16()));
        return status.or_else(|| error.is_timeout().then(|| String::from("timed_out")));
    }
    if let Some(named) = cause.downcast_ref::<Named>() {
        return Some(named.name.clone());
    }
    if cause.is::<tokio::time::error::Elapsed>() {
        return Some(String::from("timed_out"));
    }
    if cause.is::<CredentialsError>() {
        return Some(String::from("no_credentials"));
    }
    if let Some(metadata) = cause.downcast_ref::<ErrorMetadata>() {
        return code_of(metadata.code());
    }
    let error = cause.downcast_ref::<io::Error>()?;
    match format!("{:?}", error.kind()) {
        // These say nothing. What such an error holds is no `source` of it.
        kind if kind == "Other" || kind == "Uncategorized" => well_known(error.get_ref()?),
        kind => Some(kind),
    }
}

fn http(status: u16) -> String {
    format!("HTTP {status}")
}

/// A code as the services write it. Anything else comes from a stranger, and may say anything.
pub(crate) fn code_of(code: Option<&str>) -> Option<String> {
    let is_code = |code: &&str| {
        (1..=80).contains(&code.len())
            && code.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    code.filter(is_code).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::operation::get_item::GetItemError;
    use aws_smithy_runtime_api::client::result::ConnectorError;
    use aws_smithy_types::body::SdkBody;

    use super::*;

    fn answered(status: u16, code: &str) -> SdkError<GetItemError, HttpResponse> {
        let metadata = ErrorMetadata::builder().code(code).message("SECRET-1").build();
        let status = status.try_into().expect("a status");
        SdkError::service_error(GetItemError::generic(metadata), HttpResponse::new(status, SdkBody::empty()))
    }

    fn io_failure(kind: io::ErrorKind) -> SdkError<GetItemError, HttpResponse> {
        SdkError::dispatch_failure(ConnectorError::io(Box::new(io::Error::from(kind))))
    }

    #[test]
    fn what_an_aws_client_reports_is_named_by_its_code_its_status_or_what_went_wrong() {
        for (error, name) in [
            (answered(400, "AccessDeniedException"), "AccessDeniedException"),
            (answered(500, ""), "HTTP 500"),
            (answered(403, "a code with SECRET-2"), "HTTP 403"),
            (io_failure(io::ErrorKind::ConnectionReset), "ConnectionReset"),
            (io_failure(io::ErrorKind::Other), "no_connection"),
            (SdkError::timeout_error("SECRET-3"), "timed_out"),
            (SdkError::construction_failure("SECRET-4"), "not_built"),
        ] {
            assert_eq!(name_of_sdk(&error), name);
        }
    }

    #[test]
    fn any_other_cause_is_named_by_what_it_holds_its_type_or_its_place() {
        let place = Location::caller();
        let at = format!("{}:{}", file!(), place.line());
        let json = serde_json::from_str::<u8>("SECRET-1").expect_err("no number");
        assert_eq!(name_of::<serde_json::Error>(&json, place), format!("serde_json::error::Error at {at}"));
        let text: Box<dyn Error + Send + Sync> = "SECRET-2".into();
        assert_eq!(name_of::<&str>(&*text, place), at);
        assert_eq!(name_of::<String>(&*text, place), at);
        let deep = io::Error::other(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(name_of::<io::Error>(&deep, place), "BrokenPipe");
        let bare = answered(400, "ResourceNotFoundException");
        assert_eq!(name_of::<SdkError<GetItemError>>(&bare, place), "ResourceNotFoundException");
    }
}
