//! The person's side of approval: what waits, and the decision on it.
//!
//! A call that needs approval leaves a record in the state `awaiting_approval`, with its arguments. A person decides on
//! that very record, out of band: nothing that reaches a door can. The digest of the arguments is part of the condition, so
//! that nobody approves other arguments than those that were shown.
//!
//! | decision | the same call then | until |
//! | --- | --- | --- |
//! | none yet | is answered `approval_required` | the record expires (the tool's window) |
//! | approved | runs, once | [`APPROVED_FOR`] after the decision |
//! | denied | is answered `denied` | the record expires |
//!
//! A `Keyed` tool may ask only after an attempt that may have been done ([`Pending::maybe_done`]). Then the first and the
//! last line are `outcome_unknown` instead: that the call waits, or is refused, does not say that nothing was changed. And
//! the approval counts as long as the record would, since the record keeps the doubt.

use std::{collections::HashMap, fmt, time::Duration};

use aws_sdk_dynamodb::{
    error::SdkError,
    operation::update_item::UpdateItemError,
    types::{AttributeValue, ReturnValuesOnConditionCheckFailure::AllOld},
};
use serde::Serialize;

use super::{
    record::{State, effect_of, n, s},
    request::{StoreError, within},
    store::Store,
};
use crate::{clock::Timestamp, readable, tool::Effect};

/// How long an approval waits for the call to be made again.
pub const APPROVED_FOR: Duration = Duration::from_hours(1);
/// How long one request to the table may take.
const TIME: Duration = Duration::from_secs(10);

/// A call that waits for a person.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct Pending {
    /// The record's key: `refund_order#4f1c…`.
    pub key: String,
    /// The tool.
    pub tool: String,
    /// The arguments, as JSON text, without characters that nobody sees ([`readable`]): a model wrote them, and a person
    /// reads them, often on a terminal.
    pub arguments: String,
    /// Whether an attempt may have been done before a person was asked. To approve it is to have it run again with the
    /// same key, if the tool still has the effect that it had ([`Pending::runs_as`]).
    pub maybe_done: bool,
    /// The effect of the tool when it was begun. `None` in records from before this was kept.
    pub effect: Option<Effect>,
    /// When it was asked for, in milliseconds since 1970.
    pub asked_at: u64,
    /// When it stops waiting, in seconds since 1970.
    pub expires_at: u64,
    #[serde(skip)]
    args_hash: String,
}

impl Pending {
    /// Whether it runs when it is approved, of a tool that has this effect by now. What may have been done under another
    /// effect is not done again by another way: the same call then only asks the tool what became of it.
    pub fn runs_as(&self, effect: Effect) -> bool {
        !self.maybe_done || self.effect.is_none_or(|begun_as| begun_as == effect)
    }

    /// One that was asked for on 30 November 2026 and waits for an hour.
    #[cfg(all(test, feature = "dev"))]
    pub(crate) fn sample(tool: &str, maybe_done: bool, effect: Effect) -> Self {
        Self {
            key: format!("{tool}#1"),
            tool: tool.to_owned(),
            arguments: String::from("{}"),
            maybe_done,
            effect: Some(effect),
            asked_at: 1_796_032_101_500,
            expires_at: 1_796_035_701,
            args_hash: String::new(),
        }
    }

    /// When it was asked for.
    pub const fn asked(&self) -> Timestamp {
        Timestamp::from_millis(self.asked_at)
    }

    /// When it stops waiting.
    pub const fn expires(&self) -> Timestamp {
        Timestamp::from_secs(self.expires_at)
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("key", &self.key).finish_non_exhaustive() // the arguments are for the person only
    }
}

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
    /// No such call waits.
    #[error("No call with the key {0:?} waits for approval. List those that do.")]
    NotPending(String),
    /// More than one key begins so.
    #[error("More than one call that waits has a key that begins with {0:?}. Give more of it.")]
    Ambiguous(String),
    /// The table did not answer.
    #[error("The table of records does not answer. Nothing was decided for sure; list what waits.")]
    Store(#[from] StoreError),
}

impl Store {
    /// The calls that wait for a person, the oldest first. Reads the whole table, page by page: it is meant for a person
    /// who looks, not for a loop.
    pub async fn pending(&self) -> Result<Vec<Pending>, StoreError> {
        let mut found = Vec::new();
        let mut from = None;
        loop {
            let request = self
                .client
                .scan()
                .table_name(&self.table)
                .consistent_read(true)
                .filter_expression("#state = :awaiting AND expires_at > :now")
                .expression_attribute_names("#state", "state")
                .expression_attribute_values(":awaiting", s(State::AwaitingApproval.name()))
                .expression_attribute_values(":now", n(self.now().as_secs()))
                .set_exclusive_start_key(from)
                .send();
            let page = within(TIME, "Scan", request).await?.map_err(|error| StoreError::from_sdk("Scan", error))?;
            found.extend(page.items().iter().filter_map(pending_of));
            from = page.last_evaluated_key;
            if from.is_none() {
                break;
            }
        }
        found.sort_by(|a, b| (a.asked_at, &a.key).cmp(&(b.asked_at, &b.key)));
        Ok(found)
    }

