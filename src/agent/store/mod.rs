//! Conversations in DynamoDB: so that a driver that dies is followed by another, and never joined by one.
//!
//! | item | key | holds |
//! | --- | --- | --- |
//! | head | `conversation`, `step` 0 | the run without its messages, the list of them, who drives it and until when, the revision |
//! | message | `conversation`, `step` 100, 200, … | one message as JSON; a long one goes on in 101, 102, … |
//!
//! **Why an item for each message?** A conversation only grows at its end. As one item it would be written whole three times
//! a step, the cost growing by the square, and it would end at DynamoDB's 400 KB, which a few tool results reach. So a save
//! writes the head and the messages that are new, in one transaction: all or nothing, and on condition that the head is as
//! this driver left it. Two drivers cannot both save.
//!
//! **Why a lease?** The condition alone would let a second driver ask the model, and pay, before it loses. So `load` takes
//! the lease of the conversation for the time of the invocation, by one conditional update; while it lasts, any other driver
//! is told that the conversation is driven. A driver that has died is followed when its lease has passed, with the margin
//! that the idempotency records have; one that was only thought dead fails at its next save, because the owner has changed.
//!
//! **How long?** All items of a conversation expire together, a fixed time after its beginning. That time must not be longer
//! than the tools' records are kept ([`ConversationTable::fault`]): a turn that was resumed later would run a call again whose
//! record is gone.
//!
//! | step | request | condition |
//! | --- | --- | --- |
//! | load | `UpdateItem` of the head, `Query` of the messages | not leased, not expired |
//! | save | `TransactWriteItems`: head and new messages | no head, or an expired one; later: our owner and revision |
//! | release | `UpdateItem` of the head | our owner |

mod kept;

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use aws_sdk_dynamodb::{
    Client,
    config::http::HttpResponse,
    error::SdkError,
    operation::{transact_write_items::TransactWriteItemsError, update_item::UpdateItemError},
    types::{
        AttributeValue, Put, ReturnValue, ReturnValuesOnConditionCheckFailure::AllOld, TransactWriteItem,
        builders::PutBuilder,
    },
};
use futures_util::future::BoxFuture;
use tokio::time::timeout;

use self::kept::{Kept, Part, Split, join, split, steps};
use super::{
    drive::{Conversations, Revision, SaveError},
    run::AgentRun,
};
use crate::{
    call::Deadline,
    clock::{Clock, Timestamp},
    idempotency::TAKE_OVER_MARGIN,
    tool::{Effect, Entry, Toolbox},
};

type Item = HashMap<String, AttributeValue>;

/// Tries of a save that meets another transaction at the same items.
const TRIES: u32 = 3;

/// The table of conversations. One for the life of the process.
#[derive(Clone, Debug)]
pub struct ConversationTable {
    client: Client,
    table: String,
    clock: Clock,
    keep: Duration,
}

impl ConversationTable {
    /// A table with the keys `conversation` (text) and `step` (number), in which conversations are kept for so long.
    pub fn new(client: Client, table: impl Into<String>, clock: Clock, keep: Duration) -> Self {
        Self { client, table: table.into(), clock, keep }
    }

    /// Why conversations must not be kept for so long: a sentence.
    pub fn fault(keep: Duration, toolbox: &Toolbox) -> Option<String> {
        let tools = toolbox.iter().map(Entry::definition).filter(|tool| tool.effect != Effect::ReadOnly);
        let first = tools.min_by_key(|tool| tool.window)?;
        (keep > first.window).then(|| {
            format!(
                "CONVERSATION_HOURS is {}, but the records of {} are kept for {} hours: a turn that is resumed later could \
                 run its calls again.",
                keep.as_secs() / 3600,
                first.name,
                first.window.as_secs() / 3600
            )
        })
    }

    /// One driver's hold, for one conversation and until this deadline.
    pub fn lease(&self, deadline: Deadline) -> Lease {
        let owner = format!("{:016x}", rand::random::<u64>());
        Lease { table: self.clone(), owner, request: String::new(), deadline, held: Mutex::default() }
    }
}

/// What one driver holds. Made anew for each invocation.
#[derive(Debug)]
pub struct Lease {
    table: ConversationTable,
    owner: String,
    request: String,
    deadline: Deadline,
    held: Mutex<Held>,
}

