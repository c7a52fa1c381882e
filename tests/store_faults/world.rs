//! A tool of each effect, behind a DynamoDB that misbehaves when it is told to.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use action_group::{
    call::Deadline,
    clock::Clock,
    idempotency::Store,
    outcome::{Changed, FailureKind, Outcome},
    tool::{CallContext, Caller, Effect, Policy, Reconciled, Success, Tool, ToolError, Toolbox, Write},
};
use aws_sdk_dynamodb::{
    Client,
    config::{BehaviorVersion, Credentials, Region, retry::RetryConfig},
    types::{AttributeValue, Put, TransactWriteItem},
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::{self, Database, FaultyProxy};

/// Do it.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// What comes of an attempt.
#[derive(Clone)]
pub enum Way {
    Done,
    /// Done, and an earlier call's outcome is found out: it has done it.
    Found,
    Busy,
    /// Begun, which the first is told, and refused after the second.
    Refused(Arc<[Notify; 2]>),
}

/// Has its effect, or not.
struct Acts {
    effect: Effect,
    done: Arc<AtomicU32>,
    /// How often it was asked what became of the effect.
    asked: Arc<AtomicU32>,
    way: Way,
}

impl Tool for Acts {
    const NAME: &'static str = "acts";
    type Args = Nothing;
    type Output = Value;

    fn policy(&self) -> Policy<Nothing> {
        Policy::new(self.effect)
            .when_nothing_changed("Nothing was done.")
            .when_unknown("It is not known whether it was done.")
    }

    async fn call(&self, _: Nothing, _: &CallContext) -> Result<Success<Value>, ToolError> {
        match &self.way {
            Way::Done | Way::Found => {}
            Way::Busy => return Err(ToolError::transient("The backend is busy.")),
            Way::Refused(moments) => {
                moments[0].notify_one();
                moments[1].notified().await;
                return Err(ToolError::rejected("The backend refuses it."));
            }
        }
        let writes = if self.effect == Effect::Atomic {
            let put =
                Put::builder().table_name(Database::RECORDS).item("pk", AttributeValue::S("effect".into())).build()?;
            vec![Write::new(TransactWriteItem::builder().put(put).build())]
        } else {
            self.done.fetch_add(1, Ordering::SeqCst);
            Vec::new()
        };
        Ok(Success::with_writes(json!({"n": 1}), writes))
    }

    async fn reconcile(&self, _: Nothing, _: &CallContext) -> Result<Reconciled<Value>, ToolError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Ok(if matches!(self.way, Way::Found) { Reconciled::Done(json!({"n": 1})) } else { Reconciled::Unknown })
    }
}

pub struct World {
    database: Database,
    pub proxy: FaultyProxy,
    done: Arc<AtomicU32>,
    /// How often the tool was asked what became of its effect.
    pub asked: Arc<AtomicU32>,
    pub effect: Effect,
}

impl World {
    pub async fn of(effect: Effect) -> Self {
        let database = Database::start().await;
        let proxy = FaultyProxy::start(&database.endpoint()).await;
        Self { database, proxy, done: Arc::default(), asked: Arc::default(), effect }
    }

    pub async fn call(&self) -> Outcome {
        self.attempt(Way::Done, Duration::ZERO).await
    }

    /// A call while the tool's backend is busy.
    pub async fn call_in_vain(&self) -> Outcome {
        self.attempt(Way::Busy, Duration::ZERO).await
    }

    /// One call, by a clock that is so much ahead. It always ends before the host's deadline.
    pub async fn attempt(&self, way: Way, ahead: Duration) -> Outcome {
        self.attempt_with(way, ahead, Duration::from_millis(1)).await
    }

    /// The same with a client that waits so long between its attempts.
    pub async fn attempt_with(&self, way: Way, ahead: Duration, backoff: Duration) -> Outcome {
        let (done, asked) = (Arc::clone(&self.done), Arc::clone(&self.asked));
        let tool = Acts { effect: self.effect, done, asked, way };
        let toolbox = Toolbox::builder().tool(tool).build().expect("a toolbox");
        let clock = Clock::following_tokio(Clock::system().now().plus(ahead));
        let store = Store::new(retrying_client(&self.proxy.endpoint(), backoff), Database::RECORDS, clock);
        let deadline = Deadline::new(None, Duration::from_secs(1), Duration::from_secs(3));
        let pipeline = support::pipeline(toolbox, store);
        let outcome = support::call(&pipeline, deadline, Caller::default(), json!({})).await;
        assert!(!deadline.headroom().is_zero(), "too late");
        outcome
    }

    pub async fn effects(&self) -> u32 {
        let key = AttributeValue::S("effect".into());
        let got = self.database.client().get_item().table_name(Database::RECORDS).key("pk", key).send().await;
        self.done.load(Ordering::SeqCst) + u32::from(got.expect("an answer").item.is_some())
    }
}

/// A client that retries as the function's does, with waits of its own.
fn retrying_client(endpoint: &str, backoff: Duration) -> Client {
    let retries = RetryConfig::standard().with_max_attempts(3).with_initial_backoff(backoff).with_max_backoff(backoff);
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .endpoint_url(endpoint)
        .region(Region::from_static("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .retry_config(retries)
        .http_client(aws_smithy_http_client::Builder::new().build_http());
    Client::from_conf(config.build())
}

pub fn told(outcome: &Outcome) -> (FailureKind, Changed, String) {
    let failure = outcome.failure().unwrap_or_else(|| panic!("a failure, but it is {outcome:?}"));
    (failure.kind(), failure.changed(), failure.message())
}

pub fn success(replayed: bool) -> Outcome {
    Outcome::Success { result: json!({"n": 1}), replayed }
}
