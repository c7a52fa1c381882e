//! A model on Amazon Bedrock, through `Converse` or `ConverseStream`.
//!
//! | layer | does |
//! | --- | --- |
//! | the SDK's client | signs, sends, repeats what was throttled, not answered or answered by a 5xx: 3 requests at most |
//! | this module | sets the time of each call, turns messages and errors into the SDK's types and back |
//! | the loop | repeats a `ModelTimeout`, `ModelError` or `ModelNotReady` once; nothing else |
//!
//! **Time.** The SDK waits for ever for an answer that never comes, so each call has an `operation_timeout`: all its
//! attempts and waits together. Between two events of a stream neither that counts nor the SDK's protection against streams that
//! stand still; here the same moment ends it, and before that a minute without an event. A message that is whole waits five
//! seconds for its tokens, and is then taken without.
//!
//! **Retries are always `standard`**, whatever `RETRY_MODE` says for the other clients. Adaptive mode delays first attempts
//! after a throttle, for many seconds, and this process asks the model one thing at a time: there is no load to lower, only a
//! deadline to miss.
//!
//! **The retry quota is each call's own.** The SDK's is shared by a whole process and region, and 25 calls that fail empty
//! it; from then on the first 503 of any later conversation is final, long after the storm. A loop ends at its first call
//! that fails, so a storm costs two more requests a conversation, and no more.

mod attempts;
mod blocks;
mod document;
mod failure;
mod request;
mod stream;

use std::time::Duration;

use aws_config::SdkConfig;
use aws_sdk_bedrockruntime::{
    Client, Config,
    config::{
        Builder, StalledStreamProtectionConfig,
        retry::{RetryConfig, RetryPartition},
    },
    primitives::event_stream::EventReceiver,
    types::{ConverseStreamOutput, error::ConverseStreamOutputError},
};
use futures_util::future::BoxFuture;
use tokio::time::{Instant, timeout_at};

use self::{
    attempts::Attempts,
    failure::{failed, failure, sentence, stream_failure},
    request::Request,
    stream::Joined,
};
use crate::{
    agent::{
        drive::{Heard, Model},
        model::{ModelFailure, ModelFailureKind, ModelReply, ModelRequest},
    },
    aws,
};

/// A stream may stand still for as long: a model that thinks sends nothing.
const STALLED: Duration = Duration::from_mins(1);
/// How long a message that is whole waits for what it has cost. Bedrock tells it at once.
const TOLD: Duration = Duration::from_secs(5);
/// Attempts of one call, the first included.
const MAX_ATTEMPTS: u32 = 3;

type Stream = EventReceiver<ConverseStreamOutput, ConverseStreamOutputError>;

/// A model on Bedrock.
#[derive(Debug)]
pub struct Bedrock {
    client: Client,
    model: String,
    streams: bool,
    stalled: Duration,
}

impl Bedrock {
    /// The model of this id (or inference profile), through Converse.
    pub fn new(sdk: &SdkConfig, model: impl Into<String>) -> Self {
        let retries = sdk.retry_config().cloned().unwrap_or_else(RetryConfig::standard);
        let retries = RetryConfig::standard()
            .with_max_attempts(MAX_ATTEMPTS)
            .with_initial_backoff(retries.initial_backoff())
            .with_max_backoff(retries.max_backoff());
        let config = Builder::from(sdk)
            .retry_config(retries)
            .stalled_stream_protection(StalledStreamProtectionConfig::enabled().grace_period(STALLED).build());
        Self { client: Client::from_conf(config.build()), model: model.into(), streams: false, stalled: STALLED }
    }

    /// The same through `ConverseStream`: text is heard as it comes.
    #[must_use]
    pub fn streaming(self) -> Self {
        Self { streams: true, ..self }
    }

    /// The same where a stream may stand still for so long. Default: a minute.
    #[must_use]
    pub fn patient_for(self, stalled: Duration) -> Self {
        Self { stalled, ..self }
    }

    async fn ask(
        &self,
        request: Request,
        limit: Duration,
        heard: &mut (dyn FnMut(Heard<'_>) + Send),
    ) -> Result<ModelReply, ModelFailure> {
        let attempts = Attempts::default();
        let sent = request.send(&self.client, &self.model, terms(limit, &attempts));
        let sent = attempts.tell(sent, heard).await;
        sent.map(|output| blocks::reply(&output)).map_err(|error| failure(&error))
    }

    async fn ask_streaming(
        &self,
        request: Request,
        limit: Duration,
        heard: &mut (dyn FnMut(Heard<'_>) + Send),
    ) -> Result<ModelReply, ModelFailure> {
        let (ends, attempts) = (Instant::now() + limit, Attempts::default());
        let opened = request.open_stream(&self.client, &self.model, terms(limit, &attempts));
        let opened = attempts.tell(opened, heard).await;
        self.listen(opened.map_err(|error| failure(&error))?.stream, ends, heard).await
    }

    /// Joins what comes, until the message is whole or the time is up.
    async fn listen(
        &self,
        mut stream: Stream,
        ends: Instant,
        heard: &mut (dyn FnMut(Heard<'_>) + Send),
    ) -> Result<ModelReply, ModelFailure> {
        let mut joined = Joined::default();
        loop {
            let patience = if joined.is_whole() { self.stalled.min(TOLD) } else { self.stalled };
            let waits_until = ends.min(Instant::now() + patience);
            match timeout_at(waits_until, stream.recv()).await {
                Ok(Ok(Some(event))) => {
                    let hidden = stream::hidden(&event);
                    if hidden > 0 {
                        heard(Heard::Hidden(hidden));
                    }
                    if let Some(text) = joined.take(event) {
                        heard(Heard::Text(&text));
                    }
                }
                Ok(Ok(None)) => break,
                // A message that is whole stays whole, whatever happens to what follows it.
                _ if joined.is_whole() => break,
                Ok(Err(error)) => return Err(stream_failure(&error)),
                Err(_) if waits_until < ends => return Err(failed(ModelFailureKind::Unavailable, STOOD_STILL)),
                Err(_) => return Err(failed(ModelFailureKind::Timeout, sentence(ModelFailureKind::Timeout))),
            }
        }
        joined.reply().ok_or_else(|| failed(ModelFailureKind::Unavailable, BROKEN_OFF))
    }
}

const BROKEN_OFF: &str = "The model's answer broke off in the middle, and nothing of it was run.";
const STOOD_STILL: &str = "The model's answer stood still in the middle, and nothing of it was run.";

impl Model for Bedrock {
    fn converse<'a>(
        &'a self,
        request: &'a ModelRequest,
        limit: Duration,
        heard: &'a mut (dyn FnMut(Heard<'_>) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelFailure>> {
        Box::pin(async move {
            let invalid = |_| failed(ModelFailureKind::Invalid, sentence(ModelFailureKind::Invalid));
            let request = Request::of(request).map_err(invalid)?;
            if self.streams {
                self.ask_streaming(request, limit, heard).await
            } else {
                self.ask(request, limit, heard).await
            }
        })
    }
}

/// What counts for one call only.
fn terms(limit: Duration, attempts: &Attempts) -> Builder {
    let timeouts = aws::timeouts().to_builder().operation_timeout(limit).build();
    let terms = Config::builder().timeout_config(timeouts).interceptor(attempts.clone());
    terms.retry_partition(RetryPartition::custom("converse").build())
}
