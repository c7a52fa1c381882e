//! Tools to fuzz with: data only, with every kind of argument that a schema can have.

use action_group::tool::{CallContext, Effect, Policy, Route, Success, Tool, ToolError, Toolbox};
use schemars::JsonSchema;
use serde::Deserialize;

/// Get an order.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "only the schema counts")]
pub struct Get {
    /// The order.
    #[schemars(regex(pattern = "^ORD-[0-9]{5}$"), extend("examples" = ["ORD-12345"]))]
    order_id: String,
}

/// A line of an order.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "only the schema counts")]
pub struct Line {
    /// The topic.
    #[schemars(extend("examples" = ["a"]))]
    topic: String,
    /// The values.
    values: Option<Vec<String>>,
    /// Its number.
    #[schemars(range(min = -5, max = 500))]
    number: Option<i64>,
    /// Whether it counts.
    counts: Option<bool>,
}

/// Search orders.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "only the schema counts")]
pub struct Search {
    /// A text.
    text: Option<String>,
    /// An integer.
    #[schemars(range(min = 1, max = 50))]
    limit: Option<u32>,
    /// A number.
    price: Option<f64>,
    /// A boolean.
    open: Option<bool>,
    /// A list of texts.
    #[schemars(length(max = 9))]
    tags: Option<Vec<String>>,
    /// A list of numbers.
    numbers: Option<Vec<f64>>,
    /// An object.
    line: Option<Line>,
    /// A list of objects.
    lines: Option<Vec<Line>>,
}

struct Data<const N: usize>;

macro_rules! tool {
    ($n:literal, $name:literal, $args:ty, $effect:expr, $route:expr) => {
        impl Tool for Data<$n> {
            const NAME: &'static str = $name;
            const ROUTE: Option<Route> = $route;
            type Args = $args;
            type Output = ();

            fn policy(&self) -> Policy<$args> {
                Policy::new($effect)
            }

            async fn call(&self, _: $args, _: &CallContext) -> Result<Success<()>, ToolError> {
                Ok(().into())
            }
        }
    };
}

tool!(0, "get_order", Get, Effect::ReadOnly, Some(Route::get("/orders/{order_id}")));
tool!(1, "search_orders", Search, Effect::ReadOnly, Some(Route::get("/orders")));
tool!(2, "refund_order", Search, Effect::Atomic, None);

/// The tools.
pub fn toolbox() -> Toolbox {
    let builder = Toolbox::builder().tool(Data::<0>).tool(Data::<1>).tool(Data::<2>);
    builder.build().unwrap_or_else(|faults| panic!("{faults}"))
}
