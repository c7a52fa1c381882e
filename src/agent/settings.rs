//! The settings of a loop, read from the environment like those of the function: `docs/settings.md` has the table.

use std::time::Duration;

use super::limits::{Limits, Prices};
use crate::env::Env;

/// What the loop needs to know besides the function's own settings.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopSettings {
    /// `MODEL_ID`: the model, or the inference profile. Required.
    pub model: String,
    /// `CONVERSATIONS_TABLE`: the DynamoDB table of the conversations. Required.
    pub conversations_table: String,
    /// `CONVERSATION_HOURS`: how long a conversation is kept, from its beginning. Default: 24.
    pub keep: Duration,
    /// `SYSTEM_PROMPT`: what the model is told besides the conversation. Default: nothing.
    pub system: Option<String>,
    /// `MAX_…`, `SHORTEST_STEP_MS`, `PRICES`: how much one turn may take.
    pub limits: Limits,
}

/// What one turn may take in tokens, where nothing is set.
const MAX_TOKENS: u64 = 100_000;

impl LoopSettings {
    /// Reads them. Faults are in `env`: call [`Env::finish`] before you use any of this.
    pub fn read(env: &mut Env) -> Self {
        const MODEL: &str =
            "the id or the ARN of a Bedrock model or inference profile, for example amazon.nova-lite-v1:0";
        Self {
            model: env.required("MODEL_ID", MODEL, |text| is_model(text).then(|| text.to_owned())),
            conversations_table: env.table("CONVERSATIONS_TABLE"),
            keep: Duration::from_hours(env.number("CONVERSATION_HOURS", 24, 1..=8_760)),
            system: env.optional("SYSTEM_PROMPT", "a text that is not blank", |text| {
                (!text.trim().is_empty()).then(|| text.to_owned())
            }),
            limits: limits(env),
        }
    }
}

fn limits(env: &mut Env) -> Limits {
    let defaults = Limits::new(MAX_TOKENS);
    let mut count = |name, default: u32, most| {
        u32::try_from(env.number(name, default.into(), 1..=most)).unwrap_or(default) // the range is a u32's
    };
    let limits = Limits {
        max_steps: count("MAX_STEPS", defaults.max_steps, 100),
        max_tool_calls: count("MAX_TOOL_CALLS", defaults.max_tool_calls, 1_000),
        max_consecutive_failures: count("MAX_CONSECUTIVE_FAILURES", defaults.max_consecutive_failures, 100),
        max_identical_failures: count("MAX_IDENTICAL_FAILURES", defaults.max_identical_failures, 100),
        max_output_tokens: count("MAX_OUTPUT_TOKENS", defaults.max_output_tokens, 128_000),
        ..defaults
    };
    let bytes = env.number("MAX_RESULT_BYTES", limits.max_result_bytes as u64, 1_024..=350_000);
    let limits = Limits {
        max_tokens: env.number("MAX_TOKENS", MAX_TOKENS, 1_000..=10_000_000),
        shortest_step: Duration::from_millis(env.number(
            "SHORTEST_STEP_MS",
            u64::try_from(limits.shortest_step.as_millis()).unwrap_or_default(), // a second
            1..=60_000,
        )),
        max_result_bytes: usize::try_from(bytes).unwrap_or(limits.max_result_bytes), // the range is a usize's
        max_cost: env.optional("MAX_COST", "an amount above 0, for example 0.25", amount).filter(|cost| *cost > 0.0),
        prices: env.optional(
            "PRICES",
            "four prices for a million tokens: input, output, cache reads, cache writes, for example 3,15,0.3,3.75",
            prices,
        ),
        ..limits
    };
    if limits.max_cost.is_some() && limits.prices.is_none() {
        env.fault("MAX_COST is set, but PRICES is not, so that no cost could be known.");
    }
    limits
}

/// <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html>: `modelId`, without prompts.
fn is_model(text: &str) -> bool {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b".:/_-".contains(&byte);
    (1..=2048).contains(&text.len()) && text.bytes().all(is_legal)
}

/// A plain decimal number: no sign, no exponent.
fn amount(text: &str) -> Option<f64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    is_plain.then(|| text.parse().ok())?.filter(|amount: &f64| amount.is_finite())
}

