//! Misbehaves between the program and an HTTP endpoint that speaks an AWS JSON protocol, as networks and services do. Counts
//! requests where they arrive, so that a test need not trust our own counters, nor the SDK's.

use std::{
    collections::{BTreeMap, VecDeque},
    future::pending,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{HeaderName, HeaderValue, Response, StatusCode},
};

use super::endpoint::Endpoint;

/// What becomes of one request.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// The endpoint never sees it; the program gets this status and body.
    Instead(u16, &'static str),
    /// The same with a header.
    With(u16, &'static str, &'static str),
    /// The endpoint serves it; the program gets this status and body.
    After(u16, &'static str),
    /// The endpoint never sees it, and no answer comes.
    Silence,
    /// The endpoint serves it, and no answer comes.
    SilenceAfter,
    /// A 502 at once, while the request is on its way still: it arrives with [`FaultyProxy::deliver`].
    Lingers,
    /// The endpoint serves it, and the answer begins so much later.
    Slow(Duration),
    /// The endpoint never sees it, and the connection breaks.
    Reset,
    /// The endpoint serves it, and the connection breaks in the middle of the answer's body.
    HalfBody,
}

/// DynamoDB is too busy: nothing was done.
pub const THROTTLED: Fault = Fault::Instead(400, r#"{"__type":"com.amazonaws.dynamodb#ThrottlingException"}"#);
/// The table has no such index, say: nothing was done, and never will be.
pub const WRONG: Fault = Fault::Instead(400, r#"{"__type":"com.amazon.coral.validate#ValidationException"}"#);
/// The request was served, and a load balancer in between lost the answer.
pub const LOST: Fault = Fault::After(502, "<html>Bad Gateway</html>");

#[derive(Default)]
struct Plan {
    next: BTreeMap<String, VecDeque<Fault>>,
    /// So many of a hundred requests, picked by a generator whose state is the last number.
    share: BTreeMap<String, (u64, Fault, u64)>,
    delay: Duration,
    counts: BTreeMap<String, usize>,
    served: Vec<Served>,
    lingering: Vec<Request>,
}

/// One request as the proxy saw it.
#[derive(Clone, Debug)]
pub struct Served {
    pub operation: String,
    pub began: Instant,
    /// When it was answered or given up.
    pub ended: Option<Instant>,
}

/// Notes the end of a request, however it ends.
struct Note(Shared, usize);

impl Drop for Note {
    fn drop(&mut self) {
        if let Some(served) = self.0.lock().unwrap().served.get_mut(self.1) {
            served.ended = Some(Instant::now());
        }
    }
}

impl Plan {
    fn fault(&mut self, operation: &str) -> Option<Fault> {
        *self.counts.entry(operation.to_owned()).or_default() += 1;
        self.served.push(Served { operation: operation.to_owned(), began: Instant::now(), ended: None });
        if let Some(fault) = self.next.get_mut(operation).and_then(VecDeque::pop_front) {
            return Some(fault);
        }
        let (percent, fault, state) = self.share.get_mut(operation)?;
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((*state >> 33) % 100 < *percent).then_some(*fault)
    }
}

type Shared = Arc<Mutex<Plan>>;

/// A proxy in front of an endpoint. An operation is what `x-amz-target` names, or else the path.
pub struct FaultyProxy {
    address: SocketAddr,
    plan: Shared,
    endpoint: Endpoint,
}

impl FaultyProxy {
    /// Passes everything on to `endpoint`, for example `http://127.0.0.1:8000`, until it is told otherwise.
    pub async fn start(endpoint: &str) -> Self {
        let plan = Shared::default();
        let endpoint = Endpoint::new(endpoint);
        let router = Router::new().fallback(serve).with_state((Arc::clone(&plan), endpoint.clone()));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, plan, endpoint }
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What becomes of the next requests of this operation, in turn; those after them are passed on.
    pub fn misbehave(&self, operation: &str, faults: impl IntoIterator<Item = Fault>) {
        self.plan.lock().unwrap().next.insert(operation.to_owned(), faults.into_iter().collect());
    }

    /// What becomes of so many of a hundred requests of this operation, always the same ones.
    pub fn misbehave_often(&self, operation: &str, percent: u64, fault: Fault) {
        self.plan.lock().unwrap().share.insert(operation.to_owned(), (percent, fault, 1));
    }

    /// Holds every request up for so long.
    pub fn delay(&self, time: Duration) {
        self.plan.lock().unwrap().delay = time;
    }

    /// Lets what lingers arrive now. How many requests that were.
    pub async fn deliver(&self) -> usize {
        let lingering = std::mem::take(&mut self.plan.lock().unwrap().lingering);
        let number = lingering.len();
        for request in lingering {
            self.endpoint.clone().ask(request).await;
        }
        number
    }

    /// All requests so far.
    pub fn served(&self) -> Vec<Served> {
        self.plan.lock().unwrap().served.clone()
    }

    /// All requests since the last look, by operation: `{"PutItem": 1}`.
    pub fn take(&self) -> BTreeMap<String, usize> {
        std::mem::take(&mut self.plan.lock().unwrap().counts)
    }

    /// The requests of this operation since the last look.
    pub fn count(&self, operation: &str) -> usize {
        self.plan.lock().unwrap().counts.remove(operation).unwrap_or_default()
    }
}

async fn serve(State((plan, endpoint)): State<(Shared, Endpoint)>, request: Request) -> Response<Body> {
    let target = request.headers().get("x-amz-target").and_then(|value| value.to_str().ok());
    let operation = target.map_or(request.uri().path(), |target| target.rsplit('.').next().unwrap_or(target));
    let (fault, delay, number) = {
        let mut plan = plan.lock().unwrap();
        (plan.fault(operation), plan.delay, plan.served.len() - 1)
    };
    let _note = Note(Arc::clone(&plan), number);
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    match fault {
        None => endpoint.ask(request).await,
        Some(Fault::Instead(status, body)) => answer(status, body),
        Some(Fault::With(status, name, value)) => {
            let mut response = answer(status, "");
            response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
            response
        }
        Some(Fault::Silence) => pending().await,
        Some(Fault::Lingers) => {
            let (parts, body) = request.into_parts();
            let body = axum::body::to_bytes(body, usize::MAX).await.unwrap(); // from a sender that may be gone by then
            plan.lock().unwrap().lingering.push(Request::from_parts(parts, Body::from(body)));
            answer(502, "<html>Bad Gateway</html>")
        }
        Some(Fault::Reset) => std::panic::resume_unwind(Box::new("the connection's task ends, and it with it")),
        Some(fault) => {
            let response = endpoint.ask(request).await;
            match fault {
                Fault::After(status, body) => answer(status, body),
                Fault::HalfBody => half(),
                Fault::Slow(time) => {
                    tokio::time::sleep(time).await;
                    response
                }
                _ => pending().await,
            }
        }
    }
}

/// An answer that breaks off.
fn half() -> Response<Body> {
    let parts = [Ok(Bytes::from_static(b"{\"label")), Err(std::io::Error::other("broken off"))];
    let mut response = Response::new(Body::from_stream(futures_util::stream::iter(parts)));
    response.headers_mut().insert("content-length", HeaderValue::from_static("40"));
    response
}

fn answer(status: u16, body: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}
