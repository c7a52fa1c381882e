//! The life of a call, as one list of steps.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt;
use serde_json::Value;
use tracing::Instrument;

use super::{
    Arguments, Call, Surroundings,
    answer::{Answer, fit},
    attempt,
    attempt::Ended,
    budget::Retries,
    deadline::{Deadline, USEFUL},
    explain,
    lines::{Lines, panicked},
    permit::permit,
    refusal::keeping_doubt,
    run::Run,
};
use crate::{
    arguments::Fault,
    authorise::{Authorise, allow_all},
    ending::Ending,
    idempotency::{Key, Store},
    outcome::{Failure, FailureKind, Outcome},
    telemetry::{Report, Telemetry, bounded},
    tool::{Definition, Effect, Entry, Plan, Scope, Toolbox},
};

/// What every call needs. One for the life of the process.
#[derive(Clone)]
pub struct Pipeline {
    toolbox: Arc<Toolbox>,
    pub(super) policy: Arc<dyn Authorise>,
    pub(super) store: Store,
    telemetry: Arc<Telemetry>,
    retries: Retries,
    pub(super) ending: Ending,
}

impl std::fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pipeline").field("toolbox", &self.toolbox).finish_non_exhaustive()
    }
}

impl Pipeline {
    /// A pipeline over these tools and this table.
    pub fn new(toolbox: Arc<Toolbox>, store: Store, telemetry: Arc<Telemetry>) -> Self {
        let (retries, ending) = (Retries::new(), Ending::new());
        Self { toolbox, policy: Arc::new(allow_all), store, telemetry, retries, ending }
    }

    /// The same, with a policy that is asked about each call.
    #[must_use]
    pub fn authorised_by(self, policy: impl Authorise) -> Self {
        Self { policy: Arc::new(policy), ..self }
    }

    /// Ends all attempts and waits at once, because the process is to end. Their records are settled by what is known.
    pub fn end(&self) {
        self.ending.begin();
    }

    /// Where the lines go.
    pub(crate) fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    /// The tools.
    pub fn toolbox(&self) -> &Toolbox {
        &self.toolbox
    }

    /// The table of records.
    pub(crate) const fn store(&self) -> &Store {
        &self.store
    }

    /// Runs one call to its end, and leaves its metric line and its log line.
    pub async fn run(&self, call: Call, around: &Surroundings) -> Outcome {
        let tool = self.toolbox.get(&call.tool).map(Entry::definition);
        let mut lines = Lines::begin(&self.telemetry, around, tool);
        lines.report.call_id = call.id.as_deref().map(bounded);
        lines.report.conversation = call.caller.conversation().map(bounded);
        let span = self.telemetry.span(&around.origin, &lines.report);
        async {
            // A panic of the tool's attempt is caught there; this is for its policy, and for us. It costs no other call
            // its answer.
            let served = AssertUnwindSafe(self.serve(call, around, &mut lines.report)).catch_unwind().await;
            let outcome = match served.unwrap_or_else(|_| Err(panicked(tool, &mut lines.report))) {
                Ok(Answer { result, replayed, .. }) => Outcome::Success { result, replayed },
                Err(failure) => Outcome::Failure(failure),
            };
            lines.end(&outcome);
            outcome
        }
        .instrument(span)
        .await
    }

    /// The steps. Each either goes on or ends the call with the sentence that the model reads.
    async fn serve(&self, mut call: Call, around: &Surroundings, report: &mut Report) -> Result<Answer, Failure> {
        let entry = self.find(&call)?;
        let arguments = validate(entry, std::mem::take(&mut call.arguments))?;
        time_left(entry.definition(), &around.deadline, report)?;
        let plan = plan(entry, &arguments, &around.deadline, &self.ending, report).await?;
        permit(&self.policy, entry, &arguments, &call, &around.deadline, report).await?;
        time_left(entry.definition(), &around.deadline, report)?; // the policies may have taken their time
        let key = key(entry.definition(), &call, &plan, &arguments, report)?;
        let (key, call, deadline, needs_approval) = (key.as_ref(), &call, around.deadline, plan.needs_approval);
        let (retries, ending) = (&self.retries, &self.ending);
        let mut run = Run {
            entry,
            arguments,
            key,
            call,
            deadline,
            began: self.store.now(),
            report,
            retries,
            ending,
            needs_approval,
            approved: false,
            maybe_done: false,
            requests: 0,
        };
        let answer = match (key, entry.definition().effect) {
            (None, _) => self.read(&mut run).await,
            (Some(key), Effect::Atomic) => self.commit_atomically(&mut run, key).await,
            (Some(key), _) => self.run_recorded(&mut run, key).await,
        };
        let answer = answer.map_err(|failure| keeping_doubt(entry.definition(), failure, run.maybe_done))?;
        fit(entry.definition(), answer, around.limit, &around.room)
    }

