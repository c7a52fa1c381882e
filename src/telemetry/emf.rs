//! Metrics in CloudWatch's embedded metric format: one line a call, on stdout, no API call. The loop writes lines of its own.
//!
//! Dimensions of a call are the service and the tool, both from fixed sets, since every dimension set is a billed metric. Ids are
//! properties. `timestamp` and `level` stand at the root so that a log-level filter of Lambda cannot drop the line (a line
//! without them counts as INFO whatever it says).
//!
//! The [specification](https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html)
//! has the limits; `tests/metrics.rs` checks lines against it.

use serde_json::{Map, Value as Json, json};

use super::{Label, Measured, Origin, Quantity, Report, changed_name, metrics::METRICS, rfc3339};
use crate::{clock::Timestamp, outcome::Outcome};

/// The line of a call, with its line break.
pub(super) fn line(
    namespace: &Label,
    service: &Label,
    now: Timestamp,
    origin: &Origin,
    report: &Report,
    outcome: &Outcome,
) -> String {
    let measured = METRICS.iter().filter_map(|metric| {
        Some(Measured { name: metric.name, unit: metric.unit(), quantity: metric.of(report, outcome)? })
    });
    let dimensions = [("Service", service.as_str()), ("Tool", report.tool)];
    written(namespace, &dimensions, now, measured.collect(), properties(origin, report, outcome))
}

/// A line of these metrics under these dimensions, with its line break. What CloudWatch would not take is left out.
pub(super) fn written(
    namespace: &Label,
    dimensions: &[(&str, &str)],
    now: Timestamp,
    mut metrics: Vec<Measured>,
    mut root: Map<String, Json>,
) -> String {
    metrics.retain(|metric| !matches!(metric.quantity, Quantity::Amount(amount) if !(0.0..1e100).contains(&amount)));
    let directive = json!({
        "Namespace": namespace.as_str(),
        "Dimensions": [dimensions.iter().map(|(name, _)| *name).collect::<Vec<_>>()],
        "Metrics": metrics.iter().map(|metric| json!({"Name": metric.name, "Unit": metric.unit})).collect::<Vec<_>>(),
    });
    root.insert("_aws".into(), json!({"Timestamp": now.as_millis(), "CloudWatchMetrics": [directive]}));
    root.insert("timestamp".into(), rfc3339(now).into());
    root.insert("level".into(), "INFO".into());
    root.extend(dimensions.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())));
    root.extend(metrics.into_iter().map(|metric| (metric.name.to_owned(), json_of(metric.quantity))));
    Json::Object(root).to_string() + "\n"
}

fn properties(origin: &Origin, report: &Report, outcome: &Outcome) -> Map<String, Json> {
    let all = [
        ("door", Some(origin.door)),
        ("request_id", Some(origin.request_id.as_str())),
        ("trace_id", origin.trace_id.as_deref()),
        ("conversation", report.conversation.as_deref()),
        ("call_id", report.call_id.as_deref()),
        ("outcome", Some(outcome.name())),
        ("changed", changed_name(outcome)),
        ("key", report.key.as_deref()),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into()))).collect()
}

fn json_of(quantity: Quantity) -> Json {
    match quantity {
        Quantity::Count(count) => count.into(),
        Quantity::Time(time) => millis(time),
        Quantity::Amount(amount) => amount.into(),
    }
}

/// A time as CloudWatch takes it: in milliseconds, to the microsecond.
fn millis(duration: std::time::Duration) -> Json {
    let millis = duration.as_secs_f64() * 1e3;
    ((millis * 1e3).round() / 1e3).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Failure, FailureKind};

    fn parsed(outcome: &Outcome) -> Json {
        let origin = Origin::new("converse", "r-1", None);
        let report = Report { tool: "get_order", attempts: 2, ..Report::default() };
        let text = line(
            &Label::of("N"),
            &Label::of("s"),
            Timestamp::from_millis(1_700_000_000_123),
            &origin,
            &report,
            outcome,
        );
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
}
