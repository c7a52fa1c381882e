//! A whole function with tools of its own: one that works, and four that no tool should be like.
//!
//! `tests/lambda.rs` runs it against a stub of the Runtime API, and shows that each call is answered all the same. It
//! also shows the least that a function needs: arguments, a tool, a toolbox, `main`.

use std::{future::pending, io::stdout, process::ExitCode, thread};

use action_group::{
    app, aws,
    env::Env,
    handler::Handler,
    runtime,
    settings::Settings,
    start::StartError,
    tool::{CallContext, Effect, Policy, Success, Tool, ToolError, Toolbox},
};
use schemars::JsonSchema;
use serde::Deserialize;

/// Answers with what it is told.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Echo {
    /// What to answer, for example "hello".
    #[schemars(length(min = 1, max = 200), extend("examples" = ["hello"]))]
    text: String,
}

struct Works;

impl Tool for Works {
    const NAME: &'static str = "works";
    type Args = Echo;
    type Output = String;

    fn policy(&self) -> Policy<Echo> {
        Policy::new(Effect::ReadOnly)
    }

    async fn call(&self, args: Echo, _: &CallContext) -> Result<Success<String>, ToolError> {
        Ok(args.text.into())
    }
}

/// Never answers.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

struct Panics;

impl Tool for Panics {
    const NAME: &'static str = "panics";
    type Args = Nothing;
    type Output = ();

    fn policy(&self) -> Policy<Nothing> {
        Policy::new(Effect::ReadOnly)
    }

    async fn call(&self, _: Nothing, _: &CallContext) -> Result<Success<()>, ToolError> {
        panic!("SECRET-1")
    }
}

struct Hangs;

impl Tool for Hangs {
    const NAME: &'static str = "hangs";
    type Args = Nothing;
    type Output = ();

    fn policy(&self) -> Policy<Nothing> {
        Policy::new(Effect::ReadOnly)
    }

    async fn call(&self, _: Nothing, _: &CallContext) -> Result<Success<()>, ToolError> {
        tracing::debug!("begun");
        pending().await
    }
}

/// Has no effect that could be known, and never answers.
struct HangsOnce;

impl Tool for HangsOnce {
    const NAME: &'static str = "hangs_once";
    type Args = Nothing;
    type Output = ();

    async fn call(&self, _: Nothing, _: &CallContext) -> Result<Success<()>, ToolError> {
        tracing::debug!("begun");
        pending().await
    }
}

/// Blocks its thread, which even a timeout cannot end.
struct Blocks;

impl Tool for Blocks {
    const NAME: &'static str = "blocks";
    type Args = Nothing;
    type Output = ();

    fn policy(&self) -> Policy<Nothing> {
        Policy::new(Effect::ReadOnly)
    }

    async fn call(&self, _: Nothing, _: &CallContext) -> Result<Success<()>, ToolError> {
        tracing::debug!("begun");
        loop {
            thread::park();
        }
    }
}

async fn build() -> Result<Handler, StartError> {
    let mut env = Env::process();
    let settings = Settings::read(&mut env);
    env.finish()?;
    let sdk = aws::sdk_config(settings.retry_mode).await;
    let toolbox = Toolbox::builder().tool(Works).tool(Panics).tool(Hangs).tool(HangsOnce).tool(Blocks).build()?;
    app::assemble(&settings, toolbox, &sdk, Box::new(stdout()))
}

fn main() -> ExitCode {
    runtime::main(build)
}
