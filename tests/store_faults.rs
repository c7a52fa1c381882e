//! The outcome is never guessed, whatever becomes of the requests to DynamoDB: each fault at each step, through the
//! pipeline and the real AWS SDK with its retries.
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
    call::Deadline,
    clock::Clock,
    idempotency::{Store, TAKE_OVER_MARGIN},
    outcome::{Changed, FailureKind, Outcome},
    tool::{CallContext, Caller, Effect, Policy, Reconciled, Success, Tool, ToolError, Toolbox, Write},
};
use aws_sdk_dynamodb::{
    Client,
    config::{BehaviorVersion, Credentials, Region, retry::RetryConfig},
    types::{AttributeValue, Put, TransactWriteItem},
};
use serde_json::{Value, json};
use support::{Database, Fault, FaultyProxy, LOST, THROTTLED};
use tokio::sync::Notify;

/// Do it.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// What comes of an attempt.
#[derive(Clone)]
enum Way {
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
        Policy::new(self.effect).wording("Nothing was done.", "It is not known whether it was done.")
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

struct World {
    database: Database,
    proxy: FaultyProxy,
    done: Arc<AtomicU32>,
    asked: Arc<AtomicU32>,
    effect: Effect,
}

impl World {
    async fn of(effect: Effect) -> Self {
        let database = Database::start().await;
        let proxy = FaultyProxy::start(&database.endpoint()).await;
        Self { database, proxy, done: Arc::default(), asked: Arc::default(), effect }
    }

    async fn call(&self) -> Outcome {
        self.attempt(Way::Done, Duration::ZERO).await
    }

    /// A call while the tool's backend is busy.
    async fn call_in_vain(&self) -> Outcome {
        self.attempt(Way::Busy, Duration::ZERO).await
    }

    /// One call, by a clock that is so much ahead. It always ends before the host's deadline.
    async fn attempt(&self, way: Way, ahead: Duration) -> Outcome {
        self.attempt_with(way, ahead, Duration::from_millis(1)).await
    }

