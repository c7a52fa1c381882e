//! Tools that do what a test says, and one call of them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use action_group::{
    call::{Arguments, Call, Pipeline, Room, Standing, Surroundings},
    clock::Clock,
    idempotency::{Store, Stored},
    outcome::{Changed, FailureKind, Outcome},
    telemetry::Origin,
    tool::{CallContext, Caller, Effect, Policy, Success, Tool, ToolError, Toolbox, Write},
};
use aws_sdk_dynamodb::{
    config::retry::RetryConfig,
    types::{AttributeValue, Put, ReturnValuesOnConditionCheckFailure::AllOld, TransactWriteItem, Update},
};
use serde_json::{Value, json};

use super::support::{self, Database, FaultyProxy, Network, pipeline, within};

/// What the next attempts of a scripted tool do, in turn; the last one is repeated.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Succeed,
    TellKey,
    Hang,
    Panic,
    Busy,
    NoAnswer,
    Internal,
    Reject,
    Write,
}

/// Do what the test says.
#[derive(serde::Deserialize, schemars::JsonSchema)]
pub struct Order {
    /// The thing to do it to.
    #[schemars(extend("examples" = ["A"]))]
    thing: String,
    /// How much.
    #[serde(default = "one", deserialize_with = "lucky")]
    #[allow(dead_code, reason = "it tells two calls with one key apart")]
    amount: u32,
}

pub fn lucky<'de, D: serde::Deserializer<'de>>(amount: D) -> Result<u32, D::Error> {
    match serde::Deserialize::deserialize(amount)? {
        13 => Err(serde::de::Error::custom("13 is no lucky amount")),
        amount => Ok(amount),
    }
}

pub fn one() -> u32 {
    1
}

/// A tool that counts its attempts and follows a script.
pub struct Scripted {
    pub effect: Effect,
    pub script: Vec<Step>,
    pub attempts: Arc<AtomicU32>,
    pub result: Value,
}

impl Scripted {
    pub fn alone(self) -> Toolbox {
        Toolbox::builder().tool(self).build().expect("a toolbox")
    }
}

impl Tool for Scripted {
    const NAME: &'static str = "scripted";
    type Args = Order;
    type Output = Value;

    fn policy(&self) -> Policy<Order> {
        Policy::new(self.effect).timeout(Duration::from_millis(200)).key(|order: &Order| json!([order.thing]))
    }

    async fn call(&self, _: Order, context: &CallContext) -> Result<Success<Value>, ToolError> {
        let attempt = self.attempts.fetch_add(1, Ordering::SeqCst) as usize;
        match self.script.get(attempt).or(self.script.last()) {
            Some(Step::Hang) => std::future::pending().await,
            // Past the hook, which may take longer to print a backtrace than the timeout above allows.
            Some(Step::Panic) => std::panic::resume_unwind(Box::new("secret")),
            Some(Step::Busy) => Err(ToolError::transient("The backend is busy.")),
            Some(Step::NoAnswer) => Err(ToolError::no_answer("The backend did not answer.")),
            Some(Step::Internal) => Err(ToolError::internal("secret")),
            Some(Step::Write) => {
                let write = Write::new(TransactWriteItem::builder().build());
                Ok(Success::with_writes(self.result.clone(), vec![write]))
            }
            Some(Step::Reject) => Err(ToolError::rejected("Not on a Sunday.")),
            Some(Step::TellKey) => Ok(json!(context.idempotency_key()).into()),
            Some(Step::Succeed) | None => Ok(self.result.clone().into()),
        }
    }
}

/// Withdraw from the one account of the test.
#[derive(serde::Deserialize, schemars::JsonSchema)]
pub struct Withdrawal {
    /// How much.
    amount: u32,
    /// Whether to look at the balance first.
    #[serde(default)]
    look: bool,
}

pub struct Withdraw {
    pub client: aws_sdk_dynamodb::Client,
}

impl Withdraw {
    pub fn on(database: &Database) -> Self {
        Self { client: database.client().clone() }
    }

    pub async fn balance(&self) -> String {
        let key = AttributeValue::S("account".into());
        let got = self.client.get_item().table_name(Database::RECORDS).key("pk", key).send().await.expect("an item");
        got.item.expect("the account")["balance"].as_n().expect("a number").clone()
    }
}

impl Tool for Withdraw {
    const NAME: &'static str = "withdraw";
    type Args = Withdrawal;
    type Output = Value;

    fn policy(&self) -> Policy<Withdrawal> {
        Policy::new(Effect::Atomic).key(|args: &Withdrawal| json!([args.amount]))
    }

    async fn call(&self, args: Withdrawal, _: &CallContext) -> Result<Success<Value>, ToolError> {
        if args.look && self.balance().await.parse::<u32>()? < args.amount {
            return Err(ToolError::rejected("Not enough is left."));
        }
        let amount = AttributeValue::N(args.amount.to_string());
        let update = Update::builder()
            .table_name(Database::RECORDS)
            .key("pk", AttributeValue::S("account".into()))
            .condition_expression("balance >= :amount")
            .update_expression("SET balance = balance - :amount")
            .expression_attribute_values(":amount", amount)
            .return_values_on_condition_check_failure(AllOld)
            .build()?;
        let write = Write::new(TransactWriteItem::builder().update(update).build()).or_else(|item| {
            let balance = item.and_then(|item| item["balance"].as_n().ok().cloned()).unwrap_or_default();
            ToolError::rejected(format!("Only {balance} is left."))
        });
        Ok(Success::with_writes(json!({"withdrawn": args.amount}), vec![write]))
    }
}

