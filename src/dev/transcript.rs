//! What a loop does, told: on stderr as it goes, and collected for the document that `dev run-loop` prints.

use serde_json::{Value, json};

use super::account::{Tone, tell};
use crate::{
    agent::{drive::Happening, report::Report, run::ToolCall},
    outcome::Outcome,
    telemetry::bounded,
};

/// The requests that were sent and the calls that were run.
#[derive(Default)]
pub struct Transcript {
    requests: Vec<Value>,
    /// Ordinal, tool, outcome.
    attempted: Vec<(usize, String, &'static str)>,
}

impl Transcript {
    /// Takes down what happens, and tells it.
    pub fn note(&mut self, happening: &Happening<'_>) {
        match happening {
            Happening::Asked(request) => {
                self.requests.push(json!(request));
                let (number, messages) = (self.requests.len(), request.messages.len());
                tell(Tone::Quiet, &format!("request {number} to the model (messages: {messages})"));
            }
            Happening::ModelFailed(failure) => {
                tell(Tone::Bad, &format!("the model's call failed: {}", failure.sentence));
            }
            Happening::Ended(call, outcome) => self.ended(call, outcome),
            _ => {}
        }
    }

    fn ended(&mut self, call: &ToolCall, outcome: &Outcome) {
        let tone = if outcome.failure().is_some() { Tone::Bad } else { Tone::Good };
        let (tool, name) = (bounded(&call.tool), outcome.name());
        tell(tone, &format!("call {} of {tool}: {name}", call.ordinal + 1));
        self.attempted.push((call.ordinal, call.tool.clone(), name));
    }

    /// The document: how it ended, what was sent, what was run.
    pub fn document(mut self, report: &Report) -> Value {
        self.attempted.sort_by_key(|(ordinal, ..)| *ordinal);
        let attempted = self.attempted.into_iter().map(|(_, tool, outcome)| json!({"tool": tool, "outcome": outcome}));
        let mut usage = json!(report.usage);
        usage["totalTokens"] = report.usage.total().into();
        json!({
            "stop": report.stop,
            "answer": report.answer,
            "requests": self.requests,
            "attempted": attempted.collect::<Vec<_>>(),
            "usage": usage,
            "report": report,
        })
    }
}
