//! What a proxy stands in front of, and how it lets a request through.

use axum::{
    body::Body,
    extract::Request,
    http::{Response, StatusCode, Uri},
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};

/// An HTTP endpoint. Clones share its connections.
#[derive(Clone)]
pub struct Endpoint {
    client: Client<HttpConnector, Body>,
    uri: Uri,
}

impl Endpoint {
    /// For example `http://127.0.0.1:8000`.
    pub fn new(uri: &str) -> Self {
        Self { client: Client::builder(TokioExecutor::new()).build_http(), uri: uri.parse().unwrap() }
    }

    /// The endpoint's answer to this request, or a 502 where there is none.
    pub async fn ask(self, mut request: Request) -> Response<Body> {
        let mut parts = self.uri.into_parts();
        parts.path_and_query = request.uri().path_and_query().cloned();
        *request.uri_mut() = Uri::from_parts(parts).unwrap();
        match self.client.request(request).await {
            Ok(response) => response.map(Body::new),
            Err(error) => {
                let mut response = Response::new(Body::from(error.to_string()));
                *response.status_mut() = StatusCode::BAD_GATEWAY;
                response
            }
        }
    }
}
