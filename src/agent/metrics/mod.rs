//! What a request to the model and a turn leave behind: a metric line each, in the style of the tools' lines.
//!
//! **Why a line a request, and one a turn?** A request's line is written when the request ends, so that nothing of it is lost
//! with a process that dies later, latencies have percentiles, and tokens and money can be summed: a turn that is resumed
//! tells its steps and its cost again, from its beginning. A line has a few hundred bytes; its request costs far more.
//!
//! **Why the service as the only dimension?** A function has one model; each further dimension would multiply what is billed.
//!
//! A line holds no text of anybody.

mod lines;

use std::time::Duration;

pub(super) use self::lines::{RequestLine, turn};
use super::{model::ModelFailureKind as Kind, stop::Stop, usage::Usage};
use crate::telemetry::{Measured, Quantity};

/// One metric of a request, or of a turn.
#[derive(Debug)]
pub struct Metric<T: 'static> {
    /// Its name in CloudWatch.
    pub name: &'static str,
    /// What it says.
    pub meaning: &'static str,
    /// What is counted or measured, in CloudWatch's words.
    pub unit: &'static str,
    /// Whether every line has it. The others are there only when they count.
    pub is_in_every_line: bool,
    of: fn(&T) -> Option<Quantity>,
}

/// What became of one request to the model.
#[derive(Clone, Debug, Default)]
pub struct ModelCall {
    /// From the first attempt to the last word.
    pub duration: Duration,
    /// Attempts after the first, by the model's client.
    pub retries: u32,
    /// Attempts that the service has throttled.
    pub throttled: u32,
    /// What the model has told.
    pub usage: Usage,
    /// What it has not told, by estimate.
    pub estimated: Usage,
    /// What both cost, where there are prices.
    pub cost: Option<f64>,
    /// How it has failed. `None` with [`ModelCall::has_answered`] false: it was given up.
    pub failure: Option<Kind>,
    /// Whether there is an answer.
    pub has_answered: bool,
}

/// How one turn ended, or this driver's part of it.
#[derive(Clone, Debug)]
pub struct TurnEnd {
    /// Why.
    pub stop: Stop,
    /// How long this driver has taken.
    pub duration: Duration,
    /// Replies of the model, from the beginning of the turn.
    pub steps: u32,
    /// Calls that were run, from the beginning of the turn.
    pub tool_calls: u32,
    /// Tokens, told and estimated, from the beginning of the turn.
    pub usage: Usage,
    /// What they cost, where there are prices.
    pub cost: Option<f64>,
}

const COUNT: &str = "Count";
const MILLISECONDS: &str = "Milliseconds";
/// Money: CloudWatch has no unit for it.
const NONE: &str = "None";

const fn always<T>(
    name: &'static str,
    unit: &'static str,
    of: fn(&T) -> Option<Quantity>,
    meaning: &'static str,
) -> Metric<T> {
    Metric { name, meaning, unit, is_in_every_line: true, of }
}

const fn rare<T>(
    name: &'static str,
    unit: &'static str,
    of: fn(&T) -> Option<Quantity>,
    meaning: &'static str,
) -> Metric<T> {
    Metric { name, meaning, unit, is_in_every_line: false, of }
}

