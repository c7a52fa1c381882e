//! Settings: environment variables, read and checked in one place at start.
//!
//! A missing or bad one stops the start with a sentence that names the variable, what was found and what is valid; all
//! of them at once. `docs/settings.md` has the table. The tools of a deployment read their own through the same
//! [`Env`], so that their faults come out together with these:
//!
//! ```
//! use action_group::settings::{Env, Settings};
//!
//! let mut env = Env::of([("IDEMPOTENCY_TABLE", "tool-records"), ("RESERVE_MS", "800")]);
//! let settings = Settings::read(&mut env);
//! let orders = env.table("ORDERS_TABLE");
//! # let _ = (settings, orders);
//! assert!(env.finish().is_err()); // ORDERS_TABLE is not set
//! ```

mod env;

use std::{ops::RangeInclusive, time::Duration};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;

pub use self::env::{Env, SettingsError};
use crate::door::{DOORS, Door, named};

/// The time kept back before the deadline.
const RESERVE: Duration = Duration::from_millis(500);
/// At least the time that an answer takes, and as much again to record the outcome.
const RESERVE_RANGE: RangeInclusive<u64> = 250..=10_000;
/// The time for an invocation whose host gives no usable deadline.
const DEFAULT_BUDGET: Duration = Duration::from_secs(25);
const BUDGET_RANGE: RangeInclusive<u64> = 1_000..=900_000;

/// What the function itself needs to know; tools have their own settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `SERVICE_NAME`: the name of this function in logs and metrics. Default: the Lambda function's name.
    pub service: String,
    /// `METRICS_NAMESPACE`: the namespace of the metrics. Default: `BedrockActionGroup`.
    pub metrics_namespace: String,
    /// `IDEMPOTENCY_TABLE`: the DynamoDB table of the records. Required.
    pub idempotency_table: String,
    /// `RESERVE_MS`: the time kept back before the deadline to record the outcome and answer. Default: 500 ms.
    pub reserve: Duration,
    /// `DEFAULT_BUDGET_MS`: the time for an invocation whose host gives no usable deadline. Default: 25 s.
    pub default_budget: Duration,
    /// `DOORS`: the doors that are open, in the order of detection. Default: all.
    pub doors: Vec<&'static Door>,
    /// `RUST_LOG`, else `AWS_LAMBDA_LOG_LEVEL`: what is logged. Default: `info`.
    pub log: Targets,
}

impl Settings {
    /// The longest [`Settings::default_budget`].
    pub const LONGEST_BUDGET: Duration = Duration::from_millis(*BUDGET_RANGE.end());

    /// Reads them. Faults are in `env`: call [`Env::finish`] before you use any of this.
    pub fn read(env: &mut Env) -> Self {
        let settings = Self {
            idempotency_table: env.table("IDEMPOTENCY_TABLE"),
            service: service(env),
            metrics_namespace: env.text(
                "METRICS_NAMESPACE",
                "BedrockActionGroup",
                "1 to 255 printable ASCII characters that do not begin with ':' or 'AWS/'",
                |text| is_label(text) && !text.starts_with("AWS/"),
            ),
            reserve: env.millis("RESERVE_MS", RESERVE, RESERVE_RANGE),
            default_budget: env.millis("DEFAULT_BUDGET_MS", DEFAULT_BUDGET, BUDGET_RANGE),
            doors: doors(env),
            log: log(env),
        };
        if settings.default_budget <= settings.reserve {
            env.fault(format!(
                "DEFAULT_BUDGET_MS ({}) must be greater than RESERVE_MS ({}), or no call could ever run.",
                settings.default_budget.as_millis(),
                settings.reserve.as_millis()
            ));
        }
        settings
    }
}

fn service(env: &mut Env) -> String {
    const VALID: &str = "1 to 255 printable ASCII characters that do not begin with ':'";
    let parse = |text: &str| is_label(text).then(|| text.to_owned());
    env.optional("SERVICE_NAME", VALID, parse)
        .or_else(|| env.optional("AWS_LAMBDA_FUNCTION_NAME", VALID, parse))
        .unwrap_or_else(|| String::from("bedrock-action-group"))
}

