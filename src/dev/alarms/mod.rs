//! `dev alarms`: the CloudFormation template of the alarms, for every tool, the function and its tables.
//!
//! Each says in its description what has happened and where the runbook is: the chapter of `docs/operations.md` that has
//! the name of the alarm.
//!
//! | file | its one idea |
//! | --- | --- |
//! | `tool` | the alarms of one tool |
//! | `beside_tools` | those of the function, the tables and the model |
//! | `shape` | one alarm, as CloudFormation wants it |

mod beside_tools;
mod shape;
mod tool;

use std::{fmt::Write as _, process::ExitCode};

use serde_json::{Value, json};

use self::{
    beside_tools::{dead_process, dead_processes, of_function, of_model, of_table, of_turns},
    tool::{of_tool, rules},
};
use super::{Trouble, output::print, schema, stacks, yaml::yaml};
use crate::tool::{Entry, Toolbox};

pub(super) const HELP: &str = "\
Example:
  dev alarms > infra/alarms.yaml";

/// Prints the template.
pub fn run() -> Result<ExitCode, Trouble> {
    let template = template(&schema::toolbox()?, &stacks::tables());
    print(template)?;
    Ok(ExitCode::SUCCESS)
}

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
        resources.extend(rules(tool).map(|rule| (stacks::pascal(tool.name) + rule.name, of_tool(tool, rule))));
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
