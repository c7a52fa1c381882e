//! `dev alarms`: the CloudFormation template of the alarms, for every tool, the function and its tables.
//!
//! Each says in its description what has happened and where the runbook is: the chapter of `docs/operations.md` that has
//! the name of the alarm.

use std::{fmt::Write as _, process::ExitCode};

use serde_json::{Value, json};

use super::{Trouble, output::print, schema, stacks, template::yaml};
use crate::tool::{Definition, Effect, Entry, Toolbox};

pub(super) const HELP: &str = "\
Example:
  dev alarms > infra/alarms.yaml";

/// Prints the template.
pub fn run() -> Result<ExitCode, Trouble> {
    let template = template(&schema::toolbox()?, &stacks::tables());
    print(template)?;
    Ok(ExitCode::SUCCESS)
}

/// One kind of alarm of a tool. It looks at five minutes at a time.
struct Rule {
    /// The end of its name, and its chapter in the runbook in lower case with hyphens.
    name: &'static str,
    chapter: &'static str,
    says: &'static str,
    /// Whether only tools with an effect have it.
    of_effects: bool,
    metric: &'static str,
    statistic: &'static str,
    goes: Goes,
    tells: Tells,
}

/// Whom an alarm tells.
#[derive(Clone, Copy)]
enum Tells {
    /// Those who are woken, when it goes and when it is over.
    OnCall,
    /// Those who decide on calls that wait. Nothing is over when it ends: they wait still.
    Approvers,
}