/// What the metrics can have as a namespace, and as the value of a dimension.
fn is_label(text: &str) -> bool {
    (1..=255).contains(&text.len())
        && !text.starts_with(':')
        && !text.trim().is_empty()
        && text.bytes().all(|b| b == b' ' || b.is_ascii_graphic())
}

/// In the order of detection, whatever the order in which they are named.
fn doors(env: &mut Env) -> Vec<&'static Door> {
    let names: Vec<&str> = DOORS.iter().map(|door| door.name).collect();
    let valid = format!("a comma list of {}", names.join(", "));
    let open = env.optional("DOORS", &valid, |text| {
        let listed: Vec<&str> = text.split(',').map(str::trim).collect();
        listed
            .iter()
            .all(|name| named(name).is_some())
            .then(|| DOORS.iter().filter(|door| listed.contains(&door.name)).collect::<Vec<_>>())
    });
    open.unwrap_or_else(|| DOORS.iter().collect())
}

/// `RUST_LOG`, else `AWS_LAMBDA_LOG_LEVEL` (which Lambda sets from the function's logging configuration), else `info`.
pub(crate) fn log(env: &mut Env) -> Targets {
    const VALID: &str = "off, error, warn, info, debug or trace, or a comma list of these and of target=level, for example info,hyper=warn";
    const LAMBDA: &str = "trace, debug, info, warn, error or fatal";
    env.optional("RUST_LOG", VALID, filter)
        .or_else(|| {
            env.optional("AWS_LAMBDA_LOG_LEVEL", LAMBDA, |text| {
                Some(of_level(if text.eq_ignore_ascii_case("fatal") { LevelFilter::ERROR } else { level(text)? }))
            })
        })
        .unwrap_or_else(|| of_level(LevelFilter::INFO))
}

/// Stricter than `Targets`' own reading, which takes a misspelt level for the name of a module.
fn filter(text: &str) -> Option<Targets> {
    let (named, plain): (Vec<&str>, Vec<&str>) = text.split(',').map(str::trim).partition(|word| word.contains('='));
    let base = plain.into_iter().try_fold(LevelFilter::INFO, |_, name| level(name))?;
    named.into_iter().try_fold(of_level(base), |targets, directive| {
        let (target, name) = directive.split_once('=').filter(|(target, _)| !target.is_empty())?;
        Some(targets.with_target(target, level(name)?))
    })
}

const OURS: &str = env!("CARGO_CRATE_NAME");

/// A plain level is for this crate. Below `info` other crates may log whole requests, so they have to be named.
fn of_level(level: LevelFilter) -> Targets {
    Targets::new().with_default(level.min(LevelFilter::INFO)).with_target(OURS, level)
}