/// The metrics of a request.
pub const OF_REQUESTS: [Metric<ModelCall>; 18] = [
    always("ModelRequests", COUNT, |_| count(1_u32), "requests to the model that have ended"),
    always("ModelErrors", COUNT, |call| count(u32::from(call.failure.is_some())), "requests that failed"),
    always("ModelLatency", MILLISECONDS, |call| time(call.duration), "how long the request took, retries included"),
    always("ModelRetries", COUNT, |call| count(call.retries), "attempts after the first, by the SDK"),
    always("ModelThrottles", COUNT, |call| count(call.throttled), "attempts that Bedrock has throttled"),
    always("ModelInputTokens", COUNT, |call| count(call.usage.input_tokens), "tokens sent, without the cache"),
    always("ModelOutputTokens", COUNT, |call| count(call.usage.output_tokens), "tokens of the answer"),
    always(
        "ModelCacheReadTokens",
        COUNT,
        |call| count(call.usage.cache_read_input_tokens),
        "tokens read from the prompt cache",
    ),
    always(
        "ModelCacheWriteTokens",
        COUNT,
        |call| count(call.usage.cache_write_input_tokens),
        "tokens written to the prompt cache",
    ),
    rare(
        "ModelEstimatedTokens",
        COUNT,
        |call| count(call.estimated.total()).filter(|_| call.estimated.total() > 0),
        "tokens that the model has not told, by estimate",
    ),
    rare("ModelCost", NONE, |call| call.cost.map(Quantity::Amount), "what the request cost, by `PRICES`"),
    rare("ModelThrottled", COUNT, |call| failed(call, Kind::Throttled), "it failed: throttled, after the retries"),
    rare(
        "ModelUnavailable",
        COUNT,
        |call| failed(call, Kind::Unavailable),
        "it failed: the service, or the connection",
    ),
    rare(
        "ModelFailed",
        COUNT,
        |call| failed(call, Kind::Model),
        "it failed: the model itself; the loop repeats it once",
    ),
    rare("ModelTimeout", COUNT, |call| failed(call, Kind::Timeout), "it failed: no answer in the time that was left"),
    rare("ModelInvalid", COUNT, |call| failed(call, Kind::Invalid), "it failed: refused as invalid, or as too long"),
    rare("ModelDenied", COUNT, |call| failed(call, Kind::Denied), "it failed: no permission, no such model"),
    rare(
        "ModelGivenUp",
        COUNT,
        |call| counts(call.failure.is_none() && !call.has_answered),
        "it was given up, because the process ended or nobody waited for it",
    ),
];

/// The metrics of a turn.
pub const OF_TURNS: [Metric<TurnEnd>; 24] = [
    always("Turns", COUNT, |_| count(1_u32), "turns that have ended, paused or stopped; a resumed one each time"),
    always(
        "TurnDuration",
        MILLISECONDS,
        |turn| time(turn.duration),
        "how long the turn took, since it was resumed last",
    ),
    always("TurnSteps", COUNT, |turn| count(turn.steps), "replies of the model in the whole turn"),
    always("TurnToolCalls", COUNT, |turn| count(turn.tool_calls), "calls that were run in the whole turn"),
    always("TurnTokens", COUNT, |turn| count(turn.usage.total()), "tokens of the whole turn, told and estimated"),
    rare("TurnCost", NONE, |turn| turn.cost.map(Quantity::Amount), "what the whole turn cost, by `PRICES`"),
    ended("StopEndTurn", |turn| stopped(turn, Stop::EndTurn), "the model has answered"),
    ended("StopMaxSteps", |turn| stopped(turn, Stop::MaxSteps), "`max_steps` was reached"),
    ended("StopMaxToolCalls", |turn| stopped(turn, Stop::MaxToolCalls), "`max_tool_calls` was reached"),
    ended("StopMaxTokens", |turn| stopped(turn, Stop::MaxTokens), "`max_tokens` was reached"),
    ended("StopMaxCost", |turn| stopped(turn, Stop::MaxCost), "`max_cost` was reached"),
    ended(
        "StopRepeatedFailures",
        |turn| stopped(turn, Stop::RepeatedFailures),
        "nothing but what had failed was asked for",
    ),
    ended("StopTime", |turn| stopped(turn, Stop::Time), "the time was up"),
    ended("StopInterrupted", |turn| stopped(turn, Stop::Interrupted), "the process was ended"),
    ended("StopAwaitingApproval", |turn| stopped(turn, Stop::AwaitingApproval), "a person has to decide"),
    ended("StopModelFailed", |turn| stopped(turn, Stop::ModelFailed), "the model's call failed"),
    ended("StopNotSaved", |turn| stopped(turn, Stop::NotSaved), "the conversation could not be saved"),
    ended("StopCutOff", |turn| stopped(turn, Stop::CutOff), "the model's messages were cut off, twice"),
    ended(
        "StopMalformedReply",
        |turn| stopped(turn, Stop::MalformedReply),
        "the model's messages were not whole, twice",
    ),
    ended("StopEmptyAnswer", |turn| stopped(turn, Stop::EmptyAnswer), "the model said nothing, twice"),
    ended(
        "StopGuardrailIntervened",
        |turn| stopped(turn, Stop::GuardrailIntervened),
        "a guardrail has stopped the model",
    ),
    ended("StopContentFiltered", |turn| stopped(turn, Stop::ContentFiltered), "a filter has stopped the model"),
    ended(
        "StopModelContextWindowExceeded",
        |turn| stopped(turn, Stop::ModelContextWindowExceeded),
        "the conversation is too long for the model",
    ),
    ended(
        "StopUnknownStopReason",
        |turn| stopped(turn, Stop::UnknownStopReason),
        "for a reason that is not known here",
    ),
];

