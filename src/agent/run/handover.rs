//! A run changes hands: what one driver leaves when it stops, and what the next one, perhaps of another version, makes of it.
//!
//! What a driver has not said that it let go of may have begun: it may have died at any moment.

use super::{
    super::{history, limits::Limits, tools::Tools},
    AgentRun, Approvals, Begun, Phase,
};
use crate::tool::Effect;

impl AgentRun {
    /// The driver stops between two actions, because the person or the process wants it: nothing new is begun. What
    /// [`AgentRun::next`] says then is the end, with a report; [`AgentRun::resumed`] takes it back.
    pub fn interrupted(&mut self) {
        self.turn.interrupted = true;
    }

    /// The driver lets go of the run at an end. From then on it is known that a batch that had not been handed out was
    /// not begun, and that no request to the model is on its way. Save the run after it, if it says that it has changed.
    pub fn put_down(&mut self) -> bool {
        match self.turn.phase {
            Phase::Tools if self.turn.begun == Begun::No => {
                self.turn.begun = Begun::PutDown;
                true
            }
            Phase::Model => !std::mem::replace(&mut self.turn.put_down, true),
            _ => false,
        }
    }

    /// The run was loaded: its driver may have died, or a person may have decided. Always called after loading.
    pub fn resumed(&mut self) {
        history::mend(&mut self.messages);
        let put_down = std::mem::take(&mut self.turn.put_down);
        if self.turn.phase == Phase::Model && !put_down {
            self.count_unanswered(); // the request was saved as the next thing, and nobody can tell whether it was sent
        }
        let turn = &mut self.turn;
        (turn.interrupted, turn.failure, turn.failures) = (false, None, 0);
        turn.begun = match turn.begun {
            Begun::PutDown => Begun::No,
            Begun::No | Begun::Perhaps => Begun::Perhaps,
        };
        if turn.phase == Phase::Paused {
            turn.phase = Phase::Approval;
        }
    }

    /// Replaces what the deployment says, after its conversation was loaded: another version may have other limits, tools and
    /// another prompt. Calls that the version before may have begun are judged by the tools that it had.
    pub fn equip(&mut self, limits: Limits, tools: Tools, system: Option<String>, approvals: Approvals) {
        let begun = matches!(self.turn.phase, Phase::Tools | Phase::Orphans(_)) && self.turn.begun != Begun::PutDown;
        for entry in self.turn.ledger.iter_mut().skip(self.turn.open).filter(|entry| entry.is_open()) {
            let perhaps = begun || entry.in_doubt;
            if perhaps && entry.before.is_none() && !self.tools.are_same(&tools, &entry.call.tool) {
                let before = self.tools.get(&entry.call.tool).filter(|facts| facts.effect != Effect::ReadOnly);
                entry.before = before.cloned();
            }
        }
        (self.limits, self.tools, self.system, self.approvals) = (limits, tools, system, approvals);
    }
}
