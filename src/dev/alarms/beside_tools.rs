//! The alarms of what the tools run on and beside: the function, its process, its tables, and the model that the loop asks.

use serde_json::{Value, json};

use super::shape::{PERIOD, Tells, alarm, alarm_for, percent, query};

/// The alarms of a function, which a parameter names.
pub(super) fn of_function(prefix: &str, parameter: &str, what: &str) -> [(String, Value); 2] {
    let one = |metric: &str, least: u32| {
        json!({
            "Namespace": "AWS/Lambda",
            "MetricName": metric,
            "Dimensions": [{"Name": "FunctionName", "Value": {"Ref": parameter}}],
            "Statistic": "Sum",
            "Period": PERIOD,
            "ComparisonOperator": "GreaterThanOrEqualToThreshold",
            "Threshold": least,
        })
    };
    let errors = alarm(one("Errors", 5), (1, 1), &format!("{what} end with an error."), "function-errors");
    let throttles = alarm(one("Throttles", 1), (1, 1), &format!("{what} are throttled."), "function-throttled");
    [(format!("{prefix}Errors"), errors), (format!("{prefix}Throttled"), throttles)]
}

/// The alarm of a table.
pub(super) fn of_table(table: &str) -> Value {
    let dimensions = json!([{"Name": "TableName", "Value": {"Ref": table}}]);
    let metric = |name: &str| json!({"Namespace": "AWS/DynamoDB", "MetricName": name, "Dimensions": dimensions});
    let own = json!({
        // Neither metric is there while nothing is throttled; the sum takes those that are.
        "Metrics": [
            {"Id": "throttled", "Label": "throttled", "Expression": "SUM(METRICS())"},
            query("reads", &metric("ReadThrottleEvents")),
            query("writes", &metric("WriteThrottleEvents")),
        ],
        "ComparisonOperator": "GreaterThanThreshold",
        "Threshold": 0,
    });
    alarm(own, (1, 1), &format!("{table}: requests are throttled."), "throttled-table")
}

/// The name of the metric that [`dead_processes`] makes of Lambda's own log lines.
const DEAD_PROCESSES: &str = "DeadProcesses";

/// Lambda's report of an invocation that it has ended, or whose process has ended itself.
pub(super) fn dead_processes(log_group: &str) -> Value {
    let pattern = "{ $.type = \"platform.report\" && ($.record.status = \"timeout\" || $.record.errorType = \"Runtime.*\" || $.record.errorType = \"Sandbox.*\") }";
    json!({
        "Type": "AWS::Logs::MetricFilter",
        "Properties": {
            "LogGroupName": {"Ref": log_group},
            "FilterPattern": pattern,
            "MetricTransformations": [{
                "MetricNamespace": {"Fn::Sub": "${Namespace}/${Service}"},
                "MetricName": DEAD_PROCESSES,
                "MetricValue": "1",
                "Unit": "Count",
            }],
        },
    })
}

/// The alarm on that metric.
pub(super) fn dead_process() -> Value {
    let own = json!({
        "Namespace": {"Fn::Sub": "${Namespace}/${Service}"},
        "MetricName": DEAD_PROCESSES,
        "Statistic": "Sum",
        "Period": PERIOD,
        "ComparisonOperator": "GreaterThanThreshold",
        "Threshold": 0,
    });
    alarm(own, (1, 1), "Lambda had to end an invocation, or its process ended itself.", "dead-process")
}

/// The alarms of the model that the loop asks. Of all its metrics these two wake somebody: throttles and failures that
/// the SDK or the loop has mended end no turn, and tokens and money have their limits.
pub(super) fn of_model() -> [(&'static str, Value); 2] {
    let mut errors = percent(&loop_metric("ModelErrors"), &loop_metric("ModelRequests"));
    errors["ComparisonOperator"] = "GreaterThanThreshold".into();
    errors["Threshold"] = json!({"Ref": "FaultPercent"});
    let denied = any_of_the_loop("ModelDenied");
    [
        ("LoopModelErrors", alarm(errors, (2, 3), "too many requests to the model fail.", "model-errors")),
        ("LoopModelDenied", alarm(denied, (1, 1), "the model may not be used.", "model-denied")),
    ]
}

/// That a turn waits for a person. The loop asks before anything of a batch runs, so that the tools' own metrics do not count it.
pub(super) fn of_turns() -> (&'static str, Value) {
    let (own, says) = (any_of_the_loop("StopAwaitingApproval"), "a turn of the loop waits for a person's approval.");
    ("LoopTurnAwaitsApproval", alarm_for(Tells::Approvers, own, (1, 1), says, "approval-required"))
}

fn loop_metric(name: &str) -> Value {
    let dimensions = json!([{"Name": "Service", "Value": {"Ref": "Service"}}]);
    json!({"Namespace": {"Ref": "Namespace"}, "MetricName": name, "Dimensions": dimensions})
}

/// An alarm's metric that should not be counted at all.
fn any_of_the_loop(name: &str) -> Value {
    let mut own = loop_metric(name);
    own["Statistic"] = "Sum".into();
    own["Period"] = PERIOD.into();
    own["ComparisonOperator"] = "GreaterThanThreshold".into();
    own["Threshold"] = 0.into();
    own
}
