//! The calls of a reply: which may run, how each is answered, and what comes after.

use std::collections::BTreeMap;

use super::{
    super::{
        budget,
        conversation::{Block, Message, Role, ToolResult},
        history::{self, Wanted},
        ledger::{Entry, Fate},
        stop::Stop,
        tools::{Facts, Tools},
        usage::Usage,
        words::{self, Why},
    },
    AgentRun, Approvals, Begun, Phase, ToolCall, Turn,
};
use crate::{
    call::Standing,
    door::tool_result,
    outcome::{Changed, Failure, FailureKind, Outcome},
    tool::Effect,
};

impl AgentRun {
    /// Counts what a reply has cost.
    pub(super) fn count(&mut self, message: &Message, usage: Option<Usage>) {
        if let Some(usage) = usage.filter(|usage| usage.total() > 0) {
            self.turn.spent += usage;
        } else {
            let (input_tokens, output_tokens) = (self.measured.estimate(&self.messages), budget::tokens_of(message));
            self.turn.guessed += Usage { input_tokens, output_tokens, ..Usage::default() };
        }
        if self.turn.closing.is_none() {
            self.turn.steps += 1;
        }
        (self.turn.failure, self.turn.failures) = (None, 0);
    }

    /// Counts a request without an answer.
    pub(super) fn count_unanswered(&mut self) {
        self.turn.guessed += Usage { input_tokens: self.measured.estimate(&self.messages), ..Usage::default() };
    }