fn level(name: &str) -> Option<LevelFilter> {
    let known = ["off", "error", "warn", "info", "debug", "trace"];
    known.iter().any(|word| word.eq_ignore_ascii_case(name)).then(|| name.parse().ok())?
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    const TABLE: (&str, &str) = ("IDEMPOTENCY_TABLE", "records");

    fn read(more: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        let mut env = Env::of(std::iter::once(TABLE).chain(more.iter().copied()));
        let settings = Settings::read(&mut env);
        env.finish().map(|()| settings)
    }

    fn fault(more: &[(&str, &str)]) -> String {
        read(more).expect_err("a fault").to_string()
    }

    #[test]
    fn only_the_table_has_no_default() {
        let settings = read(&[]).unwrap();
        assert_eq!(settings.service, "bedrock-action-group");
        assert_eq!(settings.metrics_namespace, "BedrockActionGroup");
        assert_eq!(settings.reserve, Duration::from_millis(500));
        assert_eq!(settings.default_budget, Duration::from_secs(25));
        assert_eq!(settings.doors.len(), DOORS.len());

        let mut env = Env::of::<&str, &str>([]);
        Settings::read(&mut env);
        let error = env.finish().unwrap_err();
        assert_eq!(error.faults().len(), 1);
        assert!(error.to_string().contains("IDEMPOTENCY_TABLE is not set."), "{error}");
    }

    #[test]
    fn the_service_is_named_after_the_function_unless_it_has_a_name() {
        assert_eq!(read(&[("AWS_LAMBDA_FUNCTION_NAME", "shop")]).unwrap().service, "shop");
        assert_eq!(read(&[("AWS_LAMBDA_FUNCTION_NAME", "shop"), ("SERVICE_NAME", "x")]).unwrap().service, "x");
        assert_eq!(read(&[("AWS_LAMBDA_FUNCTION_NAME", "shop"), ("SERVICE_NAME", "")]).unwrap().service, "shop");
    }

    #[test]
    fn a_namespace_is_one_that_cloudwatch_takes() {
        assert_eq!(read(&[("METRICS_NAMESPACE", "My Shop/Tools")]).unwrap().metrics_namespace, "My Shop/Tools");
        for bad in [":x", "AWS/Lambda", "tab\there", "ü", " ", &"x".repeat(256)] {
            assert!(fault(&[("METRICS_NAMESPACE", bad)]).contains("METRICS_NAMESPACE is"), "{bad:?}");
        }
    }

    #[test]
    fn times_are_in_range_and_leave_room_for_a_call() {
        assert_eq!(read(&[("RESERVE_MS", "250")]).unwrap().reserve, Duration::from_millis(250));
        assert!(fault(&[("RESERVE_MS", "249")]).contains("from 250 to 10000"));
        assert!(fault(&[("DEFAULT_BUDGET_MS", "0")]).contains("from 1000 to 900000"));
        let fault = fault(&[("RESERVE_MS", "2000"), ("DEFAULT_BUDGET_MS", "2000")]);
        assert!(fault.contains("must be greater than RESERVE_MS"), "{fault}");
    }

    #[test]
    fn every_named_door_has_to_exist() {
        assert!(fault(&[("DOORS", "back")]).contains("DOORS is \"back\", but must be a comma list of"));
        assert!(read(&[("DOORS", "")]).is_ok());
        if let (Some(first), Some(last)) = (DOORS.first(), DOORS.last()) {
            let list = format!("{}, {}", last.name, first.name);
            let names: Vec<_> = read(&[("DOORS", &list)]).unwrap().doors.iter().map(|door| door.name).collect();
            assert_eq!(names, [first.name, last.name], "the order of detection stays");
        }
    }

    #[test]
    fn a_log_level_is_taken_in_any_letter_case_and_a_bad_one_is_a_fault() {
        let ours = |settings: &Settings, level| settings.log.would_enable(OURS, &level);
        assert!(ours(&read(&[("RUST_LOG", "Debug")]).unwrap(), Level::DEBUG));
        assert!(!ours(&read(&[]).unwrap(), Level::DEBUG));
        assert!(!ours(&read(&[("AWS_LAMBDA_LOG_LEVEL", "FATAL")]).unwrap(), Level::WARN));
        let both = read(&[("RUST_LOG", "warn"), ("AWS_LAMBDA_LOG_LEVEL", "DEBUG")]).unwrap();
        assert!(!ours(&both, Level::INFO), "RUST_LOG wins");
        for bad in ["verbose", "3", "info,", "=info", "action_group=loud"] {
            assert!(fault(&[("RUST_LOG", bad)]).contains("RUST_LOG is"), "{bad:?}");
        }
        assert!(fault(&[("AWS_LAMBDA_LOG_LEVEL", "loud")]).contains("AWS_LAMBDA_LOG_LEVEL is \"loud\""));
    }

    #[test]
    fn a_plain_level_makes_no_other_crate_talkative() {
        let plain = read(&[("RUST_LOG", "trace")]).unwrap().log;
        assert!(plain.would_enable(OURS, &Level::TRACE) && !plain.would_enable("hyper", &Level::DEBUG));
        for named in ["hyper=trace,debug", "debug,hyper=trace"] {
            let named = read(&[("RUST_LOG", named)]).unwrap().log;
            assert!(named.would_enable("hyper", &Level::TRACE) && named.would_enable(OURS, &Level::DEBUG));
            assert!(!named.would_enable("h2", &Level::DEBUG));
        }
    }

    #[test]
    fn the_document_names_every_setting() {
        let document = include_str!("../../docs/settings.md");
        let mut env = Env::of::<&str, &str>([]);
        Settings::read(&mut env);
        for name in env.names() {
            assert!(document.contains(&format!("| `{name}` |")), "docs/settings.md has no row for {name}");
        }
    }
}
