//! `dev chat`: the agent loop with a real model, at a terminal. Tools and tables are the demo's.

use std::{
    io::{IsTerminal, stdin},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use clap::Args;
use tokio::{sync::mpsc, time::Instant};

use super::{
    Trouble,
    account::{Tone, tell},
    approve::Approved,
    faults::Fault,
    invoke::from_milliseconds,
    schema, seed,
    stage::Stage,
    terminal::{account, hung_up, lines, plain, print, told},
};
use crate::{
    agent::{
        bedrock::Bedrock,
        report::Item,
        settings::LoopSettings,
        stop::Stop,
        store::ConversationTable,
        turn::{Agent, TurnContext, Wish},
    },
    aws::{self, RetryMode},
    call::Deadline,
    clock::Clock,
    env::Env,
    idempotency::{ApprovalError, Pending, Store, Verdict},
    runtime::asked_to_end,
    tool::Caller,
};

#[derive(Debug, Args)]
pub struct Chat {
    /// The model or the inference profile; without it `MODEL_ID` counts.
    #[arg(long, value_name = "ID")]
    pub model: Option<String>,
    /// Keep the embedded database in this file, the conversations among it.
    #[arg(long, value_name = "PATH")]
    pub db: Option<PathBuf>,
    /// Go on with this conversation, or begin it.
    #[arg(long, value_name = "ID", requires = "db")]
    pub conversation: Option<String>,
    /// The name in which you approve and refuse. It stands in the records.
    #[arg(long, value_name = "NAME", env = "USER", default_value = "terminal")]
    pub by: String,
    /// The time that one turn has, in milliseconds.
    #[arg(long = "deadline-ms", value_name = "N", default_value = "300000", value_parser = from_milliseconds)]
    pub deadline: Duration,
    /// Let the backend of TOOL misbehave N times, or always, as for `dev invoke`; may be given again.
    #[arg(long = "fault", value_name = "TOOL=KIND[*N]")]
    pub faults: Vec<Fault>,
}

/// What `--help` says after the options.
pub const HELP: &str = "\
Talks to a model on Bedrock, with the credentials and the region of the environment (AWS_PROFILE, AWS_REGION, …). Each line
of stdin is a message; the model's text is on stdout, all else on stderr. /resume goes on with a turn that has stopped.

A call that needs approval waits until you have decided: y, n, or Enter to leave it. The model cannot decide. With --db
another terminal can: `dev pending`, `dev approve`, `dev deny`; then /resume.

RUST_LOG=warn shows where credentials were looked for.

Ctrl-C ends the turn with its report, as do SIGTERM and the end of the terminal. SYSTEM_PROMPT, MAX_STEPS, MAX_TOKENS and
the other limits count as on Lambda. The model costs what Bedrock charges.

Examples:
  AWS_REGION=us-east-1 dev chat --model amazon.nova-lite-v1:0
  dev chat --model amazon.nova-lite-v1:0 --db shop.db --conversation monday
  dev chat --model amazon.nova-lite-v1:0 --fault get_order=throttle*2";

/// Talks until the end of stdin, or a signal.
pub async fn run(options: Chat) -> Result<ExitCode, Trouble> {
    let mut talk = Talk::begin(options).await?;
    talk.end_on_signal();
    while let Some(line) = talk.hear("> ").await {
        match line.trim() {
            "" => {}
            "/resume" => talk.turn(Wish::Resume).await?,
            message => talk.turn(Wish::Say(message.to_owned())).await?,
        }
    }
    Ok(if talk.agent.ending().has_begun() { ExitCode::from(130) } else { ExitCode::SUCCESS })
}

struct Talk {
    agent: Arc<Agent>,
    records: Store,
    lines: mpsc::UnboundedReceiver<String>,
    conversation: String,
    by: String,
    time: Duration,
    reserve: Duration,
    db: Option<PathBuf>,
    _stage: Stage, // the database ends with it
}

impl Talk {
    async fn begin(options: Chat) -> Result<Self, Trouble> {
        let settings = settings(options.model)?;
        let sdk = aws::sdk_config(RetryMode::Standard).await;
        if sdk.region().is_none_or(|region| region.as_ref().is_empty()) {
            return Err(Trouble(String::from("No AWS region is set. Set AWS_REGION, for example to us-east-1.")));
        }
        let stage = Stage::set(options.db.as_deref(), options.faults, false, None).await?;
        let pipeline = stage.handler.pipeline().clone();
        if let Some(fault) = ConversationTable::fault(settings.keep, pipeline.toolbox()) {
            return Err(Trouble(fault));
        }
        let client = stage.dynamodb();
        let records = Store::new(client.clone(), seed::IDEMPOTENCY, Clock::system());
        let table = ConversationTable::new(client, settings.conversations_table, Clock::system(), settings.keep);
        let model = Box::new(Bedrock::new(&sdk, settings.model).streaming());
        let agent = Agent::new(model, pipeline, table, settings.limits).with_system(settings.system);
        Ok(Self {
            agent: Arc::new(agent),
            records,
            lines: lines(),
            conversation: options.conversation.unwrap_or_else(|| format!("chat-{:016x}", rand::random::<u64>())),
            by: options.by,
            time: options.deadline,
            reserve: stage.reserve,
            db: options.db,
            _stage: stage,
        })
    }

    /// Ctrl-C, SIGTERM and the end of the terminal: a turn that only died would leave its lease.
    fn end_on_signal(&self) {
        let agent = Arc::clone(&self.agent);
        tokio::spawn(async move {
            tokio::select! {
                Ok(()) = tokio::signal::ctrl_c() => {}
                () = asked_to_end() => {}
                Some(()) = hung_up() => {}
            }
            agent.end();
        });
    }

    /// The next line. `None` at the end of stdin, and of the process.
    async fn hear(&mut self, prompt: &str) -> Option<String> {
        if stdin().is_terminal() {
            print(prompt);
        }
        tokio::select! {
            biased;
            () = self.agent.ending().begun() => None,
            line = self.lines.recv() => line,
        }
    }

    /// One turn, and those that follow from decisions on what waits.
    async fn turn(&mut self, wish: Wish) -> Result<(), Trouble> {
        let mut wish = wish;
        loop {
            let report = match self.agent.turn(&self.conversation, wish, self.around(), &mut told()).await {
                Ok(report) => report,
                Err(error) => {
                    tell(Tone::Bad, &format!("error: {error}"));
                    return Ok(());
                }
            };
            account(&report);
            if report.stop != Stop::AwaitingApproval || !self.decide(&report.waiting).await? {
                return Ok(());
            }
            wish = Wish::Resume;
        }
    }

    fn around(&self) -> TurnContext {
        let deadline = Deadline::new(Instant::now().checked_add(self.time), self.reserve, self.time);
        let driver = format!("`dev chat` in the process {}", std::process::id());
        TurnContext { request_id: String::new(), driver, trace_id: None, deadline, caller: Caller::default() }
    }

    /// Asks the person about each call that waits. True if all are decided.
    async fn decide(&mut self, waiting: &[Item]) -> Result<bool, Trouble> {
        // Of one without an id it could not be found out: to go on at once would ask again and again.
        let mut all = waiting.iter().all(|item| item.approval_id.is_some());
        for item in waiting {
            let Some(id) = item.approval_id.as_deref() else { continue };
            // What is shown is what the record holds: that, and nothing else, will run.
            match self.records.waiting(id).await {
                Ok(call) => all &= self.ask(&call).await?,
                Err(error @ ApprovalError::Undecided(_)) => return Err(Trouble(error.to_string())),
                // The loop looks at its record again.
                Err(_) => {
                    let text = format!(
                        "{} does not wait as it did: somebody has decided, or it waits anew.",
                        plain(&item.tool, 80)
                    );
                    tell(Tone::Quiet, &text);
                }
            }
        }
        Ok(all)
    }

    async fn ask(&mut self, call: &Pending) -> Result<bool, Trouble> {
        if stdin().is_terminal() {
            while self.lines.try_recv().is_ok() {} // nobody has decided before the question was put
        }
        let doubt = match Approved::of(call, &schema::toolbox()?).told() {
            told if told.is_empty() => told,
            told => format!(" ({told})"),
        };
        tell(Tone::Bad, &format!("{} {}{doubt}", call.tool, call.arguments));
        let verdict = match self.hear("Approve? y, n, or Enter to leave it: ").await.as_deref().map(str::trim) {
            Some("y" | "yes") => Verdict::Approve,
            Some("n" | "no") => Verdict::Deny,
            _ => {
                self.tell_how_to_decide(&call.id);
                return Ok(false);
            }
        };
        match self.records.decide_approval(&call.id, &self.by, verdict).await {
            Ok(_) => tell(Tone::Quiet, if verdict == Verdict::Approve { "Approved." } else { "Denied." }),
            Err(error) => tell(Tone::Bad, &error.to_string()),
        }
        Ok(true)
    }

    fn tell_how_to_decide(&self, id: &str) {
        let how = match &self.db {
            Some(db) => format!("It waits: dev approve {id} --by NAME --db {}, then /resume.", db.display()),
            None => String::from("It waits: /resume asks again."),
        };
        tell(Tone::Quiet, &format!("{how} Another message counts as \"not approved\"."));
    }
}

/// The settings of a loop, with the demo's table.
fn settings(model: Option<String>) -> Result<LoopSettings, Trouble> {
    let mut env = Env::from_lookup(move |name| match name {
        "MODEL_ID" => model.clone().map(Into::into).or_else(|| std::env::var_os(name)),
        "CONVERSATIONS_TABLE" => Some(seed::CONVERSATIONS.into()),
        other => std::env::var_os(other),
    });
    let settings = LoopSettings::read(&mut env);
    env.finish().map_err(|error| Trouble(error.to_string()))?;
    Ok(settings)
}
