//! The step that asks the policy. It fails closed: a call goes on only if the policy has said so in time.

use serde_json::Value;
use tokio::time::timeout;

use super::{Call, Deadline, explain};
use crate::{
    authorise::{Authorise, Decision},
    outcome::{Failure, FailureKind},
    telemetry::Report,
    tool::Definition,
};

/// Asks the policy within the time left.
pub(super) async fn permit(
    policy: &dyn Authorise,
    tool: &Definition,
    arguments: &Value,
    call: &Call,
    deadline: &Deadline,
    report: &mut Report,
) -> Result<(), Failure> {
    match timeout(deadline.time_left(), policy.authorise(tool, arguments, &call.caller)).await {
        Ok(Decision::Allow) => Ok(()),
        Ok(Decision::Deny(rule)) => {
            report.fault = Some(crate::telemetry::bounded(&rule));
            Err(explain::nothing_here(FailureKind::Denied, "The caller may not make this call."))
        }
        Ok(Decision::Unavailable) | Err(_) => {
            report.fault = Some(String::from("authorise"));
            let text = "Whether the caller may make this call could not be found out. Try again later.";
            Err(explain::nothing_here(FailureKind::Transient, text))
        }
    }
}
