//! How a request, or a run of the tool, can go.

use super::{
    super::caller::{Caller, EffectOf, Step},
    Approval, Protocol,
};

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
    pub(super) fn is_fault(self) -> bool {
        !matches!(self, Self::Answered | Self::Asks)
    }
}

impl Protocol {
    pub(super) fn fates(&self, index: usize, caller: &Caller) -> &'static [Fate] {
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
}
