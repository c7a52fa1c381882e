//! A DynamoDB inside this process, behind a loopback port, reached through the real AWS SDK.
//!
//! ```no_run
//! # async fn example() -> Result<(), action_group::dev::Trouble> {
//! use action_group::dev::{Embedded, database::http_client, sdk_config};
//!
//! let database = Embedded::start(None, 0).await?; // in memory, on a free port
//! let client = aws_sdk_dynamodb::Client::new(&sdk_config(&database.endpoint(), http_client()));
//! # Ok(()) }
//! ```
//!
//! It does not emulate throttling, transactions in conflict, or stale reads.

use std::{net::SocketAddr, path::Path};

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::config::{Credentials, SharedCredentialsProvider};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use tokio::{net::TcpListener, sync::oneshot};

use super::{Trouble, tables::Tables};
use crate::aws::{self, RetryMode};

/// The credentials that the embedded DynamoDB takes; any would do.
pub const ACCESS_KEY: &str = "test";
/// The region that clients are told.
pub const REGION: &str = "us-east-1";

/// The running database. It stops when this is dropped.
#[derive(Debug)]
pub struct Embedded {
    tables: Tables,
    address: SocketAddr,
    _stop: oneshot::Sender<()>,
}

impl Embedded {
    /// Starts it, in memory or in this file, on this port of 127.0.0.1 (0 takes a free one). Makes the tables and the
    /// demo orders that are missing, and leaves what is there as it is.
    ///
    /// # Errors
    ///
    /// If the file is no database, or the port is taken.
    pub async fn start(path: Option<&Path>, port: u16) -> Result<Self, Trouble> {
        let tables = Tables::of(path)?;
        let listener = TcpListener::bind(("127.0.0.1", port))
            .await
            .map_err(|error| Trouble(format!("Port {port} of 127.0.0.1 cannot be used: {error}.")))?;
        let address = listener.local_addr().map_err(|error| Trouble(error.to_string()))?;
        let (stop, stopped) = oneshot::channel::<()>();
        let database = tables.database();
        tokio::spawn(dynoxide::server::serve_with_shutdown(listener, database, async {
            let _ = stopped.await; // an error is the drop, which means the same
        }));
        Ok(Self { tables, address, _stop: stop })
    }

    /// Its URL.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) const fn tables(&self) -> &Tables {
        &self.tables
    }
}

/// Plain HTTP, which is all that the loopback needs.
pub fn http_client() -> SharedHttpClient {
    aws_smithy_http_client::Builder::new().build_http()
}

/// The SDK's settings for a DynamoDB at this URL. Retries and time limits are those of Lambda.
pub fn sdk_config(endpoint: &str, http_client: SharedHttpClient) -> SdkConfig {
    let credentials = Credentials::new(ACCESS_KEY, ACCESS_KEY, None, None, "dev");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::from_static(REGION))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .endpoint_url(endpoint)
        .retry_config(aws::retries(RetryMode::default()))
        .timeout_config(aws::timeouts())
        .stalled_stream_protection(aws::stalled_streams())
        .http_client(http_client)
        .build()
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::{Client, types::AttributeValue};

    use super::{super::seed, *};

    fn client(database: &Embedded) -> Client {
        Client::new(&sdk_config(&database.endpoint(), http_client()))
    }

    async fn refundable(client: &Client, order: &str) -> Option<String> {
        let order = AttributeValue::S(order.to_owned());
        let answer = client.get_item().table_name(seed::ORDERS).key("order_id", order).send().await.expect("an answer");
        Some(answer.item()?.get("refundable_cents")?.as_n().ok()?.clone())
    }

    #[tokio::test]
    async fn the_real_sdk_finds_the_demo_orders() {
        let database = Embedded::start(None, 0).await.expect("a database");
        let client = client(&database);
        assert_eq!(refundable(&client, "ORD-12345").await.as_deref(), Some("25000"));
        assert_eq!(refundable(&client, "ORD-12346").await.as_deref(), Some("8900"));
        assert_eq!(refundable(&client, "ORD-20001").await.as_deref(), Some("120000"));
        assert_eq!(refundable(&client, "ORD-00000").await, None);
    }

    #[tokio::test]
    async fn records_expire_by_the_attribute_that_the_template_names() {
        let database = Embedded::start(None, 0).await.expect("a database");
        let answer = client(&database).describe_time_to_live().table_name(seed::IDEMPOTENCY).send().await.expect("it");
        let attribute = answer.time_to_live_description().and_then(|ttl| ttl.attribute_name());
        assert_eq!(attribute, Some("expires_at"));
    }

    #[tokio::test]
    async fn a_file_keeps_what_was_changed_and_seeding_overwrites_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("orders.db");
        let database = Embedded::start(Some(&path), 0).await.expect("a database");
        client(&database)
            .update_item()
            .table_name(seed::ORDERS)
            .key("order_id", AttributeValue::S(String::from("ORD-12345")))
            .update_expression("SET refundable_cents = :left")
            .expression_attribute_values(":left", AttributeValue::N(String::from("1")))
            .send()
            .await
            .expect("an update");
        drop(database);
        let database = Embedded::start(Some(&path), 0).await.expect("the same database");
        assert_eq!(refundable(&client(&database), "ORD-12345").await.as_deref(), Some("1"));
    }

    #[tokio::test]
    async fn a_file_that_is_no_database_is_refused_with_a_sentence() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notes.txt");
        std::fs::write(&path, "no database at all, but a long enough text to be looked at\n".repeat(99))
            .expect("a file");
        let trouble = Embedded::start(Some(&path), 0).await.expect_err("no database").to_string();
        assert!(trouble.contains("notes.txt") || trouble.contains("database"), "{trouble}");
        assert_eq!(std::fs::read_to_string(&path).expect("the file").lines().count(), 99, "the file was changed");
    }
}
