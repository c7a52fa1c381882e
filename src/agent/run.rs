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
//!                  Approval ────────────────┘
//!                      │ ▲ resumed
//!            they wait ▼ │
//!                    Paused ── ask: "not approved" ──► Model
//! ```
//!
//! What ends a driver's work and not the turn (time, an interruption, a model that fails) leaves the state as it is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    budget::{self, Measured},
    conversation::{Block, Message},
    guard::{Guard, fingerprint},
    history::{self, Wanted},
    ledger::{Entry, Fate},
    limits::{Limits, TimeLeft},
    model::{ModelFailure, ModelFailureKind, ModelReply, ModelRequest},
    report::{Item, Report},
    stop::{Ended, Stop, ended},
    tools::Tools,
    usage::Usage,
    words::{self, Why},
};
use crate::{
    call::Standing,
    door,
    outcome::{Changed, Failure, FailureKind, Outcome},
    tool::Effect,
};

/// What is to be done now.
#[derive(Debug)]
pub enum Next {
    /// Ask the model; then [`AgentRun::model_replied`] or [`AgentRun::model_failed`].
    CallModel(ModelRequest),
    /// Ask whether a person has to decide on these calls, and let what has to wait begin to wait; then
    /// [`AgentRun::records_read`].
    AskApproval(Vec<ToolCall>),
    /// Look at the records of these calls, running none; then [`AgentRun::records_read`].
    ReadRecords(Vec<ToolCall>),
    /// Run these calls at once; then [`AgentRun::tools_ended`].
    RunTools(Vec<ToolCall>),
    /// Nothing, until a person has decided on these calls. Then load, [`AgentRun::resumed`], and go on.
    Pause(Vec<Item>),
    /// Nothing: the turn is over, or this driver must not go on with it.
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
    /// The calls that the model has asked for so far.
    asked: usize,
    measured: Measured,
    turn: Turn,
}

/// What has happened since the person's last message.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Turn {
    phase: Phase,
    steps: u32,
    /// As the model has told it.
    spent: Usage,
    /// What nobody has told, estimated.
    guessed: Usage,
    guard: Guard,
    ledger: Vec<Entry>,
    /// The entries at the beginning that were asked for in an earlier turn.
    carried: usize,
    /// The first entry of the calls that have no result yet.
    open: usize,
    begun: Begun,
    /// The limit beyond which a call of this batch was.
    beyond: Option<Stop>,
    /// The tools of which the guard has refused calls of this batch.
    refused: Vec<String>,
    /// The model has been told once that its reply could not be used.
    once_more: bool,
    /// No tool is run any more, and why.
    closing: Option<Stop>,
    failure: Option<ModelFailure>,
    failures: u32,
    interrupted: bool,
    last_words: String,
}

/// Where the turn stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Phase {
    /// The model is to be asked.
    Model,
    /// Whether a person has to decide is to be asked.
    Approval,
    /// Calls wait for a person.
    Paused,
    /// Calls are to be run, or were handed out.
    Tools,
    /// Calls of a driver that is gone are to be looked at, before this message counts.
    Orphans(String),
    /// The turn is over.
    Over(Stop),
}

impl Default for Phase {
    fn default() -> Self {
        Self::Over(Stop::EndTurn)
    }
}

