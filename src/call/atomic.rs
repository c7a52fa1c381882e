//! Effects that are DynamoDB writes: `Atomic`. The tool says what to write, the pipeline commits it with the record.

use serde_json::Value;

use super::{
    attempt::Ended,
    deadline::USEFUL,
    pipeline::{Answer, Pipeline, Run, replay},
    recorded::{Next, THIS_CALL, no_key, note, settle_failure},
};
use crate::{
    idempotency::{Claim, Commit, Decision, Key, Record, StoreErrorKind, Stored, decide},
    outcome::{Changed, Failure},
    tool::{Success, ToolError, Write},
};

impl Pipeline {
    /// Runs the tool and commits what it returns, until it is committed or must not be tried again.
    pub(super) async fn commit_atomically(&self, run: &mut Run<'_>) -> Result<Answer, Failure> {
        let Some(key) = run.key.clone() else { return Err(no_key(run)) };
        let mut claim = run.claim(self.store.now());
        // Only an approved call holds a record before it commits.
        let mut guard = None;
        if run.needs_approval {
            match self.enter(run, &key, &claim).await? {
                Ok(approved) => guard = Some(approved),
                Err(answer) => return Ok(answer),
            }
        }
        loop {
            let mut looked = false;
            let ended = match run.attempt().await {
                Ok(success) => match self.commit(run, &key, &claim, success).await {
                    Committed::Done(result) => return Ok(Answer { result, replayed: false }),
                    Committed::Held(record) => match self.meet_committed(run, &key, &claim, record).await? {
                        Next::End(answer) => return Ok(answer),
                        Next::Go(approved) => {
                            run.approved = approved.is_approved();
                            guard = Some(approved);
                            continue;
                        }
                        Next::Acquire | Next::Wait => Ended::Conflict,
                    },
                    Committed::Not(ended) => {
                        looked = matches!(ended, Ended::Failed(_)); // the record's condition came first, and held
                        ended
                    }
                },
                Err(ended) => ended,
            };
            if run.asks_for_approval(&ended) {
                match self.ask(run, &key, &mut claim, guard.take(), &ended).await? {
                    Ok(approved) => guard = Some(approved),
                    Err(answer) => return Ok(answer),
                }
            } else if let Err(failure) = run.retry_or_fail(&ended).await {
                return match guard {
                    Some(guard) => settle_failure(run, guard, failure).await,
                    None if looked => Err(failure),
                    None => self.fail_unless_done(run, &key, &claim, failure).await,
                };
            }
        }
    }

    /// The tool failed before the record was looked at. If an equal call has done it, that is why (nothing is left to
    /// refund), and its result is the answer.
    async fn fail_unless_done(
        &self,
        run: &mut Run<'_>,
        key: &Key,
        claim: &Claim,
        failure: Failure,
    ) -> Result<Answer, Failure> {
        match self.store.read(key, run.deadline.time_to_settle()).await {
            Ok(Some(record)) => match decide(&record, claim, key.args_hash(), self.store.now()) {
                Decision::Replay(stored) => Ok(Answer { replayed: record.owner != claim.owner, ..replay(stored) }),
                _ => Err(failure),
            },
            Ok(None) => Err(failure),
            Err(error) => {
                note(run, &error);
                let nothing = failure.changed() == Changed::Nothing;
                Err(if nothing { failure.with_changed(Changed::Nothing, THIS_CALL) } else { failure })
            }
        }
    }

    async fn commit(&self, run: &mut Run<'_>, key: &Key, claim: &Claim, success: Success<Value>) -> Committed {
        let Success { result, writes } = success;
        let (items, explanations): (Vec<_>, Vec<_>) =
            writes.into_iter().map(|Write { item, explain }| (item, explain)).unzip();
        let stored = Stored::of(result.to_string());
        let time = run.tool().timeout.min(run.deadline.time_left());
        if time < USEFUL / 2 {
            return Committed::Not(Ended::NoTime);
        }
        match self.store.commit(key, claim, run.report.attempts, &stored, items, time).await {
            Ok(Commit::Done) => Committed::Done(result),
            Ok(Commit::Held(record)) => Committed::Held(record),
            Ok(Commit::Conflict) => Committed::Not(Ended::Conflict),
            Ok(Commit::ConditionFailed(index, item)) => {
                let explain = explanations.into_iter().nth(index).flatten();
                let error = explain.map_or_else(
                    || ToolError::internal("the condition of a write failed that has no explanation").nothing_sent(),
                    |explain| explain(item.as_ref()),
                );
                Committed::Not(Ended::Failed(error))
            }
            Err(error) => {
                tracing::debug!(reference = run.report.reference, cause = ?error, "cause");
                Committed::Not(match error.kind {
                    StoreErrorKind::NoAnswer => Ended::CommitLost,
                    StoreErrorKind::Refused | StoreErrorKind::NoRecord => Ended::StoreRefused,
                })
            }
        }
    }

    /// The key has a record already.
    async fn meet_committed(
        &self,
        run: &mut Run<'_>,
        key: &Key,
        claim: &Claim,
        record: Record,
    ) -> Result<Next, Failure> {
        let ours = record.owner == claim.owner;
        Ok(match self.meet(run, key, claim, record).await? {
            // Committed by an earlier attempt of this very call, whose answer was lost: it is no replay.
            Next::End(answer) => Next::End(Answer { replayed: answer.replayed && !ours, ..answer }),
            next => next,
        })
    }
}

/// How a commit ended.
enum Committed {
    Done(Value),
    Held(Record),
    Not(Ended),
}
