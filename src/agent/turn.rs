//! One turn of a conversation: load, drive, let go. The Lambda function and the local chat both call [`Agent::turn`].

use std::time::Duration;

use tokio::time::Instant;

use super::{
    drive::{Conversations, Driver, Happening, Model, SaveError},
    limits::Limits,
    metrics::{self, TurnEnd},
    report::Report,
    run::{AgentRun, Approvals},
    store::{ConversationTable, Lease},
    tools::Tools,
};
use crate::{
    call::{Deadline, Pipeline},
    ending::Ending,
    telemetry::Origin,
    tool::Caller,
};

/// The name by which the loop's calls are told from those that come through a door, in metrics and logs.
pub const DOOR: &str = "agent";

/// A model, its tools and its conversations. One for the life of the process.
pub struct Agent {
    model: Box<dyn Model>,
    pipeline: Pipeline,
    table: ConversationTable,
    limits: Limits,
    system: Option<String>,
    ending: Ending,
}

/// What the person wants.
#[derive(Clone, PartialEq, Eq)]
pub enum Wish {
    /// To say this. While calls wait for approval it also means "not approved".
    Say(String),
    /// The turn to go on where it stopped.
    Resume,
}

/// Why there was no turn, or why it broke off. Each is a sentence or two.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TurnError {
    /// There is nothing to go on with.
    #[error("There is no such conversation, or it has expired.")]
    NoConversation,
    /// It could not be loaded or saved.
    #[error(transparent)]
    Save(#[from] SaveError),
}

impl TurnError {
    /// The name on the wire.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NoConversation => "not_found",
            Self::Save(SaveError::Superseded | SaveError::Held { .. }) => "busy",
            Self::Save(SaveError::TooLarge { .. }) => "too_large",
            Self::Save(SaveError::Unreadable) => "unreadable",
            Self::Save(SaveError::Unavailable(_)) => "unavailable",
        }
    }

    /// Whether the same may succeed later.
    pub const fn retryable(&self) -> bool {
        matches!(self, Self::Save(SaveError::Superseded | SaveError::Held { .. } | SaveError::Unavailable(_)))
    }
}

/// What surrounds one turn.
#[derive(Clone, Debug)]
pub struct TurnContext {
    /// The host's id of the request; one that it repeats has the same.
    pub request_id: String,
    /// Who drives the turn, as others are told who find the conversation driven. No name, no secret: anybody may read it.
    pub driver: String,
    /// The X-Ray trace header.
    pub trace_id: Option<String>,
    /// When the work must be over.
    pub deadline: Deadline,
    /// Who asks. Its conversation is set here.
    pub caller: Caller,
}

impl Agent {
    /// An agent of this model and these tools.
    pub fn new(model: Box<dyn Model>, pipeline: Pipeline, table: ConversationTable, limits: Limits) -> Self {
        Self { model, pipeline, table, limits, system: None, ending: Ending::new() }
    }

    /// The same with a system prompt.
    #[must_use]
    pub fn with_system(self, system: Option<String>) -> Self {
        Self { system, ..self }
    }

    /// The end of the process, as its turns see it.
    pub const fn ending(&self) -> &Ending {
        &self.ending
    }

    /// Ends what is on its way: nothing new is begun, attempts and waits end, and each turn ends with its report.
    pub fn end(&self) {
        self.ending.begin();
        self.pipeline.end();
    }

    /// One turn, to its end or to a pause.
    ///
    /// # Errors
    ///
    /// If the conversation could not be loaded or saved. What was done until then is in it, or in the records.
    pub async fn turn(
        &self,
        conversation: &str,
        wish: Wish,
        context: TurnContext,
        watch: &mut (dyn FnMut(Happening<'_>) + Send),
    ) -> Result<Report, TurnError> {
        let lease = self.table.lease(context.deadline).for_request(&context.request_id).held_by(&context.driver);
        let origin = Origin::new(DOOR, &context.request_id, context.trace_id.as_deref());
        let began = Instant::now();
        let turn = self.drive(conversation, wish, context, &lease, &origin, watch).await;
        lease.release(conversation).await;
        if let Ok(report) = &turn {
            metrics::turn(self.pipeline.telemetry(), &origin, conversation, &self.end_of(report, began.elapsed()));
        }
        turn
    }

    fn end_of(&self, report: &Report, duration: Duration) -> TurnEnd {
        let mut usage = report.usage;
        usage += report.estimated;
        let cost = self.limits.prices.map(|prices| prices.of(&usage));
        TurnEnd { stop: report.stop, duration, steps: report.steps, tool_calls: report.tool_calls, usage, cost }
    }

    async fn drive(
        &self,
        conversation: &str,
        wish: Wish,
        context: TurnContext,
        lease: &Lease,
        origin: &Origin,
        watch: &mut (dyn FnMut(Happening<'_>) + Send),
    ) -> Result<Report, TurnError> {
        let (mut run, revision) = match (lease.load(conversation).await?, &wish) {
            (Some((run, revision)), _) => (self.taken_up(run), Some(revision)),
            (None, Wish::Say(_)) => (self.begun(), None),
            (None, Wish::Resume) => return Err(TurnError::NoConversation),
        };
        if let Wish::Say(text) = wish
            && !lease.is_repeated()
        {
            run.ask(&text);
        }
        let driver = Driver {
            model: &*self.model,
            pipeline: &self.pipeline,
            conversations: lease,
            ending: &self.ending,
            deadline: context.deadline,
            origin: origin.clone(),
            caller: context.caller.with_conversation(conversation),
        };
        Ok(driver.drive(conversation, run, revision, watch).await?.report)
    }

    fn begun(&self) -> AgentRun {
        let run = AgentRun::new(self.limits.clone(), self.tools());
        match &self.system {
            Some(system) => run.with_system(system),
            None => run,
        }
    }

    /// A conversation goes on under the limits, the tools and the prompt of today.
    fn taken_up(&self, mut run: AgentRun) -> AgentRun {
        run.equip(self.limits.clone(), self.tools(), self.system.clone(), Approvals::Pause);
        run.resumed();
        run
    }

    fn tools(&self) -> Tools {
        Tools::of(self.pipeline.toolbox())
    }
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").field("limits", &self.limits).finish_non_exhaustive()
    }
}
