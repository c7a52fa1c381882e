//! One invocation, from bytes to the answer. The Runtime API loop and the local program both call [`Handler::handle`].

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::future::join_all;
use serde_json::Value;

use crate::{
    authorise::Authorise,
    call::{ANSWER, Call, Deadline, Pipeline, Room, Surroundings, Task, longest},
    conversation_guard::{ConversationLimits, Watch},
    door::{self, Door, Event, Memory, Refusal, Request},
    outcome::{Changed, Failure, FailureKind, Outcome},
    payload::{self, Payload},
    runtime::{Answer, FunctionError, Invocation, MARGIN, Serve},
    telemetry::Origin,
    tool::Entry,
};

const _: () = assert!(MARGIN.as_millis() < ANSWER.as_millis(), "calls must have ended before the runtime ends them");

/// How invocations are timed and which doors are open.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The time kept back before the deadline to record the outcome and answer.
    pub reserve: Duration,
    /// The time an invocation has whose host does not say.
    pub default_budget: Duration,
    /// The propagated header that names the gateway's user, if one can be trusted to.
    pub identity_header: Option<String>,
    /// The limits of a conversation.
    pub limits: ConversationLimits,
    /// The doors that may be used, in the order of detection.
    pub doors: Vec<&'static Door>,
}

/// Serves invocations. One for the life of the process; shared by all workers.
#[derive(Debug)]
pub struct Handler {
    pipeline: Pipeline,
    terms: Terms,
}

impl Handler {
    /// A handler on these terms.
    pub fn new(pipeline: Pipeline, terms: Terms) -> Self {
        Self { pipeline, terms }
    }

    /// The same, with a policy that is asked about each call through its doors. One for all calls of a deployment goes to
    /// [`app::pipeline`](crate::app::pipeline).
    #[must_use]
    pub fn authorised_by(self, policy: impl Authorise) -> Self {
        Self { pipeline: self.pipeline.authorised_by(policy), ..self }
    }

    /// The pipeline that its calls run through, for a loop in this process.
    pub const fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// Answers one invocation, before its deadline, whatever it holds.
    ///
    /// # Errors
    ///
    /// Only where there is no call to answer: bytes that are no JSON, an event that is no tool call.
    pub async fn handle(&self, invocation: Invocation) -> Result<Value, FunctionError> {
        let deadline = Deadline::new(invocation.deadline, self.terms.reserve, self.terms.default_budget);
        let (door, mut request) = self.read(&invocation).inspect_err(|error| {
            tracing::warn!(request_id = invocation.request_id, error_type = error.error_type, "not a tool call");
        })?;
        let origin = Origin::new(door.name, &invocation.request_id, invocation.trace_id.as_deref());
        let around = Surroundings { origin, deadline, limit: door.limit, room: Room::of(door::ANSWER_LIMIT) };
        let (toolbox, store) = (self.pipeline.toolbox(), self.pipeline.store());
        let watch = Watch::begin(&self.terms.limits, &mut request, toolbox, store, &deadline).await;
        let outcomes = self.run(request.calls, around).await;
        let counted = match watch {
            Some(watch) => watch.end(&outcomes, &deadline).await,
            None => None,
        };
        let mut answer = (request.encode)(outcomes);
        if let Some((keep, counts)) = counted {
            keep(&mut answer, &counts);
        }
        Ok(answer)
    }

    /// Runs each call in a task of its own: one that keeps its thread busy, with a large result or with code that blocks,
    /// holds up neither the others nor their answers. When the invocation is dropped, so are its calls.
    async fn run(&self, calls: Vec<Call>, around: Surroundings) -> Vec<Outcome> {
        let around = Arc::new(around);
        let start = |call| {
            let (pipeline, around) = (self.pipeline.clone(), Arc::clone(&around));
            Task::spawn(async move { pipeline.run(call, &around).await })
        };
        let tasks: Vec<_> = calls.into_iter().map(start).collect(); // all begin before the first is waited for
        let outcomes = join_all(tasks).await;
        outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(|_| Outcome::Failure(broken()))).collect()
    }

    /// Warns if `time`, all that an invocation has, is too short for a tool with all its attempts: its calls are then cut
    /// short by the deadline, and not by its timeout.
    pub fn check_time(&self, time: Duration) {
        let Some(tool) = self.pipeline.toolbox().iter().map(Entry::definition).max_by_key(|tool| longest(tool)) else {
            return;
        };
        let needed = longest(tool) + self.terms.reserve;
        if time < needed {
            tracing::warn!(
                tool = tool.name,
                time_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
                needed_ms = u64::try_from(needed.as_millis()).unwrap_or(u64::MAX),
                "The function's timeout is shorter than this tool's with all its attempts. Raise TimeoutSeconds, or lower \
                 the tool's timeout."
            );
        }
    }

    /// The process is to end: calls on their way end by what is known of them.
    pub fn end(&self) {
        self.pipeline.end();
    }

    /// The door, and what it reads in the event.
    fn read(&self, invocation: &Invocation) -> Result<(&'static Door, Request), FunctionError> {
        let invalid = |sentence: String| FunctionError::new("InvalidPayload", sentence);
        let Payload { value, flaw } =
            payload::read(&invocation.payload).map_err(|unreadable| invalid(unreadable.to_string()))?;
        let client_context = client_context(invocation.client_context.as_deref())?;
        let event = Event { body: value, flawed: flaw.is_some(), client_context };
        let found = door::detect(&event, &self.terms.doors)
            .and_then(|door| Ok((door, (door.decode)(event, self.pipeline.toolbox())?)));
        let found =
            found.map(|(door, request)| (door, attributed(request, invocation, self.terms.identity_header.as_deref())));
        match (found, flaw) {
            (Ok(found), None) => Ok(found),
            (Ok((door, request)), Some(flaw)) if !request.calls.is_empty() => Ok((door, refused(request, &flaw))),
            (_, Some(flaw)) => Err(invalid(format!("The event {flaw}"))),
            (Err(Refusal(sentence)), None) => Err(FunctionError::new("NotAToolCall", sentence)),
        }
    }
}

