//! The loop as a Lambda function: one event is one turn, and the answer is its report.
//!
//! | event | answer |
//! | --- | --- |
//! | `{"conversation": "c-1", "message": "Refund my order."}` | `{"ok": true, "conversation": "c-1", "report": {…}}` |
//! | `{"conversation": "c-1", "resume": true}` | the same: the turn goes on where it stopped, or after a decision on what waits |
//! | a turn that could not be driven | `{"ok": false, "conversation": "c-1", "error": {"kind", "message", "retryable"}}` |
//!
//! `kind` is `busy` (another invocation drives the conversation; the message says which one, and until when), `not_found`, `too_large`, `unreadable` or `unavailable`.
//!
//! Whoever may invoke it may speak in any conversation whose id they name: the ids are the application's to choose and to
//! keep apart. Of a function with tenant isolation, each tenant has conversations of its own.

use std::{io::stdout, time::Duration};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    bedrock::Bedrock,
    report::Report,
    settings::LoopSettings,
    store::ConversationTable,
    turn::{Agent, TurnContext, TurnError, Wish},
};
use crate::{
    app,
    aws::{self, RetryMode},
    call::Deadline,
    clock::Clock,
    door,
    env::Env,
    payload,
    runtime::{Answer, Serve},
    runtime::{FunctionError, Invocation},
    settings::Settings,
    start::StartError,
    tool::{Caller, fault_of},
    tools,
};

/// Serves turns.
#[derive(Debug)]
pub struct AgentFunction {
    agent: Agent,
    reserve: Duration,
    default_budget: Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Event {
    conversation: String,
    message: Option<String>,
    #[serde(default)]
    resume: bool,
}

impl AgentFunction {
    /// The agent of this deployment: settings from the environment, the tools of `src/tools`, metrics to stdout.
    ///
    /// # Errors
    ///
    /// Every fault of the settings at once; else every fault of the tools.
    pub async fn build() -> Result<Self, StartError> {
        let mut env = Env::process();
        let settings = Settings::read(&mut env);
        let own = tools::Settings::read(&mut env);
        let of_the_loop = LoopSettings::read(&mut env);
        env.finish()?;
        let sdk = aws::sdk_config(settings.retry_mode).await;
        let toolbox = tools::toolbox(tools::Backends::new(&own, &sdk))?;
        let faults = door::faults(&toolbox, &[door::CONVERSE]);
        if !faults.is_empty() {
            return Err(StartError::Doors(faults.join("\n")));
        }
        if let Some(fault) = ConversationTable::fault(of_the_loop.keep, &toolbox) {
            return Err(StartError::Other(fault));
        }
        let client = aws_sdk_dynamodb::Client::new(&aws::sdk_config(RetryMode::Standard).await);
        let table = ConversationTable::new(client, of_the_loop.conversations_table, Clock::system(), of_the_loop.keep);
        let model = Box::new(Bedrock::new(&sdk, of_the_loop.model));
        let pipeline = app::pipeline(&settings, toolbox, &sdk, Box::new(stdout()));
        let agent = Agent::new(model, pipeline, table, of_the_loop.limits).with_system(of_the_loop.system);
        Ok(Self { agent, reserve: settings.reserve, default_budget: settings.default_budget })
    }
}

impl Serve for AgentFunction {
    async fn serve(&self, invocation: Invocation) -> Answer {
        let (conversation, wish) = read(&invocation.payload)?;
        let tenant = invocation.tenant.unwrap_or_default();
        let identity = invocation.identity.unwrap_or_default();
        let context = TurnContext {
            driver: format!("the invocation {}", invocation.request_id),
            request_id: invocation.request_id,
            trace_id: invocation.trace_id,
            deadline: Deadline::new(invocation.deadline, self.reserve, self.default_budget),
            caller: Caller::default().with_tenant(&tenant).with_identity(identity),
        };
        let turn = self.agent.turn(&among(&tenant, &conversation), wish, context, &mut |_| {}).await;
        Ok(match turn {
            Ok(report) => driven(&conversation, &report),
            Err(error) => refused(&conversation, &error),
        })
    }

