//! What a tool's author promises about it.

use std::{borrow::Cow, fmt, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::outcome::NOTHING;

/// The author's answer to "what if this ran twice?".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing changes, however often it runs. No record is kept.
    ReadOnly,
    /// The system behind dedupes by the key that [`CallContext::idempotency_key`](super::CallContext::idempotency_key)
    /// hands over, or the write is naturally repeatable. After a timeout it is run again with the same key.
    Keyed,
    /// The effect is the set of DynamoDB writes in [`Success::writes`](super::Success::writes). They commit in one
    /// transaction with the record, so that nothing happened or all of it did.
    Atomic,
    /// Must never run twice. After a timeout or a crash its outcome is not known, and it is not run again.
    #[default]
    Once,
}

impl Effect {
    /// Every effect.
    pub const ALL: [Self; 4] = [Self::ReadOnly, Self::Keyed, Self::Atomic, Self::Once];

    /// The name in records, logs, metrics and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::Keyed => "keyed",
            Self::Atomic => "atomic",
            Self::Once => "once",
        }
    }
}

/// Among whom a key makes two calls the same action. Two tenants never share one, whatever the scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// The session or conversation where the door has one, else the caller's identity, else the whole deployment.
    #[default]
    Conversation,
    /// The whole deployment: a refund's key is the order, whoever asks.
    Deployment,
}

/// The sentences that end a failure of this tool. Shape: one sentence each, with its full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wording {
    /// When nothing was changed, for example `No refund was made.`
    pub nothing: Cow<'static, str>,
    /// When it is not known, and how to find out, for example
    /// `The e-mail may have been sent. Ask the recipient before you send it again.`
    pub unknown: Cow<'static, str>,
}

impl Default for Wording {
    fn default() -> Self {
        Self {
            nothing: Cow::Borrowed(NOTHING),
            unknown: Cow::Borrowed(
                "It is not known whether it was done. Find out before you do anything that depends on it.",
            ),
        }
    }
}

type KeyOf<A> = Box<dyn Fn(&A) -> Value + Send + Sync>;
type Test<A> = Box<dyn Fn(&A) -> bool + Send + Sync>;

/// What the pipeline needs to know about a tool, beyond its code.
///
/// | what | default |
/// | --- | --- |
/// | timeout of one attempt | 5 s, cut to the time left |
/// | window in which an equal call is the same action | 24 h |
/// | key | all arguments |
/// | scope of the key | [`Scope::Conversation`] |
/// | approval | never |
pub struct Policy<A> {
    pub(super) effect: Effect,
    pub(super) timeout: Duration,
    pub(super) window: Duration,
    pub(super) version: u32,
    pub(super) scope: Scope,
    pub(super) wording: Wording,
    pub(super) key: Option<KeyOf<A>>,
    pub(super) approval: Option<Test<A>>,
}

impl<A> Policy<A> {
    /// The timeout of one attempt where the tool sets none.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);
    /// How long an equal call is the same action where the tool sets nothing else.
    pub const DEFAULT_WINDOW: Duration = Duration::from_hours(24);

    /// A policy with the defaults of the table above.
    pub fn new(effect: Effect) -> Self {
        Self {
            effect,
            timeout: Self::DEFAULT_TIMEOUT,
            window: Self::DEFAULT_WINDOW,
            version: 1,
            scope: Scope::default(),
            wording: Wording::default(),
            key: None,
            approval: None,
        }
    }

    /// How long one attempt may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How long an equal call counts as the same action and gets the stored result.
    #[must_use]
    pub fn window(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    /// Which arguments make two calls the same action. Two calls with this key and other arguments are refused as
    /// `key_reused`. The value must not be null, nor hold a null: such a call is refused as our fault.
    #[must_use]
    pub fn key(mut self, key: impl Fn(&A) -> Value + Send + Sync + 'static) -> Self {
        self.key = Some(Box::new(key));
        self
    }

    /// Change this number when the meaning of the key changes; earlier records are then no longer found. Default 1.
    #[must_use]
    pub fn key_version(mut self, version: u32) -> Self {
        self.version = version;
        self
    }

    /// Among whom the key makes two calls the same action.
    #[must_use]
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Which calls a person has to approve first.
    #[must_use]
    pub fn approve_when(mut self, test: impl Fn(&A) -> bool + Send + Sync + 'static) -> Self {
        self.approval = Some(Box::new(test));
        self
    }

    /// The last sentence of a failure after which nothing was changed, for example `No refund was made.`
    #[must_use]
    pub fn when_nothing_changed(mut self, sentence: impl Into<Cow<'static, str>>) -> Self {
        self.wording.nothing = sentence.into();
        self
    }

    /// The last sentence of a failure after which it is not known whether anything was changed: it says so, and how to find
    /// out.
    #[must_use]
    pub fn when_unknown(mut self, sentence: impl Into<Cow<'static, str>>) -> Self {
        self.wording.unknown = sentence.into();
        self
    }
}

impl<A> fmt::Debug for Policy<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("effect", &self.effect)
            .field("timeout", &self.timeout)
            .field("window", &self.window)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}
