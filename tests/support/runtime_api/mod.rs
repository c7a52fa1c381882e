//! A stub of the Lambda Runtime API, which behaves as Lambda does as far as a function can see.

mod event;
mod function;

use std::{
    collections::HashMap,
    net::SocketAddr,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use axum::{
    Router,
    body::Body,
    extract::{Path as UrlPath, State},
    http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode},
    routing::{get, post},
};
use bytes::Bytes;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};

pub use self::{
    event::{Answer, Event},
    function::Function,
};

/// A test that waits longer than this has failed.
const PATIENCE: Duration = Duration::from_mins(1);

struct Pending {
    answer: oneshot::Sender<Answer>,
    refusal: Option<StatusCode>,
    refused: usize,
    ends: Option<Instant>,
}

static APIS: AtomicU64 = AtomicU64::new(0);

struct Shared {
    queue: mpsc::UnboundedSender<(String, Event)>,
    next: tokio::sync::Mutex<mpsc::UnboundedReceiver<(String, Event)>>,
    pending: Mutex<HashMap<String, Pending>>,
    polls: watch::Sender<usize>,
    extension: watch::Sender<bool>,
    start_error: watch::Sender<Option<Value>>,
    count: AtomicU64,
    /// No two invocations of one test have the same id, as on Lambda.
    api: u64,
}

/// The stub. Serves until the test's runtime ends.
#[derive(Clone)]
pub struct RuntimeApi {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl RuntimeApi {
    pub async fn start() -> Self {
        let (queue, next) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            queue,
            next: tokio::sync::Mutex::new(next),
            pending: Mutex::default(),
            polls: watch::Sender::new(0),
            extension: watch::Sender::new(false),
            start_error: watch::Sender::new(None),
            count: AtomicU64::new(1),
            api: APIS.fetch_add(1, Ordering::Relaxed),
        });
        let router = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next_invocation))
            .route("/2018-06-01/runtime/invocation/{id}/{kind}", post(take_answer))
            .route("/2018-06-01/runtime/init/error", post(take_start_error))
            .route("/2020-01-01/extension/register", post(register_extension))
            .route("/2020-01-01/extension/event/next", get(next_extension_event))
            .with_state(Arc::clone(&shared));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, shared }
    }

    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Starts a program as Lambda does, with these variables, those that Lambda sets, and no others.
    pub fn launch(&self, program: impl AsRef<Path>, variables: &[(&str, &str)]) -> Function {
        Function::launch(self.clone(), program.as_ref(), variables)
    }

    /// Hands out an invocation and waits for its answer, which somebody else makes.
    pub async fn invoke(&self, event: Event) -> Answer {
        tokio::time::timeout(PATIENCE, self.hand_out(event)).await.expect("an answer").expect("an answer")
    }

    /// Hands out an invocation; the answer comes later.
    pub fn hand_out(&self, event: Event) -> oneshot::Receiver<Answer> {
        let number = self.shared.count.fetch_add(1, Ordering::Relaxed);
        let id = event.id.clone().unwrap_or_else(|| format!("{:08}-0000-4000-8000-{number:012}", self.shared.api));
        let (answer, answered) = oneshot::channel();
        let ends = event.deadline.map(|time| Instant::now() + time);
        let pending = Pending { answer, refusal: event.refusal, refused: 0, ends };
        self.shared.pending.lock().unwrap().insert(id.clone(), pending);
        self.shared.queue.send((id, event)).unwrap();
        answered
    }

    /// Hands out something that nobody can answer, because it has no request id.
    pub fn hand_out_without_id(&self, event: Event) {
        self.shared.queue.send((String::new(), event)).unwrap();
    }
}

async fn next_invocation(State(shared): State<Arc<Shared>>) -> Response<Body> {
    shared.polls.send_modify(|polls| *polls += 1);
    let (id, event) = shared.next.lock().await.recv().await.unwrap();
    let mut response = Response::new(Body::from(event.payload));
    let headers = response.headers_mut();
    let mut add = |name: &'static str, value: &[u8]| {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_bytes(value).unwrap());
    };
    if !id.is_empty() {
        add("lambda-runtime-aws-request-id", id.as_bytes());
    }
    if let Some(time) = event.deadline {
        let deadline = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + time;
        add("lambda-runtime-deadline-ms", deadline.as_millis().to_string().as_bytes());
    }
    for (name, value) in event.headers {
        add(name, &value);
    }
    response
}

async fn take_answer(
    State(shared): State<Arc<Shared>>,
    UrlPath((id, kind)): UrlPath<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let mut all = shared.pending.lock().unwrap();
    let Some(mut pending) = all.remove(&id) else { return StatusCode::BAD_REQUEST };
    let is_error = kind == "error";
    let refusal = if is_error { None } else { pending.refusal.take() };
    if refusal == Some(StatusCode::PAYLOAD_TOO_LARGE) {
        pending.refused += 1; // the error that follows is the answer
        all.insert(id, pending);
        return StatusCode::PAYLOAD_TOO_LARGE;
    }
    let to_spare = pending.ends.map_or(Duration::from_hours(1), |ends| ends.saturating_duration_since(Instant::now()));
    let in_time = !to_spare.is_zero();
    let _ = pending.answer.send(Answer { is_error, body, headers, refused: pending.refused, to_spare, in_time });
    refusal.unwrap_or(StatusCode::ACCEPTED)
}

/// As Lambda: an extension comes before the first invocation, or not at all.
async fn register_extension(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response<Body> {
    let name_is_given = headers.contains_key("lambda-extension-name");
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mut response = Response::new(Body::from("{}"));
    if *shared.polls.borrow() > 0 || !name_is_given || !body["events"].is_array() {
        *response.status_mut() = StatusCode::BAD_REQUEST;
    } else {
        response.headers_mut().insert("lambda-extension-identifier", HeaderValue::from_static("extension-1"));
    }
    response
}

/// An extension that wants no events gets none. Lambda holds the first invocation back until it has asked.
async fn next_extension_event(State(shared): State<Arc<Shared>>, headers: HeaderMap) {
    assert_eq!(headers["lambda-extension-identifier"], "extension-1");
    shared.extension.send_replace(true);
    std::future::pending::<()>().await;
}

async fn take_start_error(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let error: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(error["errorType"].as_str(), headers["lambda-runtime-function-error-type"].to_str().ok());
    shared.start_error.send_replace(Some(error));
    StatusCode::ACCEPTED
}