    /// Finds the tool. A name that is nearly right is another name.
    pub(super) fn find(&self, call: &Call) -> Result<&Entry, Failure> {
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
                Ok(made) => return Ok(made.answer()),
                Err(ended) => run.retry_or_fail(&ended).await?,
            }
        }
    }
}

/// Checks the arguments against the schema that the model was told, all faults at once.
pub(super) fn validate(entry: &Entry, Arguments { values, mut faults }: Arguments) -> Result<Value, Failure> {
    let arguments = entry.checker().normalise(values);
    // Where some of it could not be read at all, the check would call that missing.
    let is_whole = faults.iter().all(|fault| !fault.path.is_empty());
    if is_whole {
        // What could not be read comes first: of two faults with one path the first is told.
        faults.extend(entry.checker().check(&arguments));
    }
    if faults.is_empty() { Ok(arguments) } else { Err(invalid(entry.definition(), &faults)) }
}

fn invalid(tool: &Definition, faults: &[Fault]) -> Failure {
    let text = crate::arguments::in_words(faults);
    explain::nothing(tool, FailureKind::InvalidInput, text)
}

/// What the policy says of these arguments. It is the author's code, so that it has a task and a clock as an attempt has.
pub(super) async fn plan(
    entry: &Entry,
    arguments: &Value,
    deadline: &Deadline,
    ending: &Ending,
    report: &mut Report,
) -> Result<Plan, Failure> {
    let (tool, values) = (Arc::clone(entry.tool()), arguments.clone());
    let time = entry.definition().timeout.min(deadline.time_left());
    match attempt::run(async move { Ok(tool.plan(&values)) }, time, ending).await {
        Ok(plan) => plan.map_err(|rule| {
            let rule = format!("The arguments are refused: {}", rule.chars().take(300).collect::<String>());
            invalid(entry.definition(), &[Fault { path: String::new(), rule, example: None }])
        }),
        Err(Ended::Panicked) => Err(panicked(Some(entry.definition()), report)),
        Err(ended) => {
            report.fault = Some(format!("tool policy: {}", ended.name()));
            Err(explain::for_this_call(explain::failure(entry.definition(), &ended, false, &report.reference)))
        }
    }
}

/// Refuses a call that has no time for a useful attempt.
fn time_left(tool: &Definition, deadline: &Deadline, report: &mut Report) -> Result<(), Failure> {
    if deadline.time_left() >= USEFUL {
        return Ok(());
    }
    report.fault = Ended::NoTime.fault();
    let text = "There was not enough time left to begin. Try again later.";
    Err(match tool.effect {
        Effect::ReadOnly => explain::nothing(tool, FailureKind::Timeout, text),
        _ => explain::nothing_here(FailureKind::Timeout, text),
    })
}

/// What makes two calls the same action. A tool without effect has none.
pub(super) fn key(
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

/// Among whom the key counts: the conversation, else the caller, else the whole deployment; in any case within the
/// tenant. The prefixes keep a conversation's id, a caller's name and a tenant's apart.
fn scope(scope: Scope, call: &Call) -> String {
    let among = match (scope, call.caller.conversation(), call.caller.identity()) {
        (Scope::Conversation, Some(conversation), _) => format!("conversation:{conversation}"),
        (Scope::Conversation, None, Some(identity)) => format!("identity:{identity}"),
        _ => String::from("deployment"),
    };
    match call.caller.tenant() {
        Some(tenant) => format!("tenant:{}:{tenant}:{among}", tenant.len()),
        None => among,
    }
}
