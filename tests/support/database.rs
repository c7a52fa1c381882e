//! The embedded DynamoDB of the local program, in the test's own process.

use action_group::{
    clock::{Clock, Timestamp},
    dev::Embedded,
    idempotency::Store,
};
use aws_sdk_dynamodb::{
    Client,
    config::{BehaviorVersion, Credentials, Region, retry::RetryConfig},
};

/// A database with the demo data. It ends when it is dropped.
pub struct Database {
    embedded: Embedded,
    client: Client,
}

impl Database {
    /// The table of records.
    pub const RECORDS: &'static str = "idempotency";

    /// Starts one, in memory.
    pub async fn start() -> Self {
        let embedded = Embedded::start(None, 0).await.expect("a database");
        Self { client: client(&embedded.endpoint()), embedded }
    }

    /// Its URL.
    pub fn endpoint(&self) -> String {
        self.embedded.endpoint()
    }

    /// A client of it, which does not retry.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// The store of records on it.
    pub fn store(&self) -> Store {
        Store::new(self.client.clone(), Self::RECORDS, Clock::system())
    }

    /// The store of records on it, for which it is `now`.
    pub fn store_at(&self, now: Timestamp) -> Store {
        Store::new(self.client.clone(), Self::RECORDS, Clock::following_tokio(now))
    }
}

/// A client of the DynamoDB at this URL, which does not retry.
pub fn client(endpoint: &str) -> Client {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .endpoint_url(endpoint)
        .region(Region::from_static("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .retry_config(RetryConfig::disabled())
        .http_client(aws_smithy_http_client::Builder::new().build_http());
    Client::from_conf(config.build())
}