impl Serve for Handler {
    fn serve(&self, invocation: Invocation) -> impl Future<Output = Answer> + Send {
        self.handle(invocation)
    }

    fn check_time(&self, time: Duration) {
        Handler::check_time(self, time);
    }

    fn end(&self) {
        Handler::end(self);
    }
}

/// The end of a call whose task panicked beyond what the pipeline catches: nobody knows how far it got.
fn broken() -> Failure {
    let text = "The function failed by a fault of its own. Calling it again will not help.";
    Failure::new(FailureKind::Internal, text)
        .with_changed(Changed::Unknown, "It is not known whether anything was changed.")
}

/// The request with what the host says about the caller: the door saw the event only. Where the host names nobody, the
/// header may that the deployment trusts.
fn attributed(request: Request, invocation: &Invocation, identity_header: Option<&str>) -> Request {
    let attribute = |mut call: Call| {
        let header = identity_header.and_then(|name| call.caller.header(name));
        let identity = invocation.identity.as_deref().or(header).unwrap_or_default().to_owned();
        let tenant = invocation.tenant.as_deref().unwrap_or_default();
        call.caller = call.caller.with_identity(identity).with_tenant(tenant);
        call
    };
    Request { calls: request.calls.into_iter().map(attribute).collect(), ..request }
}

/// The request with no call to run: each is answered with the payload's flaw. What a door objects to may only be what the
/// flaw has taken away, such as a name or a role.
fn refused(request: Request, flaw: &str) -> Request {
    let failure = Failure::new(FailureKind::InvalidInput, format!("The event {flaw} So the call was not run."));
    let object = |call: Call| Call { objection: Some(failure.clone()), ..call };
    Request { calls: request.calls.into_iter().map(object).collect(), memory: Memory::None, ..request }
}

/// Reads a client context: JSON, or JSON in base64. An empty one is none.
///
/// One that cannot be read ends the invocation: it may have named the tool, and the payload alone must not choose one.
fn client_context(raw: Option<&[u8]>) -> Result<Option<Value>, FunctionError> {
    let Some(raw) = raw.filter(|raw| !raw.trim_ascii().is_empty()) else { return Ok(None) };
    let decoded = || STANDARD.decode(raw.trim_ascii()).ok().and_then(|json| payload::read(&json).ok());
    let fault = match payload::read(raw).ok().or_else(decoded) {
        Some(Payload { flaw: Some(flaw), .. }) => format!("The client context {flaw}"),
        Some(Payload { value: Value::Null, .. }) => return Ok(None),
        Some(Payload { value: context @ Value::Object(_), .. }) => return Ok(Some(context)),
        _ => String::from("The client context must be a JSON object, as text or in base64, or be left out."),
    };
    Err(FunctionError::new("InvalidClientContext", fault))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_client_context_is_read_as_text_and_in_base64() {
        let context = json!({"custom": {"bedrockAgentCoreToolName": "t___x", "headers": {"a": "b"}}});
        let text = context.to_string();
        assert_eq!(client_context(Some(text.as_bytes())), Ok(Some(context.clone())));
        assert_eq!(client_context(Some(STANDARD.encode(&text).as_bytes())), Ok(Some(context)));
    }

    #[test]
    fn no_client_context_is_none_and_a_broken_one_is_an_error() {
        for none in [None, Some(&b""[..]), Some(b"  "), Some(b"null")] {
            assert_eq!(client_context(none), Ok(None));
        }
        let doubled = br#"{"custom":{"a":1,"a":2}}"#;
        for broken in [&b"not json"[..], b"\"text\"", b"[]", b"\xff", b"{", doubled] {
            assert!(client_context(Some(broken)).is_err(), "{broken:?}");
        }
        let sentence = |raw: &[u8]| client_context(Some(raw)).unwrap_err().error_message;
        for doubled in [&doubled[..], STANDARD.encode(doubled).as_bytes()] {
            assert!(sentence(doubled).starts_with("The client context has the field \"a\" twice"), "{doubled:?}");
        }
        assert!(sentence(b"{\"a\":1e400}").starts_with("The client context holds a number that is too large"));
        assert!(sentence(b"[]").contains("must be a JSON object"));
    }
}
