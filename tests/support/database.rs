//! The embedded DynamoDB of the local program, in the test's own process; or another one, for a second opinion.
//!
//! With `STORE_ENDPOINT=http://…` the tests use the DynamoDB there, and make their tables anew each time: one test at a
//! time (`--test-threads=1`). Never point it at tables that matter.

use action_group::{
    clock::{Clock, Timestamp},
    dev::Embedded,
    idempotency::{Store, WAITING},
};
use aws_sdk_dynamodb::{
    Client,
    config::{BehaviorVersion, Credentials, Region, retry::RetryConfig},
    operation::create_table::builders::CreateTableFluentBuilder,
    types::{
        AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection, ProjectionType,
        ScalarAttributeType,
    },
};

/// A database with the demo data (one elsewhere has empty tables). It ends when it is dropped.
pub struct Database {
    embedded: Option<Embedded>,
    endpoint: String,
    client: Client,
}

impl Database {
    /// The table of records.
    pub const RECORDS: &'static str = "idempotency";

    /// Starts one, in memory.
    pub async fn start() -> Self {
        if let Ok(endpoint) = std::env::var("STORE_ENDPOINT") {
            return Self::elsewhere(endpoint).await;
        }
        let embedded = Embedded::start(None, 0).await.expect("a database");
        let endpoint = embedded.endpoint();
        Self { client: client(&endpoint), endpoint, embedded: Some(embedded) }
    }

    async fn elsewhere(endpoint: String) -> Self {
        let client = client(&endpoint);
        for (table, key) in [(Self::RECORDS, "pk"), ("demo-effects", "id")] {
            let _ = client.delete_table().table_name(table).send().await; // there may be none
            make(&client, table, key).await;
        }
        Self { client, endpoint, embedded: None }
    }

    /// Whether it ends when it is dropped.
    pub const fn is_ours(&self) -> bool {
        self.embedded.is_some()
    }

    /// Its URL.
    pub fn endpoint(&self) -> String {
        self.endpoint.clone()
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

async fn make(client: &Client, table: &str, key: &str) {
    let schema = KeySchemaElement::builder().attribute_name(key).key_type(KeyType::Hash).build().unwrap();
    let attribute = AttributeDefinition::builder().attribute_name(key).attribute_type(ScalarAttributeType::S);
    let request = client.create_table().table_name(table).billing_mode(BillingMode::PayPerRequest);
    let request = request.key_schema(schema).attribute_definitions(attribute.build().unwrap());
    let request = if table == Database::RECORDS { with_index(request) } else { request };
    request.send().await.expect("a table");
}

/// The index of what waits.
fn with_index(table: CreateTableFluentBuilder) -> CreateTableFluentBuilder {
    let attribute =
        |name, kind| AttributeDefinition::builder().attribute_name(name).attribute_type(kind).build().unwrap();
    let key = |name, kind| KeySchemaElement::builder().attribute_name(name).key_type(kind).build().unwrap();
    let index = GlobalSecondaryIndex::builder()
        .index_name(WAITING)
        .key_schema(key("waits_for", KeyType::Hash))
        .key_schema(key("started_at", KeyType::Range))
        .projection(Projection::builder().projection_type(ProjectionType::All).build());
    table
        .attribute_definitions(attribute("waits_for", ScalarAttributeType::S))
        .attribute_definitions(attribute("started_at", ScalarAttributeType::N))
        .global_secondary_indexes(index.build().unwrap())
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
