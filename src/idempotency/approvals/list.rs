//! The list of what waits, by an index that holds nothing else: a record is in it as long as it has [`WAITS_FOR`], which it has
//! while it waits. So the list costs what it shows, however many records the table has.
//!
//! The index may be behind the table by a moment. That does no harm: a decision reads the record itself.

use std::{fmt, str::FromStr, time::Duration};

use aws_sdk_dynamodb::{operation::query::QueryOutput, types::AttributeValue};
use serde_json::json;
use tokio::time::Instant;

use super::{
    super::{
        asking::WAITS_FOR,
        record::{Item, State, n, s},
        request::{StoreError, within},
        store::Store,
    },
    Pending, TIME, pending_of,
};

/// The index of the calls that wait, the oldest first.
pub const WAITING: &str = "waiting";

/// A list is cut after so many calls, so many bytes as the answer has them, or so much time, whichever comes first: an
/// answer of Lambda holds six megabytes, and the approver has 30 seconds. What the last page has brought is still in it: a megabyte
/// of DynamoDB's, three in an answer whose every character is escaped or replaced.
const MOST: (usize, usize, Duration) = (500, 2_500_000, Duration::from_secs(15));

/// What waits, or the beginning of it.
#[derive(Debug)]
pub struct Waiting {
    /// The calls, the oldest first.
    pub calls: Vec<Pending>,
    /// From where to go on. There may be more calls, unless it is `None`.
    pub next: Option<String>,
}

/// Why there is no list. Each is a sentence for the person.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    /// It is no place in a list.
    #[error("{0:?} is no place from where a list goes on. Give the `next` of a list that was cut, or nothing.")]
    NoPlace(String),
    /// The table did not answer, or refuses to.
    #[error("{}", .0.told("Try again later."))]
    Store(#[from] StoreError),
}

impl Store {
    /// The calls that wait for a person, the oldest first; those after `next`, if one of a list before is given.
    ///
    /// # Errors
    ///
    /// If `next` is not of such a list, or the table does not answer.
    pub async fn pending(&self, next: Option<&str>) -> Result<Waiting, ListError> {
        let place = next.map(|text| text.parse::<Place>().map_err(|()| ListError::NoPlace(text.to_owned())));
        let (mut place, mut calls, began) = (place.transpose()?, Vec::new(), Instant::now());
        loop {
            let page = self.page_of_waiting(place.as_ref()).await?;
            calls.extend(page.items().iter().filter_map(pending_of));
            place = page.last_evaluated_key().and_then(Place::of);
            if place.is_none() || is_enough(&calls, began.elapsed()) {
                return Ok(Waiting { calls, next: place.map(|place| place.to_string()) });
            }
        }
    }

    async fn page_of_waiting(&self, after: Option<&Place>) -> Result<QueryOutput, StoreError> {
        let request = self
            .client
            .query()
            .table_name(&self.table)
            .index_name(WAITING)
            .key_condition_expression("waits_for = :approval")
            .filter_expression("#state = :awaiting AND expires_at > :now")
            .expression_attribute_names("#state", "state")
            .expression_attribute_values(":approval", s(WAITS_FOR.1))
            .expression_attribute_values(":awaiting", s(State::AwaitingApproval.name()))
            .expression_attribute_values(":now", n(self.now().as_secs()))
            .set_exclusive_start_key(after.map(Place::to_key))
            .send();
        within(TIME, "Query", request).await?.map_err(|error| StoreError::from_sdk("Query", error))
    }
}

fn is_enough(calls: &[Pending], time: Duration) -> bool {
    let bytes: usize = calls.iter().map(|call| json!(call).to_string().len()).sum();
    calls.len() >= MOST.0 || bytes >= MOST.1 || time >= MOST.2
}

/// A place in the index: behind this record.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    started_at: u64,
    pk: String,
}

impl Place {
    fn of(key: &Item) -> Option<Self> {
        Some(Self {
            started_at: key.get("started_at")?.as_n().ok()?.parse().ok()?,
            pk: key.get("pk")?.as_s().ok()?.clone(),
        })
    }

    fn to_key(&self) -> Item {
        let key: [(&str, AttributeValue); 3] =
            [(WAITS_FOR.0, s(WAITS_FOR.1)), ("started_at", n(self.started_at)), ("pk", s(&self.pk))];
        key.map(|(name, value)| (name.to_owned(), value)).into()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.started_at, self.pk)
    }
}

impl FromStr for Place {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (started_at, pk) = text.trim().split_once('.').ok_or(())?;
        let is_key = (1..=2048).contains(&pk.len());
        let started_at = started_at.parse().ok().filter(|_| is_key).ok_or(())?;
        Ok(Self { started_at, pk: pk.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "dev")]
    #[test]
    fn a_list_is_cut_by_all_that_it_shows() {
        let waiting = |name: &str| {
            let mut call = Pending::sample("refund_order", false, crate::tool::Effect::Atomic);
            call.asked_by.identity = Some(name.repeat(3_000));
            call
        };
        let calls = |name| (0..MOST.0 - 1).map(|_| waiting(name)).collect::<Vec<_>>();
        assert!(!is_enough(&calls("a"), Duration::ZERO));
        assert!(is_enough(&calls("\""), Duration::ZERO), "each is two in JSON");
    }

    #[test]
    fn a_place_in_the_list_is_read_as_it_is_written_and_anything_else_is_none() {
        let place = Place { started_at: 1_796_032_101_500, pk: String::from("refund_order#4f1c") };
        assert_eq!(place.to_string().parse(), Ok(place));
        for other in ["", "x", "1", "1.", "refund_order#4f1c", "-1.refund_order#4f1c"] {
            assert_eq!(other.parse::<Place>(), Err(()), "{other}");
        }
    }

    #[test]
    fn a_list_ends_in_time() {
        assert!(!is_enough(&[], MOST.2.checked_sub(Duration::from_millis(1)).expect("a while")));
        assert!(is_enough(&[], MOST.2));
    }
}
