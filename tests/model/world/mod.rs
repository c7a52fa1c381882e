//! The callers, the table, the network and the clock.
//!
//! | file | its one idea |
//! | --- | --- |
//! | this one | what there is, and how it stands |
//! | `fates` | how a request, or a run of the tool, can go |
//! | `steps` | one step of one caller, and what it does to the table and to the systems behind |
//! | `promises` | what must never be |
//! | `going_on` | whether one more call ends well |
//! | `checked` | everything that can happen next, for the checker |

mod checked;
mod fates;
mod going_on;
mod promises;
mod steps;

use std::time::Duration;

use action_group::{clock::Timestamp, idempotency::Record};

pub use self::{
    checked::{LIVE, SAFE},
    fates::Fate,
};
use super::{
    caller::{Bars, Caller, Doubt, EffectOf, Now, Step},
    table::{Write, decide_approval},
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

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).expect("a short time")
}
