//! The end of an environment, with the real program: it settles what is on its way, answers, and goes.
#![cfg(all(feature = "dev", unix))]

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use support::{Answer, Database, Event, Fault, World, client, example};
use tokio::sync::oneshot::Receiver;

const PROGRAM: &str = env!("CARGO_BIN_EXE_action-group");
const MAIL: &str = "/v2/email/outbound-emails";
/// More than an invocation has.
const PATIENCE: Duration = Duration::from_mins(1);

/// The states of all records.
async fn states(world: &World) -> Vec<String> {
    let table = client(&world.faults.endpoint()).scan().table_name(Database::RECORDS).send().await.expect("a table");
    table.items().iter().map(|item| item["state"].as_s().expect("a state").clone()).collect()
}

/// Hands out the event, and waits until it has come as far as `is_there` says. Where the program must have read an answer, only
/// what the program writes can say so: that the request has arrived does not.
async fn on_its_way(world: &World, event: Event, is_there: impl AsyncFn() -> bool) -> Receiver<Answer> {
    let mut answer = world.function.hand_out(event);
    let arrival = async {
        while !is_there().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        biased;
        () = arrival => answer,
        early = &mut answer => panic!("it has not come so far: {early:?}\n{}", world.function.output()),
        () = tokio::time::sleep(PATIENCE) => panic!("neither is it answered:\n{}", world.function.output()),
    }
}

/// Ends the program as Lambda does, and makes sure that it goes by itself. That it has gone before Lambda would kill it is shown
/// by a stopped clock (`the_process_is_gone_with_the_grace_whatever_is_on_its_way`).
async fn end(world: &mut World) {
    world.function.extended().await;
    world.function.signal("TERM");
    let status = world.function.ended().await;
    assert_eq!(status.code(), Some(0), "{}", world.function.output());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_function_ends_when_it_is_asked_to() {
    let mut world = World::start(PROGRAM).await;
    end(&mut world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_on_its_way_is_marked_as_unknown_and_answered_so() {
    let mut world = World::start(PROGRAM).await;
    world.backend_faults.misbehave(MAIL, [Fault::Silence]);
    let is_asked = async || world.backend_faults.count(MAIL) > 0;
    let answer = on_its_way(&world, Event::file("converse/send-email.json"), is_asked).await;
    assert_eq!(states(&world).await, ["started"]);
    end(&mut world).await;
    assert_eq!(states(&world).await, ["unknown"]);
    let answer = answer.await.expect("an answer").response();
    let text = answer["toolResult"]["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains("The function was stopped before the tool answered."), "{text}");
    assert!(text.contains("It is not known whether the e-mail was sent."), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_on_its_way_is_given_up_so_that_the_next_call_goes_on_at_once() {
    let mut world = World::start(PROGRAM).await;
    world.backend_faults.misbehave("/labels", [Fault::SilenceAfter]);
    let is_asked = async || world.backend_faults.count("/labels") > 0;
    let answer = on_its_way(&world, Event::file("converse/create-shipping-label.json"), is_asked).await;
    end(&mut world).await;
    let answer: Value = answer.await.expect("an answer").response();
    assert!(answer.to_string().contains("it cannot be done twice"), "{answer}");

    let mut next = world.beside(PROGRAM).await;
    let answer = next.invoke(Event::file("converse/create-shipping-label.json")).await.response();
    assert_eq!(answer["toolResult"]["status"], "success", "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_for_another_attempt_ends_and_frees_the_key() {
    let mut world = World::start_with(PROGRAM, &[("RUST_LOG", "debug")]).await;
    world.backend_faults.misbehave("/labels", [Fault::With(429, "retry-after", "5"); 3]);
    let is_waiting = async || world.function.output().contains("\"message\":\"attempt\"");
    let answer = on_its_way(&world, Event::file("converse/create-shipping-label.json"), is_waiting).await;
    end(&mut world).await;
    let answer = answer.await.expect("an answer").response();
    assert!(answer.to_string().contains("The function was stopped before the tool answered."), "{answer}");
    assert!(answer.to_string().contains("No label was made."), "{answer}");
    assert!(states(&world).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_that_hang_or_block_do_not_hold_up_the_end() {
    let mut world = World::start_with(example("misbehave"), &[("RUST_LOG", "misbehave=debug")]).await;
    let tool = |id: &str, name: &str| json!({"toolUse": {"toolUseId": id, "name": name, "input": {}}});
    let message =
        json!({"role": "assistant", "content": [tool("t1", "hangs"), tool("t2", "hangs_once"), tool("t3", "blocks")]});
    let have_begun = async || world.function.output().matches("\"message\":\"begun\"").count() == 3;
    let answer = on_its_way(&world, Event::json(&message), have_begun).await;
    assert_eq!(states(&world).await, ["started"]);
    end(&mut world).await;
    let answer = answer.await.expect("an answer").response().to_string();
    assert_eq!(answer.matches("The function was stopped before the tool answered.").count(), 3, "{answer}");
}
