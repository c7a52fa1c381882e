//! What stderr tells the person at the terminal: a line for each attempt of a tool, and one for each invocation.
//!
//! ```text
//!   refund_order, attempt 1: ok in 3 ms, 2 writes to commit
//! events/converse/refund-order.json: answered in 34 ms, through converse
//! ```
//!
//! No line holds arguments, results or the text of an error.

use std::{
    io::{IsTerminal, Write, stderr},
    sync::Arc,
    time::Duration,
};

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::time::Instant;

use crate::tool::{AnyTool, CallContext, Definition, Phase, Plan, Reconciled, Success, ToolError};

/// How a line is meant.
#[derive(Clone, Copy, Debug)]
pub enum Tone {
    Good,
    Bad,
    Quiet,
}

/// Whether a person looks at a terminal and has not asked for no colours (<https://no-color.org>).
pub fn colours() -> bool {
    stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Prints a line, in colour where that is welcome. Where nobody can read it, nothing else suffers: `eprintln!` would
/// panic, in the middle of a tool's call.
pub fn tell(tone: Tone, line: &str) {
    let colour = match tone {
        Tone::Good => 32,
        Tone::Bad => 31,
        Tone::Quiet => 2,
    };
    let _ = if colours() { writeln!(stderr(), "\x1b[{colour}m{line}\x1b[0m") } else { writeln!(stderr(), "{line}") };
}

/// A tool whose attempts are told.
pub struct Told(pub Arc<dyn AnyTool>);

impl AnyTool for Told {
    fn definition(&self) -> &Definition {
        self.0.definition()
    }

    fn plan(&self, arguments: &Value) -> Result<Plan, String> {
        self.0.plan(arguments)
    }

    fn call(&self, arguments: Value, context: CallContext) -> BoxFuture<'static, Result<Success<Value>, ToolError>> {
        let mut story =
            Story { tool: self.definition().name, attempt: context.attempt(), start: Instant::now(), told: false };
        let attempt = self.0.call(arguments, context);
        Box::pin(async move {
            let end = attempt.await;
            story.end(&end);
            end
        })
    }

    fn reconcile(
        &self,
        arguments: Value,
        context: CallContext,
    ) -> BoxFuture<'static, Result<Reconciled<Value>, ToolError>> {
        self.0.reconcile(arguments, context)
    }
}

/// One attempt; tells its end even if it has none.
struct Story {
    tool: &'static str,
    attempt: u32,
    start: Instant,
    told: bool,
}

impl Story {
    fn tell(&mut self, tone: Tone, end: &str) {
        self.told = true;
        let time = milliseconds(self.start.elapsed());
        tell(tone, &format!("  {}, attempt {}: {}", self.tool, self.attempt, end.replace("TIME", &time)));
    }

    fn end(&mut self, end: &Result<Success<Value>, ToolError>) {
        match end {
            Ok(success) if success.writes.is_empty() => self.tell(Tone::Quiet, "ok in TIME"),
            Ok(success) => self.tell(Tone::Quiet, &format!("ok in TIME, {} writes to commit", success.writes.len())),
            Err(error) => {
                let phase = match error.phase() {
                    Phase::NothingSent => "nothing was done",
                    Phase::MaybeDone => "it may have been done",
                };
                self.tell(Tone::Bad, &format!("{:?} error in TIME, {phase}", error.kind()));
            }
        }
    }
}

impl Drop for Story {
    fn drop(&mut self) {
        if !self.told {
            self.tell(Tone::Bad, if std::thread::panicking() { "panic after TIME" } else { "given up after TIME" });
        }
    }
}

/// A time as people read it.
pub fn milliseconds(time: Duration) -> String {
    format!("{} ms", time.as_millis())
}
