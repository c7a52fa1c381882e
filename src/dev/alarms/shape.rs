//! One alarm, as CloudFormation wants it.

use serde_json::{Value, json};

/// The seconds that an alarm looks at, at a time.
pub(super) const PERIOD: u32 = 300;

/// Whom an alarm tells.
#[derive(Clone, Copy)]
pub(super) enum Tells {
    /// Those who are woken, when it goes and when it is over.
    OnCall,
    /// Those who decide on calls that wait. Nothing is over when it ends: they wait still.
    Approvers,
}

/// The share of calls that has to be exceeded counts from so many calls in five minutes: of two calls, one is no rate.
const LEAST_CALLS: u32 = 10;

/// How many percent of the calls are counted.
pub(super) fn percent(counted: &Value, calls: &Value) -> Value {
    let expression = format!("IF(calls >= {LEAST_CALLS}, 100 * counted / calls, 0)");
    json!({"Metrics": [
        {"Id": "rate", "Label": "percent", "Expression": expression},
        query("counted", counted),
        query("calls", calls),
    ]})
}

/// A metric that an expression works with.
pub(super) fn query(id: &str, metric: &Value) -> Value {
    json!({"Id": id, "ReturnData": false, "MetricStat": {"Metric": metric, "Period": PERIOD, "Stat": "Sum"}})
}

/// An alarm that tells those who are woken. `says` ends its description, and `chapter` is that of the runbook.
pub(super) fn alarm(own: Value, periods: (u32, u32), says: &str, chapter: &str) -> Value {
    alarm_for(Tells::OnCall, own, periods, says, chapter)
}

/// The same, for others too.
pub(super) fn alarm_for(
    tells: Tells,
    mut own: Value,
    (datapoints, periods): (u32, u32),
    says: &str,
    chapter: &str,
) -> Value {
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
