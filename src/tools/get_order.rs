//! `get_order`: the simplest tool. It reads.

use schemars::JsonSchema;
use serde::Deserialize;

use super::orders::{Order, Orders};
use crate::tool::{CallContext, Effect, Policy, Route, Success, Tool, ToolError};

/// Look up one order by its number: the customer, the status, what was paid, what was refunded and what can still be
/// refunded. Changes nothing. Amounts are in cents.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The order's number: ORD- and five digits, for example ORD-12345.
    #[schemars(regex(pattern = "^ORD-[0-9]{5}$"), extend("examples" = ["ORD-12345"]))]
    order_id: String,
}

pub struct GetOrder {
    pub orders: Orders,
}

impl Tool for GetOrder {
    const NAME: &'static str = "get_order";
    const ROUTE: Option<Route> = Some(Route::get("/orders/{order_id}"));
    type Args = Args;
    type Output = Order;

    fn policy(&self) -> Policy<Args> {
        Policy::new(Effect::ReadOnly)
    }

    async fn call(&self, args: Args, context: &CallContext) -> Result<Success<Order>, ToolError> {
        let order = self.orders.get(&args.order_id, context.time_left()).await?;
        Ok(order.ok_or_else(|| super::orders::no_such_order(&args.order_id))?.into())
    }
}