    fn end(&self) {
        self.agent.end();
    }
}

/// The id in the table: a tenant's conversations are its own.
fn among(tenant: &str, conversation: &str) -> String {
    if tenant.is_empty() { conversation.to_owned() } else { format!("{tenant}/{conversation}") }
}

fn driven(conversation: &str, report: &Report) -> Value {
    let Report { stop, steps, tool_calls, .. } = report;
    tracing::info!(conversation, %stop, steps, tool_calls, tokens = report.tokens(), "a turn has ended");
    json!({"ok": true, "conversation": conversation, "report": report.to_json()})
}

fn refused(conversation: &str, error: &TurnError) -> Value {
    tracing::warn!(conversation, kind = error.name(), fault = fault_of(error), "a turn could not be driven");
    tracing::trace!(conversation, cause = ?std::error::Error::source(error), "cause");
    let error = json!({"kind": error.name(), "message": error.to_string(), "retryable": error.retryable()});
    json!({"ok": false, "conversation": conversation, "error": error})
}

/// Reads an event.
fn read(bytes: &[u8]) -> Result<(String, Wish), FunctionError> {
    let refusal = |text: &str| FunctionError::new("InvalidPayload", text);
    let read = payload::read(bytes).map_err(|unreadable| refusal(&unreadable.to_string()))?;
    if let Some(flaw) = read.flaw {
        return Err(refusal(&flaw));
    }
    let event: Event = serde_json::from_value(read.value).map_err(|_| refusal(FORM))?;
    if !is_conversation(&event.conversation) {
        return Err(refusal(ID));
    }
    match (event.message, event.resume) {
        (Some(message), false) if !message.trim().is_empty() => Ok((event.conversation, Wish::Say(message))),
        (None, true) => Ok((event.conversation, Wish::Resume)),
        _ => Err(refusal(FORM)),
    }
}

const FORM: &str = "The event must be {\"conversation\": …, \"message\": …}, with a message that is not blank, or \
                    {\"conversation\": …, \"resume\": true}.";
const ID: &str = "The conversation must be 1 to 128 of the characters a-z A-Z 0-9 _ . : -";

fn is_conversation(id: &str) -> bool {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
    (1..=128).contains(&id.len()) && id.bytes().all(is_legal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_says_something_or_resumes_and_nothing_else() {
        let said = read(br#"{"conversation": "c-1", "message": "Hello"}"#).expect("an event");
        assert!(said == (String::from("c-1"), Wish::Say(String::from("Hello"))));
        assert!(read(br#"{"conversation": "c-1", "resume": true}"#).is_ok_and(|(_, wish)| wish == Wish::Resume));
        for bad in [
            r#"{"conversation": "c-1"}"#,
            r#"{"conversation": "c-1", "message": " "}"#,
            r#"{"conversation": "c-1", "resume": false}"#,
            r#"{"conversation": "c-1", "message": "Hello", "resume": true}"#,
            r#"{"conversation": "c-1", "message": "Hello", "approve": true}"#,
            r#"{"conversation": "c-1", "message": "Hello", "message": "Bye"}"#,
            r#"{"message": "Hello"}"#,
            r#"{"conversation": "", "message": "Hello"}"#,
            r#"{"conversation": "c/1", "message": "Hello"}"#,
            "[]",
            "Hello",
        ] {
            assert_eq!(read(bad.as_bytes()).err().map(|error| error.error_type), Some("InvalidPayload"), "{bad}");
        }
    }

    #[test]
    fn no_tenant_reaches_the_conversation_of_another() {
        assert_eq!(among("", "c-1"), "c-1");
        assert_eq!(among("t-1", "c-1"), "t-1/c-1");
        assert!(!is_conversation("t-1/c-1"), "a conversation without tenant cannot be spelt as one with");
    }
}