/// Whether the calls that have no result have begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Begun {
    /// Not under this driver.
    #[default]
    No,
    /// The driver has let go of the run before it handed them out.
    PutDown,
    /// The run was loaded, and nobody can tell.
    Perhaps,
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

    /// Replaces what the deployment says, after its conversation was loaded: another version may have other limits, tools and
    /// another prompt.
    pub fn equip(&mut self, limits: Limits, tools: Tools, system: Option<String>, approvals: Approvals) {
        (self.limits, self.tools, self.system, self.approvals) = (limits, tools, system, approvals);
    }

    /// The messages so far. Between a reply with calls and their results the last one is the model's.
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
            Phase::Approval | Phase::Paused => self.refuse_open(Why::BesideNotApproved),
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
        let ended = ended(&stop_reason, !wanted.is_empty());
        match (self.turn.closing, ended) {
            (Some(stop), _) => {
                if wanted.is_empty() && ended == Ended::Whole {
                    self.turn.last_words = text;
                }
                self.close(wanted, Why::Closing, stop);
            }
            (None, Ended::Over(stop)) => {
                self.turn.last_words = text;
                self.close(wanted, Why::Over(stop), stop);
            }
            (None, Ended::Broken(stop)) => self.once_more(wanted, stop),
            (None, Ended::Whole) if !wanted.is_empty() => self.take_up(wanted),
            (None, Ended::Whole) if text.is_empty() => self.once_more(wanted, Stop::EmptyAnswer),
            (None, Ended::Whole) => {
                self.turn.last_words = text;
                self.turn.phase = Phase::Over(Stop::EndTurn);
            }
        }
    }

    /// The model's call failed. The tokens that it may have cost are counted.
    pub fn model_failed(&mut self, failure: ModelFailure) {
        self.turn.guessed += Usage { input_tokens: self.measured.estimate(&self.messages), ..Usage::default() };
        self.turn.failures += 1;
        self.turn.failure = Some(failure);
    }

    /// What [`Next::AskApproval`] and [`Next::ReadRecords`] ask for: each call's ordinal, and how it stands. Save the run
    /// after it.
    pub fn records_read(&mut self, standings: Vec<(usize, Standing)>) {
        let mut standings: BTreeMap<_, _> = standings.into_iter().collect();
        match std::mem::take(&mut self.turn.phase) {
            Phase::Approval => {
                let mut waits = false;
                let (tools, open) = (&self.tools, self.turn.open);
                for entry in self.turn.ledger.iter_mut().skip(open).filter(|entry| entry.is_open()) {
                    if !tools.get(&entry.call.tool).is_some_and(|facts| facts.may_need_approval) {
                        continue;
                    }
                    // What could not be found out waits too: nothing beside it runs on a guess.
                    entry.fate = match standings.remove(&entry.call.ordinal).unwrap_or(Standing::Unavailable) {
                        Standing::Waits(key) => Fate::Waiting(Some(key)),
                        Standing::Unavailable => Fate::Waiting(None),
                        _ => Fate::Open,
                    };
                    waits |= entry.fate != Fate::Open;
                }
                self.turn.phase = if waits { Phase::Paused } else { Phase::Tools };
            }
            Phase::Orphans(text) => {
                let open = self.open(|_| true).into_iter();
                let outcomes = open.map(|call| {
                    let standing = standings.remove(&call.ordinal);
                    (call.ordinal, found(&self.tools, &call, standing))
                });
                let outcomes = outcomes.collect();
                self.settle(outcomes);
                self.begin(&text);
            }
            other => self.turn.phase = other,
        }
    }

    /// How the calls of [`Next::RunTools`] ended. A call that is missing has been interrupted. Save the run after it.
    pub fn tools_ended(&mut self, ended: Vec<(usize, Outcome)>) {
        if self.turn.phase == Phase::Tools {
            self.settle(ended.into_iter().collect());
            self.go_on();
        }
    }

    /// The run was loaded: its driver may have died, or a person may have decided. Always called after loading.
    pub fn resumed(&mut self) {
        let turn = &mut self.turn;
        (turn.interrupted, turn.failure, turn.failures) = (false, None, 0);
        turn.begun = match turn.begun {
            Begun::PutDown => Begun::No,
            Begun::No | Begun::Perhaps => Begun::Perhaps,
        };
        if turn.phase == Phase::Paused {
            turn.phase = Phase::Approval;
        }
    }

    /// The driver stops between two actions, because the person or the process wants it: nothing new is begun. What
    /// [`AgentRun::next`] says then is the end, with a report; [`AgentRun::resumed`] takes it back.
    pub fn interrupted(&mut self) {
        self.turn.interrupted = true;
    }

    /// The driver lets go of the run at an end. From then on it is known that a batch that had not been handed out was
    /// not begun. Save the run after it, if it says that it has changed.
    pub fn put_down(&mut self) -> bool {
        let changes = self.turn.phase == Phase::Tools && self.turn.begun == Begun::No;
        if changes {
            self.turn.begun = Begun::PutDown;
        }
        changes
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

/// The steps behind the public ones.
impl AgentRun {
    /// Why this driver must not go on, although the turn is not over.
    fn halted(&self, time: TimeLeft) -> Option<Stop> {
        let turn = &self.turn;
        if matches!(turn.phase, Phase::Over(_) | Phase::Paused) {
            return None;
        }
        let failed = turn.failure.as_ref().filter(|failure| !failure.kind.may_be_repeated() || turn.failures > 1);
        match failed.map(|failure| failure.kind) {
            _ if turn.interrupted => Some(Stop::Interrupted),
            Some(ModelFailureKind::Timeout) => Some(Stop::Time),
            Some(_) => Some(Stop::ModelFailed),
            None if time.0 < self.limits.shortest_step => Some(Stop::Time),
            None if turn.phase == Phase::Model => self.most_output().err().map(|stop| turn.closing.unwrap_or(stop)),
            None => None,
        }
    }

    fn spent(&self) -> Usage {
        let mut spent = self.turn.spent;
        spent += self.turn.guessed;
        spent
    }

    fn most_output(&self) -> Result<u32, Stop> {
        budget::output_left(&self.limits, &self.spent(), self.measured.estimate(&self.messages))
    }

    fn request(&self) -> ModelRequest {
        ModelRequest {
            messages: self.messages.clone(),
            system: self.system.clone(),
            tool_config: self.tools.config(self.turn.guard.withdrawn()),
            max_output_tokens: self.most_output().ok(),
        }
    }

    /// The calls that have no result and are not refused.
    fn open(&self, which: impl Fn(&ToolCall) -> bool) -> Vec<ToolCall> {
        let open = self.turn.ledger.iter().skip(self.turn.open).filter(|entry| entry.is_open());
        open.map(|entry| entry.call.clone()).filter(which).collect()
    }

    fn may_wait(&self, tool: &str) -> bool {
        self.tools.get(tool).is_some_and(|facts| facts.may_need_approval)
    }

    /// Starts a turn; what was just settled stays in its report.
    fn begin(&mut self, text: &str) {
        let ledger = self.turn.ledger.split_off(self.turn.open.min(self.turn.ledger.len()));
        let carried = ledger.len();
        self.turn = Turn { ledger, carried, open: carried, ..Turn::default() };
        history::say(&mut self.messages, Block::Text(text.to_owned()));
        self.go_on();
    }

    /// Counts what a reply has cost.
    fn count(&mut self, message: &Message, usage: Option<Usage>) {
        match usage.filter(|usage| usage.total() > 0) {
            Some(usage) => self.turn.spent += usage,
            None => {
                let (input_tokens, output_tokens) =
                    (self.measured.estimate(&self.messages), budget::tokens_of(message));
                self.turn.guessed += Usage { input_tokens, output_tokens, ..Usage::default() };
            }
        }
        if self.turn.closing.is_none() {
            self.turn.steps += 1;
        }
        (self.turn.failure, self.turn.failures) = (None, 0);
    }

    /// Takes up the calls of a whole reply: each may run, or is refused.
    fn take_up(&mut self, wanted: Vec<Wanted>) {
        let used_up = budget::used_up(&self.limits, &self.spent());
        let mut beside = Vec::new();
        for call in self.register(wanted) {
            let print = fingerprint(&call.tool, &call.input);
            let why = match self.turn.guard.check(&self.limits, &self.tools, &call.tool, &print, &beside) {
                _ if used_up.is_some() => used_up.map(Why::Limit),
                Err(refused) => {
                    self.turn.refused.push(call.tool.clone());
                    Some(Why::Refused(refused))
                }
                Ok(()) if self.tool_calls() >= self.limits.max_tool_calls => Some(Why::Limit(Stop::MaxToolCalls)),
                Ok(()) => None,
            };
            if let Some(Why::Limit(stop)) = why {
                self.turn.beyond = Some(stop);
            }
            let fate = why.map_or(Fate::Open, |why| Fate::not_run(why, &self.limits));
            if fate == Fate::Open {
                beside.push(print);
            }
            self.turn.ledger.push(Entry::new(call, fate));
        }
        let open = self.open(|_| true);
        self.turn.begun = Begun::No;
        if open.is_empty() {
            self.settle(BTreeMap::new());
            self.go_on();
        } else if self.approvals == Approvals::Pause && open.iter().any(|call| self.may_wait(&call.tool)) {
            self.turn.phase = Phase::Approval;
        } else {
            self.turn.phase = Phase::Tools;
        }
    }

    /// Numbers the calls of a reply.
    fn register(&mut self, wanted: Vec<Wanted>) -> Vec<ToolCall> {
        self.turn.open = self.turn.ledger.len();
        let first = self.asked;
        self.asked += wanted.len();
        let number = |(index, Wanted { id, tool, input, .. })| ToolCall { ordinal: first + index, id, tool, input };
        wanted.into_iter().enumerate().map(number).collect()
    }

    /// The calls of this turn that have run, or will.
    fn tool_calls(&self) -> u32 {
        let run = |entry: &&Entry| !matches!(entry.fate, Fate::NotRun { .. });
        u32::try_from(self.turn.ledger.iter().skip(self.turn.carried).filter(run).count()).unwrap_or(u32::MAX)
    }

    /// Ends the turn, with none of these calls run.
    fn close(&mut self, wanted: Vec<Wanted>, why: Why, stop: Stop) {
        self.refuse(wanted, why);
        (self.turn.open, self.turn.phase) = (self.turn.ledger.len(), Phase::Over(stop));
    }

    /// A reply that could not be used: none of its calls is run, and the model may try once more.
    fn once_more(&mut self, wanted: Vec<Wanted>, stop: Stop) {
        self.refuse(wanted, Why::Broken(stop));
        if std::mem::replace(&mut self.turn.once_more, true) {
            (self.turn.open, self.turn.phase) = (self.turn.ledger.len(), Phase::Over(stop));
        } else {
            history::say(&mut self.messages, Block::Text(words::once_more(stop).to_owned()));
            self.go_on();
        }
    }

    /// Answers these calls with the reason why they were not run.
    fn refuse(&mut self, wanted: Vec<Wanted>, why: Why) {
        for call in self.register(wanted) {
            self.turn.ledger.push(Entry::new(call, Fate::not_run(why, &self.limits)));
        }
        self.settle(BTreeMap::new());
    }

    /// Refuses what is open: what waits was not approved, and the rest for this reason.
    fn refuse_open(&mut self, why: Why) {
        let (limits, open) = (&self.limits, self.turn.open);
        for entry in self.turn.ledger.iter_mut().skip(open) {
            let why = match entry.fate {
                Fate::Waiting(_) => Why::NotApproved,
                Fate::Open => why,
                _ => continue,
            };
            entry.fate = Fate::not_run(why, limits);
        }
        self.settle(BTreeMap::new());
    }

    /// Answers every call that is open, each once and in order, and counts what failed.
    fn settle(&mut self, mut outcomes: BTreeMap<usize, Outcome>) {
        let mut ended = Vec::new();
        for entry in self.turn.ledger.iter_mut().skip(self.turn.open) {
            let ToolCall { ordinal, id, tool, input } = &entry.call;
            let result = if let Fate::NotRun { told, .. } = &entry.fate {
                history::error(id, told)
            } else {
                let outcome = outcomes.remove(ordinal).unwrap_or_else(|| interrupted(&self.tools, tool));
                entry.fate = Fate::of(&outcome);
                let text = outcome.failure().map(Failure::message).unwrap_or_default();
                ended.push((tool.clone(), fingerprint(tool, input), outcome.clone()));
                // What the door writes has this shape.
                let result = serde_json::from_value(door::result_of(id, outcome));
                history::legal_result(result.unwrap_or_else(|_| history::error(id, &text)))
            };
            history::say(&mut self.messages, Block::ToolResult(result));
        }
        let ended = ended.iter().map(|(tool, print, outcome)| (tool.as_str(), print.as_str(), outcome));
        self.turn.guard.count(&self.limits, &self.tools, ended);
    }

    /// On to the next request; to the closing one, if this step was the last that may hold calls.
    fn go_on(&mut self) {
        let turn = &mut self.turn;
        let batch = &turn.ledger[turn.open.min(turn.ledger.len())..];
        let nothing_ran = batch.iter().all(|entry| matches!(entry.fate, Fate::NotRun { .. }));
        let in_circles = nothing_ran && !turn.refused.is_empty();
        for tool in std::mem::take(&mut turn.refused) {
            turn.guard.withdraw(&self.tools, &tool);
        }
        let limit = turn.beyond.take().or(in_circles.then_some(Stop::RepeatedFailures));
        let limit = limit.or((turn.steps >= self.limits.max_steps).then_some(Stop::MaxSteps));
        (turn.open, turn.phase) = (turn.ledger.len(), Phase::Model);
        match limit {
            None => {}
            Some(stop @ (Stop::MaxTokens | Stop::MaxCost)) => turn.phase = Phase::Over(stop),
            Some(stop) => {
                turn.closing = Some(stop);
                history::say(&mut self.messages, Block::Text(words::closing(stop, &self.limits)));
            }
        }
    }

    fn report_of(&self, stop: Stop) -> Report {
        let turn = &self.turn;
        let mut report = Report {
            steps: turn.steps,
            tool_calls: self.tool_calls(),
            usage: turn.spent,
            estimated: turn.guessed,
            ..Report::new(stop)
        };
        for (index, entry) in turn.ledger.iter().enumerate() {
            let handed_out = turn.phase == Phase::Tools && turn.begun == Begun::Perhaps;
            let is_read = self.tools.get(&entry.call.tool).is_none_or(|facts| facts.effect == Effect::ReadOnly);
            report.add(entry, index >= turn.open && handed_out && !is_read);
        }
        let why = match (stop, &turn.failure) {
            (Stop::ModelFailed, Some(failure)) => {
                format!("{} {}", words::stopped(stop, &self.limits), failure.sentence)
            }
            _ => words::stopped(stop, &self.limits),
        };
        report.with_answer(&why, turn.last_words.clone())
    }
}

/// The outcome of a call whose driver is gone, or which was not answered.
fn interrupted(tools: &Tools, tool: &str) -> Outcome {
    let text = "The call was interrupted.";
    Outcome::Failure(match tools.get(tool) {
        None => Failure::new(FailureKind::UnknownTool, format!("{text} There is no such tool.")),
        Some(facts) if facts.effect == Effect::ReadOnly => {
            Failure::new(FailureKind::Transient, text).with_changed(Changed::Nothing, facts.nothing.clone())
        }
        Some(facts) => Failure::new(FailureKind::OutcomeUnknown, format!("{text} Its outcome is unknown."))
            .with_changed(Changed::Unknown, facts.unknown.clone()),
    })
}

/// The outcome of such a call by what its record says.
fn found(tools: &Tools, call: &ToolCall, standing: Option<Standing>) -> Outcome {
    match standing {
        Some(Standing::Done(result)) => Outcome::Success { result, replayed: true },
        Some(Standing::Clear | Standing::Waits(_) | Standing::Approved | Standing::Denied) => {
            let text = "The call was interrupted before it was begun.";
            let nothing = tools
                .get(&call.tool)
                .map_or_else(|| String::from("Nothing was changed."), |facts| facts.nothing.clone());
            Outcome::Failure(Failure::new(FailureKind::Transient, text).with_changed(Changed::Nothing, nothing))
        }
        Some(Standing::Running | Standing::Unknown | Standing::Unavailable) | None => interrupted(tools, &call.tool),
    }
}

impl std::fmt::Debug for AgentRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("AgentRun");
        shown.field("messages", &self.messages.len()).field("steps", &self.turn.steps).finish_non_exhaustive()
    }
}
