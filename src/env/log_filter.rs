//! What is logged. Read before all other settings, because the reading of those may have to be logged.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;

use super::Env;

/// `RUST_LOG`, else `AWS_LAMBDA_LOG_LEVEL` (which Lambda sets from the function's logging configuration), else `info`.
pub(crate) fn log_filter(env: &mut Env) -> Targets {
    const VALID: &str = "off, error, warn, info, debug or trace, or a comma list of these and of target=level, for example info,hyper=warn";
    const LAMBDA: &str = "trace, debug, info, warn, error or fatal";
    env.optional("RUST_LOG", VALID, parsed)
        .or_else(|| {
            env.optional("AWS_LAMBDA_LOG_LEVEL", LAMBDA, |text| {
                Some(of_level(if text.eq_ignore_ascii_case("fatal") { LevelFilter::ERROR } else { level(text)? }))
            })
        })
        .unwrap_or_else(|| of_level(LevelFilter::INFO))
}

/// Stricter than `Targets`' own reading, which takes a misspelt level for the name of a module.
fn parsed(text: &str) -> Option<Targets> {
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
    use crate::env::SettingsError;

    fn read(variables: &[(&str, &str)]) -> Result<Targets, SettingsError> {
        let mut env = Env::of(variables.iter().copied());
        let filter = log_filter(&mut env);
        env.finish().map(|()| filter)
    }

    fn fault(variables: &[(&str, &str)]) -> String {
        read(variables).expect_err("a fault").to_string()
    }

    #[test]
    fn a_log_level_is_taken_in_any_letter_case_and_a_bad_one_is_a_fault() {
        let ours = |filter: &Targets, level| filter.would_enable(OURS, &level);
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
        let plain = read(&[("RUST_LOG", "trace")]).unwrap();
        assert!(plain.would_enable(OURS, &Level::TRACE) && !plain.would_enable("hyper", &Level::DEBUG));
        for named in ["hyper=trace,debug", "debug,hyper=trace"] {
            let named = read(&[("RUST_LOG", named)]).unwrap();
            assert!(named.would_enable("hyper", &Level::TRACE) && named.would_enable(OURS, &Level::DEBUG));
            assert!(!named.would_enable("h2", &Level::DEBUG));
        }
    }
}