const fn ended(name: &'static str, of: fn(&TurnEnd) -> Option<Quantity>, meaning: &'static str) -> Metric<TurnEnd> {
    rare(name, COUNT, of, meaning)
}

#[expect(clippy::unnecessary_wraps, reason = "the tables take functions of one shape")]
fn count(number: impl Into<u64>) -> Option<Quantity> {
    Some(Quantity::Count(number.into()))
}

#[expect(clippy::unnecessary_wraps, reason = "the tables take functions of one shape")]
const fn time(time: Duration) -> Option<Quantity> {
    Some(Quantity::Time(time))
}

fn counts(happened: bool) -> Option<Quantity> {
    happened.then_some(Quantity::Count(1))
}

fn failed(call: &ModelCall, kind: Kind) -> Option<Quantity> {
    counts(call.failure == Some(kind))
}

fn stopped(turn: &TurnEnd, stop: Stop) -> Option<Quantity> {
    counts(turn.stop == stop)
}

/// The metrics that stand in the line of this.
fn measured<T>(metrics: &[Metric<T>], of: &T) -> Vec<Measured> {
    let one = |metric: &Metric<T>| Some(Measured { name: metric.name, unit: metric.unit, quantity: (metric.of)(of)? });
    metrics.iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stop_and_every_failure_is_counted_by_its_own_name() {
        let camel = |snake: &str| -> String {
            let word = |word: &str| word[..1].to_uppercase() + &word[1..];
            snake.split('_').map(word).collect()
        };
        for stop in Stop::ALL {
            let turn = TurnEnd {
                stop,
                duration: Duration::ZERO,
                steps: 0,
                tool_calls: 0,
                usage: Usage::default(),
                cost: None,
            };
            let stops: Vec<_> =
                measured(&OF_TURNS, &turn).iter().map(|one| one.name).filter(|name| name.starts_with("Stop")).collect();
            assert_eq!(stops, [format!("Stop{}", camel(stop.name()))]);
        }
        for kind in Kind::ALL {
            let call = ModelCall { failure: Some(kind), ..ModelCall::default() };
            let name =
                if kind == Kind::Model { String::from("ModelFailed") } else { format!("Model{}", camel(kind.name())) };
            assert_eq!(measured(&OF_REQUESTS, &call).last().map(|one| one.name), Some(name.as_str()));
        }
    }

    #[test]
    fn names_are_there_once_and_what_is_always_there_stands_first() {
        let mut names: Vec<_> = OF_REQUESTS.iter().map(|metric| metric.name).collect();
        names.extend(OF_TURNS.iter().map(|metric| metric.name));
        names.extend(crate::telemetry::metrics::METRICS.iter().map(|metric| metric.name));
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        assert!(OF_REQUESTS.is_sorted_by_key(|metric| !metric.is_in_every_line));
        assert!(OF_TURNS.is_sorted_by_key(|metric| !metric.is_in_every_line));
    }
}
