//! The approver as a Lambda function; see `action_group::approver`.

use std::process::ExitCode;

use action_group::{approver::Approver, runtime};

fn main() -> ExitCode {
    runtime::main(Approver::build)
}
