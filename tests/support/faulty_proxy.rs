//! Misbehaves between the program and an HTTP endpoint that speaks an AWS JSON protocol, as networks and services do.

use std::{
    collections::{BTreeMap, VecDeque},
    future::pending,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{Response, StatusCode, Uri},
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};

/// What becomes of one request.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// The endpoint never sees it; the program gets this status and body.
    Instead(u16, &'static str),
    /// The endpoint serves it; the program gets this status and body.
    After(u16, &'static str),
    /// The endpoint never sees it, and no answer comes.
    Silence,
    /// The endpoint serves it, and no answer comes.
    SilenceAfter,
}

/// DynamoDB is too busy: nothing was done.
pub const THROTTLED: Fault = Fault::Instead(400, r#"{"__type":"com.amazonaws.dynamodb#ThrottlingException"}"#);
/// The request was served, and a load balancer in between lost the answer.
pub const LOST: Fault = Fault::After(502, "<html>Bad Gateway</html>");

type Plan = Arc<Mutex<BTreeMap<String, VecDeque<Fault>>>>;

/// A proxy in front of an endpoint.
pub struct FaultyProxy {
    address: SocketAddr,
    plan: Plan,
}

impl FaultyProxy {
    /// Passes everything on to `endpoint`, for example `http://127.0.0.1:8000`, until it is told otherwise.
    pub async fn start(endpoint: &str) -> Self {
        let plan = Plan::default();
        let client = Client::builder(TokioExecutor::new()).build_http();
        let router = Router::new().fallback(serve).with_state((Arc::clone(&plan), client, endpoint.parse().unwrap()));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, plan }
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What becomes of the next requests of this operation, in turn; those after them are passed on.
    pub fn misbehave(&self, operation: &str, faults: impl IntoIterator<Item = Fault>) {
        self.plan.lock().unwrap().insert(operation.to_owned(), faults.into_iter().collect());
    }
}

type Parts = (Plan, Client<HttpConnector, Body>, Uri);

async fn serve(State((plan, client, endpoint)): State<Parts>, request: Request) -> Response<Body> {
    let target = request.headers().get("x-amz-target").and_then(|value| value.to_str().ok()).unwrap_or("?");
    let operation = target.rsplit('.').next().unwrap_or(target);
    let fault = plan.lock().unwrap().get_mut(operation).and_then(VecDeque::pop_front);
    match fault {
        None => pass_on(&client, endpoint, request).await,
        Some(Fault::Instead(status, body)) => answer(status, body),
        Some(Fault::Silence) => pending().await,
        Some(Fault::After(status, body)) => {
            pass_on(&client, endpoint, request).await;
            answer(status, body)
        }
        Some(Fault::SilenceAfter) => {
            pass_on(&client, endpoint, request).await;
            pending().await
        }
    }
}

fn answer(status: u16, body: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

async fn pass_on(client: &Client<HttpConnector, Body>, endpoint: Uri, mut request: Request) -> Response<Body> {
    let mut parts = endpoint.into_parts();
    parts.path_and_query = request.uri().path_and_query().cloned();
    *request.uri_mut() = Uri::from_parts(parts).unwrap();
    match client.request(request).await {
        Ok(response) => response.map(Body::new),
        Err(_) => answer(502, "the endpoint is away"),
    }
}
