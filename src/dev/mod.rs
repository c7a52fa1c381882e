//! The local program: the same function as on Lambda, on a machine without AWS.
//!
//! What is real here: the handler, the pipeline, the tools and the AWS SDK. What stands in: an embedded DynamoDB behind
//! a loopback port, a demo carrier and a demo mailer, which can be made to fail by `--fault`.
//!
//! | module | its one idea |
//! | --- | --- |
//! | `cli` | the commands; the options of each stand with what it does |
//! | `invoke` | `dev invoke`: files in, one line for each out |
//! | `input` | what a file given to `invoke` holds |
//! | `run_loop`, `script`, `kept`, `transcript` | `dev run-loop`: the agent loop with a scripted model |
//! | `beside`, `lock` | files beside one that is kept; one that a single process at a time may work on |
//! | `chat`, `terminal` | `dev chat`: a real model, and a person at the terminal |
//! | `approve` | the person's side of approval |
//! | `schema`, `serve` | `dev schema`, `dev dynamodb` |
//! | `stage` | the function with everything around it, ready to be called |
//! | [`database`] | the embedded DynamoDB |
//! | `tables` | its tables, in memory or in a file |
//! | `foreign` | whether a file is another program's database |
//! | `seed` | which tables there are, and the demo data |
//! | `backends` | the demo carrier and the demo mailer |
//! | `faults` | what `--fault` asks for, and how often each backend was called |
//! | `faulty` | a tool that misbehaves |
//! | `commits` | an HTTP client that sees the commits of atomic effects, and misbehaves after them |
//! | `effects` | the side effects that were really made |
//! | [`template`], `yaml` | the tool schemas in `template.yaml`; how values are written there |
//! | [`panels`], [`dashboard`], [`alarms`] | what is shown of each tool, and the templates in `infra/` |
//! | [`stacks`] | what those templates have in common |
//! | `account`, `output` | what stderr tells about each call; what stdout and the files of options get |
//!
//! All of it is behind the feature `dev`, which the Lambda build switches off.

use std::{io::Write, process::ExitCode};

use crate::{
    env::{self, Env},
    telemetry::{LogFormat, init_logs},
};

mod account;
pub mod alarms;
mod approve;
mod backends;
mod beside;
mod chat;
mod cli;
mod commits;
pub mod dashboard;
pub mod database;
mod effects;
mod faults;
mod faulty;
mod foreign;
mod input;
mod invoke;
mod kept;
mod lock;
mod output;
pub mod panels;
mod run_loop;
mod schema;
mod script;
mod seed;
mod serve;
pub mod stacks;
mod stage;
mod tables;
pub mod template;
mod terminal;
mod transcript;
mod yaml;

pub use self::database::{Embedded, sdk_config};

/// Why the program cannot do what it was asked for: a sentence or two for the person at the terminal. Exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Trouble(pub String);

/// Runs the program `dev` with the arguments of this process.
pub fn main() -> ExitCode {
    let command = cli::parse();
    start_logs();
    let threads = crate::runtime::threads(1); // as the function has
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&Trouble(format!("The asynchronous runtime does not start: {error}."))),
    };
    let code = runtime.block_on(cli::run(command)).unwrap_or_else(|trouble| failed(&trouble));
    runtime.shutdown_background(); // tools that hang on purpose would hold it up
    code
}

fn failed(trouble: &Trouble) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "error: {trouble}");
    ExitCode::from(2)
}

/// Logs go to stderr, because stdout is for answers. Without `RUST_LOG` only warnings are logged, and of the search for
/// credentials none: each place without any warns at length, before the one sentence that counts.
fn start_logs() {
    let mut env = Env::from_lookup(|name| match (name, std::env::var_os(name)) {
        ("RUST_LOG", None) => Some("warn,dynoxide=error,aws_config=error".into()),
        (_, value) => value,
    });
    init_logs(LogFormat::Text { ansi: account::colours() }, env::log_filter(&mut env));
}
