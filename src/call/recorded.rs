//! Effects that are recorded before and after: `Keyed` and `Once`.

use std::time::Duration;

use super::{
    answer::{Answer, Made, found, recall},
    deadline::USEFUL,
    explain,
    pipeline::Pipeline,
    refusal::{abandoned, in_progress, key_reused, note, out_of_sight, refused, unavailable, waits},
    run::Run,
};
use crate::{
    idempotency::{
        Acquired, ApprovalId, Claim, Decision, Guard, Key, Record, Settled, State, StoreError, StoreErrorKind, decide,
    },
    outcome::{Changed, Failure},
    telemetry::RefusedBy,
    tool::{Effect, Reconciled},
};

/// The first and the longest wait between two looks at a record that somebody else holds.
const POLL: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// A wait shorter than this is none.
const LITTLE: Duration = Duration::from_millis(1);

/// What meeting a record comes to.
pub(super) enum Next {
    /// Somebody else is at it: look again later.
    Wait,
    /// Acquire again.
    Acquire,
    /// The key is ours.
    Go(Guard),
    /// The call has ended.
    End(Answer),
}

/// What asking for a key has come to.
pub(super) enum Entered {
    /// The key is ours.
    Go(Guard),
    /// The call has ended, with the answer of whoever had it.
    End(Answer),
}

impl Pipeline {
    /// Acquires the key, runs the tool, and settles the record.
    pub(super) async fn run_recorded(&self, run: &mut Run<'_>, key: &Key) -> Result<Answer, Failure> {
        let mut claim = run.claim(self.store.now());
        let mut guard = match self.enter(run, key, &mut claim).await? {
            Entered::Go(guard) => guard,
            Entered::End(answer) => return Ok(answer),
        };
        loop {
            let ended = match run.attempt().await {
                Ok(made) => return Ok(self.complete(run, &claim, guard, made).await),
                Err(ended) => run.judged(ended),
            };
            if run.asks_for_approval(&ended) {
                match self.ask(run, key, &mut claim, Some(guard), ended.text()).await? {
                    Entered::Go(approved) => guard = approved,
                    Entered::End(answer) => return Ok(answer),
                }
            } else if let Err(failure) = run.retry_or_fail(&ended).await {
                return settle_failure(run, &claim, guard, failure).await;
            }
        }
    }

    /// Acquires the key, waiting for an execution that holds it; or ends with what its record says. A record that was begun
    /// before a person had to approve the call is no approval.
    pub(super) async fn enter(&self, run: &mut Run<'_>, key: &Key, claim: &mut Claim) -> Result<Entered, Failure> {
        let mut pause = POLL.0;
        let mut known = None;
        loop {
            let record = match known.take() {
                Some(record) => record,
                None => match self.store.acquire(key, claim, run.deadline.time_left()).await {
                    Ok(Acquired::Mine(guard)) => return Ok(Entered::Go(guard)),
                    Ok(Acquired::Awaiting) => {
                        return Err(waits(run.tool(), "", false).awaiting(&ApprovalId::of(key, false)));
                    }
                    Ok(Acquired::Held(record)) => record,
                    Err(error) => return Err(Box::pin(self.give_up_acquiring(run, key, claim, &error)).await),
                },
            };
            match self.meet(run, key, claim, record).await? {
                Next::Go(guard) => {
                    run.approved = guard.is_approved();
                    if run.lacks_approval() {
                        return Box::pin(self.ask(run, key, claim, Some(guard), "")).await;
                    }
                    return Ok(Entered::Go(guard));
                }
                Next::End(answer) => return Ok(Entered::End(answer)),
                Next::Acquire => {}
                Next::Wait => known = self.wait(run, key, &mut pause).await?,
            }
        }
    }

