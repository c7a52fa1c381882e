//! Log lines: JSON on Lambda, readable text on a terminal. A line per call at INFO, per attempt at DEBUG.
//!
//! The text of an error's source may hold hosts, queries and secrets: it is logged at TRACE only. Above that a fault of ours
//! leaves the name of its cause (`tool::ToolError::with_source` tells which) and the reference that the model was told.

use std::{io, panic::PanicHookInfo};

use tracing_subscriber::{
    Layer as _,
    filter::{FilterFn, Targets},
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

use super::{Origin, RefusedBy, Report, changed_name, json::JsonLines};
use crate::outcome::{Failure, FailureKind, Outcome};

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object a line on stdout, with the `timestamp` (RFC 3339) and the `level` by which Lambda filters.
    Json,
    /// Readable text on stderr; colours if `ansi`.
    Text {
        /// Whether to use colours.
        ansi: bool,
    },
}

/// Starts logging, panics included. The first call in a process counts.
pub fn init_logs(format: LogFormat, filter: Targets) {
    let layer = match format {
        LogFormat::Json => JsonLines::to(Box::new(io::stdout())).boxed(),
        // What cannot be logged is lost: to complain about it on stderr panics where stderr is the one that fails. A
        // person sees the line of the call anyway, so that its spans before every line would only be noise.
        LogFormat::Text { ansi } => tracing_subscriber::fmt::layer()
            .log_internal_errors(false)
            .with_writer(io::stderr)
            .with_ansi(ansi)
            .with_filter(events())
            .boxed(),
    };
    let subscriber = tracing_subscriber::registry().with(layer.with_filter(filter));
    #[cfg(feature = "otel")]
    let subscriber = subscriber.with(super::otel::layer());
    if subscriber.try_init().is_ok() {
        std::panic::set_hook(Box::new(log_panic));
    }
}

/// The method itself has a lifetime too few to be passed on.
#[expect(clippy::redundant_closure_for_method_calls, reason = "it does not compile without")]
fn events() -> FilterFn {
    FilterFn::new(|metadata| metadata.is_event())
}

/// Where, but not what: the text of a panic may hold arguments.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let at = panic.location().map_or_else(|| String::from("?"), |at| format!("{}:{}", at.file(), at.line()));
    tracing::error!(at, "A panic. Its text is not logged, because it may hold what a caller sent.");
}

/// The line of a call that has ended. Faults of ours and unknown outcomes are errors: somebody has to look.
pub(super) fn call(origin: &Origin, report: &Report, outcome: &Outcome) {
    macro_rules! line {
        ($level:expr) => {
            tracing::event!(
                $level,
                tool = report.tool,
                effect = report.effect,
                outcome = outcome.name(),
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
                retry_denied = report.retry_denied,
                reference = told(report, outcome),
                fault = cause(report, outcome),
                "call"
            )
        };
    }
    match outcome.failure().map(Failure::kind) {
        Some(FailureKind::Denied) if report.refused_by == RefusedBy::Person => line!(tracing::Level::WARN),
        Some(FailureKind::Internal | FailureKind::OutcomeUnknown | FailureKind::Denied) => line!(tracing::Level::ERROR),
        _ if report.completion_lost => line!(tracing::Level::ERROR),
        Some(_) => line!(tracing::Level::WARN),
        None => line!(tracing::Level::INFO),
    }
}

/// The reference, if the model was told it.
fn told<'a>(report: &'a Report, outcome: &Outcome) -> Option<&'a str> {
    let failure = outcome.failure().filter(|failure| failure.message().contains(&report.reference));
    failure.map(|_| report.reference.as_str())
}

/// The name of the cause, unless a later attempt has mended it.
fn cause<'a>(report: &'a Report, outcome: &Outcome) -> Option<&'a str> {
    report.fault.as_deref().filter(|_| outcome.failure().is_some() || report.completion_lost)
}
