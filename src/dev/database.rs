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

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::config::{Credentials, SharedCredentialsProvider};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use dynoxide::{Database, DynoxideError};
use serde_json::{Map, Value, json};
use tokio::{net::TcpListener, sync::oneshot};

use super::{Trouble, foreign::is_foreign, lock::Lock, seed};
use crate::{aws, settings::RetryMode};

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
        let database = tables.0.clone();
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

/// The tables without the network between, for what the local program itself puts there and reads.
#[derive(Clone)]
pub(super) struct Tables(Database);

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tables")
    }
}

impl Tables {
    /// The tables, whole. Of several processes that find a new file one after another makes its tables: SQLite keeps each
    /// statement whole, and not a table with what is noted of it.
    fn of(path: Option<&Path>) -> Result<Self, Trouble> {
        let _alone = path.and_then(Lock::wait);
        // A link to a file that is not there yet stays one: the file is made where it points.
        if let Some(new) = path.filter(|path| !path.exists() && !path.is_symlink()) {
            Self::make(new)?;
        }
        let tables = Self::open(path)?;
        tables.fill()?;
        Ok(tables)
    }

    /// Makes a new file beside its place, so that a process that dies meanwhile leaves no half of a database there.
    fn make(path: &Path) -> Result<(), Trouble> {
        let beside = |end: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(end);
            PathBuf::from(name)
        };
        for left in [".new", ".new-wal", ".new-shm"] {
            let _ = std::fs::remove_file(beside(left)); // of a process that has died
        }
        // Where it cannot be made, whoever opens the file itself says why.
        let Ok(tables) = Self::open(Some(&beside(".new"))) else { return Ok(()) };
        tables.fill()?;
        drop(tables);
        for left in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(beside(left)); // of a database that was removed: SQLite would bring it back
        }
        std::fs::rename(beside(".new"), path)
            .map_err(|error| Trouble(format!("The database {} cannot be made: {error}.", path.display())))
    }

    fn open(path: Option<&Path>) -> Result<Self, Trouble> {
        let Some(path) = path else { return Database::memory().map(Self).map_err(|error| unusable(&error)) };
        let name = path.to_str().ok_or_else(|| Trouble(format!("The path {} is no UTF-8.", path.display())))?;
        if is_foreign(path) {
            return Err(Trouble(format!(
                "The file {name} is another program's database, which is left as it is. Name one that `dev` has made, or none yet."
            )));
        }
        Database::new(name).map(Self).map_err(|error| {
            let error = error.to_string();
            let why = error.split(". ").next().unwrap_or_default(); // what follows is advice for programmers
            Trouble(format!(
                "The database {name} cannot be opened: {why}. Name another file, in a folder that can be written."
            ))
        })
    }

    fn fill(&self) -> Result<(), Trouble> {
        for table in seed::tables() {
            match self.0.create_table(request(table)?) {
                Ok(_) | Err(DynoxideError::ResourceInUseException(_)) => {}
                Err(error) => return Err(unusable(&error)),
            }
        }
        match self.0.update_table(request(seed::index_of_records())?) {
            Ok(_) | Err(DynoxideError::ValidationException(_)) => {} // the latter says that it is there already
            Err(error) => return Err(unusable(&error)),
        }
        for setting in seed::time_to_live() {
            match self.0.update_time_to_live(request(setting)?) {
                Ok(_) | Err(DynoxideError::ValidationException(_)) => {} // the latter says that it is on already
                Err(error) => return Err(unusable(&error)),
            }
        }
        for order in seed::orders() {
            self.put_new(order)?;
        }
        Ok(())
    }

    /// Puts an item whose condition says that it is new. False if it is there already.
    fn put_new(&self, put: Value) -> Result<bool, Trouble> {
        match self.0.put_item(request(put)?) {
            Ok(_) => Ok(true),
            Err(DynoxideError::ConditionalCheckFailedException(..)) => Ok(false),
            Err(error) => Err(unusable(&error)),
        }
    }

    /// Notes an effect under this id; the first one with an id stays. False if it was there already.
    pub fn note_effect(&self, id: &str, effect: &Map<String, Value>) -> Result<bool, Trouble> {
        let mut item: Map<String, Value> =
            effect.iter().map(|(name, value)| (name.clone(), attribute(value))).collect();
        item.insert(String::from("id"), json!({"S": id}));
        self.put_new(json!({
            "TableName": seed::EFFECTS,
            "Item": item,
            "ConditionExpression": "attribute_not_exists(id)",
        }))
    }

    /// All items of a table, as plain JSON.
    pub fn all(&self, table: &str) -> Result<Vec<Map<String, Value>>, Trouble> {
        let mut items = Vec::new();
        let mut scan = json!({"TableName": table});
        loop {
            let page = self.0.scan(request(scan.clone())?).map_err(|error| unusable(&error))?;
            let page = serde_json::to_value(page).map_err(|error| Trouble(error.to_string()))?;
            for item in page["Items"].as_array().into_iter().flatten().filter_map(Value::as_object) {
                items.push(item.iter().map(|(name, value)| (name.clone(), plain(value))).collect());
            }
            match page.get("LastEvaluatedKey") {
                None => return Ok(items),
                Some(key) => scan["ExclusiveStartKey"] = key.clone(),
            }
        }
    }
}

