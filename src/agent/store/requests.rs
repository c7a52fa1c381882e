//! The requests that a lease makes, and what their answers mean.

use std::time::Duration;

use aws_sdk_dynamodb::{
    config::http::HttpResponse,
    error::{ProvideErrorMetadata, SdkError},
    operation::{
        transact_write_items::TransactWriteItemsError,
        update_item::{UpdateItemError, builders::UpdateItemFluentBuilder},
    },
    types::{Put, ReturnValue, ReturnValuesOnConditionCheckFailure::AllOld, TransactWriteItem, builders::PutBuilder},
};
use tokio::time::timeout;

use super::{
    Lease, NOBODY,
    item::{Head, Item, key, n, number, part_of, s, with},
    kept::{Part, Split, steps},
};
use crate::{
    agent::drive::{Revision, SaveError},
    clock::Timestamp,
    idempotency::TAKE_OVER_MARGIN,
    tool::Named,
};

impl Lease {
    /// Lets go of the conversation, so that nobody has to wait for the end of the lease. Nothing depends on it.
    pub async fn release(&self, id: &str) {
        let request = self
            .update_head(id)
            .condition_expression("#owner = :owner")
            .update_expression("SET lease_until = :past")
            .expression_attribute_values(":past", n(0))
            .send();
        if !matches!(self.within(request).await, Ok(Ok(_))) {
            tracing::debug!("a conversation was not released; its lease will pass");
        }
    }

