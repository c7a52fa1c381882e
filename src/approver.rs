//! The approver: a second, small function, by which a person lists and decides what waits for approval.
//!
//! It has a permission of its own, so that whoever may call the tools may not approve. No door leads here.
//!
//! | event | answer |
//! | --- | --- |
//! | `{"action": "list"}` | `{"ok": true, "next": null, "pending": [{"id", "tool", "arguments", "asked_by", "asked_at", "expires_at", "effect", "maybe_done"}, …]}` |
//! | `{"action": "approve", "id": "refund_order#4f1c….9b27…", "by": "ada"}` | `{"ok": true, "decided": {…}}` |
//! | `{"action": "deny", "id": "refund_order#4f1c….9b27…", "by": "ada"}` | `{"ok": true, "decided": {…}}` |
//! | a decision that does not count | `{"ok": false, "error": "…"}` |
//!
//! A list that would not fit into an answer is cut: `next` is then a text, and `{"action": "list", "after": NEXT}` goes on.
//!
//! `asked_by`: the caller's `tenant`, `identity` and `conversation`, as far as there are such; how far to trust each is in
//! `docs/doors.md`. Times are in UTC, as in RFC 3339.
//!
//! `maybe_done`: an attempt before may have done it. Approved, it runs again with the same key, as long as the tool has the
//! `effect` that it had; by now it may have another, and then the same call only asks what became of it.
//!
//! `id` is what the list shows, whole: it stands for what is shown beside it. A decision counts only while the same call waits,
//! with the same arguments; an id that is cut, a key, or the id of what waits no more decides nothing. `by` stands in the log, and with its
//! time in the record (`decided_by`, `decided_at`), also in that of a call that is done.

use std::error::Error;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    aws::{self, RetryMode},
    clock::Clock,
    env::Env,
    idempotency::{Store, StoreError, Verdict},
    runtime::{Answer, FunctionError, Invocation, Serve},
    start::StartError,
};

/// Lists and decides what waits.
#[derive(Debug)]
pub struct Approver {
    store: Store,
}

#[derive(Deserialize)]
#[serde(tag = "action", rename_all = "lowercase", deny_unknown_fields)]
enum Request {
    List {
        #[serde(default)]
        after: Option<String>,
    },
    Approve {
        id: String,
        by: String,
    },
    Deny {
        id: String,
        by: String,
    },
}

impl Approver {
    /// An approver of the calls whose records are in this store.
    pub const fn new(store: Store) -> Self {
        Self { store }
    }

    /// The approver of this deployment: settings from the environment.
    ///
    /// # Errors
    ///
    /// If `IDEMPOTENCY_TABLE` is not set, or is no name of a table.
    pub async fn build() -> Result<Self, StartError> {
        let mut env = Env::process();
        let table = env.table("IDEMPOTENCY_TABLE");
        env.finish()?;
        let client = aws_sdk_dynamodb::Client::new(&aws::sdk_config(RetryMode::Standard).await);
        Ok(Self::new(Store::new(client, table, Clock::system())))
    }

    async fn answer(&self, request: Request) -> Result<Value, String> {
        match request {
            Request::List { after } => {
                let waiting = self.store.pending(after.as_deref()).await.map_err(|error| told(&error))?;
                Ok(json!({"ok": true, "pending": waiting.calls, "next": waiting.next}))
            }
            Request::Approve { id, by } => self.decide(&id, &by, Verdict::Approve).await,
            Request::Deny { id, by } => self.decide(&id, &by, Verdict::Deny).await,
        }
    }

    async fn decide(&self, id: &str, by: &str, verdict: Verdict) -> Result<Value, String> {
        if by.trim().is_empty() {
            return Err(String::from("\"by\" must name the person who decides."));
        }
        let call = self.store.decide_approval(id, by, verdict).await.map_err(|error| told(&error))?;
        tracing::info!(key = call.key, tool = call.tool, by, verdict = ?verdict, "decided");
        Ok(json!({"ok": true, "decided": call}))
    }
}

/// What the person is told. Where it was the table's doing, the log names the cause for whoever can mend it.
fn told(error: &(dyn Error + 'static)) -> String {
    if let Some(error) = error.source().and_then(|source| source.downcast_ref::<StoreError>()) {
        tracing::warn!(operation = error.operation, kind = ?error.kind, fault = error.cause(), "the record table failed");
    }
    error.to_string()
}

impl Serve for Approver {
    async fn serve(&self, invocation: Invocation) -> Answer {
        let request = serde_json::from_slice(&invocation.payload).map_err(|_| {
            let text = "The event must be {\"action\": \"list\"}, or {\"action\": \"approve\" or \"deny\", \"id\": …, \"by\": …}.";
            FunctionError::new("InvalidPayload", text)
        })?;
        Ok(self.answer(request).await.unwrap_or_else(|error| json!({"ok": false, "error": error})))
    }
}
