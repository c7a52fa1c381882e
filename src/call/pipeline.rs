//! The life of a call, as one list of steps.

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use tokio::time::Instant;

use super::{
    Call, attempt,
    attempt::Ended,
    deadline::{Deadline, USEFUL},
    explain,
    recorded::THIS_CALL,
    retry,
};
use crate::{
    arguments::Fault,
    clock::Timestamp,
    idempotency::{Claim, Key, Store, Stored},
    outcome::{Changed, Failure, FailureKind, Outcome, left_out},
    telemetry::{Origin, Report, Telemetry},
    tool::{CallContext, Definition, Effect, Entry, Plan, Reconciled, Scope, Success, ToolErrorKind, Toolbox},
};

/// What every call needs. One for the life of the process.
#[derive(Clone, Debug)]
pub struct Pipeline {
    toolbox: Arc<Toolbox>,
    pub(super) store: Store,
    telemetry: Arc<Telemetry>,
}

/// What surrounds one call.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The invocation.
    pub origin: Origin,
    /// When the work must be over.
    pub deadline: Deadline,
    /// The largest result, in bytes of JSON, that the door can answer with.
    pub limit: usize,
}

/// One call on its way: what the steps after validation share.
pub(super) struct Run<'a> {
    pub entry: &'a Entry,
    pub arguments: Value,
    pub key: Option<Key>,
    pub call: &'a Call,
    pub deadline: Deadline,
    pub report: &'a mut Report,
    /// Whether a person has to approve it, and has.
    pub needs_approval: bool,
    pub approved: bool,
    /// Whether some attempt so far may have had its effect.
    pub maybe_done: bool,
}

/// A result, and whether it is an earlier call's.
pub(super) struct Answer {
    pub result: Value,
    pub replayed: bool,
}

impl Pipeline {
    /// A pipeline over these tools and this table.
    pub fn new(toolbox: Arc<Toolbox>, store: Store, telemetry: Arc<Telemetry>) -> Self {
        Self { toolbox, store, telemetry }
    }

    /// The tools.
    pub fn toolbox(&self) -> &Toolbox {
        &self.toolbox
    }

    /// Runs one call to its end, and leaves its metric line and its log line.
    pub async fn run(&self, call: Call, around: &Surroundings) -> Outcome {
        let began = Instant::now();
        let mut report = Report::of(self.toolbox.get(&call.tool).map(Entry::definition));
        report.call_id = call.id.as_deref().map(bounded);
        report.conversation = call.caller.conversation.as_deref().map(bounded);
        let outcome = match self.serve(&call, around, &mut report).await {
            Ok(Answer { result, replayed }) => Outcome::Success { result, replayed },
            Err(failure) => Outcome::Failure(failure),
        };
        report.duration = began.elapsed();
        report.headroom = around.deadline.headroom();
        self.telemetry.record(&around.origin, &report, &outcome);
        outcome
    }

    /// The steps. Each either goes on or ends the call with the sentence that the model reads.
    async fn serve(&self, call: &Call, around: &Surroundings, report: &mut Report) -> Result<Answer, Failure> {
        let entry = self.find(call)?;
        let arguments = validate(entry, call)?;
        let plan = plan(entry, &arguments)?;
        budget(entry.definition(), &around.deadline)?;
        let key = key(entry.definition(), call, &plan, &arguments, report)?;
        let Plan { needs_approval, .. } = plan;
        let deadline = around.deadline;
        let mut run =
            Run { entry, arguments, key, call, deadline, report, needs_approval, approved: false, maybe_done: false };
        let answer = match entry.definition().effect {
            Effect::ReadOnly => self.read(&mut run).await,
            // Boxed, because the SDK's futures are large and a read should not carry them.
            Effect::Atomic => Box::pin(self.commit_atomically(&mut run)).await,
            Effect::Keyed | Effect::Once => Box::pin(self.run_recorded(&mut run)).await,
        }?;
        fit(entry.definition(), answer, around.limit)
    }

