//! Drives a run: does what [`AgentRun::next`] says, and saves it where that must be done.
//!
//! | saved | so that |
//! | --- | --- |
//! | before the first action | a second driver of the same conversation stops before it does anything |
//! | after the model's reply, before any of its calls runs | a driver that dies is followed by one that runs the same calls, with the same keys |
//! | after the calls have ended | they are not asked for again |
//! | at a pause and at the end | the next message finds the conversation as it is |

use std::time::Duration;

use futures_util::future::BoxFuture;

use super::{
    model::{ModelFailure, ModelReply, ModelRequest},
    report::Report,
    run::{AgentRun, ToolCall},
};
use crate::{
    call::{Deadline, Pipeline},
    ending::Ending,
    outcome::Outcome,
    telemetry::Origin,
    tool::Caller,
};

/// A language model.
pub trait Model: Send + Sync {
    /// One answer to one request, within `limit`. Text goes to `heard` as it comes, where the model streams.
    fn converse<'a>(
        &'a self,
        request: &'a ModelRequest,
        limit: Duration,
        heard: &'a mut (dyn FnMut(&str) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelFailure>>;
}

/// Where conversations are kept.
pub trait Conversations: Send + Sync {
    /// The conversation as it was saved last.
    fn load<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<(AgentRun, Revision)>, SaveError>>;

    /// Saves it, if it is still as it was at `after` (`None`: not there yet).
    fn save<'a>(
        &'a self,
        id: &'a str,
        run: &'a AgentRun,
        after: Option<Revision>,
    ) -> BoxFuture<'a, Result<Revision, SaveError>>;
}

/// How often a conversation has been saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision(pub u64);

/// Why a conversation was not loaded or saved. Each is a sentence.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// It was changed by another driver.
    #[error("Another driver runs this conversation.")]
    Superseded,
    /// It does not fit.
    #[error("The conversation is too large to be kept: {size} bytes of {limit}. Begin another one.")]
    TooLarge {
        /// Its size.
        size: usize,
        /// The most that fits.
        limit: usize,
    },
    /// What is kept cannot be read.
    #[error("The conversation cannot be read: it was kept by another version, or is damaged.")]
    Unreadable,
    /// The place where it is kept does not answer.
    #[error("The conversations cannot be reached. Try again later.")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Drives the turns of one conversation.
pub struct Driver<'a> {
    /// The model.
    pub model: &'a dyn Model,
    /// Runs the calls.
    pub pipeline: &'a Pipeline,
    /// Keeps the conversation.
    pub conversations: &'a dyn Conversations,
    /// The end of the process. Whoever begins it ends the pipeline too.
    pub ending: &'a Ending,
    /// When the work must be over.
    pub deadline: Deadline,
    /// The invocation, for metrics and logs.
    pub origin: Origin,
    /// Who asks; its conversation is the scope of the calls' keys.
    pub caller: Caller,
}

/// What a driver tells whoever watches.
#[derive(Debug)]
#[non_exhaustive]
pub enum Happening<'a> {
    /// This is sent to the model.
    Asked(&'a ModelRequest),
    /// The model has said this.
    Heard(&'a str),
    /// The model's call failed.
    ModelFailed(&'a ModelFailure),
    /// These calls begin.
    Began(&'a [ToolCall]),
    /// This call has ended.
    Ended(&'a ToolCall, &'a Outcome),
}

/// A turn that was driven to its end, or to a pause.
#[derive(Debug)]
pub struct Driven {
    /// The conversation.
    pub run: AgentRun,
    /// As which it was saved.
    pub revision: Revision,
    /// How the turn ended.
    pub report: Report,
}

impl Driver<'_> {
    /// Drives the run until it ends or pauses.
    ///
    /// # Errors
    ///
    /// If the run could not be saved: nothing is done that is not saved, so that another driver may go on with it.
    pub async fn drive(
        &self,
        _id: &str,
        _run: AgentRun,
        _revision: Option<Revision>,
        _watch: &mut (dyn FnMut(Happening<'_>) + Send),
    ) -> Result<Driven, SaveError> {
        todo!()
    }
}
