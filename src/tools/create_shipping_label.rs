//! `create_shipping_label`: an HTTP API that dedupes by a key, so the effect is [`Effect::Keyed`]: after a timeout it is
//! asked again with the same key, and the carrier makes one label.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::carrier::{Carrier, CarrierName, LabelOrder};
use crate::tool::{CallContext, Effect, Policy, Route, Scope, Success, Tool, ToolError};

/// Buy a shipping label for an order from a carrier. Asking again for the same order and carrier gives the same label.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The order's number: ORD- and five digits, for example ORD-12345.
    #[schemars(regex(pattern = "^ORD-[0-9]{5}$"), extend("examples" = ["ORD-12345"]))]
    order_id: String,
    /// Who carries the parcel: dhl, ups or fedex.
    #[schemars(extend("examples" = ["dhl"]))]
    carrier: CarrierName,
}

#[derive(Debug, Serialize)]
pub struct LabelMade {
    label_id: String,
    carrier: CarrierName,
    order_id: String,
}

pub struct CreateShippingLabel {
    pub carrier: Arc<dyn Carrier>,
}

impl Tool for CreateShippingLabel {
    const NAME: &'static str = "create_shipping_label";
    const ROUTE: Option<Route> = Some(Route::post("/orders/{order_id}/labels"));
    type Args = Args;
    type Output = LabelMade;

    fn policy(&self) -> Policy<Args> {
        Policy::new(Effect::Keyed)
            .scope(Scope::Deployment)
            .when_nothing_changed("No label was made.")
            .when_unknown("It is not known whether the label was made.")
    }

    async fn call(&self, args: Args, context: &CallContext) -> Result<Success<LabelMade>, ToolError> {
        let Some(key) = context.idempotency_key() else {
            return Err(ToolError::internal("a label without a key").nothing_sent());
        };
        let order = LabelOrder {
            order_id: args.order_id.clone(),
            carrier: args.carrier,
            idempotency_key: key.to_owned(),
            time_left: context.time_left(),
        };
        let label_id = self.carrier.create_label(order).await?;
        Ok(LabelMade { label_id, carrier: args.carrier, order_id: args.order_id }.into())
    }
}
