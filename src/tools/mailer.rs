//! The mail service: a seam that the local program fills with a mailer of its own.

use std::{fmt, future::ready, time::Duration};

use aws_config::SdkConfig;
use aws_sdk_sesv2::{
    Client,
    config::{Builder, retry::RetryConfig, timeout::TimeoutConfig},
    error::SdkError,
    operation::send_email::SendEmailError,
    types::{Body, Content, Destination, EmailContent, Message, MessageTag},
};
use futures_util::future::BoxFuture;

use crate::tool::{Reconciled, ToolError};

/// One e-mail to send.
#[derive(Clone)]
pub struct Email {
    /// The recipient.
    pub to: String,
    /// The subject, one line.
    pub subject: String,
    /// Plain text.
    pub body: String,
    /// The key of the call, by which the mail can be found again.
    pub reference: String,
    /// When to give up.
    pub time_left: Duration,
}

impl fmt::Debug for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Email").field("reference", &self.reference).finish_non_exhaustive()
    }
}

/// Sends mail. An implementation never tries twice: nobody behind it would notice that it is the same mail.
pub trait Mailer: Send + Sync + 'static {
    /// The id of the message that was sent.
    fn send(&self, email: Email) -> BoxFuture<'_, Result<String, ToolError>>;

    /// Whether the mail with this reference was sent, with the id of the message. The default cannot tell.
    fn find<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<Reconciled<String>, ToolError>> {
        let _ = reference;
        Box::pin(ready(Ok(Reconciled::Unknown)))
    }
}

/// Amazon SES. It cannot be asked what it has sent, but it repeats the tag `call` in the events that it publishes: a
/// deployment that keeps those can implement [`Mailer::find`] on them.
#[derive(Debug)]
pub struct SesMailer {
    client: Client,
    from: String,
}

impl SesMailer {
    /// Sends from this address, which SES must have verified; in SES's sandbox the recipients too.
    ///
    /// The SDK's retries are off for this client. It retries every 5xx and every timeout without knowing whether the
    /// mail went out before, and SES has no idempotency key: a retry of a mail that was sent sends it twice. What is
    /// safe to try again, the pipeline tries again.
    pub fn new(sdk: &SdkConfig, from: impl Into<String>) -> Self {
        let config = Builder::from(sdk).retry_config(RetryConfig::disabled()).build();
        Self { client: Client::from_conf(config), from: from.into() }
    }

    async fn send_once(&self, email: Email) -> Result<String, ToolError> {
        let utf8 = |text: String| Content::builder().data(text).charset("UTF-8").build();
        let message = || -> Result<Message, aws_sdk_sesv2::error::BuildError> {
            let body = Body::builder().text(utf8(email.body)?).build();
            Ok(Message::builder().subject(utf8(email.subject)?).body(body).build())
        };
        let tag = MessageTag::builder().name("call").value(&email.reference).build();
        let tag = tag.map_err(|error| ToolError::internal(error).nothing_sent())?;
        let message = message().map_err(|error| ToolError::internal(error).nothing_sent())?;
        let time_limit = TimeoutConfig::builder().operation_timeout(email.time_left).build();
        let sent = self
            .client
            .send_email()
            .from_email_address(&self.from)
            .destination(Destination::builder().to_addresses(email.to).build())
            .content(EmailContent::builder().simple(message).build())
            .email_tags(tag)
            .customize()
            .config_override(Builder::new().timeout_config(time_limit))
            .send()
            .await
            .map_err(not_sent)?;
        Ok(sent.message_id.unwrap_or_default())
    }
}

impl Mailer for SesMailer {
    fn send(&self, email: Email) -> BoxFuture<'_, Result<String, ToolError>> {
        Box::pin(self.send_once(email))
    }
}

/// SES says `MessageRejected` of two unlike things. An address that is not verified (the sender's, or in SES's sandbox the
/// recipient's) is no fault of the user: who runs the function has to verify it. Only the message tells which; it is read
/// here, and shown to nobody.
fn not_sent(error: SdkError<SendEmailError, aws_sdk_sesv2::config::http::HttpResponse>) -> ToolError {
    match error.as_service_error() {
        Some(SendEmailError::MessageRejected(why)) if why.message().is_some_and(|why| why.contains("not verified")) => {
            ToolError::internal(error).nothing_sent().named(String::from("MessageRejected: not verified"))
        }
        Some(SendEmailError::MessageRejected(_)) => ToolError::rejected(
            "The mail service does not take this e-mail. Check the address with the user, and keep to plain content.",
        )
        .with_source(error)
        .named(String::from("MessageRejected")),
        _ => ToolError::from_sdk_unretried(error, "The mail service"),
    }
}
