//! One call on its way: its attempts, and the waits between them.

use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, timeout};
use tracing::Instrument;

use super::{
    Call,
    answer::Made,
    attempt,
    attempt::Ended,
    budget::Retries,
    deadline::{Deadline, USEFUL},
    explain, retry,
    retry::MAX_REQUESTS,
};
use crate::{
    clock::Timestamp,
    ending::Ending,
    idempotency::{Asking, Claim, Key, TAKE_OVER_MARGIN},
    outcome::Failure,
    telemetry::Report,
    tool::{CallContext, Definition, Effect, Entry, Phase, Reconciled, ToolError, ToolErrorKind},
};

/// By how much a tool's own clock is ahead of its attempt's, at most. A client that gives up with its attempt is heard so: it
/// has retried already, which nobody would know if the attempt were dropped first, and set to its retries again.
const AHEAD: Duration = Duration::from_millis(50);

/// By how much a record outlasts its execution at least, however short the window: a key must not be free while the one that
/// holds it still counts as alive ([`TAKE_OVER_MARGIN`]).
const OUTLASTS: Duration = Duration::from_mins(1);
const _: () = assert!(TAKE_OVER_MARGIN.as_millis() < OUTLASTS.as_millis(), "the margin is a part of it");

/// What the steps after validation share.
pub(super) struct Run<'a> {
    pub entry: &'a Entry,
    pub arguments: Value,
    pub key: Option<&'a Key>,
    pub call: &'a Call,
    pub deadline: Deadline,
    pub began: Timestamp,
    pub report: &'a mut Report,
    pub retries: &'a Retries,
    pub ending: &'a Ending,
    /// Whether a person has to approve it, and has.
    pub needs_approval: bool,
    pub approved: bool,
    /// Whether some attempt so far, of this call or of one whose record it took over, may have had its effect.
    pub maybe_done: bool,
    /// How often the tool's backend was asked: attempts, and to find out what became of an effect.
    pub requests: u32,
}

