//! The right to settle a record. Only the execution that acquired the key holds one, and it can use it once.

use std::time::Duration;

use aws_sdk_dynamodb::{
    error::SdkError,
    operation::{delete_item::DeleteItemError, update_item::builders::UpdateItemFluentBuilder},
    types::{AttributeValue, ReturnValuesOnConditionCheckFailure::AllOld},
};

use super::{
    asking::Asking,
    decide::Claim,
    key::Key,
    record::{Decided, Record, State, Stored, n, result_attribute, s},
    request::{StoreError, StoreErrorKind, held, superseded, within},
    store::{Fence, Store, is_fenced_in},
};
use crate::{clock::Timestamp, tool::Effect};

/// Holds a key. Dropping it leaves the record as it is: the lease and the effect then decide.
#[derive(Debug)]
#[must_use = "settle the record: complete, release, relinquish, mark unknown or await approval"]
pub struct Guard {
    store: Store,
    key: Key,
    claim: Claim,
    attempt: u32,
    /// Until when the approval counts that this execution has used.
    approved_until: Option<Timestamp>,
    /// Who has decided on it.
    decided: Option<Decided>,
    /// Whether the record keeps the commit of an earlier execution out, which was not answered.
    bars: bool,
}

/// What became of a record that a guard settled.
#[derive(Debug, PartialEq, Eq)]
pub enum Settled {
    /// It says what we wrote.
    AsWritten,
    /// We were late: another execution holds it, and nothing was overwritten. `None` if it is gone.
    Superseded(Option<Record>),
}

impl Guard {
    pub(super) fn new(store: Store, key: Key, claim: Claim, attempt: u32) -> Self {
        Self { store, key, claim, attempt, approved_until: None, decided: None, bars: false }
    }

    /// The guard of a put whose answer never came. It can settle the record only if the put was applied.
    pub fn first(store: &Store, key: &Key, claim: &Claim) -> Self {
        Self::new(store.clone(), key.clone(), claim.clone(), 1)
    }

    /// The guard of a take-over of this record, also of one whose answer never came.
    pub fn next(store: &Store, key: &Key, claim: &Claim, old: &Record) -> Self {
        let approved = old.approval(claim.effect, store.now());
        Self::new(store.clone(), key.clone(), claim.clone(), old.attempt + 1)
            .approved(approved, old)
            .barring(old.bars())
    }

    fn barring(self, bars: bool) -> Self {
        Self { bars, ..self }
    }

    fn approved(self, approved_until: Option<Timestamp>, record: &Record) -> Self {
        Self { approved_until, decided: record.decided.clone(), ..self }
    }

    /// Whether a person has approved this call.
    pub const fn is_approved(&self) -> bool {
        self.approved_until.is_some()
    }

    /// Who has decided on this call, and when: for whoever puts another record in the place of this one.
    pub const fn decided(&self) -> Option<&Decided> {
        self.decided.as_ref()
    }

    /// Whether this record must stay, whatever becomes of the call: it keeps an earlier commit out that was not answered.
    pub const fn bars(&self) -> bool {
        self.bars
    }

    /// Whether this record, as it stands, is the one to settle.
    pub(super) fn holds(&self, record: &Record) -> bool {
        is_fenced_in(Some(record), &self.claim.owner, self.attempt, &[State::Started])
    }

    pub(super) const fn approval(&self) -> Option<Timestamp> {
        self.approved_until
    }

    /// Goes on with a record of our own whose put was answered late.
    pub fn resume(store: &Store, key: &Key, claim: &Claim, record: &Record) -> Self {
        Self::new(store.clone(), key.clone(), claim.clone(), record.attempt)
            .approved(record.approved_until, record)
            .barring(record.attempt > 1 && record.bars())
    }

    /// The effect is done: keep its result. An execution that comes so late that its record has been marked unknown
    /// still knows the truth, and says it.
    pub async fn complete(self, result: &Stored, time: Duration) -> Result<Settled, StoreError> {
        let (attribute, value) = result_attribute(result);
        let update = self
            .fenced(&[State::Started, State::Unknown])
            .update_expression("SET #state = :state, #result = :result")
            .expression_attribute_names("#result", attribute)
            .expression_attribute_values(":state", s(State::Completed.name()))
            .expression_attribute_values(":result", value);
        self.settle(update, State::Completed, time).await
    }

    /// The effect may have happened, and must not be repeated.
    pub async fn mark_unknown(self, time: Duration) -> Result<Settled, StoreError> {
        let update = self
            .fenced(&[State::Started])
            .update_expression("SET #state = :state")
            .expression_attribute_values(":state", s(State::Unknown.name()));
        self.settle(update, State::Unknown, time).await
    }

    /// The effect may have happened, and repeating it under the same key is safe: the next call takes over at once.
    pub async fn relinquish(self, time: Duration) -> Result<Settled, StoreError> {
        let update = self
            .fenced(&[State::Started])
            .update_expression("SET lease_until = :past")
            .expression_attribute_values(":past", n(0));
        self.settle(update, State::Started, time).await
    }

