//! The tools of this deployment. Replace these with your own.
//!
//! | file | tool | effect | what it shows |
//! | --- | --- | --- | --- |
//! | `get_order.rs` | `get_order` | `ReadOnly` | the least a tool needs |
//! | `search_orders.rs` | `search_orders` | `ReadOnly` | optional arguments, a list as the result |
//! | `refund_order.rs` | `refund_order` | `Atomic` | money: DynamoDB writes that commit with the record |
//! | `create_shipping_label.rs` | `create_shipping_label` | `Keyed` | an HTTP API with an idempotency key |
//! | `send_email.rs` | `send_email` | `Once` | an effect that nobody dedupes |
//!
//! `orders.rs`, `carrier.rs` and `mailer.rs` are the clients that the tools hold. `docs/add-a-tool.md` walks through
//! adding a tool of your own, and says what else changes with it; [`toolbox`] is the one place to register it.

#![allow(clippy::doc_markdown)] // a tool's doc comment is prose, which the model reads

use std::{fmt, sync::Arc};

use aws_config::SdkConfig;

use crate::{
    env::Env,
    tool::{Toolbox, ToolboxError},
};

mod carrier;
mod create_shipping_label;
mod get_order;
mod mailer;
mod orders;
mod refund_order;
mod search_orders;
mod send_email;
#[cfg(all(test, feature = "dev"))]
mod tests;

pub use self::{
    carrier::{Carrier, CarrierName, HttpCarrier, LabelOrder},
    mailer::{Email, Mailer, SesMailer},
    orders::{BY_CUSTOMER, Orders},
};

/// Every tool. Add yours here.
///
/// # Errors
///
/// All faults of names and schemas at once, a sentence each.
pub fn toolbox(backends: Backends) -> Result<Toolbox, ToolboxError> {
    let Backends { orders, carrier, mailer } = backends;
    Toolbox::builder()
        .tool(get_order::GetOrder { orders: orders.clone() })
        .tool(search_orders::SearchOrders { orders: orders.clone() })
        .tool(refund_order::RefundOrder { orders })
        .tool(create_shipping_label::CreateShippingLabel { carrier })
        .tool(send_email::SendEmail { mailer })
        .build()
}

/// What the tools need to know, from environment variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `ORDERS_TABLE`.
    pub orders_table: String,
    /// `REFUNDS_TABLE`.
    pub refunds_table: String,
    /// `CARRIER_URL`.
    pub carrier_url: String,
    /// `MAIL_FROM`.
    pub mail_from: String,
}

impl Settings {
    /// Reads them. Faults are in `env`, together with those of the function's own settings.
    pub fn read(env: &mut Env) -> Self {
        Self {
            orders_table: env.table("ORDERS_TABLE"),
            refunds_table: env.table("REFUNDS_TABLE"),
            carrier_url: env.url("CARRIER_URL"),
            mail_from: env.email("MAIL_FROM"),
        }
    }
}

/// What the tools work on. The local program puts demo systems in the place of the carrier and the mailer.
pub struct Backends {
    /// Orders and refunds.
    pub orders: Orders,
    /// Sells shipping labels.
    pub carrier: Arc<dyn Carrier>,
    /// Sends mail.
    pub mailer: Arc<dyn Mailer>,
}

impl Backends {
    /// The real ones.
    pub fn new(settings: &Settings, sdk: &SdkConfig) -> Self {
        let dynamodb = aws_sdk_dynamodb::Client::new(sdk);
        Self {
            orders: Orders::new(dynamodb, &settings.orders_table, &settings.refunds_table),
            carrier: Arc::new(HttpCarrier::new(&settings.carrier_url)),
            mailer: Arc::new(SesMailer::new(sdk, &settings.mail_from)),
        }
    }
}

impl fmt::Debug for Backends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Backends { .. }") // seams, of whatever type
    }
}

/// The examples of the documentation, so that they are compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/add-a-tool.md")]
struct AddATool;