impl Run<'_> {
    pub(super) fn tool(&self) -> &Definition {
        self.entry.definition()
    }

    /// This execution's claim on its key.
    pub(super) fn claim(&self, now: Timestamp) -> Claim {
        let for_approval = self.needs_approval.then(|| Box::new(self.asking()));
        Claim { for_approval, ..claim(self.tool(), &self.deadline, now) }
    }

    /// What a person is shown of it who has to approve it.
    pub(super) fn asking(&self) -> Asking {
        Asking::of(&self.arguments, &self.call.caller)
    }

    /// Runs the tool once, within the policy's timeout and the time left.
    pub(super) async fn attempt(&mut self) -> Result<Made, Ended> {
        let time = self.tool().timeout.min(self.deadline.time_left());
        if self.ending.has_begun() {
            return Err(Ended::Stopped(Phase::NothingSent));
        }
        if time < USEFUL / 2 {
            return Err(Ended::NoTime);
        }
        if self.requests >= MAX_REQUESTS {
            return Err(Ended::Spent);
        }
        self.requests += 1;
        self.report.attempts += 1;
        let began = Instant::now();
        let span = tracing::error_span!("attempt", attempt = self.report.attempts);
        let (effect, code) = (self.tool().effect, self.entry.tool().call(self.arguments.clone(), self.context(time)));
        let code = async move { Made::of(effect, code.await?).await };
        let ended = attempt::run(code, time, self.ending).instrument(span).await;
        let ended = ended.and_then(|made| only_atomic_writes(self.tool(), made));
        if has_answered(&ended, self.tool().effect) {
            self.earn();
        }
        let end = ended.as_ref().err().map_or("success", Ended::name);
        tracing::debug!(
            tool = self.tool().name,
            attempt = self.report.attempts,
            end,
            duration_ms = began.elapsed().as_millis(),
            "attempt"
        );
        ended
    }

    /// Asks the tool what became of an effect whose outcome is not known. Without a request or the time to spare it cannot
    /// be told.
    pub(super) async fn reconcile(&mut self) -> Reconciled<Made> {
        let time = self.tool().timeout.min(self.deadline.time_left());
        if self.requests >= MAX_REQUESTS || time < USEFUL / 2 || self.ending.has_begun() {
            return Reconciled::Unknown;
        }
        self.requests += 1;
        let effect = self.tool().effect;
        let code = self.entry.tool().reconcile(self.arguments.clone(), self.context(time));
        let code = async move {
            Ok(match code.await? {
                Reconciled::Done(result) => Reconciled::Done(Made::of(effect, result.into()).await?),
                Reconciled::NotDone => Reconciled::NotDone,
                Reconciled::Unknown => Reconciled::Unknown,
            })
        };
        attempt::run(code, time, self.ending).await.unwrap_or_else(|ended| {
            self.note(&ended);
            Reconciled::Unknown
        })
    }

    fn context(&self, time: Duration) -> CallContext {
        CallContext {
            idempotency_key: self.key.map(|key| key.digest().to_owned()),
            attempt: self.report.attempts,
            began: self.began.into(),
            ends: Instant::now() + time.saturating_sub(AHEAD.min(time / 10)),
            caller: self.call.caller.clone(),
            call_id: self.call.id.clone(),
            approved: self.approved,
        }
    }

    /// Whether a person has to approve the call, and the record that it holds says of nobody that he has.
    pub(super) const fn lacks_approval(&self) -> bool {
        self.needs_approval && !self.approved
    }

    /// Whether the tool wants a person's approval that the call does not have.
    pub(super) fn asks_for_approval(&self, ended: &Ended) -> bool {
        !self.approved && matches!(ended, Ended::Failed(error) if error.kind() == ToolErrorKind::ApprovalRequired)
    }

    /// What an attempt comes to. To ask for the approval that the call has is a fault of the tool: to have the call wait again
    /// would ask people who could give it nothing more.
    pub(super) fn judged(&self, ended: Ended) -> Ended {
        match ended {
            Ended::Failed(error) if self.approved && error.kind() == ToolErrorKind::ApprovalRequired => {
                let name = String::from("approval_required although approved");
                Ended::Failed(ToolError::internal(name.as_str()).nothing_sent().named(name))
            }
            ended => ended,
        }
    }

    /// Waits until it is time for another attempt, or ends the call.
    pub(super) async fn retry_or_fail(&mut self, ended: &Ended) -> Result<(), Failure> {
        self.note(ended);
        self.maybe_done |= explain::may_be_done(ended, self.tool().effect);
        let time_left = self.deadline.time_left();
        let wait = retry::decide(ended, self.tool().effect, self.requests, time_left, rand::random());
        match wait {
            Some(wait) if self.retries.pay(self.tool().name, self.conversation()) => {
                self.pause(wait).await;
                Ok(())
            }
            Some(_) => {
                self.report.retry_denied = true;
                Err(explain::denied_retry(self.tool(), ended, self.maybe_done, &self.report.reference))
            }
            None => Err(explain::failure(self.tool(), ended, self.maybe_done, &self.report.reference)),
        }
    }

    /// Waits, but not beyond the end of the process.
    pub(super) async fn pause(&self, time: Duration) {
        let _ = timeout(time, self.ending.begun()).await;
    }

    /// The backend has answered, which pays for later retries.
    pub(super) fn earn(&self) {
        self.retries.earn(self.tool().name, self.conversation());
    }

    fn conversation(&self) -> Option<&str> {
        self.call.caller.conversation()
    }

    /// Leaves the cause in the log: its name in the line of the call, its text, which may hold secrets, at TRACE only.
    pub(super) fn note(&mut self, ended: &Ended) {
        if let Ended::Failed(error) = ended
            && let Some(cause) = error.cause()
        {
            tracing::trace!(reference = self.report.reference, cause = ?cause, "cause");
        }
        // Of a commit the record table's own failure is the cause, and has been noted.
        if !matches!(ended, Ended::CommitLost | Ended::StoreRefused) {
            self.report.fault = ended.fault();
        }
    }
}

/// Whether the attempt shows that the backend is well: it did what it was asked for, or refused it with a reason. The code
/// of an atomic effect has asked for nothing yet: its commit shows it.
fn has_answered(ended: &Result<Made, Ended>, effect: Effect) -> bool {
    match ended {
        Ok(_) => effect != Effect::Atomic,
        Err(Ended::Failed(error)) => !matches!(error.kind(), ToolErrorKind::Transient | ToolErrorKind::Internal),
        Err(_) => false,
    }
}

/// A new execution's claim on its key, which nobody has to approve.
pub(super) fn claim(tool: &Definition, deadline: &Deadline, now: Timestamp) -> Claim {
    let headroom = deadline.headroom();
    Claim {
        owner: new_owner(),
        effect: tool.effect,
        lease_until: now.plus(headroom),
        expires_at: now.plus(tool.window.max(headroom + OUTLASTS)),
        for_approval: None,
    }
}

/// The random id of one execution that holds a record.
pub(super) fn new_owner() -> String {
    format!("{:032x}", rand::random::<u128>())
}

/// Refuses writes that nobody would commit: a success would be a lie.
fn only_atomic_writes(tool: &Definition, made: Made) -> Result<Made, Ended> {
    if made.writes.is_empty() || tool.effect == Effect::Atomic {
        return Ok(made);
    }
    Err(Ended::Failed(ToolError::internal("writes of a tool whose effect is not atomic")))
}
