//! The pipeline without a door around it, for tests of single calls; and the terms of a handler in front of it.

use std::{sync::Arc, time::Duration};

use action_group::{
    call::{Arguments, Call, Deadline, Pipeline, Room, Surroundings},
    clock::Clock,
    conversation_guard::ConversationLimits,
    door::DOORS,
    handler::Terms,
    idempotency::Store,
    outcome::Outcome,
    telemetry::{Origin, Telemetry},
    tool::{Caller, Toolbox},
};
use serde_json::Value;

/// A pipeline that keeps its metrics to itself.
pub fn pipeline(toolbox: impl Into<Arc<Toolbox>>, store: Store) -> Pipeline {
    let telemetry = Telemetry::new("N", "s", Clock::system(), Box::new(std::io::sink()));
    Pipeline::new(toolbox.into(), store, Arc::new(telemetry))
}

/// The part of a call's time that is kept for its end.
const RESERVE: Duration = Duration::from_millis(500);

/// The deadline of a call that has so much time, half a second of it for its end.
pub fn within(time: Duration) -> Deadline {
    Deadline::new(None, RESERVE, time)
}

/// Every door is open, and nothing is limited but the time, as by [`within`].
pub fn terms(time: Duration) -> Terms {
    Terms {
        reserve: RESERVE,
        default_budget: time,
        identity_header: None,
        limits: ConversationLimits::default(),
        doors: DOORS.iter().collect(),
    }
}

/// Calls the pipeline's first tool.
pub async fn call(pipeline: &Pipeline, deadline: Deadline, caller: Caller, arguments: Value) -> Outcome {
    let tool = pipeline.toolbox().names().next().expect("a tool").to_owned();
    let call = Call { tool, arguments: Arguments::from_json(arguments), caller, ..Call::default() };
    pipeline
        .run(call, &Surroundings { origin: Origin::default(), deadline, limit: 100_000, room: Room::default() })
        .await
}
