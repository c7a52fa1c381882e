//! The metric line: what CloudWatch takes, one for every call however it ends, and no more series than there are tools.

mod emf;
mod support;

use std::{collections::BTreeSet, future::pending, sync::Arc, time::Duration};

use action_group::{
    authorise::Decision,
    call::{Arguments, Call, Deadline, Pipeline, Room, Surroundings},
    clock::{Clock, Timestamp},
    idempotency::Store,
    outcome::{Changed, Failure, FailureKind, Outcome},
    telemetry::{Origin, Report, Telemetry, metrics::METRICS},
    tool::{CallContext, Definition, Effect, Policy, Success, Tool, ToolError, Toolbox},
};
use proptest::prelude::*;
use serde_json::{Value, json};
use support::{Lines, Scripted};

/// Each line, checked and read.
fn read(lines: &Lines) -> Vec<Value> {
    let read = |line: &str| {
        assert_eq!(emf::faults(line), [""; 0], "{line}");
        serde_json::from_str(line).expect("JSON")
    };
    lines.text().split_inclusive('\n').map(read).collect()
}

fn line(namespace: &str, service: &str, now: u64, origin: &Origin, report: &Report, outcome: &Outcome) -> String {
    let lines = Lines::default();
    let clock = Clock::following_tokio(Timestamp::from_millis(now));
    Telemetry::new(namespace, service, clock, Box::new(lines.clone())).record(origin, report, outcome);
    lines.text()
}

fn outcomes() -> impl Strategy<Value = Outcome> {
    let failure = (0..FailureKind::ALL.len(), any::<bool>()).prop_map(|(kind, unknown)| {
        let changed = if unknown { Changed::Unknown } else { Changed::Nothing };
        Outcome::Failure(Failure::new(FailureKind::ALL[kind], "No.").with_changed(changed, ""))
    });
    let success = any::<bool>().prop_map(|replayed| Outcome::Success { result: json!("SECRET-1"), replayed });
    prop_oneof![failure, success]
}

fn reports() -> impl Strategy<Value = Report> {
    let times = (any::<u64>(), 0..1_000_000_000_u32, any::<u64>());
    let texts = (any::<Option<String>>(), any::<Option<String>>(), any::<Option<String>>());
    (times, texts, any::<u32>(), any::<[bool; 3]>()).prop_map(
        |((secs, nanos, millis), (id, talk, key), attempts, marks)| Report {
            call_id: id,
            conversation: talk,
            key,
            attempts,
            duration: Duration::new(secs, nanos),
            headroom: Duration::from_millis(millis),
            completion_lost: marks[0],
            superseded: marks[1],
            retry_denied: marks[2],
            ..Report::of(None)
        },
    )
}

proptest! {
    #[test]
    fn every_line_is_one_that_cloudwatch_takes(
        names in (any::<String>(), any::<String>()),
        ids in (any::<String>(), any::<Option<String>>()),
        now in 0..4_102_444_800_000_u64,
        report in reports(),
        outcome in outcomes(),
    ) {
        let origin = Origin::new("converse", &ids.0, ids.1.as_deref());
        let line = line(&names.0, &names.1, now, &origin, &report, &outcome);
        prop_assert_eq!(emf::faults(&line), [""; 0], "{}", line);
        prop_assert!(!line.contains("SECRET"));
        let value: Value = serde_json::from_str(&line).unwrap();
        prop_assert!(value["timestamp"].is_string() && value["level"] == "INFO");
        let sent = value["_aws"]["CloudWatchMetrics"][0]["Metrics"].as_array().unwrap();
        for metric in sent {
            let known = METRICS.iter().any(|known| metric["Name"] == known.name && metric["Unit"] == known.unit());
            prop_assert!(known, "{}", metric);
        }
        for metric in METRICS.iter().filter(|metric| metric.is_in_every_line()) {
            prop_assert!(sent.iter().any(|sent| sent["Name"] == metric.name), "{}", metric.name);
        }
    }
}

type Break = fn(&mut Value);

