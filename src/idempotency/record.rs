//! The DynamoDB item that holds a key's state.

use std::{collections::HashMap, fmt};

use aws_sdk_dynamodb::types::AttributeValue;

use crate::{clock::Timestamp, tool::Effect};

pub(super) type Item = HashMap<String, AttributeValue>;

/// The largest result, in bytes of JSON, that a record keeps. DynamoDB's limit for an item is 400 KB; the rest is for
/// the other attributes and for text whose UTF-8 is longer than its JSON.
pub(super) const RESULT_LIMIT: usize = 350_000;

/// Where a key's action stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Somebody is at it, or was when it died.
    Started,
    /// It is done, and the result is known.
    Completed,
    /// It may have been done; nobody knows.
    Unknown,
    /// A person has to approve it. Nothing has been done, unless [`Record::maybe_done`] says otherwise.
    AwaitingApproval,
    /// A person has approved it, and it has not been begun since.
    Approved,
    /// A person has refused it.
    Denied,
}

impl State {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Completed => "completed",
            Self::Unknown => "unknown",
            Self::AwaitingApproval => "awaiting_approval",
            Self::Approved => "approved",
            Self::Denied => "denied",
        }
    }

    /// Every state.
    pub const ALL: [Self; 6] =
        [Self::Started, Self::Completed, Self::Unknown, Self::AwaitingApproval, Self::Approved, Self::Denied];

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// What a completed record keeps of the result.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Stored {
    /// The whole result, as JSON text.
    Json(String),
    /// The result was too large to keep: its size in bytes.
    Omitted(usize),
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(json) => write!(f, "Json({} bytes)", json.len()), // a result is the caller's own
            Self::Omitted(size) => write!(f, "Omitted({size})"),
        }
    }
}

impl Stored {
    /// What a record can keep of this JSON text.
    pub fn of(json: String) -> Self {
        if json.len() > RESULT_LIMIT { Self::Omitted(json.len()) } else { Self::Json(json) }
    }
}

/// A person's decision on a call, as its record keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decided {
    /// Who has decided.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

impl Decided {
    /// The attributes that keep it, and their values.
    pub(super) fn attributes(&self) -> [(&'static str, AttributeValue); 2] {
        [("decided_by", s(&self.by)), ("decided_at", n(self.at.as_millis()))]
    }
}

/// A record, as read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// Where the action stands.
    pub state: State,
    /// The one execution that may write to the record.
    pub owner: String,
    /// How often the record has changed hands, from 1. Together with `owner` it fences every write.
    pub attempt: u32,
    /// The digest of all arguments.
    pub args_hash: String,
    /// The effect that the tool had in the version that began it. `None` in records from before this was kept.
    pub effect: Option<Effect>,
    /// The result, if completed.
    pub result: Option<Stored>,
    /// When the holder's time is up.
    pub lease_until: Timestamp,
    /// Until when the approval counts that the holder has used.
    pub approved_until: Option<Timestamp>,
    /// Who has decided on it, if a person has. It stands there until the record ends.
    pub decided: Option<Decided>,
    /// Whether an attempt before the approval was asked for may have had its effect.
    pub maybe_done: bool,
    /// When the record no longer counts, whether or not DynamoDB has deleted it.
    pub expires_at: Timestamp,
}

impl Record {
    /// The effect under which it was begun. Where the record does not say, it is that of whoever meets it.
    pub fn begun_as(&self, effect: Effect) -> Effect {
        self.effect.unwrap_or(effect)
    }

    /// The effect that the record keeps when an execution of this effect takes it over. Where the version before may have
    /// had another effect, nobody may repeat it from here on: what is done twice by two ways is done twice.
    pub fn taken_over_as(&self, effect: Effect) -> Effect {
        let begun_as = self.begun_as(effect);
        let surely_nothing = match self.state {
            State::Started => begun_as == Effect::Atomic,
            State::Approved => !self.maybe_done,
            _ => false,
        };
        if begun_as == effect || surely_nothing { effect } else { Effect::Once }
    }

    /// Whether those who had it before may have had the effect, as far as whoever takes it over with this one can tell.
    ///
    /// An atomic effect of the old holder can no longer commit, and one that happens once is taken over only if surely
    /// nothing was done. A record that waited for a person keeps what was in doubt before.
    pub fn may_be_done(&self, effect: Effect) -> bool {
        self.maybe_done || self.state == State::Started && self.begun_as(effect) == Effect::Keyed
    }

    /// Whether it keeps a commit out that may be on its way still: that of the execution which has left it behind, or put it
    /// there after a commit without an answer. Whoever takes it over must leave a record.
    pub fn bars(&self) -> bool {
        self.state == State::Started && self.effect == Some(Effect::Atomic)
    }

    /// Until when the approval counts with which it is taken over now, if a person has given one. Whoever has left the record
    /// behind may have used it; if surely nothing was done, it counts no longer than if it had not been touched.
    pub fn approval(&self, effect: Effect, now: Timestamp) -> Option<Timestamp> {
        match self.state {
            State::Approved => Some(self.expires_at),
            _ => self.approved_until.filter(|until| now < *until || self.may_be_done(effect)),
        }
    }

    /// Reads an item. `None` if it is no record of ours: somebody else's item, or a later version's.
    pub(super) fn from_item(item: &Item) -> Option<Self> {
        let text = |name: &str| item.get(name)?.as_s().ok().cloned();
        let number = |name: &str| item.get(name)?.as_n().ok()?.parse::<u64>().ok();
        let omitted = || number("result_omitted").and_then(|size| usize::try_from(size).ok()).map(Stored::Omitted);
        Some(Self {
            state: State::from_name(&text("state")?)?,
            owner: text("owner")?,
            attempt: u32::try_from(number("attempt")?).ok()?,
            args_hash: text("args_hash")?,
            effect: text("effect").as_deref().and_then(effect_of),
            result: text("result").map(Stored::Json).or_else(omitted),
            lease_until: Timestamp::from_millis(number("lease_until")?),
            approved_until: number("approved_until").map(Timestamp::from_secs),
            decided: text("decided_by")
                .zip(number("decided_at").map(Timestamp::from_millis))
                .map(|(by, at)| Decided { by, at }),
            maybe_done: item.get("maybe_done").is_some_and(|value| value == &AttributeValue::Bool(true)),
            expires_at: Timestamp::from_secs(number("expires_at")?),
        })
    }
}

/// The effect of this name.
pub(super) fn effect_of(name: &str) -> Option<Effect> {
    Effect::ALL.into_iter().find(|effect| effect.name() == name)
}

pub(crate) fn s(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

pub(crate) fn n(number: impl std::fmt::Display) -> AttributeValue {
    AttributeValue::N(format!("{number}"))
}

/// The attribute that keeps a result, and its value.
pub(super) fn result_attribute(result: &Stored) -> (&'static str, AttributeValue) {
    match result {
        Stored::Json(json) => ("result", s(json)),
        Stored::Omitted(size) => ("result_omitted", n(size)),
    }
}
