//! Any bytes as an invocation: payload → door → calls → arguments → answer. What stands before the first record
//! separator (0x1E), if there is one, is the client context.
//!
//! An answer must be JSON within what Lambda carries, and every call must have its outcome in it.
#![no_main]

use std::sync::LazyLock;

use action_group::{
    door::{self, DOORS, Door, Event},
    outcome::{Failure, FailureKind, Outcome},
    payload,
    tool::Toolbox,
};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

static TOOLS: LazyLock<Toolbox> = LazyLock::new(fuzz::toolbox);
static ALL: LazyLock<Vec<&'static Door>> = LazyLock::new(|| DOORS.iter().collect());

fuzz_target!(|data: &[u8]| {
    let (context, body) = match data.iter().position(|byte| *byte == 0x1e) {
        Some(at) => (Some(&data[..at]), &data[at + 1..]),
        None => (None, data),
    };
    let client_context = context.and_then(|context| payload::read(context).ok()).map(|read| read.value);
    let Ok(read) = payload::read(body) else { return };
    let written = read.value.to_string();
    assert!(payload::read(written.as_bytes()).is_ok_and(|again| again.flaw.is_none()), "what was read is no clear JSON");
    let event = Event { body: read.value, flawed: read.flaw.is_some(), client_context };
    let Ok(door) = door::detect(&event, &ALL) else { return };
    let Ok(request) = (door.decode)(event, &TOOLS) else { return };
    let outcomes: Vec<_> = request.calls.into_iter().enumerate().map(outcome).collect();
    let (calls, answer) = (outcomes.len(), (request.encode)(outcomes));
    assert!(calls == 0 || !answer.is_null(), "{calls} calls without an answer");
    assert!(answer.to_string().len() < 6_000_000);
});

/// What the pipeline would make of it, with the arguments as the result.
fn outcome((number, call): (usize, action_group::call::Call)) -> Outcome {
    if let Some(objection) = call.objection {
        return Outcome::Failure(objection);
    }
    let Some(entry) = TOOLS.get(&call.tool) else {
        return Outcome::Failure(Failure::new(FailureKind::UnknownTool, "There is no such tool."));
    };
    let mut faults = call.arguments.faults;
    let arguments = entry.checker().normalise(call.arguments.values);
    faults.extend(entry.checker().check(&arguments));
    if faults.is_empty() {
        // What passes the check must be what the tool's own type takes.
        assert!(entry.tool().plan(&arguments).is_ok(), "the tool's type refuses {arguments}");
        return Outcome::Success { result: if number == 0 { arguments } else { Value::Null }, replayed: number % 2 == 1 };
    }
    Outcome::Failure(Failure::new(FailureKind::InvalidInput, action_group::arguments::in_words(&faults)))
}