    /// The call needs a person's approval, and its record must stay: it waits as it is. `maybe_done`: the effect may have
    /// happened before, and the record keeps that doubt. To free the key instead would say that nothing happened.
    pub async fn await_approval(
        self,
        asking: &Asking,
        maybe_done: bool,
        time: Duration,
    ) -> Result<Settled, StoreError> {
        let update = self
            .fenced(&[State::Started])
            .update_expression(
                "SET #state = :state, arguments = :arguments, asked_by = :asked_by, waits_for = :waits_for, \
                 maybe_done = :doubt, started_at = :now",
            )
            .expression_attribute_values(":state", s(State::AwaitingApproval.name()))
            .expression_attribute_values(":doubt", AttributeValue::Bool(maybe_done))
            .expression_attribute_values(":now", n(self.store.now().as_millis()));
        let update = asking
            .attributes()
            .into_iter()
            .fold(update, |update, (name, value)| update.expression_attribute_values(format!(":{name}"), value));
        self.settle(update, State::AwaitingApproval, time).await
    }

    /// Nothing happened: the key is free again, or approved as before; or the record stays for the next call, in the way of
    /// an earlier commit.
    pub async fn release(self, time: Duration) -> Result<Settled, StoreError> {
        match self.approved_until {
            Some(until) => self.give_back(until, time).await,
            None if self.bars => self.stay(time).await,
            None => self.delete(time).await,
        }
    }

    /// The next call takes it over, as this one has.
    async fn stay(self, time: Duration) -> Result<Settled, StoreError> {
        let update = self
            .fenced(&[State::Started])
            .update_expression("SET lease_until = :past, effect = :atomic")
            .expression_attribute_values(":past", n(0))
            .expression_attribute_values(":atomic", s(Effect::Atomic.name()));
        self.settle(update, State::Started, time).await
    }

    /// The approval has not been used.
    async fn give_back(self, until: Timestamp, time: Duration) -> Result<Settled, StoreError> {
        let update = self
            .fenced(&[State::Started])
            .update_expression("SET #state = :state, expires_at = :expires REMOVE approved_until")
            .expression_attribute_values(":state", s(State::Approved.name()))
            .expression_attribute_values(":expires", n(until.as_secs_up()));
        self.settle(update, State::Approved, time).await
    }

    async fn delete(self, time: Duration) -> Result<Settled, StoreError> {
        let fence = Fence::new(&[State::Started]);
        let request = self
            .store
            .client
            .delete_item()
            .table_name(&self.store.table)
            .key("pk", s(self.key.pk()))
            .condition_expression(fence.condition)
            .expression_attribute_names("#owner", "owner")
            .expression_attribute_names("#state", "state")
            .expression_attribute_values(":owner", s(&self.claim.owner))
            .expression_attribute_values(":attempt", n(self.attempt))
            .return_values_on_condition_check_failure(AllOld);
        let request = fence
            .states
            .into_iter()
            .fold(request, |request, (name, value)| request.expression_attribute_values(name, value));
        match within(time, "DeleteItem", request.send()).await? {
            Ok(_) => Ok(Settled::AsWritten),
            Err(SdkError::ServiceError(answer)) if answer.err().is_conditional_check_failed_exception() => {
                let DeleteItemError::ConditionalCheckFailedException(failed) = answer.into_err() else {
                    return Err(StoreError::new(StoreErrorKind::NoRecord, "DeleteItem")); // excluded by the guard above
                };
                // No record: our delete was applied and its answer lost, and the client asked again.
                failed.item().map_or(Ok(Settled::AsWritten), |item| {
                    held(Some(item), "DeleteItem").map(|record| Settled::Superseded(Some(record)))
                })
            }
            Err(error) => Err(StoreError::from_sdk("DeleteItem", error)),
        }
    }

    fn fenced(&self, states: &[State]) -> UpdateItemFluentBuilder {
        self.store.fenced(&self.key, &self.claim.owner, self.attempt, states)
    }

    async fn settle(
        &self,
        update: UpdateItemFluentBuilder,
        wanted: State,
        time: Duration,
    ) -> Result<Settled, StoreError> {
        match within(time, "UpdateItem", update.send()).await? {
            Ok(_) => Ok(Settled::AsWritten),
            Err(error) => match superseded(error) {
                // Our own update was applied, its answer lost, and the client asked again.
                Ok(record) if record.owner == self.claim.owner && record.state == wanted => Ok(Settled::AsWritten),
                Ok(record) => Ok(Settled::Superseded(Some(record))),
                Err(StoreError { kind: StoreErrorKind::NoRecord, .. }) => Ok(Settled::Superseded(None)),
                Err(error) => Err(error),
            },
        }
    }
}
