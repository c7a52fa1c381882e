//! Every metric there is: one table, which the metric line, the dashboard, the alarms and the documents follow.
//!
//! A counter is a whole number and a timer a [`Duration`], so that no value can be negative, infinite or no number.

use std::time::Duration;

use super::{Quantity, RefusedBy, Report};
use crate::outcome::{FailureKind, Fixer, Outcome};

/// One metric of a call.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name in CloudWatch.
    pub name: &'static str,
    /// What it says about a call.
    pub meaning: &'static str,
    source: Source,
}

/// Where the value comes from, and so its unit and whether it is always there.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// In every line, also when it is 0: what rates are made of.
    Counter(fn(&Report, &Outcome) -> u32),
    /// In every line.
    Timer(fn(&Report) -> Duration),
    /// 1 in the lines of calls that end with this kind of failure, else not there.
    Kind(FailureKind),
    /// 1 in the lines of calls to which this happened, else not there.
    Event(fn(&Report) -> bool),
}

impl Metric {
    /// What is counted or measured, in CloudWatch's words.
    pub const fn unit(&self) -> &'static str {
        match self.source {
            Source::Timer(_) => "Milliseconds",
            _ => "Count",
        }
    }

    /// Whether every line has it. The others are there only when they count, since a metric costs when it is sent.
    pub const fn is_in_every_line(&self) -> bool {
        matches!(self.source, Source::Counter(_) | Source::Timer(_))
    }

    /// Its value for a call that ended so; none if it does not stand in the line.
    pub(super) fn of(&self, report: &Report, outcome: &Outcome) -> Option<Quantity> {
        match self.source {
            Source::Counter(count) => Some(Quantity::Count(count(report, outcome).into())),
            Source::Timer(time) => Some(Quantity::Time(time(report))),
            // An alarm counts what is denied, and a person's decision is nothing to be woken for.
            Source::Kind(FailureKind::Denied) if report.refused_by == RefusedBy::Person => None,
            Source::Kind(kind) => (outcome.failure()?.kind() == kind).then_some(Quantity::Count(1)),
            Source::Event(happened) => happened(report).then_some(Quantity::Count(1)),
        }
    }
}

const fn metric(name: &'static str, source: Source, meaning: &'static str) -> Metric {
    Metric { name, meaning, source }
}

/// The table.
pub const METRICS: [Metric; 25] = [
    metric("Calls", Source::Counter(|_, _| 1), "calls that have ended"),
    metric(
        "Errors",
        Source::Counter(|_, outcome| outcome.failure().is_some().into()),
        "calls that ended with a failure",
    ),
    metric(
        "Faults",
        Source::Counter(|_, outcome| outcome.failure().is_some_and(|failure| is_fault(failure.kind())).into()),
        FAULTS,
    ),
    metric("Replays", Source::Counter(|_, outcome| is_replay(outcome).into()), "calls answered with an earlier result"),
    metric("Attempts", Source::Counter(|report, _| report.attempts), "attempts that began"),
    metric("Retries", Source::Counter(|report, _| report.attempts.saturating_sub(1)), "attempts after the first"),
    metric("Duration", Source::Timer(|report| report.duration), "how long the call took"),
    metric("HeadroomMs", Source::Timer(|report| report.headroom), "time left until the host's deadline when it ended"),
    metric(
        "CompletionLost",
        Source::Event(|report| report.completion_lost),
        "the effect is done, its record could not say so",
    ),
    metric("Superseded", Source::Event(|report| report.superseded), "another execution had taken the record over"),
    metric("RetriesDenied", Source::Event(|report| report.retry_denied), "not tried again, for want of retry budget"),
    metric("RefusedByPerson", Source::Event(|report| report.refused_by == RefusedBy::Person), REFUSED),
    metric("InvalidInput", Source::Kind(FailureKind::InvalidInput), "the arguments broke a rule of the schema"),
    metric("NotFound", Source::Kind(FailureKind::NotFound), "what the arguments name does not exist"),
    metric("Rejected", Source::Kind(FailureKind::Rejected), "a business rule forbade it"),
    metric("UnknownTool", Source::Kind(FailureKind::UnknownTool), "no tool has that name"),
    metric("Denied", Source::Kind(FailureKind::Denied), "a policy or a tool refused it"),
    metric("ApprovalRequired", Source::Kind(FailureKind::ApprovalRequired), "it waits for a person"),
    metric("InProgress", Source::Kind(FailureKind::InProgress), "the same action was still running"),
    metric("KeyReused", Source::Kind(FailureKind::KeyReused), "the key was used before with other arguments"),
    metric("Transient", Source::Kind(FailureKind::Transient), "a backend or the table was not available"),
    metric("Timeout", Source::Kind(FailureKind::Timeout), "the time was up, and nothing was changed"),
    metric("OutcomeUnknown", Source::Kind(FailureKind::OutcomeUnknown), "the effect may or may not have happened"),
    metric("TooLarge", Source::Kind(FailureKind::TooLarge), "the result did not fit the answer"),
    metric("Internal", Source::Kind(FailureKind::Internal), "a fault of this program or of a tool"),
];

const FAULTS: &str =
    "failures by which something here is broken: `transient`, `timeout`, `outcome_unknown`, `internal`";

const REFUSED: &str = "a person who had to approve it has refused it";

/// The metric of this name.
pub fn named(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}

/// The counter of a kind of failure.
pub fn of_kind(kind: FailureKind) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| matches!(metric.source, Source::Kind(counted) if counted == kind))
}

/// Failures that no other call, no patience and no approval could have avoided. Alarms count them: a model that guesses at
/// arguments wakes nobody.
pub(crate) fn is_fault(kind: FailureKind) -> bool {
    match kind {
        FailureKind::InProgress => false,
        FailureKind::OutcomeUnknown => true,
        _ => matches!(kind.fixer(), Fixer::Time | Fixer::Developer),
    }
}

const fn is_replay(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Success { replayed: true, .. })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_metric_has_a_name_of_its_own_that_cloudwatch_takes() {
        let names: BTreeSet<_> = METRICS.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), METRICS.len());
        for name in names {
            assert!((1..=255).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{name}");
        }
    }

    #[test]
    fn every_kind_of_failure_is_counted_by_its_own_name() {
        for kind in FailureKind::ALL {
            let metric = of_kind(kind).unwrap_or_else(|| panic!("{kind} is not counted"));
            let snake = metric.name.chars().fold(String::new(), |mut snake, c| {
                if c.is_ascii_uppercase() && !snake.is_empty() {
                    snake.push('_');
                }
                snake.push(c.to_ascii_lowercase());
                snake
            });
            assert_eq!(snake, kind.name());
        }
    }

    #[test]
    fn the_faults_are_the_kinds_that_their_meaning_lists() {
        let counted: BTreeSet<_> =
            FailureKind::ALL.into_iter().filter(|kind| is_fault(*kind)).map(FailureKind::name).collect();
        assert_eq!(counted, FAULTS.split('`').skip(1).step_by(2).collect());
    }

    #[test]
    fn a_line_stays_within_what_one_directive_can_hold() {
        const { assert!(METRICS.len() <= 100) }
    }
}
