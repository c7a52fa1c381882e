//! The callers, the table, the network and the clock: everything that can happen next, and what must never be.

use std::time::Duration;

use action_group::{
    call::{MAX_REQUESTS, decisions::Ended},
    clock::Timestamp,
    idempotency::{Record, State, StoreErrorKind},
    outcome::FailureKind,
    tool::ToolError,
};
use stateright::{Model, Property};

use super::{
    caller::{Answer, Bars, Caller, Doubt, EffectOf, Found, Now, Step},
    table::{Reply, Write, apply, decide_approval},
};

const START: Timestamp = Timestamp::from_secs(1_000_000);
/// What the host gives an invocation, and by how much it has been seen to end a process late.
const BUDGET: Duration = Duration::from_secs(1);
const LATE_KILL: Duration = Duration::from_millis(700);
/// The clocks of the callers, in milliseconds beside the true time: a second apart at most.
const SKEW: [i64; 3] = [-500, 500, 0];

/// What a keyed effect makes, whoever makes it.
const LABEL: &str = "label";

/// One configuration to check.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "what a tool can do, and what is taken away from the code's protocol")]
pub struct Protocol {
    pub effect: EffectOf,
    /// The tool's effect in the version of every caller but the first, if it is another one there.
    pub later_effect: Option<EffectOf>,
    pub callers: usize,
    /// How many things may go wrong.
    pub faults: u8,
    /// Whether the policy wants approval, and whether the tool itself asks for it.
    pub approval: Approval,
    /// Whether the tool can find out what became of an effect.
    pub reconciles: bool,
    /// The moments, in milliseconds, at which something can happen.
    pub moments: &'static [u64],
    /// How long a record counts.
    pub window: Duration,
    /// False: the variant without fences, which must fail.
    pub fences: bool,
    /// What becomes of a record in doubt when the tool asks for approval.
    pub doubt: Doubt,
    /// What becomes of a commit without an answer.
    pub bars: Bars,
    /// False: the variant that takes a holder for dead the moment its lease is over.
    pub margin: bool,
    /// False: the variant that takes a record that was begun without approval for one, which must fail.
    pub asks_heirs: bool,
    /// False: the variant whose records do not say under which effect they were begun, which must fail.
    pub remembers: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    No,
    ByPolicy,
    AskedByTheTool,
    /// The tool asks, or acts, as it finds the world at the moment.
    AskedAtTimes,
    /// By the policy of every caller but the first, whose version has another limit.
    ByLaterPolicy,
}

