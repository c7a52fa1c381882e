//! `dev invoke`: files in, one line of JSON for each out.

use std::{path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use bytes::Bytes;
use clap::Args;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    Trouble,
    account::{Tone, milliseconds, tell},
    faults::Fault,
    input::{Input, read_all},
    output::{apart, check, print},
    stage::Stage,
};
use crate::{
    door::{self, DOORS, Event},
    payload,
    runtime::{FunctionError, Invocation},
};

#[derive(Debug, Args)]
pub struct Invoke {
    /// Events to run, in this order; `-` is stdin.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Keep the embedded database in this file, so that state outlives the process.
    #[arg(long, value_name = "PATH")]
    pub db: Option<PathBuf>,
    /// The time left when an invocation starts, in milliseconds.
    #[arg(long = "deadline-ms", value_name = "N", default_value = "10000", value_parser = from_milliseconds)]
    pub deadline: Duration,
    /// Start all files at once; the answers still come in the order of the files.
    #[arg(long)]
    pub concurrent: bool,
    /// Let the backend of TOOL misbehave N times, or always; may be given again.
    #[arg(long = "fault", value_name = "TOOL=KIND[*N]")]
    pub faults: Vec<Fault>,
    /// Let the demo mailer be asked what it has sent, so that a mail of unknown outcome is found out. SES cannot be asked.
    #[arg(long)]
    pub mail_log: bool,
    /// At the end write the side effects that were really made to this file, as JSON.
    #[arg(long, value_name = "PATH")]
    pub effects: Option<PathBuf>,
    /// Write the metric lines (EMF) that Lambda would print on stdout to this file.
    #[arg(long, value_name = "PATH")]
    pub metrics: Option<PathBuf>,
}

/// What `--help` says after the options.
pub const HELP: &str = "\
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
usage or a file that cannot be read or written, which is found out before anything runs.

Examples:
  dev invoke events/converse/get-order.json
  dev invoke --effects effects.json events/converse/refund-order.json events/converse/refund-order.json
  dev invoke --fault get_order=throttle*2 events/converse/get-order.json
  echo '{\"toolUse\": {\"toolUseId\": \"t1\", \"name\": \"get_order\", \"input\": {\"order_id\": \"ORD-12345\"}}}' | dev invoke -";

pub(super) fn from_milliseconds(text: &str) -> Result<Duration, &'static str> {
    text.parse().map(Duration::from_millis).map_err(|_| "give a whole number of milliseconds, such as 10000")
}

/// Runs the files and says how it went.
pub async fn run(options: Invoke) -> Result<ExitCode, Trouble> {
    let inputs = read_all(&options.files)?;
    let (db, effects, metrics) = (options.db.as_deref(), options.effects.as_deref(), options.metrics.as_deref());
    apart(&[effects, metrics], options.files.iter().map(PathBuf::as_path).chain(db))?;
    check([effects, metrics].into_iter().flatten())?;
    let stage = Arc::new(Stage::set(db, options.faults, options.mail_log, metrics).await?);
    let all_answered = if options.concurrent {
        at_once(&stage, inputs, options.deadline).await?
    } else {
        one_by_one(&stage, inputs, options.deadline).await?
    };
    if let Some(path) = effects {
        stage.effects()?.write(path)?;
    }
    Ok(if all_answered { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

async fn one_by_one(stage: &Stage, inputs: Vec<Input>, deadline: Duration) -> Result<bool, Trouble> {
    let mut all_answered = true;
    for input in inputs {
        all_answered &= show(invoke(stage, input, deadline).await)?;
    }
    Ok(all_answered)
}

/// Starts all, and prints in the order of the files.
async fn at_once(stage: &Arc<Stage>, inputs: Vec<Input>, deadline: Duration) -> Result<bool, Trouble> {
    let start = |input| {
        let stage = Arc::clone(stage);
        tokio::spawn(async move { invoke(&stage, input, deadline).await })
    };
    let running: Vec<_> = inputs.into_iter().map(start).collect();
    let mut all_answered = true;
    for answer in running {
        all_answered &= show(answer.await.map_err(|error| Trouble(format!("The function itself broke: {error}.")))?)?;
    }
    Ok(all_answered)
}

type Answer = Result<Value, FunctionError>;

async fn invoke(stage: &Stage, input: Input, deadline: Duration) -> Answer {
    let start = Instant::now();
    let Input { name, payload, client_context } = input;
    let door = door_of(&payload, client_context.as_ref());
    let invocation = Invocation {
        payload,
        client_context,
        request_id: format!("local-{:016x}", rand::random::<u64>()),
        trace_id: None,
        identity: None,
        tenant: None,
        deadline: start.checked_add(deadline), // none, if it is beyond all time
    };
    let answer = stage.handler.handle(invocation).await;
    let time = milliseconds(start.elapsed());
    match &answer {
        Ok(_) => tell(Tone::Good, &format!("{name}: answered in {time}{door}")),
        Err(error) => tell(Tone::Bad, &format!("{name}: function error in {time}{door}: {error}")),
    }
    answer
}

/// The door that the event comes through, for the account.
fn door_of(payload: &Bytes, client_context: Option<&Bytes>) -> String {
    let read = |bytes| payload::read(bytes).ok().map(|read| read.value); // within limits, as the function does
    let client_context = client_context.and_then(|context| read(context));
    read(payload)
        .and_then(|body| {
            door::detect(&Event { body, flawed: false, client_context }, &DOORS.iter().collect::<Vec<_>>()).ok()
        })
        .map_or_else(String::new, |door| format!(", through {}", door.name))
}

/// Prints the answer's line at once, so that it is there if a later invocation ends the process. True if it is one.
fn show(answer: Answer) -> Result<bool, Trouble> {
    let (line, answered) = match answer {
        Ok(answer) => (answer, true),
        Err(error) => (json!({"functionError": error}), false),
    };
    print(format_args!("{line}\n"))?;
    Ok(answered)
}
