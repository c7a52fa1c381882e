//! Metrics in CloudWatch's embedded metric format: one line a call, on stdout, no API call.
//!
//! Dimensions are the service and the tool, both from fixed sets, since every dimension set is a billed metric. Ids are
//! properties. `timestamp` and `level` stand at the root so that a log-level filter of Lambda cannot drop the line (a line
//! without them counts as INFO whatever it says).

use aws_smithy_types::{DateTime, date_time::Format};
use serde_json::{Map, Value, json};

use super::{Origin, Report, changed_name, outcome_name};
use crate::{
    clock::Timestamp,
    outcome::{FailureKind, Outcome},
};

/// The line, with its line break.
pub(super) fn line(
    namespace: &str,
    service: &str,
    now: Timestamp,
    origin: &Origin,
    report: &Report,
    outcome: &Outcome,
) -> String {
    let metrics = values(report, outcome);
    let directive = json!({
        "Namespace": namespace,
        "Dimensions": [["Service", "Tool"]],
        "Metrics": metrics.iter().map(|(name, unit, _)| json!({"Name": name, "Unit": unit})).collect::<Vec<_>>(),
    });
    let mut root = properties(origin, report, outcome);
    root.insert("_aws".into(), json!({"Timestamp": now.as_millis(), "CloudWatchMetrics": [directive]}));
    root.insert("timestamp".into(), rfc3339(now).into());
    root.insert("level".into(), "INFO".into());
    root.insert("Service".into(), service.into());
    root.insert("Tool".into(), report.tool.into());
    root.extend(metrics.into_iter().map(|(name, _, value)| (name.to_owned(), value)));
    Value::Object(root).to_string() + "\n"
}

fn properties(origin: &Origin, report: &Report, outcome: &Outcome) -> Map<String, Value> {
    let all = [
        ("door", Some(origin.door)),
        ("request_id", Some(origin.request_id.as_str())),
        ("trace_id", origin.trace_id.as_deref()),
        ("outcome", Some(outcome_name(outcome))),
        ("changed", changed_name(outcome)),
        ("key", report.key.as_deref()),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into()))).collect()
}

/// Name, unit and value of each metric. Counters that are always there give a rate; the others appear when they count.
fn values(report: &Report, outcome: &Outcome) -> Vec<(&'static str, &'static str, Value)> {
    let count = |name, counts: bool| (name, "Count", u32::from(counts).into());
    let replayed = matches!(outcome, Outcome::Success { replayed: true, .. });
    let mut metrics = vec![
        count("Calls", true),
        count("Errors", outcome.failure().is_some()),
        count("Replays", replayed),
        ("Attempts", "None", report.attempts.into()),
        ("Retries", "None", report.attempts.saturating_sub(1).into()),
        ("Duration", "Milliseconds", millis(report.duration)),
        ("Headroom", "Milliseconds", millis(report.headroom)),
    ];
    metrics.extend(outcome.failure().map(|failure| count(metric_of(failure.kind()), true)));
    metrics.extend(report.completion_lost.then(|| count("CompletionLost", true)));
    metrics.extend(report.retry_denied.then(|| count("RetriesDenied", true)));
    metrics.extend(report.superseded.then(|| count("Superseded", true)));
    metrics
}

fn millis(duration: std::time::Duration) -> Value {
    let millis = duration.as_secs_f64() * 1e3;
    ((millis * 1e3).round() / 1e3).into()
}

/// The counter of a kind of failure.
const fn metric_of(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::InvalidInput => "InvalidInput",
        FailureKind::NotFound => "NotFound",
        FailureKind::Rejected => "Rejected",
        FailureKind::UnknownTool => "UnknownTool",
        FailureKind::Denied => "Denied",
        FailureKind::ApprovalRequired => "ApprovalRequired",
        FailureKind::InProgress => "InProgress",
        FailureKind::KeyReused => "KeyReused",
        FailureKind::Transient => "Transient",
        FailureKind::Timeout => "Timeout",
        FailureKind::OutcomeUnknown => "OutcomeUnknown",
        FailureKind::TooLarge => "TooLarge",
        FailureKind::Internal => "Internal",
    }
}

/// RFC 3339 in UTC.
fn rfc3339(time: Timestamp) -> String {
    let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    // Fails only for years that RFC 3339 cannot write.
    DateTime::from_millis(millis).fmt(Format::DateTime).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Failure;

    fn parsed(outcome: &Outcome) -> Value {
        let origin = Origin { door: "converse", request_id: String::from("r-1"), trace_id: None };
        let report = Report { tool: "get_order", attempts: 2, ..Report::default() };
        let text = line("N", "s", Timestamp::from_millis(1_700_000_000_123), &origin, &report, outcome);
        assert_eq!(text.matches('\n').count(), 1, "one line: {text:?}");
        serde_json::from_str(&text).expect("JSON")
    }

    #[test]
    fn every_metric_named_in_the_directive_stands_at_the_root() {
        let value = parsed(&Outcome::Failure(Failure::new(FailureKind::Timeout, "x")));
        let directive = &value["_aws"]["CloudWatchMetrics"][0];
        for metric in directive["Metrics"].as_array().unwrap() {
            let name = metric["Name"].as_str().unwrap();
            assert!(value[name].is_number(), "{name}");
        }
        for dimension in ["Service", "Tool"] {
            assert!(value[dimension].is_string());
        }
        assert_eq!((&value["Errors"], &value["Timeout"], &value["Retries"]), (&json!(1), &json!(1), &json!(1)));
    }

    #[test]
    fn a_success_counts_no_error() {
        let value = parsed(&Outcome::Success { result: json!({"secret": "x"}), replayed: true });
        assert_eq!((&value["Errors"], &value["Replays"]), (&json!(0), &json!(1)));
        assert!(!value.to_string().contains("secret"));
    }

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
}
