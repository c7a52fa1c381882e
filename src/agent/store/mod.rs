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
//! is told by whom it is driven, and until when at the latest. A driver that has died is followed when its lease has passed, with the margin
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
//!
//! | file | its one idea |
//! | --- | --- |
//! | `kept` | a run in parts, and together again; pure |
//! | `item` | the items, as DynamoDB has them |
//! | `requests` | the requests, and what their answers mean |

mod item;
mod kept;
mod requests;

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use aws_sdk_dynamodb::Client;
use futures_util::future::BoxFuture;

use self::{
    item::Head,
    kept::{Kept, join, split},
    requests::Written,
};
use super::{
    drive::{Conversations, Revision, SaveError},
    run::AgentRun,
};
use crate::{
    call::Deadline,
    clock::{Clock, Timestamp},
    tool::{Effect, Entry, Toolbox},
};

/// The requests that a conversation remembers. Lambda repeats one for hours; a person says less in that time.
const REMEMBERED: usize = 50;
/// Who has a lease that tells no name.
const NOBODY: &str = "one without a name";
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

    /// One driver's hold until this deadline, for the one conversation that it loads or saves.
    pub fn lease(&self, deadline: Deadline) -> Lease {
        let owner = format!("{:016x}", rand::random::<u64>());
        let (request, by) = (String::new(), String::from(NOBODY));
        Lease { table: self.clone(), owner, request, by, deadline, held: Mutex::default() }
    }
}

/// What one driver holds. Made anew for each invocation.
#[derive(Debug)]
pub struct Lease {
    table: ConversationTable,
    owner: String,
    request: String,
    by: String,
    deadline: Deadline,
    held: Mutex<Held>,
}

/// What is known to be in the table.
#[derive(Clone, Debug, Default)]
struct Held {
    expires_at: Option<Timestamp>,
    kept: Vec<Kept>,
    requests: Vec<String>,
}

impl Conversations for Lease {
    fn load<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<(AgentRun, Revision)>, SaveError>> {
        Box::pin(async move {
            let Some(head) = self.take(id).await? else { return Ok(None) };
            let head = Head::read(&head).ok_or(SaveError::Unreadable)?;
            let parts = self.parts(id, head.kept.len()).await?;
            let run = join(&head.state, &head.kept, parts)?;
            self.hold(Held { expires_at: Some(head.expires_at), kept: head.kept, requests: head.requests });
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
                requests: self.with_ours(if after.is_some() { before.requests } else { Vec::new() }),
                expires_at,
            };
            for tried in 1..=TRIES {
                match self.write(id, &head, &split, after).await? {
                    Written::Done => {
                        self.hold(Held { expires_at: Some(expires_at), kept: split.kept, requests: head.requests });
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

    /// The same under a name, which is told to those who find the conversation driven.
    #[must_use]
    pub fn held_by(self, name: &str) -> Self {
        Self { by: if name.is_empty() { self.by } else { name.to_owned() }, ..self }
    }

    /// Whether what was loaded was saved by this very request before. Lambda repeats an asynchronous invocation that failed,
    /// with the same id: its message is in the conversation already, and others may have followed it.
    pub fn is_repeated(&self) -> bool {
        !self.request.is_empty() && self.held().requests.contains(&self.request)
    }

    /// The requests with this one at the end; the oldest go.
    fn with_ours(&self, mut requests: Vec<String>) -> Vec<String> {
        requests.retain(|request| *request != self.request);
        requests.extend(Some(self.request.clone()).filter(|request| !request.is_empty()));
        requests.drain(..requests.len().saturating_sub(REMEMBERED));
        requests
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
}
