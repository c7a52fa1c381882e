//! An hour of calls, in which some things go wrong: a carrier that is down, slow look-ups, mail without an answer.

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
    handler::{Handler, Invocation},
    settings::{Env, Settings},
    tool::{AnyTool, CallContext, Definition, Effect, Plan, Reconciled, Success, ToolError, Toolbox},
    tools::{self, Backends},
};
use futures_util::{
    future::BoxFuture,
    stream::{self, StreamExt},
};
use serde_json::{Value, json};
use tokio::time::Instant;

/// The metric lines of each minute, and the tools that they are about.
pub struct Hour {
    pub toolbox: Toolbox,
    pub minutes: Vec<Vec<Value>>,
}

const MINUTES: usize = 60;
const CALLS_A_MINUTE: usize = 24;
const AT_ONCE: usize = 8;

/// Runs it.
pub async fn hour() -> Result<Hour, Box<dyn Error>> {
    let database = Embedded::start(None, 0).await?;
    let (lines, minute) = (Lines::default(), Arc::new(AtomicUsize::new(0)));
    let handler = function(&database.endpoint(), &lines, &minute)?;
    let mut minutes = Vec::new();
    for number in 0..MINUTES {
        minute.store(number, Ordering::SeqCst);
        let calls = (0..CALLS_A_MINUTE).map(|n| handler.handle(invocation(number * CALLS_A_MINUTE + n)));
        stream::iter(calls).buffer_unordered(AT_ONCE).collect::<Vec<_>>().await;
        minutes.push(lines.take());
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

/// The call of this number, with two seconds left. Every number has its own choice, the same in every run.
fn invocation(number: usize) -> Invocation {
    let dice = number.wrapping_mul(2_654_435_761) >> 7;
    let order = if dice.is_multiple_of(17) { "ORD-00000" } else { ["ORD-12345", "ORD-12346", "ORD-20001"][dice % 3] };
    let (tool, input) = match dice % 12 {
        0..=3 => ("get_order", json!({"order_id": order})),
        4 | 5 => ("search_orders", json!({"customer_id": "C-1", "limit": if dice % 5 == 0 { 500 } else { 5 }})),
        6 | 7 => ("refund_order", json!({"order_id": order, "amount_cents": 1 + number % 40, "reason": "late"})),
        8 | 9 => ("create_shipping_label", json!({"order_id": format!("ORD-{:05}", number % 300), "carrier": "ups"})),
        10 => (
            "send_email",
            json!({"to": "ada@example.com", "subject": format!("No. {}", number % 200), "body": "Hello."}),
        ),
        _ if dice % 5 == 0 => ("refund_orders", json!({})),
        _ => ("get_order", json!({"order_id": order})),
    };
    let event = json!({"toolUse": {"toolUseId": format!("t{number}"), "name": tool, "input": input}});
    Invocation {
        payload: event.to_string().into(),
        request_id: number.to_string(),
        deadline: Instant::now().checked_add(Duration::from_secs(2)),
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
            let slow = if name == "get_order" && (38..46).contains(&minute) { 150 } else { 4 };
            tokio::time::sleep(Duration::from_millis(slow + (minute as u64 * 7) % 5)).await;
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
