//! What a tool is told about the call it serves.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::Caller;

/// One attempt's surroundings.
#[derive(Clone, Debug)]
pub struct CallContext {
    pub(crate) idempotency_key: Option<String>,
    pub(crate) attempt: u32,
    pub(crate) ends: Instant,
    pub(crate) began: SystemTime,
    pub(crate) caller: Caller,
    pub(crate) call_id: Option<String>,
    pub(crate) approved: bool,
}

impl CallContext {
    /// The first attempt of a call by nobody in particular: what the test of a tool hands to it.
    pub fn first(idempotency_key: Option<&str>, time_left: Duration) -> Self {
        Self {
            idempotency_key: idempotency_key.map(String::from),
            attempt: 1,
            ends: Instant::now() + time_left,
            began: SystemTime::now(),
            caller: Caller::default(),
            call_id: None,
            approved: false,
        }
    }

    /// The same for this caller: what the test of a tool sets that looks at it.
    #[must_use]
    pub fn by(self, caller: Caller) -> Self {
        Self { caller, ..self }
    }

    /// The key of this action, for a system that dedupes by one: 64 hexadecimal digits, the same for every attempt and
    /// every equal call. Made by us, never by the model. `None` for a [`ReadOnly`](super::Effect::ReadOnly) tool.
    pub fn idempotency_key(&self) -> Option<&str> {
        self.idempotency_key.as_deref()
    }

    /// The number of this attempt within the call, from 1.
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The time of day at which the call began: the same for each of its attempts, unlike the clock, so that what is made of
    /// it comes out the same.
    pub const fn began(&self) -> SystemTime {
        self.began
    }

    /// The time until a moment before this attempt is dropped. Set a client's timeout to it: what the client then says, that
    /// it has retried already or that nothing was sent, still counts.
    pub fn time_left(&self) -> Duration {
        self.ends.saturating_duration_since(Instant::now())
    }

    /// Whether a person has approved this very call. Nothing that the model writes can make it true.
    pub const fn is_approved(&self) -> bool {
        self.approved
    }

    /// Who asks, apart from the arguments: nothing in it is chosen by the model.
    pub const fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The id that the caller gave the call, for example a `toolUseId`. Not unique, and no idempotency key.
    pub fn call_id(&self) -> Option<&str> {
        self.call_id.as_deref()
    }
}
