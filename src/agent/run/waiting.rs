//! Calls that wait for a person: which do, and what becomes of them.
//!
//! | who wants the approval | known | the batch |
//! | --- | --- | --- |
//! | the tool's policy | before anything runs ([`Next::AskApproval`](super::Next)) | waits as a whole, nothing of it has run |
//! | the tool's own code | once it ran | has run; what it answered stays, and the loop waits with the rest |
//!
//! Calls of the second kind are looked up when the run goes on ([`Next::ReadRecords`](super::Next)), not run: a tool that
//! nobody has answered yet is not asked again.

use std::collections::BTreeMap;

use super::{
    super::{
        ledger::{Entry, Fate},
        words::{self, Why},
    },
    AgentRun, Begun, Phase,
};
use crate::{
    call::Standing,
    outcome::{Changed, Failure, FailureKind, Outcome},
};

impl AgentRun {
    /// Whether what is open has run and asks for a person by itself; else nothing of its batch has run.
    pub(super) const fn has_asked(&self) -> bool {
        self.turn.asked
    }

    /// Takes the calls that wait for a person out of what has ended. Whether there are any.
    pub(super) fn let_wait(&mut self, ended: &mut BTreeMap<usize, Outcome>) -> bool {
        let mut waits = false;
        for entry in self.turn.ledger.iter_mut().skip(self.turn.open).filter(|entry| entry.is_open()) {
            let failure = ended.get(&entry.call.ordinal).and_then(Outcome::failure);
            let Some((failure, id)) = failure.and_then(|failure| Some((failure, failure.awaits()?))) else { continue };
            entry.in_doubt |= failure.changed() != Changed::Nothing;
            entry.fate = Fate::Waiting(Some(id.to_owned()));
            ended.remove(&entry.call.ordinal);
            waits = true;
        }
        self.turn.asked |= waits;
        waits
    }

    /// Takes up how the calls stand that may have to wait: the batch waits on, or may run.
    pub(super) fn decided(&mut self, mut standings: BTreeMap<usize, Standing>) {
        let mut waits = false;
        let (tools, asked) = (&self.tools, self.turn.asked);
        for entry in self.turn.ledger.iter_mut().skip(self.turn.open).filter(|entry| entry.is_open()) {
            if !asked && !tools.get(&entry.call.tool).is_some_and(|facts| facts.may_need_approval) {
                entry.fate = Fate::Open; // whatever it waited for under another deployment
                continue;
            }
            let standing = standings.remove(&entry.call.ordinal).unwrap_or(Standing::Unavailable);
            entry.in_doubt |= matches!(standing, Standing::WaitsInDoubt(_));
            // What could not be found out waits too: nothing beside it runs on a guess.
            entry.fate = match standing {
                Standing::Waits(id) | Standing::WaitsInDoubt(id) => Fate::Waiting(Some(id)),
                Standing::Unavailable => Fate::Waiting(None),
                _ => Fate::Open,
            };
            waits |= entry.fate != Fate::Open;
        }
        // Whichever driver was there before: what is open was not handed out, or has ended by asking.
        self.turn.begun = Begun::No;
        self.turn.phase = if waits { Phase::Paused } else { Phase::Tools };
    }

    /// Whether a call is known to wait for a person.
    pub(super) fn someone_is_asked(&self) -> bool {
        self.turn.ledger.iter().skip(self.turn.open).any(|entry| matches!(entry.fate, Fate::Waiting(Some(_))))
    }

    /// Refuses what is open: what waits was not approved, and the rest for this reason.
    pub(super) fn refuse_open(&mut self, why: Why) {
        let (limits, tools, open) = (&self.limits, &self.tools, self.turn.open);
        let mut outcomes = BTreeMap::new();
        for entry in self.turn.ledger.iter_mut().skip(open).filter(|entry| entry.is_open()) {
            let why = match entry.fate {
                Fate::Waiting(Some(_)) => Why::NotApproved,
                Fate::Waiting(None) => Why::Unread,
                _ => why,
            };
            if entry.in_doubt {
                outcomes.insert(entry.call.ordinal, not_approved_in_doubt(tools, entry));
                entry.fate = Fate::Open;
            } else {
                entry.fate = Fate::not_run(why, limits);
            }
        }
        self.settle(outcomes);
    }

    /// Answers the calls of a driver that is gone by what their records say, and runs none.
    pub(super) fn look_up(&mut self, mut standings: BTreeMap<usize, Standing>) {
        let (limits, tools, open) = (&self.limits, &self.tools, self.turn.open);
        let mut outcomes = BTreeMap::new();
        for entry in self.turn.ledger.iter_mut().skip(open).filter(|entry| entry.is_open()) {
            let outcome = match standings.remove(&entry.call.ordinal) {
                Some(Standing::Waits(_)) if !entry.in_doubt => {
                    entry.fate = Fate::not_run(Why::NotApproved, limits);
                    continue;
                }
                Some(Standing::Waits(_) | Standing::WaitsInDoubt(_)) => not_approved_in_doubt(tools, entry),
                standing => super::batch::found(tools, entry, standing),
            };
            outcomes.insert(entry.call.ordinal, outcome);
        }
        self.settle(outcomes);
    }
}

/// The outcome of a call that waited after an attempt that may have been done, and was not approved.
fn not_approved_in_doubt(tools: &super::Tools, entry: &Entry) -> Outcome {
    let (text, closing) = (words::not_approved_in_doubt(), words::interrupted(entry.facts(tools)).1.to_owned());
    Outcome::Failure(Failure::new(FailureKind::OutcomeUnknown, text).with_changed(Changed::Unknown, closing))
}
