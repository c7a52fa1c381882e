//! What a model may not ask for again: guards against a loop that fails in circles.
//!
//! A warning alone has been ignored dozens of times in a row, so that each guard takes something away:
//!
//! ```text
//! the same call has failed `max_identical_failures` times ──► it is not run again
//! a tool has failed `max_consecutive_failures` replies in a row, ──► the tool is withdrawn
//!   or a call of it was refused beside calls that ran
//! a reply asks for nothing but refused calls ──► a last request, whose calls are not run ──► the end
//! ```
//!
//! | outcome | of the same call | of the tool |
//! | --- | --- | --- |
//! | success | begins anew | begins anew |
//! | `in_progress` | does not count: to ask again is right | does not count |
//! | `approval_required`, an `outcome_unknown` that waits for a person | counts: to ask again is of no use | does not count: another call may need none |
//! | any other failure | counts | counts once a reply: the model has not seen it before |
//!
//! A call that waits for a person is seen here only where nobody is there to decide; else it pauses the loop. The limits of a
//! conversation ([`conversation_guard`](crate::conversation_guard)) do not count it: there a person may approve between two
//! calls.
//!
//! Names that no tool has count as one tool. Polling that succeeds is never stopped here. A person's message begins anew.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{
    ledger::{Entry, Fate},
    limits::Limits,
    tools::Tools,
    words::Refused,
};
use crate::outcome::FailureKind;

/// The name under which the names that no tool has are counted. No tool can have it.
const NO_TOOL: &str = "?";

/// What has failed in this turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Guard {
    /// Replies in a row in which the tool did nothing but fail.
    streaks: BTreeMap<String, u32>,
    /// Failures of the same call, by its fingerprint.
    failures: BTreeMap<String, u32>,
    /// The tools that are no longer offered.
    withdrawn: BTreeSet<String>,
}

/// How a call ended, as the guard sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Success,
    Failure,
    Waiting,
    Neutral,
}

impl Seen {
    /// `None` of a call that has not run.
    fn of(fate: &Fate) -> Option<Self> {
        match fate {
            Fate::Open | Fate::Waiting(_) | Fate::NotRun { .. } => None,
            Fate::Done { .. } => Some(Self::Success),
            Fate::Failed { kind, .. } if kind == FailureKind::InProgress.name() => Some(Self::Neutral),
            Fate::Failed { awaits: Some(_), .. } => Some(Self::Waiting),
            Fate::Failed { kind, .. } if kind == FailureKind::ApprovalRequired.name() => Some(Self::Waiting),
            Fate::Failed { .. } => Some(Self::Failure),
        }
    }
}

impl Guard {
    /// Whether the call may run. `beside` are the fingerprints of calls of the same reply that will.
    pub fn check(
        &self,
        limits: &Limits,
        tools: &Tools,
        tool: &str,
        print: &str,
        beside: &[String],
    ) -> Result<(), Refused> {
        if self.withdrawn.contains(counted(tools, tool)) {
            return Err(Refused::Withdrawn);
        }
        let failed = self.failures.get(print).copied().unwrap_or_default();
        let beside = beside.iter().filter(|other| *other == print).count();
        let beside = u32::try_from(beside).unwrap_or(u32::MAX);
        // What has never failed may be asked for as often as one likes: it may be polling.
        if failed > 0 && failed.saturating_add(beside) >= limits.max_identical_failures {
            return Err(Refused::Identical(failed));
        }
        Ok(())
    }

    /// Counts how the calls of one reply ended.
    pub fn count(&mut self, limits: &Limits, tools: &Tools, batch: &[Entry]) {
        let mut of_tools: BTreeMap<String, Vec<Seen>> = BTreeMap::new();
        for Entry { call, fate, .. } in batch {
            let Some(seen) = Seen::of(fate) else { continue };
            let print = call.fingerprint();
            match seen {
                Seen::Success => drop(self.failures.remove(&print)),
                Seen::Failure | Seen::Waiting => *self.failures.entry(print).or_default() += 1,
                Seen::Neutral => {}
            }
            of_tools.entry(counted(tools, &call.tool).to_owned()).or_default().push(seen);
        }
        for (tool, seen) in of_tools {
            if seen.contains(&Seen::Success) {
                self.streaks.remove(&tool);
            } else if seen.contains(&Seen::Failure) {
                let streak = self.streaks.entry(tool.clone()).or_default();
                *streak += 1;
                if *streak >= limits.max_consecutive_failures {
                    self.withdrawn.insert(tool);
                }
            }
        }
    }

    /// Takes a tool away.
    pub fn withdraw(&mut self, tools: &Tools, tool: &str) {
        self.withdrawn.insert(counted(tools, tool).to_owned());
    }

    /// The tools that are no longer offered.
    pub const fn withdrawn(&self) -> &BTreeSet<String> {
        &self.withdrawn
    }
}

fn counted<'a>(tools: &Tools, tool: &'a str) -> &'a str {
    if tools.get(tool).is_some() { tool } else { NO_TOOL }
}
