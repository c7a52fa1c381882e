//! The terminal of `dev chat`: lines that a person writes, and what is shown of a turn. Text on stdout, all else on stderr.

use std::io::{Write, stdin, stdout};

use tokio::sync::mpsc;

use super::account::{Tone, tell};
use crate::{
    agent::{drive::Happening, report::Report, run::ToolCall, stop::Stop},
    outcome::Outcome,
};

/// Waits until the terminal is closed. `None` where that cannot be known.
#[cfg(unix)]
pub(super) async fn hung_up() -> Option<()> {
    use tokio::signal::unix::{SignalKind, signal};
    signal(SignalKind::hangup()).ok()?.recv().await
}

#[cfg(not(unix))]
pub(super) async fn hung_up() -> Option<()> {
    None
}

/// The lines of stdin, read on a thread of their own: nothing can end a read.
pub(super) fn lines() -> mpsc::UnboundedReceiver<String> {
    let (sender, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in stdin().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

/// Text at once; a line for each call.
pub(super) fn told() -> impl FnMut(Happening<'_>) + Send {
    let mut within_text = false;
    move |happening| {
        if let Happening::Heard(text) = happening {
            within_text = true;
            print(text);
            return;
        }
        if std::mem::take(&mut within_text) {
            print("\n");
        }
        match happening {
            Happening::ModelFailed(failure) => tell(Tone::Bad, &failure.sentence),
            Happening::Began(calls) => {
                for call in calls {
                    tell(Tone::Quiet, &format!("calls {}", line(call)));
                }
            }
            Happening::Ended(call, outcome) => ended(call, outcome),
            _ => {}
        }
    }
}

fn ended(call: &ToolCall, outcome: &Outcome) {
    match outcome {
        Outcome::Success { replayed: true, .. } => tell(Tone::Good, &format!("{}: it was done before", line(call))),
        Outcome::Success { .. } => tell(Tone::Good, &format!("{}: success", line(call))),
        Outcome::Failure(failure) => {
            tell(Tone::Bad, &format!("{}: {}: {}", line(call), failure.kind(), plain(&failure.message(), 400)));
        }
    }
}

fn line(call: &ToolCall) -> String {
    format!("{} {}", plain(&call.tool, 80), plain(&call.input.to_string(), 200))
}

/// How the turn ended. A model that has answered has been heard.
pub(super) fn account(report: &Report) {
    print("\n");
    if report.stop == Stop::EndTurn && !report.needs_facts() {
        let Report { steps, tool_calls, .. } = report;
        tell(Tone::Quiet, &format!("{steps} steps, {tool_calls} calls, {} tokens", report.tokens()));
    } else {
        tell(Tone::Bad, &format!("stopped: {}", report.stop));
        print(&format!("{}\n", report.text()));
    }
}

/// Model text may hold what a terminal would obey.
pub(super) fn plain(text: &str, most: usize) -> String {
    text.chars().filter(|c| !c.is_control()).take(most).collect()
}

/// To stdout, at once. Where nobody can read it, nothing else suffers.
pub(super) fn print(text: &str) {
    let text: String = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    let mut out = stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
