//! A tool that misbehaves as `--fault` asks for, whatever the tool is, and whose calls are counted.

use std::{future::pending, sync::Arc};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::faults::{Backstage, Kind, Moment};
use crate::tool::{AnyTool, CallContext, Definition, Effect, Plan, Success, ToolError};

type Attempt = BoxFuture<'static, Result<Success<Value>, ToolError>>;

/// The tool, with the faults that are to come in front of it.
pub struct Faulty {
    tool: Arc<dyn AnyTool>,
    backstage: Arc<Backstage>,
}

impl Faulty {
    pub fn new(tool: Arc<dyn AnyTool>, backstage: Arc<Backstage>) -> Self {
        Self { tool, backstage }
    }
}

impl AnyTool for Faulty {
    fn definition(&self) -> &Definition {
        self.tool.definition()
    }

    fn plan(&self, arguments: &Value) -> Result<Plan, String> {
        self.tool.plan(arguments)
    }

    fn call(&self, arguments: Value, context: CallContext) -> Attempt {
        let tool = self.definition().name;
        // An atomic effect is made by the commit, after this call; `commits` sees it, counts it and misbehaves then.
        let makes_the_effect = self.definition().effect != Effect::Atomic;
        let fault = self.backstage.take(tool, |moment| makes_the_effect || moment != Moment::AfterEffect);
        if makes_the_effect || fault.is_some_and(|kind| kind.moment() == Moment::BeforeEffect) {
            self.backstage.count(tool);
        }
        let attempt = self.tool.call(arguments, context);
        match fault {
            None => attempt,
            Some(kind) => Box::pin(misbehave(kind, attempt)),
        }
    }
}

async fn misbehave(kind: Kind, attempt: Attempt) -> Result<Success<Value>, ToolError> {
    match kind {
        Kind::Throttle => Err(ToolError::transient("The backend is too busy for now.")),
        Kind::RetryAfter(wait) => Err(ToolError::transient("The backend is too busy for now.").retry_after(wait)),
        Kind::Unavailable => Err(ToolError::transient("The backend is not available for now.")),
        Kind::Reset => Err(ToolError::transient("The backend cannot be reached for now.")),
        Kind::Hang => pending().await,
        Kind::HangAfterEffect => {
            let _ = attempt.await;
            pending().await
        }
        Kind::KillAfterEffect => {
            let _ = attempt.await;
            killed()
        }
        Kind::Panic => panic!("the demo backend panics, because --fault asked for it"),
        Kind::Leak => Err(ToolError::internal(
            "cannot connect to postgres://orders:SECRET-1@db.internal:5432/orders?token=SECRET-2 (x-api-key: SECRET-3)",
        )),
        Kind::Huge => {
            let Success { writes, .. } = attempt.await?;
            Ok(Success::with_writes(json!({"padding": "x".repeat(2_000_000)}), writes))
        }
    }
}

/// Ends the process as the kernel does it to one that uses too much memory: no destructor, no last word.
pub fn killed() -> ! {
    std::process::exit(137)
}
