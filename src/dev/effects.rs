//! The side effects that were really made, each kind in the order in which they were made.
//!
//! ```json
//! {"refunds": [{"order_id": "ORD-12345", "amount_cents": 1500, "reason": "…", "refund_id": "…"}],
//!  "labels": [], "emails": [], "calls": {"get_order": 0, "refund_order": 1}}
//! ```

use std::{collections::BTreeMap, fs, io, path::Path};

use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    Trouble,
    backends::{KIND, MADE_AT, REFERENCE},
    database::Tables,
    seed,
};

type Row = Map<String, Value>;

/// What `--effects` writes.
#[derive(Debug, Serialize)]
pub struct Effects {
    refunds: Vec<Row>,
    labels: Vec<Row>,
    emails: Vec<Row>,
    calls: BTreeMap<&'static str, u64>,
}

impl Effects {
    /// Reads them where they were made: the refunds in their own table.
    pub fn read(tables: &Tables, calls: BTreeMap<&'static str, u64>) -> Result<Self, Trouble> {
        let (labels, rest): (Vec<_>, Vec<_>) =
            tables.all(seed::EFFECTS)?.into_iter().partition(|row| row.get(KIND).is_some_and(|kind| kind == "label"));
        let refunds = tables.all(seed::REFUNDS)?;
        Ok(Self { refunds: in_order(refunds), labels: in_order(labels), emails: in_order(rest), calls })
    }

    /// Writes them to a file.
    pub fn write(&self, path: &Path) -> Result<(), Trouble> {
        let json = serde_json::to_string(self).map_err(|error| Trouble(error.to_string()))?;
        fs::write(path, json + "\n").map_err(|error| unwritable(path, &error))
    }
}

/// Looks whether the file can be written, before anything is done of which it would tell. A file that is there keeps what it
/// holds, and none is left where none was: a process that is killed says nothing.
pub fn check(path: &Path) -> Result<(), Trouble> {
    let looked = match fs::metadata(path) {
        Ok(found) if found.is_file() || found.is_dir() => fs::OpenOptions::new().append(true).open(path).map(drop),
        Ok(_) => Ok(()), // to open a pipe is to be waited for
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::File::create_new(path).and_then(|_| fs::remove_file(path))
        }
        Err(error) => Err(error),
    };
    looked.map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &io::Error) -> Trouble {
    Trouble(format!("The file {} cannot be written: {error}.", path.display()))
}

/// The rows by the time they were made, without what is of use here only.
fn in_order(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by_key(|row| row.get(MADE_AT).and_then(Value::as_u64));
    for row in &mut rows {
        for name in [KIND, MADE_AT, REFERENCE, "id"] {
            row.remove(name);
        }
    }
    rows
}
