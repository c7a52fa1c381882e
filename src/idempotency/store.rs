//! The record table, through the AWS SDK: how a record is read, first written, and fenced by its owner.

use std::time::Duration;

use aws_sdk_dynamodb::{
    Client,
    operation::update_item::builders::UpdateItemFluentBuilder,
    types::{AttributeValue, ReturnValuesOnConditionCheckFailure::AllOld},
};

use super::{
    decide::Claim,
    key::Key,
    record::{Item, Record, State, n, s},
    request::{StoreError, held, within},
};
use crate::clock::{Clock, Timestamp};

/// The condition that there is no record, or none that counts any more.
pub(super) const FREE: &str = "attribute_not_exists(pk) OR expires_at <= :now";

/// What `FREE` says of a record.
pub fn is_free(record: Option<&Record>, now: Timestamp) -> bool {
    record.is_none_or(|record| record.expires_at <= Timestamp::from_secs(now.as_secs()))
}

/// The table of records.
#[derive(Clone, Debug)]
pub struct Store {
    pub(super) client: Client,
    pub(super) table: String,
    pub(super) clock: Clock,
}

impl Store {
    /// A store on this table.
    pub fn new(client: Client, table: impl Into<String>, clock: Clock) -> Self {
        Self { client, table: table.into(), clock }
    }

    /// The time of day by which leases and expiry are judged.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The record as it stands, by a consistent read.
    pub async fn read(&self, key: &Key, time: Duration) -> Result<Option<Record>, StoreError> {
        let request =
            self.client.get_item().table_name(&self.table).key("pk", s(key.pk())).consistent_read(true).send();
        let answer = within(time, "GetItem", request).await?.map_err(|error| StoreError::from_sdk("GetItem", error))?;
        answer.item().map(|item| held(Some(item), "GetItem")).transpose()
    }

    /// An update of an item that is no record, under a key that none has. Its failure is read as those of records are, by
    /// `within` and [`StoreError::from_sdk`].
    pub(crate) fn update_beside(&self, pk: &str) -> UpdateItemFluentBuilder {
        self.client.update_item().table_name(&self.table).key("pk", s(pk))
    }

    /// An update that only this owner and attempt may make, and only of a record in one of these states.
    pub(super) fn fenced(&self, key: &Key, owner: &str, attempt: u32, states: &[State]) -> UpdateItemFluentBuilder {
        let fence = Fence::new(states);
        let update = self
            .client
            .update_item()
            .table_name(&self.table)
            .key("pk", s(key.pk()))
            .condition_expression(fence.condition)
            .expression_attribute_names("#owner", "owner")
            .expression_attribute_names("#state", "state")
            .expression_attribute_values(":owner", s(owner))
            .expression_attribute_values(":attempt", n(attempt))
            .return_values_on_condition_check_failure(AllOld);
        fence.states.into_iter().fold(update, |update, (name, value)| update.expression_attribute_values(name, value))
    }
}

/// The condition by which only the holder of a record can write to it.
pub(super) struct Fence {
    pub condition: String,
    pub states: Vec<(String, AttributeValue)>,
}

impl Fence {
    pub fn new(states: &[State]) -> Self {
        let states: Vec<_> =
            states.iter().enumerate().map(|(i, state)| (format!(":state{i}"), s(state.name()))).collect();
        let names = states.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
        Self { condition: format!("#owner = :owner AND attempt = :attempt AND #state IN ({names})"), states }
    }
}

/// What the condition of a `Fence` says of a record.
pub fn is_fenced_in(record: Option<&Record>, owner: &str, attempt: u32, states: &[State]) -> bool {
    record.is_some_and(|record| record.owner == owner && record.attempt == attempt && states.contains(&record.state))
}

/// A record as it is first written.
pub(super) fn new_item(key: &Key, claim: &Claim, state: State, now: Timestamp) -> Item {
    let tool = key.pk().split('#').next().unwrap_or_default();
    let attributes: [(&str, AttributeValue); 11] = [
        ("pk", s(key.pk())),
        ("state", s(state.name())),
        ("owner", s(&claim.owner)),
        ("attempt", n(1)),
        ("args_hash", s(key.args_hash())),
        ("effect", s(claim.effect.name())),
        ("started_at", n(now.as_millis())),
        ("lease_until", n(claim.lease_until.as_millis())),
        ("expires_at", n(claim.expires_at.as_secs_up())),
        ("tool", s(tool)),
        ("version", n(1)),
    ];
    // What the approver decides on; taken out again when the call begins.
    let for_approval = claim.for_approval.as_ref().filter(|_| state == State::AwaitingApproval);
    let all = attributes.into_iter().chain(for_approval.into_iter().flat_map(|asking| asking.attributes()));
    all.map(|(name, value)| (name.to_owned(), value)).collect()
}
