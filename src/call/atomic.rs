//! Effects that are DynamoDB writes: `Atomic`. The tool says what to write, the pipeline commits it with the record.

use super::{
    answer::{Answer, Made},
    attempt,
    attempt::Ended,
    deadline::USEFUL,
    pipeline::Pipeline,
    recorded::{Entered, Next, settle_failure},
    refusal::note,
    run::{Run, new_owner},
};
use crate::{
    idempotency::{Claim, Commit, Guard, Key, Record, StoreErrorKind, Transaction, Tried},
    outcome::Failure,
    tool::{ToolError, Write},
};

impl Pipeline {
    /// Runs the tool and commits what it returns, until it is committed or must not be tried again.
    pub(super) async fn commit_atomically(&self, run: &mut Run<'_>, key: &Key) -> Result<Answer, Failure> {
        let mut claim = run.claim(self.store.now());
        // Only an approved call holds a record before it commits.
        let mut guard = None;
        if run.needs_approval {
            match self.enter(run, key, &mut claim).await? {
                Entered::Go(approved) => guard = Some(approved),
                Entered::End(answer) => return Ok(answer),
            }
        }
        loop {
            let mut record_was_seen = false;
            let ended = match run.attempt().await {
                Ok(made) => match self.commit(run, key, &claim, guard.as_ref(), made).await {
                    Committed::Done(answer) => return Ok(answer),
                    Committed::Held(record) => match self.go_on_with(run, key, &mut claim, record).await? {
                        Next::End(answer) => return Ok(answer),
                        Next::Go(held) => {
                            guard = Some(held);
                            continue;
                        }
                        Next::Acquire | Next::Wait => Ended::Conflict,
                    },
                    Committed::ConditionFailed(error) => {
                        record_was_seen = true; // by the transaction, whose first condition held
                        Ended::Failed(error)
                    }
                    Committed::Not(ended) => ended,
                },
                Err(ended) => ended,
            };
            let ended = run.judged(ended);
            if run.asks_for_approval(&ended) {
                match self.ask(run, key, &mut claim, guard.take(), ended.text()).await? {
                    Entered::Go(approved) => guard = Some(approved),
                    Entered::End(answer) => return Ok(answer),
                }
            } else if let Err(failure) = run.retry_or_fail(&ended).await {
                return match guard {
                    Some(guard) => settle_failure(run, &claim, guard, failure).await,
                    None if run.maybe_done => self.unless_committed(run, key, &claim, &ended, failure).await,
                    None if record_was_seen => Err(failure),
                    None => self.unless_made_before(run, key, &claim, &ended, failure).await,
                };
            }
        }
    }

    /// Does what the record asks for that a commit has met.
    async fn go_on_with(
        &self,
        run: &mut Run<'_>,
        key: &Key,
        claim: &mut Claim,
        record: Record,
    ) -> Result<Next, Failure> {
        // What may still land of the commit must not find a record that is taken over under its owner.
        if run.maybe_done && record.owner != claim.owner {
            claim.owner = new_owner();
        }
        let next = self.meet(run, key, claim, record).await?;
        let Next::Go(held) = next else { return Ok(next) };
        run.approved = held.is_approved();
        if !run.lacks_approval() {
            return Ok(Next::Go(held));
        }
        Ok(match self.ask(run, key, claim, Some(held), "").await? {
            Entered::Go(approved) => Next::Go(approved),
            Entered::End(answer) => Next::End(answer),
        })
    }

    async fn commit(
        &self,
        run: &mut Run<'_>,
        key: &Key,
        claim: &Claim,
        guard: Option<&Guard>,
        mut made: Made,
    ) -> Committed {
        let (items, explanations): (Vec<_>, Vec<_>) =
            std::mem::take(&mut made.writes).into_iter().map(|Write { item, explain }| (item, explain)).unzip();
        let time = run.tool().timeout.min(run.deadline.time_left());
        if time < USEFUL / 2 {
            return Committed::Not(Ended::NoTime);
        }
        let transaction = Transaction { result: &made.stored, decided: guard.and_then(Guard::decided), writes: items };
        let ended = self.store.commit(key, claim, run.report.attempts, transaction, time).await;
        let ended = ended.map(|Tried { commit, in_doubt }| {
            run.maybe_done |= in_doubt;
            commit
        });
        if matches!(ended, Ok(Commit::Done | Commit::Held(_) | Commit::ConditionFailed(..))) {
            run.earn();
        }
        match ended {
            Ok(Commit::Done) => Committed::Done(made.answer()),
            Ok(Commit::Held(record)) => Committed::Held(record),
            Ok(Commit::Conflict) => Committed::Not(Ended::Conflict),
            Ok(Commit::ConditionFailed(index, item)) => {
                let Some(explain) = explanations.into_iter().nth(index).flatten() else {
                    let fault = "the condition of a write failed that has no explanation";
                    return Committed::ConditionFailed(ToolError::internal(fault).nothing_sent());
                };
                let time = run.tool().timeout.min(run.deadline.time_to_settle());
                match attempt::run(async move { Ok(explain(item.as_ref())) }, time, run.ending).await {
                    Ok(error) => Committed::ConditionFailed(error),
                    Err(ended) => Committed::Not(ended), // nothing was written, whatever became of the explanation
                }
            }
            Err(error) => {
                note(run, &error);
                run.report.fault = Some(error.to_string());
                Committed::Not(match error.kind {
                    StoreErrorKind::NoAnswer => Ended::CommitLost,
                    StoreErrorKind::Refused | StoreErrorKind::NoRecord => Ended::StoreRefused,
                    StoreErrorKind::Fault => {
                        let name = error.to_string();
                        Ended::Failed(ToolError::internal(error).nothing_sent().named(name))
                    }
                })
            }
        }
    }
}

/// How a commit ended.
enum Committed {
    Done(Answer),
    Held(Record),
    ConditionFailed(ToolError),
    Not(Ended),
}
