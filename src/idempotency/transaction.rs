//! An atomic effect: the tool's writes and the completed record commit together, or not at all.

use std::time::Duration;

use aws_sdk_dynamodb::{
    config::http::HttpResponse,
    error::SdkError,
    operation::transact_write_items::TransactWriteItemsError,
    types::{CancellationReason, Put, ReturnValuesOnConditionCheckFailure::AllOld, TransactWriteItem},
};
use sha2::{Digest, Sha256};

use super::{
    decide::Claim,
    doubt::Doubt,
    key::{Key, hex},
    record::{Decided, Item, Record, State, Stored, n, result_attribute, s},
    request::{StoreError, StoreErrorKind, held, within},
    store::{FREE, Store, is_free, new_item},
};
use crate::{clock::Timestamp, tool::code_of};

/// What an atomic effect commits.
#[derive(Debug)]
pub struct Transaction<'a> {
    /// The result that the record keeps.
    pub result: &'a Stored,
    /// Who has approved it. The record of the commit takes the place of the one that says so.
    pub decided: Option<&'a Decided>,
    /// The tool's writes.
    pub writes: Vec<TransactWriteItem>,
}

/// How a transaction ended.
#[derive(Debug)]
pub enum Commit {
    /// All writes and the record are there.
    Done,
    /// None are: the key has a record already.
    Held(Record),
    /// None are: the condition of the tool's write at this index failed. With the item as it stands, if the write asked for it.
    ConditionFailed(usize, Option<Item>),
    /// None are: another transaction was at the same items. Trying again is safe.
    Conflict,
}

/// The end of a transaction, as its last try says, and what it cannot say.
#[derive(Debug)]
pub struct Tried {
    /// How it ended.
    pub commit: Commit,
    /// Whether an earlier try of the same request was not answered. It may still be applied, as soon as the conditions hold.
    pub in_doubt: bool,
}

const OPERATION: &str = "TransactWriteItems";

const OURS: &str = "(#owner = :owner AND #state = :started)";

