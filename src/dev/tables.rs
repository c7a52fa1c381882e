//! The tables of the embedded DynamoDB, in memory or in a file.

use std::path::Path;

use dynoxide::{Database, DynoxideError};
use serde_json::{Map, Value, json};

use super::{
    Trouble,
    account::{Tone, tell},
    beside::{Unplaced, beside, set_aside},
    foreign::is_foreign,
    lock::Lock,
    output::check,
    seed,
};

/// How the names of SQLite's logs end. A process that was killed leaves one beside its database, and who removes that may
/// leave it there: SQLite would bring back of it what the database had.
const LOGS: [&str; 2] = ["-wal", "-journal"];

/// The tables without the network between, for what the local program itself puts there and reads.
#[derive(Clone)]
pub struct Tables(Database);

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tables")
    }
}

impl Tables {
    /// The tables, whole. Of several processes that find a new file one after another makes its tables: SQLite keeps each
    /// statement whole, and not a table with what is noted of it.
    pub fn of(path: Option<&Path>) -> Result<Self, Trouble> {
        let _alone = path.and_then(Lock::wait);
        // A link to a file that is not there yet stays one: the file is made where it points.
        if let Some(new) = path.filter(|path| !path.exists() && !path.is_symlink()) {
            Self::make(new)?;
        }
        let tables = Self::open(path)?;
        tables.fill()?;
        Ok(tables)
    }

    /// Makes a new file whole, and then puts it in its place.
    fn make(path: &Path) -> Result<(), Trouble> {
        // Where it cannot be made, whoever opens the file itself says why.
        let Ok(new) = Unplaced::make(path) else { return Ok(()) };
        let Ok(tables) = Self::open(Some(new.path())) else { return Ok(()) };
        tables.fill()?;
        drop(tables);
        let cannot = |error| Trouble(format!("The database {} cannot be made: {error}.", path.display()));
        for end in LOGS {
            if let Some(aside) = set_aside(&beside(path, end)).map_err(cannot)? {
                let told = "The log of a database that was removed is kept as";
                tell(Tone::Quiet, &format!("{told} {}.", aside.display()));
            }
        }
        new.put(path).map_err(cannot)
    }

    /// The database itself, to be served.
    pub fn database(&self) -> Database {
        self.0.clone()
    }

    fn open(path: Option<&Path>) -> Result<Self, Trouble> {
        let Some(path) = path else { return Database::memory().map(Self).map_err(|error| unusable(&error)) };
        let name = path.to_str().ok_or_else(|| Trouble(format!("The path {} is no UTF-8.", path.display())))?;
        if is_foreign(path) {
            return Err(Trouble(format!(
                "The file {name} is another program's database, which is left as it is. Name one that `dev` has made, or none yet."
            )));
        }
        if path.exists() {
            check([path])?; // SQLite would open it all the same, and complain in the middle
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
    use super::{
        super::database::{Embedded, http_client, sdk_config},
        *,
    };
    use crate::{clock::Clock, idempotency::Store};

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
    fn whatever_lies_beside_a_new_database_is_left_as_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let names = [".new", ".new-wal", ".new-shm", ".lock", "-wal.old"].map(|end| format!("orders.db{end}"));
        for name in &names {
            std::fs::write(folder.path().join(name), "mine").expect("it is written");
        }
        let tables = Tables::of(Some(&folder.path().join("orders.db"))).expect("a database");
        assert_eq!(tables.all(seed::ORDERS).expect("orders").len(), 3);
        drop(tables);
        for name in &names {
            assert_eq!(std::fs::read_to_string(folder.path().join(name)).ok().as_deref(), Some("mine"), "{name}");
        }
        let left = std::fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(left, names.len() + 1, "something was left behind");
    }

    #[test]
    fn a_database_that_was_removed_does_not_come_back_and_its_log_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let [path, log, kept] = ["orders.db", "orders.db-wal", "kept"].map(|name| folder.path().join(name));
        let tables = Tables::of(Some(&path)).expect("a database");
        tables.note_effect("label#1", &Map::new()).expect("noted");
        std::fs::copy(&log, &kept).expect("a log");
        drop(tables);
        std::fs::remove_file(&path).expect("it is removed");
        std::fs::copy(&kept, &log).expect("the log stays");
        let tables = Tables::of(Some(&path)).expect("a new database");
        assert!(tables.all(seed::EFFECTS).expect("effects").is_empty(), "of the one before");
        let old = std::fs::read_dir(folder.path()).expect("a folder").map(|file| file.expect("a file").path());
        let old = old.filter(|path| path.display().to_string().contains("orders.db-wal.old"));
        let old: Vec<_> = old.map(|path| std::fs::read(path).expect("a log")).collect();
        assert_eq!(old, [std::fs::read(&kept).expect("a log")]);
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
            let client = aws_sdk_dynamodb::Client::new(&sdk_config(&database.endpoint(), http_client()));
            let store = Store::new(client, seed::IDEMPOTENCY, Clock::system());
            assert!(store.pending(None).await.expect("a list").calls.is_empty());
        }
    }
}
