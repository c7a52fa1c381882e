//! One step of one caller, and what it does to the table and to the systems behind.

use action_group::{
    call::{MAX_REQUESTS, decisions::Ended},
    idempotency::{State, StoreErrorKind},
    tool::ToolError,
};

use super::{
    super::{
        caller::{EffectOf, Found, Step},
        table::{Reply, Write, apply},
    },
    Approval, Fate, Flying, LABEL, Protocol, World,
};

impl Protocol {
    pub(super) fn step(&self, world: &mut World, caller: usize, fate: Fate) {
        if fate.is_fault() {
            world.faults -= 1;
        }
        if fate == Fate::DiesBefore {
            world.callers[caller].step = Step::Dead;
            return;
        }
        let settled = matches!(world.callers[caller].step, Step::Settle(..));
        match world.callers[caller].step.clone() {
            Step::Look | Step::LookBeforeFailing(_) => {
                let found =
                    if fate == Fate::Answered { Ok(world.record.clone()) } else { Err(StoreErrorKind::NoAnswer) };
                let now = self.surroundings(world, caller);
                world.callers[caller].looked(found, &now);
            }
            Step::Reconcile(record) => {
                let asked = world.callers[caller].requests < MAX_REQUESTS;
                world.callers[caller].requests += u32::from(asked);
                let found = if asked && fate == Fate::Answered { self.truth(world) } else { Found::Unknown };
                world.callers[caller].reconciled(record, found);
            }
            Step::Run => self.run(world, caller, fate),
            _ => self.write(world, caller, fate),
        }
        world.check_whose(self, caller);
        if !settled {
            // It was decided on before the record was settled.
            world.check_answer(self, caller);
            world.deny(caller);
        }
    }

    /// The tool looks at the system behind.
    fn truth(&self, world: &World) -> Found {
        let in_the_air = world.flying.iter().any(|flying| matches!(flying, Flying::Effect(..)));
        match world.effects().first() {
            _ if !self.reconciles => Found::Unknown,
            Some(maker) => Found::Done(maker),
            None if in_the_air => Found::Unknown,
            None => Found::NotDone,
        }
    }

    fn run(&self, world: &mut World, caller: usize, fate: Fate) {
        let now = self.surroundings(world, caller);
        if world.callers[caller].requests >= MAX_REQUESTS {
            world.callers[caller].failed(&Ended::Spent, &now);
            return;
        }
        world.callers[caller].requests += 1;
        let asks =
            fate == Fate::Asks || self.approval == Approval::AskedByTheTool && !world.callers[caller].is_approved();
        let atomic = self.effect_of(caller) == EffectOf::Atomic;
        let done = matches!(fate, Fate::Answered | Fate::AnswerLost | Fate::DiesAfter);
        let name = if self.effect_of(caller) == EffectOf::Keyed { LABEL } else { world.callers[caller].name };
        if done && !asks && !atomic {
            world.effect(self, caller, name);
        }
        if matches!(fate, Fate::Lingers | Fate::DiesAndLingers) && !asks {
            world.flying.push(Flying::Effect(caller, name));
        }
        if matches!(fate, Fate::DiesAfter | Fate::DiesAndLingers) {
            world.callers[caller].step = Step::Dead;
            return;
        }
        let ended = match fate {
            Fate::Answered | Fate::Asks if asks => Err(Ended::Failed(ToolError::approval_required("Ask."))),
            Fate::Answered => Ok(name),
            Fate::AnswerLost => Err(Ended::Failed(ToolError::no_answer("No answer."))),
            Fate::Refused => Err(Ended::Failed(ToolError::transient("Busy."))),
            Fate::Rejected => Err(Ended::Failed(ToolError::rejected("No."))),
            _ => Err(Ended::TimedOut),
        };
        world.callers[caller].ran(ended, &now);
    }

    fn write(&self, world: &mut World, caller: usize, fate: Fate) {
        let now = self.surroundings(world, caller);
        let effect = self.remembers.then(|| self.effect_of(caller).effect());
        let write = world.callers[caller].write(effect, self.now(world, caller)).expect("a request");
        if matches!(fate, Fate::Rejected | Fate::Asks) {
            // The condition of one of the tool's own writes fails. DynamoDB reports the record's condition first.
            let mut scratch = world.record.clone();
            match apply(&mut scratch, &write, self.fences) {
                Ok(()) => {
                    let rejected = ToolError::rejected("No.");
                    let error = if fate == Fate::Asks { ToolError::approval_required("Ask.") } else { rejected };
                    world.callers[caller].commit_failed(error, &now);
                }
                held => world.callers[caller].wrote(Ok(held), &now),
            }
            return;
        }
        let reply = match fate {
            Fate::Answered | Fate::AskedAgain | Fate::AnswerLost | Fate::DiesAfter => {
                Some(world.land(self, caller, &write))
            }
            Fate::Lingers | Fate::LingersAndAskedAgain | Fate::DiesAndLingers => {
                world.flying.push(Flying::Write(caller, write));
                None
            }
            _ => None,
        };
        let told = match (fate, reply) {
            (Fate::Answered, Some(reply)) => Ok(reply),
            (Fate::Refused, _) => Err(StoreErrorKind::Refused),
            (Fate::AskedAgain | Fate::LingersAndAskedAgain, _) => {
                world.callers[caller].asked_again = true;
                return;
            }
            (Fate::DiesAfter | Fate::DiesAndLingers, _) => {
                world.callers[caller].step = Step::Dead;
                return;
            }
            _ => Err(StoreErrorKind::NoAnswer),
        };
        world.callers[caller].wrote(told, &now);
    }
}

impl World {
    /// A request reaches the table.
    pub(super) fn land(&mut self, protocol: &Protocol, caller: usize, write: &Write) -> Reply {
        let before = self.record.clone();
        let reply = apply(&mut self.record, write, protocol.fences);
        let done = reply.is_ok();
        if done && matches!(write, Write::Acquire(..) | Write::Commit(..)) {
            let is_owner = |owner: &str| before.as_ref().is_some_and(|before| before.owner == owner);
            let holds = matches!(write, Write::Commit(entry, ..) if is_owner(entry.owner));
            if before.is_some() && !holds {
                self.lives.push(Vec::new()); // the old record had expired
            }
        }
        if done && matches!(write, Write::Acquire(..) | Write::Commit(..) | Write::TakeOver(..)) {
            self.callers[caller].life = self.lives.len() - 1;
        }
        let decided = self.record.as_ref().is_some_and(|record| record.decided.is_some());
        if done
            && matches!(write, Write::Complete(..) | Write::Commit(..))
            && self.callers[caller].is_approved()
            && !decided
        {
            self.broken = Some("a call that is done, and nobody can tell who has approved it");
        }
        if let Write::Commit(_, name, _) = write
            && done
        {
            self.effect(protocol, caller, name);
        }
        let completed = before.as_ref().filter(|before| before.state == State::Completed);
        let expired = matches!(write, Write::Acquire(..) | Write::Commit(..)); // their condition has seen to it
        if completed.is_some() && self.record != before && !expired {
            self.broken = Some("a completed record has changed");
        }
        reply
    }
}
