//! The step that asks the policy. It fails closed: a call goes on only if the policy has said so in time.

use std::sync::Arc;

use serde_json::Value;
use tokio::time::timeout;

use super::{
    Call, Deadline, explain,
    lines::panicked,
    task::{Panicked, Task},
};
use crate::{
    authorise::{Authorise, Decision},
    outcome::{Failure, FailureKind},
    telemetry::Report,
    tool::Entry,
};

/// Asks the policy within the time left, in a task of its own: it may block its thread.
pub(super) async fn permit(
    policy: &Arc<dyn Authorise>,
    entry: &Entry,
    arguments: &Value,
    call: &Call,
    deadline: &Deadline,
    report: &mut Report,
) -> Result<(), Failure> {
    let (policy, tool) = (Arc::clone(policy), Arc::clone(entry.tool()));
    let (arguments, caller) = (arguments.clone(), call.caller.clone());
    let asked = Task::spawn(async move { policy.authorise(tool.definition(), &arguments, &caller).await });
    match timeout(deadline.time_left(), asked).await {
        Ok(Ok(Decision::Allow)) => Ok(()),
        Ok(Ok(Decision::Deny(rule))) => {
            report.fault = Some(crate::telemetry::bounded(&rule));
            Err(explain::nothing_here(FailureKind::Denied, "The caller may not make this call."))
        }
        Ok(Err(Panicked)) => Err(panicked(Some(entry.definition()), report)),
        unclear @ (Ok(Ok(Decision::Unavailable)) | Err(_)) => {
            let why = if unclear.is_ok() { "unavailable" } else { "timed_out" };
            report.fault = Some(format!("authoriser: {why}"));
            let text = "Whether the caller may make this call could not be found out. Try again later.";
            Err(explain::nothing_here(FailureKind::Transient, text))
        }
    }
}
