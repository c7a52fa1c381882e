//! Drives a run: does what [`AgentRun::next`] says, and saves it where that must be done.
//!
//! | saved | so that |
//! | --- | --- |
//! | before the first action | a second driver of the same conversation stops before it does anything |
//! | after the model's reply, before any of its calls runs | a driver that dies is followed by one that runs the same calls, with the same keys |
//! | after it was asked whether a person has to decide | calls that may have begun are told from calls that have not |
//! | after the calls have ended | they are not asked for again |
//! | at a pause and at the end | the next message finds the conversation as it is |

mod ask;

use std::{error::Error as _, fmt, time::Duration};

use futures_util::{
    StreamExt,
    future::{BoxFuture, join_all},
    stream::FuturesUnordered,
};

use super::{
    limits::TimeLeft,
    model::{ModelFailure, ModelReply, ModelRequest},
    report::Report,
    run::{AgentRun, Next, ToolCall},
    stop::Resume,
};
use crate::{
    call::{Arguments, Call, Deadline, Pipeline, Room, Standing, Surroundings},
    clock::Timestamp,
    ending::Ending,
    outcome::Outcome,
    telemetry::{Origin, rfc3339},
    tool::{Caller, fault_of},
};

/// What a model tells while a request is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Heard<'a> {
    /// A piece of the answer, where the model streams.
    Text(&'a str),
    /// So many bytes of an answer that nobody is shown, where the model streams: reasoning, and the arguments of calls.
    Hidden(usize),
    /// The attempt of this number, from 1, has ended, or was given up with its request.
    Attempt {
        /// Its number.
        number: u32,
        /// Whether the service has throttled it.
        throttled: bool,
    },
}

/// A language model.
pub trait Model: Send + Sync {
    /// One answer to one request, within `limit`. What comes on the way goes to `heard`.
    fn converse<'a>(
        &'a self,
        request: &'a ModelRequest,
        limit: Duration,
        heard: &'a mut (dyn FnMut(Heard<'_>) + Send),
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
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// It was changed by another driver.
    #[error("Another driver runs this conversation.")]
    Superseded,
    /// Another driver has its lease.
    #[error(
        "Another driver has this conversation: {by}, until {} at the latest. If it has died, try again then.",
        rfc3339(*until)
    )]
    Held {
        /// Who, as it calls itself.
        by: String,
        /// From when on the conversation is free, whatever has become of it.
        until: Timestamp,
    },
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

impl SaveError {
    /// How a conversation can go on that could not be saved.
    const fn resume(&self) -> Resume {
        match self {
            Self::TooLarge { .. } => Resume::BeginAnew,
            _ => Resume::Continue,
        }
    }
}

impl fmt::Debug for SaveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A client's error shows the whole answer for debugging, and with it what is kept.
        f.write_str(match self {
            Self::Superseded => "Superseded",
            Self::Held { .. } => "Held",
            Self::TooLarge { .. } => "TooLarge",
            Self::Unreadable => "Unreadable",
            Self::Unavailable(_) => "Unavailable",
        })
    }
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
    /// Where it cannot be saved any more, nothing more is begun, and the report says what was done.
    ///
    /// # Errors
    ///
    /// If nothing has begun because the run could not be saved, or if another driver runs the conversation.
    pub async fn drive(
        &self,
        id: &str,
        mut run: AgentRun,
        revision: Option<Revision>,
        watch: &mut (dyn FnMut(Happening<'_>) + Send),
    ) -> Result<Driven, SaveError> {
        let mut revision = self.conversations.save(id, &run, revision).await?;
        loop {
            let goes_on = self.act(&mut run, id, watch).await;
            if goes_on == Then::Ask {
                continue;
            }
            let needs_save = goes_on == Then::Save || run.put_down() || run.has_failures();
            if needs_save {
                match self.conversations.save(id, &run, Some(revision)).await {
                    Ok(saved) => revision = saved,
                    Err(SaveError::Superseded) => return Err(SaveError::Superseded),
                    Err(error) => {
                        tracing::warn!(conversation = id, cause = ?error, fault = fault_of(&error), "a conversation could not be saved");
                        tracing::trace!(conversation = id, cause = ?error.source(), "cause");
                        let report = run.unsaved(error.resume(), &error.to_string());
                        return Ok(Driven { run, revision, report });
                    }
                }
            }
            if goes_on == Then::End {
                let report = match run.next(TimeLeft(self.deadline.time_left())) {
                    Next::End(report) => report,
                    _ => run.report(),
                };
                return Ok(Driven { run, revision, report });
            }
        }
    }

    /// Does the next thing.
    async fn act(&self, run: &mut AgentRun, id: &str, watch: &mut (dyn FnMut(Happening<'_>) + Send)) -> Then {
        if self.ending.has_begun() {
            run.interrupted();
        }
        match run.next(TimeLeft(self.deadline.time_left())) {
            Next::CallModel(request) => return self.take_step(run, &request, id, watch).await,
            Next::AskApproval(calls) => run.records_read(self.look(calls, id, true).await),
            Next::ReadRecords(calls) => run.records_read(self.look(calls, id, false).await),
            Next::RunTools(calls) => run.tools_ended(self.run_tools(run, &calls, id, watch).await),
            Next::Pause(_) | Next::End(_) => return Then::End,
        }
        Then::Save
    }

    /// How the records of these calls stand.
    async fn look(&self, calls: Vec<ToolCall>, id: &str, for_approval: bool) -> Vec<(usize, Standing)> {
        let around = self.around(usize::MAX);
        let look = calls.into_iter().map(|call| {
            let (ordinal, call, around) = (call.ordinal, self.call(call, id), &around);
            async move {
                let standing = if for_approval {
                    self.pipeline.approval(&call, around).await
                } else {
                    self.pipeline.recorded(&call, around).await
                };
                (ordinal, standing)
            }
        });
        join_all(look).await
    }

    /// Runs these calls at once. None of them costs another its outcome: the pipeline answers each, whatever its tool does.
    async fn run_tools(
        &self,
        run: &AgentRun,
        calls: &[ToolCall],
        id: &str,
        watch: &mut (dyn FnMut(Happening<'_>) + Send),
    ) -> Vec<(usize, Outcome)> {
        watch(Happening::Began(calls));
        let around = &self.around(run.limits().max_result_bytes);
        let running = calls
            .iter()
            .map(|call| async move { (call, self.pipeline.run(self.call(call.clone(), id), around).await) });
        let mut running: FuturesUnordered<_> = running.collect();
        let mut ended = Vec::new();
        while let Some((call, outcome)) = running.next().await {
            watch(Happening::Ended(call, &outcome));
            ended.push((call.ordinal, outcome));
        }
        ended
    }

    fn call(&self, call: ToolCall, id: &str) -> Call {
        let ToolCall { id: call_id, tool, input, .. } = call;
        let caller = self.caller.clone().with_conversation(id);
        Call { tool, arguments: Arguments::from_json(input), id: Some(call_id), caller, objection: None }
    }

    fn around(&self, limit: usize) -> Surroundings {
        Surroundings { origin: self.origin.clone(), deadline: self.deadline, limit, room: Room::default() }
    }
}

/// What comes after an action.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Save,
    Ask,
    End,
}
