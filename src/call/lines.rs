//! The lines of a call, written whatever ends it: its end, a panic, or that nobody waits for it any more.

use tokio::time::Instant;

use super::{Surroundings, explain};
use crate::{
    outcome::{Failure, FailureKind, Outcome},
    telemetry::{Report, Telemetry},
    tool::{Definition, Effect},
};

/// The lines that are still to be written. Dropped before that, they say that the call was cut off.
pub(super) struct Lines<'a> {
    telemetry: &'a Telemetry,
    around: &'a Surroundings,
    tool: Option<&'a Definition>,
    began: Instant,
    pub report: Report,
    written: bool,
}

impl<'a> Lines<'a> {
    /// The lines of a call that begins now.
    pub fn begin(telemetry: &'a Telemetry, around: &'a Surroundings, tool: Option<&'a Definition>) -> Self {
        Self { telemetry, around, tool, began: Instant::now(), report: Report::of(tool), written: false }
    }

    /// Writes them.
    pub fn end(mut self, outcome: &Outcome) {
        self.write(outcome);
    }

    fn write(&mut self, outcome: &Outcome) {
        self.written = true;
        self.report.duration = self.began.elapsed();
        self.report.headroom = self.around.deadline.headroom();
        self.telemetry.record(&self.around.origin, &self.report, outcome);
    }
}

impl Drop for Lines<'_> {
    fn drop(&mut self) {
        if !self.written {
            self.report.fault = Some(String::from("cut off"));
            let outcome = cut_off(self.tool, self.report.attempts);
            self.write(&outcome);
        }
    }
}

/// How a call ended that was dropped on its way: the runtime's guard does that to one that outlives the deadline.
fn cut_off(tool: Option<&Definition>, attempts: u32) -> Outcome {
    let text = "The call was cut off.";
    Outcome::Failure(match begun(tool, attempts) {
        Some(tool) => explain::unknown(tool, text),
        None => explain::nothing_here(FailureKind::Timeout, text),
    })
}

/// How a call ended that panicked outside of its attempts.
pub(super) fn panicked(tool: Option<&Definition>, report: &mut Report) -> Failure {
    report.fault = Some(String::from("panic"));
    if let Some(tool) = begun(tool, report.attempts) {
        return explain::unknown_by_fault(tool, &report.reference);
    }
    let text = explain::internal(&report.reference) + " Calling it again will not help.";
    explain::nothing_here(FailureKind::Internal, text)
}

/// The tool, if an attempt may have had its effect and nobody heard how it ended.
fn begun(tool: Option<&Definition>, attempts: u32) -> Option<&Definition> {
    tool.filter(|tool| attempts > 0 && tool.effect != Effect::ReadOnly)
}
