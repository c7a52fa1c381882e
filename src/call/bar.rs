//! A commit that was not answered, and how it is kept from being applied when it has been denied.
//!
//! It may be on its way still. An equal call that then fails by a rule of the tool's own would say that nothing was made,
//! and a moment later it is. So whoever leaves a commit in doubt, or meets one that was left, writes to the record first:
//! the commit's condition wants no record, or one under its own owner.
//!
//! | the call that fails | what it writes | then nothing was made, unless |
//! | --- | --- | --- |
//! | holds no record, and has a commit in doubt | a record that nobody holds | there is one: of that very commit, say |
//! | holds no record, and finds one that was left behind | itself into that record | somebody was faster |
//! | holds a record that was left behind | leaves it, instead of deleting it | |
//! | holds a record, and has a commit in doubt under its own owner | leaves it, so that the next call takes it over | nobody knows until then |
//!
//! Without an answer to such a write the outcome is not known. The record is in the way of the commit only: the next call of
//! its key takes it over, also one with other arguments.

use super::{
    answer::{Answer, recall},
    attempt::Ended,
    explain,
    pipeline::Pipeline,
    refusal::note,
    run::Run,
};
use crate::{
    idempotency::{Claim, Decision, Key, Record, decide},
    outcome::Failure,
};

/// What became of a commit in doubt.
pub(super) enum Barred {
    /// It was not applied, and cannot be any more.
    Out,
    /// It, or an equal one, was applied.
    Made(Answer),
    /// Nobody knows.
    Open,
}

impl Pipeline {
    /// Puts a record in the way of what this call has sent.
    pub(super) async fn bar(&self, run: &mut Run<'_>, key: &Key, claim: &Claim) -> Barred {
        match self.store.bar(key, claim, run.deadline.time_to_settle()).await {
            Ok(None) => {
                run.maybe_done = false;
                Barred::Out
            }
            Ok(Some(record)) => match decide(&record, claim, key.args_hash(), self.store.now()) {
                Decision::Replay(stored) => Barred::Made(recall(&record, claim, stored)),
                _ => Barred::Open,
            },
            Err(error) => {
                note(run, &error);
                Barred::Open
            }
        }
    }

    /// The end of a call that holds no record and has a commit in doubt.
    pub(super) async fn unless_committed(
        &self,
        run: &mut Run<'_>,
        key: &Key,
        claim: &Claim,
        ended: &Ended,
        unknown: Failure,
    ) -> Result<Answer, Failure> {
        match self.bar(run, key, claim).await {
            Barred::Out => Err(explain::failure(run.tool(), ended, false, &run.report.reference)),
            Barred::Made(answer) => Ok(answer),
            Barred::Open => Err(unknown),
        }
    }

    /// A call that fails before its commit has not seen the record. An earlier call may have made the effect, and then it
    /// would be wrong to say that nothing was made: so the record is looked at, and its result is the answer.
    pub(super) async fn unless_made_before(
        &self,
        run: &mut Run<'_>,
        key: &Key,
        claim: &Claim,
        ended: &Ended,
        nothing: Failure,
    ) -> Result<Answer, Failure> {
        match self.store.read(key, run.deadline.time_to_settle()).await {
            Ok(None) => Err(nothing),
            Ok(Some(record)) => match decide(&record, claim, key.args_hash(), self.store.now()) {
                Decision::Replay(stored) => Ok(recall(&record, claim, stored)),
                Decision::Acquire => Err(nothing), // it no longer counts
                Decision::TakeOver if record.bars() => {
                    let out = self.shut_out(run, key, claim, &record).await;
                    let unknown = || explain::failure(run.tool(), ended, true, &run.report.reference);
                    Err(if out { nothing } else { unknown() })
                }
                _ => Err(explain::for_this_call(nothing)),
            },
            Err(error) => {
                note(run, &error);
                Err(explain::for_this_call(nothing))
            }
        }
    }

    /// Whether what the holder of this record has sent, who is gone, can surely not be applied any more.
    async fn shut_out(&self, run: &Run<'_>, key: &Key, claim: &Claim, record: &Record) -> bool {
        let out = self.store.shut_out(key, claim, record, run.deadline.time_to_settle()).await;
        out.unwrap_or_else(|error| {
            note(run, &error);
            false
        })
    }
}
