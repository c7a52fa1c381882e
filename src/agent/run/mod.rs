//! The loop's decisions: a state machine without clock, client or async. It can be serialised at any point.
//!
//! ```text
//!             ask                    a reply without calls ──────────────────────────► Over(end_turn)
//!  (new) ───────────► Model ◄──────────────────────────────────┐
//!                      │ │ ▲  └─ broken, blank: once more       │ the calls have ended
//!                      │ │ └──── a limit: one closing request,  │ (a limit, or nothing but refused calls:
//!                      │ │       then Over(that limit)          │  the next request is the closing one)
//!            calls that │ └──────────────► Tools ───────────────┘
//!        may need a person   no one needed  ▲
//!                      ▼                    │ nobody has to decide any more
//!                  Approval ────────────────┘ │
//!                      │ ▲ resumed            │ a tool asks for a person by itself
//!            they wait ▼ │                    │
//!                    Paused ◄─────────────────┘
//!                      └── ask: "not approved" ──► Model
//! ```
//!
//! What ends a driver's work and not the turn (time, an interruption, a model that fails) leaves the state as it is.

mod batch;
mod handover;
mod turn;
mod view;
mod waiting;

use serde::{Deserialize, Serialize};

pub use super::ledger::ToolCall;
use super::{
    budget::{self, Measured},
    conversation::Message,
    history,
    limits::{Limits, TimeLeft},
    model::{ModelFailure, ModelReply, ModelRequest},
    report::{Item, Report},
    stop::{ReplyEnd, Stop, end_of_reply},
    tools::Tools,
    usage::Usage,
    words::{self, Why},
};
use crate::{call::Standing, outcome::Outcome};
use turn::{Begun, Phase, Turn};

/// What is to be done now.
#[derive(Debug)]
pub enum Next {
    /// Ask the model; then [`AgentRun::model_replied`] or [`AgentRun::model_failed`].
    CallModel(ModelRequest),
    /// Ask whether a person has to decide on these calls, and let what has to wait begin to wait; then
    /// [`AgentRun::records_read`].
    AskApproval(Vec<ToolCall>),
    /// Look at the records of these calls, running none, because their driver has died or they wait; then [`AgentRun::records_read`].
    ReadRecords(Vec<ToolCall>),
    /// Run these calls at once; then [`AgentRun::tools_ended`].
    RunTools(Vec<ToolCall>),
    /// Nothing, until a person has decided on these calls. Then load, [`AgentRun::resumed`], and go on.
    Pause(Vec<Item>),
    /// Nothing: the turn is over, or this driver must not go on with it.
    End(Report),
}

/// Where a call that a person has to approve leaves the loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approvals {
    /// The whole batch waits, before anything of it runs, until the person has decided. A call that asks in the tool's own
    /// code is known to wait only once it ran: the loop waits after its batch then.
    #[default]
    Pause,
    /// Nobody is there to decide: the call is answered `approval_required`, and the loop goes on.
    Answer,
}

/// A conversation with its bounded loop.
#[derive(Clone, Serialize, Deserialize)]
pub struct AgentRun {
    limits: Limits,
    tools: Tools,
    system: Option<String>,
    approvals: Approvals,
    messages: Vec<Message>,
    /// The calls that the model has asked for so far.
    asked: usize,
    measured: Measured,
    turn: Turn,
}

impl AgentRun {
    /// A new conversation.
    pub fn new(limits: Limits, tools: Tools) -> Self {
        Self {
            limits,
            tools,
            system: None,
            approvals: Approvals::default(),
            messages: Vec::new(),
            asked: 0,
            measured: Measured::default(),
            turn: Turn::default(),
        }
    }

    /// The same with a system prompt.
    #[must_use]
    pub fn with_system(self, system: impl Into<String>) -> Self {
        Self { system: Some(system.into()), ..self }
    }

    /// The same with calls that need approval treated so.
    #[must_use]
    pub fn with_approvals(self, approvals: Approvals) -> Self {
        Self { approvals, ..self }
    }

    /// The same after these messages, made valid: blank texts, calls without result and results without call would make
    /// Bedrock refuse the conversation for good.
    #[must_use]
    pub fn with_history(self, messages: Vec<Message>) -> Self {
        Self { messages: history::repaired(messages, &self.tools), measured: Measured::default(), ..self }
    }

    /// The messages so far. Between a reply with calls and their results the last one is the model's; while calls wait that
    /// have asked for a person by themselves, it holds the results of the others.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The limits.
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// A new message of the person: starts a turn. While calls wait for approval it means "not approved"; of calls whose
    /// driver has died their records are looked at first, so that nothing is begun that the person may no longer want.
    pub fn ask(&mut self, text: &str) {
        let text = if text.trim().is_empty() { "(The message was empty.)" } else { text };
        match std::mem::take(&mut self.turn.phase) {
            Phase::Approval | Phase::Paused if self.someone_is_asked() => self.refuse_open(Why::BesideNotApproved),
            Phase::Approval | Phase::Paused => self.refuse_open(Why::NotBegun),
            Phase::Tools if self.turn.begun != Begun::Perhaps => self.refuse_open(Why::NotBegun),
            Phase::Tools => return self.turn.phase = Phase::Orphans(text.to_owned()),
            Phase::Orphans(earlier) => return self.turn.phase = Phase::Orphans(format!("{earlier}\n\n{text}")),
            Phase::Model | Phase::Over(_) => {}
        }
        self.begin(text);
    }