/// What the condition of a commit says of a record: `FREE`, or `OURS`.
pub fn may_commit(record: Option<&Record>, owner: &str, now: Timestamp) -> bool {
    is_free(record, now) || record.is_some_and(|record| record.owner == owner && record.state == State::Started)
}

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
        Transaction { result, decided, writes }: Transaction<'_>,
        time: Duration,
    ) -> Result<Tried, StoreError> {
        let doubt = Doubt::default();
        let items = std::iter::once(self.record_put(key, claim, result, decided)?).chain(writes).collect();
        let request = self
            .client
            .transact_write_items()
            .set_transact_items(Some(items))
            .client_request_token(token(key, claim, attempt))
            .customize()
            .interceptor(doubt.clone())
            .send();
        let ended = within(time, OPERATION, request).await.map_err(|error| error.given_up(&doubt))?;
        let commit = ended.map_or_else(outcome_of, |_| Ok(Commit::Done)).map_err(|error| error.given(&doubt))?;
        match (commit, doubt.remains()) {
            // It may be a conflict with our own first try.
            (Commit::Conflict, true) => Err(StoreError::new(StoreErrorKind::NoAnswer, OPERATION)),
            (Commit::Done, _) => Ok(Tried { commit: Commit::Done, in_doubt: false }),
            (commit, in_doubt) => Ok(Tried { commit, in_doubt }),
        }
    }

    /// The completed record as the first item of the transaction.
    fn record_put(
        &self,
        key: &Key,
        claim: &Claim,
        result: &Stored,
        decided: Option<&Decided>,
    ) -> Result<TransactWriteItem, StoreError> {
        let now = self.now();
        let mut item = new_item(key, claim, State::Completed, now);
        let kept = std::iter::once(result_attribute(result)).chain(decided.into_iter().flat_map(Decided::attributes));
        item.extend(kept.map(|(name, value)| (name.to_owned(), value)));
        let put = Put::builder()
            .table_name(&self.table)
            .set_item(Some(item))
            .condition_expression(format!("{FREE} OR {OURS}"))
            .expression_attribute_names("#owner", "owner")
            .expression_attribute_names("#state", "state")
            .expression_attribute_values(":now", n(now.as_secs()))
            .expression_attribute_values(":owner", s(&claim.owner))
            .expression_attribute_values(":started", s(State::Started.name()))
            .return_values_on_condition_check_failure(AllOld)
            .build()
            .map_err(|error| {
                let error: SdkError<TransactWriteItemsError, _> = SdkError::construction_failure(error);
                StoreError::from_sdk(OPERATION, error)
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

fn outcome_of(error: SdkError<TransactWriteItemsError, HttpResponse>) -> Result<Commit, StoreError> {
    let reasons = match &error {
        SdkError::ServiceError(answer) => match answer.err() {
            TransactWriteItemsError::TransactionCanceledException(cancelled) => cancelled.cancellation_reasons(),
            _ => return Err(StoreError::from_sdk(OPERATION, error)),
        },
        _ => return Err(StoreError::from_sdk(OPERATION, error)),
    };
    let is = |reason: &CancellationReason, code: &str| reason.code() == Some(code);
    // The record is the first item: a call that has been made already does not come to the tool's conditions. Where its
    // condition was not looked at, as in a conflict, those of the tool say nothing: an equal call may just have made them fail.
    let record_was_seen =
        reasons.first().is_some_and(|record| ["None", "ConditionalCheckFailed"].iter().any(|code| is(record, code)));
    match reasons.iter().position(|reason| record_was_seen && is(reason, "ConditionalCheckFailed")) {
        Some(0) => held(reasons[0].item(), OPERATION).map(Commit::Held),
        Some(index) => Ok(Commit::ConditionFailed(index - 1, reasons[index].item().cloned())),
        None if reasons.iter().any(|reason| is(reason, "TransactionConflict")) => Ok(Commit::Conflict),
        None => {
            let is_malformed = reasons.iter().any(|reason| is(reason, "ValidationError"));
            let reason = reasons.iter().filter_map(CancellationReason::code).find(|code| *code != "None");
            let reason = code_of(reason);
            let mut error = StoreError::from_sdk(OPERATION, error);
            if let Some(reason) = reason {
                error.cause = reason; // the code of the whole says only that it was cancelled
            }
            if is_malformed {
                error.kind = StoreErrorKind::Fault;
            }
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::types::{AttributeValue, error::TransactionCanceledException};
    use aws_smithy_types::{body::SdkBody, error::ErrorMetadata};

    use super::*;
    use crate::idempotency::StoreErrorKind;

    fn refused(error: TransactWriteItemsError, status: u16) -> SdkError<TransactWriteItemsError, HttpResponse> {
        SdkError::service_error(error, HttpResponse::new(status.try_into().expect("a status"), SdkBody::empty()))
    }

    /// A transaction that was cancelled for these reasons, the record's first; each has the item of an order.
    fn cancelled(codes: &[&str]) -> SdkError<TransactWriteItemsError, HttpResponse> {
        let reason = |code: &&str| {
            let order = AttributeValue::S(String::from("ORD-12345"));
            CancellationReason::builder().code(*code).item("order_id", order).build()
        };
        let reasons = Some(codes.iter().map(reason).collect());
        // The SDK fills in the code of the error from the answer.
        let meta = ErrorMetadata::builder().code("TransactionCanceledException").build();
        let error = TransactionCanceledException::builder().set_cancellation_reasons(reasons).meta(meta).build();
        refused(TransactWriteItemsError::TransactionCanceledException(error), 400)
    }

    #[test]
    fn a_condition_that_fails_is_told_by_the_place_of_its_write() {
        let ended = outcome_of(cancelled(&["None", "None", "ConditionalCheckFailed"])).expect("an outcome");
        let Commit::ConditionFailed(1, Some(item)) = ended else { panic!("{ended:?}") };
        assert!(item.contains_key("order_id"));
    }

    #[test]
    fn a_record_that_is_there_goes_before_any_condition_of_the_tool() {
        let error =
            outcome_of(cancelled(&["ConditionalCheckFailed", "ConditionalCheckFailed"])).expect_err("no record");
        assert_eq!(error.kind, StoreErrorKind::NoRecord, "the item is an order, and no record of ours");
    }

    #[test]
    fn a_conflict_may_be_tried_again_unless_a_condition_failed_as_well() {
        assert!(matches!(outcome_of(cancelled(&["None", "TransactionConflict"])), Ok(Commit::Conflict)));
        let both = outcome_of(cancelled(&["None", "TransactionConflict", "ConditionalCheckFailed"]));
        assert!(matches!(both, Ok(Commit::ConditionFailed(1, _))), "{both:?}");
    }

    /// An equal call is committing: its write is there, and its record is not yet. "Nothing is left to refund, no refund
    /// was made" would be a lie.
    #[test]
    fn a_condition_that_failed_says_nothing_where_the_record_was_not_looked_at() {
        let ended = outcome_of(cancelled(&["TransactionConflict", "ConditionalCheckFailed"]));
        assert!(matches!(ended, Ok(Commit::Conflict)), "{ended:?}");
        let error = outcome_of(cancelled(&["ThrottlingError", "ConditionalCheckFailed"])).expect_err("no outcome");
        assert_eq!(error.kind, StoreErrorKind::Refused);
    }

    /// The line of the call has it.
    #[test]
    fn the_reason_of_a_cancellation_is_its_cause_if_it_is_a_code() {
        for (reason, cause) in
            [("ThrottlingError", "ThrottlingError"), ("a reason with SECRET-1", "TransactionCanceledException")]
        {
            let error = outcome_of(cancelled(&["None", reason])).expect_err("no outcome");
            assert_eq!(error.cause(), cause);
        }
    }

    #[test]
    fn only_an_answer_that_refuses_says_that_nothing_was_written() {
        let coded = |code: &str| TransactWriteItemsError::generic(ErrorMetadata::builder().code(code).build());
        for (error, kind) in [
            (cancelled(&["None", "ThrottlingError"]), StoreErrorKind::Refused),
            (refused(coded("ValidationException"), 400), StoreErrorKind::Fault),
            (cancelled(&["ValidationError", "None"]), StoreErrorKind::Fault),
            (refused(coded("ThrottlingException"), 400), StoreErrorKind::Refused),
            (refused(coded("InternalServerError"), 500), StoreErrorKind::NoAnswer),
            (refused(coded("ServiceUnavailable"), 503), StoreErrorKind::NoAnswer),
            (SdkError::timeout_error("late"), StoreErrorKind::NoAnswer),
            (SdkError::construction_failure("bad"), StoreErrorKind::Fault),
        ] {
            let shown = format!("{error:?}");
            assert_eq!(outcome_of(error).expect_err("no outcome").kind, kind, "{shown}");
        }
    }
}
