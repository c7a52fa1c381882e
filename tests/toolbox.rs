//! Which tools a function can start with, and what becomes of a call of one that it does not have.
#![cfg(feature = "dev")]

mod support;

use std::{sync::Arc, time::Duration};

use action_group::{
    call::{Call, Deadline, Pipeline, Room, Surroundings},
    clock::Clock,
    outcome::FailureKind,
    telemetry::{Origin, Telemetry},
    tool::{CallContext, Effect, Policy, Success, Tool, ToolError, Toolbox},
};
use support::Database;

/// Nothing.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

struct Idle(Duration);

impl Tool for Idle {
    const NAME: &'static str = "idle";
    type Args = Nothing;
    type Output = ();

    fn policy(&self) -> Policy<Nothing> {
        Policy::new(Effect::Once).window(self.0)
    }

    async fn call(&self, _: Nothing, _: &CallContext) -> Result<Success<()>, ToolError> {
        Ok(().into())
    }
}

const DAY: Duration = Duration::from_hours(24);

#[test]
fn two_tools_of_one_name_stop_the_start() {
    let error = Toolbox::builder().tool(Idle(DAY)).tool(Idle(DAY)).build().expect_err("a fault");
    assert!(error.to_string().contains("idle"), "{error}");
}

#[test]
fn a_window_that_is_shorter_than_a_run_stops_the_start() {
    let error = Toolbox::builder().tool(Idle(Duration::from_secs(1))).build().expect_err("a fault");
    assert!(error.to_string().contains("window"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_an_unknown_tool_is_answered_with_the_names_that_exist() {
    let database = Database::start().await;
    let telemetry = Telemetry::new("N", "s", Clock::system(), Box::new(std::io::sink()));
    let toolbox = Toolbox::builder().tool(Idle(DAY)).build().expect("a toolbox");
    let pipeline = Pipeline::new(Arc::new(toolbox), database.store(), Arc::new(telemetry));
    let deadline = Deadline::new(None, Duration::from_millis(500), Duration::from_secs(3));
    let around = Surroundings { origin: Origin::default(), deadline, limit: 100_000, room: Room::default() };
    let outcome = pipeline.run(Call { tool: "idel".into(), ..Call::default() }, &around).await;
    let failure = outcome.failure().expect("there is none");
    assert_eq!(failure.kind(), FailureKind::UnknownTool);
    assert!(failure.message().contains("idle"), "{}", failure.message());
}
