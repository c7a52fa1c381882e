//! The real Lambda program, killed at every moment, and asked again until it answers. What counts is what the systems
//! behind have done.
//!
//! `cargo test --test kill -- --nocapture` prints what was done to it and what came of it; `--ignored` does it ten times
//! as often.

#![cfg(feature = "dev")] // the embedded DynamoDB

mod support;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use aws_sdk_dynamodb::types::AttributeValue;
use rand::RngExt;
use serde_json::{Value, json};
use support::{Backends, Break, Database, Event, Function, Network, RuntimeApi};

/// Rounds at a time.
const WORKERS: usize = 8;
/// The time of the delivery that breaks, and of the later ones, which outlasts its lease and the margin.
const FIRST: Duration = Duration::from_millis(1_500);
const LATER: Duration = Duration::from_secs(6);

#[derive(Clone, Copy, Debug)]
enum Tool {
    Mail,
    Refund,
    Label,
}

impl Tool {
    const fn name(self) -> &'static str {
        match self {
            Self::Mail => "send_email",
            Self::Refund => "refund_order",
            Self::Label => "create_shipping_label",
        }
    }

    /// The requests of an untroubled call.
    const fn requests(self) -> usize {
        match self {
            Self::Refund => 1,
            Self::Mail | Self::Label => 3,
        }
    }

    fn event(self, round: usize, time: Duration) -> Event {
        let order_id = format!("ORD-{round:05}");
        let arguments = match self {
            Self::Mail => json!({"to": "ada@example.com", "subject": subject(round), "body": "Hello."}),
            Self::Refund => json!({"order_id": order_id, "amount_cents": 100, "reason": "Broken"}),
            Self::Label => json!({"order_id": order_id, "carrier": "dhl"}),
        };
        let context = json!({"custom": {"bedrockAgentCoreToolName": format!("orders___{}", self.name())}});
        Event::json(&arguments).client_context(context.to_string()).time_left(time)
    }
}

fn subject(round: usize) -> String {
    format!("round {round}")
}

/// What goes wrong in a round.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    At(usize, Break),
    KillAfter(Duration),
}

impl Trouble {
    /// Each moment in turn, and every fourth time a moment that nobody has chosen.
    fn of(tool: Tool, round: usize) -> Self {
        const FAULTS: [Break; 7] = [
            Break::KillBefore,
            Break::KillDuring,
            Break::KillAfter,
            Break::HoldRequest,
            Break::HoldReply,
            Break::CutReply,
            Break::Throttle,
        ];
        if round % 4 == 3 {
            return Self::KillAfter(Duration::from_micros(rand::rng().random_range(0..80_000)));
        }
        let at = round - round / 4;
        Self::At(at % tool.requests(), FAULTS[at / tool.requests() % FAULTS.len()])
    }
}

/// Everything around the rounds of one tool.
struct Surroundings {
    tool: Tool,
    database: Database,
    backends: Backends,
    next: AtomicUsize,
    rounds: usize,
    tally: Mutex<BTreeMap<String, usize>>,
}

impl Surroundings {
    fn count(&self, what: impl Into<String>) {
        *self.tally.lock().unwrap().entry(what.into()).or_default() += 1;
    }

    /// How often the effect of this round was made.
    async fn effects(&self, round: usize) -> usize {
        match self.tool {
            Tool::Mail => self.backends.mails(&subject(round)),
            Tool::Refund => {
                let got = self.database.client().get_item().table_name("orders").key("order_id", order_id(round));
                let item = got.send().await.unwrap().item.unwrap();
                let left: usize = item["refundable_cents"].as_n().unwrap().parse().unwrap();
                (1_000 - left) / 100
            }
            Tool::Label => 0, // counted in all, at the end
        }
    }

    async fn add_order(&self, round: usize) {
        let n = |number: u32| AttributeValue::N(number.to_string());
        let put = self.database.client().put_item().table_name("orders").item("order_id", order_id(round));
        let put = put.item("refundable_cents", n(1_000)).item("total_cents", n(1_000));
        put.send().await.unwrap();
    }
}

fn order_id(round: usize) -> AttributeValue {
    AttributeValue::S(format!("ORD-{round:05}"))
}

/// One function, which is started again whenever it has been killed.
struct Worker {
    api: RuntimeApi,
    network: Network,
    settings: Vec<(&'static str, String)>,
    function: Option<Function>,
}

impl Worker {
    async fn new(around: &Surroundings) -> Self {
        let network = Network::new();
        let database = network.proxy(&around.database.endpoint()).await.endpoint();
        let backends = network.proxy(around.backends.endpoint()).await.endpoint();
        let settings = vec![
            ("IDEMPOTENCY_TABLE", Database::RECORDS.to_owned()),
            ("ORDERS_TABLE", String::from("orders")),
            ("REFUNDS_TABLE", String::from("refunds")),
            ("CARRIER_URL", backends.clone()),
            ("MAIL_FROM", String::from("shop@example.com")),
            ("AWS_ENDPOINT_URL_DYNAMODB", database),
            ("AWS_ENDPOINT_URL_SESV2", backends),
            ("RESERVE_MS", String::from("250")),
        ];
        Self { api: RuntimeApi::start().await, network, settings, function: None }
    }

    fn start(&mut self) -> &mut Function {
        self.function.get_or_insert_with(|| {
            let settings: Vec<_> = self.settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
            self.api.launch(env!("CARGO_BIN_EXE_action-group"), &settings)
        })
    }