/// What is known to be in the table.
#[derive(Clone, Debug, Default)]
struct Held {
    expires_at: Option<Timestamp>,
    kept: Vec<Kept>,
    request: String,
}

impl Conversations for Lease {
    fn load<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<(AgentRun, Revision)>, SaveError>> {
        Box::pin(async move {
            let Some(head) = self.take(id).await? else { return Ok(None) };
            let head = Head::read(&head).ok_or(SaveError::Unreadable)?;
            let parts = self.parts(id, head.kept.len()).await?;
            let run = join(&head.state, &head.kept, parts)?;
            self.hold(Held { expires_at: Some(head.expires_at), kept: head.kept, request: head.request });
            Ok(Some((run, Revision(head.revision))))
        })
    }

    fn save<'a>(
        &'a self,
        id: &'a str,
        run: &'a AgentRun,
        after: Option<Revision>,
    ) -> BoxFuture<'a, Result<Revision, SaveError>> {
        Box::pin(async move {
            let before = self.held();
            let split = split(run, if after.is_some() { &before.kept } else { &[] })?;
            let expires_at = before.expires_at.filter(|_| after.is_some()).unwrap_or(self.now().plus(self.table.keep));
            let revision = Revision(after.map_or(1, |Revision(number)| number + 1));
            let head = Head {
                state: split.state.clone(),
                kept: split.kept.clone(),
                revision: revision.0,
                request: self.request.clone(),
                expires_at,
            };
            for tried in 1..=TRIES {
                match self.write(id, &head, &split, after).await? {
                    Written::Done => {
                        self.hold(Held {
                            expires_at: Some(expires_at),
                            kept: split.kept,
                            request: self.request.clone(),
                        });
                        return Ok(revision);
                    }
                    Written::Superseded => return Err(SaveError::Superseded),
                    Written::Conflict => tokio::time::sleep(Duration::from_millis(50) * tried).await,
                }
            }
            Err(SaveError::Unavailable("another transaction was at the same items".into()))
        })
    }
}

impl Lease {
    /// The same for the request of this id, which the host may repeat.
    #[must_use]
    pub fn for_request(self, id: impl Into<String>) -> Self {
        Self { request: id.into(), ..self }
    }

    /// Whether what was loaded was saved last by this very request. Lambda repeats an asynchronous invocation that failed,
    /// with the same id: its message is in the conversation already.
    pub fn is_repeated(&self) -> bool {
        !self.request.is_empty() && self.held().request == self.request
    }

    /// Lets go of the conversation, so that nobody has to wait for the end of the lease. Nothing depends on it.
    pub async fn release(&self, id: &str) {
        let request = self
            .table
            .client
            .update_item()
            .table_name(&self.table.table)
            .set_key(Some(key(id, 0)))
            .condition_expression("#owner = :owner")
            .update_expression("SET lease_until = :past")
            .expression_attribute_names("#owner", "owner")
            .expression_attribute_values(":owner", s(&self.owner))
            .expression_attribute_values(":past", n(0))
            .send();
        if !matches!(timeout(self.time(), Box::pin(request)).await, Ok(Ok(_))) {
            tracing::debug!("a conversation was not released; its lease will pass");
        }
    }

