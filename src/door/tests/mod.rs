//! What each door promises, shown on the files of `events/`.

mod agents;
mod bodies;
mod converse;
mod converse_form;
mod converse_session;
mod definitions;
mod detection;
mod flawed;
mod flow;
mod gateway;
mod golden;
mod mcp;
mod no_panic;
mod return_of_control;

use serde_json::Value;

use super::testing::{event, file, request};
use crate::{
    call::{Arguments, Call},
    outcome::{Failure, FailureKind, Outcome},
};

/// The one call of a file.
fn call(name: &str) -> Call {
    let mut calls = request(file(name)).calls;
    assert_eq!(calls.len(), 1, "{name}");
    calls.remove(0)
}

/// The one call of an event.
fn call_in(body: Value) -> Call {
    request(event(body)).calls.remove(0)
}

/// A failure that the model can mend.
fn invalid() -> Outcome {
    Outcome::Failure(Failure::new(FailureKind::InvalidInput, "limit must be at most 50."))
}

/// A failure that only time can mend.
fn unavailable() -> Outcome {
    Outcome::Failure(Failure::new(FailureKind::Transient, "The carrier is not available."))
}

fn faults(arguments: &Arguments) -> Vec<String> {
    arguments.faults.iter().map(ToString::to_string).collect()
}
