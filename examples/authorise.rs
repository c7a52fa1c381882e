//! A whole function with a policy: each call is put before a policy engine over HTTP, and runs only if it says so.
//!
//! The engine gets one question a call, in the words that Cedar and its like have for it, and answers with
//! `{"decision": "Allow"}` or `{"decision": "Deny", "rule": "…"}`:
//!
//! ```json
//! {"principal": "u-17", "action": "note", "resource": "tools", "context": {"tenant": "t-1", "arguments": {"thing": "A"}}}
//! ```
//!
//! `docs/doors.md` says how Cedar itself goes into the process. `tests/authorise.rs` runs this program.

use std::{io::stdout, process::ExitCode, time::Duration};

use action_group::{
    app,
    authorise::{Authorise, Decision},
    aws,
    env::Env,
    handler::Handler,
    runtime,
    settings::Settings,
    start::StartError,
    tool::{CallContext, Caller, Definition, Effect, Policy, Success, Tool, ToolError, Toolbox},
};
use futures_util::future::{BoxFuture, FutureExt};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// The policy engine.
struct Engine {
    client: reqwest::Client,
    url: String,
}

/// What it answers.
#[derive(Deserialize)]
struct Answer {
    decision: String,
    #[serde(default)]
    rule: String,
}

impl Engine {
    fn new(url: String) -> Result<Self, StartError> {
        // An error says that the process has a provider already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().timeout(Duration::from_secs(1)).build();
        let client = client.map_err(|error| StartError::Other(format!("TLS cannot be set up: {error}.")))?;
        Ok(Self { client, url })
    }

    async fn ask(&self, question: Value) -> reqwest::Result<Answer> {
        self.client.post(&self.url).json(&question).send().await?.error_for_status()?.json().await
    }
}

impl Authorise for Engine {
    fn authorise<'a>(
        &'a self,
        tool: &'a Definition,
        arguments: &'a Value,
        caller: &'a Caller,
    ) -> BoxFuture<'a, Decision> {
        let question = question(tool, arguments, caller);
        async move {
            match self.ask(question).await {
                Ok(answer) if answer.decision == "Allow" => Decision::Allow,
                Ok(answer) => Decision::deny(answer.rule),
                Err(_) => Decision::Unavailable, // its text may hold the URL
            }
        }
        .boxed()
    }
}

/// Pure, so that it can be tested. The principal is what this deployment trusts: here the session attribute that its own
/// application sets, and never an argument.
fn question(tool: &Definition, arguments: &Value, caller: &Caller) -> Value {
    let principal = caller.identity().or_else(|| caller.session_attribute("user_id"));
    json!({
        "principal": principal.unwrap_or("nobody"),
        "action": tool.name,
        "resource": "tools",
        "context": { "tenant": caller.tenant(), "arguments": arguments },
    })
}

/// Note a thing.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Thing {
    /// The thing to note, for example "milk".
    #[schemars(length(min = 1, max = 80), extend("examples" = ["milk"]))]
    thing: String,
}

struct Note;

impl Tool for Note {
    const NAME: &'static str = "note";
    type Args = Thing;
    type Output = String;

    fn policy(&self) -> Policy<Thing> {
        Policy::new(Effect::ReadOnly)
    }

    async fn call(&self, args: Thing, _: &CallContext) -> Result<Success<String>, ToolError> {
        Ok(format!("noted: {}", args.thing).into())
    }
}

async fn build() -> Result<Handler, StartError> {
    let mut env = Env::process();
    let settings = Settings::read(&mut env);
    let engine = env.url("POLICY_URL");
    env.finish()?;
    let toolbox = Toolbox::builder().tool(Note).build()?;
    let handler = app::assemble(&settings, toolbox, &aws::sdk_config(settings.retry_mode).await, Box::new(stdout()))?;
    Ok(handler.authorised_by(Engine::new(engine)?))
}

fn main() -> ExitCode {
    runtime::main(build)
}
