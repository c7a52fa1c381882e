//! The lines themselves: of a request, also if nobody waits for it any more, and of a turn.

use serde_json::{Map, Value as Json};
use tokio::time::Instant;

use super::{
    super::{drive::Heard, limits::Prices, model::ModelFailureKind as Kind, usage::Usage},
    ModelCall, OF_REQUESTS, OF_TURNS, TurnEnd, measured,
};
use crate::telemetry::{Origin, Telemetry};

fn properties<const N: usize>(origin: &Origin, more: [(&str, &str); N]) -> Map<String, Json> {
    let own = [("door", origin.door), ("request_id", origin.request_id.as_str())];
    let trace = origin.trace_id.as_deref().map(|id| ("trace_id", id));
    own.into_iter().chain(trace).chain(more).map(|(name, value)| (name.to_owned(), value.into())).collect()
}

/// The line of a request that is on its way. It is written however that ends, also if nobody waits for it any more.
pub(in super::super) struct RequestLine<'a> {
    telemetry: &'a Telemetry,
    origin: &'a Origin,
    conversation: &'a str,
    began: Instant,
    call: ModelCall,
}

impl<'a> RequestLine<'a> {
    pub fn begin(telemetry: &'a Telemetry, origin: &'a Origin, conversation: &'a str) -> Self {
        Self { telemetry, origin, conversation, began: Instant::now(), call: ModelCall::default() }
    }

    pub fn heard(&mut self, heard: Heard<'_>) {
        if let Heard::Attempt { number, throttled } = heard {
            self.call.retries = number.saturating_sub(1);
            self.call.throttled += u32::from(throttled);
        }
    }

    pub fn answered(&mut self) {
        self.call.has_answered = true;
    }

    pub fn failed(&mut self, kind: Kind) {
        self.call.failure = Some(kind);
    }

    /// What it has cost the turn: told, and estimated.
    pub fn cost(&mut self, usage: Usage, estimated: Usage, prices: Option<Prices>) {
        let mut all = usage;
        all += estimated;
        (self.call.usage, self.call.estimated) = (usage, estimated);
        self.call.cost = prices.map(|prices| prices.of(&all));
    }
}

impl Drop for RequestLine<'_> {
    fn drop(&mut self) {
        self.call.duration = self.began.elapsed();
        let outcome = match self.call.failure {
            Some(kind) => kind.name(),
            None if self.call.has_answered => "answered",
            None => "given_up",
        };
        let properties = properties(self.origin, [("conversation", self.conversation), ("outcome", outcome)]);
        self.telemetry.measure(measured(&OF_REQUESTS, &self.call), properties);
    }
}

/// Writes the line of a turn.
pub(in super::super) fn turn(telemetry: &Telemetry, origin: &Origin, conversation: &str, end: &TurnEnd) {
    let properties = properties(origin, [("conversation", conversation), ("stop", end.stop.name())]);
    telemetry.measure(measured(&OF_TURNS, end), properties);
}
