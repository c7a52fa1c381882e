//! A driver with the real pipeline, and a model that gives its replies in turn.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use action_group::{
    agent::{
        conversation::Block,
        drive::{Conversations, Driven, Driver, Happening, Heard, Model},
        limits::Limits,
        memory::InMemory,
        model::{ModelFailure, ModelReply, ModelRequest},
        run::AgentRun,
        tools::Tools,
    },
    authorise::Decision,
    call::{Deadline, Pipeline},
    clock::Clock,
    ending::Ending,
    idempotency::Store,
    telemetry::{Origin, Telemetry},
    tool::{Caller, Definition, Toolbox},
};
use futures_util::{FutureExt, future::BoxFuture};
use serde_json::{Value, json};

use crate::{
    legal,
    machine::wide,
    support::{Lines, Scripted},
    toolbox::{Log, toolbox},
};

/// A model that gives these replies in turn and then never answers.
pub struct Replies {
    given: Vec<ModelReply>,
    asked: AtomicUsize,
    requests: Mutex<Vec<ModelRequest>>,
    /// What is heard of the answer that never comes to its end.
    stammers: &'static str,
    /// The bytes of it that nobody is shown.
    hides: usize,
    /// How it ends then.
    fails: Option<ModelFailure>,
    /// The attempts of each request, and which of them were throttled.
    tried: Vec<bool>,
}

impl Replies {
    pub fn new(replies: impl IntoIterator<Item = ModelReply>) -> Self {
        let given = replies.into_iter().collect();
        Self {
            given,
            asked: AtomicUsize::new(0),
            requests: Mutex::default(),
            stammers: "",
            hides: 0,
            fails: None,
            tried: Vec::new(),
        }
    }

    pub fn failing(self, failure: ModelFailure) -> Self {
        Self { fails: Some(failure), ..self }
    }

    pub fn tried<const N: usize>(self, throttled: [bool; N]) -> Self {
        Self { tried: throttled.into(), ..self }
    }

    pub fn stammering(self, stammers: &'static str) -> Self {
        Self { stammers, ..self }
    }

    pub fn hiding(self, hides: usize) -> Self {
        Self { hides, ..self }
    }

    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// The texts of the results in the last request, in order.
    pub fn results(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        let last = requests.last().and_then(|request| request.messages.last()).expect("a message");
        let result = |block: &Block| match block {
            Block::ToolResult(result) => Some(json!(result).to_string()),
            _ => None,
        };
        last.content.iter().filter_map(result).collect()
    }
}

impl Model for Replies {
    fn converse<'a>(
        &'a self,
        request: &'a ModelRequest,
        _: Duration,
        heard: &'a mut (dyn FnMut(Heard<'_>) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelFailure>> {
        assert_eq!(legal::history::faults(&json!(request)), [""; 0], "{}", json!(request));
        self.requests.lock().unwrap().push(request.clone());
        let reply = self.given.get(self.asked.fetch_add(1, Ordering::SeqCst)).cloned();
        async move {
            for (number, throttled) in (1..).zip(self.tried.iter().copied()) {
                heard(Heard::Attempt { number, throttled });
            }
            if let Some(reply) = reply {
                heard(Heard::Text(&reply.message.text()));
                return Ok(reply);
            }
            heard(Heard::Hidden(self.hides));
            heard(Heard::Text(self.stammers));
            match self.fails.clone() {
                Some(failure) => Err(failure),
                None => std::future::pending().await,
            }
        }
        .boxed()
    }
}

pub struct World {
    pub toolbox: Arc<Toolbox>,
    pub log: Log,
    pub pipeline: Pipeline,
    pub conversations: InMemory,
    pub ending: Ending,
    /// The metric lines.
    pub lines: Lines,
    pub time: Duration,
}