/// When an alarm goes.
enum Goes {
    /// At the first that is counted.
    AtOnce,
    /// At so many in five minutes, which is a parameter.
    AtLeast(&'static str),
    /// Below so much, which is a parameter, in two of three periods.
    Below(&'static str),
    /// When the counted ones are more than so many percent of the calls, a parameter, in two of three periods.
    Percent(&'static str),
}

const RULES: [Rule; 6] = [
    Rule {
        name: "ErrorRate",
        chapter: "error-rate",
        says: "too many calls fail by a fault that no other call could have avoided.",
        of_effects: false,
        metric: "Faults",
        statistic: "Sum",
        goes: Goes::Percent("FaultPercent"),
        tells: Tells::OnCall,
    },
    Rule {
        name: "OutcomeUnknown",
        chapter: "outcome-unknown",
        says: "an effect may or may not have happened. Somebody has to find out.",
        of_effects: true,
        metric: "OutcomeUnknown",
        statistic: "Sum",
        goes: Goes::AtOnce,
        tells: Tells::OnCall,
    },
    Rule {
        name: "CompletionLost",
        chapter: "completion-lost",
        says: "an effect is done, but its record does not say so.",
        of_effects: true,
        metric: "CompletionLost",
        statistic: "Sum",
        goes: Goes::AtOnce,
        tells: Tells::OnCall,
    },
    Rule {
        name: "Denied",
        chapter: "denied",
        says: "calls are refused.",
        of_effects: false,
        metric: "Denied",
        statistic: "Sum",
        goes: Goes::AtLeast("DeniedCount"),
        tells: Tells::OnCall,
    },
    Rule {
        name: "ApprovalRequired",
        chapter: "approval-required",
        says: "a call waits for a person's approval.",
        of_effects: true,
        metric: "ApprovalRequired",
        statistic: "Sum",
        goes: Goes::AtOnce,
        tells: Tells::Approvers,
    },
    Rule {
        name: "Headroom",
        chapter: "headroom",
        says: "the slowest calls end in the reserve, right before the host's deadline.",
        of_effects: false,
        metric: "HeadroomMs",
        statistic: "p1",
        goes: Goes::Below("ReserveMs"),
        tells: Tells::OnCall,
    },
];

const PARAMETERS: [stacks::Parameter<'static>; 13] = [
    ("FunctionName", "The Lambda function.", None),
    ("LogGroup", "The function's log group.", None),
    ("LoopName", "The function that runs the loop, or none.", Some("none")),
    ("LoopLogGroup", "The loop's log group.", Some("none")),
    ("LoopTable", "The loop's conversations, a DynamoDB table.", Some("none")),
    ("TopicArn", "The SNS topic that is told; empty for none.", Some("")),
    ("ApprovalTopicArn", "The SNS topic that is told that a call waits for a person; empty for none.", Some("")),
    (
        "FaultPercent",
        "The share of calls with a fault, in percent, above which a tool's error rate alarms, and the model's.",
        Some("10"),
    ),
    ("DeniedCount", "How many refusals of a tool by a rule in five minutes alarm.", Some("1")),
    (
        "Gradual",
        "Whether new versions get their calls step by step, so that one alarm has to watch them: true or false.",
        Some("false"),
    ),
    ("ReserveMs", "The function's RESERVE_MS: less headroom than this alarms.", Some("500")),
    stacks::SERVICE,
    stacks::NAMESPACE,
];

/// The template, for these tools and the tables of these settings.
pub fn template(toolbox: &Toolbox, tables: &[String]) -> String {
    let mut parameters = PARAMETERS.to_vec();
    parameters.push(stacks::RUNBOOK);
    parameters.extend(tables.iter().map(|name| (name.as_str(), "A DynamoDB table.", None)));
    let mut text = stacks::head("dev alarms > infra/alarms.yaml", "The alarms of the tools.", &parameters);
    text += "Conditions:\n  HasTopic: !Not [!Equals [!Ref TopicArn, \"\"]]\n";
    text += "  HasApprovalTopic: !Not [!Equals [!Ref ApprovalTopicArn, \"\"]]\n";
    text += "  HasLoop: !Not [!Equals [!Ref LoopName, none]]\n";
    text += "  IsGradual: !Equals [!Ref Gradual, \"true\"]\n\n";
    text += "Resources:\n";
    for (name, resource) in resources(toolbox, tables) {
        let _ = writeln!(text, "  {name}:"); // to a String, so it cannot fail
        yaml(&resource, 4, &mut text);
    }
    text += "\nOutputs:\n  VersionFaults:\n    Description: The alarm at which a new version is taken back.\n";
    text += "    Condition: IsGradual\n    Value: !Ref VersionFaults\n";
    text
}

fn resources(toolbox: &Toolbox, tables: &[String]) -> Vec<(String, Value)> {
    let mut resources = vec![
        (String::from("DeadProcesses"), dead_processes("LogGroup")),
        (String::from("DeadProcess"), dead_process()),
    ];
    resources.extend(of_function("Function", "FunctionName", "invocations"));
    resources.extend(tables.iter().map(|table| (format!("{table}Throttled"), of_table(table))));
    // The loop runs the same tools, and counts their calls in the same metrics.
    let of_loop =
        [("LoopDeadProcesses", dead_processes("LoopLogGroup")), ("LoopTableThrottled", of_table("LoopTable"))];
    let of_loop = of_loop
        .into_iter()
        .chain(of_model())
        .chain([of_turns()])
        .map(|(name, resource)| (String::from(name), resource));
    resources.extend(of_loop.chain(of_function("Loop", "LoopName", "turns of the loop")).map(
        |(name, mut resource)| {
            resource["Condition"] = "HasLoop".into();
            (name, resource)
        },
    ));
    for tool in toolbox.iter().map(Entry::definition) {
        let rules = RULES.iter().filter(|rule| !rule.of_effects || tool.effect != Effect::ReadOnly);
        resources.extend(rules.map(|rule| (stacks::pascal(tool.name) + rule.name, of_tool(tool, rule))));
    }
    resources.push((String::from("VersionFaults"), version_faults(toolbox)));
    resources
}

/// One alarm for all that tells of a version that is no good: a deployment can watch ten at most.
fn version_faults(toolbox: &Toolbox) -> Value {
    let of_tools = toolbox.names().map(|tool| stacks::pascal(tool) + "ErrorRate");
    let all = ["FunctionErrors", "DeadProcess"].into_iter().map(String::from).chain(of_tools);
    let rule: Vec<_> = all.map(|alarm| format!("ALARM(\"${{{alarm}}}\")")).collect();
    json!({
        "Type": "AWS::CloudWatch::CompositeAlarm",
        "Condition": "IsGradual",
        "Properties": {
            "AlarmDescription": {"Fn::Sub": "${Service}, a new version that gets its calls step by step is taken back while this is in alarm. ${Runbook}#error-rate"},
            "AlarmRule": {"Fn::Sub": rule.join(" OR ")},
        },
    })
}

/// The share of calls that has to be exceeded counts from so many calls in five minutes: of two calls, one is no rate.
const LEAST_CALLS: u32 = 10;

fn of_tool(tool: &Definition, rule: &Rule) -> Value {
    let mut own = if matches!(rule.goes, Goes::Percent(_)) { rate(tool, rule) } else { single(tool, rule) };
    let (comparison, threshold, periods) = match rule.goes {
        Goes::AtOnce => ("GreaterThanThreshold", json!(0), (1, 1)),
        Goes::AtLeast(count) => ("GreaterThanOrEqualToThreshold", json!({"Ref": count}), (1, 1)),
        Goes::Below(least) => ("LessThanThreshold", json!({"Ref": least}), (2, 3)),
        Goes::Percent(most) => ("GreaterThanThreshold", json!({"Ref": most}), (2, 3)),
    };
    own["ComparisonOperator"] = comparison.into();
    own["Threshold"] = threshold;
    alarm_for(rule.tells, own, periods, &format!("{}: {}", tool.name, rule.says), rule.chapter)
}

fn metric(tool: &Definition, name: &str) -> Value {
    let dimensions = json!([
        {"Name": "Service", "Value": {"Ref": "Service"}},
        {"Name": "Tool", "Value": tool.name},
    ]);
    json!({"Namespace": {"Ref": "Namespace"}, "MetricName": name, "Dimensions": dimensions})
}

/// An alarm on one metric.
fn single(tool: &Definition, rule: &Rule) -> Value {
    let mut own = metric(tool, rule.metric);
    let statistic = if rule.statistic.starts_with('p') { "ExtendedStatistic" } else { "Statistic" };
    own[statistic] = rule.statistic.into();
    own["Period"] = PERIOD.into();
    own
}

/// An alarm on the share of calls that a metric counts.
fn rate(tool: &Definition, rule: &Rule) -> Value {
    percent(&metric(tool, rule.metric), &metric(tool, "Calls"))
}

/// How many percent of the calls are counted.
fn percent(counted: &Value, calls: &Value) -> Value {
    let expression = format!("IF(calls >= {LEAST_CALLS}, 100 * counted / calls, 0)");
    json!({"Metrics": [
        {"Id": "rate", "Label": "percent", "Expression": expression},
        query("counted", counted),
        query("calls", calls),
    ]})
}

/// The alarms of the model that the loop asks. Of all its metrics these two wake somebody: throttles and failures that
/// the SDK or the loop has mended end no turn, and tokens and money have their limits.
fn of_model() -> [(&'static str, Value); 2] {
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
fn of_turns() -> (&'static str, Value) {
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

/// A metric that an expression works with.
fn query(id: &str, metric: &Value) -> Value {
    json!({"Id": id, "ReturnData": false, "MetricStat": {"Metric": metric, "Period": PERIOD, "Stat": "Sum"}})
}

const PERIOD: u32 = 300;

/// The alarms of a function, which a parameter names.
fn of_function(prefix: &str, parameter: &str, what: &str) -> [(String, Value); 2] {
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

fn of_table(table: &str) -> Value {
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
fn dead_processes(log_group: &str) -> Value {
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

fn dead_process() -> Value {
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

fn alarm(own: Value, periods: (u32, u32), says: &str, chapter: &str) -> Value {
    alarm_for(Tells::OnCall, own, periods, says, chapter)
}

fn alarm_for(tells: Tells, mut own: Value, (datapoints, periods): (u32, u32), says: &str, chapter: &str) -> Value {
    let told = |condition: &str, topic: &str| json!({"Fn::If": [condition, [{"Ref": topic}], {"Ref": "AWS::NoValue"}]});
    own["AlarmDescription"] = json!({"Fn::Sub": format!("${{Service}}, {says} ${{Runbook}}#{chapter}")});
    match tells {
        Tells::OnCall => {
            own["AlarmActions"] = told("HasTopic", "TopicArn");
            own["OKActions"] = told("HasTopic", "TopicArn");
        }
        Tells::Approvers => own["AlarmActions"] = told("HasApprovalTopic", "ApprovalTopicArn"),
    }
    own["DatapointsToAlarm"] = datapoints.into();
    own["EvaluationPeriods"] = periods.into();
    own["TreatMissingData"] = "notBreaching".into();
    json!({"Type": "AWS::CloudWatch::Alarm", "Properties": own})
}
