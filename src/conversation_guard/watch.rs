//! One invocation of a conversation: its counts are read, calls are stopped, and what came of the others is counted.

use std::time::Duration;

use serde_json::Value;

use super::{
    ConversationLimits,
    counts::{Counts, Failures, Tally},
    item::{add_calls, replace_failures},
};
use crate::{
    call::{Call, Deadline},
    door::{Memory, Request},
    idempotency::{Store, StoreError, digest_of},
    outcome::Outcome,
    tool::{Caller, Toolbox},
};

/// How long one request for the counts may take: they are not worth a longer wait.
const TIME: Duration = Duration::from_secs(1);
/// How long the counts of a conversation are kept after its last call.
const KEPT: Duration = Duration::from_hours(24);

/// The counts of the conversation while its calls run.
pub(crate) struct Watch<'a> {
    limits: &'a ConversationLimits,
    store: &'a Store,
    place: Place,
    counts: Counts,
    /// Of each call, in their order, unless it was stopped.
    tallies: Vec<Option<Tally>>,
}

/// Where the counts are to be kept.
enum Place {
    Answer(fn(&mut Value, &str)),
    Item { pk: String, failures: Option<String> },
}

impl<'a> Watch<'a> {
    /// Reads the counts and stops the calls that must not run: each gets its objection. `None` where nothing is counted: no
    /// limit, no conversation, or a table that does not answer. A limit is there against loops and protects nothing, so
    /// that a call need not wait for it.
    pub(crate) async fn begin(
        limits: &'a ConversationLimits,
        request: &mut Request,
        toolbox: &Toolbox,
        store: &'a Store,
        deadline: &Deadline,
    ) -> Option<Self> {
        let calls = &mut request.calls;
        if limits.are_off() || calls.is_empty() {
            return None;
        }
        let (mut counts, place) = match &request.memory {
            Memory::None => return None,
            Memory::Answer { came, keep } => (Counts::read(came), Place::Answer(*keep)),
            Memory::Table => read(store, calls, deadline).await?,
        };
        let now = store.now();
        let mut beside = Vec::new();
        let mut admit = |call: &mut Call| {
            let tally = Tally::of(call, toolbox.get(&call.tool).is_some());
            let stop = counts.admit(limits, &tally, &beside, now);
            let is_stopped = stop.is_some();
            call.objection = call.objection.take().or(stop);
            // What is refused anyway does not run.
            beside.extend(Some(&tally).filter(|_| call.objection.is_none()).cloned());
            (!is_stopped).then_some(tally)
        };
        let tallies = calls.iter_mut().map(&mut admit).collect();
        Some(Self { limits, store, place, counts, tallies })
    }

    /// Counts how the calls have ended, and keeps the counts in the answer or in the table.
    pub(crate) async fn end(mut self, outcomes: &[Outcome], deadline: &Deadline) -> Keep {
        let (before, now) = (self.counts.failures.clone(), self.store.now());
        for (tally, outcome) in self.tallies.iter().zip(outcomes) {
            if let Some(tally) = tally {
                self.counts.note(self.limits, tally, outcome, now);
            }
        }
        match self.place {
            Place::Answer(keep) => Some((keep, self.counts.write())),
            Place::Item { .. } if before == self.counts.failures => None,
            Place::Item { pk, failures } => {
                let (new, time) = (self.counts.failures.write(), deadline.time_to_settle().min(TIME));
                warned(replace_failures(self.store, &pk, failures.as_deref(), &new, time).await);
                None
            }
        }
    }
}

/// How counts get into the answer, and the counts; nothing where they are not kept there.
pub(crate) type Keep = Option<(fn(&mut Value, &str), String)>;

/// The counts in the table, with these calls added. The calls' own are taken off again: they are admitted one by one.
async fn read(store: &Store, calls: &[Call], deadline: &Deadline) -> Option<(Counts, Place)> {
    let (pk, added) = (item_of(&calls.first()?.caller)?, u32::try_from(calls.len()).unwrap_or(u32::MAX));
    let (total, failures) = warned(add_calls(store, &pk, added, KEPT, deadline.time_left().min(TIME)).await)?;
    let counts = Counts {
        calls: total.saturating_sub(added),
        failures: failures.as_deref().map(Failures::read).unwrap_or_default(),
    };
    Some((counts, Place::Item { pk, failures }))
}

/// The key of the conversation's item. An action's key begins with a tool's name, and none has a colon in it.
fn item_of(caller: &Caller) -> Option<String> {
    let (tenant, conversation) = (caller.tenant().unwrap_or_default(), caller.conversation()?);
    Some(format!("conversation:{}", digest_of([tenant.as_bytes(), conversation.as_bytes()])))
}

fn warned<T>(answer: Result<T, StoreError>) -> Option<T> {
    let warn = |error: &StoreError| {
        tracing::warn!(kind = ?error.kind, fault = error.cause(), "the limits of the conversation are not kept");
    };
    answer.inspect_err(warn).ok()
}
