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

use std::{error::Error, fmt, panic::Location, time::Duration};

use super::fault::{self, At};

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
    cause_name: Option<String>,
    place: &'static Location<'static>,
}

impl ToolError {
    #[track_caller]
    fn new(kind: ToolErrorKind, phase: Phase, text: impl Into<String>) -> Self {
        Self {
            kind,
            phase,
            text: text.into(),
            retry_after: None,
            already_retried: false,
            source: None,
            cause_name: None,
            place: Location::caller(),
        }
    }

    /// An argument is wrong. Name the field, the rule, and a value that would work.
    #[track_caller]
    pub fn invalid_input(text: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::InvalidInput, Phase::NothingSent, text)
    }

    /// What the arguments name does not exist. Say what was looked for, and what to ask instead.
    #[track_caller]
    pub fn not_found(text: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::NotFound, Phase::NothingSent, text)
    }

    /// A business rule forbids it. Name the rule and the fact that would satisfy it.
    #[track_caller]
    pub fn rejected(text: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Rejected, Phase::NothingSent, text)
    }

    /// The caller may not do this. One flat sentence, no way round.
    #[track_caller]
    pub fn denied(text: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Denied, Phase::NothingSent, text)
    }

    /// A person has to approve this call, for a reason that [`Policy::approve_when`](super::Policy::approve_when) cannot
    /// see in the arguments. Say which rule asks for it. The call then waits; once it is approved, it is run with
    /// [`CallContext::is_approved`](super::CallContext::is_approved). Of a `Keyed` tool an earlier attempt may have been done
    /// by then: the model is told so, and the call waits as well. A call that is approved must not ask again: that is a fault.
    #[track_caller]
    pub fn approval_required(text: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::ApprovalRequired, Phase::NothingSent, text)
    }

    /// The backend is not available, and surely did nothing: it throttled, refused, or was never reached.
    #[track_caller]
    pub fn transient(text: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Transient, Phase::NothingSent, text)
    }

    /// Something was sent and no clear answer came: a timeout, a broken connection, a 5xx after the body was sent.
    #[track_caller]
    pub fn no_answer(text: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Transient, Phase::MaybeDone, text)
    }

    /// A fault of ours; the model reads only that there was one. `source` goes to the log: its name, and its text at TRACE.
    #[track_caller]
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

    /// The cause, for the log only. Its name is in the line of the call (the code of an AWS error, the status of an HTTP
    /// answer, else its type and the place of this call); its text, which may hold secrets, only in a line at TRACE.
    #[must_use]
    #[track_caller]
    pub fn with_source<S: Into<Source>>(mut self, source: S) -> Self {
        let source = source.into();
        self.place = Location::caller();
        self.cause_name = Some(fault::name_of::<S>(&*source, self.place));
        self.source = Some(source);
        self
    }

    /// The name of the cause, where whoever reports it knows a better one than its type.
    #[must_use]
    pub(crate) fn named(self, name: String) -> Self {
        Self { cause_name: Some(name), ..self }
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

    /// The name of the cause, which may stand in a log line. A fault without a cause has its place in the code.
    pub(crate) fn fault(&self) -> Option<String> {
        let is_fault = matches!(self.kind, ToolErrorKind::Transient | ToolErrorKind::Internal);
        self.cause_name.clone().or_else(|| is_fault.then(|| At(self.place).to_string()))
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for ToolError {
    #[track_caller]
    fn from(source: E) -> Self {
        Self::internal(source)
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolError").field("kind", &self.kind).field("phase", &self.phase).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_question_mark() -> Result<(), ToolError> {
        serde_json::from_str::<()>("SECRET")?;
        Ok(())
    }

    #[test]
    fn a_fault_is_known_by_its_cause_or_by_its_place_in_the_tool() {
        let here = |line: u32| format!("{}:{line}", file!());
        let asked = by_question_mark().expect_err("no JSON").fault().expect("a name");
        assert!(asked.starts_with("serde_json::error::Error at src/tool/error.rs:"), "{asked}");
        assert_eq!(ToolError::internal("SECRET").fault(), Some(here(line!())));
        assert_eq!(ToolError::transient("Busy.").nothing_sent().fault(), Some(here(line!())));
        assert_eq!(ToolError::no_answer("Lost.").with_source("SECRET").fault(), Some(here(line!())));
        assert_eq!(ToolError::internal("SECRET").named("Code".into()).fault().as_deref(), Some("Code"));
        assert_eq!(ToolError::rejected("No.").fault(), None, "the model's own");
    }
}