    /// What is to be done now. Pure: asked again, it says the same.
    pub fn next(&self, time: TimeLeft) -> Next {
        if let Some(stop) = self.halted(time) {
            return Next::End(self.report_of(stop));
        }
        match &self.turn.phase {
            Phase::Model => Next::CallModel(self.request()),
            Phase::Approval if self.has_asked() => Next::ReadRecords(self.open(|_| true)),
            Phase::Approval => Next::AskApproval(self.open(|call| self.may_wait(&call.tool))),
            Phase::Paused => Next::Pause(self.report_of(Stop::AwaitingApproval).waiting),
            Phase::Tools => Next::RunTools(self.open(|_| true)),
            Phase::Orphans(_) => Next::ReadRecords(self.open(|_| true)),
            Phase::Over(stop) => Next::End(self.report_of(*stop)),
        }
    }

    /// The model's answer to [`Next::CallModel`]. Save the run before anything else.
    pub fn model_replied(&mut self, reply: ModelReply) {
        if self.turn.phase != Phase::Model {
            return; // an answer that nobody waits for any more
        }
        let ModelReply { message, stop_reason, usage } = reply;
        let (message, wanted) = history::clean(message, &self.tools, history::ids(&self.messages));
        let text = message.text();
        self.count(&message, usage);
        if !message.content.is_empty() {
            self.messages.push(message);
        }
        if let Some(usage) = usage.filter(|usage| usage.total() > 0) {
            self.measured = Measured::new(self.messages.len(), &usage);
        }
        self.turn.last_words.clear();
        let ended = end_of_reply(&stop_reason, !wanted.is_empty());
        match (self.turn.closing, ended) {
            (Some(stop), _) => {
                if wanted.is_empty() && ended == ReplyEnd::Whole {
                    self.turn.last_words = text;
                }
                self.close(wanted, Why::Closing, stop);
            }
            (None, ReplyEnd::Over(stop)) => {
                self.turn.last_words = text;
                self.turn.reason = (stop == Stop::UnknownStopReason).then(|| words::shown(&stop_reason));
                self.close(wanted, Why::Over(stop), stop);
            }
            (None, ReplyEnd::Broken(stop)) => self.once_more(wanted, stop),
            (None, ReplyEnd::Whole) if !wanted.is_empty() => self.take_up(wanted),
            (None, ReplyEnd::Whole) if text.is_empty() => self.once_more(wanted, Stop::EmptyAnswer),
            (None, ReplyEnd::Whole) => {
                self.turn.last_words = text;
                self.turn.phase = Phase::Over(Stop::EndTurn);
            }
        }
    }

    /// The model's call failed. The tokens that it may have cost are counted.
    pub fn model_failed(&mut self, failure: ModelFailure) {
        self.count_unanswered();
        self.turn.failures += 1;
        self.turn.failure = Some(failure);
    }

    /// The model's call was given up, because the process ends. The tokens that it has cost are counted.
    pub fn model_given_up(&mut self) {
        self.count_unanswered();
    }

    /// So many bytes were heard of an answer that has not come to its end. Said beside [`AgentRun::model_failed`] or
    /// [`AgentRun::model_given_up`].
    pub fn heard_in_vain(&mut self, bytes: usize) {
        self.turn.guessed += Usage { output_tokens: budget::tokens_in(bytes), ..Usage::default() };
    }

    /// What [`Next::AskApproval`] and [`Next::ReadRecords`] ask for: each call's ordinal, and how it stands. Save the run
    /// after it.
    pub fn records_read(&mut self, standings: Vec<(usize, Standing)>) {
        let standings = standings.into_iter().collect();
        match std::mem::take(&mut self.turn.phase) {
            Phase::Approval => self.decided(standings),
            Phase::Orphans(text) => {
                self.look_up(standings);
                self.begin(&text);
            }
            other => self.turn.phase = other,
        }
    }

    /// How the calls of [`Next::RunTools`] ended. A call that is missing has been interrupted. Those that wait for a person
    /// pause the run, unless nobody is there to decide. Save the run after it.
    pub fn tools_ended(&mut self, ended: Vec<(usize, Outcome)>) {
        if self.turn.phase != Phase::Tools {
            return;
        }
        let mut ended = ended.into_iter().collect();
        let waits = self.approvals == Approvals::Pause && self.let_wait(&mut ended);
        self.settle(ended);
        if waits {
            self.turn.phase = Phase::Paused;
        } else {
            self.go_on();
        }
    }

    /// Whether requests to the model have failed since it last answered.
    pub(super) const fn has_failures(&self) -> bool {
        self.turn.failures > 0
    }

    /// Where the turn stands.
    pub fn report(&self) -> Report {
        let stop = match self.turn.phase {
            Phase::Over(stop) => stop,
            Phase::Paused => Stop::AwaitingApproval,
            _ => self.halted(TimeLeft::UNLIMITED).unwrap_or(Stop::Interrupted),
        };
        self.report_of(stop)
    }
}

impl std::fmt::Debug for AgentRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("AgentRun");
        shown.field("messages", &self.messages.len()).field("steps", &self.turn.steps).finish_non_exhaustive()
    }
}