    /// Does what the record asks for.
    pub(super) async fn meet(
        &self,
        run: &mut Run<'_>,
        key: &Key,
        claim: &Claim,
        record: Record,
    ) -> Result<Next, Failure> {
        let time = run.deadline.time_left();
        match decide(&record, claim, key.args_hash(), self.store.now()) {
            Decision::Acquire => Ok(Next::Acquire),
            Decision::Ours => {
                run.maybe_done |= record.maybe_done;
                Ok(Next::Go(Guard::resume(&self.store, key, claim, &record)))
            }
            Decision::Replay(stored) => Ok(Next::End(recall(&record, claim, stored))),
            Decision::InProgress(_) => Ok(Next::Wait),
            Decision::TakeOver | Decision::UseApproval => self.take_over(run, key, claim, &record).await,
            Decision::MarkUnknown => {
                let record = match self.store.settle_unknown(key, &record, time).await {
                    Ok(Settled::AsWritten) => Record { state: State::Unknown, ..record },
                    Ok(Settled::Superseded(_)) => return Ok(Next::Wait), // somebody knows more by now
                    // Not taken for marked: a take-over of what it may become could land when nobody waits for it.
                    Err(error) => {
                        note(run, &error);
                        record
                    }
                };
                Box::pin(self.reconcile(run, key, claim, record)).await
            }
            Decision::Unknown => Box::pin(self.reconcile(run, key, claim, record)).await,
            Decision::AwaitApproval => {
                Err(waits(run.tool(), "", record.maybe_done).awaiting(&ApprovalId::of(key, record.maybe_done)))
            }
            Decision::Denied => {
                run.report.refused_by = RefusedBy::Person;
                Err(refused(run.tool(), record.maybe_done))
            }
            Decision::KeyReused => Err(key_reused(run.tool(), &record, claim, self.store.now())),
        }
    }

    async fn take_over(&self, run: &mut Run<'_>, key: &Key, claim: &Claim, record: &Record) -> Result<Next, Failure> {
        match self.store.take_over(key, claim, record, run.deadline.time_left()).await {
            Ok(Acquired::Mine(guard)) => {
                run.maybe_done |= record.may_be_done(claim.effect);
                Ok(Next::Go(guard))
            }
            // Somebody else was faster, or its holder has released it: look again.
            Ok(Acquired::Held(_) | Acquired::Awaiting) | Err(StoreError { kind: StoreErrorKind::NoRecord, .. }) => {
                Ok(Next::Wait)
            }
            Err(error) => Err(self.give_up_taking_over(run, key, claim, record, &error).await),
        }
    }

    /// Lets the tool find out what became of an effect, and settles the record by what it says.
    async fn reconcile(&self, run: &mut Run<'_>, key: &Key, claim: &Claim, record: Record) -> Result<Next, Failure> {
        match run.reconcile().await {
            Reconciled::Unknown => Err(abandoned(run)),
            Reconciled::NotDone => self.take_over(run, key, claim, &record).await,
            Reconciled::Done(made) => match self.take_over(run, key, claim, &record).await? {
                Next::Go(guard) => {
                    let answer = self.complete(run, claim, guard, made).await;
                    Ok(Next::End(Answer { replayed: true, ..answer }))
                }
                next => Ok(next),
            },
        }
    }

    /// Waits a little and looks again. `None` if the record is gone.
    async fn wait(&self, run: &mut Run<'_>, key: &Key, pause: &mut Duration) -> Result<Option<Record>, Failure> {
        let Some(next) = next_look(*pause, run.deadline.time_left()).filter(|_| !run.ending.has_begun()) else {
            return Err(in_progress());
        };
        run.pause(next).await;
        *pause = (*pause * 2).min(POLL.1);
        self.store.read(key, run.deadline.time_left()).await.map_err(|error| out_of_sight(run, &error))
    }