fn request<T: serde::de::DeserializeOwned>(json: Value) -> Result<T, Trouble> {
    serde_json::from_value(json)
        .map_err(|error| Trouble(format!("The embedded database takes no such request: {error}.")))
}

fn unusable(error: &DynoxideError) -> Trouble {
    Trouble(format!("The embedded database fails: {error}."))
}

/// A text or a number as DynamoDB has it.
fn attribute(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!({"N": number.to_string()}),
        Value::String(text) => json!({"S": text}),
        other => json!({"S": other.to_string()}),
    }
}

/// A text or a number from DynamoDB's form.
fn plain(attribute: &Value) -> Value {
    match (attribute.get("S"), attribute.get("N").and_then(Value::as_str)) {
        (Some(text), _) => text.clone(),
        (None, Some(number)) => number.parse::<u64>().map_or_else(|_| Value::from(number), Value::from),
        (None, None) => attribute.clone(),
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::{Client, types::AttributeValue};

    use super::*;
    use crate::{clock::Clock, idempotency::Store};

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
    async fn a_file_from_before_what_waits_had_an_index_gets_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("orders.db");
        let before = json!({
            "TableName": seed::IDEMPOTENCY,
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
        });
        let tables = Tables::open(Some(&path)).expect("a database");
        tables.0.create_table(request(before).expect("a request")).expect("a table");
        drop(tables);
        for _ in 0..2 {
            let database = Embedded::start(Some(&path), 0).await.expect("the same database");
            let store = Store::new(client(&database), seed::IDEMPOTENCY, Clock::system());
            assert!(store.pending(None).await.expect("a list").calls.is_empty());
        }
    }

    #[test]
    fn many_that_make_one_new_file_at_once_all_find_it_whole() {
        const MANY: usize = 8;
        let folder = tempfile::tempdir().expect("a folder");
        let (path, start) = (folder.path().join("orders.db"), std::sync::Barrier::new(MANY));
        let open = || {
            start.wait();
            Tables::of(Some(&path)).and_then(|tables| tables.all(seed::ORDERS)).expect("a database").len()
        };
        let found: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..MANY).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().expect("an answer")).collect()
        });
        assert_eq!(found, [3; MANY]);
        assert!(!path.with_extension("db.lock").exists(), "the lock is left behind");
    }

    #[test]
    fn a_file_that_was_being_made_when_its_process_died_is_made_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, half) = (folder.path().join("orders.db"), folder.path().join("orders.db.new"));
        std::fs::write(&half, "half of a database").expect("it is written");
        let tables = Tables::of(Some(&path)).expect("a database");
        assert_eq!(tables.all(seed::ORDERS).expect("orders").len(), 3);
        drop(tables);
        let left = std::fs::read_dir(folder.path()).expect("a folder").map(|file| file.expect("a file").file_name());
        assert_eq!(left.collect::<Vec<_>>(), ["orders.db"], "all of it is in its place");
    }

    /// A process that has ended leaves SQLite's log beside the file, and who removes the file may leave it there.
    #[test]
    fn a_database_that_was_removed_does_not_come_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let [path, log, kept] = ["orders.db", "orders.db-wal", "kept"].map(|name| folder.path().join(name));
        let tables = Tables::of(Some(&path)).expect("a database");
        tables.note_effect("label#1", &Map::new()).expect("noted");
        std::fs::copy(&log, &kept).expect("a log");
        drop(tables);
        std::fs::remove_file(&path).expect("it is removed");
        std::fs::rename(&kept, &log).expect("the log stays");
        let tables = Tables::of(Some(&path)).expect("a new database");
        assert!(tables.all(seed::EFFECTS).expect("effects").is_empty(), "of the one before");
    }

    #[cfg(unix)]
    #[test]
    fn a_new_database_behind_a_link_is_made_where_the_link_points() {
        let folder = tempfile::tempdir().expect("a folder");
        let [link, file] = ["orders.db", "elsewhere.db"].map(|name| folder.path().join(name));
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        let tables = Tables::of(Some(&link)).expect("a database");
        assert_eq!(tables.all(seed::ORDERS).expect("orders").len(), 3);
        assert!(link.is_symlink() && file.exists(), "the link was replaced");
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
