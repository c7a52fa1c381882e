//! What a dashboard shows of each tool: the panels in `infra/dashboard.yaml`, and in the picture that
//! `examples/dashboard` draws.

use crate::{
    outcome::FailureKind,
    telemetry::{UNKNOWN_TOOL, metrics::of_kind},
    tool::{Definition, Effect, Entry, Toolbox},
};

/// One panel: what is drawn together.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// The tool, or [`UNKNOWN_TOOL`].
    pub tool: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// The curves.
    pub curves: Vec<Curve>,
}

/// One curve of a panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Curve {
    /// A metric, by its name, with CloudWatch's word for how its values are put together.
    Metric(&'static str, &'static str),
    /// The calls of which this counter says yes, in percent.
    PercentOfCalls(&'static str),
}

impl Curve {
    /// The metric.
    pub const fn metric(&self) -> &'static str {
        match self {
            Self::Metric(name, _) | Self::PercentOfCalls(name) => name,
        }
    }

    /// Whether it has the axis on the right to itself: headroom is seconds where calls take milliseconds.
    pub fn is_on_the_right(&self) -> bool {
        self.metric() == "HeadroomMs"
    }

    /// What the legend says.
    pub fn label(&self) -> String {
        match self {
            Self::Metric(name, "Sum") => (*name).to_owned(),
            Self::Metric(name, statistic) => format!("{name} {statistic}"),
            Self::PercentOfCalls(name) => format!("{name} %"),
        }
    }
}

const fn sum(name: &'static str) -> Curve {
    Curve::Metric(name, "Sum")
}

/// The panels of all tools, four a tool, and one of the names that no tool has.
pub fn panels(toolbox: &Toolbox) -> Vec<Panel> {
    let mut panels: Vec<_> = toolbox.iter().map(Entry::definition).flat_map(of_tool).collect();
    let unknown = vec![sum("Calls"), sum("UnknownTool")];
    panels.push(Panel { tool: UNKNOWN_TOOL, title: "names that no tool has", curves: unknown });
    panels
}

fn of_tool(tool: &Definition) -> [Panel; 4] {
    let panel = |title, curves| Panel { tool: tool.name, title, curves };
    let mut calls = vec![sum("Calls"), sum("Attempts"), sum("Retries"), sum("Replays"), sum("RetriesDenied")];
    if tool.effect != Effect::ReadOnly {
        calls.extend([sum("Superseded"), sum("CompletionLost")]);
    }
    let kinds = FailureKind::ALL.into_iter().filter(|kind| can_end(tool, *kind)).filter_map(of_kind);
    let mut failures: Vec<_> = kinds.map(|metric| sum(metric.name)).collect();
    if tool.effect != Effect::ReadOnly {
        failures.push(sum("RefusedByPerson"));
    }
    [
        panel("calls", calls),
        panel("error rate", vec![Curve::PercentOfCalls("Errors"), Curve::PercentOfCalls("Faults")]),
        panel("failures by kind", failures),
        panel(
            "time",
            vec![Curve::Metric("Duration", "p50"), Curve::Metric("Duration", "p99"), Curve::Metric("HeadroomMs", "p1")],
        ),
    ]
}

/// Whether a call of this tool can end with a failure of this kind.
fn can_end(tool: &Definition, kind: FailureKind) -> bool {
    let needs_an_effect =
        [FailureKind::ApprovalRequired, FailureKind::InProgress, FailureKind::KeyReused, FailureKind::OutcomeUnknown];
    kind != FailureKind::UnknownTool && (tool.effect != Effect::ReadOnly || !needs_an_effect.contains(&kind))
}
