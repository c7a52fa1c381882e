//! An embedded DynamoDB with one empty table.

use action_group::{
    clock::{Clock, Timestamp},
    idempotency::Store,
};
use aws_sdk_dynamodb::{
    Client,
    config::{BehaviorVersion, Credentials, Region, retry::RetryConfig},
    types::{AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType},
};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

/// The embedded DynamoDB, as a client sees it.
pub struct Database {
    client: Client,
    stop: oneshot::Sender<()>,
    server: JoinHandle<()>,
}

impl Database {
    /// The one table.
    pub const TABLE: &'static str = "records";

    /// Starts it, in memory.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
        let database = dynoxide::Database::memory().expect("a database");
        let (stop, stopped) = oneshot::channel();
        let server = tokio::spawn(async move {
            let ended = dynoxide::server::serve_with_shutdown(listener, database, async move { drop(stopped.await) });
            ended.await.expect("the server");
        });
        let client = client(&endpoint);
        create_table(&client).await;
        Self { client, stop, server }
    }

    /// A client of it.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The store of records on it.
    pub fn store(&self) -> Store {
        Store::new(self.client.clone(), Self::TABLE, Clock::system())
    }

    /// The store of records on it, for which it is `now`.
    pub fn store_at(&self, now: Timestamp) -> Store {
        Store::new(self.client.clone(), Self::TABLE, Clock::following_tokio(now))
    }

    /// Ends it: nobody answers at its port any more.
    pub async fn stop(self) {
        self.server.abort();
        drop(self.stop);
        let _ = self.server.await;
    }
}

/// A client of the DynamoDB at this endpoint, without retries.
pub fn client(endpoint: &str) -> Client {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .endpoint_url(endpoint)
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .retry_config(RetryConfig::disabled())
        .http_client(aws_smithy_http_client::Builder::new().build_http());
    Client::from_conf(config.build())
}

async fn create_table(client: &Client) {
    let attribute = AttributeDefinition::builder().attribute_name("pk").attribute_type(ScalarAttributeType::S);
    let key = KeySchemaElement::builder().attribute_name("pk").key_type(KeyType::Hash);
    client
        .create_table()
        .table_name(Database::TABLE)
        .attribute_definitions(attribute.build().expect("an attribute"))
        .key_schema(key.build().expect("a key"))
        .billing_mode(BillingMode::PayPerRequest)
        .send()
        .await
        .expect("a table");
}
