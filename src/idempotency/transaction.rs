//! An atomic effect: the tool's writes and the completed record commit together, or not at all.

use std::time::Duration;

use aws_sdk_dynamodb::{
    error::SdkError,
    operation::transact_write_items::TransactWriteItemsError,
    types::{CancellationReason, Put, ReturnValuesOnConditionCheckFailure::AllOld, TransactWriteItem},
};
use sha2::{Digest, Sha256};

use super::{
    decide::Claim,
    key::{Key, hex},
    record::{Item, Record, State, Stored, n, result_attribute, s},
    store::{FREE, Store, StoreError, StoreErrorKind, held, is_free, new_item, within},
    tries::Tries,
};
use crate::clock::Timestamp;

const OURS: &str = "(#owner = :owner AND #state = :started)";

/// What the condition of a commit says of a record: `FREE`, or `OURS`.
pub fn may_commit(record: Option<&Record>, owner: &str, now: Timestamp) -> bool {
    is_free(record, now) || record.is_some_and(|record| record.owner == owner && record.state == State::Started)
}

/// How a transaction ended.
#[derive(Debug)]
pub enum Commit {
    /// All writes and the record are there.
    Done,
    /// None are: the key has a record already.
    Held(Record),
    /// None are: the condition of the write at this index failed. With the item as it stands, if the write asked for it.
    ConditionFailed(usize, Option<Item>),
    /// None are: another transaction was at the same items. Trying again is safe.
    Conflict,
}

/// Why a transaction gave no answer that counts; see [`StoreErrorKind`](super::StoreErrorKind).
pub type CommitError = StoreError;

impl Store {
    /// Commits an atomic effect. `attempt` counts the tries of this execution.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::NoAnswer`](super::StoreErrorKind::NoAnswer) leaves open whether it was committed; the same call tells it by our owner.
    pub async fn commit(
        &self,
        key: &Key,
        claim: &Claim,
        attempt: u32,
        result: &Stored,
        writes: Vec<TransactWriteItem>,
        time: Duration,
    ) -> Result<Commit, CommitError> {
        let items = std::iter::once(self.record_put(key, claim, result)?).chain(writes).collect();
        let tries = Tries::default();
        let request = self
            .client
            .transact_write_items()
            .set_transact_items(Some(items))
            .client_request_token(token(key, claim, attempt))
            .customize()
            .interceptor(tries.clone())
            .send();
        match within(time, "TransactWriteItems", request).await? {
            Ok(_) => Ok(Commit::Done),
            Err(error) => match outcome_of(error) {
                Ok(Commit::Conflict) if tries.may_be_applied() => {
                    Err(StoreError::new(StoreErrorKind::NoAnswer, "TransactWriteItems")) // it may be with ourselves
                }
                Err(error) if tries.may_be_applied() => Err(error.unanswered()),
                outcome => outcome,
            },
        }
    }

    /// The completed record as the first item of the transaction.
    fn record_put(&self, key: &Key, claim: &Claim, result: &Stored) -> Result<TransactWriteItem, StoreError> {
        let now = self.now();
        let mut item = new_item(key, claim, State::Completed, now);
        let (attribute, value) = result_attribute(result);
        item.insert(attribute.to_owned(), value);
        let put = Put::builder()
            .table_name(&self.table)
            .set_item(Some(item))
            .condition_expression(format!("{FREE} OR {OURS}"))
            .expression_attribute_names("#owner", "owner")
            .expression_attribute_names("#state", "state")
            .expression_attribute_values(":now", n(now.as_millis() / 1000))
            .expression_attribute_values(":owner", s(&claim.owner))
            .expression_attribute_values(":started", s(State::Started.name()))
            .return_values_on_condition_check_failure(AllOld)
            .build()
            .map_err(|error| {
                StoreError::from_sdk::<TransactWriteItemsError, ()>(
                    "TransactWriteItems",
                    SdkError::construction_failure(error),
                )
            })?;
        Ok(TransactWriteItem::builder().put(put).build())
    }
}

/// Lets the SDK's own repetition of a committed transaction succeed instead of looking like a replay. New for each try,
/// because a token may not be used again with another request.
fn token(key: &Key, claim: &Claim, attempt: u32) -> String {
    let digest = Sha256::digest(format!("{}|{}|{attempt}", key.pk(), claim.owner));
    hex(&digest[..16])
}

fn outcome_of<R>(error: SdkError<TransactWriteItemsError, R>) -> Result<Commit, StoreError>
where
    R: std::fmt::Debug + Send + Sync + 'static,
{
    const OPERATION: &str = "TransactWriteItems";
    let reasons = match &error {
        SdkError::ServiceError(answer) => match answer.err() {
            TransactWriteItemsError::TransactionCanceledException(cancelled) => cancelled.cancellation_reasons(),
            // Our own first try, whose answer was lost.
            TransactWriteItemsError::TransactionInProgressException(_) => {
                return Err(StoreError::from_sdk(OPERATION, error).unanswered());
            }
            _ => return Err(StoreError::from_sdk(OPERATION, error)),
        },
        _ => return Err(StoreError::from_sdk(OPERATION, error)),
    };
    let code = |reason: &CancellationReason| reason.code().unwrap_or_default().to_owned();
    match reasons.first() {
        Some(record) if code(record) == "ConditionalCheckFailed" => {
            return held(record.item(), OPERATION).map(Commit::Held);
        }
        _ => {}
    }
    for (index, reason) in reasons.iter().enumerate().skip(1) {
        if code(reason) == "ConditionalCheckFailed" {
            return Ok(Commit::ConditionFailed(index - 1, reason.item().cloned()));
        }
    }
    if reasons.iter().any(|reason| code(reason) == "TransactionConflict") {
        return Ok(Commit::Conflict);
    }
    Err(StoreError::from_sdk(OPERATION, error))
}
