//! How a call stands, without running it: whether a person has to decide first, and what its record says.
//!
//! For a host that runs the loop itself, and so must know it before the calls beside this one begin. Whoever only passes
//! calls on needs none of it: [`Pipeline::run`] answers `approval_required`.

use serde_json::Value;

use super::{
    Call, Pipeline, Surroundings, answer,
    permit::permit,
    pipeline::{key, plan, validate},
    run::claim,
};
use crate::{
    idempotency::{Acquired, ApprovalId, Asking, Claim, Decision, Key, Record, StoreError, decide},
    outcome::{Failure, FailureKind},
    telemetry::Report,
    tool::Entry,
};

/// How a call stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Standing {
    /// Nothing is recorded of it, and nobody has to decide first. Before it runs also: it will be refused without doing
    /// anything.
    Clear,
    /// There is no such tool, or it does not take these arguments: so the call has no record, and cannot have had one.
    Refused(Failure),
    /// A person has to decide, by this id ([`ApprovalId`]).
    Waits(String),
    /// The same, and an attempt before may have been done.
    WaitsInDoubt(String),
    /// A person has approved it.
    Approved,
    /// A person has refused it.
    Denied,
    /// It is done, with this result.
    Done(Value),
    /// Somebody is at it.
    Running,
    /// It may have been done.
    Unknown,
    /// It could not be found out: the record could not be read, or the call cannot be made now, so that nobody can tell which
    /// record it would have.
    Unavailable,
}

/// A call that has passed every check before its record.
struct Keyed<'a> {
    entry: &'a Entry,
    key: Option<Key>,
    arguments: Value,
    needs_approval: bool,
}

impl Pipeline {
    /// Whether a person has to decide on this call before it runs. If so and nobody has been asked yet, it begins to wait,
    /// as after [`Pipeline::run`]; nothing is run. A call that needs no approval costs no request.
    pub async fn approval(&self, call: &Call, around: &Surroundings) -> Standing {
        let (entry, key, arguments) = match self.keyed(call, around).await {
            Ok(Keyed { entry, key: Some(key), arguments, needs_approval: true }) => (entry, key, arguments),
            // What could not be found out now may be found out when it runs, and then its siblings must not have run.
            Err(failure) if matches!(failure.kind(), FailureKind::Transient | FailureKind::Timeout) => {
                return Standing::Unavailable;
            }
            _ => return Standing::Clear,
        };
        let for_approval = Some(Box::new(Asking::of(&arguments, &call.caller)));
        let claim = Claim { for_approval, ..claim(entry.definition(), &around.deadline, self.store.now()) };
        match self.store.acquire(&key, &claim, around.deadline.time_left()).await {
            Ok(Acquired::Awaiting | Acquired::Mine(_)) => Standing::Waits(ApprovalId::of(&key, false).to_string()),
            Ok(Acquired::Held(record)) => self.standing(&record, &claim, &key),
            Err(error) => unavailable(entry, &error),
        }
    }

    /// What the record of this call says. Writes nothing.
    pub async fn recorded(&self, call: &Call, around: &Surroundings) -> Standing {
        let taken = self.find(call).and_then(|entry| validate(entry, call.arguments.clone()));
        if let Err(failure) = taken {
            return Standing::Refused(failure);
        }
        let (entry, key) = match self.keyed(call, around).await {
            Ok(Keyed { entry, key: Some(key), .. }) => (entry, key),
            // It has no record, and cannot have one.
            Ok(_) => return Standing::Clear,
            // Whoever made it may have been allowed to, or have had a tool with other rules.
            Err(_) => return Standing::Unavailable,
        };
        let claim = claim(entry.definition(), &around.deadline, self.store.now());
        match self.store.read(&key, around.deadline.time_left()).await {
            Ok(Some(record)) => self.standing(&record, &claim, &key),
            Ok(None) => Standing::Clear,
            Err(error) => unavailable(entry, &error),
        }
    }

    fn standing(&self, record: &Record, claim: &Claim, key: &Key) -> Standing {
        match decide(record, claim, key.args_hash(), self.store.now()) {
            Decision::Acquire | Decision::KeyReused => Standing::Clear,
            Decision::TakeOver if record.args_hash != key.args_hash() => Standing::Clear, // what was left is another call's
            Decision::AwaitApproval if record.maybe_done => {
                Standing::WaitsInDoubt(ApprovalId::of(key, true).to_string())
            }
            Decision::AwaitApproval => Standing::Waits(ApprovalId::of(key, false).to_string()),
            Decision::UseApproval | Decision::Denied if record.maybe_done => Standing::Unknown,
            Decision::UseApproval => Standing::Approved,
            Decision::Denied => Standing::Denied,
            Decision::Replay(stored) => Standing::Done(answer::replay(stored).result),
            Decision::InProgress(_) | Decision::Ours => Standing::Running,
            // Its holder is gone, and may have done it.
            Decision::TakeOver | Decision::MarkUnknown | Decision::Unknown => Standing::Unknown,
        }
    }

    /// The steps of [`Pipeline::run`] up to the key.
    async fn keyed(&self, call: &Call, around: &Surroundings) -> Result<Keyed<'_>, Failure> {
        let entry = self.find(call)?;
        let tool = entry.definition();
        let arguments = validate(entry, call.arguments.clone())?;
        let mut report = Report::of(Some(tool)); // the call leaves its lines when it runs
        let plan = plan(entry, &arguments, &around.deadline, &self.ending, &mut report).await?;
        permit(&self.policy, entry, &arguments, call, &around.deadline, &mut report).await?;
        let key = key(tool, call, &plan, &arguments, &mut report)?;
        Ok(Keyed { entry, key, arguments, needs_approval: plan.needs_approval })
    }
}

fn unavailable(entry: &Entry, error: &StoreError) -> Standing {
    let (tool, operation) = (entry.definition().name, error.operation);
    tracing::warn!(tool, operation, kind = ?error.kind, fault = error.cause(), "the record table failed");
    Standing::Unavailable
}
