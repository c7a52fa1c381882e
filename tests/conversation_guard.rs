//! The limits of a conversation, end to end: counts ride in an agent's session, else in one item of the table.
#![cfg(feature = "dev")]

mod support;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use action_group::{
    call::Pipeline,
    clock::Clock,
    conversation_guard::ConversationLimits,
    handler::{Handler, Terms},
    idempotency::Store,
    runtime::Invocation,
    telemetry::Telemetry,
    tool::{CallContext, Effect, Policy, Success, Tool, ToolError, Toolbox},
};
use serde_json::{Value, json};
use support::{Database, FaultyProxy, Lines, client, terms};

/// Look for a thing.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Look {
    /// The thing.
    thing: String,
}

/// Finds everything but what begins with `no`.
#[derive(Clone, Default)]
struct Looks(Arc<AtomicUsize>);

impl Tool for Looks {
    const NAME: &'static str = "look";
    type Args = Look;
    type Output = &'static str;

    fn policy(&self) -> Policy<Look> {
        Policy::new(Effect::ReadOnly)
    }

    async fn call(&self, look: Look, _: &CallContext) -> Result<Success<Self::Output>, ToolError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        if look.thing.starts_with("no") { Err(ToolError::not_found("It is not there.")) } else { Ok("there".into()) }
    }
}

struct World {
    handler: Handler,
    looks: Looks,
    metrics: Lines,
    proxy: FaultyProxy,
    database: Database,
}

fn handler(looks: &Looks, metrics: &Lines, limits: ConversationLimits, endpoint: &str) -> Handler {
    let toolbox = Toolbox::builder().tool(looks.clone()).build().expect("a toolbox");
    let telemetry = Telemetry::new("N", "s", Clock::system(), Box::new(metrics.clone()));
    let store = Store::new(client(endpoint), Database::RECORDS, Clock::system());
    let pipeline = Pipeline::new(Arc::new(toolbox), store, Arc::new(telemetry));
    let terms = Terms { limits, ..terms(Duration::from_secs(20)) };
    Handler::new(pipeline, terms)
}

impl World {
    async fn under(limits: ConversationLimits) -> Self {
        let (database, looks, metrics) = (Database::start().await, Looks::default(), Lines::default());
        let proxy = FaultyProxy::start(&database.endpoint()).await;
        Self { handler: handler(&looks, &metrics, limits, &proxy.endpoint()), looks, metrics, proxy, database }
    }

    async fn ask(&self, event: &Value) -> Value {
        let invocation = Invocation { payload: event.to_string().into(), ..Invocation::default() };
        self.handler.handle(invocation).await.expect("an answer")
    }

    fn runs(&self) -> usize {
        self.looks.0.load(Ordering::Relaxed)
    }

    /// How many requests of this kind there were since the last look, and no other.
    fn updates(&self) -> usize {
        let requests = self.proxy.take();
        assert!(requests.keys().all(|operation| operation == "UpdateItem"), "{requests:?}");
        requests.values().sum()
    }
}

fn calls(most: u32) -> ConversationLimits {
    ConversationLimits { calls: Some(most), ..ConversationLimits::default() }
}

fn failures(in_a_row: u32, identical: u32) -> ConversationLimits {
    ConversationLimits { calls: None, consecutive_failures: Some(in_a_row), identical_failures: Some(identical) }
}

/// A conversation with an agent, which keeps the session's attributes as Bedrock does.
struct Session(Value);

impl Session {
    fn new() -> Self {
        Self(json!({ "user": "u-1" }))
    }

    /// The body of the answer.
    async fn look(&mut self, world: &World, thing: &str) -> String {
        let event = json!({
            "messageVersion": "1.0", "actionGroup": "g", "function": "look", "sessionId": "s-1",
            "parameters": [{ "name": "thing", "type": "string", "value": thing }],
            "sessionAttributes": self.0,
        });
        let mut answer = world.ask(&event).await;
        self.0 = answer["sessionAttributes"].take();
        answer["response"]["functionResponse"]["responseBody"]["TEXT"]["body"].as_str().expect("a body").to_owned()
    }
}

