//! A person reads who asks for the call that waits, however it came to wait; and it stands there no longer than it waits.

use std::{sync::Arc, time::Duration};

use action_group::{
    call::{Arguments, Call, Room, Standing, Surroundings},
    idempotency::Verdict,
    telemetry::Origin,
    tool::Caller,
};
use serde_json::{Value, json};

use super::{
    doubt::asked_in_doubt,
    support::{pipeline, within},
    tool::{ATOMIC, KEYED, ONCE, Step},
    world::{World, paid},
};

fn eve() -> Caller {
    Caller::default().with_tenant("t-1").with_identity("eve").with_conversation("c-1").with_header("x-token", "1")
}

/// Who asks for the one call that waits.
async fn asked_by(world: &World) -> Value {
    let [call] = &world.shown().await[..] else { panic!("one call waits") };
    serde_json::to_value(&call.asked_by).expect("names are texts")
}

fn is_eve() -> Value {
    json!({"tenant": "t-1", "identity": "eve", "conversation": "c-1"})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_reads_who_asks_for_what_waits() {
    for (effect, amount) in [ONCE, KEYED, ATOMIC].into_iter().flat_map(|effect| [(effect, 500), (effect, 50)]) {
        let mut world = World::new(effect).await;
        world.caller = eve();
        world.call(json!({"amount": amount})).await;
        assert_eq!(asked_by(&world).await, is_eve(), "{amount}");
        world.decide(Verdict::Approve).await;
        assert_eq!(world.call(json!({"amount": amount})).await, paid(amount, false));
        let record = world.record().await;
        let kept = ["arguments", "asked_by"].map(|name| record.contains_key(name));
        assert_eq!(kept, [false, false], "what was for the person goes when the call begins");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_reads_who_asks_for_what_waits_in_doubt() {
    let mut world = World::new(KEYED).await;
    world.caller = eve();
    world.next(Step::Ask);
    world.next(Step::NoAnswer);
    world.call(json!({"amount": 7})).await;
    assert!(world.shown().await[0].maybe_done);
    assert_eq!(asked_by(&world).await, is_eve());
    assert_eq!(asked_by(&asked_in_doubt(true).await).await, json!({}), "nothing is known of nobody");
}

/// As the loop does before anything of a batch runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_person_reads_who_asks_for_what_a_host_has_looked_at() {
    let world = World::new(ONCE).await;
    let pipeline = pipeline(Arc::clone(&world.toolbox), world.database.store());
    let arguments = Arguments::from_json(json!({"amount": 500}));
    let call = Call { tool: String::from("pay"), arguments, caller: eve(), ..Call::default() };
    let around = Surroundings {
        origin: Origin::default(),
        deadline: within(Duration::from_secs(5)),
        limit: 100_000,
        room: Room::default(),
    };
    let standing = pipeline.approval(&call, &around).await;
    let shown = world.shown().await.remove(0);
    assert_eq!(standing, Standing::Waits(shown.id));
    assert_eq!(asked_by(&world).await, is_eve());
}
