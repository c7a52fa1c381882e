//! Log lines: JSON on Lambda, readable text on a terminal. A line per call at INFO, per attempt at DEBUG.
//!
//! The text of an error's source may hold hosts, queries and secrets: it is logged at DEBUG only. At INFO a fault of ours
//! leaves the type of its source and the reference that the model was told.

use std::io;

use tracing_subscriber::{
    filter::Targets, fmt::format::FmtSpan, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

use super::{Origin, Report, changed_name, outcome_name};
use crate::outcome::{FailureKind, Outcome};

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object a line, with an RFC 3339 `timestamp` and a `level`, on stdout: what Lambda reads.
    Json,
    /// Readable text on stderr; colours if `ansi`.
    Text {
        /// Whether to use colours.
        ansi: bool,
    },
}

/// Starts logging. `filter` is a level or a list of `target=level`, as in `RUST_LOG`. A second call does nothing.
///
/// # Errors
///
/// What is wrong with `filter`.
pub fn init_logs(format: LogFormat, filter: &str) -> Result<(), String> {
    let targets: Targets = filter.to_lowercase().parse().map_err(|fault| format!("{fault}"))?;
    let registry = tracing_subscriber::registry().with(targets);
    let started = match format {
        LogFormat::Json => registry
            .with(
                tracing_subscriber::fmt::layer()
                    .json()
                    .flatten_event(true)
                    .with_current_span(false)
                    .with_span_list(false),
            )
            .try_init(),
        LogFormat::Text { ansi } => registry
            .with(
                tracing_subscriber::fmt::layer()
                    .with_writer(io::stderr)
                    .with_ansi(ansi)
                    .with_target(false)
                    .without_time()
                    .with_span_events(FmtSpan::NONE),
            )
            .try_init(),
    };
    drop(started); // the only error is that logging has been started already
    Ok(())
}

/// The line of a call that has ended. Faults of ours and unknown outcomes are errors: somebody has to look.
pub(super) fn call(origin: &Origin, report: &Report, outcome: &Outcome) {
    macro_rules! line {
        ($level:expr) => {
            tracing::event!(
                $level,
                tool = report.tool,
                effect = report.effect,
                outcome = outcome_name(outcome),
                changed = changed_name(outcome),
                attempts = report.attempts,
                duration_ms = u64::try_from(report.duration.as_millis()).unwrap_or(u64::MAX),
                headroom_ms = u64::try_from(report.headroom.as_millis()).unwrap_or(u64::MAX),
                door = origin.door,
                request_id = origin.request_id,
                trace_id = origin.trace_id,
                conversation = report.conversation,
                call_id = report.call_id,
                key = report.key,
                completion_lost = report.completion_lost,
                superseded = report.superseded,
                reference = report.fault.as_ref().map(|_| report.reference.as_str()),
                fault = report.fault,
                "call"
            )
        };
    }
    match outcome.failure().map(crate::outcome::Failure::kind) {
        Some(FailureKind::Internal | FailureKind::OutcomeUnknown | FailureKind::Denied) => line!(tracing::Level::ERROR),
        _ if report.completion_lost => line!(tracing::Level::ERROR),
        Some(_) => line!(tracing::Level::WARN),
        None => line!(tracing::Level::INFO),
    }
}
