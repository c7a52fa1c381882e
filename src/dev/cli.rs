//! The commands of `dev`. The options of each stand beside what it does: `invoke`, `run_loop`, `chat`, `schema`, `serve`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use super::{
    Trouble, alarms,
    approve::{self, Decide, Pending},
    chat::{self, Chat},
    dashboard,
    invoke::{self, Invoke},
    run_loop::{self, RunLoop},
    schema::{self, Schema},
    serve::{self, Dynamodb},
};
use crate::idempotency::Verdict;

/// Try the function without AWS: the same code as on Lambda, against a DynamoDB inside this process.
#[derive(Debug, Parser)]
#[command(name = "dev", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  cargo run -- invoke events/converse/refund-order.json
  cargo run -- run-loop examples/loop/look-up.json
  cargo run -- schema converse
  cargo run -- dynamodb --port 8000";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run invocations and print one answer a line.
    #[command(after_help = invoke::HELP)]
    Invoke(Invoke),
    /// Run the agent loop with a scripted model and print how it went.
    #[command(after_help = run_loop::HELP)]
    RunLoop(RunLoop),
    /// Talk to a real model on Bedrock, which uses the demo tools.
    #[command(after_help = chat::HELP)]
    Chat(Chat),
    /// Print the tool definitions that a caller of DOOR wants.
    #[command(after_help = schema::HELP)]
    Schema(Schema),
    /// Print the CloudFormation template of a dashboard with every tool on it.
    #[command(after_help = dashboard::HELP)]
    Dashboard,
    /// Print the CloudFormation template of the alarms of every tool.
    #[command(after_help = alarms::HELP)]
    Alarms,
    /// List the calls that wait for a person's approval.
    #[command(after_help = "Example:\n  dev pending --db orders.db")]
    Pending(Pending),
    /// Approve a call that waits; the same call then runs, once.
    #[command(after_help = "Example:\n  dev approve ID --by ada --db orders.db")]
    Approve(Decide),
    /// Refuse a call that waits.
    #[command(after_help = "Example:\n  dev deny refund_order#4f1c --by ada --db orders.db")]
    Deny(Decide),
    /// Serve the embedded DynamoDB, with its tables made and filled, until Ctrl-C.
    #[command(after_help = "Examples:\n  dev dynamodb\n  dev dynamodb --port 8001 --db orders.db")]
    Dynamodb(Dynamodb),
}

/// The command of this process. Ends the process on bad usage (2) and after `--help` (0).
pub fn parse() -> Command {
    Cli::parse().command
}

/// Runs it.
pub async fn run(command: Command) -> Result<ExitCode, Trouble> {
    match command {
        Command::Invoke(options) => invoke::run(options).await,
        Command::RunLoop(options) => run_loop::run(options).await,
        Command::Chat(options) => chat::run(options).await,
        Command::Schema(options) => schema::run(&options),
        Command::Dashboard => dashboard::run(),
        Command::Alarms => alarms::run(),
        Command::Pending(options) => approve::pending(&options).await,
        Command::Approve(options) => approve::decide(&options, Verdict::Approve).await,
        Command::Deny(options) => approve::decide(&options, Verdict::Deny).await,
        Command::Dynamodb(options) => serve::run(&options).await,
    }
}

#[cfg(test)]
mod tests {
    use std::{path::PathBuf, time::Duration};

    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_options_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_lone_dash_is_a_file() {
        let cli = Cli::try_parse_from(["dev", "invoke", "-"]).expect("good usage");
        let Command::Invoke(options) = cli.command else { panic!("not invoke") };
        assert_eq!(options.files, [PathBuf::from("-")]);
        assert_eq!(options.deadline, Duration::from_secs(10));
    }

    #[test]
    fn no_file_an_unknown_kind_and_a_bad_deadline_are_bad_usage() {
        for arguments in [
            &["dev", "invoke"][..],
            &["dev", "invoke", "--fault", "get_order=explode", "x.json"],
            &["dev", "invoke", "--deadline-ms", "-1", "x.json"],
            &["dev"],
        ] {
            let error = Cli::try_parse_from(arguments).expect_err("bad usage");
            assert_eq!(error.exit_code(), 2, "{arguments:?}");
        }
    }

    #[test]
    fn a_number_that_is_none_is_told_what_would_be_one() {
        for (arguments, example) in [
            (&["dev", "invoke", "x.json", "--deadline-ms", "abc"][..], "10000"),
            (&["dev", "run-loop", "x.json", "--deadline-ms", "1.5"], "10000"),
            (&["dev", "chat", "--deadline-ms", "5s"], "10000"),
            (&["dev", "invoke", "x.json", "--fault", "get_order=retry-after:abc"], "retry-after:2"),
            (&["dev", "invoke", "x.json", "--fault", "get_order=hang*two"], "1 or more"),
            (&["dev", "dynamodb", "--port", "abc"], "8000"),
            (&["dev", "dynamodb", "--port", "65536"], "8000"),
        ] {
            let said = Cli::try_parse_from(arguments).expect_err("bad usage").to_string();
            assert!(said.contains(example) && !said.contains("invalid digit"), "{arguments:?}: {said}");
        }
    }

    #[test]
    fn the_version_is_that_of_the_package() {
        let version = Cli::try_parse_from(["dev", "--version"]).expect_err("it ends there");
        assert_eq!((version.exit_code(), version.to_string()), (0, format!("dev {}\n", env!("CARGO_PKG_VERSION"))));
    }
}
