//! What a call leaves behind: one metric line and one log line. Neither holds arguments, results or secrets.

mod emf;
mod log;

use std::{fmt, io::Write, sync::Mutex, time::Duration};

pub use self::log::{LogFormat, init_logs};
use crate::{
    clock::Clock,
    outcome::{Failure, Outcome},
    tool::Definition,
};

/// The tool name under which calls of unknown names are counted, so that a model cannot make up a metric.
pub const UNKNOWN_TOOL: &str = "unknown";

/// The invocation that a call belongs to.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The door's name.
    pub door: &'static str,
    /// Lambda's id of the invocation.
    pub request_id: String,
    /// The X-Ray trace header.
    pub trace_id: Option<String>,
}

/// What one call did, for its two lines.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The registered name, or [`UNKNOWN_TOOL`].
    pub tool: &'static str,
    /// The tool's effect.
    pub effect: &'static str,
    /// The id that the caller gave the call.
    pub call_id: Option<String>,
    /// The session or conversation.
    pub conversation: Option<String>,
    /// The first digits of the key's digest.
    pub key: Option<String>,
    /// Attempts that began.
    pub attempts: u32,
    /// How long the call took.
    pub duration: Duration,
    /// The time left until the host's deadline when the call ended.
    pub headroom: Duration,
    /// The effect is done and could not be recorded.
    pub completion_lost: bool,
    /// Another execution had taken the record over.
    pub superseded: bool,
    /// It would have been tried again, had the retry budget allowed it.
    pub retry_denied: bool,
    /// The id under which a fault of ours is told to the model.
    pub reference: String,
    /// For a fault of ours: the type of the source, never its text.
    pub fault: Option<String>,
}

impl Report {
    /// A report of a call to this tool, or to none.
    pub fn of(tool: Option<&Definition>) -> Self {
        Self {
            tool: tool.map_or(UNKNOWN_TOOL, |tool| tool.name),
            effect: tool.map_or("none", |tool| tool.effect.name()),
            reference: format!("{:08x}", rand::random::<u32>()),
            ..Self::default()
        }
    }
}

/// Writes the lines of every call.
pub struct Telemetry {
    namespace: String,
    service: String,
    clock: Clock,
    metrics: Mutex<Box<dyn Write + Send>>,
}

impl Telemetry {
    /// Metrics go to `metrics`, a line each; log lines go through `tracing`.
    pub fn new(
        namespace: impl Into<String>,
        service: impl Into<String>,
        clock: Clock,
        metrics: Box<dyn Write + Send>,
    ) -> Self {
        Self { namespace: namespace.into(), service: service.into(), clock, metrics: Mutex::new(metrics) }
    }

    /// Writes the two lines of a call that has ended.
    pub fn record(&self, origin: &Origin, report: &Report, outcome: &Outcome) {
        self.write_metrics(&emf::line(&self.namespace, &self.service, self.clock.now(), origin, report, outcome));
        log::call(origin, report, outcome);
    }

    /// One write a line, so that lines of calls that end together are not mixed. A line that cannot be written is lost:
    /// the answer matters more.
    fn write_metrics(&self, line: &str) {
        let mut out = self.metrics.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if out.write_all(line.as_bytes()).and_then(|()| out.flush()).is_err() {
            tracing::warn!("a metric line could not be written");
        }
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telemetry").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

/// The word for how a call ended: `success`, `replayed`, or the kind of failure.
fn outcome_name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Success { replayed: true, .. } => "replayed",
        Outcome::Success { .. } => "success",
        Outcome::Failure(failure) => failure.kind().name(),
    }
}

fn changed_name(outcome: &Outcome) -> Option<&'static str> {
    outcome.failure().map(Failure::changed).map(crate::outcome::Changed::name)
}
