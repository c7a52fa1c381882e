//! One attempt: the tool's code in a task of its own, so that a panic is caught and a timeout fires even where the tool
//! blocks its thread.

use std::time::Duration;

use tokio::{select, time::timeout};

use super::task::Task;

use crate::{
    ending::Ending,
    tool::{Phase, ToolError},
};

/// How an attempt ended that has no result.
#[derive(Debug)]
pub enum Ended {
    /// The tool said so.
    Failed(ToolError),
    /// Its time was up.
    TimedOut,
    /// There was no time left to begin it.
    NoTime,
    /// The call has asked the backend as often as one call may, and it was not begun.
    Spent,
    /// The process ends, and it with it: when it had begun, or before.
    Stopped(Phase),
    /// It panicked.
    Panicked,
    /// Another transaction was at the same items; nothing was written.
    Conflict,
    /// The transaction was sent and no answer came.
    CommitLost,
    /// The record table refused the transaction; nothing was written.
    StoreRefused,
}

impl Ended {
    /// Whether the attempt may have had its effect, as far as its end tells.
    pub const fn phase(&self) -> Phase {
        match self {
            Self::Failed(error) => error.phase(),
            Self::Stopped(phase) => *phase,
            Self::TimedOut | Self::Panicked | Self::CommitLost => Phase::MaybeDone,
            Self::NoTime | Self::Spent | Self::Conflict | Self::StoreRefused => Phase::NothingSent,
        }
    }

    /// What the tool says about it, for the model; empty if it says nothing.
    pub fn text(&self) -> &str {
        match self {
            Self::Failed(error) => &error.text,
            _ => "",
        }
    }

    /// The name of the cause, for the line of the call. The model's own errors have one only if the tool gives a source.
    pub fn fault(&self) -> Option<String> {
        match self {
            Self::Failed(error) => error.fault(),
            Self::Panicked => Some(String::from("panic")),
            _ => Some(String::from(self.name())),
        }
    }

    /// A word for the log.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Failed(_) => "failed",
            Self::TimedOut => "timed_out",
            Self::NoTime => "no_time",
            Self::Spent => "spent",
            Self::Stopped(_) => "stopped",
            Self::Panicked => "panicked",
            Self::Conflict => "conflict",
            Self::CommitLost => "commit_lost",
            Self::StoreRefused => "store_refused",
        }
    }
}

/// Runs a tool's code once, until its time is up or the process ends. Dropping this drops the code.
pub async fn run<T: Send + 'static>(
    code: impl Future<Output = Result<T, ToolError>> + Send + 'static,
    time: Duration,
    ending: &Ending,
) -> Result<T, Ended> {
    let ended = select! {
        biased; // what has ended well has ended well
        ended = timeout(time, Task::spawn(code)) => ended,
        () = ending.begun() => return Err(Ended::Stopped(Phase::MaybeDone)),
    };
    match ended {
        Err(_) => Err(Ended::TimedOut),
        Ok(Err(_)) => Err(Ended::Panicked),
        Ok(Ok(result)) => result.map_err(Ended::Failed),
    }
}
