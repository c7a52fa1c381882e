//! The embedded DynamoDB, in the test's own process. Table names as in the local program.

use aws_sdk_dynamodb::{
    Client,
    config::{BehaviorVersion, Credentials, Region},
    types::{AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType},
};

/// An empty database that serves until the test's runtime ends.
pub struct Database {
    endpoint: String,
}

impl Database {
    pub async fn start() -> Self {
        let database = dynoxide::Database::memory().unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(dynoxide::server::serve_with_shutdown(listener, database, std::future::pending()));
        Self { endpoint }
    }

    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// A client of the database, or of a proxy in front of it.
    pub fn client(endpoint: &str) -> Client {
        let config = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static("eu-west-1"))
            .credentials_provider(Credentials::new("test", "test", None, None, "test"))
            .endpoint_url(endpoint)
            .http_client(aws_smithy_http_client::Builder::new().build_http())
            .build();
        Client::from_conf(config)
    }

    /// Makes a table with the partition key `pk`.
    pub async fn create_table(&self, name: &str) {
        let attribute =
            AttributeDefinition::builder().attribute_name("pk").attribute_type(ScalarAttributeType::S).build().unwrap();
        let key = KeySchemaElement::builder().attribute_name("pk").key_type(KeyType::Hash).build().unwrap();
        Self::client(&self.endpoint)
            .create_table()
            .table_name(name)
            .attribute_definitions(attribute)
            .key_schema(key)
            .billing_mode(BillingMode::PayPerRequest)
            .send()
            .await
            .unwrap();
    }
}