impl World {
    pub fn on(store: Store) -> Self {
        let (toolbox, log) = toolbox();
        let lines = Lines::default();
        let telemetry = Arc::new(Telemetry::new("N", "s", Clock::system(), Box::new(lines.clone())));
        let pipeline = Pipeline::new(Arc::clone(&toolbox), store, telemetry);
        let (conversations, ending) = (InMemory::default(), Ending::new());
        Self { toolbox, log, pipeline, conversations, ending, lines, time: Duration::from_mins(1) }
    }

    /// Without a socket, for a stopped clock.
    pub fn stopped() -> Self {
        let clock = Clock::following_tokio(action_group::clock::Timestamp::from_secs(1_000_000));
        Self::on(Store::new(Scripted::default().client(), "records", clock))
    }

    /// The same world with other tools.
    pub fn deploy(&mut self, toolbox: Arc<Toolbox>) {
        let telemetry = Arc::new(Telemetry::new("N", "s", Clock::system(), Box::new(std::io::sink())));
        let clock = Clock::following_tokio(action_group::clock::Timestamp::from_secs(1_000_000));
        let store = Store::new(Scripted::default().client(), "records", clock);
        self.pipeline = Pipeline::new(Arc::clone(&toolbox), store, telemetry);
        self.toolbox = toolbox;
    }

    /// From now on with a policy that cannot decide so often, and allows all that follows.
    pub fn unsure(&mut self, times: usize) -> Arc<AtomicUsize> {
        let left = Arc::new(AtomicUsize::new(times));
        let counts = Arc::clone(&left);
        let policy = move |_: &Definition, _: &Value, _: &Caller| {
            let was = counts.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            if was.is_ok() { Decision::Unavailable } else { Decision::Allow }
        };
        self.pipeline = self.pipeline.clone().authorised_by(policy);
        left
    }

    pub fn run(&self, limits: Limits) -> AgentRun {
        let mut run = AgentRun::new(limits, Tools::of(&self.toolbox));
        run.ask("Please help.");
        run
    }

    pub fn driver<'a>(&'a self, model: &'a Replies) -> Driver<'a> {
        Driver {
            model,
            pipeline: &self.pipeline,
            conversations: &self.conversations,
            ending: &self.ending,
            deadline: Deadline::new(None, Duration::from_millis(500), self.time),
            origin: Origin { door: "agent", ..Origin::default() },
            caller: Caller::default(),
        }
    }

    pub async fn drive(&self, model: &Replies) -> Driven {
        self.driver(model).drive("c", self.run(wide()), None, &mut |_| {}).await.expect("it is saved")
    }

    /// Drives it, and dies as soon as it has been told this.
    pub async fn killed_at(&self, model: &Replies, is_the_moment: impl Fn(&Happening<'_>) -> bool + Send + Sync) {
        let mut watch = |happening: Happening<'_>| assert!(!is_the_moment(&happening), "killed");
        let (driver, run) = (self.driver(model), self.run(wide()));
        let driving = driver.drive("c", run, None, &mut watch);
        assert!(std::panic::AssertUnwindSafe(driving).catch_unwind().await.is_err(), "it was not killed");
    }

    /// The person writes, instead of deciding or resuming.
    pub async fn say(&self, text: &str, model: &Replies) -> Driven {
        let (mut run, revision) = self.conversations.load("c").await.expect("it is there").expect("a conversation");
        run.resumed();
        run.ask(text);
        self.driver(model).drive("c", run, Some(revision), &mut |_| {}).await.expect("it is saved")
    }

    pub async fn resume(&self, model: &Replies) -> Driven {
        let (mut run, revision) = self.conversations.load("c").await.expect("it is there").expect("a conversation");
        run.resumed();
        self.driver(model).drive("c", run, Some(revision), &mut |_| {}).await.expect("it is saved")
    }

    pub fn did(&self, tool: &str) -> usize {
        self.log.lock().unwrap().iter().filter(|(name, ..)| *name == tool).count()
    }
}
