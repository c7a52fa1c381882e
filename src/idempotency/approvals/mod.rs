//! The person's side of approval: what waits, and the decision on it.
//!
//! A call that needs approval leaves a record in the state `awaiting_approval`, with its arguments. A person decides on
//! that very record, out of band: nothing that reaches a door can. What is listed has an id ([`ApprovalId`]) that binds the
//! key, the arguments and the doubt that were shown; a decision takes that whole id, and counts only while the record is the
//! one that was shown. So nobody approves what nobody has seen.
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

mod decision;
mod id;
mod list;

use std::{fmt, time::Duration};

use aws_sdk_dynamodb::types::AttributeValue;
use serde::Serialize;

pub use self::{
    decision::{APPROVED_FOR, ApprovalError, Verdict},
    id::{ApprovalId, NoApprovalId},
    list::{ListError, WAITING, Waiting},
};
use super::{
    asking::AskedBy,
    record::{Item, State, effect_of, s},
};
use crate::{clock::Timestamp, readable, tool::Effect};

/// How long one request to the table may take.
const TIME: Duration = Duration::from_secs(10);

/// A call that waits for a person.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct Pending {
    /// What a decision on it takes, whole: it stands for the key, the arguments and the doubt that are shown here.
    pub id: String,
    /// The record's key: `refund_order#4f1c…`. It is the beginning of the id, which is the one text to copy.
    #[serde(skip)]
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
    /// Who has asked for it first.
    pub asked_by: AskedBy,
    /// When it was asked for.
    pub asked_at: Timestamp,
    /// When it stops waiting.
    pub expires_at: Timestamp,
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
            id: format!("{tool}#1.2"),
            key: format!("{tool}#1"),
            tool: tool.to_owned(),
            arguments: String::from("{}"),
            maybe_done,
            effect: Some(effect),
            asked_by: AskedBy::default(),
            asked_at: Timestamp::from_millis(1_796_032_101_500),
            expires_at: Timestamp::from_secs(1_796_035_701),
            args_hash: String::new(),
        }
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("key", &self.key).finish_non_exhaustive() // the arguments are for the person only
    }
}

/// The call of an item that waits at this time.
fn waiting_at(item: &Item, now: Timestamp) -> Option<Pending> {
    let waits = item.get("state") == Some(&s(State::AwaitingApproval.name()));
    pending_of(item).filter(|call| waits && call.expires_at > Timestamp::from_secs(now.as_secs()))
}

fn pending_of(item: &Item) -> Option<Pending> {
    let text = |name: &str| item.get(name)?.as_s().ok().cloned();
    let number = |name: &str| item.get(name)?.as_n().ok()?.parse::<u64>().ok();
    let (key, args_hash) = (text("pk")?, text("args_hash")?);
    let maybe_done = item.get("maybe_done") == Some(&AttributeValue::Bool(true));
    Some(Pending {
        id: ApprovalId::new(&key, &args_hash, maybe_done).to_string(),
        key,
        tool: text("tool")?,
        arguments: readable::text(&text("arguments")?).into_owned(),
        maybe_done,
        effect: text("effect").as_deref().and_then(effect_of),
        asked_by: AskedBy::from_item(item),
        asked_at: Timestamp::from_millis(number("started_at")?),
        expires_at: Timestamp::from_secs(number("expires_at")?),
        args_hash,
    })
}
