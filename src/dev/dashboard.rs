//! `dev dashboard`: the CloudFormation template of a dashboard with every tool on it.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::{
    Trouble,
    output::print,
    panels::{Curve, Panel, panels},
    schema, stacks,
};
use crate::tool::Toolbox;

pub(super) const HELP: &str = "\
Example:
  dev dashboard > infra/dashboard.yaml";

/// Prints the template.
pub fn run() -> Result<ExitCode, Trouble> {
    let template = template(&schema::toolbox()?, &stacks::tables());
    print(template)?;
    Ok(ExitCode::SUCCESS)
}

/// The template, for these tools and the tables of these settings.
pub fn template(toolbox: &Toolbox, tables: &[String]) -> String {
    let mut parameters = vec![
        ("DashboardName", "The dashboard's name.", None),
        ("FunctionName", "The Lambda function.", None),
        stacks::SERVICE,
        stacks::NAMESPACE,
        stacks::RUNBOOK,
    ];
    parameters.extend(tables.iter().map(|name| (name.as_str(), "A DynamoDB table.", None)));
    let widgets: Vec<_> = widgets(toolbox, tables).iter().map(|widget| format!("          {widget}")).collect();
    stacks::head("dev dashboard > infra/dashboard.yaml", "The dashboard of the tools.", &parameters)
        + "Resources:
  Dashboard:
    Type: AWS::CloudWatch::Dashboard
    Properties:
      DashboardName: !Ref DashboardName
      DashboardBody: !Sub |
        {\"widgets\": [
" + &widgets.join(",\n")
        + "
        ]}
"
}

/// Four panels a row: the function, its tables, then a row for each tool.
fn widgets(toolbox: &Toolbox, tables: &[String]) -> Vec<Value> {
    let mut widgets = vec![text()];
    let rows = [function(), self::tables(tables)].into_iter().chain(tools(toolbox));
    for (row, panels) in (0_u32..).zip(rows) {
        for (column, panel) in (0_u32..).zip(panels) {
            let at = json!({"type": "metric", "x": column * 6, "y": 2 + row * 6, "width": 6, "height": 6});
            let mut widget = at.as_object().cloned().unwrap_or_default();
            widget.insert("properties".into(), panel);
            widgets.push(Value::Object(widget));
        }
    }
    widgets
}

fn text() -> Value {
    let markdown = "## ${Service}\nWhat to do when an alarm goes: ${Runbook}";
    json!({"type": "text", "x": 0, "y": 0, "width": 24, "height": 2, "properties": {"markdown": markdown}})
}

fn function() -> Vec<Value> {
    let metric =
        |name: &str, stat: &str| json!(["AWS/Lambda", name, "FunctionName", "${FunctionName}", {"stat": stat}]);
    vec![
        graph(
            "function: invocations",
            &json!([metric("Invocations", "Sum"), metric("Errors", "Sum"), metric("Throttles", "Sum")]),
        ),
        graph(
            "function: time",
            &json!([metric("Duration", "p50"), metric("Duration", "p99"), metric("Duration", "Maximum")]),
        ),
        graph("function: at once", &json!([metric("ConcurrentExecutions", "Maximum")])),
    ]
}

fn tables(tables: &[String]) -> Vec<Value> {
    let metric = |table: &String, name: &str| json!(["AWS/DynamoDB", name, "TableName", format!("${{{table}}}"), {"stat": "Sum"}]);
    let each = |names: [&str; 2]| tables.iter().flat_map(|table| names.map(|name| metric(table, name))).collect();
    vec![
        graph("tables: capacity used", &each(["ConsumedReadCapacityUnits", "ConsumedWriteCapacityUnits"])),
        graph("tables: throttled", &each(["ReadThrottleEvents", "WriteThrottleEvents"])),
    ]
}

fn tools(toolbox: &Toolbox) -> Vec<Vec<Value>> {
    let panels = panels(toolbox);
    panels.chunk_by(|a, b| a.tool == b.tool).map(|row| row.iter().map(panel).collect()).collect()
}

fn panel(panel: &Panel) -> Value {
    let metric =
        |name: &str, more: Value| json!(["${Namespace}", name, "Service", "${Service}", "Tool", panel.tool, more]);
    let mut metrics = Vec::new();
    for curve in &panel.curves {
        match curve {
            Curve::Metric(name, stat) => {
                let axis = if curve.is_on_the_right() { "right" } else { "left" };
                metrics.push(metric(name, json!({"stat": stat, "label": curve.label(), "yAxis": axis})));
            }
            Curve::PercentOfCalls(name) => {
                let id = name.to_ascii_lowercase();
                metrics.push(metric(name, json!({"stat": "Sum", "id": id, "visible": false})));
                metrics.push(json!([{"expression": format!("100 * {id} / calls"), "label": curve.label()}]));
            }
        }
    }
    if panel.curves.iter().any(|curve| matches!(curve, Curve::PercentOfCalls(_))) {
        metrics.push(metric("Calls", json!({"stat": "Sum", "id": "calls", "visible": false})));
    }
    graph(&format!("{}: {}", panel.tool, panel.title), &Value::Array(metrics))
}

fn graph(title: &str, metrics: &Value) -> Value {
    let axis = json!({"left": {"min": 0}, "right": {"min": 0}});
    json!({"title": title, "region": "${AWS::Region}", "view": "timeSeries", "period": 60, "metrics": metrics, "yAxis": axis})
}