    /// Takes the lease; hands back the head. `None` if there is none, or an expired one.
    async fn take(&self, id: &str) -> Result<Option<Item>, SaveError> {
        let now = self.now();
        let request = self
            .table
            .client
            .update_item()
            .table_name(&self.table.table)
            .set_key(Some(key(id, 0)))
            .condition_expression("expires_at > :now_s AND (lease_until < :free OR #owner = :owner)")
            .update_expression("SET #owner = :owner, lease_until = :until, revision = revision + :one")
            .expression_attribute_names("#owner", "owner")
            .expression_attribute_values(":owner", s(&self.owner))
            .expression_attribute_values(":until", n(self.until().as_millis()))
            .expression_attribute_values(":free", n(now.as_millis().saturating_sub(millis(TAKE_OVER_MARGIN))))
            .expression_attribute_values(":now_s", n(now.as_millis() / 1000))
            .expression_attribute_values(":one", n(1))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(AllOld)
            .send();
        match self.within(request).await? {
            Ok(answer) => Ok(answer.attributes),
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(failed)) => match failed.item() {
                    Some(head) if number(head, "expires_at") > Some(now.as_millis() / 1000) => {
                        Err(SaveError::Superseded)
                    }
                    _ => Ok(None),
                },
                _ => Err(SaveError::Unavailable(error.into())),
            },
        }
    }

    /// The parts of the messages. Nobody else writes to them: the lease is ours.
    async fn parts(&self, id: &str, messages: usize) -> Result<Vec<Part>, SaveError> {
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
            let page = self.within(request).await?.map_err(|error| SaveError::Unavailable(error.into()))?;
            parts.extend(page.items().iter().filter_map(part_of));
            from = page.last_evaluated_key;
            if from.is_none() {
                return Ok(parts);
            }
        }
    }

    async fn write(&self, id: &str, head: &Head, split: &Split, after: Option<Revision>) -> Result<Written, SaveError> {
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
            ("request", s(&self.request)),
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
                .expression_attribute_values(":now", n(self.now().as_millis() / 1000)),
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
            return Err(SaveError::Unavailable(error.into()));
        };
        let reasons = cancelled.cancellation_reasons();
        let is = |code: &str| reasons.iter().find(|reason| reason.code() == Some(code));
        if let Some(reason) = is("ConditionalCheckFailed") {
            let item = reason.item();
            let is_ours = item.and_then(|item| item.get("owner")?.as_s().ok()) == Some(&self.owner);
            let is_this = item.and_then(Head::read).is_some_and(|head| head.revision == wanted.revision);
            return Ok(if is_ours && is_this { Written::Done } else { Written::Superseded });
        }
        if is("TransactionConflict").is_some() {
            Ok(Written::Conflict)
        } else {
            Err(SaveError::Unavailable(error.into()))
        }
    }

    fn held(&self) -> Held {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn hold(&self, held: Held) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = held;
    }

    fn now(&self) -> Timestamp {
        self.table.clock.now()
    }

    /// When this driver is surely dead.
    fn until(&self) -> Timestamp {
        self.now().plus(self.deadline.headroom())
    }

    /// The time for one request.
    fn time(&self) -> Duration {
        self.deadline.time_to_settle()
    }

    async fn within<T, E>(
        &self,
        request: impl Future<Output = Result<T, E>> + Send,
    ) -> Result<Result<T, E>, SaveError> {
        let late = |error: tokio::time::error::Elapsed| SaveError::Unavailable(error.into());
        timeout(self.time(), Box::pin(request)).await.map_err(late)
    }
}

/// How a save ended.
enum Written {
    Done,
    Superseded,
    Conflict,
}

/// The head, as read or as it is to be written.
struct Head {
    state: String,
    kept: Vec<Kept>,
    revision: u64,
    request: String,
    expires_at: Timestamp,
}

impl Head {
    /// `None` if the item is not what this version writes.
    fn read(item: &Item) -> Option<Self> {
        let text = |name: &str| item.get(name)?.as_s().ok();
        Some(Self {
            state: text("state")?.clone(),
            kept: serde_json::from_str(text("messages")?).ok()?,
            revision: number(item, "revision")?,
            request: text("request")?.clone(),
            expires_at: Timestamp::from_secs(number(item, "expires_at")?),
        })
    }
}

fn part_of(item: &Item) -> Option<Part> {
    let step = usize::try_from(number(item, "step")?).ok()?;
    Some(Part { step, text: item.get("message")?.as_s().ok()?.clone() })
}

fn number(item: &Item, name: &str) -> Option<u64> {
    item.get(name)?.as_n().ok()?.parse().ok()
}

fn key(id: &str, step: usize) -> Item {
    HashMap::from([(String::from("conversation"), s(id)), (String::from("step"), n(step))])
}

fn with<const N: usize>(mut item: Item, attributes: [(&str, AttributeValue); N]) -> Item {
    item.extend(attributes.map(|(name, value)| (name.to_owned(), value)));
    item
}

fn s(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

fn n(number: impl std::fmt::Display) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
