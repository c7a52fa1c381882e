//! Who may write to a record: executions of one action, straight on the store.

use std::{sync::Arc, time::Duration};

use action_group::{
    idempotency::{Acquired, Claim, Decision, Guard, Key, Settled, Store, decide},
    tool::{Effect, Toolbox},
};
use serde_json::json;

use super::{
    support::Database,
    world::{Scripted, TIME, stored},
};

/// Two executions of one action, straight on the store.
struct Rivals {
    database: Database,
    store: Store,
    key: Key,
}

impl Rivals {
    async fn new() -> Self {
        let database = Database::start().await;
        let toolbox = Toolbox::builder()
            .tool(Scripted { effect: Effect::Keyed, script: vec![], attempts: Arc::default(), result: json!(1) })
            .build()
            .expect("a toolbox");
        let definition = toolbox.get("scripted").expect("the tool").definition();
        let key = Key::new(definition, "s", &json!(["A"]), &json!({"thing": "A"})).expect("a key");
        Self { store: database.store(), database, key }
    }

    /// A claim whose lease ended `ago`.
    fn claim(&self, owner: &str, ago: Duration) -> Claim {
        let now = self.store.now();
        Claim {
            owner: owner.into(),
            effect: Effect::Keyed,
            lease_until: action_group::clock::Timestamp::from_millis(
                now.as_millis() - u64::try_from(ago.as_millis()).expect("a short time"),
            ),
            expires_at: now.plus(Duration::from_mins(1)),
            for_approval: None,
        }
    }

    async fn acquire(&self, claim: &Claim) -> Acquired {
        self.store.acquire(&self.key, claim, TIME).await.expect("an answer")
    }

    /// A dead holder, and a second execution that has taken its record over.
    async fn taken_over(&self) -> (Guard, Guard) {
        let first = self.claim("first", Duration::from_secs(10));
        let second = self.claim("second", Duration::ZERO);
        let Acquired::Mine(late) = self.acquire(&first).await else { panic!("the key was free") };
        let Acquired::Held(record) = self.acquire(&second).await else { panic!("the key is held") };
        assert_eq!(decide(&record, &second, self.key.args_hash(), self.store.now()), Decision::TakeOver);
        let taken = self.store.take_over(&self.key, &second, &record, TIME).await.expect("an answer");
        let Acquired::Mine(owner) = taken else { panic!("nobody else was at it") };
        (late, owner)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_owner_never_overwrites() {
    let rivals = Rivals::new().await;
    let (late, owner) = rivals.taken_over().await;
    assert_eq!(owner.complete(&stored("2"), TIME).await.expect("an answer"), Settled::AsWritten);
    let Settled::Superseded(Some(record)) = late.complete(&stored("1"), TIME).await.expect("an answer") else {
        panic!("it was superseded")
    };
    assert_eq!(record.result, Some(stored("2")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_owner_never_deletes() {
    let rivals = Rivals::new().await;
    let (late, owner) = rivals.taken_over().await;
    assert!(matches!(late.release(TIME).await.expect("an answer"), Settled::Superseded(Some(_))));
    assert_eq!(owner.complete(&stored("2"), TIME).await.expect("an answer"), Settled::AsWritten);
    let record = rivals.store.read(&rivals.key, TIME).await.expect("an answer").expect("the record");
    assert_eq!(record.result, Some(stored("2")));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_one_of_two_takes_a_record_over() {
    let rivals = Rivals::new().await;
    let dead = rivals.claim("dead", Duration::from_secs(10));
    assert!(matches!(rivals.acquire(&dead).await, Acquired::Mine(_)));
    let heirs = [rivals.claim("a", Duration::ZERO), rivals.claim("b", Duration::ZERO)];
    let Acquired::Held(record) = rivals.acquire(&heirs[0]).await else { panic!("the key is held") };
    let (a, b) = tokio::join!(
        rivals.store.take_over(&rivals.key, &heirs[0], &record, TIME),
        rivals.store.take_over(&rivals.key, &heirs[1], &record, TIME),
    );
    let taken = [a, b].into_iter().filter(|taken| matches!(taken, Ok(Acquired::Mine(_)))).count();
    assert_eq!(taken, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_put_that_is_sent_twice_is_recognised_as_our_own() {
    let rivals = Rivals::new().await;
    let claim = rivals.claim("me", Duration::ZERO);
    assert!(matches!(rivals.acquire(&claim).await, Acquired::Mine(_)));
    let Acquired::Held(record) = rivals.acquire(&claim).await else { panic!("the key is held") };
    assert_eq!(decide(&record, &claim, rivals.key.args_hash(), rivals.store.now()), Decision::Ours);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_record_is_replaced_although_it_is_still_there() {
    let rivals = Rivals::new().await;
    let old = Claim { expires_at: rivals.store.now(), ..rivals.claim("old", Duration::ZERO) };
    let Acquired::Mine(guard) = rivals.acquire(&old).await else { panic!("the key was free") };
    guard.complete(&stored("1"), TIME).await.expect("an answer");
    let later = rivals.database.store_at(rivals.store.now().plus(Duration::from_secs(2)));
    let new = rivals.claim("new", Duration::ZERO);
    assert!(matches!(later.acquire(&rivals.key, &new, TIME).await.expect("an answer"), Acquired::Mine(_)));
}
