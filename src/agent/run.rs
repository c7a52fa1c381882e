//! The loop's decisions: a state machine without clock, client or async. It can be serialised at any point.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    conversation::Message,
    limits::{Limits, TimeLeft},
    model::{ModelFailure, ModelReply, ModelRequest},
    report::{Item, Report},
    tools::Tools,
};
use crate::{call::Standing, outcome::Outcome};

/// What is to be done now.
#[derive(Debug)]
pub enum Next {
    /// Ask the model; then [`AgentRun::model_replied`] or [`AgentRun::model_failed`].
    CallModel(ModelRequest),
    /// Ask how the records of these calls stand, running none; then [`AgentRun::records_read`].
    ReadRecords(Vec<ToolCall>),
    /// Run these calls at once; then [`AgentRun::tools_ended`].
    RunTools(Vec<ToolCall>),
    /// Nothing, until a person has decided on these calls. Then load, [`AgentRun::resumed`], and go on.
    Pause(Vec<Item>),
    /// Nothing: the turn is over.
    End(Report),
}

/// A call that is to be run.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Its number in the conversation, from 0.
    pub ordinal: usize,
    /// The id of its result.
    pub id: String,
    /// The tool, as the model wrote it.
    pub tool: String,
    /// The arguments, as the model wrote them.
    pub input: Value,
}

impl std::fmt::Debug for ToolCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolCall").field("ordinal", &self.ordinal).field("id", &self.id).finish_non_exhaustive()
    }
}

/// Where a call that a person has to approve leaves the loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approvals {
    /// The whole batch waits, before anything of it runs, until the person has decided.
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
}

impl AgentRun {
    /// A new conversation.
    pub fn new(limits: Limits, tools: Tools) -> Self {
        Self { limits, tools, system: None, approvals: Approvals::default(), messages: Vec::new() }
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

    /// The same after these messages, made valid: see [`history`](super::history).
    #[must_use]
    pub fn with_history(self, messages: Vec<Message>) -> Self {
        Self { messages, ..self }
    }

    /// Replaces what the deployment says, after its conversation was loaded: another version may have other limits, tools and
    /// another prompt.
    pub fn equip(&mut self, limits: Limits, tools: Tools, system: Option<String>, approvals: Approvals) {
        (self.limits, self.tools, self.system, self.approvals) = (limits, tools, system, approvals);
    }

    /// A new message of the person: starts a turn. While calls wait for approval it means "not approved".
    pub fn ask(&mut self, _text: &str) {
        todo!()
    }

    /// What is to be done now. Pure: asked again, it says the same.
    pub fn next(&self, _time: TimeLeft) -> Next {
        todo!()
    }

    /// The model's answer to [`Next::CallModel`]. Save the run before anything else.
    pub fn model_replied(&mut self, _reply: ModelReply) {
        todo!()
    }

    /// The model's call failed.
    pub fn model_failed(&mut self, _failure: ModelFailure) {
        todo!()
    }

    /// What [`Next::ReadRecords`] asked for: each call's ordinal, and how its record stands.
    pub fn records_read(&mut self, _standings: Vec<(usize, Standing)>) {
        todo!()
    }

    /// How the calls of [`Next::RunTools`] ended. Save the run after it.
    pub fn tools_ended(&mut self, _ended: Vec<(usize, Outcome)>) {
        todo!()
    }

    /// The run was loaded: its driver may have died, or a person may have decided. Always called after loading.
    pub fn resumed(&mut self) {
        todo!()
    }

    /// The driver stops between two actions, because the person or the process wants it: nothing new is begun. What
    /// [`AgentRun::next`] says then is the end, with a report; [`AgentRun::resumed`] takes it back.
    pub fn interrupted(&mut self) {
        todo!()
    }

    /// The driver lets go of the run at an end. From then on it is known that a batch that had not been handed out was
    /// not begun. Save the run after it.
    pub fn put_down(&mut self) {
        todo!()
    }

    /// Where the turn stands.
    pub fn report(&self) -> Report {
        todo!()
    }

    /// The messages so far.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }
}

impl std::fmt::Debug for AgentRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentRun").field("messages", &self.messages.len()).finish_non_exhaustive()
    }
}