#[test]
fn a_line_that_breaks_any_rule_is_found_out() {
    let good = line(
        "N",
        "s",
        1_700_000_000_000,
        &Origin::default(),
        &Report::of(None),
        &Outcome::Success { result: Value::Null, replayed: false },
    );
    assert_eq!(emf::faults(&good), [""; 0]);
    let directive = "/_aws/CloudWatchMetrics/0";
    let breaks: [(&str, Break); 10] = [
        ("no metadata", |line| *line = json!({})),
        ("a timestamp as text", |line| line["_aws"]["Timestamp"] = json!("now")),
        ("no directive", |line| line["_aws"]["CloudWatchMetrics"] = json!([])),
        ("an empty namespace", |line| line["_aws"]["CloudWatchMetrics"][0]["Namespace"] = json!("")),
        ("31 dimensions", |line| line["_aws"]["CloudWatchMetrics"][0]["Dimensions"][0] = json!(vec!["Tool"; 31])),
        ("101 metrics", |line| {
            line["_aws"]["CloudWatchMetrics"][0]["Metrics"] = json!(vec![json!({"Name": "Calls"}); 101]);
        }),
        ("an unknown unit", |line| line["_aws"]["CloudWatchMetrics"][0]["Metrics"][0]["Unit"] = json!("Calls")),
        ("no number", |line| line["Duration"] = Value::Null),
        ("101 numbers", |line| line["Duration"] = json!(vec![1; 101])),
        ("an empty dimension", |line| line["Tool"] = json!("")),
    ];
    for (what, break_it) in breaks {
        let mut line: Value = serde_json::from_str(&good).unwrap();
        assert!(line.pointer(directive).is_some());
        break_it(&mut line);
        assert!(!emf::faults(&format!("{line}\n")).is_empty(), "{what}");
    }
}

/// Do it.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// A tool that never ends, or does at once.
struct Hangs(Effect);

impl Tool for Hangs {
    const NAME: &'static str = "hangs";
    type Args = Nothing;
    type Output = ();

    fn policy(&self) -> Policy<Nothing> {
        Policy::new(self.0)
    }

    async fn call(&self, _: Nothing, _: &CallContext) -> Result<Success<()>, ToolError> {
        pending().await
    }
}

fn pipeline(effect: Effect) -> (Pipeline, Lines) {
    let toolbox = Toolbox::builder().tool(Hangs(effect)).build().expect("a toolbox");
    let lines = Lines::default();
    let telemetry = Telemetry::new("N", "s", Clock::system(), Box::new(lines.clone()));
    let store = Store::new(Scripted::default().client(), "records", Clock::system());
    (Pipeline::new(Arc::new(toolbox), store, Arc::new(telemetry)), lines)
}

fn around() -> Surroundings {
    let deadline = Deadline::new(None, Duration::from_millis(500), Duration::from_secs(20));
    Surroundings { origin: Origin::new("converse", "r-1", None), deadline, limit: 100_000, room: Room::default() }
}

fn call(tool: &str) -> Call {
    Call { tool: tool.to_owned(), arguments: Arguments::from_json(json!({})), ..Call::default() }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_times_out_leaves_its_line() {
    let (pipeline, lines) = pipeline(Effect::ReadOnly);
    pipeline.run(call("hangs"), &around()).await;
    let lines = read(&lines);
    assert_eq!((lines.len(), &lines[0]["Timeout"], &lines[0]["Faults"]), (1, &json!(1), &json!(1)));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_panics_leaves_its_line() {
    let (pipeline, lines) = pipeline(Effect::ReadOnly);
    let panics = |_: &Definition, _: &Value, _: &action_group::tool::Caller| -> Decision { panic!("SECRET-1") };
    let pipeline = pipeline.authorised_by(panics);
    pipeline.run(call("hangs"), &around()).await;
    let lines = read(&lines);
    assert_eq!((lines.len(), &lines[0]["Internal"], &lines[0]["Tool"]), (1, &json!(1), &json!("hangs")));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cut_off_leaves_its_line_and_says_whether_the_effect_is_in_doubt() {
    for (effect, counter) in [(Effect::ReadOnly, "Timeout"), (Effect::Once, "OutcomeUnknown")] {
        let (pipeline, lines) = pipeline(effect);
        let cut = tokio::time::timeout(Duration::from_secs(1), pipeline.run(call("hangs"), &around())).await;
        assert!(cut.is_err());
        let lines = read(&lines);
        assert_eq!(
            (lines.len(), &lines[0][counter], &lines[0]["Duration"]),
            (1, &json!(1), &json!(1000.0)),
            "{effect:?}"
        );
    }
}

/// Names that a model could make up: one for each number, and each hostile in a way of its own.
fn hostile(number: usize) -> String {
    let shapes =
        ["hangs{}", "Hangs", "", "{}", "{}\n", "\u{0}{}", "hangs\u{200b}", "{}\u{1f600}", "../{}", "unknown{}"];
    let shape = shapes[number % shapes.len()].replace("{}", &number.to_string());
    if number.is_multiple_of(97) { shape.repeat(10_000) } else { shape }
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_hostile_names_make_one_series() {
    let (pipeline, lines) = pipeline(Effect::ReadOnly);
    for number in 0..10_000 {
        pipeline.run(call(&hostile(number)), &around()).await;
    }
    let lines = read(&lines);
    let sets: BTreeSet<_> = lines
        .iter()
        .map(|line| {
            format!("{} {} {}", line["Service"], line["Tool"], line["_aws"]["CloudWatchMetrics"][0]["Dimensions"])
        })
        .collect();
    assert_eq!((lines.len(), sets.len()), (10_000, 1), "{sets:?}");
}
