//! What a call leaves behind: one metric line and one log line. Neither holds arguments, results or secrets.
//!
//! | module | its one idea |
//! | --- | --- |
//! | [`metrics`] | the table of all metrics |
//! | `emf` | the metric line |
//! | `log` | the log line, and how logging starts |
//! | `otel` | spans for an OpenTelemetry collector, behind the feature of that name |
//! | `json` | log lines as JSON, with the fields of the spans around them |
//!
//! `docs/operations.md` has the tables of both, and what to do when an alarm goes.

mod emf;
mod json;
mod log;
pub mod metrics;
#[cfg(feature = "otel")]
mod otel;

use std::{fmt, io::Write, sync::Mutex, time::Duration};

use aws_smithy_types::{DateTime, date_time::Format};
use serde_json::{Map, Value};
use tracing::Span;

pub use self::log::{LogFormat, init_logs};
#[cfg(feature = "otel")]
pub(crate) use self::otel::flush;
use crate::{
    clock::{Clock, Timestamp},
    outcome::{Failure, Outcome},
    tool::Definition,
};

/// What a metric says in one line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Quantity {
    Count(u64),
    Time(Duration),
    /// Money.
    Amount(f64),
}

/// One metric of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Measured {
    pub name: &'static str,
    pub unit: &'static str,
    pub quantity: Quantity,
}

/// The tool name under which calls of unknown names are counted, so that a model cannot make up a metric.
pub const UNKNOWN_TOOL: &str = "unknown";

/// The invocation that a call belongs to.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The door's name.
    pub door: &'static str,
    /// Lambda's id of the invocation.
    pub request_id: String,
    /// The id of the X-Ray trace.
    pub trace_id: Option<String>,
    /// The whole X-Ray header: the trace, the span that called, and whether it is sampled.
    #[cfg(feature = "otel")]
    trace_header: Option<String>,
}

impl Origin {
    /// An invocation through this door, with Lambda's id and the X-Ray trace header, of which the id is kept.
    pub fn new(door: &'static str, request_id: &str, trace_header: Option<&str>) -> Self {
        let trace_id = |header: &str| {
            let root = header.split(';').find_map(|part| part.trim().strip_prefix("Root="));
            bounded(root.unwrap_or(header))
        };
        Self {
            door,
            request_id: bounded(request_id),
            trace_id: trace_header.map(trace_id),
            #[cfg(feature = "otel")]
            trace_header: trace_header.map(str::to_owned),
        }
    }
}

/// A text from outside, cut to what a line can bear.
pub(crate) fn bounded(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(80).collect()
}

/// Who refuses a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RefusedBy {
    /// A policy or a tool: somebody asks for what they may not have.
    #[default]
    Rule,
    /// A person who was asked to approve it: as it should be.
    Person,
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
    /// Who has refused it, if it ended so.
    pub refused_by: RefusedBy,
    /// The id under which a fault of ours is told to the model, if it is one.
    pub reference: String,
    /// The name of what went wrong last, never its text. Of a refusal the name of the rule.
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

/// A namespace, or the value of a dimension, as CloudWatch takes it: 1 to 255 printable ASCII characters.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Label(String);

impl Label {
    /// The text, or what is left of it; `unknown` if nothing is.
    fn of(text: &str) -> Self {
        let printable = text.chars().filter(|c| *c == ' ' || c.is_ascii_graphic());
        let kept: String = printable.skip_while(|c| *c == ':').take(255).collect();
        Self(if kept.trim().is_empty() { String::from("unknown") } else { kept })
    }

    fn as_str(&self) -> &str {
        &self.0
    }
}

/// Writes the lines of every call.
pub struct Telemetry {
    namespace: Label,
    service: Label,
    clock: Clock,
    metrics: Mutex<Box<dyn Write + Send>>,
}

impl Telemetry {
    /// Metrics go to `metrics`, a line each; log lines go through `tracing`. What CloudWatch would not take in the two
    /// names is left out of them.
    pub fn new(
        namespace: impl AsRef<str>,
        service: impl AsRef<str>,
        clock: Clock,
        metrics: Box<dyn Write + Send>,
    ) -> Self {
        let (namespace, service) = (Label::of(namespace.as_ref()), Label::of(service.as_ref()));
        Self { namespace, service, clock, metrics: Mutex::new(metrics) }
    }

    /// The span of a call. It has the highest level, so that every line inside tells which call it is about.
    pub(crate) fn span(&self, origin: &Origin, report: &Report) -> Span {
        let span = tracing::error_span!(
            "call",
            service = self.service.as_str(),
            request_id = origin.request_id,
            trace_id = origin.trace_id,
            door = origin.door,
            conversation = report.conversation,
            tool = report.tool,
            call_id = report.call_id,
            outcome = tracing::field::Empty,
        );
        #[cfg(feature = "otel")]
        otel::join_trace(&span, origin.trace_header.as_deref());
        span
    }

    /// Writes the two lines of a call that has ended.
    pub fn record(&self, origin: &Origin, report: &Report, outcome: &Outcome) {
        Span::current().record("outcome", outcome.name());
        self.write_metrics(&emf::line(&self.namespace, &self.service, self.clock.now(), origin, report, outcome));
        log::call(origin, report, outcome);
    }

    /// Writes a metric line of the service as a whole.
    pub(crate) fn measure(&self, metrics: Vec<Measured>, properties: Map<String, Value>) {
        let dimensions = [("Service", self.service.as_str())];
        self.write_metrics(&emf::written(&self.namespace, &dimensions, self.clock.now(), metrics, properties));
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

/// Sends what is still to be sent before Lambda may freeze the process: without the feature `otel` that is nothing.
#[cfg(not(feature = "otel"))]
pub(crate) fn flush() -> std::future::Ready<()> {
    std::future::ready(())
}

fn changed_name(outcome: &Outcome) -> Option<&'static str> {
    outcome.failure().map(Failure::changed).map(crate::outcome::Changed::name)
}

/// RFC 3339 in UTC.
pub(crate) fn rfc3339(time: Timestamp) -> String {
    let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    // Fails only for years that RFC 3339 cannot write.
    DateTime::from_millis(millis).fmt(Format::DateTime).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_rfc_3339() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
            (4_102_444_799_999, "2099-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(rfc3339(Timestamp::from_millis(millis)), text);
        }
    }

    #[test]
    fn of_a_trace_header_the_id_of_the_trace_is_kept() {
        let id = |header| Origin::new("mcp", "r-1", Some(header)).trace_id.expect("an id");
        assert_eq!(
            id("Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"),
            "1-5759e988-bd862e3fe1be46a994272793"
        );
        assert_eq!(id("Sampled=1; Root=1-2-3"), "1-2-3");
        assert_eq!(id("something\nelse"), "somethingelse");
        assert_eq!(id(&"x".repeat(1_000_000)).len(), 80);
    }

    #[test]
    fn a_label_is_what_cloudwatch_takes() {
        assert_eq!(Label::of("My Shop/Tools").as_str(), "My Shop/Tools");
        assert_eq!(Label::of("\u{fc}::a\tb\u{fc}c").as_str(), "abc");
        assert_eq!(Label::of(&"x".repeat(300)).as_str().len(), 255);
        for nothing in ["", " ", ":", "\n"] {
            assert_eq!(Label::of(nothing).as_str(), "unknown");
        }
    }
}
