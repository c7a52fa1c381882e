//! Effects that are DynamoDB writes: `Atomic`. The tool says what to write, the pipeline commits it with the record.

use serde_json::Value;

use super::{
    attempt::Ended,
    deadline::USEFUL,
    explain,
    pipeline::{Answer, Pipeline, Run},
    recorded::{Next, no_key, note},
};
use crate::{
    idempotency::{Claim, Commit, Key, Record, StoreErrorKind, Stored},
    outcome::Failure,
    tool::{Success, ToolError, Write},
};

impl Pipeline {
    /// Runs the tool and commits what it returns, until it is committed or must not be tried again.
    pub(super) async fn commit_atomically(&self, run: &mut Run<'_>) -> Result<Answer, Failure> {
        let Some(key) = run.key.clone() else { return Err(no_key(run)) };
        let claim = run.claim(self.store.now());
        loop {
            let mut record_was_seen = false;
            let ended = match run.attempt().await {
                Ok(success) => match self.commit(run, &key, &claim, success).await {
                    Committed::Done(result) => return Ok(Answer { result, replayed: false }),
                    Committed::Held(record) => match self.meet_committed(run, &key, &claim, record).await? {
                        Some(answer) => return Ok(answer),
                        None => Ended::Conflict,
                    },
                    Committed::ConditionFailed(error) => {
                        record_was_seen = true; // by the transaction, whose first condition held
                        Ended::Failed(error)
                    }
                    Committed::Not(ended) => ended,
                },
                Err(ended) => ended,
            };
            if let Err(failure) = run.retry_or_fail(&ended).await {
                if record_was_seen {
                    return Err(failure);
                }
                return self.unless_made_before(run, &key, &claim, failure).await;
            }
        }
    }

    /// A call that fails before its commit has not seen the record. An earlier call may have made the effect, and then it
    /// would be wrong to say that nothing was made: so the record is looked at, and its result is the answer.
    async fn unless_made_before(
        &self,
        run: &mut Run<'_>,
        key: &Key,
        claim: &Claim,
        failure: Failure,
    ) -> Result<Answer, Failure> {
        match self.store.read(key, run.deadline.time_to_settle()).await {
            Ok(None) => Err(failure),
            Ok(Some(record)) => self.meet_committed(run, key, claim, record).await?.ok_or(failure),
            Err(error) => {
                note(run, &error);
                Err(explain::for_this_call(failure))
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
                Committed::ConditionFailed(error)
            }
            Err(error) => {
                tracing::debug!(reference = run.report.reference, cause = ?error, "cause");
                Committed::Not(match error.kind {
                    StoreErrorKind::NoAnswer => Ended::CommitLost,
                    StoreErrorKind::Refused | StoreErrorKind::NoRecord => Ended::StoreRefused,
                    StoreErrorKind::Fault => Ended::Failed(ToolError::internal(error).nothing_sent()),
                })
            }
        }
    }

    /// The key has a record already: its result, unless it has expired meanwhile or somebody is at it.
    async fn meet_committed(
        &self,
        run: &mut Run<'_>,
        key: &Key,
        claim: &Claim,
        record: Record,
    ) -> Result<Option<Answer>, Failure> {
        let ours = record.owner == claim.owner;
        match self.meet(run, key, claim, record).await? {
            // Committed by an earlier attempt of this very call, whose answer was lost: it is no replay.
            Next::End(answer) => Ok(Some(Answer { replayed: answer.replayed && !ours, ..answer })),
            Next::Acquire | Next::Wait | Next::Go(_) => Ok(None),
        }
    }
}

/// How a commit ended.
enum Committed {
    Done(Value),
    Held(Record),
    ConditionFailed(ToolError),
    Not(Ended),
}
