//! A network that breaks at a chosen request: it holds or drops it, or its reply, or says that now is the moment to die.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{Response, StatusCode},
};
use tokio::sync::watch;

use super::endpoint::Endpoint;

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Break {
    /// The sender dies before it arrives.
    KillBefore,
    /// The sender dies while it is on its way; it arrives.
    KillDuring,
    /// The sender dies before the reply arrives.
    KillAfter,
    /// It never arrives, and nothing comes back.
    HoldRequest,
    /// It arrives, and nothing comes back.
    HoldReply,
    /// It arrives, and the connection breaks.
    CutReply,
    /// It is refused: too many requests.
    Throttle,
}

/// The requests of one sender, whatever endpoint they go to, and those of them that go wrong.
#[derive(Clone)]
pub struct Network {
    plan: Arc<Mutex<Plan>>,
    kill: watch::Sender<bool>,
}

#[derive(Default)]
struct Plan {
    requests: usize,
    faults: Vec<(usize, Break)>,
}

impl Network {
    pub fn new() -> Self {
        Self { plan: Arc::default(), kill: watch::Sender::new(false) }
    }

    /// Lets the requests of these numbers, from 0, go wrong. Counts anew.
    pub fn break_at(&self, faults: impl IntoIterator<Item = (usize, Break)>) {
        *self.plan.lock().unwrap() = Plan { requests: 0, faults: faults.into_iter().collect() };
        self.kill.send_replace(false);
    }

    /// Waits until the sender should die.
    pub async fn time_to_die(&self) {
        let _ = self.kill.subscribe().wait_for(|kill| *kill).await;
    }

    /// A way into this network that ends at `endpoint`.
    pub async fn proxy(&self, endpoint: &str) -> BreakingProxy {
        let router = Router::new().fallback(pass_on).with_state((self.clone(), Endpoint::new(endpoint)));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        BreakingProxy { address }
    }

    fn next(&self) -> Option<Break> {
        let mut plan = self.plan.lock().unwrap();
        let number = plan.requests;
        plan.requests += 1;
        plan.faults.iter().find(|(at, _)| *at == number).map(|(_, fault)| *fault)
    }
}

/// One endpoint behind a [`Network`].
pub struct BreakingProxy {
    address: SocketAddr,
}

impl BreakingProxy {
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }
}

async fn pass_on(State((network, endpoint)): State<(Network, Endpoint)>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
    let request = Request::from_parts(parts, Body::from(body)); // it is here, whatever becomes of its sender
    let fault = network.next();
    match fault {
        Some(Break::KillBefore) => {
            network.kill.send_replace(true);
            return std::future::pending().await;
        }
        Some(Break::HoldRequest) => return std::future::pending().await,
        Some(Break::Throttle) => return throttled(request.headers().contains_key("x-amz-target")),
        Some(Break::KillDuring) => drop(network.kill.send_replace(true)),
        _ => {}
    }
    // In a task of its own: the request arrives, although its sender has gone.
    let reply = tokio::spawn(endpoint.ask(request)).await.unwrap();
    match fault {
        Some(Break::KillAfter | Break::KillDuring) => {
            network.kill.send_replace(true);
            std::future::pending().await
        }
        Some(Break::HoldReply) => std::future::pending().await,
        Some(Break::CutReply) => Response::new(Body::from_stream(futures_util::stream::iter([
            Ok(bytes::Bytes::from_static(b"{")),
            Err(std::io::Error::other("the connection breaks")),
        ]))),
        _ => reply,
    }
}

/// As DynamoDB throttles, or as SES and the carrier do.
fn throttled(by_dynamodb: bool) -> Response<Body> {
    let body = r#"{"__type":"com.amazon.coral.availability#ThrottlingException","message":"Rate exceeded"}"#;
    if by_dynamodb {
        return status(StatusCode::BAD_REQUEST, body.to_owned());
    }
    let mut response = status(StatusCode::TOO_MANY_REQUESTS, String::from("{}"));
    response.headers_mut().insert("x-amzn-errortype", "TooManyRequestsException".parse().unwrap());
    response
}

fn status(status: StatusCode, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response
}