    /// Finds the tool. A name that is nearly right is another name.
    fn find(&self, call: &Call) -> Result<&Entry, Failure> {
        if let Some(objection) = &call.objection {
            return Err(objection.clone());
        }
        self.toolbox.get(&call.tool).ok_or_else(|| {
            let names = self.toolbox.names().collect::<Vec<_>>().join(", ");
            let asked = bounded(&call.tool);
            Failure::new(FailureKind::UnknownTool, format!("There is no tool {asked:?}. The tools are: {names}."))
        })
    }

    /// A tool without effect: attempts, and nothing to record.
    async fn read(&self, run: &mut Run<'_>) -> Result<Answer, Failure> {
        loop {
            match run.attempt().await {
                Ok(success) => return Ok(Answer { result: success.result, replayed: false }),
                Err(ended) => run.retry_or_fail(&ended).await?,
            }
        }
    }
}

impl Run<'_> {
    pub(super) fn tool(&self) -> &Definition {
        self.entry.definition()
    }

    /// This execution's claim on its key.
    pub(super) fn claim(&self, now: Timestamp) -> Claim {
        Claim {
            owner: new_owner(),
            effect: self.tool().effect,
            lease_until: now.plus(self.deadline.headroom()),
            expires_at: now.plus(self.tool().window.max(self.deadline.headroom() + Duration::from_mins(1))),
            for_approval: self.needs_approval.then(|| self.arguments.to_string()),
        }
    }

    /// Runs the tool once, within the policy's timeout and the time left.
    pub(super) async fn attempt(&mut self) -> Result<Success<Value>, Ended> {
        let time = self.tool().timeout.min(self.deadline.time_left());
        if time < USEFUL / 2 {
            return Err(Ended::NoTime);
        }
        self.report.attempts += 1;
        let ended = attempt::run(self.entry.tool().call(self.arguments.clone(), self.context(time)), time).await;
        let end = ended.as_ref().err().map_or("success", Ended::name);
        tracing::debug!(tool = self.tool().name, attempt = self.report.attempts, end, "attempt");
        ended
    }

    /// Asks the tool what became of an effect whose outcome is not known.
    pub(super) async fn reconcile(&mut self) -> Reconciled<Value> {
        let time = self.tool().timeout.min(self.deadline.time_left());
        let code = self.entry.tool().reconcile(self.arguments.clone(), self.context(time));
        attempt::run(code, time).await.unwrap_or_else(|ended| {
            self.note(&ended);
            Reconciled::Unknown
        })
    }

    fn context(&self, time: Duration) -> CallContext {
        CallContext {
            idempotency_key: self.key.as_ref().map(|key| key.digest().to_owned()),
            attempt: self.report.attempts,
            ends: Instant::now() + time,
            caller: self.call.caller.clone(),
            call_id: self.call.id.clone(),
            approved: self.approved,
        }
    }

    /// Whether the tool wants a person's approval that the call does not have.
    pub(super) fn asks_for_approval(&self, ended: &Ended) -> bool {
        !self.approved && matches!(ended, Ended::Failed(error) if error.kind() == ToolErrorKind::ApprovalRequired)
    }

    /// Waits until it is time for another attempt, or ends the call.
    pub(super) async fn retry_or_fail(&mut self, ended: &Ended) -> Result<(), Failure> {
        self.note(ended);
        self.maybe_done |= explain::may_be_done(ended, self.tool().effect);
        let time_left = self.deadline.time_left();
        match retry::decide(ended, self.tool().effect, self.report.attempts, time_left, rand::random()) {
            Some(wait) => {
                tokio::time::sleep(wait).await;
                Ok(())
            }
            None => Err(explain::failure(self.tool(), ended, self.maybe_done, &self.report.reference)),
        }
    }

    /// Leaves the cause in the log: its type always, its text at DEBUG only.
    pub(super) fn note(&mut self, ended: &Ended) {
        match ended {
            Ended::Failed(error) => {
                if let Some(cause) = error.cause() {
                    tracing::debug!(reference = self.report.reference, cause = ?cause, "cause");
                }
                if error.kind() == ToolErrorKind::Internal {
                    self.report.fault = Some(error.source_type.to_owned());
                }
            }
            Ended::Panicked => self.report.fault = Some(String::from("panic")),
            _ => {}
        }
    }
}

