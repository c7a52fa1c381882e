//! Puts the parts together: the one place where a function is assembled.
//!
//! `main.rs` runs [`build`]. The local program and programs with tools of their own call [`assemble`].

use std::{
    io::{Write, stdout},
    sync::Arc,
};

use aws_config::SdkConfig;

use crate::{
    aws,
    call::Pipeline,
    clock::Clock,
    door,
    env::Env,
    handler::{Handler, Terms},
    idempotency::Store,
    settings::Settings,
    start::StartError,
    telemetry::Telemetry,
    tool::Toolbox,
    tools,
};

/// The function of this deployment: settings from the environment, the tools of `src/tools`, metrics to stdout.
///
/// # Errors
///
/// Every fault of the settings at once; else every fault of the tools.
pub async fn build() -> Result<Handler, StartError> {
    let mut env = Env::process();
    let settings = Settings::read(&mut env);
    let own = tools::Settings::read(&mut env);
    env.finish()?;
    let sdk = aws::sdk_config(settings.retry_mode).await;
    let toolbox = tools::toolbox(tools::Backends::new(&own, &sdk))?;
    assemble(&settings, toolbox, &sdk, Box::new(stdout()))
}

/// A function of these tools. Metric lines go to `metrics`.
///
/// # Errors
///
/// All that some open door cannot say of a tool.
pub fn assemble(
    settings: &Settings,
    toolbox: Toolbox,
    sdk: &SdkConfig,
    metrics: Box<dyn Write + Send>,
) -> Result<Handler, StartError> {
    let faults = door::faults(&toolbox, &settings.doors);
    if !faults.is_empty() {
        return Err(StartError::Doors(faults.join("\n")));
    }
    let pipeline = pipeline(settings, toolbox, sdk, metrics);
    let terms = Terms {
        reserve: settings.reserve,
        default_budget: settings.default_budget,
        identity_header: settings.identity_header.clone(),
        limits: settings.limits,
        doors: settings.doors.clone(),
    };
    Ok(Handler::new(pipeline, terms))
}

/// What runs the calls of these tools, whoever asks for them: the doors, the agent's loop, the local program. So a policy goes
/// in here, by [`Pipeline::authorised_by`]. Metric lines go to `metrics`.
pub fn pipeline(settings: &Settings, toolbox: Toolbox, sdk: &SdkConfig, metrics: Box<dyn Write + Send>) -> Pipeline {
    let clock = Clock::system();
    let telemetry = Telemetry::new(&settings.metrics_namespace, &settings.service, clock.clone(), metrics);
    let store = Store::new(aws_sdk_dynamodb::Client::new(sdk), &settings.idempotency_table, clock);
    Pipeline::new(Arc::new(toolbox), store, Arc::new(telemetry))
}