    /// Delivers the call. `None` if the process was killed before it answered.
    async fn deliver(&mut self, event: Event, trouble: Option<Trouble>) -> Option<Value> {
        let network = self.network.clone();
        network.break_at(match trouble {
            Some(Trouble::At(number, fault)) => Some((number, fault)),
            _ => None,
        });
        let answer = self.api.hand_out(event);
        let function = self.start();
        let killed = async {
            match trouble {
                Some(Trouble::KillAfter(time)) => tokio::time::sleep(time).await,
                _ => network.time_to_die().await,
            }
        };
        tokio::select! {
            answer = answer => {
                let answer = answer.expect("an answer");
                // The guard has stopped it: that is no answer of the call, as if it had been killed.
                if answer.is_error() { None } else { Some(answer.response()) }
            }
            () = killed => {
                self.function = None; // dropping it is SIGKILL
                None
            }
            status = function.ended() => panic!("it ended by itself: {status}"),
        }
    }

    /// One round: the call is delivered and goes wrong, and is delivered again until it has an answer that stays.
    async fn round(&mut self, around: &Surroundings, round: usize) {
        let tool = around.tool;
        let trouble = Trouble::of(tool, round);
        around.add_order(round).await;
        let mut answers = Vec::new();
        let first = self.deliver(tool.event(round, FIRST), Some(trouble)).await;
        around.count(match (&first, trouble) {
            (None, Trouble::KillAfter(_)) => String::from("killed at a random moment"),
            (Some(_), Trouble::KillAfter(_)) => String::from("answered before the random moment"),
            (_, Trouble::At(number, fault)) => format!("{fault:?} at request {number}"),
        });
        if let Some(answer) = first {
            let effects = around.effects(round).await;
            agrees(&answer, effects, trouble);
            answers.push(answer);
        }
        let mut deliveries = 1;
        while answers.last().is_none_or(is_passing) {
            deliveries += 1;
            assert!(deliveries < 6, "{trouble:?}: no end of {answers:?}");
            answers.extend(self.deliver(tool.event(round, LATER), None).await);
        }
        let answer = answers.last().unwrap();
        let effects = around.effects(round).await;
        agrees(answer, effects, trouble);
        let counted = !matches!(tool, Tool::Label);
        assert!(!counted || answer["ok"] == false || effects == 1, "{trouble:?}: {effects} effects, {answers:?}");
        around.count(format!("=> {}", name_of(answer)));
        match tool {
            Tool::Mail => assert!(effects <= 1, "{trouble:?}: {effects} mails, {answers:?}"),
            Tool::Refund => assert_eq!((effects, &answer["ok"]), (1, &json!(true)), "{trouble:?}: {answers:?}"),
            Tool::Label => assert_eq!(answer["ok"], true, "{trouble:?}: {answers:?}"),
        }
    }
}

fn name_of(answer: &Value) -> String {
    match (answer["ok"].as_bool(), answer["replayed"].as_bool()) {
        (Some(true), Some(true)) => String::from("done by an earlier delivery"),
        (Some(true), _) => String::from("done"),
        _ => answer["error"]["kind"].as_str().unwrap_or("?").to_owned(),
    }
}

/// Whether the answer says that the same call may get another one.
fn is_passing(answer: &Value) -> bool {
    answer["ok"] == false && answer["error"]["retryable"] == true
}

/// No answer says that nothing was done, if it was; and none that it was, if it was not.
fn agrees(answer: &Value, effects: usize, trouble: Trouble) {
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    if answer["error"]["changed"] == "nothing" && !message.ends_with("This call changed nothing.") {
        assert_eq!(effects, 0, "{trouble:?}: {answer}");
    }
}

/// Runs the rounds, and prints what came of them. Gives the labels, and how often one was asked for again.
async fn rounds(tool: Tool, rounds: usize) -> (usize, usize) {
    let around = Arc::new(Surroundings {
        tool,
        database: Database::start().await,
        backends: Backends::start().await,
        next: AtomicUsize::new(0),
        rounds,
        tally: Mutex::default(),
    });
    let workers = (0..WORKERS).map(|_| {
        let around = Arc::clone(&around);
        tokio::spawn(async move {
            let mut worker = Worker::new(&around).await;
            loop {
                let round = around.next.fetch_add(1, Ordering::Relaxed);
                if round >= around.rounds {
                    return;
                }
                worker.round(&around, round).await;
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.unwrap();
    }
    let tally = std::mem::take(&mut *around.tally.lock().unwrap());
    let lines: Vec<_> = tally.iter().map(|(what, count)| format!("  {count:4} {what}\n")).collect();
    let mut effects = 0;
    for round in 0..rounds {
        effects += around.effects(round).await;
    }
    let labels = around.backends.labels();
    println!(
        "{rounds} rounds of {}: {} effects, {} requests repeated under the same key\n{}",
        tool.name(),
        effects + labels.0,
        labels.1,
        lines.concat()
    );
    labels
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_is_never_sent_twice_whenever_the_process_is_killed() {
    rounds(Tool::Mail, 50).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_is_made_exactly_once_whenever_the_process_is_killed() {
    rounds(Tool::Refund, 50).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_is_bought_once_whenever_the_process_is_killed() {
    let (labels, _) = rounds(Tool::Label, 50).await;
    assert_eq!(labels, 50);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: 500 rounds of each"]
async fn five_hundred_rounds_of_each_effect() {
    rounds(Tool::Mail, 500).await;
    rounds(Tool::Refund, 500).await;
    let (labels, _) = rounds(Tool::Label, 500).await;
    assert_eq!(labels, 500);
}
