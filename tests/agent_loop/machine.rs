//! The machine without driver: replies and outcomes are given to it by hand, and each request is checked.

use std::{collections::VecDeque, time::Duration};

use action_group::{
    agent::{
        conversation::Block,
        limits::{Limits, TimeLeft},
        model::{ModelFailure, ModelFailureKind, ModelReply, ModelRequest},
        report::Report,
        run::{AgentRun, Next, ToolCall},
        stop::Stop,
        tools::Tools,
    },
    call::Standing,
    outcome::{Failure, FailureKind, Outcome},
};
use serde_json::{Value, json};

use crate::{legal, toolbox::toolbox};

pub fn tools() -> Tools {
    Tools::of(&toolbox().0)
}

/// Limits that no test reaches unless it sets one.
pub fn wide() -> Limits {
    Limits {
        max_steps: 50,
        max_tool_calls: 500,
        max_consecutive_failures: 50,
        max_identical_failures: 50,
        ..Limits::new(1_000_000)
    }
}

/// A reply as Converse gives it.
#[allow(clippy::needless_pass_by_value, reason = "it is called with `json!`")]
pub fn reply(content: Value, stop_reason: &str) -> ModelReply {
    ModelReply::from_converse(&json!({
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": stop_reason,
        "usage": {"inputTokens": 20, "outputTokens": 10, "totalTokens": 30},
    }))
}

pub fn says(text: &str) -> ModelReply {
    reply(json!([{ "text": text }]), "end_turn")
}

/// A reply with these calls: id, tool, input.
pub fn calls<const N: usize>(calls: [(&str, &str, Value); N]) -> ModelReply {
    let block = |(id, name, input)| json!({"toolUse": {"toolUseId": id, "name": name, "input": input}});
    reply(calls.into_iter().map(block).collect(), "tool_use")
}

pub fn look(id: &str, what: &str) -> ModelReply {
    calls([(id, "look", json!({ "what": what }))])
}

pub fn success() -> Outcome {
    Outcome::Success { result: json!({"found": "it"}), replayed: false }
}

pub fn fails(kind: FailureKind) -> Outcome {
    Outcome::Failure(Failure::new(kind, "It did not work."))
}

/// A call that has run and asks for a person by itself.
pub fn asks(key: &str) -> Outcome {
    Outcome::Failure(Failure::new(FailureKind::ApprovalRequired, "It waits.").awaiting(&key))
}

pub fn model_fails(kind: ModelFailureKind) -> ModelFailure {
    ModelFailure { kind, sentence: String::from("The model is not there.") }
}

/// A machine with its script.
pub struct Machine {
    pub run: AgentRun,
    pub replies: VecDeque<ModelReply>,
    pub requests: Vec<ModelRequest>,
    pub ran: Vec<ToolCall>,
    /// How calls end.
    pub outcome: Box<dyn Fn(&ToolCall) -> Outcome>,
    /// How calls stand.
    pub standing: Box<dyn Fn(&ToolCall) -> Standing>,
    pub time: TimeLeft,
}

impl Machine {
    pub fn new(limits: Limits, replies: impl IntoIterator<Item = ModelReply>) -> Self {
        let mut run = AgentRun::new(limits, tools());
        run.ask("Please help.");
        Self::of(run, replies)
    }

    pub fn of(run: AgentRun, replies: impl IntoIterator<Item = ModelReply>) -> Self {
        Self {
            run,
            replies: replies.into_iter().collect(),
            requests: Vec::new(),
            ran: Vec::new(),
            outcome: Box::new(by_word),
            standing: Box::new(|_| Standing::Clear),
            time: TimeLeft(Duration::from_mins(1)),
        }
    }

    /// Does the next thing. The last reply is repeated.
    pub fn step(&mut self) -> Option<Report> {
        match self.run.next(self.time) {
            Next::CallModel(request) => {
                assert_eq!(legal::history::faults(&json!(request)), [""; 0], "{}", json!(request.messages));
                self.requests.push(request);
                let reply =
                    if self.replies.len() > 1 { self.replies.pop_front() } else { self.replies.front().cloned() };
                self.run.model_replied(reply.expect("a reply"));
            }
            Next::AskApproval(calls) | Next::ReadRecords(calls) => {
                let standings = calls.iter().map(|call| (call.ordinal, (self.standing)(call))).collect();
                self.run.records_read(standings);
            }
            Next::RunTools(calls) => {
                let ended = calls.iter().map(|call| (call.ordinal, (self.outcome)(call))).collect();
                self.ran.extend(calls);
                self.run.tools_ended(ended);
            }
            Next::Pause(_) => return Some(self.run.report()),
            Next::End(report) => return Some(report),
        }
        None
    }

    /// Goes on until the turn ends or pauses.
    pub fn go(&mut self) -> Report {
        let end = (0..500).find_map(|_| self.step()).expect("the loop ends");
        // Whatever has happened, the next message finds a history that Bedrock takes.
        let mut next = self.run.clone();
        next.resumed();
        next.ask("And now?");
        if let Next::ReadRecords(calls) = next.next(TimeLeft::UNLIMITED) {
            next.records_read(calls.iter().map(|call| (call.ordinal, Standing::Unknown)).collect());
        }
        match next.next(TimeLeft::UNLIMITED) {
            Next::CallModel(request) => {
                assert_eq!(legal::history::faults(&json!(request)), [""; 0], "{}", json!(request));
            }
            // A conversation may have outgrown its budget.
            Next::End(report) => assert!(matches!(report.stop, Stop::MaxTokens | Stop::MaxCost), "{report:?}"),
            other => panic!("{other:?}"),
        }
        end
    }

    /// The run as another process would load it.
    pub fn reload(&mut self) {
        let json = serde_json::to_string(&self.run).expect("JSON");
        self.run = serde_json::from_str(&json).expect("a run");
        self.run.resumed();
    }

    /// What the results of the last request say: id and text.
    pub fn results(&self) -> Vec<(String, String)> {
        let last = self.requests.last().and_then(|request| request.messages.last()).expect("a message");
        let result = |block: &Block| match block {
            Block::ToolResult(result) => Some((result.tool_use_id.clone(), json!(result.content).to_string())),
            _ => None,
        };
        last.content.iter().filter_map(result).collect()
    }

    /// The names of the tools in each request's `toolConfig`.
    pub fn offered(&self) -> Vec<Vec<String>> {
        let names = |request: &ModelRequest| {
            let tools = request.tool_config.as_ref().map(|config| config["tools"].clone()).unwrap_or_default();
            let name = |tool: &Value| tool["toolSpec"]["name"].as_str().map(String::from);
            tools.as_array().into_iter().flatten().filter_map(name).collect()
        };
        self.requests.iter().map(names).collect()
    }
}

/// A `look` ends as its word says.
pub fn by_word(call: &ToolCall) -> Outcome {
    match call.input["what"].as_str() {
        Some("fail") => fails(FailureKind::Rejected),
        Some("busy") => fails(FailureKind::InProgress),
        _ => success(),
    }
}
