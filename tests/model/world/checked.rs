//! Everything that can happen next, for the checker, and the way to a state, for a reader.

use action_group::idempotency::State;
use stateright::{Model, Property};

use super::{
    super::caller::{Answer, Caller, Step},
    Action, Approval, Flying, Protocol, World,
};

impl Model for Protocol {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            moment: 0,
            record: None,
            callers: ["a", "b", "c"].into_iter().take(self.callers).map(Caller::new).collect(),
            killed_at: vec![0; self.callers],
            flying: Vec::new(),
            faults: self.faults,
            approvals: 0,
            decisions: if self.approval == Approval::No { 0 } else { 2 },
            lives: vec![Vec::new()],
            broken: None,
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.broken.is_some() {
            return;
        }
        for (index, caller) in world.callers.iter().enumerate() {
            match caller.step {
                Step::Idle => actions.push(Action::Begin(index)),
                Step::Dead | Step::Ended(_) => {}
                _ => {
                    let fates = self.fates(index, caller).iter();
                    let fates = fates.filter(|fate| !fate.is_fault() || world.faults > 0);
                    actions.extend(fates.map(|fate| Action::Do(index, *fate)));
                }
            }
            if caller.step == Step::Look {
                actions.push(Action::StopWaiting(index));
            }
        }
        actions.extend((0..world.flying.len()).map(Action::Land));
        if world.moment + 1 < self.moments.len() {
            actions.push(Action::TimePasses);
        }
        let waits = world.record.as_ref().is_some_and(|record| record.state == State::AwaitingApproval);
        if waits && world.is_live(self) && world.decisions > 0 {
            actions.extend([Action::Approve, Action::Deny]);
        }
        if !world.is_live(self) {
            actions.push(Action::Delete);
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut world = world.clone();
        match action {
            Action::Begin(caller) => world.begin(self, caller),
            Action::Do(caller, fate) => self.step(&mut world, caller, fate),
            Action::StopWaiting(caller) => {
                let now = self.surroundings(&world, caller);
                world.callers[caller].stop_waiting(&now);
            }
            Action::Land(index) => match world.flying.remove(index) {
                Flying::Write(caller, write) => drop(world.land(self, caller, &write)),
                Flying::Effect(caller, name) => world.effect(self, caller, name),
            },
            Action::TimePasses => world.time_passes(self),
            Action::Approve | Action::Deny => {
                world.decisions -= 1;
                world.approve(self, action == Action::Approve);
            }
            Action::Delete => {
                world.record = None;
                world.lives.push(Vec::new());
            }
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(SAFE, |_, world: &World| world.broken.is_none()),
            Property::always(LIVE, |protocol: &Self, world: &World| world.goes_on(protocol)),
            Property::sometimes("an effect is made", |_, world: &World| !world.effects().is_empty()),
            Property::sometimes("a call is told an earlier one's result", |_, world: &World| {
                world
                    .callers
                    .iter()
                    .any(|caller| matches!(caller.step, Step::Ended(Answer::Success { replayed: true, .. })))
            }),
        ]
    }
}

pub const SAFE: &str = "one effect at most, and every answer agrees";

pub const LIVE: &str = "another call goes on, or a person is told";

impl World {
    /// A step from here, for the report.
    pub fn tell(&self, action: Action) -> String {
        match action {
            Action::Begin(caller) => format!("{} begins", self.callers[caller].name),
            Action::Do(caller, fate) => {
                let Caller { name, step, .. } = &self.callers[caller];
                let step = format!("{step:?}");
                format!("{name}: {}: {fate:?}", step.split('(').next().unwrap_or_default())
            }
            other => format!("{other:?}"),
        }
    }

    /// What went wrong, for the report.
    pub fn broken(&self) -> Option<&'static str> {
        self.broken
    }
}
