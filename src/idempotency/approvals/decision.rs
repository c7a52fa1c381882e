//! A person's decision, on one call as it was shown.

use std::time::Duration;

use aws_sdk_dynamodb::{
    error::SdkError,
    operation::update_item::{UpdateItemError, builders::UpdateItemFluentBuilder},
    types::{AttributeValue, ReturnValuesOnConditionCheckFailure::AllOld, error::ConditionalCheckFailedException},
};

use super::{
    super::{
        doubt::Doubt,
        record::{Item, State, n, s},
        request::{StoreError, StoreErrorKind, within},
        store::Store,
    },
    ApprovalId, Pending, TIME, waiting_at,
};
use crate::clock::Timestamp;

/// How long an approval waits for the call to be made again.
pub const APPROVED_FOR: Duration = Duration::from_hours(1);

/// What a person decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The call may run, once.
    Approve,
    /// It must not run.
    Deny,
}

/// Why a decision did not count. Each is a sentence for the person.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApprovalError {
    /// It is no id.
    #[error(
        "{0:?} is no id of a call that waits, so nothing was decided. List what waits, and give the whole `id` of the call \
         as it stands there: neither its key nor the beginning of it is enough."
    )]
    NoId(String),
    /// No such call waits.
    #[error(
        "The call with the id {0:?} does not wait any more: somebody has decided on it already, or its time is over. List \
         what waits."
    )]
    NotPending(String),
    /// It waits otherwise than it was shown.
    #[error(
        "What waits now under the key of {0:?} is not what that id was shown for: it has other arguments, or an attempt may \
         have done it since. Nothing was decided. List what waits, and look at it again."
    )]
    Changed(String),
    /// The table did not answer, or refuses to, and surely nothing was written.
    #[error("Nothing was decided. {}", .0.told("So try again."))]
    Undecided(#[source] StoreError),
    /// The table did not answer to the decision.
    #[error(
        "The table of records has not answered, and it is not known whether your decision was recorded. List what waits. If \
         the call is no longer there, a decision was recorded: yours, or somebody else's meanwhile. If it is, decide again: only \
         one decision counts."
    )]
    Unanswered(#[source] StoreError),
}

impl Store {
    /// The call that waits with this id, by one consistent read.
    ///
    /// # Errors
    ///
    /// If the text is no id, if no such call waits any more, or if it waits otherwise than it was shown.
    pub async fn waiting(&self, id: &str) -> Result<Pending, ApprovalError> {
        let Ok(meant) = id.parse::<ApprovalId>() else { return Err(ApprovalError::NoId(id.to_owned())) };
        let request =
            self.client.get_item().table_name(&self.table).key("pk", s(&meant.pk)).consistent_read(true).send();
        let answer = within(TIME, "GetItem", request).await.map_err(ApprovalError::Undecided)?;
        let answer = answer.map_err(|error| ApprovalError::Undecided(StoreError::from_sdk("GetItem", error)))?;
        as_shown(answer.item(), &meant.to_string(), self.now())
    }

    /// Decides on the call that waits with this id, in the name of `by`. Hands back what was decided on.
    ///
    /// # Errors
    ///
    /// As of [`Store::waiting`], and if the table did not answer.
    pub async fn decide_approval(&self, id: &str, by: &str, verdict: Verdict) -> Result<Pending, ApprovalError> {
        let pending = self.waiting(id).await?;
        let (now, doubt) = (self.now(), Doubt::default());
        let request = self.decision(&pending, by, verdict, now).customize().interceptor(doubt.clone()).send();
        match within(TIME, "UpdateItem", request).await.map_err(|error| not_recorded(error.given_up(&doubt)))? {
            Ok(_) => Ok(pending),
            Err(error) if has_decided(&error, verdict, by, now) => Ok(pending), // our own, whose answer was lost
            Err(error) => Err(match met(&error) {
                // Somebody has decided since it was read.
                Some(failed) => {
                    as_shown(failed.item(), &pending.id, now).err().unwrap_or(ApprovalError::NotPending(pending.id))
                }
                None => not_recorded(StoreError::from_sdk("UpdateItem", error).given(&doubt)),
            }),
        }
    }

