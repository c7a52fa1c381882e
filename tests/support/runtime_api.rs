//! A stub of the Lambda Runtime API, which behaves as Lambda does as far as a function can see.

use std::{
    collections::HashMap,
    io::Read,
    net::SocketAddr,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
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

/// A test that waits longer than this has failed.
const PATIENCE: Duration = Duration::from_mins(1);

/// An invocation to hand out.
pub struct Event {
    payload: Bytes,
    headers: Vec<(&'static str, Vec<u8>)>,
    deadline: Option<Duration>,
    refusal: Option<StatusCode>,
    id: Option<String>,
}

impl Event {
    /// An invocation as Lambda makes it, with ten seconds left.
    pub fn raw(payload: impl Into<Bytes>) -> Self {
        let headers = vec![
            ("lambda-runtime-invoked-function-arn", b"arn:aws:lambda:eu-west-1:123456789012:function:tools".to_vec()),
            ("lambda-runtime-trace-id", b"Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=0".to_vec()),
        ];
        Self { payload: payload.into(), headers, deadline: Some(Duration::from_secs(10)), refusal: None, id: None }
    }

    pub fn json(payload: &Value) -> Self {
        Self::raw(payload.to_string())
    }

    /// The file under `events/`: an event, or an object with `event` and `clientContext`.
    pub fn file(name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("events").join(name);
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        match serde_json::from_slice::<Value>(&bytes) {
            Ok(Value::Object(mut parts)) if parts.len() == 2 && parts.contains_key("clientContext") => {
                let context = parts.remove("clientContext").unwrap().to_string();
                Self::json(&parts["event"]).client_context(context)
            }
            _ => Self::raw(bytes),
        }
    }

    /// The bytes of the client context header, whatever they are.
    pub fn client_context(self, bytes: impl AsRef<[u8]>) -> Self {
        self.header("lambda-runtime-client-context", bytes)
    }

    pub fn time_left(mut self, time: Duration) -> Self {
        self.deadline = Some(time);
        self
    }

    /// Sends this as the deadline.
    pub fn deadline_header(mut self, text: &str) -> Self {
        self.deadline = None;
        self.header("lambda-runtime-deadline-ms", text)
    }

    /// Sends no deadline.
    pub fn no_deadline(mut self) -> Self {
        self.deadline = None;
        self
    }

    pub fn header(mut self, name: &'static str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name, value.as_ref().to_vec()));
        self
    }

    /// Sends nothing but the request id and the payload.
    pub fn bare(mut self) -> Self {
        self.headers.clear();
        self.no_deadline()
    }

    /// Has this id, as an invocation that Lambda repeats has the id of the first.
    pub fn id(mut self, id: &str) -> Self {
        self.id = Some(id.to_owned());
        self
    }

    /// Answers the response with this status.
    pub fn refuse(mut self, status: StatusCode) -> Self {
        self.refusal = Some(status);
        self
    }
}

/// What the function posted.
#[derive(Debug)]
pub struct Answer {
    is_error: bool,
    body: Bytes,
    pub headers: HeaderMap,
    /// How many posts for this invocation were refused before.
    pub refused: usize,
    /// The time that was left until the deadline; an hour if there was none.
    pub to_spare: Duration,
    /// Whether it came before the deadline; otherwise Lambda had ended the invocation.
    pub in_time: bool,
}

impl Answer {
    /// The body of a response.
    pub fn response(&self) -> Value {
        assert!(!self.is_error, "an error instead of a response: {}", self.text());
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The body of an error, whose type also stands in a header.
    pub fn error(&self) -> Value {
        assert!(self.is_error, "a response instead of an error: {}", self.text());
        let error: Value =
            serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()));
        assert_eq!(error["errorType"].as_str(), self.headers["lambda-runtime-function-error-type"].to_str().ok());
        error
    }

    pub const fn is_error(&self) -> bool {
        self.is_error
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

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
        let launched = Instant::now();
        let mut child = Command::new(program.as_ref())
            .env_clear()
            .envs([
                ("AWS_LAMBDA_RUNTIME_API", self.address().as_str()),
                ("AWS_LAMBDA_FUNCTION_NAME", "tools"),
                ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
                ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256"),
                ("AWS_REGION", "eu-west-1"),
                ("AWS_ACCESS_KEY_ID", "test"),
                ("AWS_SECRET_ACCESS_KEY", "test"),
            ])
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = Arc::default();
        collect(child.stdout.take(), &output);
        collect(child.stderr.take(), &output);
        Function { api: self.clone(), child, output, launched }
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

/// A running function. Ends with the value.
pub struct Function {
    api: RuntimeApi,
    child: Child,
    output: Arc<Mutex<String>>,
    launched: Instant,
}

impl Function {
    /// Hands out an invocation and waits for its answer.
    pub async fn invoke(&mut self, event: Event) -> Answer {
        self.try_invoke(event).await.unwrap_or_else(|status| panic!("the function ended: {status}\n{}", self.output()))
    }

    /// Hands out an invocation; the answer comes later.
    pub fn hand_out(&self, event: Event) -> oneshot::Receiver<Answer> {
        self.api.hand_out(event)
    }

    /// Hands out an invocation and waits for its answer, or for the end of the process.
    pub async fn try_invoke(&mut self, event: Event) -> Result<Answer, ExitStatus> {
        let answer = self.api.hand_out(event);
        tokio::select! {
            answer = answer => Ok(answer.unwrap()),
            status = self.ended() => Err(status),
        }
    }

    /// Waits until the function has started, and asks for an invocation. Returns how long that took.
    pub async fn ready(&mut self) -> Duration {
        let mut polls = self.api.shared.polls.subscribe();
        tokio::select! {
            _ = polls.wait_for(|polls| *polls > 0) => self.launched.elapsed(),
            status = self.ended() => panic!("the function did not start: {status}\n{}", self.output()),
        }
    }

    /// Waits for the end of the process.
    pub async fn ended(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "the function neither answers nor ends:\n{}", self.output());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Sends a signal, for example `TERM`, as Lambda does to functions that have an extension.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([format!("-{name}"), self.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Waits until its extension, without which Lambda sends no signal, has said that it has started.
    pub async fn extended(&self) {
        let mut extension = self.api.shared.extension.subscribe();
        let _ = tokio::time::timeout(PATIENCE, extension.wait_for(|started| *started)).await.expect("an extension");
    }

    /// The id of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// What was posted as the reason why the start failed.
    pub fn start_error(&self) -> Option<Value> {
        self.api.shared.start_error.borrow().clone()
    }

    /// Waits until what it has written is enough for `enough`: the pipe is read beside the answers.
    pub async fn output_when(&self, enough: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let output = self.output();
            if enough(&output) {
                return output;
            }
            assert!(start.elapsed() < PATIENCE, "that is all:\n{output}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// What it has written so far to stdout and stderr.
    pub fn output(&self) -> String {
        self.output.lock().unwrap().clone()
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect(stream: Option<impl Read + Send + 'static>, output: &Arc<Mutex<String>>) {
    let (mut stream, output) = (stream.unwrap(), Arc::clone(output));
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut bytes) {
            output.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    });
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
