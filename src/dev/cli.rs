//! The commands of `dev` and their options.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::{Args, Parser, Subcommand};

use super::{Trouble, approve, faults::Fault, invoke, schema, serve};
use crate::idempotency::Verdict;

/// Try the function without AWS: the same code as on Lambda, against a DynamoDB inside this process.
#[derive(Debug, Parser)]
#[command(name = "dev", disable_help_subcommand = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  cargo run -- invoke events/converse/refund-order.json
  cargo run -- schema converse
  cargo run -- dynamodb --port 8000";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run invocations and print one answer a line.
    #[command(after_help = INVOKE_HELP)]
    Invoke(Invoke),
    /// Print the tool definitions that a caller of DOOR wants.
    #[command(after_help = "Examples:\n  dev schema converse\n  dev schema agent-openapi > openapi.json")]
    Schema(Schema),
    /// List the calls that wait for a person's approval.
    #[command(after_help = "Example:\n  dev pending --db orders.db")]
    Pending(Pending),
    /// Approve a call that waits; the same call then runs, once.
    #[command(after_help = "Example:\n  dev approve refund_order#4f1c --by ada --db orders.db")]
    Approve(Decide),
    /// Refuse a call that waits.
    #[command(after_help = "Example:\n  dev deny refund_order#4f1c --by ada --db orders.db")]
    Deny(Decide),
    /// Serve the embedded DynamoDB, with its tables made and filled, until Ctrl-C.
    #[command(after_help = "Examples:\n  dev dynamodb\n  dev dynamodb --port 8001 --db orders.db")]
    Dynamodb(Dynamodb),
}

#[derive(Debug, Args)]
pub struct Invoke {
    /// Events to run, in this order; `-` is stdin.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Keep the embedded database in this file, so that state outlives the process.
    #[arg(long, value_name = "PATH")]
    pub db: Option<PathBuf>,
    /// The time left when an invocation starts, in milliseconds.
    #[arg(long = "deadline-ms", value_name = "N", default_value = "10000", value_parser = milliseconds)]
    pub deadline: Duration,
    /// Start all files at once; the answers still come in the order of the files.
    #[arg(long)]
    pub concurrent: bool,
    /// Let the backend of TOOL misbehave N times, or always; may be given again.
    #[arg(long = "fault", value_name = "TOOL=KIND[*N]")]
    pub faults: Vec<Fault>,
    /// At the end write the side effects that were really made to this file, as JSON.
    #[arg(long, value_name = "PATH")]
    pub effects: Option<PathBuf>,
    /// Write the metric lines (EMF) that Lambda would print on stdout to this file.
    #[arg(long, value_name = "PATH")]
    pub metrics: Option<PathBuf>,
}

const INVOKE_HELP: &str = "\
A FILE holds an event (any JSON), or an invocation: an object with exactly the keys \"event\" and \"clientContext\".
The bytes of a FILE whose name ends in .raw are the payload as they are.

Stdout holds one line of JSON for each FILE: the function's answer, or {\"functionError\": …}. All else is on stderr.

Kinds of fault:
  throttle             the backend says that it is too busy; nothing is done
  retry-after:SECONDS  the same, with the time after which to try again
  unavailable          the backend is not available; nothing is done
  reset                the connection is reset before anything is sent
  hang                 the backend never answers, and does nothing
  hang-after-effect    the effect is made, and the answer never comes
  kill-after-effect    this process ends hard, right after the effect
  panic                the tool panics
  leak                 the tool fails with an internal error that holds secrets
  huge                 the result has 2 MB; the effect is made

Exit code: 0 if each invocation was answered (a tool's error is an answer), 1 if any was a function error, 2 for bad
usage or a file that cannot be read.

Examples:
  dev invoke events/converse/get-order.json
  dev invoke --effects effects.json events/converse/refund-order.json events/converse/refund-order.json
  dev invoke --fault get_order=throttle*2 events/converse/get-order.json
  echo '{\"toolUse\": {\"toolUseId\": \"t1\", \"name\": \"get_order\", \"input\": {\"order_id\": \"ORD-12345\"}}}' | dev invoke -";

#[derive(Debug, Args)]
pub struct Schema {
    /// The door, for example converse, agent-function, agent-openapi or gateway.
    #[arg(value_name = "DOOR")]
    pub door: String,
}

#[derive(Debug, Args)]
pub struct Pending {
    /// The file that `dev invoke --db` keeps the database in.
    #[arg(long, value_name = "PATH")]
    pub db: PathBuf,
}

#[derive(Debug, Args)]
pub struct Decide {
    /// The key that `dev pending` shows, or as much of its beginning as tells it apart.
    #[arg(value_name = "KEY")]
    pub key: String,
    /// Who decides. It stands in the record.
    #[arg(long, value_name = "NAME")]
    pub by: String,
    /// The file that `dev invoke --db` keeps the database in.
    #[arg(long, value_name = "PATH")]
    pub db: PathBuf,
}

#[derive(Debug, Args)]
pub struct Dynamodb {
    /// The port on 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 8000)]
    pub port: u16,
    /// Keep the database in this file. Without it, all is gone at the end.
    #[arg(long, value_name = "PATH")]
    pub db: Option<PathBuf>,
}

fn milliseconds(text: &str) -> Result<Duration, std::num::ParseIntError> {
    text.parse().map(Duration::from_millis)
}

/// The command of this process. Ends the process on bad usage (2) and after `--help` (0).
pub fn parse() -> Command {
    Cli::parse().command
}

/// Runs it.
pub async fn run(command: Command) -> Result<ExitCode, Trouble> {
    match command {
        Command::Invoke(options) => invoke::run(options).await,
        Command::Schema(options) => schema::run(&options),
        Command::Pending(options) => approve::pending(&options).await,
        Command::Approve(options) => approve::decide(&options, Verdict::Approve).await,
        Command::Deny(options) => approve::decide(&options, Verdict::Deny).await,
        Command::Dynamodb(options) => serve::run(&options).await,
    }
}

#[cfg(test)]
mod tests {
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
}
