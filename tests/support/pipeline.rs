//! The pipeline without a door around it, for tests of single calls.

use std::{sync::Arc, time::Duration};

use action_group::{
    call::{Arguments, Call, Deadline, Pipeline, Surroundings},
    clock::Clock,
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

/// The deadline of a call that has so much time, half a second of it for its end.
pub fn within(time: Duration) -> Deadline {
    Deadline::new(None, Duration::from_millis(500), time)
}

/// Calls the pipeline's first tool.
pub async fn call(pipeline: &Pipeline, deadline: Deadline, caller: Caller, arguments: Value) -> Outcome {
    let tool = pipeline.toolbox().names().next().expect("a tool").to_owned();
    let call = Call { tool, arguments: Arguments::from_json(arguments), caller, ..Call::default() };
    pipeline.run(call, &Surroundings { origin: Origin::default(), deadline, limit: 100_000 }).await
}
