//! The side effects that were really made, each kind in the order in which they were made.
//!
//! ```json
//! {"refunds": [{"order_id": "ORD-12345", "amount_cents": 1500, "reason": "…", "refund_id": "…"}],
//!  "labels": [], "emails": [], "calls": {"get_order": 0, "refund_order": 1}}
//! ```

use std::{collections::BTreeMap, io::Write, path::Path};

use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    Trouble,
    backends::{KIND, MADE_AT, REFERENCE},
    output::{create, unwritable},
    seed,
    tables::Tables,
};

type Row = Map<String, Value>;

/// What `--effects` writes.
#[derive(Debug, Serialize)]
pub struct Effects {
    refunds: Vec<Row>,
    labels: Vec<Row>,
    emails: Vec<Row>,
    /// What the stand-in of another system has noted, each with its kind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    others: Vec<Row>,
    calls: BTreeMap<&'static str, u64>,
}

impl Effects {
    /// Reads them where they were made: the refunds in their own table.
    pub fn read(tables: &Tables, calls: BTreeMap<&'static str, u64>) -> Result<Self, Trouble> {
        let is = |kind| move |row: &Row| row.get(KIND).is_some_and(|found| found == kind);
        let (labels, rest): (Vec<_>, Vec<_>) = tables.all(seed::EFFECTS)?.into_iter().partition(is("label"));
        let (emails, others) = rest.into_iter().partition(is("email"));
        let refunds = of_one_kind(tables.all(seed::REFUNDS)?);
        let (labels, emails) = (of_one_kind(labels), of_one_kind(emails));
        Ok(Self { refunds, labels, emails, others: in_order(others), calls })
    }

    /// Writes them to a file.
    pub fn write(&self, path: &Path) -> Result<(), Trouble> {
        let json = serde_json::to_string(self).map_err(|error| Trouble(error.to_string()))?;
        create(path)?.write_all((json + "\n").as_bytes()).map_err(|error| unwritable(path, &error))
    }
}

/// The rows by the time they were made, without what is of use here only.
fn in_order(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by_key(|row| row.get(MADE_AT).and_then(Value::as_u64));
    for row in &mut rows {
        for name in [MADE_AT, REFERENCE, "id"] {
            row.remove(name);
        }
    }
    rows
}

/// The same, where the list says what kind they are of.
fn of_one_kind(rows: Vec<Row>) -> Vec<Row> {
    let mut rows = in_order(rows);
    for row in &mut rows {
        row.remove(KIND);
    }
    rows
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::dev::Embedded;

    #[tokio::test]
    async fn what_another_stand_in_has_done_is_no_email() {
        let database = Embedded::start(None, 0).await.expect("a database");
        let Value::Object(booking) = json!({KIND: "booking", "room": "3-07"}) else { panic!("no object") };
        database.tables().note_effect("booking#1", &booking).expect("noted");
        let effects = Effects::read(database.tables(), BTreeMap::new()).expect("the effects");
        let effects = serde_json::to_value(effects).expect("JSON");
        assert_eq!((&effects["emails"], &effects["others"]), (&json!([]), &json!([booking])));
    }
}
