//! The alarms of one tool: what each looks at, and when it goes.

use serde_json::{Value, json};

use super::shape::{PERIOD, Tells, alarm_for, percent};
use crate::tool::{Definition, Effect};

/// One kind of alarm of a tool. It looks at five minutes at a time.
pub(super) struct Rule {
    /// The end of its name, and its chapter in the runbook in lower case with hyphens.
    pub name: &'static str,
    chapter: &'static str,
    says: &'static str,
    /// Whether only tools with an effect have it.
    of_effects: bool,
    metric: &'static str,
    statistic: &'static str,
    goes: Goes,
    tells: Tells,
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

/// All of them.
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

/// Those that this tool has.
pub(super) fn rules(tool: &Definition) -> impl Iterator<Item = &'static Rule> + use<> {
    let is_read = tool.effect == Effect::ReadOnly;
    RULES.iter().filter(move |rule| !rule.of_effects || !is_read)
}

/// The alarm of a tool by a rule.
pub(super) fn of_tool(tool: &Definition, rule: &Rule) -> Value {
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