    /// Takes up the calls of a whole reply: each may run, or is refused.
    pub(super) fn take_up(&mut self, wanted: Vec<Wanted>) {
        let used_up = budget::used_up(&self.limits, &self.spent());
        let mut beside = Vec::new();
        for call in self.register(wanted) {
            let print = call.fingerprint();
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
        (self.turn.begun, self.turn.asked) = (Begun::No, false);
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
    pub(super) fn register(&mut self, wanted: Vec<Wanted>) -> Vec<ToolCall> {
        self.turn.open = self.turn.ledger.len();
        let first = self.asked;
        self.asked += wanted.len();
        let number = |(index, Wanted { id, tool, input, .. })| ToolCall { ordinal: first + index, id, tool, input };
        wanted.into_iter().enumerate().map(number).collect()
    }

    /// Ends the turn, with none of these calls run.
    pub(super) fn close(&mut self, wanted: Vec<Wanted>, why: Why, stop: Stop) {
        self.refuse(wanted, why);
        (self.turn.open, self.turn.phase) = (self.turn.ledger.len(), Phase::Over(stop));
    }

    /// A reply that could not be used: none of its calls is run, and the model may try once more.
    pub(super) fn once_more(&mut self, wanted: Vec<Wanted>, stop: Stop) {
        self.refuse(wanted, Why::Broken(stop));
        if std::mem::replace(&mut self.turn.once_more, true) {
            (self.turn.open, self.turn.phase) = (self.turn.ledger.len(), Phase::Over(stop));
        } else {
            history::say(&mut self.messages, Block::Text(words::once_more(stop).to_owned()));
            self.go_on();
        }
    }

    /// Answers these calls with the reason why they were not run.
    pub(super) fn refuse(&mut self, wanted: Vec<Wanted>, why: Why) {
        for call in self.register(wanted) {
            self.turn.ledger.push(Entry::new(call, Fate::not_run(why, &self.limits)));
        }
        self.settle(BTreeMap::new());
    }

    /// Answers every call that is open and does not wait, each once and in its place; counts what failed, once all have an end.
    pub(super) fn settle(&mut self, mut outcomes: BTreeMap<usize, Outcome>) {
        let may_have_begun = self.turn.begun == Begun::Perhaps;
        for (place, entry) in self.turn.ledger.iter_mut().skip(self.turn.open).enumerate() {
            if entry.answered || matches!(entry.fate, Fate::Waiting(_)) {
                continue;
            }
            let ToolCall { ordinal, id, .. } = &entry.call;
            let result = if let Fate::NotRun { told, .. } = &entry.fate {
                history::error(id, told)
            } else {
                // What the tool of today does not take says nothing of what the tool before has done.
                let perhaps = may_have_begun || entry.in_doubt;
                let is_told = |outcome: &Outcome| !(perhaps && entry.before.is_some() && is_not_taken(outcome));
                let outcome = outcomes.remove(ordinal).filter(is_told);
                let outcome = outcome.unwrap_or_else(|| interrupted(entry.facts(&self.tools)));
                entry.fate = Fate::of(&outcome);
                let text = outcome.failure().map(Failure::message).unwrap_or_default();
                // What the door writes has this shape.
                let result = serde_json::from_value(tool_result::of(id, outcome));
                history::legal_result(result.unwrap_or_else(|_| history::error(id, &text)))
            };
            entry.answered = true;
            answer(&mut self.messages, place, result);
        }
        let batch = &self.turn.ledger[self.turn.open.min(self.turn.ledger.len())..];
        if !batch.iter().any(Entry::is_open) {
            self.turn.guard.count(&self.limits, &self.tools, batch);
        }
    }

    /// Starts a turn; what was just settled stays in its report.
    pub(super) fn begin(&mut self, text: &str) {
        let ledger = self.turn.ledger.split_off(self.turn.open.min(self.turn.ledger.len()));
        let carried = ledger.len();
        self.turn = Turn { ledger, carried, open: carried, ..Turn::default() };
        history::say(&mut self.messages, Block::Text(text.to_owned()));
        self.go_on();
    }

    /// On to the next request; to the closing one, if this step was the last that may hold calls.
    pub(super) fn go_on(&mut self) {
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
}

/// Puts a result where it belongs: the first of its batch begins the person's message, and those that wait are put in between.
fn answer(messages: &mut Vec<Message>, place: usize, result: ToolResult) {
    let result = Block::ToolResult(result);
    match messages.last_mut() {
        Some(last) if last.role == Role::User => last.content.insert(place.min(last.content.len()), result),
        _ => messages.push(Message { role: Role::User, content: vec![result] }),
    }
}

/// Whether the pipeline has refused the call before it looked at its record: no such tool, or not with these arguments.
fn is_not_taken(outcome: &Outcome) -> bool {
    let kind = outcome.failure().map(Failure::kind);
    matches!(kind, Some(FailureKind::UnknownTool | FailureKind::InvalidInput))
}

/// The outcome of a call whose driver is gone, or which was not answered.
fn interrupted(facts: Option<&Facts>) -> Outcome {
    let (text, closing) = words::interrupted(facts);
    let (kind, changed) = match facts {
        Some(facts) if facts.effect == Effect::ReadOnly => (FailureKind::Transient, Changed::Nothing),
        _ => (FailureKind::OutcomeUnknown, Changed::Unknown),
    };
    Outcome::Failure(Failure::new(kind, text).with_changed(changed, closing.to_owned()))
}

/// The outcome of such a call by what its record says.
pub(super) fn found(tools: &Tools, entry: &Entry, standing: Option<Standing>) -> Outcome {
    let begun_elsewhere = entry.before.is_some();
    match (standing, tools.get(&entry.call.tool)) {
        (Some(Standing::Done(result)), _) => Outcome::Success { result, replayed: true },
        _ if entry.in_doubt => interrupted(entry.facts(tools)),
        // What is not taken, and that there is no record, count only where the tool that may have been run is the one that
        // has looked.
        (Some(Standing::Refused(failure)), _) if !begun_elsewhere => Outcome::Failure(failure),
        (Some(Standing::Clear), Some(facts)) if !begun_elsewhere => not_begun(facts),
        (Some(Standing::Approved | Standing::Denied), Some(facts)) => not_begun(facts),
        _ => interrupted(entry.facts(tools)),
    }
}

fn not_begun(facts: &Facts) -> Outcome {
    let text = "The call was interrupted before it was begun.";
    Outcome::Failure(Failure::new(FailureKind::Transient, text).with_changed(Changed::Nothing, facts.nothing.clone()))
}
