//! How much one turn of a conversation may take, from the person's message to the answer.
//!
//! | limit | default | what happens at it |
//! | --- | --- | --- |
//! | `max_steps` | 10 | one closing request, whose calls are not run, then the end |
//! | `max_tool_calls` | 25 | what is beyond is not run; one closing request, then the end |
//! | `max_consecutive_failures` | 3 | the tool is withdrawn |
//! | `max_identical_failures` | 2 | the same call is not run again |
//! | `max_tokens` | none: must be given | no further request, no further call |
//! | `max_cost` | none | as `max_tokens` |
//! | `max_output_tokens` | 4096 | the model stops there; cut to what `max_tokens` and `max_cost` leave |
//! | `max_result_bytes` | 32 KiB | the model is told how to ask for less |
//! | `shortest_step` | 1 s | with less time left, no request is begun |
//!
//! A step is one reply of the model together with the calls in it; steps and calls are counted apart. The closing request
//! is no step. What counts as a failure: `docs/agent-loop.md`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::usage::Usage;

/// The limits of a turn. [`Limits::new`] has the defaults; every field may be set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Replies of the model that may hold calls.
    pub max_steps: u32,
    /// Calls that are run.
    pub max_tool_calls: u32,
    /// Replies in a row in which a tool did nothing but fail, whatever other tools did in between.
    pub max_consecutive_failures: u32,
    /// Failures of the very same call (tool and canonical arguments).
    pub max_identical_failures: u32,
    /// Tokens of all requests and answers, those of the cache and of failed and interrupted requests included.
    pub max_tokens: u64,
    /// What the tokens may cost, in the currency of [`Limits::prices`]; counts only together with those.
    pub max_cost: Option<f64>,
    /// What tokens cost.
    pub prices: Option<Prices>,
    /// The most tokens of one answer.
    pub max_output_tokens: u32,
    /// The most bytes of JSON of one result.
    pub max_result_bytes: usize,
    /// The least time in which a request to the model is of use.
    pub shortest_step: Duration,
}

impl Limits {
    /// The defaults, within this many tokens.
    pub const fn new(max_tokens: u64) -> Self {
        Self {
            max_steps: 10,
            max_tool_calls: 25,
            max_consecutive_failures: 3,
            max_identical_failures: 2,
            max_tokens,
            max_cost: None,
            prices: None,
            max_output_tokens: 4_096,
            max_result_bytes: 32 * 1024,
            shortest_step: Duration::from_secs(1),
        }
    }
}

/// What a million tokens cost, in any one currency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prices {
    /// Of input.
    pub input: f64,
    /// Of output.
    pub output: f64,
    /// Read from the cache.
    pub cache_read: f64,
    /// Written to the cache.
    pub cache_write: f64,
}

impl Prices {
    /// What this usage costs.
    pub fn of(&self, usage: &Usage) -> f64 {
        let cost = |tokens: u64, price: f64| as_float(tokens) * price / 1_000_000.0;
        cost(usage.input_tokens, self.input)
            + cost(usage.output_tokens, self.output)
            + cost(usage.cache_read_input_tokens, self.cache_read)
            + cost(usage.cache_write_input_tokens, self.cache_write)
    }

    /// The tokens of output that so much money buys.
    pub(super) fn output_for(&self, money: f64) -> u64 {
        if self.output <= 0.0 {
            return u64::MAX;
        }
        let tokens = (money / self.output * 1_000_000.0).floor();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast of a float saturates")]
        let tokens = tokens as u64;
        tokens
    }
}

#[expect(clippy::cast_precision_loss, reason = "no conversation has 2^53 tokens")]
fn as_float(tokens: u64) -> f64 {
    tokens as f64
}

/// The time that is left for work, told by whoever has a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLeft(pub Duration);

impl TimeLeft {
    /// More than anybody needs.
    pub const UNLIMITED: Self = Self(Duration::MAX);
}
