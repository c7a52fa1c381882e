//! The record table, through the AWS SDK. Every request is conditional, and is given up when its time is up.

use std::{future::Future, time::Duration};

use aws_sdk_dynamodb::{
    Client,
    error::{ProvideErrorMetadata, SdkError},
    operation::{put_item::PutItemError, update_item::builders::UpdateItemFluentBuilder},
    types::{AttributeValue, ReturnValuesOnConditionCheckFailure::AllOld},
};
use tokio::time::timeout;

use super::{
    decide::Claim,
    guard::{Guard, Settled},
    key::Key,
    record::{Item, Record, State, n, s},
};
use crate::clock::{Clock, Timestamp};

pub(super) const FREE: &str = "attribute_not_exists(pk) OR expires_at <= :now";

/// What `FREE` says of a record.
pub fn is_free(record: Option<&Record>, now: Timestamp) -> bool {
    record.is_none_or(|record| record.expires_at <= Timestamp::from_secs(now.as_millis() / 1000))
}

const TAKE_OVER: &str = "SET #state = :started, #owner = :new_owner, attempt = :new_attempt, lease_until = :lease, \
                         expires_at = :expires";

/// The table of records.
#[derive(Clone, Debug)]
pub struct Store {
    pub(super) client: Client,
    pub(super) table: String,
    pub(super) clock: Clock,
}

/// Who holds the key now.
#[derive(Debug)]
pub enum Acquired {
    /// This execution.
    Mine(Guard),
    /// Nobody: the call now waits for a person's approval.
    Awaiting,
    /// Somebody else, or this execution already.
    Held(Record),
}

/// Why a request to the table gave no answer that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// Surely nothing was written: throttled or refused.
    Refused,
    /// It may have been written: no answer in time, or a broken connection.
    NoAnswer,
    /// The item is no record of ours.
    NoRecord,
}

