//! A DynamoDB that takes every write and does nothing, within the test: no socket, so that a stopped clock stays stopped.

use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::{
    Client,
    config::{BehaviorVersion, Credentials, Region, retry::RetryConfig},
};
use aws_smithy_runtime_api::client::{
    http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn},
    orchestrator::{HttpRequest, HttpResponse},
};
use aws_smithy_types::body::SdkBody;

/// The table, and what was asked of it.
#[derive(Clone, Debug, Default)]
pub struct Scripted {
    requests: Arc<Mutex<Vec<(String, String)>>>,
    /// Whether another transaction is always at the same items.
    conflicts: bool,
    /// Whether it is always too busy to be read.
    is_busy: bool,
}

const CONFLICT: &str = r#"{"__type":"com.amazonaws.dynamodb#TransactionCanceledException",
    "CancellationReasons":[{"Code":"None"},{"Code":"TransactionConflict"}]}"#;

const BUSY: &str = r#"{"__type":"com.amazonaws.dynamodb#ThrottlingException"}"#;

impl Scripted {
    /// The same, with another transaction always at the same items.
    pub fn in_conflict() -> Self {
        Self { conflicts: true, ..Self::default() }
    }

    /// The same, which is always too busy to be read.
    pub fn too_busy() -> Self {
        Self { is_busy: true, ..Self::default() }
    }

    /// A client of it, which does not retry.
    pub fn client(&self) -> Client {
        self.client_that(RetryConfig::disabled())
    }

    /// A client of it.
    pub fn client_that(&self, retries: RetryConfig) -> Client {
        let connector = SharedHttpConnector::new(self.clone());
        let config = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .region(Region::from_static("us-east-1"))
            .credentials_provider(Credentials::new("test", "test", None, None, "test"))
            .retry_config(retries)
            .http_client(http_client_fn(move |_, _| connector.clone()));
        Client::from_conf(config.build())
    }

    /// How many requests there were.
    pub fn requests(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    /// What the requests have made of a record.
    pub fn record(&self) -> &'static str {
        let requests = self.requests.lock().unwrap();
        let last = requests.iter().rfind(|(operation, _)| operation != "GetItem");
        match last.map(|(operation, body)| (operation.as_str(), body.as_str())) {
            None => "none",
            Some(("DeleteItem", _)) => "released",
            Some(("TransactWriteItems", _)) => "committed",
            Some(("UpdateItem", body)) if body.contains(r#"":state":{"S":"unknown"}"#) => "unknown",
            Some(("UpdateItem", body)) if body.contains("SET lease_until = :past") => "given up",
            Some(("UpdateItem", _)) => "completed",
            Some(_) => "started",
        }
    }
}

impl HttpConnector for Scripted {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let body = request.body().bytes().map(String::from_utf8_lossy).unwrap_or_default().into_owned();
        let (status, answer) = match operation.as_str() {
            "TransactWriteItems" if self.conflicts => (400, CONFLICT),
            "GetItem" if self.is_busy => (400, BUSY),
            _ => (200, "{}"),
        };
        self.requests.lock().unwrap().push((operation, body));
        HttpConnectorFuture::ready(Ok(HttpResponse::new(status.try_into().unwrap(), SdkBody::from(answer))))
    }
}
