//! Log lines on stdout: one JSON object each, with the `timestamp` and the `level` by which Lambda filters.

use std::panic::PanicHookInfo;

use tracing_subscriber::{Layer, filter::Targets, layer::SubscriberExt, util::SubscriberInitExt};

/// Starts logging, panics included. The first call in a process counts.
pub(super) fn install(filter: Targets) {
    let lines = tracing_subscriber::fmt::layer().json().flatten_event(true).with_span_list(false);
    if tracing_subscriber::registry().with(lines.with_filter(filter)).try_init().is_ok() {
        std::panic::set_hook(Box::new(log_panic));
    }
}

/// Where, but not what: the text of a panic may hold arguments.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let at = panic.location().map_or_else(|| String::from("?"), |at| format!("{}:{}", at.file(), at.line()));
    tracing::error!(at, "A panic. Its text is not logged, because it may hold what a caller sent.");
}
