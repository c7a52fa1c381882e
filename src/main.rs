//! The Lambda function. `cargo run` starts the local program instead (`src/bin/dev.rs`).

use std::process::ExitCode;

fn main() -> ExitCode {
    action_group::runtime::main(action_group::app::build)
}
