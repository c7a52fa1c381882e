//! Bedrock, as far as a loop sees it: `POST /model/{id}/converse` and `…/converse-stream`, with event-stream framing.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use aws_smithy_eventstream::frame::write_message_to;
use aws_smithy_types::event_stream::{Header, HeaderValue, Message};
use axum::{
    Router,
    body::Body,
    extract::{Path, Request, State},
    http::{Response, StatusCode},
    routing::post,
};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

/// What one request is answered with.
#[derive(Clone, Debug)]
pub enum Reply {
    /// This Converse response; as events where a stream was asked for.
    Whole(Value),
    /// These very bytes.
    Raw(&'static str),
    /// This status with this error code; the text of the error holds SECRET-1.
    Refused(u16, &'static str),
    /// The same with this text.
    Says(u16, &'static str, &'static str),
    /// Nothing, for ever.
    Silence,
    /// The connection breaks in the middle of the answer: after so many events, where it is a stream.
    BrokenOff(Value, usize),
    /// A stream that ends with this exception, after so many events.
    Exception(Value, usize, &'static str),
    /// A stream that stands still for ever, after so many events.
    Stalled(Value, usize),
    /// These very events, by type and payload.
    Events(Vec<(&'static str, Value)>),
}

/// A response with one text.
pub fn says(text: &str) -> Reply {
    Reply::Whole(response("end_turn", &json!([{"text": text}])))
}

/// A response with these calls: id, tool, input.
pub fn calls<const N: usize>(calls: [(&str, &str, Value); N]) -> Reply {
    let blocks = calls.map(|(id, name, input)| json!({"toolUse": {"toolUseId": id, "name": name, "input": input}}));
    Reply::Whole(response("tool_use", &blocks.into_iter().collect()))
}

fn response(stop_reason: &str, content: &Value) -> Value {
    json!({
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": stop_reason,
        "usage": {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15},
        "metrics": {"latencyMs": 1},
    })
}

type Answering = Box<dyn Fn(&Value) -> Reply + Send>;

#[derive(Default)]
struct Script {
    replies: VecDeque<Reply>,
    answering: Option<Answering>,
    requests: Vec<Value>,
    paths: Vec<String>,
}

/// The endpoint. Serves until the test's runtime ends.
#[derive(Clone)]
pub struct Converse {
    address: SocketAddr,
    script: Arc<Mutex<Script>>,
}

impl Converse {
    /// Answers with these, in order; then with the last one for ever.
    pub async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let script = Arc::new(Mutex::new(Script { replies: replies.into_iter().collect(), ..Script::default() }));
        let router = Router::new().route("/model/{id}/{operation}", post(answer)).with_state(Arc::clone(&script));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, script }
    }

    /// Answers each request by what it says.
    pub async fn answering(answer: impl Fn(&Value) -> Reply + Send + 'static) -> Self {
        let endpoint = Self::start([]).await;
        endpoint.script.lock().unwrap().answering = Some(Box::new(answer));
        endpoint
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The bodies of the requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.script.lock().unwrap().requests.clone()
    }

    /// `{model}/{operation}` of the requests so far.
    pub fn paths(&self) -> Vec<String> {
        self.script.lock().unwrap().paths.clone()
    }

    /// From now on answers with these.
    pub fn then(&self, replies: impl IntoIterator<Item = Reply>) {
        self.script.lock().unwrap().replies = replies.into_iter().collect();
    }
}

async fn answer(
    State(script): State<Arc<Mutex<Script>>>,
    Path((model, operation)): Path<(String, String)>,
    request: Request,
) -> Response<Body> {
    let body = axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
    let reply = {
        let mut script = script.lock().unwrap();
        script.requests.push(serde_json::from_slice(&body).unwrap());
        script.paths.push(format!("{model}/{operation}"));
        match &script.answering {
            Some(answering) => answering(script.requests.last().unwrap()),
            None if script.replies.len() > 1 => script.replies.pop_front().unwrap(),
            None => script.replies[0].clone(),
        }
    };
    match (operation.as_str(), reply) {
        (_, Reply::Silence) => std::future::pending().await,
        (_, Reply::Refused(status, code)) => refused(status, code, "SECRET-1: too many tokens for you"),
        (_, Reply::Says(status, code, text)) => refused(status, code, text),
        ("converse", Reply::Whole(response)) => plain(Body::from(response.to_string())),
        ("converse", Reply::Raw(body)) => plain(Body::from(body)),
        ("converse", Reply::BrokenOff(..)) => plain(Body::from_stream(stream::iter([
            Ok(Bytes::from_static(b"{\"output\":")),
            Err(std::io::Error::other("the connection breaks")),
        ]))),
        ("converse-stream", Reply::Whole(response)) => streamed(events(&response), End::Closed),
        ("converse-stream", Reply::Events(events)) => streamed(events, End::Closed),
        ("converse-stream", Reply::BrokenOff(response, after)) => streamed(first(&response, after), End::Broken),
        ("converse-stream", Reply::Stalled(response, after)) => streamed(first(&response, after), End::Never),
        ("converse-stream", Reply::Exception(response, after, name)) => {
            streamed(first(&response, after), End::Exception(name))
        }
        (operation, reply) => panic!("{operation} cannot be answered with {reply:?}"),
    }
}

fn plain(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert("content-type", "application/json".parse().unwrap());
    response
}

fn refused(status: u16, code: &'static str, text: &str) -> Response<Body> {
    let mut response = plain(Body::from(json!({"message": text}).to_string()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response.headers_mut().insert("x-amzn-errortype", code.parse().unwrap());
    response
}

#[derive(Clone, Copy)]
enum End {
    Closed,
    Broken,
    Never,
    Exception(&'static str),
}

fn streamed(events: Vec<(&'static str, Value)>, end: End) -> Response<Body> {
    let events = stream::iter(events).then(async |(name, payload)| {
        tokio::time::sleep(Duration::from_millis(1)).await; // so that each is a chunk of its own
        Ok::<_, std::io::Error>(frame("event", ":event-type", name, &payload))
    });
    let end = match end {
        End::Closed => stream::empty().boxed(),
        End::Broken => stream::iter([Err(std::io::Error::other("the connection breaks"))]).boxed(),
        End::Never => stream::pending().boxed(),
        End::Exception(name) => {
            let payload = json!({"message": "SECRET-1: overloaded"});
            stream::iter([Ok(frame("exception", ":exception-type", name, &payload))]).boxed()
        }
    };
    let mut response = Response::new(Body::from_stream(events.chain(end)));
    response.headers_mut().insert("content-type", "application/vnd.amazon.eventstream".parse().unwrap());
    response
}

/// Prelude, headers, payload and both checksums.
fn frame(kind: &'static str, header: &'static str, name: &'static str, payload: &Value) -> Bytes {
    let text = |name: &'static str, value: &'static str| Header::new(name, HeaderValue::String(value.into()));
    let message = Message::new(payload.to_string())
        .add_header(text(":message-type", kind))
        .add_header(text(header, name))
        .add_header(text(":content-type", "application/json"));
    let mut bytes = Vec::new();
    write_message_to(&message, &mut bytes).unwrap();
    bytes.into()
}

fn first(response: &Value, count: usize) -> Vec<(&'static str, Value)> {
    events(response).into_iter().take(count).collect()
}

/// A response as Bedrock streams it: texts word by word, inputs in pieces of four characters.
fn events(response: &Value) -> Vec<(&'static str, Value)> {
    let mut events = vec![("messageStart", json!({"role": "assistant"}))];
    for (index, block) in response["output"]["message"]["content"].as_array().unwrap().iter().enumerate() {
        let mut delta = |delta: Value| {
            events.push(("contentBlockDelta", json!({"contentBlockIndex": index, "delta": delta})));
        };
        if let Some(text) = block["text"].as_str() {
            text.split_inclusive(' ').for_each(|word| delta(json!({ "text": word })));
        } else if let Some(reasoning) = block["reasoningContent"].get("reasoningText") {
            delta(json!({"reasoningContent": {"text": reasoning["text"]}}));
            delta(json!({"reasoningContent": {"signature": reasoning["signature"]}}));
        } else if let Some(redacted) = block["reasoningContent"].get("redactedContent") {
            delta(json!({"reasoningContent": {"redactedContent": redacted}}));
        } else if let Some(asked) = block.get("toolUse") {
            let start = json!({"toolUse": {"toolUseId": asked["toolUseId"], "name": asked["name"]}});
            events.push(("contentBlockStart", json!({"contentBlockIndex": index, "start": start})));
            let input = asked["input"].to_string().chars().collect::<Vec<_>>();
            for piece in input.chunks(4) {
                let piece: String = piece.iter().collect();
                let delta = json!({"toolUse": {"input": piece}});
                events.push(("contentBlockDelta", json!({"contentBlockIndex": index, "delta": delta})));
            }
        }
        events.push(("contentBlockStop", json!({"contentBlockIndex": index})));
    }
    events.push(("messageStop", json!({"stopReason": response["stopReason"]})));
    events.push(("metadata", json!({"usage": response["usage"], "metrics": response["metrics"]})));
    events
}
