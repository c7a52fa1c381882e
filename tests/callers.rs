//! Who asks, and what they may: from the event and the host's headers to the tool, the key and the policy.
#![cfg(feature = "dev")]

mod support;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use action_group::{
    authorise::{Authorise, Decision},
    call::Pipeline,
    clock::Clock,
    handler::{Handler, Terms},
    runtime::Invocation,
    telemetry::Telemetry,
    tool::{CallContext, Caller, Definition, Effect, Policy, Success, Tool, ToolError, Toolbox},
};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use support::{Database, Lines, terms};

/// Note a thing.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Note {
    /// The thing to note.
    #[schemars(extend("examples" = ["A"]))]
    #[allow(dead_code, reason = "only its schema counts here")]
    thing: String,
}

/// Remembers who called, and does nothing else.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<Caller>>>);

impl Notes {
    fn last(&self) -> Caller {
        self.0.lock().unwrap().last().cloned().expect("a call")
    }

    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl Tool for Notes {
    const NAME: &'static str = "note";
    type Args = Note;
    type Output = &'static str;

    fn policy(&self) -> Policy<Note> {
        Policy::new(Effect::Once)
    }

    async fn call(&self, _: Note, context: &CallContext) -> Result<Success<Self::Output>, ToolError> {
        self.0.lock().unwrap().push(context.caller().clone());
        Ok("noted".into())
    }
}

struct World {
    handler: Handler,
    notes: Notes,
    metrics: Lines,
    _database: Database,
}

impl World {
    async fn new() -> Self {
        let (database, notes, metrics) = (Database::start().await, Notes::default(), Lines::default());
        let toolbox = Toolbox::builder().tool(notes.clone()).build().expect("a toolbox");
        let telemetry = Telemetry::new("N", "s", Clock::system(), Box::new(metrics.clone()));
        let pipeline = Pipeline::new(Arc::new(toolbox), database.store(), Arc::new(telemetry));
        let terms = Terms { identity_header: Some(String::from("X-User")), ..terms(Duration::from_secs(5)) };
        Self { handler: Handler::new(pipeline, terms), notes, metrics, _database: database }
    }

    async fn under(policy: impl Authorise) -> Self {
        let world = Self::new().await;
        Self { handler: world.handler.authorised_by(policy), ..world }
    }