impl Approval {
    fn is_policy_of(self, caller: usize) -> bool {
        self == Self::ByPolicy || self == Self::ByLaterPolicy && caller > 0
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    moment: usize,
    record: Option<Record>,
    callers: Vec<Caller>,
    /// When the host ends each caller's process, at the latest.
    killed_at: Vec<u64>,
    /// What was sent and has not landed, although its sender no longer waits for it.
    flying: Vec<Flying>,
    faults: u8,
    /// What the person has decided, and may still decide.
    approvals: u8,
    decisions: u8,
    /// Who has made the effect, for each life of the record: it begins anew when the window is over.
    lives: Vec<Vec<&'static str>>,
    broken: Option<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Flying {
    Write(usize, Write),
    Effect(usize, &'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Begin(usize),
    Do(usize, Fate),
    StopWaiting(usize),
    Land(usize),
    TimePasses,
    Approve,
    Deny,
    /// DynamoDB deletes the expired record.
    Delete,
}

/// How a request, or a run of the tool, goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Answered,
    /// It is applied, the answer is lost, and the client asks again.
    AskedAgain,
    /// It is applied later, or never; no answer comes, and the client asks again.
    LingersAndAskedAgain,
    /// It is applied, and no answer comes.
    AnswerLost,
    /// It is not applied, and no answer comes.
    Lost,
    /// It is applied later, or never; no answer comes.
    Lingers,
    Refused,
    /// The tool says that a business rule forbids it.
    Rejected,
    /// The tool says that a person has to approve it. No fault.
    Asks,
    DiesBefore,
    DiesAfter,
    DiesAndLingers,
}

/// How a request that writes can go. The first two are for commits only: a condition of the tool's own fails.
static WRITE: [Fate; 12] = [
    Fate::Asks,
    Fate::Rejected,
    Fate::Answered,
    Fate::AskedAgain,
    Fate::LingersAndAskedAgain,
    Fate::AnswerLost,
    Fate::Lost,
    Fate::Lingers,
    Fate::Refused,
    Fate::DiesBefore,
    Fate::DiesAfter,
    Fate::DiesAndLingers,
];

impl Fate {
    fn is_fault(self) -> bool {
        !matches!(self, Self::Answered | Self::Asks)
    }
}

impl Protocol {
    fn now(&self, world: &World, caller: usize) -> Timestamp {
        let millis = START.as_millis() + self.moments[world.moment];
        Timestamp::from_millis(millis.saturating_add_signed(SKEW[caller]))
    }

    fn effect_of(&self, caller: usize) -> EffectOf {
        self.later_effect.filter(|_| caller > 0).unwrap_or(self.effect)
    }

    fn surroundings(&self, world: &World, caller: usize) -> Now {
        let deadline = world.killed_at[caller] - millis(LATE_KILL);
        let time = self.now(world, caller);
        let time = if self.margin { time } else { time.plus(action_group::idempotency::TAKE_OVER_MARGIN) };
        let time_left = Duration::from_millis(deadline.saturating_sub(self.moments[world.moment]));
        Now {
            effect: self.effect_of(caller),
            time,
            time_left,
            doubt: self.doubt,
            asks_heirs: self.asks_heirs,
            bars: self.bars,
        }
    }

    fn fates(&self, index: usize, caller: &Caller) -> &'static [Fate] {
        use Fate::{
            AnswerLost, Answered, Asks, DiesAfter, DiesAndLingers, DiesBefore, Lingers, Lost, Refused, Rejected,
        };
        match &caller.step {
            Step::Run if self.effect_of(index) == EffectOf::Atomic && self.may_ask(caller) => {
                &[Answered, Asks, Refused, Rejected, DiesBefore]
            }
            Step::Run if self.effect_of(index) == EffectOf::Atomic => &[Answered, Refused, Rejected, DiesBefore],
            Step::Run if self.may_ask(caller) => {
                &[Answered, Asks, AnswerLost, Lost, Lingers, Refused, DiesBefore, DiesAfter, DiesAndLingers]
            }
            Step::Run => {
                &[Answered, AnswerLost, Lost, Lingers, Refused, Rejected, DiesBefore, DiesAfter, DiesAndLingers]
            }
            Step::Commit if self.may_ask(caller) => &WRITE,
            Step::Commit => &WRITE[1..],
            Step::Look | Step::LookBeforeFailing(_) | Step::Reconcile(_) => &[Answered, Lost, DiesBefore],
            _ => &WRITE[2..],
        }
    }

    /// Whether the tool may find that a person has to approve the call.
    fn may_ask(&self, caller: &Caller) -> bool {
        self.approval == Approval::AskedAtTimes && !caller.is_approved()
    }

    fn step(&self, world: &mut World, caller: usize, fate: Fate) {
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
    fn is_live(&self, protocol: &Protocol) -> bool {
        let now = START.as_millis() + protocol.moments[self.moment];
        self.record.as_ref().is_none_or(|record| record.expires_at.as_millis() > now)
    }

    /// Who has made the effect in the record's present life.
    fn effects(&self) -> &[&'static str] {
        self.lives.last().expect("a life")
    }

    fn effect(&mut self, protocol: &Protocol, caller: usize, name: &'static str) {
        let Caller { life, ref step, .. } = self.callers[caller];
        if matches!(step, Step::Ended(Answer::Nothing | Answer::Told(_))) {
            self.broken = Some("an effect after the answer that nothing was changed");
        }
        if protocol.approval.is_policy_of(caller) && !self.callers[caller].is_approved() {
            self.broken = Some("an effect that nobody has approved");
        }
        let Caller { holder, maybe_done, .. } = self.callers[caller];
        let lapsed = holder.and_then(|holder| holder.approved_until).is_some_and(|until| {
            let spent = BUDGET + LATE_KILL + Duration::from_secs(1); // it was in time when the call began
            until.plus(spent).as_millis() < START.as_millis() + protocol.moments[self.moment]
        });
        if self.callers[caller].denied {
            self.broken = Some("an effect after an equal call has said that nothing was changed");
        }
        if lapsed && !maybe_done {
            self.broken = Some("an effect whose approval has lapsed");
        }
        // The system behind a keyed effect makes one only.
        let made = &mut self.lives[life];
        if name == LABEL && made.contains(&LABEL) {
            return;
        }
        made.push(name);
        if made.len() > 1 {
            self.broken = Some("two effects under one key");
        }
        let all = self.lives.iter().map(Vec::len).sum::<usize>();
        let always = matches!(protocol.approval, Approval::ByPolicy | Approval::AskedByTheTool);
        if always && all > usize::from(self.approvals) {
            self.broken = Some("an effect that nobody has approved");
        }
    }

    /// A request reaches the table.
    fn land(&mut self, protocol: &Protocol, caller: usize, write: &Write) -> Reply {
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

    /// Whether a result is told as an earlier call's if it is one, and only then. All results of a keyed effect are the same.
    fn check_whose(&mut self, protocol: &Protocol, caller: usize) {
        let Caller { name, step, .. } = &self.callers[caller];
        if let Step::Ended(Answer::Success { result, replayed }) = step
            && protocol.effect_of(caller) == EffectOf::Atomic
            && *replayed == (result == name)
        {
            self.broken = self.broken.or(Some("a result that is told as somebody else's"));
        }
    }

    /// Whether an answer that was just given agrees with the record and the effects.
    fn check_answer(&mut self, protocol: &Protocol, caller: usize) {
        let (Step::Ended(answer) | Step::Settle(_, answer)) = &self.callers[caller].step else { return };
        let made_by = |result: &str| self.lives.iter().any(|made| made.as_slice() == [result]);
        let completed = self.record.as_ref().is_some_and(|record| record.state == State::Completed);
        self.broken = self.broken.or(match answer {
            Answer::Success { result, .. } if !made_by(result) => Some("a success without its effect"),
            Answer::Nothing | Answer::Told(FailureKind::ApprovalRequired | FailureKind::Denied)
                if self.is_live(protocol) && (completed || !self.effects().is_empty()) =>
            {
                Some("an answer that nothing was changed, and it was")
            }
            Answer::Unknown { retryable: true } if protocol.effect_of(caller) == EffectOf::Once => {
                Some("the wrong advice about another call")
            }
            Answer::Unknown { retryable: false }
                if protocol.effect_of(caller) != EffectOf::Once
                    && !self.is_for_a_person()
                    && protocol.later_effect.is_none() =>
            {
                Some("the wrong advice about another call")
            }
            _ => None,
        });
    }

    /// What the others have left behind was not done, if this call ends with an answer that says so.
    fn deny(&mut self, caller: usize) {
        let (Step::Ended(answer) | Step::Settle(_, answer)) = &self.callers[caller].step else { return };
        if !matches!(answer, Answer::Nothing | Answer::Told(FailureKind::ApprovalRequired | FailureKind::Denied)) {
            return;
        }
        let others = self.callers.iter_mut().enumerate().filter(|(other, _)| *other != caller);
        for (_, other) in others {
            other.denied |= match other.step {
                Step::Dead => other.holder.is_some(), // else nobody can know of it
                Step::Ended(Answer::Unknown { .. }) => other.holder.is_some() || !other.open,
                _ => false,
            };
        }
    }

    /// Whether the record waits for a person, or one has decided on it, or has to find out what became of it.
    fn is_for_a_person(&self) -> bool {
        use State::{Approved, AwaitingApproval, Denied, Unknown};
        self.record
            .as_ref()
            .is_some_and(|record| matches!(record.state, AwaitingApproval | Approved | Denied | Unknown))
    }

    /// Whether one more call, later and without faults, gets an end that it or a person can go on from.
    fn goes_on(&self, protocol: &Protocol) -> bool {
        if self.callers.iter().any(Caller::is_active) {
            return true;
        }
        let mut protocol = protocol.clone();
        let later = protocol.moments[self.moment] + 4_000; // every lease and every margin is over
        protocol.moments = Box::leak(Box::new([later]));
        let world = Self { moment: 0, flying: Vec::new(), faults: 0, ..self.clone() };
        let ways: &[Fate] =
            if protocol.approval == Approval::AskedAtTimes { &[Fate::Answered, Fate::Asks] } else { &[Fate::Answered] };
        ways.iter().all(|way| world.clone().ends_well(&protocol, *way))
    }

    /// Whether one more call ends well whose attempts go this way as long as it is not approved.
    fn ends_well(&mut self, protocol: &Protocol, way: Fate) -> bool {
        let answer = self.call_again(protocol, way);
        if self.record.as_ref().is_some_and(|record| record.state == State::AwaitingApproval) {
            self.approve(protocol, true);
            let approved = self.call_again(protocol, way);
            let ended = match approved {
                Some(Answer::Success { .. }) => true,
                // What another version may have done is not done by another way: its caller is told to find out.
                Some(Answer::Unknown { retryable: false }) => protocol.later_effect.is_some() && !protocol.reconciles,
                _ => false,
            };
            return ended && self.broken.is_none();
        }
        let ended = match answer {
            Some(Answer::Success { .. } | Answer::Told(FailureKind::Denied)) => true,
            // Nobody can be helped by asking for approval again and again.
            Some(Answer::Unknown { .. }) => way == Fate::Answered || self.is_for_a_person(),
            _ => false,
        };
        ended && self.broken.is_none()
    }

    fn call_again(&mut self, protocol: &Protocol, way: Fate) -> Option<Answer> {
        let last = 2; // a clock that is right
        self.callers.resize(3, Caller::new("later"));
        self.killed_at.resize(3, 0);
        self.callers[last] = Caller::new("later");
        self.begin(protocol, last);
        for _ in 0..30 {
            let caller = &self.callers[last];
            if let Step::Ended(answer) = &caller.step {
                return Some(answer.clone());
            }
            let fate = if caller.step == Step::Run && !caller.is_approved() { way } else { Fate::Answered };
            protocol.step(self, last, fate);
        }
        None
    }

    fn begin(&mut self, protocol: &Protocol, caller: usize) {
        let now = protocol.now(self, caller);
        self.killed_at[caller] = protocol.moments[self.moment] + millis(BUDGET + LATE_KILL);
        self.callers[caller].begin(
            protocol.effect_of(caller),
            protocol.approval.is_policy_of(caller),
            now,
            [BUDGET, protocol.window],
        );
    }

    fn approve(&mut self, protocol: &Protocol, approve: bool) {
        let now = Timestamp::from_millis(START.as_millis() + protocol.moments[self.moment]);
        self.approvals += u8::from(approve);
        decide_approval(self.record.as_mut().expect("a record that waits"), approve, now);
    }

    fn time_passes(&mut self, protocol: &Protocol) {
        self.moment += 1;
        let now = protocol.moments[self.moment];
        if now - protocol.moments[self.moment - 1] > millis(Duration::from_mins(1)) {
            self.flying.clear(); // what has not landed within a minute never does
        }
        for (caller, killed_at) in self.callers.iter_mut().zip(&self.killed_at) {
            if caller.is_active() && now > *killed_at {
                caller.step = Step::Dead;
            }
        }
    }
}

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

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).expect("a short time")
}

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
