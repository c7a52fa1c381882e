//! `refund_order`: money, so the effect is [`Effect::Atomic`]. The tool only says what is to be written; the pipeline
//! commits it together with the record of the call, so that a refund is made once or not at all, whatever breaks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::orders::{Orders, Refund, refund_id};
use crate::tool::{CallContext, Effect, Policy, Route, Scope, Success, Tool, ToolError};

/// Refund part or all of an order to the customer. Use get_order first to see what can still be refunded. Above
/// 50000 cents in all, refunds of an order wait for a person's approval. Asking again for the same refund does not make it twice.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The order's number: ORD- and five digits, for example ORD-12345.
    #[schemars(regex(pattern = "^ORD-[0-9]{5}$"), extend("examples" = ["ORD-12345"]))]
    order_id: String,
    /// How much to refund, in cents: 1500 is 15.00. At most what can still be refunded of the order.
    #[schemars(range(min = 1), extend("examples" = [1500]))]
    amount_cents: u64,
    /// Why, in the customer's words or yours, in 1 to 200 characters. It is kept with the refund.
    #[schemars(length(min = 1, max = 200), extend("examples" = ["Arrived damaged"]))]
    reason: String,
}

/// What the model gets. It must come out the same for every attempt of a call: nothing here may be random.
#[derive(Debug, Serialize)]
pub struct Receipt {
    refund_id: String,
    order_id: String,
    amount_cents: u64,
}

/// Above this many cents of one order, in one refund or in several, a person has to approve.
const APPROVAL_ABOVE: u64 = 50_000;

pub struct RefundOrder {
    pub orders: Orders,
}

impl Tool for RefundOrder {
    const NAME: &'static str = "refund_order";
    const ROUTE: Option<Route> = Some(Route::post("/orders/{order_id}/refunds"));
    type Args = Args;
    type Output = Receipt;

    fn policy(&self) -> Policy<Args> {
        Policy::new(Effect::Atomic)
            // Whoever asks, in whatever words: the same amount of the same order is the same refund.
            .key(|args: &Args| json!([args.order_id, args.amount_cents]))
            .scope(Scope::Deployment)
            .approve_when(|args: &Args| args.amount_cents > APPROVAL_ABOVE)
            .when_nothing_changed("No refund was made.")
            .when_unknown("It is not known whether the refund was made. Call get_order to see what was refunded.")
    }

    async fn call(&self, args: Args, context: &CallContext) -> Result<Success<Receipt>, ToolError> {
        // Nothing is read first: the condition on the order is checked by the write itself.
        let Some(key) = context.idempotency_key() else {
            return Err(ToolError::internal("a refund without a key").nothing_sent());
        };
        let refund = Refund {
            refund_id: refund_id(key, context.began()),
            order_id: args.order_id,
            amount_cents: args.amount_cents,
            reason: args.reason,
            made_at: context.began(),
        };
        // Many small refunds are a large one: what nobody has approved adds up, per order.
        let free = (!context.is_approved()).then_some(APPROVAL_ABOVE);
        let writes = self.orders.refund(&refund, free)?;
        let Refund { refund_id, order_id, amount_cents, .. } = refund;
        Ok(Success::with_writes(Receipt { refund_id, order_id, amount_cents }, writes))
    }
}