/// Does it, and cannot be told from one time to the next.
pub struct Unruly {
    pub effect: Effect,
    pub attempts: Arc<AtomicU32>,
}

impl Tool for Unruly {
    const NAME: &'static str = "unruly";
    type Args = Order;
    type Output = std::collections::BTreeMap<Vec<u8>, u8>;

    fn policy(&self) -> Policy<Order> {
        Policy::new(self.effect).key(|order: &Order| {
            assert_ne!(order.thing, "no key", "secret");
            json!([order.thing])
        })
    }

    async fn call(&self, _: Order, _: &CallContext) -> Result<Success<Self::Output>, ToolError> {
        self.attempts.fetch_add(1, Ordering::SeqCst);
        Ok([(vec![1], 1)].into_iter().collect::<Self::Output>().into())
    }
}

pub async fn unruly(effect: Effect) -> World {
    let (database, attempts) = (Database::start().await, Arc::<AtomicU32>::default());
    let tool = Unruly { effect, attempts: Arc::clone(&attempts) };
    let pipeline = pipeline(Toolbox::builder().tool(tool).build().expect("a toolbox"), database.store());
    World { database, pipeline, attempts }
}

pub struct World {
    pub database: Database,
    pub pipeline: Pipeline,
    pub attempts: Arc<AtomicU32>,
}

impl World {
    pub async fn of(effect: Effect, script: &[Step], result: Value) -> Self {
        let database = Database::start().await;
        let attempts = Arc::new(AtomicU32::new(0));
        let tool = Scripted { effect, script: script.to_vec(), attempts: Arc::clone(&attempts), result };
        let pipeline = pipeline(tool.alone(), database.store());
        Self { database, pipeline, attempts }
    }

    pub async fn account(balance: u32) -> Self {
        let database = Database::start().await;
        let put = Put::builder()
            .table_name(Database::RECORDS)
            .item("pk", AttributeValue::S("account".into()))
            .item("balance", AttributeValue::N(balance.to_string()))
            .build()
            .expect("a put");
        let item = TransactWriteItem::builder().put(put).build();
        database.client().transact_write_items().transact_items(item).send().await.expect("a balance");
        let toolbox = Toolbox::builder().tool(Withdraw::on(&database)).build().expect("a toolbox");
        let pipeline = pipeline(toolbox, database.store());
        Self { database, pipeline, attempts: Arc::default() }
    }

    pub async fn balance(&self) -> String {
        Withdraw::on(&self.database).balance().await
    }

    /// The same account, with a client behind this network that asks twice.
    pub async fn over(&self, network: &Network) -> Pipeline {
        let endpoint = network.proxy(&self.database.endpoint()).await.endpoint();
        let retrying = RetryConfig::standard().with_max_attempts(2).with_initial_backoff(Duration::from_millis(1));
        let config = support::client(&endpoint).config().to_builder().retry_config(retrying).build();
        let store = Store::new(aws_sdk_dynamodb::Client::from_conf(config), Database::RECORDS, Clock::system());
        pipeline(Toolbox::builder().tool(Withdraw::on(&self.database)).build().expect("a toolbox"), store)
    }

    /// The same account, with a client behind this proxy that asks once.
    pub fn through(&self, proxy: &FaultyProxy) -> Pipeline {
        let store = Store::new(support::client(&proxy.endpoint()), Database::RECORDS, Clock::system());
        pipeline(Toolbox::builder().tool(Withdraw::on(&self.database)).build().expect("a toolbox"), store)
    }

    pub async fn deposit(&self, amount: u32) {
        let update = self.database.client().update_item().table_name(Database::RECORDS);
        let update = update.key("pk", AttributeValue::S("account".into())).update_expression("ADD balance :amount");
        let update = update.expression_attribute_values(":amount", AttributeValue::N(amount.to_string()));
        update.send().await.expect("a deposit");
    }

    pub async fn call(&self, arguments: Value) -> Outcome {
        call(&self.pipeline, arguments).await
    }

    pub fn attempts(&self) -> u32 {
        self.attempts.load(Ordering::SeqCst)
    }
}

pub async fn call(pipeline: &Pipeline, arguments: Value) -> Outcome {
    call_by(pipeline, Caller::default(), arguments).await
}

pub async fn call_by(pipeline: &Pipeline, caller: Caller, arguments: Value) -> Outcome {
    support::call(pipeline, within(Duration::from_secs(3)), caller, arguments).await
}

/// How a withdrawal stands.
pub async fn recorded(pipeline: &Pipeline, arguments: Value) -> Standing {
    let (tool, deadline) = (Withdraw::NAME.to_owned(), within(Duration::from_secs(3)));
    let call = Call { tool, arguments: Arguments::from_json(arguments), ..Call::default() };
    let origin = Origin::default();
    pipeline.recorded(&call, &Surroundings { origin, deadline, limit: 100_000, room: Room::default() }).await
}

pub fn success(result: Value, replayed: bool) -> Outcome {
    Outcome::Success { result, replayed }
}

pub fn failed(outcome: &Outcome) -> (FailureKind, Changed, bool) {
    let failure = outcome.failure().unwrap_or_else(|| panic!("a failure, but it is {outcome:?}"));
    (failure.kind(), failure.changed(), failure.retryable())
}

pub const TIME: Duration = Duration::from_secs(2);

pub fn stored(text: &str) -> Stored {
    Stored::Json(text.into())
}
