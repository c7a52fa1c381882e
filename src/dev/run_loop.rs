//! `dev run-loop`: the agent loop with a scripted model, and real tools.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::Args;
use futures_util::FutureExt;
use tokio::time::Instant;

use super::{
    Trouble,
    account::{Tone, tell},
    faults::Fault,
    invoke::from_milliseconds,
    kept::{Kept, unkept},
    output::{apart, check, print},
    script::Script,
    stage::Stage,
    transcript::Transcript,
};
use crate::{
    agent::{
        drive::{Conversations, Driver, Revision, SaveError},
        run::{AgentRun, Approvals},
        stop::Stop,
        tools::Tools,
        turn::DOOR,
    },
    call::Deadline,
    ending::Ending,
    runtime::asked_to_end,
    telemetry::Origin,
    tool::Caller,
};

#[derive(Debug, Args)]
pub struct RunLoop {
    /// The script; `-` is stdin.
    #[arg(value_name = "SCRIPT")]
    pub script: PathBuf,
    /// Keep the embedded database in this file, so that state outlives the process.
    #[arg(long, value_name = "PATH")]
    pub db: Option<PathBuf>,
    /// Keep the conversation in this file. If the file exists, the conversation goes on: the script's prompt is the next
    /// message, and a script without a prompt resumes the turn that was left.
    #[arg(long, value_name = "PATH")]
    pub state: Option<PathBuf>,
    /// Let calls that need approval pause the loop (exit code 0, `stop` is `awaiting_approval`). Else they are answered
    /// `approval_required`, and the loop goes on.
    #[arg(long)]
    pub pause: bool,
    /// The time that the loop has, in milliseconds.
    #[arg(long = "deadline-ms", value_name = "N", default_value = "20000", value_parser = from_milliseconds)]
    pub deadline: Duration,
    /// Let the backend of TOOL misbehave N times, or always, as for `dev invoke`; may be given again.
    #[arg(long = "fault", value_name = "TOOL=KIND[*N]")]
    pub faults: Vec<Fault>,
    /// At the end write the side effects that were really made to this file, as JSON.
    #[arg(long, value_name = "PATH")]
    pub effects: Option<PathBuf>,
    /// Write the metric lines (EMF) that Lambda would print on stdout to this file.
    #[arg(long, value_name = "PATH")]
    pub metrics: Option<PathBuf>,
}

