//! How a tool says that it failed.
//!
//! `?` on any error gives [`ToolErrorKind::Internal`]: the model reads one flat sentence, the source goes to the log.
//! Everything else is said on purpose, by a constructor whose text the model reads. Two of them are about the backend,
//! and differ in what they promise:
//!
//! | constructor | promise | a `Once` tool |
//! | --- | --- | --- |
//! | [`ToolError::transient`] | the backend surely did nothing (throttled, refused, never reached) | is tried again |
//! | [`ToolError::no_answer`] | something was sent, and no clear answer came | ends as `outcome_unknown` |

use std::{error::Error, fmt, time::Duration};

type Source = Box<dyn Error + Send + Sync>;

/// What a tool reports; the pipeline makes the [`Failure`](crate::outcome::Failure) of it, by effect and phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolErrorKind {
    /// An argument is wrong in a way the schema cannot say.
    InvalidInput,
    /// What the arguments name does not exist.
    NotFound,
    /// A business rule forbids it.
    Rejected,
    /// The caller may not do this.
    Denied,
    /// A person has to approve it.
    ApprovalRequired,
    /// The backend is not available for now.
    Transient,
    /// A fault of ours.
    Internal,
}

/// How far the attempt got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The backend surely did nothing.
    NothingSent,
    /// The backend may have done it.
    MaybeDone,
}

/// Why an attempt failed. Shape of a text: whole sentences; what failed, and what would work.
pub struct ToolError {
    pub(crate) kind: ToolErrorKind,
    pub(crate) phase: Phase,
    pub(crate) text: String,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) already_retried: bool,
    pub(crate) source: Option<Source>,
    pub(crate) source_type: &'static str,
}

impl ToolError {
    fn new(kind: ToolErrorKind, phase: Phase, text: impl Into<String>) -> Self {
        Self {
            kind,
            phase,
            text: text.into(),
            retry_after: None,
            already_retried: false,
            source: None,
            source_type: "",
        }
    }

    /// An argument is wrong. Name the field, the rule, and a value that would work.
    pub fn invalid_input(text: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::InvalidInput, Phase::NothingSent, text)
    }

    /// What the arguments name does not exist. Say what was looked for, and what to ask instead.
    pub fn not_found(text: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::NotFound, Phase::NothingSent, text)
    }

    /// A business rule forbids it. Name the rule and the fact that would satisfy it.
    pub fn rejected(text: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Rejected, Phase::NothingSent, text)
    }

    /// The caller may not do this. One flat sentence, no way round.
    pub fn denied(text: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Denied, Phase::NothingSent, text)
    }

    /// A person has to approve this call, for a reason that [`Policy::approve_when`](super::Policy::approve_when) cannot
    /// see in the arguments. Say which rule asks for it. The call then waits; once it is approved, it is run with
    /// [`CallContext::is_approved`](super::CallContext::is_approved). Of a `Keyed` tool an earlier attempt may have been done
    /// by then: the model is told so, and the call waits as well.
    pub fn approval_required(text: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::ApprovalRequired, Phase::NothingSent, text)
    }

    /// The backend is not available, and surely did nothing: it throttled, refused, or was never reached.
    pub fn transient(text: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Transient, Phase::NothingSent, text)
    }

    /// Something was sent and no clear answer came: a timeout, a broken connection, a 5xx after the body was sent.
    pub fn no_answer(text: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Transient, Phase::MaybeDone, text)
    }

    /// A fault of ours; the model reads only that there was one. `source` goes to the log.
    pub fn internal<S: Into<Source>>(source: S) -> Self {
        Self::new(ToolErrorKind::Internal, Phase::MaybeDone, String::new()).with_source(source)
    }

    /// Says that nothing was sent, where the constructor could not know.
    #[must_use]
    pub fn nothing_sent(mut self) -> Self {
        self.phase = Phase::NothingSent;
        self
    }

    /// The least time to wait before another attempt, as the backend asked for.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Says that the client has retried already; the pipeline then does not. One layer retries.
    #[must_use]
    pub fn already_retried(mut self) -> Self {
        self.already_retried = true;
        self
    }

    /// The cause, for the log only.
    #[must_use]
    pub fn with_source<S: Into<Source>>(mut self, source: S) -> Self {
        self.source = Some(source.into());
        self.source_type = std::any::type_name::<S>();
        self
    }

    /// The kind.
    pub const fn kind(&self) -> ToolErrorKind {
        self.kind
    }

    /// How far the attempt got.
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// The cause, for the log only.
    pub fn cause(&self) -> Option<&(dyn Error + Send + Sync)> {
        self.source.as_deref()
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for ToolError {
    fn from(source: E) -> Self {
        Self::internal(source)
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolError").field("kind", &self.kind).field("phase", &self.phase).finish_non_exhaustive()
    }
}
