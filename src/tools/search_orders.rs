//! `search_orders`: optional arguments, a list as the result.

use schemars::JsonSchema;
use serde::Deserialize;

use super::orders::{Order, Orders, Search, Status};
use crate::tool::{CallContext, Effect, Policy, Route, Success, Tool, ToolError};

/// List the orders of one customer, in the order of their numbers, with status, amounts and tags. Changes nothing.
/// An empty list means that no order matches.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The customer's number, for example C-1.
    #[schemars(length(min = 1, max = 64), extend("examples" = ["C-1"]))]
    customer_id: String,
    /// Only orders with this status. Leave it out for all.
    #[schemars(extend("examples" = ["open"]))]
    status: Option<Status>,
    /// How many orders at most, from 1 to 50. Leave it out for 20.
    #[schemars(range(min = 1, max = 50), extend("examples" = [20]))]
    limit: Option<u32>,
    /// Only orders that carry all of these tags. Leave it out for all.
    #[schemars(length(max = 10), inner(length(min = 1, max = 50)), extend("examples" = [["gift"]]))]
    tags: Option<Vec<String>>,
}

const DEFAULT_LIMIT: u32 = 20;

pub struct SearchOrders {
    pub orders: Orders,
}

impl Tool for SearchOrders {
    const NAME: &'static str = "search_orders";
    const ROUTE: Option<Route> = Some(Route::get("/orders"));
    type Args = Args;
    type Output = Vec<Order>;

    fn policy(&self) -> Policy<Args> {
        Policy::new(Effect::ReadOnly)
    }

    async fn call(&self, args: Args, context: &CallContext) -> Result<Success<Vec<Order>>, ToolError> {
        let search = Search {
            customer_id: args.customer_id,
            status: args.status,
            limit: usize::try_from(args.limit.unwrap_or(DEFAULT_LIMIT))?,
            tags: args.tags.unwrap_or_default(),
        };
        Ok(self.orders.search(&search, context.time_left()).await?.into())
    }
}