    /// Decides on the one call that waits whose key is `key`, or begins with it, in the name of `by`. Hands back what was
    /// decided on.
    ///
    /// # Errors
    ///
    /// If no such call waits any more, or the key is not enough of one.
    pub async fn decide_approval(&self, key: &str, by: &str, verdict: Verdict) -> Result<Pending, ApprovalError> {
        let pending = one_of(self.pending().await?, key)?;
        let now = self.now();
        let soon = now.plus(APPROVED_FOR).as_secs_up();
        let (state, expires) = match verdict {
            // The record keeps a doubt, which must not end before its time.
            Verdict::Approve if pending.maybe_done => (State::Approved, soon.max(pending.expires_at)),
            Verdict::Approve => (State::Approved, soon),
            Verdict::Deny => (State::Denied, pending.expires_at),
        };
        let request = self
            .client
            .update_item()
            .table_name(&self.table)
            .key("pk", s(&pending.key))
            .condition_expression("#state = :awaiting AND args_hash = :args AND expires_at > :now")
            .update_expression("SET #state = :state, expires_at = :expires, decided_by = :by, decided_at = :at")
            .expression_attribute_names("#state", "state")
            .expression_attribute_values(":awaiting", s(State::AwaitingApproval.name()))
            .expression_attribute_values(":args", s(&pending.args_hash))
            .expression_attribute_values(":now", n(now.as_secs()))
            .expression_attribute_values(":state", s(state.name()))
            .expression_attribute_values(":expires", n(expires))
            .expression_attribute_values(":by", s(by))
            .expression_attribute_values(":at", n(now.as_millis()))
            .return_values_on_condition_check_failure(AllOld)
            .send();
        match within(TIME, "UpdateItem", request).await? {
            Ok(_) => Ok(pending),
            Err(error) if has_decided(&error, by, now) => Ok(pending), // our own, whose answer was lost
            Err(SdkError::ServiceError(answer)) if answer.err().is_conditional_check_failed_exception() => {
                Err(ApprovalError::NotPending(key.to_owned()))
            }
            Err(error) => Err(StoreError::from_sdk("UpdateItem", error).into()),
        }
    }
}

fn one_of(pending: Vec<Pending>, key: &str) -> Result<Pending, ApprovalError> {
    let mut matching = pending.into_iter().filter(|call| !key.is_empty() && call.key.starts_with(key));
    match (matching.next(), matching.next()) {
        (Some(call), None) => Ok(call),
        (None, _) => Err(ApprovalError::NotPending(key.to_owned())),
        (Some(_), Some(_)) => Err(ApprovalError::Ambiguous(key.to_owned())),
    }
}

/// Whether the record that made the condition fail has this very decision. The call may have begun by it since.
fn has_decided<R>(error: &SdkError<UpdateItemError, R>, by: &str, at: Timestamp) -> bool {
    let Some(UpdateItemError::ConditionalCheckFailedException(failed)) = error.as_service_error() else { return false };
    let is = |name: &str, value: AttributeValue| failed.item().and_then(|item| item.get(name)) == Some(&value);
    is("decided_by", s(by)) && is("decided_at", n(at.as_millis()))
}

fn pending_of(item: &HashMap<String, AttributeValue>) -> Option<Pending> {
    let text = |name: &str| item.get(name)?.as_s().ok().cloned();
    let number = |name: &str| item.get(name)?.as_n().ok()?.parse().ok();
    Some(Pending {
        key: text("pk")?,
        tool: text("tool")?,
        arguments: readable::text(&text("arguments")?).into_owned(),
        maybe_done: item.get("maybe_done").is_some_and(|value| value == &AttributeValue::Bool(true)),
        effect: text("effect").as_deref().and_then(effect_of),
        asked_at: number("started_at")?,
        expires_at: number("expires_at")?,
        args_hash: text("args_hash")?,
    })
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::types::error::ConditionalCheckFailedException;

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
            assert!(has_decided(&met("ada", at, state), "ada", at), "{state:?}");
            assert!(!has_decided(&met("bob", at, state), "ada", at), "{state:?}");
            assert!(!has_decided(&met("ada", Timestamp::from_secs(2), state), "ada", at), "{state:?}");
        }
    }
}
