//! A tool that does what a test says, with each effect.

use std::sync::{Arc, Mutex};

use action_group::tool::{CallContext, Effect, Policy, Reconciled, Success, Tool, ToolError, Toolbox, Write};
use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem};
use serde_json::{Value, json};

/// What an attempt does; without more of them it succeeds.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Reject,
    NoAnswer,
    Ask,
    /// Asks whether or not a person has approved it.
    AskAnyway,
    /// Asks if the condition of its write fails: as long as nobody has opened the way.
    AskInTheCommit,
    Busy,
}

/// Pay somebody. Above 100 a person has to approve; so does a person for exactly 50, but only the tool knows.
#[derive(serde::Deserialize, schemars::JsonSchema)]
pub struct Payment {
    /// How much.
    #[schemars(extend("examples" = [1]))]
    amount: u32,
    /// Anything.
    #[serde(default)]
    #[allow(dead_code, reason = "what a model may write into it")]
    note: String,
}

/// What the tool does next, what it finds out, and what it has done: for each attempt whether it was approved.
#[derive(Default)]
pub struct Script {
    pub steps: Vec<Step>,
    pub found: Option<Reconciled<Value>>,
    /// How often the bank was asked, for whatever.
    pub requests: u32,
    pub done: Vec<bool>,
    /// Whether every payment needs a person by now.
    pub limit_is_lowered: bool,
}

pub struct Pay<const EFFECT: u8>(pub Arc<Mutex<Script>>);

pub const EFFECTS: [Effect; 3] = [Effect::Once, Effect::Keyed, Effect::Atomic];
pub const ONCE: u8 = 0;
pub const KEYED: u8 = 1;
pub const ATOMIC: u8 = 2;

impl<const EFFECT: u8> Tool for Pay<EFFECT> {
    const NAME: &'static str = "pay";
    type Args = Payment;
    type Output = Value;

    fn policy(&self) -> Policy<Payment> {
        let script = Arc::clone(&self.0);
        Policy::new(EFFECTS[usize::from(EFFECT)]).approve_when(move |payment: &Payment| {
            payment.amount > 100 || script.lock().expect("a script").limit_is_lowered
        })
    }

    async fn call(&self, payment: Payment, context: &CallContext) -> Result<Success<Value>, ToolError> {
        if payment.amount == 50 && !context.is_approved() {
            return Err(ToolError::approval_required("Fifty is a special number."));
        }
        let mut script = self.0.lock().expect("a script");
        script.requests += 1;
        let step = script.steps.pop();
        if matches!(step, Some(Step::Busy)) {
            return Err(ToolError::transient("The bank is busy."));
        }
        if let Some(Step::Reject) = step {
            return Err(ToolError::rejected("Not on a Sunday."));
        }
        if matches!(step, Some(Step::AskAnyway)) || matches!(step, Some(Step::Ask)) && !context.is_approved() {
            return Err(ToolError::approval_required("The limit of the day is reached."));
        }
        script.done.push(context.is_approved());
        if let Some(Step::NoAnswer) = step {
            return Err(ToolError::no_answer("The bank gave no clear answer."));
        }
        let result = json!({"paid": payment.amount});
        if EFFECT != ATOMIC {
            return Ok(result.into());
        }
        let paid = AttributeValue::Bool(true);
        let id = AttributeValue::S(format!("payment {}", script.done.len()));
        let fails = matches!(step, Some(Step::AskInTheCommit)) && !context.is_approved();
        let condition = fails.then(|| String::from("attribute_exists(id)"));
        let put = Put::builder()
            .table_name("demo-effects")
            .item("id", id)
            .item("paid", paid)
            .set_condition_expression(condition)
            .build()?;
        let write = Write::new(TransactWriteItem::builder().put(put).build())
            .or_else(|_| ToolError::approval_required("The limit of the day is reached."));
        Ok(Success::with_writes(result, vec![write]))
    }

    async fn reconcile(&self, _: Payment, _: &CallContext) -> Result<Reconciled<Value>, ToolError> {
        let mut script = self.0.lock().expect("a script");
        script.requests += 1;
        script.found.clone().ok_or_else(|| ToolError::internal("the bank does not tell"))
    }
}

pub fn toolbox(effect: u8, script: &Arc<Mutex<Script>>) -> Arc<Toolbox> {
    let (builder, script) = (Toolbox::builder(), Arc::clone(script));
    let builder = match effect {
        ONCE => builder.tool(Pay::<ONCE>(script)),
        KEYED => builder.tool(Pay::<KEYED>(script)),
        _ => builder.tool(Pay::<ATOMIC>(script)),
    };
    Arc::new(builder.build().expect("a toolbox"))
}
