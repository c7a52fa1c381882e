//! The tools of these tests: `look` reads, `pay` has an effect and above 100 needs a person, `mail` must happen once.
//! A mail to the boss, and a payment of 13 after an attempt without answer, ask for a person in their own code.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use action_group::tool::{CallContext, Effect, Policy, Success, Tool, ToolError, Toolbox};
use serde_json::{Value, json};

/// What the tools did: tool, argument, idempotency key.
pub type Log = Arc<Mutex<Vec<(&'static str, String, Option<String>)>>>;

/// What to do, by a word: `fail`, `hang`, `slow`, `panic`, `blank`, `huge`, `leak`; else it succeeds.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Look {
    /// What to look for.
    what: String,
}

/// Pay somebody. Above 100 a person has to approve.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pay {
    /// How much.
    #[schemars(extend("examples" = [1]))]
    amount: u32,
}

/// Send a mail.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mail {
    /// To whom.
    to: String,
}

pub struct Looks(Log);
pub struct Pays(Log);
pub struct Mails(Log);

fn note(log: &Log, tool: &'static str, argument: &impl ToString, context: &CallContext) {
    let key = context.idempotency_key().map(ToString::to_string);
    log.lock().unwrap().push((tool, argument.to_string(), key));
}

async fn act(word: &str) -> Result<Success<Value>, ToolError> {
    match word {
        "fail" => Err(ToolError::rejected("That is not allowed.")),
        "missing" => Err(ToolError::not_found("Order 15003 does not exist.")),
        "blank" => Err(ToolError::rejected("   ")),
        "hang" => std::future::pending().await,
        "slow" => {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(json!({"found": "slowly"}).into())
        }
        "panic" => panic!("the tool panics"),
        "huge" => Ok(json!({"text": "é".repeat(1_000_000)}).into()),
        "leak" => Err(ToolError::internal("postgres://user:s3cret@db.internal/x")),
        "nothing" => Ok(Value::Null.into()),
        other => Ok(json!({"found": other}).into()),
    }
}

impl Tool for Looks {
    const NAME: &'static str = "look";
    type Args = Look;
    type Output = Value;

    fn policy(&self) -> Policy<Look> {
        Policy::new(Effect::ReadOnly)
    }

    async fn call(&self, look: Look, context: &CallContext) -> Result<Success<Value>, ToolError> {
        note(&self.0, Self::NAME, &look.what, context);
        act(&look.what).await
    }
}

impl Tool for Pays {
    const NAME: &'static str = "pay";
    type Args = Pay;
    type Output = Value;

    fn policy(&self) -> Policy<Pay> {
        Policy::new(Effect::Keyed)
            .approve_when(|pay: &Pay| pay.amount > 100)
            .when_nothing_changed("Nothing was paid.")
            .when_unknown("It may have been paid. Look at the account.")
    }

    async fn call(&self, pay: Pay, context: &CallContext) -> Result<Success<Value>, ToolError> {
        note(&self.0, Self::NAME, &pay.amount, context);
        if pay.amount == 13 && !context.is_approved() {
            return Err(match context.attempt() {
                1 => ToolError::no_answer("The bank gave no clear answer."),
                _ => ToolError::approval_required("Thirteen is an unlucky number."),
            });
        }
        Ok(json!({"paid": pay.amount}).into())
    }
}

impl Tool for Mails {
    const NAME: &'static str = "mail";
    type Args = Mail;
    type Output = Value;

    fn policy(&self) -> Policy<Mail> {
        Policy::new(Effect::Once)
            .when_nothing_changed("No mail was sent.")
            .when_unknown("The mail may have been sent. Ask the recipient.")
    }

    async fn call(&self, mail: Mail, context: &CallContext) -> Result<Success<Value>, ToolError> {
        note(&self.0, Self::NAME, &mail.to, context);
        match mail.to.as_str() {
            "boss" if !context.is_approved() => Err(ToolError::approval_required("The boss gets few mails.")),
            "lost" => Err(ToolError::no_answer("The mail server gave no clear answer.")),
            other => act(other).await,
        }
    }
}

/// The tools of a later deployment: there is no `mail` any more.
pub fn without_mail() -> Arc<Toolbox> {
    let log = Log::default();
    Arc::new(Toolbox::builder().tool(Looks(log.clone())).tool(Pays(log)).build().expect("good tools"))
}

/// The tools of a deployment that only reads.
pub fn only_look() -> Arc<Toolbox> {
    Arc::new(Toolbox::builder().tool(Looks(Log::default())).build().expect("a good tool"))
}

/// The tools, and what they will have done.
pub fn toolbox() -> (Arc<Toolbox>, Log) {
    let log = Log::default();
    let tools = Toolbox::builder().tool(Looks(log.clone())).tool(Pays(log.clone())).tool(Mails(log.clone()));
    (Arc::new(tools.build().expect("good tools")), log)
}
