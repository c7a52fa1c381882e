//! `dev invoke`: files in, one line of JSON for each out.

use std::{fs::File, io::Write, path::Path, process::ExitCode, sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    Trouble,
    account::{Tone, milliseconds, tell},
    cli::Invoke,
    input::{Input, read_all},
    stage::Stage,
};
use crate::{
    door::{self, DOORS, Event},
    handler::{FunctionError, Invocation},
};

/// Runs the files and says how it went.
pub async fn run(options: Invoke) -> Result<ExitCode, Trouble> {
    let inputs = read_all(&options.files)?;
    let metrics = options.metrics.as_deref().map(create).transpose()?;
    let stage = Arc::new(Stage::set(options.db.as_deref(), options.faults, metrics).await?);
    let all_answered = if options.concurrent {
        at_once(&stage, inputs, options.deadline).await?
    } else {
        one_by_one(&stage, inputs, options.deadline).await?
    };
    if let Some(path) = &options.effects {
        stage.effects()?.write(path)?;
    }
    Ok(if all_answered { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn create(path: &Path) -> Result<File, Trouble> {
    File::create(path).map_err(|error| Trouble(format!("The file {} cannot be written: {error}.", path.display())))
}

async fn one_by_one(stage: &Stage, inputs: Vec<Input>, deadline: Duration) -> Result<bool, Trouble> {
    let mut all_answered = true;
    for input in inputs {
        all_answered &= print(invoke(stage, input, deadline).await)?;
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
        all_answered &= print(answer.await.map_err(|error| Trouble(format!("The function itself broke: {error}.")))?)?;
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
    let client_context = client_context.and_then(|context| serde_json::from_slice(context).ok());
    serde_json::from_slice(payload)
        .ok()
        .and_then(|body| door::detect(&Event { body, client_context }, &DOORS.iter().collect::<Vec<_>>()).ok())
        .map_or_else(String::new, |door| format!(", through {}", door.name))
}

/// Prints the answer's line at once, so that it is there if a later invocation ends the process. True if it is one.
fn print(answer: Answer) -> Result<bool, Trouble> {
    let (line, answered) = match answer {
        Ok(answer) => (answer, true),
        Err(error) => (json!({"functionError": error}), false),
    };
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}")
        .and_then(|()| stdout.flush())
        .map_err(|error| Trouble(format!("The answer cannot be printed: {error}.")))?;
    Ok(answered)
}