fn prices(text: &str) -> Option<Prices> {
    let all: Vec<f64> = text.split(',').map(|price| amount(price.trim())).collect::<Option<_>>()?;
    let [input, output, cache_read, cache_write] = all[..] else { return None };
    Some(Prices { input, output, cache_read, cache_write })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::SettingsError;

    const LEAST: [(&str, &str); 2] = [("MODEL_ID", "amazon.nova-lite-v1:0"), ("CONVERSATIONS_TABLE", "conversations")];

    fn read(more: &[(&str, &str)]) -> Result<LoopSettings, SettingsError> {
        let mut env = Env::of(LEAST.iter().chain(more).copied());
        let settings = LoopSettings::read(&mut env);
        env.finish().map(|()| settings)
    }

    #[test]
    fn only_the_model_and_the_table_have_no_default() {
        let settings = read(&[]).expect("settings");
        assert_eq!(settings.limits, Limits::new(100_000));
        assert_eq!((settings.keep, settings.system), (Duration::from_hours(24), None));
        let mut env = Env::of::<&str, &str>([]);
        LoopSettings::read(&mut env);
        let error = env.finish().expect_err("faults").to_string();
        assert!(error.contains("MODEL_ID is not set.") && error.contains("CONVERSATIONS_TABLE is not set."), "{error}");
    }

    #[test]
    fn each_limit_can_be_set_to_one_and_not_to_nothing() {
        for name in [
            "MAX_STEPS",
            "MAX_TOOL_CALLS",
            "MAX_CONSECUTIVE_FAILURES",
            "MAX_IDENTICAL_FAILURES",
            "MAX_OUTPUT_TOKENS",
            "SHORTEST_STEP_MS",
        ] {
            assert!(read(&[(name, "1")]).is_ok(), "{name}");
            let fault = read(&[(name, "0")]).expect_err("a fault").to_string();
            assert!(fault.contains(&format!("{name} is \"0\", but must be a whole number from 1 to")), "{fault}");
        }
        let all = [
            ("MAX_STEPS", "2"),
            ("MAX_TOOL_CALLS", "3"),
            ("MAX_CONSECUTIVE_FAILURES", "4"),
            ("MAX_IDENTICAL_FAILURES", "5"),
            ("MAX_OUTPUT_TOKENS", "6"),
            ("MAX_TOKENS", "7000"),
            ("MAX_RESULT_BYTES", "8000"),
            ("SHORTEST_STEP_MS", "9"),
            ("MAX_COST", "0.25"),
            ("PRICES", "3, 15, 0.3, 3.75"),
        ];
        let limits = read(&all).expect("settings").limits;
        let wanted = Limits {
            max_steps: 2,
            max_tool_calls: 3,
            max_consecutive_failures: 4,
            max_identical_failures: 5,
            max_output_tokens: 6,
            max_result_bytes: 8_000,
            shortest_step: Duration::from_millis(9),
            max_cost: Some(0.25),
            prices: Some(Prices { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75 }),
            ..Limits::new(7_000)
        };
        assert_eq!(limits, wanted);
    }

    #[test]
    fn every_limit_can_be_set() {
        let document = include_str!("../../docs/agent-loop.md");
        let table = document.split("## Limits").nth(1).and_then(|rest| rest.split("\n\n").nth(2));
        let names = table.expect("a table").lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        let mut env = Env::of::<&str, &str>([]);
        LoopSettings::read(&mut env);
        let known: Vec<_> = env.names().map(str::to_ascii_lowercase).collect();
        let missing: Vec<_> =
            names.filter(|name| !known.iter().any(|known| known.trim_end_matches("_ms") == *name)).collect();
        assert!(missing.is_empty(), "no setting for {missing:?}");
    }

    #[test]
    fn a_cost_needs_prices_and_both_are_plain_numbers() {
        assert!(read(&[("MAX_COST", "1")]).expect_err("a fault").to_string().contains("PRICES is not"));
        for bad in ["-1", "1e3", "NaN", "inf", "1,5", "."] {
            assert!(read(&[("MAX_COST", bad), ("PRICES", "1,1,1,1")]).is_err(), "{bad}");
        }
        for bad in ["1,2,3", "1,2,3,4,5", "1,2,3,x", "1,2,3,-4"] {
            assert!(read(&[("PRICES", bad)]).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_model_is_an_id_or_an_arn() {
        let profile =
            "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude-sonnet-4-5-20250929-v1:0";
        assert!(read(&[("MODEL_ID", profile)]).is_ok());
        for bad in ["a model", "modèle", &"x".repeat(2049)] {
            assert!(read(&[("MODEL_ID", bad)]).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_document_names_every_setting() {
        let document = include_str!("../../docs/settings.md");
        let mut env = Env::of::<&str, &str>([]);
        LoopSettings::read(&mut env);
        for name in env.names() {
            assert!(document.contains(&format!("| `{name}` |")), "docs/settings.md has no row for {name}");
        }
    }
}