/// Checks the arguments against the schema that the model was told, all faults at once.
fn validate(entry: &Entry, call: &Call) -> Result<Value, Failure> {
    let arguments = entry.checker().normalise(call.arguments.values.clone());
    // What could not be read comes first: of two faults with one path the first is told.
    let mut faults = call.arguments.faults.clone();
    faults.extend(entry.checker().check(&arguments));
    if faults.is_empty() { Ok(arguments) } else { Err(invalid(entry.definition(), &faults)) }
}

fn invalid(tool: &Definition, faults: &[Fault]) -> Failure {
    let text = crate::arguments::in_words(faults);
    explain::nothing(tool, FailureKind::InvalidInput, text)
}

/// What the policy says of these arguments.
fn plan(entry: &Entry, arguments: &Value) -> Result<Plan, Failure> {
    entry.tool().plan(arguments).map_err(|rule| {
        let fault = Fault { path: String::new(), rule: format!("are refused: {rule}"), example: None };
        invalid(entry.definition(), &[fault])
    })
}

/// Refuses a call that has no time for a useful attempt.
fn budget(tool: &Definition, deadline: &Deadline) -> Result<(), Failure> {
    if deadline.time_left() >= USEFUL {
        return Ok(());
    }
    let text = "There was not enough time left to begin. Try again later.";
    // An earlier, equal call may have done it.
    Err(explain::nothing(tool, FailureKind::Timeout, text).with_changed(Changed::Nothing, THIS_CALL))
}

/// What makes two calls the same action. A tool without effect has none.
fn key(
    tool: &Definition,
    call: &Call,
    plan: &Plan,
    arguments: &Value,
    report: &mut Report,
) -> Result<Option<Key>, Failure> {
    if tool.effect == Effect::ReadOnly {
        return Ok(None);
    }
    let key = Key::new(tool, &scope(tool.scope, call), &plan.key, arguments).map_err(|fault| {
        report.fault = Some(fault.to_string());
        explain::nothing(tool, FailureKind::Internal, explain::internal(&report.reference))
    })?;
    report.key = Some(key.digest()[..12].to_owned());
    Ok(Some(key))
}

/// Among whom the key counts: the conversation, else the caller, else the whole deployment. The prefix keeps a
/// conversation's id and a caller's name apart.
fn scope(scope: Scope, call: &Call) -> String {
    match (scope, &call.caller.conversation, &call.caller.identity) {
        (Scope::Conversation, Some(conversation), _) => format!("conversation:{conversation}"),
        (Scope::Conversation, None, Some(identity)) => format!("identity:{identity}"),
        _ => String::from("deployment"),
    }
}

/// Keeps a result within what the door can answer with. A read says how to ask for less; of an effect the model must
/// learn that it happened, whatever its size.
fn fit(tool: &Definition, answer: Answer, limit: usize) -> Result<Answer, Failure> {
    let size = json_size(&answer.result);
    if size <= limit {
        return Ok(answer);
    }
    if tool.effect != Effect::ReadOnly {
        return Ok(Answer { result: left_out(size), ..answer });
    }
    let text = format!(
        "The result is too large: {size} bytes of {limit} that fit. Narrow the question, for example with a filter or a \
         smaller limit."
    );
    Err(explain::nothing(tool, FailureKind::TooLarge, text))
}

/// The bytes of a value's JSON, without making it.
fn json_size(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // A JSON value can always be written, and counting cannot fail.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

/// The random id of one execution that holds a record.
pub(super) fn new_owner() -> String {
    format!("{:032x}", rand::random::<u128>())
}

/// The stored result as an answer.
pub(super) fn replay(stored: Stored) -> Answer {
    let result = match stored {
        Stored::Json(json) => serde_json::from_str(&json).unwrap_or(Value::String(json)),
        Stored::Omitted(size) => left_out(size),
    };
    Answer { result, replayed: true }
}

/// A text from outside, cut to what a log line or a sentence can bear.
fn bounded(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(80).collect()
}
