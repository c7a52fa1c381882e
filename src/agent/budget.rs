//! Whether a request to the model still fits: tokens, money, time. It is asked before each request, with an estimate.
//!
//! The estimate of a request's input is what the last answer said of the conversation so far, and a token for each three
//! bytes that came after it. Before the first answer only the messages are estimated: what the tools cost depends on the
//! model. A request that failed, that was given up, whose driver is gone, or whose answer did not say what it cost, is
//! counted by its estimate, and what was heard of an answer by a token for each three bytes.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{conversation::Message, limits::Limits, stop::Stop, usage::Usage};

/// Few bytes a token: JSON, ids and languages other than English have few.
const BYTES_A_TOKEN: usize = 3;

/// What the messages up to some point have taken, as the model said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Measured {
    messages: usize,
    tokens: u64,
}

impl Measured {
    /// The model has just answered, and its answer is the last message.
    pub const fn new(messages: usize, usage: &Usage) -> Self {
        Self { messages, tokens: usage.total() }
    }

    /// The tokens of input that the next request will take.
    pub fn estimate(self, messages: &[Message]) -> u64 {
        let new = messages.get(self.messages..).unwrap_or_default();
        self.tokens.saturating_add(new.iter().map(tokens_of).sum())
    }
}

/// The tokens of a message, about.
pub(super) fn tokens_of(message: &Message) -> u64 {
    tokens_in(json!(message).to_string().len())
}

/// The tokens of so many bytes, about.
pub(super) fn tokens_in(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(BYTES_A_TOKEN)).unwrap_or(u64::MAX)
}

/// The most tokens of output that the next request may ask for, or the limit that it does not fit into. `spent` is what
/// the turn has taken, `input` the estimate of the request.
pub(super) fn output_left(limits: &Limits, spent: &Usage, input: u64) -> Result<u32, Stop> {
    let tokens = limits.max_tokens.saturating_sub(spent.total()).saturating_sub(input);
    if tokens == 0 {
        return Err(Stop::MaxTokens);
    }
    let affordable = match (limits.max_cost, limits.prices) {
        (Some(most), Some(prices)) => {
            let asked = Usage { input_tokens: input, ..Usage::default() };
            prices.output_for((most - prices.of(spent) - prices.of(&asked)).max(0.0))
        }
        _ => u64::MAX,
    };
    if affordable == 0 {
        return Err(Stop::MaxCost);
    }
    let most = u64::from(limits.max_output_tokens).min(tokens).min(affordable);
    Ok(u32::try_from(most).unwrap_or(u32::MAX))
}

/// The limit that is used up already, whatever the next request is.
pub(super) fn used_up(limits: &Limits, spent: &Usage) -> Option<Stop> {
    output_left(limits, spent, 0).err()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::limits::Prices;

    const SPENT: Usage =
        Usage { input_tokens: 300, output_tokens: 100, cache_read_input_tokens: 50, cache_write_input_tokens: 50 };

    #[test]
    fn the_cache_counts_and_the_output_is_cut_to_what_is_left() {
        assert_eq!(output_left(&Limits::new(1_000), &SPENT, 400), Ok(100));
        assert_eq!(output_left(&Limits::new(1_000), &SPENT, 500), Err(Stop::MaxTokens));
        assert_eq!(output_left(&Limits::new(100_000), &SPENT, 400), Ok(4_096));
    }

    #[test]
    fn a_cost_needs_prices_and_cuts_the_output_too() {
        let prices = Prices { input: 1_000.0, output: 10_000.0, cache_read: 0.0, cache_write: 0.0 };
        let dear = Limits { max_cost: Some(2.0), prices: Some(prices), ..Limits::new(1_000_000) };
        // 300 and 400 tokens of input cost 0.7, 100 of output 1.0; 0.3 is left, which buys 30.
        assert!(output_left(&dear, &SPENT, 400).is_ok_and(|most| (29..=30).contains(&most)));
        assert_eq!(output_left(&dear, &SPENT, 700), Err(Stop::MaxCost));
        assert_eq!(output_left(&Limits { prices: None, ..dear }, &SPENT, 700), Ok(4_096));
    }
}