    async fn ask(&self, invocation: Invocation) -> Value {
        self.handler.handle(invocation).await.expect("an answer")
    }
}

fn converse() -> Invocation {
    let event = json!({"toolUse": {"toolUseId": "t1", "name": "note", "input": {"thing": "A"}}});
    Invocation { payload: event.to_string().into(), request_id: "r-1".into(), ..Invocation::default() }
}

fn gateway(custom: Value) -> Invocation {
    let mut custom = custom;
    custom["bedrockAgentCoreToolName"] = json!("t___note");
    let context = json!({ "custom": custom }).to_string();
    let payload = json!({"thing": "A"}).to_string().into();
    Invocation { payload, client_context: Some(context.into()), request_id: "r-1".into(), ..Invocation::default() }
}

fn agent(mut event: Value) -> Invocation {
    event["actionGroup"] = json!("g");
    event["function"] = json!("note");
    event["parameters"] = json!([{"name": "thing", "type": "string", "value": "A"}]);
    Invocation { payload: event.to_string().into(), request_id: "r-1".into(), ..Invocation::default() }
}

fn by(identity: &str, tenant: &str) -> Invocation {
    Invocation { identity: Some(identity.into()), tenant: Some(tenant.into()), ..converse() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_learns_what_the_gateway_has_passed_on() {
    let world = World::new().await;
    world
        .ask(gateway(json!({
            "bedrockAgentCorePropagatedHeaders": {"X-Shop": "oslo", "n": 1},
            "bedrockagentcorepropagatedqueryparameters": {"page": "2"},
        })))
        .await;
    let caller = world.notes.last();
    assert_eq!((caller.header("x-shop"), caller.header("n")), (Some("oslo"), None));
    assert_eq!(caller.query_parameter("page"), Some("2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_learns_the_session_and_its_attributes() {
    let world = World::new().await;
    let attributes = json!({
        "sessionId": "s-1",
        "sessionAttributes": {"user": "u-1", "no text": 1},
        "promptSessionAttributes": {"day": "Monday"},
    });
    world.ask(agent(attributes)).await;
    let caller = world.notes.last();
    assert_eq!(caller.conversation(), Some("s-1"));
    assert_eq!((caller.session_attribute("user"), caller.session_attribute("no text")), (Some("u-1"), None));
    assert_eq!((caller.prompt_session_attribute("day"), caller.session_attribute("day")), (Some("Monday"), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_learns_what_lambda_says_and_no_event_can_say_it() {
    let world = World::new().await;
    world.ask(by("eu-central-1:1", "t-1")).await;
    let caller = world.notes.last();
    assert_eq!((caller.identity(), caller.tenant()), (Some("eu-central-1:1"), Some("t-1")));

    let claims = json!({"identity": "i", "tenant": "t", "tenantId": "t", "identityId": "i", "sessionId": "s-1"});
    world.ask(agent(claims)).await;
    let caller = world.notes.last();
    assert_eq!((caller.identity(), caller.tenant()), (None, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_body_at_the_gateway_says_nothing_about_the_caller() {
    let world = World::new().await;
    let lie = json!({"thing": "A", "sessionAttributes": {"user": "root"}, "sessionId": "s"});
    let answer = world.ask(Invocation { payload: lie.to_string().into(), ..gateway(json!({})) }).await;
    assert_eq!((&answer["ok"], world.notes.count()), (&json!(false), 0), "it is nothing but arguments");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_there_is_no_conversation_the_identity_tells_two_actions_apart_and_the_tenant_always_does() {
    let world = World::new().await;
    for (invocation, runs, what) in [
        (by("a", "t-1"), 1, "the first call"),
        (by("b", "t-1"), 2, "another identity"),
        (by("a", "t-2"), 3, "another tenant"),
        (by("a", "t-1"), 3, "the first caller again"),
        (converse(), 4, "nobody in particular"),
        (converse(), 4, "nobody again"),
        (agent(json!({"sessionId": "s-1"})), 5, "a conversation"),
        (Invocation { identity: Some("a".into()), ..agent(json!({"sessionId": "s-1"})) }, 5, "the same conversation"),
        (
            Invocation { tenant: Some("t-1".into()), ..agent(json!({"sessionId": "s-1"})) },
            6,
            "another tenant's session",
        ),
        (Invocation { identity: Some("s-1".into()), ..converse() }, 7, "an identity like the session's id"),
    ] {
        world.ask(invocation).await;
        assert_eq!(world.notes.count(), runs, "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_converse_events_session_keeps_equal_calls_of_two_conversations_apart() {
    let world = World::new().await;
    for (session, id, runs, replayed) in
        [("s-1", "t1", 1, false), ("s-2", "t1", 2, false), ("s-1", "t2", 2, true), ("s-2", "t1", 2, true)]
    {
        let call = json!({"toolUseId": id, "name": "note", "input": {"thing": "A", "sessionId": "mine"}});
        let sly =
            Invocation { payload: json!({"toolUse": call, "sessionId": session}).to_string().into(), ..converse() };
        assert_eq!(world.ask(sly).await["toolResult"]["status"], "error", "the model's own is an unknown field");
        let call = json!({"toolUseId": id, "name": "note", "input": {"thing": "A"}});
        let event = json!({"toolUse": call, "sessionId": session}).to_string();
        let answer = world.ask(Invocation { payload: event.into(), ..converse() }).await;
        assert_eq!(
            (world.notes.count(), answer.to_string().contains("earlier, equal call")),
            (runs, replayed),
            "{session}"
        );
        let other = agent(json!({ "sessionId": session }));
        world.ask(other).await;
        assert_eq!(world.notes.count(), runs, "one conversation is one, whatever the door");
    }
    assert_eq!(world.notes.last().conversation(), Some("s-2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_header_that_is_trusted_names_the_gateways_user_unless_lambda_does() {
    let world = World::new().await;
    let user = |name: &str| gateway(json!({ "bedrockAgentCorePropagatedHeaders": { "x-user": name, "other": "o" } }));
    for (invocation, identity, runs) in [
        (user("a"), Some("a"), 1),
        (user("b"), Some("b"), 2),
        (user("a"), Some("b"), 2), // a replay: nobody new was seen
        (Invocation { identity: Some("cognito".into()), ..user("a") }, Some("cognito"), 3),
        (gateway(json!({ "bedrockAgentCorePropagatedHeaders": { "other": "a" } })), None, 4),
        (gateway(json!({ "bedrockAgentCorePropagatedHeaders": { "x-user": "a", "X-User": "b" } })), None, 4),
    ] {
        world.ask(invocation).await;
        assert_eq!((world.notes.last().identity(), world.notes.count()), (identity, runs));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_cannot_be_named_so_that_it_is_another_tenants_conversation() {
    let world = World::new().await;
    let session = |tenant: &str, session: &str| Invocation {
        tenant: Some(tenant.into()),
        ..agent(json!({ "sessionId": session }))
    };
    world.ask(session("t", "x:conversation:y")).await;
    world.ask(session("t:conversation:x", "y")).await;
    assert_eq!(world.notes.count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_about_the_caller_is_in_answers_and_metrics() {
    let world = World::under(|_: &Definition, _: &Value, _: &Caller| Decision::deny("rule-7")).await;
    let secret = gateway(json!({
        "bedrockAgentCorePropagatedHeaders": {"authorization": "SECRET"},
        "bedrockAgentCorePropagatedQueryParameters": {"token": "SECRET"},
    }));
    let secret = Invocation { identity: Some("SECRET".into()), tenant: Some("SECRET".into()), ..secret };
    let answer = world.ask(secret.clone()).await;
    assert_eq!(answer["error"]["kind"], "denied");
    let told = format!("{answer}{}{secret:?}", world.metrics.text());
    assert!(!told.contains("SECRET") && !told.contains("rule-7"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_sees_tool_arguments_and_caller_and_its_refusal_is_flat() {
    let policy = |tool: &Definition, arguments: &Value, caller: &Caller| {
        let may = caller.tenant() == Some("good") && tool.name == "note" && arguments["thing"] == "A";
        if may { Decision::Allow } else { Decision::deny("good-tenants") }
    };
    let world = World::under(policy).await;
    let refused = world.ask(by("i", "bad")).await;
    assert_eq!(refused["toolResult"]["status"], "error");
    let text = &refused["toolResult"]["content"][0]["text"];
    assert_eq!(text, "The caller may not make this call. This call changed nothing.");
    assert_eq!(world.notes.count(), 0);
    assert!(world.metrics.text().contains("\"Denied\":1"), "{}", world.metrics.text());
    let allowed = world.ask(by("i", "good")).await;
    assert_eq!((&allowed["toolResult"]["status"], world.notes.count()), (&json!("success"), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_make_a_call_gets_no_result_of_an_earlier_one_either() {
    let world = World::new().await;
    world.ask(converse()).await;
    let closed = World {
        handler: world.handler.authorised_by(|_: &Definition, _: &Value, _: &Caller| Decision::deny("closed")),
        ..world
    };
    let answer = closed.ask(converse()).await;
    assert_eq!(answer["toolResult"]["status"], "error", "{answer}");
    assert!(!answer.to_string().contains("noted"));
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_arguments_never_reach_the_policy() {
    let policy = |_: &Definition, _: &Value, _: &Caller| -> Decision { panic!("it was asked") };
    let world = World::under(policy).await;
    let answer = world.ask(Invocation { payload: "{}".into(), ..gateway(json!({})) }).await;
    assert_eq!(answer["error"]["kind"], "invalid_input");
}

/// A policy that never answers.
struct Silent;

impl Authorise for Silent {
    fn authorise<'a>(&'a self, _: &'a Definition, _: &'a Value, _: &'a Caller) -> BoxFuture<'a, Decision> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_cannot_decide_lets_nothing_pass() {
    let unavailable = |_: &Definition, _: &Value, _: &Caller| Decision::Unavailable;
    // Past the hook, which may take longer to print a backtrace than there is time.
    let panics = |_: &Definition, _: &Value, _: &Caller| -> Decision { std::panic::resume_unwind(Box::new("secret")) };
    let soon = || Some(tokio::time::Instant::now() + Duration::from_millis(700));
    for (world, kind) in [
        (World::under(unavailable).await, "transient"),
        (World::under(panics).await, "internal"),
        (World::under(Silent).await, "transient"),
    ] {
        let answer = world.ask(Invocation { deadline: soon(), ..gateway(json!({})) }).await;
        assert_eq!((&answer["error"]["kind"], &answer["error"]["changed"]), (&json!(kind), &json!("nothing")));
        assert_eq!(world.notes.count(), 0);
    }
}