    /// Takes the lease; hands back the head. `None` if there is none, or an expired one.
    pub(super) async fn take(&self, id: &str) -> Result<Option<Item>, SaveError> {
        let now = self.now();
        let request = self
            .update_head(id)
            .condition_expression("expires_at > :now_s AND (lease_until < :free OR #owner = :owner)")
            .update_expression("SET #owner = :owner, held_by = :by, lease_until = :until, revision = revision + :one")
            .expression_attribute_values(":by", s(&self.by))
            .expression_attribute_values(":until", n(self.until().as_millis()))
            .expression_attribute_values(":free", n(now.as_millis().saturating_sub(millis(TAKE_OVER_MARGIN))))
            .expression_attribute_values(":now_s", n(now.as_secs()))
            .expression_attribute_values(":one", n(1))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(AllOld)
            .send();
        match self.within(request).await? {
            Ok(answer) => Ok(answer.attributes),
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(failed)) => match failed.item() {
                    Some(head) if number(head, "expires_at") > Some(now.as_secs()) => Err(held(head)),
                    _ => Ok(None),
                },
                _ => Err(unavailable(error)),
            },
        }
    }

    /// An update of the head, whose expressions may name the owner.
    fn update_head(&self, id: &str) -> UpdateItemFluentBuilder {
        let update = self.table.client.update_item().table_name(&self.table.table).set_key(Some(key(id, 0)));
        update.expression_attribute_names("#owner", "owner").expression_attribute_values(":owner", s(&self.owner))
    }

    /// The parts of the messages. Nobody else writes to them: the lease is ours.
    pub(super) async fn parts(&self, id: &str, messages: usize) -> Result<Vec<Part>, SaveError> {
        let (mut parts, mut from) = (Vec::new(), None);
        let (first, last) = steps(messages);
        loop {
            let request = self
                .table
                .client
                .query()
                .table_name(&self.table.table)
                .consistent_read(true)
                .key_condition_expression("conversation = :id AND step BETWEEN :first AND :last")
                .expression_attribute_values(":id", s(id))
                .expression_attribute_values(":first", n(first))
                .expression_attribute_values(":last", n(last))
                .set_exclusive_start_key(from)
                .send();
            let page = self.within(request).await?.map_err(unavailable)?;
            parts.extend(page.items().iter().filter_map(part_of));
            from = page.last_evaluated_key;
            if from.is_none() {
                return Ok(parts);
            }
        }
    }

    pub(super) async fn write(
        &self,
        id: &str,
        head: &Head,
        split: &Split,
        after: Option<Revision>,
    ) -> Result<Written, SaveError> {
        let messages = split.new.iter().map(|part| {
            let item = [("message", s(&part.text)), ("expires_at", n(head.expires_at.as_secs_up()))];
            Put::builder().table_name(&self.table.table).set_item(Some(with(key(id, part.step), item))).build()
        });
        let puts = std::iter::once(self.put_head(id, head, after).build()).chain(messages);
        let items = puts.map(|put| put.map(|put| TransactWriteItem::builder().put(put).build()));
        let items = items.collect::<Result<Vec<_>, _>>().map_err(|error| SaveError::Unavailable(error.into()))?;
        let request = self.table.client.transact_write_items().set_transact_items(Some(items)).send();
        match self.within(request).await? {
            Ok(_) => Ok(Written::Done),
            Err(error) => self.refused(error, head),
        }
    }

    fn put_head(&self, id: &str, head: &Head, after: Option<Revision>) -> PutBuilder {
        let item = [
            ("state", s(&head.state)),
            ("messages", s(serde_json::to_string(&head.kept).unwrap_or_default())), // it has no odd keys
            ("revision", n(head.revision)),
            ("owner", s(&self.owner)),
            ("held_by", s(&self.by)),
            ("request", s(head.requests.join(" "))),
            ("lease_until", n(self.until().as_millis())),
            ("expires_at", n(head.expires_at.as_secs_up())),
            ("version", n(1)),
        ];
        let put = Put::builder()
            .table_name(&self.table.table)
            .set_item(Some(with(key(id, 0), item)))
            .return_values_on_condition_check_failure(AllOld);
        match after {
            None => put
                .condition_expression("attribute_not_exists(conversation) OR expires_at <= :now")
                .expression_attribute_values(":now", n(self.now().as_secs())),
            Some(Revision(revision)) => put
                .condition_expression("#owner = :owner AND revision = :revision")
                .expression_attribute_names("#owner", "owner")
                .expression_attribute_values(":owner", s(&self.owner))
                .expression_attribute_values(":revision", n(revision)),
        }
    }

    /// What a refused transaction means. A head that is ours and of this very revision was written by our own first try,
    /// whose answer was lost.
    fn refused(
        &self,
        error: SdkError<TransactWriteItemsError, HttpResponse>,
        wanted: &Head,
    ) -> Result<Written, SaveError> {
        let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) = error.as_service_error() else {
            return Err(unavailable(error));
        };
        let reasons = cancelled.cancellation_reasons();
        let is = |code: &str| reasons.iter().find(|reason| reason.code() == Some(code));
        if let Some(reason) = is("ConditionalCheckFailed") {
            let item = reason.item();
            let is_ours = item.and_then(|item| item.get("owner")?.as_s().ok()) == Some(&self.owner);
            let is_this = item.and_then(Head::read).is_some_and(|head| head.revision == wanted.revision);
            return Ok(if is_ours && is_this { Written::Done } else { Written::Superseded });
        }
        if is("TransactionConflict").is_some() { Ok(Written::Conflict) } else { Err(unavailable(error)) }
    }

    /// One request, given up when its time is up. Boxed, because the SDK's futures are large.
    async fn within<T, E>(
        &self,
        request: impl Future<Output = Result<T, E>> + Send,
    ) -> Result<Result<T, E>, SaveError> {
        let late = |error: tokio::time::error::Elapsed| SaveError::Unavailable(error.into());
        timeout(self.deadline.time_to_settle(), Box::pin(request)).await.map_err(late)
    }
}

/// The table did not take the request.
fn unavailable<E>(error: SdkError<E, HttpResponse>) -> SaveError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    SaveError::Unavailable(Named::from_sdk(error).into())
}

/// Who has the conversation, and until when nobody may follow.
fn held(head: &Item) -> SaveError {
    let by = head.get("held_by").and_then(|by| by.as_s().ok()).map_or(NOBODY, String::as_str);
    let lease = Timestamp::from_millis(number(head, "lease_until").unwrap_or_default());
    SaveError::Held { by: by.to_owned(), until: lease.plus(TAKE_OVER_MARGIN) }
}

/// How a save ended.
pub(super) enum Written {
    Done,
    Superseded,
    Conflict,
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