    /// The same with a client that waits so long between its attempts.
    async fn attempt_with(&self, way: Way, ahead: Duration, backoff: Duration) -> Outcome {
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

    async fn effects(&self) -> u32 {
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

fn told(outcome: &Outcome) -> (FailureKind, Changed, String) {
    let failure = outcome.failure().unwrap_or_else(|| panic!("a failure, but it is {outcome:?}"));
    (failure.kind(), failure.changed(), failure.message())
}

fn success(replayed: bool) -> Outcome {
    Outcome::Success { result: json!({"n": 1}), replayed }
}

/// Longer than a call and the margin for its end.
const PAST_THE_LEASE: Duration = Duration::from_secs(TAKE_OVER_MARGIN.as_secs() + 2);

const IN_PROGRESS: Fault = Fault::Instead(400, r#"{"__type":"com.amazonaws.dynamodb#TransactionInProgressException"}"#);

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_was_lost_is_never_called_undone_however_the_last_try_ended() {
    for last in [THROTTLED, IN_PROGRESS, Fault::Instead(503, "<html>"), Fault::Instead(500, r#"{"__type":"x#Odd"}"#)] {
        let world = World::of(Effect::Atomic).await;
        world.proxy.misbehave("TransactWriteItems", [LOST, last, last, last, last, last, last, last, last]);
        let outcome = world.call().await;
        assert_eq!(world.effects().await, 1);
        if outcome != success(false) {
            let (kind, changed, _) = told(&outcome);
            assert_eq!((kind, changed), (FailureKind::OutcomeUnknown, Changed::Unknown), "{last:?}");
        }
        world.proxy.misbehave("TransactWriteItems", []);
        assert_eq!(world.call().await, success(true), "{last:?}");
    }
}

/// Every fault of a commit, at its first try or at all of them, where it can be kept out afterwards and where it cannot:
/// whether an effect is possible after it. The answer is held against the table and against the next call.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_meets_any_fault_is_told_truly_and_the_next_call_ends_it() {
    let cells = [
        (THROTTLED, Changed::Nothing),
        (Fault::Instead(500, r#"{"__type":"com.amazonaws.dynamodb#InternalServerError"}"#), Changed::Unknown),
        (Fault::Instead(503, "<html>"), Changed::Unknown),
        (Fault::Reset, Changed::Unknown),
        (Fault::HalfBody, Changed::Unknown),
        (LOST, Changed::Unknown),
        (Fault::After(500, "{}"), Changed::Unknown),
        (Fault::Instead(200, "garbage"), Changed::Unknown),
        (Fault::Silence, Changed::Unknown),
        (Fault::SilenceAfter, Changed::Unknown),
    ];
    let ways = [(1, true), (3, true), (3, false)];
    let cells = cells.into_iter().flat_map(|(fault, worst)| ways.map(|way| (fault, worst, way)));
    futures_util::future::join_all(cells.map(|(fault, worst, (times, barred))| async move {
        let cell = format!("{fault:?}, {times} times, kept out: {barred}");
        let worst = if barred { Changed::Nothing } else { worst };
        let world = World::of(Effect::Atomic).await;
        world.proxy.misbehave("TransactWriteItems", vec![fault; times]);
        world.proxy.misbehave("PutItem", [Fault::Instead(503, "<html>"); 9].into_iter().filter(|_| !barred));
        let outcome = world.call().await;
        let effects = world.effects().await;
        match &outcome {
            Outcome::Success { replayed, .. } => assert_eq!((effects, *replayed), (1, false), "{cell}"),
            Outcome::Failure(failure) => {
                assert_eq!(failure.changed(), worst, "{cell}: {failure:?}");
                assert!(worst == Changed::Unknown || effects == 0, "{cell}");
                assert!(failure.retryable(), "{cell}: the next call may tell");
            }
        }
        world.proxy.misbehave("TransactWriteItems", []);
        world.proxy.misbehave("PutItem", []);
        assert_eq!(world.call().await, success(effects == 1), "{cell}");
        assert_eq!(world.effects().await, 1, "{cell}");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_call_sends_its_commit_three_times_at_most() {
    for fault in [Fault::Instead(500, "{}"), Fault::Instead(503, "<html>"), THROTTLED, Fault::Reset] {
        let world = World::of(Effect::Atomic).await;
        world.proxy.misbehave("TransactWriteItems", [fault; 12]);
        told(&world.call().await);
        assert_eq!(world.proxy.count("TransactWriteItems"), 3, "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_was_surely_refused_changed_nothing_and_leaves_the_key_free() {
    let world = World::of(Effect::Atomic).await;
    world.proxy.misbehave("TransactWriteItems", [THROTTLED; 3]);
    let (kind, changed, _) = told(&world.call().await);
    assert_eq!((kind, changed), (FailureKind::Transient, Changed::Nothing));
    assert_eq!(world.effects().await, 0);
    assert_eq!(world.call().await, success(false));
}

/// Adaptive mode can wait for tens of seconds.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_waits_until_the_time_is_up_has_written_nothing() {
    for (effect, operation) in
        [(Effect::Atomic, "TransactWriteItems"), (Effect::Keyed, "PutItem"), (Effect::Once, "PutItem")]
    {
        let world = World::of(effect).await;
        world.proxy.misbehave(operation, [THROTTLED]);
        let (kind, changed, _) = told(&world.attempt_with(Way::Done, Duration::ZERO, Duration::from_hours(1)).await);
        assert_eq!((kind, changed), (FailureKind::Transient, Changed::Nothing), "{effect:?}");
        assert_eq!(world.effects().await, 0);
    }
}

/// The write of an equal call is there, so that the tool's own condition fails, and its record is not yet.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_meets_an_equal_one_half_way_does_not_deny_what_that_one_does() {
    const HALF_WAY: Fault = Fault::Instead(
        400,
        r#"{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","Message":"Cancelled",
            "CancellationReasons":[{"Code":"TransactionConflict"},{"Code":"ConditionalCheckFailed"}]}"#,
    );
    for times in [1, 3] {
        let world = World::of(Effect::Atomic).await;
        assert_eq!(world.call().await, success(false));
        world.proxy.misbehave("TransactWriteItems", vec![HALF_WAY; times]);
        assert_eq!(world.call().await, success(true), "{times}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_of_the_deployment_is_internal_and_nothing_that_waiting_helps() {
    const DENIED: Fault = Fault::Instead(400, r#"{"__type":"com.amazon.coral.service#AccessDeniedException"}"#);
    for (effect, operation) in [(Effect::Atomic, "TransactWriteItems"), (Effect::Keyed, "PutItem")] {
        let world = World::of(effect).await;
        world.proxy.misbehave(operation, [DENIED]);
        let (kind, changed, _) = told(&world.call().await);
        assert_eq!((kind, changed), (FailureKind::Internal, Changed::Nothing), "{operation}");
        assert_eq!(world.effects().await, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acquisition_whose_answer_was_lost_leaves_no_record_in_the_way() {
    for effect in [Effect::Keyed, Effect::Once] {
        let world = World::of(effect).await;
        world.proxy.misbehave("PutItem", [LOST, THROTTLED, THROTTLED]);
        let (kind, changed, _) = told(&world.call().await);
        assert_eq!((kind, changed), (FailureKind::Transient, Changed::Nothing), "{effect:?}");
        assert_eq!(world.effects().await, 0);
        assert_eq!(world.call().await, success(false), "{effect:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_completion_that_cannot_be_written_does_not_unmake_the_effect() {
    for fault in [THROTTLED, LOST, Fault::Silence, Fault::SilenceAfter, Fault::Instead(200, "garbage")] {
        for effect in [Effect::Keyed, Effect::Once] {
            let world = World::of(effect).await;
            world.proxy.misbehave("UpdateItem", [fault; 3]);
            assert_eq!(world.call().await, success(false), "{effect:?}, {fault:?}");
            assert_eq!(world.effects().await, 1, "{effect:?}, {fault:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_fails_early_never_denies_what_an_earlier_call_has_done() {
    for effect in [Effect::Atomic, Effect::Keyed, Effect::Once] {
        let world = World::of(effect).await;
        assert_eq!(world.call().await, success(false));
        assert_eq!(world.call_in_vain().await, success(true), "{effect:?}: the backend is not needed for a replay");
        for operation in ["TransactWriteItems", "PutItem", "GetItem"] {
            world.proxy.misbehave(operation, [THROTTLED; 9]);
        }
        for outcome in [world.call().await, world.call_in_vain().await] {
            let (_, changed, message) = told(&outcome);
            assert_eq!(changed, Changed::Nothing);
            assert!(message.ends_with("This call changed nothing."), "{effect:?}: {message}");
            for operation in ["TransactWriteItems", "PutItem", "GetItem"] {
                world.proxy.misbehave(operation, [THROTTLED; 9]);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_execution_may_have_done_is_not_denied_by_the_one_that_takes_over() {
    let world = World::of(Effect::Keyed).await;
    world.proxy.misbehave("UpdateItem", [Fault::Silence]); // the completion is lost, and the record stays as it was
    assert_eq!(world.call().await, success(false));
    let (kind, changed, _) = told(&world.attempt(Way::Busy, PAST_THE_LEASE).await);
    assert_eq!((kind, changed), (FailureKind::OutcomeUnknown, Changed::Unknown));
    assert_eq!(world.call().await, success(false));
}

/// A deployment changes what the tool promises: what was begun under the promise before is not run by the new way.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_begun_before_the_effect_was_changed_is_not_done_again_by_another_way() {
    use Effect::{Atomic, Keyed, Once};
    for (before, after) in [(Once, Keyed), (Once, Atomic), (Keyed, Once), (Keyed, Atomic)] {
        let mut world = World::of(before).await;
        world.proxy.misbehave("UpdateItem", [Fault::Silence]); // the completion is lost, and the record stays as it was
        assert_eq!(world.call().await, success(false));
        world.effect = after;
        let outcome = world.attempt(Way::Done, PAST_THE_LEASE).await;
        let (kind, changed, message) = told(&outcome);
        assert_eq!((kind, changed), (FailureKind::OutcomeUnknown, Changed::Unknown), "{before:?}, then {after:?}");
        assert!(message.contains("Do not call it again"), "{before:?}, then {after:?}: {message}");
        assert_eq!((world.effects().await, world.asked.load(Ordering::SeqCst)), (1, 1), "{before:?}, then {after:?}");
    }
}

/// The call's own commit is on its way still when it takes over what the version before has begun, and done. Its first
/// request must not find a record that seems to be its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_lands_late_does_not_find_the_record_that_its_call_has_taken_over() {
    const PASS: Fault = Fault::Slow(Duration::ZERO);
    let mut world = World::of(Effect::Once).await;
    world.proxy.misbehave("UpdateItem", [Fault::Silence]); // the completion is lost, and the record stays as it was
    assert_eq!(world.call().await, success(false));
    world.effect = Effect::Atomic;
    world.proxy.misbehave("TransactWriteItems", [Fault::Lingers]);
    world.proxy.misbehave("UpdateItem", [PASS, PASS, Fault::Silence]); // marked, taken over, and its completion lost
    assert_eq!(world.attempt(Way::Found, PAST_THE_LEASE).await, success(true));
    assert_eq!(world.proxy.deliver().await, 1);
    assert_eq!(world.effects().await, 1);
}

/// The table has taken all the time that there was for marking the record.
#[tokio::test(flavor = "multi_thread")]
async fn when_the_time_is_up_nobody_is_asked_what_became_of_an_effect() {
    let world = World::of(Effect::Once).await;
    for asked in [0, 1] {
        world.proxy.misbehave("UpdateItem", [Fault::Silence; 9]);
        if asked == 0 {
            assert_eq!(world.call().await, success(false), "its completion is lost");
        } else {
            world.proxy.misbehave("UpdateItem", []);
        }
        let (kind, ..) = told(&world.attempt(Way::Done, PAST_THE_LEASE).await);
        assert_eq!(kind, FailureKind::OutcomeUnknown);
        assert_eq!(world.asked.load(Ordering::SeqCst), asked);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_dynamodb_silent_or_babbling_a_call_is_answered_in_time_and_nothing_is_guessed() {
    let babble = Fault::Instead(200, "garbage");
    for (effect, operation) in
        [(Effect::Atomic, "TransactWriteItems"), (Effect::Keyed, "PutItem"), (Effect::Once, "PutItem")]
    {
        for fault in [Fault::Silence, Fault::SilenceAfter, babble, LOST] {
            let world = World::of(effect).await;
            world.proxy.misbehave(operation, [fault; 9]);
            let outcome = world.call().await;
            let effects = world.effects().await;
            match outcome.failure().map(action_group::outcome::Failure::changed) {
                None => assert_eq!(effects, 1, "{effect:?}, {fault:?}"),
                Some(Changed::Nothing) => assert_eq!(effects, 0, "{effect:?}, {fault:?}"),
                Some(changed) => assert_eq!(changed, Changed::Unknown, "{effect:?}, {fault:?}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_owner_that_fails_answers_with_what_its_heir_has_done() {
    let world = World::of(Effect::Keyed).await;
    let moments = Arc::new([Notify::new(), Notify::new()]);
    let heir = async {
        moments[0].notified().await;
        assert_eq!(world.attempt(Way::Done, PAST_THE_LEASE).await, success(false));
        moments[1].notify_one();
    };
    let (late, ()) = tokio::join!(world.attempt(Way::Refused(Arc::clone(&moments)), Duration::ZERO), heir);
    assert_eq!(late, success(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_for_another_call_and_cannot_look_any_more_does_not_deny_what_that_one_has_begun() {
    let world = World::of(Effect::Keyed).await;
    let moments = Arc::new([Notify::new(), Notify::new()]);
    let waiting = async {
        moments[0].notified().await;
        world.proxy.misbehave("GetItem", [THROTTLED; 9]);
        let told = told(&world.call().await);
        moments[1].notify_one();
        told
    };
    let (_, (kind, changed, message)) =
        tokio::join!(world.attempt(Way::Refused(Arc::clone(&moments)), Duration::ZERO), waiting);
    assert_eq!((kind, changed), (FailureKind::Transient, Changed::Nothing));
    assert!(!message.contains("not begun") && message.contains("Another call"), "{message}");
    assert!(message.ends_with("This call changed nothing."), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_cannot_take_a_record_over_says_of_its_own_call_only_that_it_was_not_begun() {
    let world = World::of(Effect::Keyed).await;
    world.proxy.misbehave("UpdateItem", [Fault::Silence]); // the completion is lost, and the record stays as it was
    assert_eq!(world.call().await, success(false));
    world.proxy.misbehave("UpdateItem", [THROTTLED; 9]);
    let (kind, changed, message) = told(&world.attempt(Way::Done, PAST_THE_LEASE).await);
    assert_eq!((kind, changed), (FailureKind::Transient, Changed::Nothing));
    assert!(message.contains("this call did not begin it"), "{message}");
}
