//! One execution of a call: the steps of `call/recorded.rs`, `call/atomic.rs`, `call/bar.rs` and `call/approval.rs`, one request
//! at a time. Whatever is a decision there is the same function here.
//!
//! | file | its one idea |
//! | --- | --- |
//! | this one | who the caller is, and where it stands |
//! | `requests` | the request of a step |
//! | `replies` | what the answer to a request comes to |
//! | `meeting` | what a record comes to |
//! | `ending` | how the tool's code ends, and the call with it |
//! | `asking` | a person has to approve it |
//! | `tool` | the tool: its effect and its definition |

mod asking;
mod ending;
mod meeting;
mod replies;
mod requests;
mod tool;

use std::time::Duration;

use action_group::{
    call::decisions::Settling,
    clock::Timestamp,
    idempotency::{Decided, Record, StoreErrorKind},
    outcome::FailureKind,
};

pub use self::{
    meeting::Found,
    tool::{EffectOf, definition},
};
use super::table::{Holder, Reply};

/// What the execution does next: each is one request, or one run of the tool's code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    Idle,
    Acquire,
    GiveUpAcquiring,
    Look,
    TakeOver(Record, Option<&'static str>),
    GiveUpTakingOver(Record),
    MarkUnknown(Record),
    Reconcile(Record),
    Run,
    Commit,
    Complete(&'static str, bool),
    Settle(Settling, Answer),
    ReleaseToAsk,
    AskInPlace,
    /// A record is put in the way of a commit, and then a person is asked.
    BarToAsk,
    /// The same before an end: the answer that nothing was done, and the one that it is not known.
    Bar([Answer; 2]),
    LookBeforeFailing(Answer),
    /// The holder of a record that is looked at is shut out, who is gone.
    ShutOut(Record, Answer),
    Dead,
    Ended(Answer),
}

/// What the caller reads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    Success {
        result: String,
        replayed: bool,
    },
    /// The tool failed, and nothing was changed: by nobody, as the sentence reads.
    Nothing,
    Unknown {
        retryable: bool,
    },
    /// What the record says, or that it cannot be read.
    Told(FailureKind),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::struct_excessive_bools, reason = "what the code keeps, in places of their own")]
pub struct Caller {
    pub name: &'static str,
    pub step: Step,
    pub lease_until: Timestamp,
    pub expires_at: Timestamp,
    pub needs_approval: bool,
    pub holder: Option<Holder>,
    /// Which life of the record this execution belongs to.
    pub life: usize,
    pub requests: u32,
    /// Whether the client has sent the present request before, and got no answer.
    pub asked_again: bool,
    /// Whether it is acquiring the key, and not in the middle of a commit.
    enters: bool,
    pub maybe_done: bool,
    approved: bool,
    /// Who has decided, as the record says that it holds.
    decided: Option<Decided>,
    /// Whether an equal call has said that nothing was done, since this one has ended and could not tell.
    pub denied: bool,
    /// Whether it could not keep its commit out, and knows that it could not.
    pub open: bool,
}

/// What an answer is decided with.
pub struct Now {
    pub effect: EffectOf,
    pub time: Timestamp,
    pub time_left: Duration,
    pub doubt: Doubt,
    pub asks_heirs: bool,
    pub bars: Bars,
}

/// What becomes of a commit without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bars {
    /// A record is put in its way, and stays: what the code does.
    Stay,
    /// The record goes when a call that has taken it over has done nothing. Must fail: the commit lands then.
    Go,
    /// It is left to land when it likes. Must fail.
    None,
}

/// What becomes of the record when the tool asks for approval after an attempt that may have been done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Doubt {
    /// It waits as it is: what the code does.
    Kept,
    /// It is released, and waits anew. Must fail: it says that nothing was done.
    Released,
    /// It is given up to the next call, as after any other failure in doubt. Must fail: nobody can ever approve it.
    GivenUp,
}

type Written = Result<Reply, StoreErrorKind>;

impl Caller {
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            step: Step::Idle,
            lease_until: Timestamp::default(),
            expires_at: Timestamp::default(),
            needs_approval: false,
            holder: None,
            life: 0,
            requests: 0,
            asked_again: false,
            enters: false,
            maybe_done: false,
            approved: false,
            decided: None,
            denied: false,
            open: false,
        }
    }

    /// Begins: the claim is made once.
    pub fn begin(&mut self, effect: EffectOf, needs_approval: bool, now: Timestamp, [headroom, window]: [Duration; 2]) {
        self.lease_until = now.plus(headroom);
        self.expires_at = now.plus(headroom + window);
        self.needs_approval = needs_approval;
        self.enters = effect != EffectOf::Atomic || needs_approval;
        self.step = if self.enters { Step::Acquire } else { Step::Run };
    }

    pub fn is_active(&self) -> bool {
        !matches!(self.step, Step::Idle | Step::Dead | Step::Ended(_))
    }

    pub fn is_approved(&self) -> bool {
        self.approved
    }

    /// A record that begins anew has a new owner.
    pub(super) fn renew(&mut self) {
        self.name = names(self.name)[1];
    }
}

/// A name, the one after it, and that of nobody's record, which this one leaves.
fn names(name: &str) -> [&'static str; 3] {
    const NAMES: [[&str; 3]; 11] = [
        ["a", "a'", "a-"],
        ["a'", "a''", "a'-"],
        ["a''", "a''", "a''-"],
        ["b", "b'", "b-"],
        ["b'", "b''", "b'-"],
        ["b''", "b''", "b''-"],
        ["c", "c'", "c-"],
        ["c'", "c'", "c'-"],
        ["later", "later'", "later-"],
        ["later'", "later''", "later'-"],
        ["later''", "later''", "later''-"],
    ];
    *NAMES.iter().find(|names| names[0] == name).expect("a name")
}