/// What `--help` says after the options.
pub const HELP: &str = "\
A SCRIPT is a JSON object:
  prompt    what the person says
  replies   what the model answers, in turn: Converse responses (output, stopReason, usage), or failures, as
            {\"failure\": \"model\"}: throttled, unavailable, model, timeout, invalid, denied. The last one is repeated.
            A field that no Converse response has is told on stderr.
  limits    max_steps, max_tool_calls, max_consecutive_failures, max_identical_failures, max_tokens, max_output_tokens,
            max_result_bytes, and max_cost with prices (input, output, cache_read, cache_write, of a million tokens);
            each has a default
  system    the system prompt
  history   messages that were said before

Stdout holds one JSON object: stop, answer, requests (as they were sent), attempted (the calls that were run), usage, and
report, the whole hand-off. All else is on stderr.

Ctrl-C and SIGTERM end the loop with its report.

Exit code: 0 however the loop ended, 1 if the conversation could not be kept, 2 for bad usage, a bad script or
a file that cannot be written, which is found out before anything runs.

Examples:
  dev run-loop examples/loop/look-up.json
  dev run-loop --fault get_order=unavailable examples/loop/look-up.json
  dev run-loop --pause --db shop.db --state talk.json examples/loop/large-refund.json";

/// Runs the loop and prints how it went.
pub async fn run(options: RunLoop) -> Result<ExitCode, Trouble> {
    let script = Script::read(&options.script)?;
    look_at_files(&options)?;
    let conversations = Kept::open(options.state.as_deref())?;
    let (db, metrics) = (options.db.as_deref(), options.metrics.as_deref());
    let stage = Stage::set(db, options.faults.clone(), false, metrics).await?;
    let (run, revision) = conversation(&options, &script, &conversations, &stage).await?;
    let ending = ended_by_signal(&stage);
    let host = Instant::now().checked_add(options.deadline);
    let driver = Driver {
        model: &script.model(),
        pipeline: stage.handler.pipeline(),
        conversations: &conversations,
        ending: &ending,
        deadline: Deadline::new(host, stage.reserve, options.deadline),
        origin: Origin::new(DOOR, "local", None),
        caller: Caller::default(),
    };
    let mut transcript = Transcript::default();
    let end = driver.drive(&conversations.id, run, revision, &mut |happening| transcript.note(&happening)).await;
    // Whether they can be written or not, the report is given.
    let written = options.effects.as_ref().map_or(Ok(()), |path| stage.effects()?.write(path));
    let report = match end {
        Ok(end) => end.report,
        Err(error) => {
            let why = match (&error, &options.state) {
                (SaveError::Unavailable(source), Some(file)) => unkept(file, source),
                _ => error.to_string(),
            };
            tell(Tone::Bad, &format!("error: {why}"));
            return Ok(ExitCode::from(1));
        }
    };
    let tone = if report.stop == Stop::EndTurn { Tone::Good } else { Tone::Bad };
    tell(tone, &format!("stopped: {}\n{}", report.stop, report.text()));
    print(format_args!("{}\n", transcript.document(&report)))?;
    written.map(|()| ExitCode::SUCCESS)
}

/// Whether the files of the options can be what they are named for.
fn look_at_files(options: &RunLoop) -> Result<(), Trouble> {
    let [effects, metrics, state] = [&options.effects, &options.metrics, &options.state].map(Option::as_deref);
    let read = [Some(options.script.as_path()), options.db.as_deref()];
    apart(&[effects, metrics, state], read.into_iter().flatten())?;
    check([effects, metrics].into_iter().flatten())
}

/// The conversation that goes on, or a new one.
async fn conversation(
    options: &RunLoop,
    script: &Script,
    conversations: &Kept,
    stage: &Stage,
) -> Result<(AgentRun, Option<Revision>), Trouble> {
    let approvals = if options.pause { Approvals::Pause } else { Approvals::Answer };
    let (limits, tools) = (script.limits(), Tools::of(stage.handler.pipeline().toolbox()));
    let kept = conversations.load(&conversations.id).await.map_err(|error| Trouble(error.to_string()))?;
    let system = script.system.clone();
    let (mut run, revision) = if let Some((mut run, revision)) = kept {
        run.equip(limits, tools, system, approvals);
        run.resumed();
        (run, Some(revision))
    } else {
        let run = AgentRun::new(limits, tools).with_approvals(approvals).with_history(script.history.clone());
        (system.into_iter().fold(run, AgentRun::with_system), None)
    };
    match (&script.prompt, revision) {
        (Some(prompt), _) => run.ask(prompt),
        (None, Some(_)) => {}
        (None, None) => {
            let text =
                "The script has no prompt, and there is no conversation to go on with. Give it a prompt, or --state.";
            return Err(Trouble(String::from(text)));
        }
    }
    Ok((run, revision))
}

/// Ctrl-C and SIGTERM end the loop with its report.
fn ended_by_signal(stage: &Stage) -> Ending {
    let (ending, pipeline) = (Ending::new(), stage.handler.pipeline().clone());
    let begins = ending.clone();
    let mut asked = Box::pin(async move {
        tokio::select! {
            Ok(()) = tokio::signal::ctrl_c() => {}
            () = asked_to_end() => {}
        }
        begins.begin();
        pipeline.end();
    });
    // From the first look at it on, the signals are caught.
    if (&mut asked).now_or_never().is_none() {
        tokio::spawn(asked);
    }
    ending
}