    /// The table did not answer before anything was done: nothing is done. A put that may have been applied is taken
    /// back, so that it does not stand in the way of the next call.
    async fn give_up_acquiring(&self, run: &mut Run<'_>, key: &Key, claim: &Claim, error: &StoreError) -> Failure {
        if error.kind == StoreErrorKind::NoAnswer {
            let ours = Guard::first(&self.store, key, claim);
            if let Err(error) = ours.release(run.deadline.time_to_settle()).await {
                note(run, &error);
            }
        }
        unavailable(run, error)
    }

    /// The table did not answer. If the record has become ours, the next call gets it as it was.
    async fn give_up_taking_over(
        &self,
        run: &mut Run<'_>,
        key: &Key,
        claim: &Claim,
        old: &Record,
        error: &StoreError,
    ) -> Failure {
        if error.kind == StoreErrorKind::NoAnswer {
            let (ours, time) = (Guard::next(&self.store, key, claim, old), run.deadline.time_to_settle());
            let settled = match old.state {
                State::Approved => ours.release(time).await,
                State::Unknown => ours.mark_unknown(time).await,
                _ => ours.relinquish(time).await,
            };
            if let Err(error) = settled {
                note(run, &error);
            }
        }
        unavailable(run, error)
    }

    /// The effect is done: record its result. Whatever becomes of the record, the effect is not called a failure.
    async fn complete(&self, run: &mut Run<'_>, claim: &Claim, guard: Guard, made: Made) -> Answer {
        match guard.complete(&made.stored, run.deadline.time_to_settle()).await {
            Ok(Settled::AsWritten) => made.answer(),
            Ok(Settled::Superseded(record)) => found(run.report, claim, record).unwrap_or_else(|| made.answer()),
            Err(error) => {
                note(run, &error);
                run.report.completion_lost = true;
                run.report.fault = Some(error.to_string());
                made.answer()
            }
        }
    }
}

/// The wait before another look at the record, the last one just before the time is up; `None` if that has been.
fn next_look(pause: Duration, time_left: Duration) -> Option<Duration> {
    let most = time_left.saturating_sub(USEFUL);
    (most >= LITTLE).then(|| pause.min(most))
}

/// How the record of a failed call is left, so that the next equal call does the right thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Settling {
    /// Nothing happened: the key is free again, or approved as before.
    Release,
    /// It may have happened, and must not be repeated.
    MarkUnknown,
    /// It may have happened, and may be repeated.
    Relinquish,
}

/// Decides by what may have happened, and by whether it may happen again.
pub fn settling(changed: Changed, effect: Effect) -> Settling {
    match (changed, effect) {
        (Changed::Nothing, _) => Settling::Release,
        (_, Effect::Once) => Settling::MarkUnknown,
        _ => Settling::Relinquish,
    }
}

/// Leaves the record of a failed call accordingly. Where it has a result, that is the answer: another execution has taken it
/// over, or a commit was applied that was not answered.
pub(super) async fn settle_failure(
    run: &mut Run<'_>,
    claim: &Claim,
    guard: Guard,
    failure: Failure,
) -> Result<Answer, Failure> {
    let time = run.deadline.time_to_settle();
    let settled = match settling(failure.changed(), run.tool().effect) {
        Settling::Release => guard.release(time).await,
        Settling::MarkUnknown => guard.mark_unknown(time).await,
        Settling::Relinquish => guard.relinquish(time).await,
    };
    match settled {
        Ok(Settled::AsWritten) => Err(failure),
        Ok(Settled::Superseded(record)) => found(run.report, claim, record).ok_or(explain::for_this_call(failure)),
        Err(error) => {
            note(run, &error);
            Err(failure)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_looks_once_more_just_before_the_time_is_up() {
        let (mut pause, mut left, mut looks) = (POLL.0, Duration::from_millis(9_500), 0);
        while let Some(next) = next_look(pause, left) {
            (left, pause, looks) = (left.saturating_sub(next), (pause * 2).min(POLL.1), looks + 1);
        }
        assert_eq!(left, USEFUL);
        assert!((10..20).contains(&looks), "{looks}");
    }
}
