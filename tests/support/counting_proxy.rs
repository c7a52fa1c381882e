//! Counts requests where they arrive, so that a test need not trust our own counters, nor the SDK's.

use std::{
    collections::BTreeMap,
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

type Counts = Arc<Mutex<BTreeMap<String, usize>>>;

/// A proxy in front of an HTTP endpoint that speaks an AWS JSON protocol.
pub struct CountingProxy {
    address: SocketAddr,
    counts: Counts,
}

impl CountingProxy {
    /// Passes everything on to `endpoint`, for example `http://127.0.0.1:8000`.
    pub async fn start(endpoint: &str) -> Self {
        let counts = Counts::default();
        let client = Client::builder(TokioExecutor::new()).build_http();
        let router =
            Router::new().fallback(pass_on).with_state((Arc::clone(&counts), client, endpoint.parse().unwrap()));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, counts }
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests since the last call, by operation: `{"PutItem": 1}`.
    pub fn take(&self) -> BTreeMap<String, usize> {
        std::mem::take(&mut *self.counts.lock().unwrap())
    }
}

type Parts = (Counts, Client<HttpConnector, Body>, Uri);

async fn pass_on(State((counts, client, endpoint)): State<Parts>, mut request: Request) -> Response<Body> {
    let target = request.headers().get("x-amz-target").and_then(|value| value.to_str().ok()).unwrap_or("?");
    let operation = target.rsplit('.').next().unwrap_or(target).to_owned();
    *counts.lock().unwrap().entry(operation).or_default() += 1;

    let mut parts = endpoint.into_parts();
    parts.path_and_query = request.uri().path_and_query().cloned();
    *request.uri_mut() = Uri::from_parts(parts).unwrap();
    match client.request(request).await {
        Ok(response) => response.map(Body::new),
        Err(error) => {
            let mut response = Response::new(Body::from(error.to_string()));
            *response.status_mut() = StatusCode::BAD_GATEWAY;
            response
        }
    }
}
