//! An hour of calls, in which some things go wrong: a carrier that is down, slow look-ups, mail without an answer.
//!
//! It is the same in every run: one call after the other, and the times in its lines are given, not measured.

use std::{
    error::Error,
    io::Write,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use action_group::{
    app,
    dev::{Embedded, database::http_client, sdk_config},
    env::Env,
    handler::Handler,
    runtime::Invocation,
    settings::Settings,
    tool::{AnyTool, CallContext, Definition, Effect, Plan, Reconciled, Success, ToolError, Toolbox},
    tools::{self, Backends},
};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::Instant;

/// The metric lines of each minute, and the tools that they are about.
pub struct Hour {
    pub toolbox: Toolbox,
    pub minutes: Vec<Vec<Value>>,
}

const MINUTES: usize = 60;
const CALLS_A_MINUTE: usize = 24;
/// What each call has.
const TIME: Duration = Duration::from_secs(2);

/// Runs it.
pub async fn hour() -> Result<Hour, Box<dyn Error>> {
    let database = Embedded::start(None, 0).await?;
    let (lines, minute) = (Lines::default(), Arc::new(AtomicUsize::new(0)));
    let handler = function(&database.endpoint(), &lines, &minute)?;
    let mut minutes = Vec::new();
    for number in 0..MINUTES {
        minute.store(number, Ordering::SeqCst);
        for call in 0..CALLS_A_MINUTE {
            let _ = handler.handle(invocation(number * CALLS_A_MINUTE + call)).await; // the lines say how it went
        }
        minutes.push((0..).zip(lines.take()).map(|(place, line)| timed(line, number, place)).collect());
    }
    let toolbox = toolbox("http://127.0.0.1:9")?;
    Ok(Hour { toolbox, minutes })
}

const VARIABLES: [(&str, &str); 5] = [
    ("IDEMPOTENCY_TABLE", "idempotency"),
    ("ORDERS_TABLE", "orders"),
    ("REFUNDS_TABLE", "refunds"),
    ("CARRIER_URL", "http://127.0.0.1:9"),
    ("MAIL_FROM", "shop@example.com"),
];

fn toolbox(endpoint: &str) -> Result<Toolbox, Box<dyn Error>> {
    let settings = tools::Settings::read(&mut Env::of(VARIABLES));
    Ok(tools::toolbox(Backends::new(&settings, &sdk_config(endpoint, http_client())))?)
}

fn function(endpoint: &str, lines: &Lines, minute: &Arc<AtomicUsize>) -> Result<Handler, Box<dyn Error>> {
    let settings = Settings::read(&mut Env::of(VARIABLES));
    let acting = |tool| Arc::new(Acting { tool, minute: Arc::clone(minute) }) as Arc<dyn AnyTool>;
    let toolbox = toolbox(endpoint)?.map(acting);
    Ok(app::assemble(&settings, toolbox, &sdk_config(endpoint, http_client()), Box::new(lines.clone()))?)
}

/// The metric lines that have been written.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    fn take(&self) -> Vec<Value> {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The line with the time that the minute's calls take, and what is then left: a machine's own times differ from run to run.
fn timed(mut line: Value, minute: usize, place: u32) -> Value {
    let attempts = line["Attempts"].as_u64().unwrap_or(0);
    let slow = if line["Tool"] == "get_order" && (38..46).contains(&minute) { 150 } else { 6 };
    let (each, pauses) = (attempts * slow, attempts.saturating_sub(1) * 200);
    let time = each + pauses + u64::from(place * 7 % 5);
    line["Duration"] = json!(time);
    line["HeadroomMs"] = json!(u64::try_from(TIME.as_millis()).unwrap_or(u64::MAX).saturating_sub(time));
    line
}

/// The call of this number. Every number has its own choice, the same in every run.
fn invocation(number: usize) -> Invocation {
    let dice = number.wrapping_mul(2_654_435_761) >> 7;
    let order = if dice.is_multiple_of(17) { "ORD-00000" } else { ["ORD-12345", "ORD-12346", "ORD-20001"][dice % 3] };
    let (tool, input) = match dice % 12 {
        0..=3 => ("get_order", json!({"order_id": order})),
        4 | 5 => {
            ("search_orders", json!({"customer_id": "C-1", "limit": if dice.is_multiple_of(5) { 500 } else { 5 }}))
        }
        6 | 7 => ("refund_order", json!({"order_id": order, "amount_cents": 1 + number % 40, "reason": "late"})),
        8 | 9 => ("create_shipping_label", json!({"order_id": format!("ORD-{:05}", number % 300), "carrier": "ups"})),
        10 => (
            "send_email",
            json!({"to": "ada@example.com", "subject": format!("No. {}", number % 200), "body": "Hello."}),
        ),
        _ if dice.is_multiple_of(5) => ("refund_orders", json!({})),
        _ => ("get_order", json!({"order_id": order})),
    };
    let event = json!({"toolUse": {"toolUseId": format!("t{number}"), "name": tool, "input": input}});
    Invocation {
        payload: event.to_string().into(),
        request_id: number.to_string(),
        deadline: Instant::now().checked_add(TIME),
        ..Invocation::default()
    }
}

/// A tool that does what the minute says.
struct Acting {
    tool: Arc<dyn AnyTool>,
    minute: Arc<AtomicUsize>,
}

impl AnyTool for Acting {
    fn definition(&self) -> &Definition {
        self.tool.definition()
    }

    fn plan(&self, arguments: &Value) -> Result<Plan, String> {
        self.tool.plan(arguments)
    }

    fn call(&self, arguments: Value, context: CallContext) -> BoxFuture<'static, Result<Success<Value>, ToolError>> {
        let (minute, attempt) = (self.minute.load(Ordering::SeqCst), context.attempt());
        let (name, effect) = (self.definition().name, self.definition().effect);
        let real = matches!(effect, Effect::ReadOnly | Effect::Atomic).then(|| self.tool.call(arguments, context));
        Box::pin(async move {
            match (name, minute) {
                ("create_shipping_label", 12..20) => Err(ToolError::transient("The carrier is not available.")),
                ("create_shipping_label", 20..24) if attempt < 2 => Err(ToolError::transient("The carrier is busy.")),
                ("send_email", 28..32) => Err(ToolError::no_answer("The mail server did not answer.")),
                ("search_orders", 50..53) => Err(ToolError::internal("a fault of the index")),
                _ => match real {
                    Some(real) => real.await,
                    None => Ok(json!({"id": "made"}).into()),
                },
            }
        })
    }

    fn reconcile(
        &self,
        arguments: Value,
        context: CallContext,
    ) -> BoxFuture<'static, Result<Reconciled<Value>, ToolError>> {
        self.tool.reconcile(arguments, context)
    }
}