    /// The update that records it, if the call is still as it was shown.
    fn decision(&self, shown: &Pending, by: &str, verdict: Verdict, now: Timestamp) -> UpdateItemFluentBuilder {
        let (state, expires) = comes_to(shown, verdict, now);
        let expires = expires.map(|at| (":expires", n(at)));
        let update = if expires.is_some() { "expires_at = :expires, " } else { "" };
        let update = format!("SET {update}#state = :state, decided_by = :by, decided_at = :at REMOVE waits_for");
        let request = self
            .client
            .update_item()
            .table_name(&self.table)
            .key("pk", s(&shown.key))
            .condition_expression(if shown.maybe_done { AS_SHOWN_IN_DOUBT } else { AS_SHOWN })
            .update_expression(update)
            .expression_attribute_names("#state", "state")
            .expression_attribute_values(":awaiting", s(State::AwaitingApproval.name()))
            .expression_attribute_values(":args", s(&shown.args_hash))
            .expression_attribute_values(":doubt", AttributeValue::Bool(true))
            .expression_attribute_values(":now", n(now.as_secs()))
            .expression_attribute_values(":state", s(state.name()))
            .expression_attribute_values(":by", s(by))
            .expression_attribute_values(":at", n(now.as_millis()))
            .return_values_on_condition_check_failure(AllOld);
        expires.into_iter().fold(request, |request, (name, at)| request.expression_attribute_values(name, at))
    }
}

/// The state of the record after this verdict, and when it ends, if that is another time than before.
fn comes_to(shown: &Pending, verdict: Verdict, now: Timestamp) -> (State, Option<u64>) {
    let soon = now.plus(APPROVED_FOR).as_secs_up();
    match verdict {
        // The record keeps a doubt, which must not end before its time.
        Verdict::Approve if shown.maybe_done => (State::Approved, Some(soon.max(shown.expires_at.as_secs()))),
        Verdict::Approve => (State::Approved, Some(soon)),
        Verdict::Deny => (State::Denied, None),
    }
}

/// The record still waits for these arguments, and nobody has tried it since it was shown.
const AS_SHOWN: &str = "#state = :awaiting AND args_hash = :args AND expires_at > :now \
                        AND (attribute_not_exists(maybe_done) OR maybe_done <> :doubt)";
/// The same of a record that was shown in doubt.
const AS_SHOWN_IN_DOUBT: &str =
    "#state = :awaiting AND args_hash = :args AND expires_at > :now AND maybe_done = :doubt";

/// The call of this item, if it waits and is the one that was shown with this id.
fn as_shown(item: Option<&Item>, id: &str, now: Timestamp) -> Result<Pending, ApprovalError> {
    match item.and_then(|item| waiting_at(item, now)) {
        Some(call) if call.id == id => Ok(call),
        Some(_) => Err(ApprovalError::Changed(id.to_owned())),
        None => Err(ApprovalError::NotPending(id.to_owned())),
    }
}

/// The failed condition, if that is why there is no answer.
fn met<R>(error: &SdkError<UpdateItemError, R>) -> Option<&ConditionalCheckFailedException> {
    match error.as_service_error()? {
        UpdateItemError::ConditionalCheckFailedException(failed) => Some(failed),
        _ => None,
    }
}

fn not_recorded(error: StoreError) -> ApprovalError {
    match error.kind {
        StoreErrorKind::NoAnswer => ApprovalError::Unanswered(error),
        _ => ApprovalError::Undecided(error),
    }
}

/// Whether the record that made the condition fail has this very decision. The call may have begun by it since.
fn has_decided<R>(error: &SdkError<UpdateItemError, R>, verdict: Verdict, by: &str, at: Timestamp) -> bool {
    let item = met(error).and_then(ConditionalCheckFailedException::item);
    let is = |name: &str, value: AttributeValue| item.and_then(|item| item.get(name)) == Some(&value);
    let other = match verdict {
        Verdict::Approve => State::Denied,
        Verdict::Deny => State::Approved,
    };
    is("decided_by", s(by)) && is("decided_at", n(at.as_millis())) && !is("state", s(other.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The decision was applied, its answer lost, and the client asked again.
    #[test]
    fn a_decision_is_known_as_ones_own_also_where_the_call_has_begun_by_it() {
        let at = Timestamp::from_secs(1_000_000);
        let met = |by: &str, at: Timestamp, state: State| {
            let item = [("state", s(state.name())), ("decided_by", s(by)), ("decided_at", n(at.as_millis()))];
            let item = item.map(|(name, value)| (name.to_owned(), value)).into();
            let failed = ConditionalCheckFailedException::builder().set_item(Some(item)).build();
            SdkError::service_error(UpdateItemError::ConditionalCheckFailedException(failed), ())
        };
        for state in [State::Approved, State::Denied, State::Started, State::Completed, State::Unknown] {
            let own = |error| has_decided(&error, Verdict::Approve, "ada", at);
            assert_eq!(own(met("ada", at, state)), state != State::Denied, "{state:?}");
            assert!(!own(met("bob", at, state)), "{state:?}");
            assert!(!own(met("ada", Timestamp::from_secs(2), state)), "{state:?}");
        }
        assert!(!has_decided(&met("ada", at, State::Approved), Verdict::Deny, "ada", at), "both at one moment");
    }
}
