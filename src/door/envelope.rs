//! The envelope of doors that carry any JSON: `{"ok": true, "result": …}` or `{"ok": false, "error": {…}}`.
//!
//! An error is data here, because a gateway that sees the function fail hides the reason from the model
//! ("An internal error occurred. Please retry later.").

use serde_json::{Value, json};

use crate::outcome::{Failure, Outcome};

/// The outcome in its envelope. A replay has `"replayed": true` beside `ok`.
pub(super) fn of(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Success { result, replayed: false } => json!({ "ok": true, "result": result }),
        Outcome::Success { result, replayed: true } => json!({ "ok": true, "replayed": true, "result": result }),
        Outcome::Failure(failure) => of_failure(failure),
    }
}

/// `{"ok": false, "error": {kind, message, retryable, changed}}`.
pub(super) fn of_failure(failure: &Failure) -> Value {
    json!({ "ok": false, "error": failure.to_json() })
}
