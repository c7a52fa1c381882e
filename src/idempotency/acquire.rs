//! How an execution comes to hold a key: nobody has it, or nobody is at it any more.

use std::time::Duration;

use aws_sdk_dynamodb::{
    error::SdkError, operation::put_item::PutItemError, types::ReturnValuesOnConditionCheckFailure::AllOld,
};

use super::{
    decide::Claim,
    doubt::Doubt,
    guard::{Guard, Settled},
    key::Key,
    record::{Record, State, n, s},
    request::{StoreError, StoreErrorKind, held, superseded, within},
    store::{FREE, Store, new_item},
};

const TAKE_OVER: &str = "SET #state = :started, #owner = :new_owner, attempt = :new_attempt, lease_until = :lease, \
                         expires_at = :expires, effect = :effect, args_hash = :args";

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

impl Store {
    /// Acquires the key: one conditional put, which brings the record along if there is one.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::NoAnswer`] leaves open whether the record was written.
    pub async fn acquire(&self, key: &Key, claim: &Claim, time: Duration) -> Result<Acquired, StoreError> {
        let (now, doubt) = (self.now(), Doubt::default());
        let state = if claim.for_approval.is_some() { State::AwaitingApproval } else { State::Started };
        let request = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(new_item(key, claim, state, now)))
            .condition_expression(FREE)
            .expression_attribute_values(":now", n(now.as_secs()))
            .return_values_on_condition_check_failure(AllOld)
            .customize()
            .interceptor(doubt.clone())
            .send();
        match within(time, "PutItem", request).await.map_err(|error| error.given_up(&doubt))? {
            Ok(_) if state == State::AwaitingApproval => Ok(Acquired::Awaiting),
            Ok(_) => Ok(Acquired::Mine(Guard::new(self.clone(), key.clone(), claim.clone(), 1))),
            Err(SdkError::ServiceError(answer)) if answer.err().is_conditional_check_failed_exception() => {
                let PutItemError::ConditionalCheckFailedException(failed) = answer.into_err() else {
                    return Err(StoreError::new(StoreErrorKind::NoRecord, "PutItem")); // excluded by the guard above
                };
                held(failed.item(), "PutItem").map(Acquired::Held)
            }
            Err(error) => Err(StoreError::from_sdk("PutItem", error).given(&doubt)),
        }
    }

    /// Puts a record in the way of a commit that was not answered: from then on it cannot be applied, and the next call of
    /// its key takes the record over at once. Hands back the record that is there already, if one is.
    ///
    /// # Errors
    ///
    /// Then the commit may still be applied.
    pub async fn bar(&self, key: &Key, claim: &Claim, time: Duration) -> Result<Option<Record>, StoreError> {
        let claim = claim.barring();
        Ok(match self.acquire(key, &claim, time).await? {
            Acquired::Held(record) if !Guard::first(self, key, &claim).holds(&record) => Some(record),
            _ => None, // also where our own put was applied, its answer lost, and the client asked again
        })
    }

    /// Takes a record over only to keep the commit of its holder out, who is gone; the next call of its key takes it over at
    /// once. Whether that has come about.
    ///
    /// # Errors
    ///
    /// Then the commit may still be applied.
    pub async fn shut_out(&self, key: &Key, claim: &Claim, old: &Record, time: Duration) -> Result<bool, StoreError> {
        let taken = self.take_over(key, &claim.barring(), old, time).await?;
        Ok(matches!(taken, Acquired::Mine(_)))
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
        let (guard, doubt) = (Guard::next(self, key, claim, old), Doubt::default());
        let update = self
            .fenced(key, &old.owner, old.attempt, &[old.state])
            .expression_attribute_values(":started", s(State::Started.name()))
            .expression_attribute_values(":new_owner", s(&claim.owner))
            .expression_attribute_values(":new_attempt", n(old.attempt + 1))
            .expression_attribute_values(":lease", n(claim.lease_until.as_millis()))
            .expression_attribute_values(":effect", s(old.taken_over_as(claim.effect).name()))
            .expression_attribute_values(":expires", n(claim.expires_at.as_secs_up()))
            .expression_attribute_values(":args", s(key.args_hash()));
        let update = match guard.approval() {
            None => update.update_expression(format!("{TAKE_OVER} REMOVE approved_until")),
            Some(until) => update
                .update_expression(format!("{TAKE_OVER}, approved_until = :approved REMOVE arguments, asked_by"))
                .expression_attribute_values(":approved", n(until.as_secs_up())),
        };
        let request = update.customize().interceptor(doubt.clone()).send();
        match within(time, "UpdateItem", request).await.map_err(|error| error.given_up(&doubt))? {
            Ok(_) => Ok(Acquired::Mine(guard)),
            Err(error) => match superseded(error).map_err(|error| error.given(&doubt))? {
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
            Err(error) => match superseded(error)? {
                // Ours, whose answer was lost, or another's: the same.
                record if record.owner == old.owner && record.state == State::Unknown => Ok(Settled::AsWritten),
                record => Ok(Settled::Superseded(Some(record))),
            },
        }
    }
}
