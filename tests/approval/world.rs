//! A tool over a database, its calls, and the person who decides on them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use action_group::{
    call::Pipeline,
    clock::{Clock, Timestamp},
    idempotency::{Pending, Store, Verdict},
    outcome::{FailureKind, Outcome},
    telemetry::Telemetry,
    tool::{Caller, Reconciled, Toolbox},
};
use aws_sdk_dynamodb::{config::retry::RetryConfig, types::AttributeValue};
use serde_json::{Value, json};

use super::{
    support::{self, Database, FaultyProxy, Lines, client, within},
    tool::{Script, Step, toolbox},
};

pub struct World {
    pub database: Database,
    pub toolbox: Arc<Toolbox>,
    pub script: Arc<Mutex<Script>>,
    /// Who calls.
    pub caller: Caller,
}

impl World {
    pub async fn new(effect: u8) -> Self {
        let script = Arc::<Mutex<Script>>::default();
        Self { database: Database::start().await, toolbox: toolbox(effect, &script), script, caller: Caller::default() }
    }

    /// A new version is deployed: its effect is this one, and a person has to approve every payment.
    pub fn lower_the_limit(&mut self, effect: u8) {
        self.script.lock().expect("a script").limit_is_lowered = true;
        self.toolbox = toolbox(effect, &self.script);
    }

    pub async fn call(&self, arguments: Value) -> Outcome {
        self.call_on(self.database.store(), arguments).await
    }

    pub async fn call_at(&self, now: Timestamp, arguments: Value) -> Outcome {
        self.call_on(self.database.store_at(now), arguments).await
    }

    pub async fn call_on(&self, store: Store, arguments: Value) -> Outcome {
        self.call_noted(store, Lines::default(), arguments).await
    }

    /// The same, with its metrics.
    pub async fn call_noted(&self, store: Store, metrics: Lines, arguments: Value) -> Outcome {
        let telemetry = Telemetry::new("N", "s", Clock::system(), Box::new(metrics));
        let pipeline = Pipeline::new(Arc::clone(&self.toolbox), store, Arc::new(telemetry));
        support::call(&pipeline, within(Duration::from_secs(5)), self.caller.clone(), arguments).await
    }

    pub fn next(&self, step: Step) {
        self.script.lock().expect("a script").steps.push(step);
    }

    pub fn finds(&self, found: Reconciled<Value>) {
        self.script.lock().expect("a script").found = Some(found);
    }

    /// How often one call asks the bank whose attempts go this way, and how it ends.
    pub async fn requests_of(&self, arguments: Value, steps: &[Step]) -> (u32, Outcome) {
        let before = self.script.lock().expect("a script").requests;
        steps.iter().rev().for_each(|step| self.next(*step));
        let outcome = self.call(arguments).await;
        let mut script = self.script.lock().expect("a script");
        script.steps.clear();
        (script.requests - before, outcome)
    }

    /// What was run to its effect, and whether it was approved.
    pub fn done(&self) -> Vec<bool> {
        self.script.lock().expect("a script").done.clone()
    }

    /// The person decides on all that waits.
    pub async fn decide(&self, verdict: Verdict) {
        for call in self.shown().await {
            self.database.store().decide_approval(&call.id, "ada", verdict).await.expect("decided");
        }
    }

    /// How many payments an atomic tool has made.
    pub async fn payments(&self) -> usize {
        let items = self.database.client().scan().table_name("demo-effects").send().await.expect("a scan");
        items.items().iter().filter(|item| item.contains_key("paid")).count()
    }

    /// From now on the condition of the first payment holds, if it has one.
    pub async fn open_the_way(&self) {
        let put = self.database.client().put_item().table_name("demo-effects");
        put.item("id", AttributeValue::S(String::from("payment 1"))).send().await.expect("a put");
    }

    /// The one record, as an auditor reads it.
    pub async fn record(&self) -> HashMap<String, AttributeValue> {
        let items = self.database.client().scan().table_name(Database::RECORDS).send().await.expect("a scan");
        let [record] = items.items() else { panic!("one record, but it is {items:?}") };
        record.clone()
    }

    /// The same without what tells only who has held it, and what was for the person who has decided.
    pub async fn left_to_others(&self) -> HashMap<String, AttributeValue> {
        let mut record = self.record().await;
        record.retain(|name, _| {
            !["owner", "attempt", "lease_until", "arguments", "asked_by", "waits_for"].contains(&name.as_str())
        });
        record
    }

    /// Who has decided on it, and when.
    pub async fn decision(&self) -> [Option<AttributeValue>; 2] {
        let record = self.record().await;
        ["decided_by", "decided_at"].map(|name| record.get(name).cloned())
    }

    pub async fn state(&self) -> String {
        self.record().await["state"].as_s().expect("a text").clone()
    }

    /// What the person is shown.
    pub async fn shown(&self) -> Vec<Pending> {
        self.database.store().pending(None).await.expect("a list").calls
    }

    pub async fn pending(&self) -> Vec<String> {
        self.shown().await.into_iter().map(|call| call.arguments).collect()
    }
}

/// A store behind this proxy, whose client sends a request so many times.
pub fn asking(proxy: &FaultyProxy, times: usize) -> Store {
    let times = u32::try_from(times).expect("a few");
    let retries = RetryConfig::standard().with_max_attempts(times).with_initial_backoff(Duration::from_millis(1));
    let config = client(&proxy.endpoint()).config().to_builder().retry_config(retries).build();
    Store::new(aws_sdk_dynamodb::Client::from_conf(config), Database::RECORDS, Clock::system())
}

pub fn kind(outcome: &Outcome) -> FailureKind {
    outcome.failure().unwrap_or_else(|| panic!("a failure, but it is {outcome:?}")).kind()
}

pub fn paid(amount: u32, replayed: bool) -> Outcome {
    Outcome::Success { result: json!({"paid": amount}), replayed }
}
