//! `send_email`: nobody dedupes it and nothing takes it back, so the effect is [`Effect::Once`].

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::mailer::{Email, Mailer};
use crate::tool::{CallContext, Effect, Policy, Reconciled, Route, Success, Tool, ToolError};

/// Send one plain-text e-mail to one person. It cannot be taken back. Do not send the same e-mail twice.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The recipient's e-mail address, for example ada@example.com.
    #[schemars(email, length(max = 254), extend("examples" = ["ada@example.com"]))]
    to: String,
    /// The subject: one line of 1 to 200 characters.
    #[schemars(
        length(min = 1, max = 200),
        regex(pattern = r"^[^\r\n]+$"),
        extend("examples" = ["Your refund for ORD-12345"])
    )]
    subject: String,
    /// The text of the e-mail, in 1 to 10000 characters.
    #[schemars(length(min = 1, max = 10_000), extend("examples" = ["Dear Ada, your refund is on its way."]))]
    body: String,
}

#[derive(Debug, Serialize)]
pub struct Sent {
    message_id: String,
    to: String,
}

pub struct SendEmail {
    pub mailer: Arc<dyn Mailer>,
}

impl Tool for SendEmail {
    const NAME: &'static str = "send_email";
    const ROUTE: Option<Route> = Some(Route::post("/emails"));
    type Args = Args;
    type Output = Sent;

    fn policy(&self) -> Policy<Args> {
        Policy::new(Effect::Once)
            .when_nothing_changed("No e-mail was sent.")
            .when_unknown("It is not known whether the e-mail was sent. Ask the recipient before you send it again.")
    }

    async fn call(&self, args: Args, context: &CallContext) -> Result<Success<Sent>, ToolError> {
        let email = Email {
            to: args.to.clone(),
            subject: args.subject,
            body: args.body,
            reference: context.idempotency_key().unwrap_or_default().to_owned(),
            time_left: context.time_left(),
        };
        let message_id = self.mailer.send(email).await?;
        Ok(Sent { message_id, to: args.to }.into())
    }

    async fn reconcile(&self, args: Args, context: &CallContext) -> Result<Reconciled<Sent>, ToolError> {
        let reference = context.idempotency_key().unwrap_or_default();
        Ok(match self.mailer.find(reference).await? {
            Reconciled::Done(message_id) => Reconciled::Done(Sent { message_id, to: args.to }),
            Reconciled::NotDone => Reconciled::NotDone,
            Reconciled::Unknown => Reconciled::Unknown,
        })
    }
}
