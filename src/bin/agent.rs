//! The agent's loop as a Lambda function; see `action_group::agent::function`.

use std::process::ExitCode;

use action_group::{agent::function::AgentFunction, runtime};

fn main() -> ExitCode {
    runtime::main(AgentFunction::build)
}
