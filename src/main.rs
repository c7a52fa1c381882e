//! The Lambda function. `cargo run` starts the local program instead (`src/bin/dev.rs`).

use std::process::ExitCode;

use action_group::runtime;

fn main() -> ExitCode {
    runtime::main(build)
}

// The assembly (settings, AWS clients, tools) comes here.
async fn build() -> Result<action_group::handler::Handler, runtime::StartError> {
    let mut env = action_group::settings::Env::process();
    action_group::settings::Settings::read(&mut env);
    env.finish()?;
    Ok(action_group::handler::Handler {})
}