/// A return of control with a look for each thing, in this conversation.
fn control(session: &Value, things: &[&str]) -> Value {
    let input = |thing: &&str| {
        let parameters = json!([{ "name": "thing", "type": "string", "value": thing }]);
        json!({ "functionInvocationInput": { "actionGroup": "g", "function": "look", "parameters": parameters } })
    };
    let inputs: Vec<_> = things.iter().map(input).collect();
    json!({ "sessionId": session, "returnControl": { "invocationId": "i", "invocationInputs": inputs } })
}

/// The bodies of the answer to a return of control.
async fn look(world: &World, session: &str, things: &[&str]) -> Vec<String> {
    let answer = world.ask(&control(&json!(session), things)).await;
    let results = answer["returnControlInvocationResults"].as_array().expect("results").iter();
    results.map(|r| r["functionResult"]["responseBody"]["TEXT"]["body"].as_str().expect("a body").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agents_counts_ride_in_its_session_beside_its_own_attributes_and_no_table_is_asked() {
    let (world, mut session) = (World::under(calls(3)).await, Session::new());
    for thing in ["a", "b", "a"] {
        assert_eq!(session.look(&world, thing).await, "\"there\"");
    }
    let stopped = session.look(&world, "c").await;
    assert!(stopped.contains("has had 3 tool calls") && stopped.contains("was not run"), "{stopped}");
    assert_eq!((world.runs(), world.updates()), (3, 0));
    assert_eq!(session.0["user"], "u-1");
    assert_eq!(session.0.as_object().unwrap().len(), 2);
    assert!(session.0.as_object().unwrap().values().all(Value::is_string), "attributes are texts");
    let metrics = world.metrics.text();
    assert!(metrics.contains("\"Rejected\":1"), "{metrics}");
    let mut other = Session::new();
    assert_eq!(other.look(&world, "c").await, "\"there\"");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agents_failing_call_is_not_made_without_end_and_a_changed_one_is() {
    let (world, mut session) = (World::under(failures(9, 2)).await, Session::new());
    for _ in 0..2 {
        assert!(session.look(&world, "no a").await.starts_with("It is not there."));
    }
    for _ in 0..5 {
        let stopped = session.look(&world, "no a").await;
        assert!(stopped.contains("with the same arguments, has failed 2 times"), "{stopped}");
    }
    assert_eq!(world.runs(), 2);
    session.look(&world, "a").await;
    for _ in 0..20 {
        assert_eq!(session.look(&world, "a").await, "\"there\"", "to poll is no loop");
    }
    assert_eq!((world.runs(), world.updates()), (23, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn elsewhere_the_counts_of_a_conversation_are_one_item_that_every_process_shares() {
    let world = World::under(calls(3)).await;
    assert_eq!(look(&world, "s-1", &["a", "b"]).await, ["\"there\"", "\"there\""]);
    assert_eq!(world.updates(), 1, "one request for an invocation");
    let another = World { handler: handler(&world.looks, &world.metrics, calls(3), &world.proxy.endpoint()), ..world };
    let answers = look(&another, "s-1", &["c", "d"]).await;
    assert_eq!(answers[0], "\"there\"");
    assert!(answers[1].contains("has had 3 tool calls"), "{answers:?}");
    assert_eq!(look(&another, "s-2", &["a"]).await, ["\"there\""], "another conversation");
    assert_eq!((another.runs(), another.updates()), (4, 2));
    let items = another.database.client().scan().table_name(Database::RECORDS).send().await.expect("items");
    assert_eq!(items.items().len(), 2);
    assert!(items.items().iter().all(|item| item.contains_key("expires_at")), "DynamoDB may delete them");
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_counted_in_the_item_and_a_success_takes_them_out() {
    let world = World::under(failures(2, 9)).await;
    look(&world, "s-1", &["no a"]).await;
    assert_eq!(world.updates(), 2, "one to read, one to count the failure");
    look(&world, "s-1", &["a"]).await;
    assert_eq!(world.updates(), 2, "one to take it out");
    look(&world, "s-1", &["a"]).await;
    assert_eq!(world.updates(), 1);
    look(&world, "s-1", &["no a"]).await;
    look(&world, "s-1", &["no b"]).await;
    let stopped = look(&world, "s-1", &["a"]).await;
    assert!(stopped[0].contains("The last 2 calls of this tool"), "{stopped:?}");
    assert_eq!(world.runs(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_calls_of_one_event_do_not_pass_their_limit_together() {
    let world = World::under(failures(99, 2)).await;
    look(&world, "s-1", &["no a"]).await;
    let answers = look(&world, "s-1", &["no a", "no a", "no a", "no b"]).await;
    assert!(answers[0].starts_with("It is not there.") && answers[3].starts_with("It is not there."), "{answers:?}");
    assert!(answers[1..3].iter().all(|answer| answer.contains("has failed once")), "{answers:?}");
    assert_eq!(world.runs(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_converse_loop_that_says_its_conversation_has_limits_too() {
    let world = World::under(ConversationLimits { calls: Some(3), ..failures(9, 2) }).await;
    let ask = async |session: &str, thing: &str| {
        let tool_use = json!({ "toolUseId": "t1", "name": "look", "input": { "thing": thing } });
        world.ask(&json!({ "toolUse": tool_use, "sessionId": session })).await.to_string()
    };
    for _ in 0..2 {
        assert!(ask("s-1", "no a").await.contains("It is not there."));
    }
    assert!(ask("s-1", "no a").await.contains("with the same arguments, has failed 2 times"));
    assert!(ask("s-1", "b").await.contains("has had 3 tool calls"));
    assert!(ask("s-2", "no a").await.contains("It is not there."), "another conversation");
    assert_eq!(world.runs(), 3);
    let stopped = look(&world, "s-1", &["b"]).await;
    assert!(stopped[0].contains("has had 3 tool calls"), "one conversation at both doors: {stopped:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenants_conversation_is_not_anothers() {
    let world = World::under(calls(1)).await;
    let ask = async |tenant: &str| {
        let payload = control(&json!("s-1"), &["a"]).to_string().into();
        let invocation = Invocation { payload, tenant: Some(tenant.into()), ..Invocation::default() };
        world.handler.handle(invocation).await.expect("an answer").to_string()
    };
    assert!(ask("a").await.contains("there") && ask("b").await.contains("there"));
    assert!(ask("a").await.contains("was not run"));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_limit_or_a_conversation_nothing_is_counted_and_nothing_asked() {
    let limits = ConversationLimits { calls: Some(1), ..failures(1, 1) };
    let tool_use = json!({ "toolUse": { "toolUseId": "t1", "name": "look", "input": { "thing": "no" } } });
    let mcp = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "look", "arguments": { "thing": "no" } } });
    let world = World::under(limits).await;
    for event in [tool_use, mcp, control(&Value::Null, &["no"])] {
        for _ in 0..3 {
            assert!(world.ask(&event).await.to_string().contains("It is not there."), "{event}");
        }
    }
    assert_eq!(world.updates(), 0);
    let (world, mut session) = (World::under(ConversationLimits::default()).await, Session::new());
    for _ in 0..3 {
        session.look(&world, "no").await;
        look(&world, "s-1", &["no"]).await;
    }
    assert_eq!((session.0, world.updates(), world.runs()), (json!({ "user": "u-1" }), 0, 6));
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_alone_never_replace_attributes_that_cannot_be_answered() {
    let world = World::under(calls(1)).await;
    for attributes in [json!({ "user": "u", "age": 7 }), json!(["user"])] {
        let event =
            json!({ "actionGroup": "g", "function": "look", "sessionId": "s", "sessionAttributes": attributes });
        let answer = world.ask(&event).await;
        assert!(answer.get("sessionAttributes").is_none(), "{answer}");
    }
    assert_eq!(world.updates(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unclear_event_neither_counts_nor_replaces_the_sessions_attributes() {
    let world = World::under(calls(1)).await;
    let payload =
        r#"{"actionGroup":"g","function":"look","sessionId":"s","sessionAttributes":{"user":"u","user":"v"}}"#;
    let invocation = Invocation { payload: payload.into(), ..Invocation::default() };
    let answer = world.handler.handle(invocation).await.expect("an answer");
    assert!(answer.get("sessionAttributes").is_none(), "{answer}");
    assert_eq!(world.updates(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_does_not_answer_stops_no_call() {
    let world = World::under(calls(1)).await;
    let blind = World { handler: handler(&world.looks, &world.metrics, calls(1), "http://127.0.0.1:1"), ..world };
    for _ in 0..3 {
        assert_eq!(look(&blind, "s-1", &["a"]).await, ["\"there\""]);
    }
}
