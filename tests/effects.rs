//! At most once, and never guessed: each promise about side effects, through the pipeline and the real AWS SDK, on the
//! embedded DynamoDB.
#![cfg(feature = "dev")]

mod support;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use action_group::{
    call::Pipeline,
    clock::Clock,
    idempotency::{Acquired, Claim, Decision, Guard, Key, Settled, Store, Stored, decide},
    outcome::{Changed, FailureKind, Outcome},
    tool::{CallContext, Caller, Effect, Policy, Success, Tool, ToolError, Toolbox, Write},
};
use aws_sdk_dynamodb::{
    config::retry::RetryConfig,
    types::{AttributeValue, Put, ReturnValuesOnConditionCheckFailure::AllOld, TransactWriteItem, Update},
};
use serde_json::{Value, json};
use support::{Break, Database, FaultyProxy, Network, client, pipeline, within};

/// What the next attempts of a scripted tool do, in turn; the last one is repeated.
#[derive(Clone, Copy, Debug)]
enum Step {
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
struct Order {
    /// The thing to do it to.
    #[schemars(extend("examples" = ["A"]))]
    thing: String,
    /// How much.
    #[serde(default = "one", deserialize_with = "lucky")]
    #[allow(dead_code, reason = "it tells two calls with one key apart")]
    amount: u32,
}

fn lucky<'de, D: serde::Deserializer<'de>>(amount: D) -> Result<u32, D::Error> {
    match serde::Deserialize::deserialize(amount)? {
        13 => Err(serde::de::Error::custom("13 is no lucky amount")),
        amount => Ok(amount),
    }
}

fn one() -> u32 {
    1
}

/// A tool that counts its attempts and follows a script.
struct Scripted {
    effect: Effect,
    script: Vec<Step>,
    attempts: Arc<AtomicU32>,
    result: Value,
}

impl Scripted {
    fn alone(self) -> Toolbox {
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
struct Withdrawal {
    /// How much.
    amount: u32,
    /// Whether to look at the balance first.
    #[serde(default)]
    look: bool,
}

struct Withdraw {
    client: aws_sdk_dynamodb::Client,
}

impl Withdraw {
    fn on(database: &Database) -> Self {
        Self { client: database.client().clone() }
    }

    async fn balance(&self) -> String {
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
        Policy::new(Effect::Atomic)
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
struct Unruly {
    effect: Effect,
    attempts: Arc<AtomicU32>,
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

async fn unruly(effect: Effect) -> World {
    let (database, attempts) = (Database::start().await, Arc::<AtomicU32>::default());
    let tool = Unruly { effect, attempts: Arc::clone(&attempts) };
    let pipeline = pipeline(Toolbox::builder().tool(tool).build().expect("a toolbox"), database.store());
    World { database, pipeline, attempts }
}

struct World {
    database: Database,
    pipeline: Pipeline,
    attempts: Arc<AtomicU32>,
}

impl World {
    async fn of(effect: Effect, script: &[Step], result: Value) -> Self {
        let database = Database::start().await;
        let attempts = Arc::new(AtomicU32::new(0));
        let tool = Scripted { effect, script: script.to_vec(), attempts: Arc::clone(&attempts), result };
        let pipeline = pipeline(tool.alone(), database.store());
        Self { database, pipeline, attempts }
    }

    async fn account(balance: u32) -> Self {
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

    async fn balance(&self) -> String {
        Withdraw::on(&self.database).balance().await
    }

    /// The same account, with a client behind this network that asks twice.
    async fn over(&self, network: &Network) -> Pipeline {
        let endpoint = network.proxy(&self.database.endpoint()).await.endpoint();
        let retrying = RetryConfig::standard().with_max_attempts(2).with_initial_backoff(Duration::from_millis(1));
        let config = support::client(&endpoint).config().to_builder().retry_config(retrying).build();
        let store = Store::new(aws_sdk_dynamodb::Client::from_conf(config), Database::RECORDS, Clock::system());
        pipeline(Toolbox::builder().tool(Withdraw::on(&self.database)).build().expect("a toolbox"), store)
    }

    async fn call(&self, arguments: Value) -> Outcome {
        call(&self.pipeline, arguments).await
    }

    fn attempts(&self) -> u32 {
        self.attempts.load(Ordering::SeqCst)
    }
}

async fn call(pipeline: &Pipeline, arguments: Value) -> Outcome {
    call_by(pipeline, Caller::default(), arguments).await
}

async fn call_by(pipeline: &Pipeline, caller: Caller, arguments: Value) -> Outcome {
    support::call(pipeline, within(Duration::from_secs(3)), caller, arguments).await
}

fn success(result: Value, replayed: bool) -> Outcome {
    Outcome::Success { result, replayed }
}

fn failed(outcome: &Outcome) -> (FailureKind, Changed, bool) {
    let failure = outcome.failure().unwrap_or_else(|| panic!("a failure, but it is {outcome:?}"));
    (failure.kind(), failure.changed(), failure.retryable())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_equal_call_gets_the_stored_result_whatever_its_value_and_runs_nothing() {
    for result in [json!({"a": 1}), json!(null), json!(false), json!(0), json!(""), json!([]), json!({})] {
        let world = World::of(Effect::Once, &[Step::Succeed], result.clone()).await;
        assert_eq!(world.call(json!({"thing": "A", "amount": 2})).await, success(result.clone(), false));
        assert_eq!(world.call(json!({"amount": 2, "thing": "A"})).await, success(result, true));
        assert_eq!(world.attempts(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_key_is_another_action_and_other_arguments_under_one_key_are_refused() {
    let world = World::of(Effect::Once, &[Step::Succeed], json!(1)).await;
    assert_eq!(world.call(json!({"thing": "A"})).await, success(json!(1), false));
    assert_eq!(world.call(json!({"thing": "B"})).await, success(json!(1), false));
    let reused = world.call(json!({"thing": "A", "amount": 2})).await;
    assert_eq!(failed(&reused), (FailureKind::KeyReused, Changed::Nothing, false));
    assert_eq!(world.attempts(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_must_happen_once_is_never_run_again_after_an_end_that_leaves_it_open() {
    for step in [Step::Hang, Step::Panic, Step::NoAnswer, Step::Internal] {
        let world = World::of(Effect::Once, &[step, Step::Succeed], json!(1)).await;
        for _ in 0..2 {
            let outcome = world.call(json!({"thing": "A"})).await;
            assert_eq!(failed(&outcome), (FailureKind::OutcomeUnknown, Changed::Unknown, false), "{step:?}");
            assert!(!format!("{outcome:?}").contains("secret"));
        }
        assert_eq!(world.attempts(), 1, "{step:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keyed_effect_is_run_again_with_the_same_key() {
    let world = World::of(Effect::Keyed, &[Step::Hang, Step::Panic, Step::TellKey], json!(null)).await;
    let unknown = world.call(json!({"thing": "A"})).await;
    assert_eq!(failed(&unknown), (FailureKind::OutcomeUnknown, Changed::Unknown, true));
    let Outcome::Success { result: key, replayed: false } = world.call(json!({"thing": "A"})).await else {
        panic!("the next call takes over")
    };
    assert_eq!(key.as_str().map(str::len), Some(64));
    let other = World::of(Effect::Keyed, &[Step::TellKey], json!(null)).await;
    assert_eq!(other.call(json!({"thing": "A"})).await, success(key, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keyed_effect_that_an_earlier_call_may_have_had_is_not_said_to_be_nothing() {
    let world =
        World::of(Effect::Keyed, &[Step::NoAnswer, Step::NoAnswer, Step::NoAnswer, Step::Reject], json!("key")).await;
    for _ in 0..2 {
        let outcome = world.call(json!({"thing": "A"})).await;
        assert_eq!(failed(&outcome), (FailureKind::OutcomeUnknown, Changed::Unknown, true), "{outcome:?}");
    }
    assert_eq!(world.attempts(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_that_changed_nothing_leaves_the_key_free() {
    for (step, kind) in [(Step::Reject, FailureKind::Rejected), (Step::Busy, FailureKind::Transient)] {
        let world = World::of(Effect::Once, &[step, step, step, Step::Succeed], json!(1)).await;
        while world.attempts() < 3 {
            let (found, changed, _) = failed(&world.call(json!({"thing": "A"})).await);
            assert_eq!((found, changed), (kind, Changed::Nothing));
        }
        assert_eq!(world.call(json!({"thing": "A"})).await, success(json!(1), false));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_is_tried_three_times_and_never_said_to_have_changed_anything() {
    for step in [Step::Hang, Step::Busy, Step::NoAnswer] {
        let world = World::of(Effect::ReadOnly, &[step], json!(1)).await;
        let (_, changed, retryable) = failed(&world.call(json!({"thing": "A"})).await);
        assert_eq!((changed, retryable, world.attempts()), (Changed::Nothing, true, 3), "{step:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_calls_at_once_have_one_effect_and_one_answer() {
    let world = World::of(Effect::Once, &[Step::Succeed], json!({"n": 7})).await;
    let calls = (0..16).map(|_| world.call(json!({"thing": "A"})));
    let outcomes = futures_util::future::join_all(calls).await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == success(json!({"n": 7}), false)).count(), 1);
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == success(json!({"n": 7}), true)).count(), 15);
    assert_eq!(world.attempts(), 1);
}

/// Somebody else's claim on the key of the scripted tool's call, whose lease is long.
async fn held_by_another(world: &World) -> Guard {
    let definition = world.pipeline.toolbox().get("scripted").expect("the tool").definition();
    let key = Key::new(definition, "deployment", &json!(["A"]), &json!({"thing": "A"})).expect("a key");
    let store = world.database.store();
    let soon = store.now().plus(Duration::from_mins(1));
    let claim = Claim {
        owner: String::from("another"),
        effect: Effect::Once,
        lease_until: soon,
        expires_at: soon,
        for_approval: None,
    };
    let Acquired::Mine(guard) = store.acquire(&key, &claim, TIME).await.expect("an answer") else {
        panic!("the key was free")
    };
    guard
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_action_is_running_waits_and_then_says_so() {
    let world = World::of(Effect::Once, &[Step::Succeed], json!(1)).await;
    let guard = held_by_another(&world).await;
    let outcome = world.call(json!({"thing": "A"})).await;
    assert_eq!(failed(&outcome), (FailureKind::InProgress, Changed::Nothing, true));
    assert_eq!(world.attempts(), 0);
    assert_eq!(guard.complete(&stored("7"), TIME).await.expect("an answer"), Settled::AsWritten, "it was left alone");
}

/// A call whose action is running elsewhere, and what becomes of that when the call has looked at it a first time.
async fn call_beside(then: impl AsyncFnOnce(Guard)) -> Outcome {
    let world = World::of(Effect::Once, &[Step::Succeed], json!(1)).await;
    let guard = held_by_another(&world).await;
    let looks = FaultyProxy::start(&world.database.endpoint()).await;
    let store = Store::new(client(&looks.endpoint()), Database::RECORDS, Clock::system());
    let tool = Scripted { effect: Effect::Once, script: Vec::new(), attempts: Arc::default(), result: json!(1) };
    let pipeline = pipeline(tool.alone(), store);
    let ends = async {
        while !looks.take().contains_key("GetItem") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        then(guard).await;
    };
    tokio::join!(call(&pipeline, json!({"thing": "A"})), ends).0
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_gets_the_result_of_the_one_that_runs() {
    let outcome = call_beside(async |guard| drop(guard.complete(&stored("7"), TIME).await.expect("an answer"))).await;
    assert_eq!(outcome, success(json!(7), true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_takes_its_turn_when_the_one_that_runs_changed_nothing() {
    let outcome = call_beside(async |guard| drop(guard.release(TIME).await.expect("an answer"))).await;
    assert_eq!(outcome, success(json!(1), false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_refused_leaves_the_record_as_it_is() {
    let world = World::of(Effect::Once, &[Step::Succeed], json!(1)).await;
    world.call(json!({"thing": "A"})).await;
    for _ in 0..2 {
        assert_eq!(failed(&world.call(json!({"thing": "A", "amount": 2})).await).0, FailureKind::KeyReused);
    }
    assert_eq!(world.call(json!({"thing": "A"})).await, success(json!(1), true));
    assert_eq!(world.attempts(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_effect_whose_record_cannot_be_completed_is_told_as_done() {
    for fault in [Break::Throttle, Break::CutReply, Break::HoldRequest] {
        let world = World::of(Effect::Once, &[Step::Succeed], json!(1)).await;
        let network = Network::new();
        let endpoint = network.proxy(&world.database.endpoint()).await.endpoint();
        let store = Store::new(support::client(&endpoint), Database::RECORDS, Clock::system());
        let attempts = Arc::clone(&world.attempts);
        let tool = Scripted { effect: Effect::Once, script: vec![], attempts, result: json!(1) };
        let toolbox = Toolbox::builder().tool(tool).build().expect("a toolbox");
        network.break_at([(1, fault)]);
        assert_eq!(call(&pipeline(toolbox, store), json!({"thing": "A"})).await, success(json!(1), false), "{fault:?}");
        assert_eq!(world.attempts(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_is_too_large_to_keep_is_replayed_as_done() {
    let large = json!("x".repeat(400_000));
    let world = World::of(Effect::Once, &[Step::Succeed], large).await;
    for replay in [false, true] {
        let outcome = world.call(json!({"thing": "A"})).await;
        let Outcome::Success { result, replayed } = outcome else { panic!("it was done, but: {outcome:?}") };
        assert_eq!((&result["done"], replayed), (&json!(true), replay));
    }
    assert_eq!(world.attempts(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_atomic_effect_commits_once_however_often_it_is_asked_for() {
    let world = World::account(100).await;
    let calls = (0..8).map(|_| world.call(json!({"amount": 30})));
    for outcome in futures_util::future::join_all(calls).await {
        assert!(matches!(&outcome, Outcome::Success { result, .. } if result["withdrawn"] == 30), "{outcome:?}");
    }
    assert_eq!(world.call(json!({"amount": 30})).await, success(json!({"withdrawn": 30}), true));
    assert_eq!(world.balance().await, "70");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_business_condition_that_fails_is_told_with_its_facts_and_leaves_nothing_behind() {
    let world = World::account(100).await;
    let outcome = world.call(json!({"amount": 101})).await;
    assert_eq!(failed(&outcome), (FailureKind::Rejected, Changed::Nothing, false));
    assert_eq!(outcome.failure().expect("a failure").message(), "Only 100 is left. Nothing was changed.");
    assert_eq!(world.call(json!({"amount": 100})).await, success(json!({"withdrawn": 100}), false));
    assert_eq!(world.balance().await, "0");
}

/// A tool that looks before it writes, as many do: the second call finds nothing left.
#[tokio::test(flavor = "multi_thread")]
async fn an_atomic_tool_that_fails_because_it_was_done_is_answered_with_what_was_done() {
    let world = World::account(100).await;
    assert_eq!(world.call(json!({"amount": 60, "look": true})).await, success(json!({"withdrawn": 60}), false));
    assert_eq!(world.call(json!({"amount": 60, "look": true})).await, success(json!({"withdrawn": 60}), true));
    let other = world.call(json!({"amount": 61, "look": true})).await;
    assert_eq!(failed(&other), (FailureKind::Rejected, Changed::Nothing, false));
    assert_eq!(world.balance().await, "40");
}

/// The client's first try is applied and its answer lost; all that follow are refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_is_refused_after_a_lost_answer_is_not_said_to_be_nothing() {
    let world = World::account(100).await;
    let network = Network::new();
    let pipeline = world.over(&network).await;
    network.break_at([(0, Break::CutReply)].into_iter().chain((1..100).map(|at| (at, Break::Throttle))));
    let outcome = call(&pipeline, json!({"amount": 30})).await;
    assert_eq!(failed(&outcome), (FailureKind::OutcomeUnknown, Changed::Unknown, true));
    assert_eq!(world.balance().await, "70");
    assert_eq!(world.call(json!({"amount": 30})).await, success(json!({"withdrawn": 30}), true));
}

/// The client's first try is not answered, and the second meets a condition that does not hold. Should it come to hold, the
/// first may still be applied: only a call that begins after it can deny it.
#[tokio::test(flavor = "multi_thread")]
async fn a_condition_that_fails_after_a_lost_answer_is_not_said_to_be_nothing() {
    let world = World::account(100).await;
    let network = Network::new();
    let pipeline = world.over(&network).await;
    network.break_at([(0, Break::CutReply)]);
    let outcome = call(&pipeline, json!({"amount": 130})).await;
    assert_eq!(failed(&outcome), (FailureKind::OutcomeUnknown, Changed::Unknown, true));
    assert!(
        outcome.failure().is_some_and(|failure| failure.message().contains("100")),
        "the reason is told: {outcome:?}"
    );
    assert_eq!(
        failed(&call(&pipeline, json!({"amount": 130})).await),
        (FailureKind::Rejected, Changed::Nothing, false)
    );
    assert_eq!(world.balance().await, "100");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_record_table_away_no_effect_begins() {
    let World { database, pipeline, attempts } = World::of(Effect::Once, &[Step::Succeed], json!(1)).await;
    if !database.is_ours() {
        return;
    }
    drop(database);
    let outcome = call(&pipeline, json!({"thing": "A"})).await;
    assert_eq!(failed(&outcome), (FailureKind::Transient, Changed::Nothing, true));
    assert_eq!(attempts.load(Ordering::SeqCst), 0);
}

/// Two executions of one action, straight on the store.
struct Rivals {
    database: Database,
    store: Store,
    key: Key,
}

impl Rivals {
    async fn new() -> Self {
        let database = Database::start().await;
        let toolbox = Toolbox::builder()
            .tool(Scripted { effect: Effect::Keyed, script: vec![], attempts: Arc::default(), result: json!(1) })
            .build()
            .expect("a toolbox");
        let definition = toolbox.get("scripted").expect("the tool").definition();
        let key = Key::new(definition, "s", &json!(["A"]), &json!({"thing": "A"})).expect("a key");
        Self { store: database.store(), database, key }
    }

    /// A claim whose lease ended `ago`.
    fn claim(&self, owner: &str, ago: Duration) -> Claim {
        let now = self.store.now();
        Claim {
            owner: owner.into(),
            effect: Effect::Keyed,
            lease_until: action_group::clock::Timestamp::from_millis(
                now.as_millis() - u64::try_from(ago.as_millis()).expect("a short time"),
            ),
            expires_at: now.plus(Duration::from_mins(1)),
            for_approval: None,
        }
    }

    async fn acquire(&self, claim: &Claim) -> Acquired {
        self.store.acquire(&self.key, claim, TIME).await.expect("an answer")
    }

    /// A dead holder, and a second execution that has taken its record over.
    async fn taken_over(&self) -> (Guard, Guard) {
        let first = self.claim("first", Duration::from_secs(10));
        let second = self.claim("second", Duration::ZERO);
        let Acquired::Mine(late) = self.acquire(&first).await else { panic!("the key was free") };
        let Acquired::Held(record) = self.acquire(&second).await else { panic!("the key is held") };
        assert_eq!(decide(&record, &second, self.key.args_hash(), self.store.now()), Decision::TakeOver);
        let taken = self.store.take_over(&self.key, &second, &record, TIME).await.expect("an answer");
        let Acquired::Mine(owner) = taken else { panic!("nobody else was at it") };
        (late, owner)
    }
}

const TIME: Duration = Duration::from_secs(2);

fn stored(text: &str) -> Stored {
    Stored::Json(text.into())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_owner_never_overwrites() {
    let rivals = Rivals::new().await;
    let (late, owner) = rivals.taken_over().await;
    assert_eq!(owner.complete(&stored("2"), TIME).await.expect("an answer"), Settled::AsWritten);
    let Settled::Superseded(Some(record)) = late.complete(&stored("1"), TIME).await.expect("an answer") else {
        panic!("it was superseded")
    };
    assert_eq!(record.result, Some(stored("2")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_owner_never_deletes() {
    let rivals = Rivals::new().await;
    let (late, owner) = rivals.taken_over().await;
    assert!(matches!(late.release(TIME).await.expect("an answer"), Settled::Superseded(Some(_))));
    assert_eq!(owner.complete(&stored("2"), TIME).await.expect("an answer"), Settled::AsWritten);
    let record = rivals.store.read(&rivals.key, TIME).await.expect("an answer").expect("the record");
    assert_eq!(record.result, Some(stored("2")));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_one_of_two_takes_a_record_over() {
    let rivals = Rivals::new().await;
    let dead = rivals.claim("dead", Duration::from_secs(10));
    assert!(matches!(rivals.acquire(&dead).await, Acquired::Mine(_)));
    let heirs = [rivals.claim("a", Duration::ZERO), rivals.claim("b", Duration::ZERO)];
    let Acquired::Held(record) = rivals.acquire(&heirs[0]).await else { panic!("the key is held") };
    let (a, b) = tokio::join!(
        rivals.store.take_over(&rivals.key, &heirs[0], &record, TIME),
        rivals.store.take_over(&rivals.key, &heirs[1], &record, TIME),
    );
    let taken = [a, b].into_iter().filter(|taken| matches!(taken, Ok(Acquired::Mine(_)))).count();
    assert_eq!(taken, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_put_that_is_sent_twice_is_recognised_as_our_own() {
    let rivals = Rivals::new().await;
    let claim = rivals.claim("me", Duration::ZERO);
    assert!(matches!(rivals.acquire(&claim).await, Acquired::Mine(_)));
    let Acquired::Held(record) = rivals.acquire(&claim).await else { panic!("the key is held") };
    assert_eq!(decide(&record, &claim, rivals.key.args_hash(), rivals.store.now()), Decision::Ours);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_record_is_replaced_although_it_is_still_there() {
    let rivals = Rivals::new().await;
    let old = Claim { expires_at: rivals.store.now(), ..rivals.claim("old", Duration::ZERO) };
    let Acquired::Mine(guard) = rivals.acquire(&old).await else { panic!("the key was free") };
    guard.complete(&stored("1"), TIME).await.expect("an answer");
    let later = rivals.database.store_at(rivals.store.now().plus(Duration::from_secs(2)));
    let new = rivals.claim("new", Duration::ZERO);
    assert!(matches!(later.acquire(&rivals.key, &new, TIME).await.expect("an answer"), Acquired::Mine(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_conversations_do_not_share_a_key_and_one_conversation_does() {
    let world = World::of(Effect::Once, &[Step::Succeed], json!(1)).await;
    let mut replays = Vec::new();
    for conversation in ["x", "y", "x"] {
        let caller = Caller::default().with_conversation(conversation);
        let outcome = call_by(&world.pipeline, caller, json!({"thing": "A"})).await;
        replays.push(matches!(outcome, Outcome::Success { replayed: true, .. }));
    }
    assert_eq!(replays, [false, false, true]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_is_no_json_unmakes_no_effect_and_does_not_repeat_it() {
    for effect in [Effect::Once, Effect::Keyed] {
        let world = unruly(effect).await;
        for replayed in [false, true] {
            let outcome = world.call(json!({"thing": "A"})).await;
            assert!(
                matches!(&outcome, Outcome::Success { result, replayed: again } if result["done"] == true && *again == replayed),
                "{outcome:?}"
            );
        }
        assert_eq!(world.attempts(), 1);
    }
    let read = unruly(Effect::ReadOnly).await.call(json!({"thing": "A"})).await;
    assert_eq!(failed(&read), (FailureKind::Internal, Changed::Nothing, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_panics_is_a_failure_of_its_own_call_only() {
    let world = unruly(Effect::Once).await;
    let (broken, other) = tokio::join!(world.call(json!({"thing": "no key"})), world.call(json!({"thing": "A"})));
    assert_eq!(failed(&broken), (FailureKind::Internal, Changed::Nothing, false));
    assert!(matches!(other, Outcome::Success { .. }));
    assert_eq!(world.attempts(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_was_used_is_not_said_to_be_an_action_that_was_not_done() {
    let world = World::of(Effect::Once, &[Step::Succeed], json!(1)).await;
    world.call(json!({"thing": "A"})).await;
    let reused = world.call(json!({"thing": "A", "amount": 2})).await;
    assert!(reused.failure().expect("a failure").message().ends_with("This call changed nothing."));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_only_the_type_knows_is_told_in_whole_sentences() {
    let world = World::of(Effect::Once, &[Step::Succeed], json!(1)).await;
    let refused = world.call(json!({"thing": "A", "amount": 13})).await;
    let message = refused.failure().expect("a failure").message();
    assert_eq!(message, "The arguments are refused: 13 is no lucky amount. Nothing was changed.");
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_that_nobody_commits_are_no_success() {
    let keyed = World::of(Effect::Keyed, &[Step::Write], json!(1)).await.call(json!({"thing": "A"})).await;
    assert_eq!(failed(&keyed), (FailureKind::OutcomeUnknown, Changed::Unknown, true));
    let read = World::of(Effect::ReadOnly, &[Step::Write], json!(1)).await.call(json!({"thing": "A"})).await;
    assert_eq!(failed(&read), (FailureKind::Internal, Changed::Nothing, false));
}
