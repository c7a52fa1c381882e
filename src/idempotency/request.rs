//! One request to the record table: it is given up when its time is up, and its failure is read.

use std::{future::Future, time::Duration};

use aws_sdk_dynamodb::{
    config::http::HttpResponse,
    error::{ProvideErrorMetadata, SdkError},
    operation::update_item::UpdateItemError,
};
use tokio::time::timeout;

use super::{
    doubt::Doubt,
    record::{Item, Record},
};
use crate::{
    aws::{Meaning, meaning},
    tool::name_of_sdk,
};

/// Why a request to the table gave no answer that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// Surely nothing was written, and it may be otherwise later: throttled, or not reached.
    Refused,
    /// Surely nothing was written, and never will be: the request, the table or the permissions are wrong.
    Fault,
    /// It may have been written: no answer in time, or a broken connection.
    NoAnswer,
    /// The item is no record of ours.
    NoRecord,
}

/// A request to the table that failed. The source is for the log.
#[derive(Debug, thiserror::Error)]
#[error("{operation} of the record table: {cause}")]
pub struct StoreError {
    /// What it means.
    pub kind: StoreErrorKind,
    /// The operation.
    pub operation: &'static str,
    pub(super) cause: String,
    #[source]
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl StoreError {
    pub(super) fn new(kind: StoreErrorKind, operation: &'static str) -> Self {
        let cause = match kind {
            StoreErrorKind::NoAnswer => "no_answer",
            StoreErrorKind::NoRecord => "no_record",
            StoreErrorKind::Refused | StoreErrorKind::Fault => "refused",
        };
        Self { kind, operation, cause: String::from(cause), source: None }
    }

    /// What the client's last attempt says.
    pub(crate) fn from_sdk<E>(operation: &'static str, error: SdkError<E, HttpResponse>) -> Self
    where
        E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
    {
        let kind = match meaning(&error) {
            Meaning::Throttled | Meaning::NeverSent => StoreErrorKind::Refused,
            Meaning::NoAnswer => StoreErrorKind::NoAnswer,
            Meaning::Refused => refusal(error.code()),
        };
        Self { kind, operation, cause: name_of_sdk(&error), source: Some(Box::new(error)) }
    }

    /// The name of the cause, which may stand in a log line.
    pub fn cause(&self) -> &str {
        &self.cause
    }

    /// What a person is told who asked for it; `again` where to ask again may help.
    pub(super) fn told(&self, again: &str) -> String {
        match self.kind {
            StoreErrorKind::Fault => format!(
                "The table of records refuses the request ({}): its name, its index `waiting` (which cannot be read while it is \
                 being made) or the permissions are wrong. To ask again does not help before that is mended.",
                self.cause
            ),
            _ => format!("The table of records does not answer. {again}"),
        }
    }

    /// What all attempts together say.
    pub(super) fn given(self, doubt: &Doubt) -> Self {
        if doubt.remains() { Self { kind: StoreErrorKind::NoAnswer, ..self } } else { self }
    }

    /// What they say when the time was up. The client may have been waiting between two attempts, all of them refused.
    pub(super) fn given_up(self, doubt: &Doubt) -> Self {
        let kind = if doubt.remains() { StoreErrorKind::NoAnswer } else { StoreErrorKind::Refused };
        Self { kind, ..self }
    }
}

/// A refusal: whether waiting helps.
fn refusal(code: Option<&str>) -> StoreErrorKind {
    const BUSY: [&str; 3] =
        ["TransactionCanceledException", "TransactionConflictException", "ReplicatedWriteConflictException"];
    match code {
        Some(code) if BUSY.contains(&code) => StoreErrorKind::Refused,
        _ => StoreErrorKind::Fault,
    }
}

/// Gives a request up when its time is up. Boxed, because the SDK's futures are large.
pub(crate) fn within<'a, T, E, R>(
    time: Duration,
    operation: &'static str,
    request: impl Future<Output = Result<T, SdkError<E, R>>> + Send + 'a,
) -> impl Future<Output = Result<Result<T, SdkError<E, R>>, StoreError>> + Send + 'a
where
    T: 'a,
    E: 'a,
    R: 'a,
{
    let request = Box::pin(request);
    async move { timeout(time, request).await.map_err(|_| StoreError::new(StoreErrorKind::NoAnswer, operation)) }
}

/// The record in an item that a failed condition or a read has brought along.
pub(super) fn held(item: Option<&Item>, operation: &'static str) -> Result<Record, StoreError> {
    item.and_then(Record::from_item).ok_or_else(|| StoreError::new(StoreErrorKind::NoRecord, operation))
}

/// The record that made a fenced update fail.
pub(super) fn superseded(error: SdkError<UpdateItemError, HttpResponse>) -> Result<Record, StoreError> {
    match error {
        SdkError::ServiceError(answer) if answer.err().is_conditional_check_failed_exception() => {
            match answer.into_err() {
                UpdateItemError::ConditionalCheckFailedException(failed) => held(failed.item(), "UpdateItem"),
                _ => Err(StoreError::new(StoreErrorKind::NoRecord, "UpdateItem")), // excluded by the guard above
            }
        }
        error => Err(StoreError::from_sdk("UpdateItem", error)),
    }
}