/// A request to the table that failed. The source is for the log.
#[derive(Debug, thiserror::Error)]
#[error("the record table: {operation}: {kind:?}")]
pub struct StoreError {
    /// What it means.
    pub kind: StoreErrorKind,
    /// The operation.
    pub operation: &'static str,
    #[source]
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl StoreError {
    pub(super) fn new(kind: StoreErrorKind, operation: &'static str) -> Self {
        Self { kind, operation, source: None }
    }

    /// This error, of a request that may have been applied all the same.
    pub(super) fn unanswered(self) -> Self {
        Self { kind: StoreErrorKind::NoAnswer, ..self }
    }

    pub(super) fn from_sdk<E, R>(operation: &'static str, error: SdkError<E, R>) -> Self
    where
        E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
        R: std::fmt::Debug + Send + Sync + 'static,
    {
        let refused = match &error {
            SdkError::ConstructionFailure(_) => true,
            SdkError::ServiceError(answer) => !matches!(answer.err().code(), None | Some("InternalServerError")),
            _ => false,
        };
        let kind = if refused { StoreErrorKind::Refused } else { StoreErrorKind::NoAnswer };
        Self { kind, operation, source: Some(Box::new(error)) }
    }
}

/// Gives a request up when its time is up.
pub(super) async fn within<T, E, R>(
    time: Duration,
    operation: &'static str,
    request: impl Future<Output = Result<T, SdkError<E, R>>>,
) -> Result<Result<T, SdkError<E, R>>, StoreError> {
    timeout(time, request).await.map_err(|_| StoreError::new(StoreErrorKind::NoAnswer, operation))
}

impl Store {
    /// A store on this table.
    pub fn new(client: Client, table: impl Into<String>, clock: Clock) -> Self {
        Self { client, table: table.into(), clock }
    }

    /// The time of day by which leases and expiry are judged.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Acquires the key: one conditional put, which brings the record along if there is one.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::NoAnswer`] leaves open whether the record was written.
    pub async fn acquire(&self, key: &Key, claim: &Claim, time: Duration) -> Result<Acquired, StoreError> {
        let now = self.now();
        let state = if claim.for_approval.is_some() { State::AwaitingApproval } else { State::Started };
        let request = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(new_item(key, claim, state, now)))
            .condition_expression(FREE)
            .expression_attribute_values(":now", n(now.as_millis() / 1000))
            .return_values_on_condition_check_failure(AllOld)
            .send();
        match within(time, "PutItem", request).await? {
            Ok(_) if state == State::AwaitingApproval => Ok(Acquired::Awaiting),
            Ok(_) => Ok(Acquired::Mine(Guard::new(self.clone(), key.clone(), claim.clone(), 1))),
            Err(SdkError::ServiceError(answer)) if answer.err().is_conditional_check_failed_exception() => {
                let PutItemError::ConditionalCheckFailedException(failed) = answer.into_err() else {
                    return Err(StoreError::new(StoreErrorKind::NoRecord, "PutItem")); // excluded by the guard above
                };
                held(failed.item(), "PutItem").map(Acquired::Held)
            }
            Err(error) => Err(StoreError::from_sdk("PutItem", error)),
        }
    }

    /// The record as it stands, by a consistent read.
    pub async fn read(&self, key: &Key, time: Duration) -> Result<Option<Record>, StoreError> {
        let request =
            self.client.get_item().table_name(&self.table).key("pk", s(key.pk())).consistent_read(true).send();
        let answer = within(time, "GetItem", request).await?.map_err(|error| StoreError::from_sdk("GetItem", error))?;
        answer.item().map(|item| held(Some(item), "GetItem")).transpose()
    }

    /// Makes a record ours that nobody is at any more: one whose holder is gone, one that a person has approved, one of
    /// which it has been found out that nothing was done. A compare-and-set on its owner, attempt and state.
    pub async fn take_over(
        &self,
        key: &Key,
        claim: &Claim,
        old: &Record,
        time: Duration,
    ) -> Result<Acquired, StoreError> {
        let guard = Guard::next(self, key, claim, old);
        let update = self
            .fenced(key, &old.owner, old.attempt, &[old.state])
            .expression_attribute_values(":started", s(State::Started.name()))
            .expression_attribute_values(":new_owner", s(&claim.owner))
            .expression_attribute_values(":new_attempt", n(old.attempt + 1))
            .expression_attribute_values(":lease", n(claim.lease_until.as_millis()))
            .expression_attribute_values(":expires", n(claim.expires_at.as_secs_up()));
        let update = match guard.approval() {
            None => update.update_expression(TAKE_OVER),
            Some(until) => update
                .update_expression(format!("{TAKE_OVER}, approved_until = :approved REMOVE arguments"))
                .expression_attribute_values(":approved", n(until.as_secs_up())),
        };
        match within(time, "UpdateItem", update.send()).await? {
            Ok(_) => Ok(Acquired::Mine(guard)),
            Err(error) => match Guard::superseded(error)? {
                // Our own take-over was applied, its answer lost, and the client asked again.
                record if guard.holds(&record) => Ok(Acquired::Mine(guard)),
                record => Ok(Acquired::Held(record)),
            },
        }
    }

    /// Records that nobody knows how an execution ended that is gone.
    pub async fn settle_unknown(&self, key: &Key, old: &Record, time: Duration) -> Result<Settled, StoreError> {
        let request = self
            .fenced(key, &old.owner, old.attempt, &[State::Started])
            .update_expression("SET #state = :unknown")
            .expression_attribute_values(":unknown", s(State::Unknown.name()))
            .send();
        match within(time, "UpdateItem", request).await? {
            Ok(_) => Ok(Settled::AsWritten),
            Err(error) => match Guard::superseded(error)? {
                // Ours, whose answer was lost, or another's: the same.
                record if record.owner == old.owner && record.state == State::Unknown => Ok(Settled::AsWritten),
                record => Ok(Settled::Superseded(Some(record))),
            },
        }
    }

    /// An update that only this owner and attempt may make, and only of a record in one of these states.
    pub(super) fn fenced(&self, key: &Key, owner: &str, attempt: u32, states: &[State]) -> UpdateItemFluentBuilder {
        let fence = Fence::new(states);
        let update = self
            .client
            .update_item()
            .table_name(&self.table)
            .key("pk", s(key.pk()))
            .condition_expression(fence.condition)
            .expression_attribute_names("#owner", "owner")
            .expression_attribute_names("#state", "state")
            .expression_attribute_values(":owner", s(owner))
            .expression_attribute_values(":attempt", n(attempt))
            .return_values_on_condition_check_failure(AllOld);
        fence.states.into_iter().fold(update, |update, (name, value)| update.expression_attribute_values(name, value))
    }
}

/// The condition by which only the holder of a record can write to it.
pub(super) struct Fence {
    pub condition: String,
    pub states: Vec<(String, AttributeValue)>,
}

impl Fence {
    pub fn new(states: &[State]) -> Self {
        let states: Vec<_> =
            states.iter().enumerate().map(|(i, state)| (format!(":state{i}"), s(state.name()))).collect();
        let names = states.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
        Self { condition: format!("#owner = :owner AND attempt = :attempt AND #state IN ({names})"), states }
    }
}

/// What the condition of a `Fence` says of a record.
pub fn is_fenced_in(record: Option<&Record>, owner: &str, attempt: u32, states: &[State]) -> bool {
    record.is_some_and(|record| record.owner == owner && record.attempt == attempt && states.contains(&record.state))
}

/// The record in an item that a failed condition or a read has brought along.
pub(super) fn held(item: Option<&Item>, operation: &'static str) -> Result<Record, StoreError> {
    item.and_then(Record::from_item).ok_or_else(|| StoreError::new(StoreErrorKind::NoRecord, operation))
}

/// A record as it is first written.
pub(super) fn new_item(key: &Key, claim: &Claim, state: State, now: Timestamp) -> Item {
    let tool = key.pk().split('#').next().unwrap_or_default();
    let attributes: [(&str, AttributeValue); 10] = [
        ("pk", s(key.pk())),
        ("state", s(state.name())),
        ("owner", s(&claim.owner)),
        ("attempt", n(1)),
        ("args_hash", s(key.args_hash())),
        ("started_at", n(now.as_millis())),
        ("lease_until", n(claim.lease_until.as_millis())),
        ("expires_at", n(claim.expires_at.as_secs_up())),
        ("tool", s(tool)),
        ("version", n(1)),
    ];
    // What the approver decides on; taken out again when the call begins.
    let for_approval = claim.for_approval.as_deref().filter(|_| state == State::AwaitingApproval);
    let all = attributes.into_iter().chain(for_approval.map(|arguments| ("arguments", s(arguments))));
    all.map(|(name, value)| (name.to_owned(), value)).collect()
}
