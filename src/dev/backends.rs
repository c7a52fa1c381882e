//! The demo carrier and the demo mailer. What they do is kept in the embedded database, so that it outlives the process
//! as the real thing would.

use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::{seed, tables::Tables};
use crate::{
    tool::{Reconciled, ToolError},
    tools::{Carrier, Email, LabelOrder, Mailer},
};

/// What tells the effects in the table apart.
pub const KIND: &str = "kind";
/// The key of the call that an effect is of.
pub const REFERENCE: &str = "reference";
/// When an effect was made, in microseconds since 1970.
pub const MADE_AT: &str = "made_at";

/// Makes one label for each idempotency key, as the real carriers do.
pub struct DemoCarrier(pub Tables);

impl Carrier for DemoCarrier {
    fn create_label(&self, order: LabelOrder) -> BoxFuture<'_, Result<String, ToolError>> {
        Box::pin(async move {
            // The same key gives the same number, so that a repetition needs no look at the first label.
            let label_id = format!("LBL-{}", order.idempotency_key.chars().take(10).collect::<String>());
            let label = effect(json!({
                KIND: "label",
                "label_id": label_id,
                "order_id": order.order_id,
                "carrier": order.carrier,
            }));
            self.0.note_effect(&format!("label#{}", order.idempotency_key), &label)?;
            Ok(label_id)
        })
    }
}

/// Sends each mail it is given, however often.
pub struct DemoMailer {
    pub tables: Tables,
    /// Whether it can be asked what it has sent. SES cannot.
    pub keeps_a_log: bool,
}

impl Mailer for DemoMailer {
    fn send(&self, email: Email) -> BoxFuture<'_, Result<String, ToolError>> {
        Box::pin(async move {
            let message_id = format!("MSG-{:016x}", rand::random::<u64>());
            let mail = effect(json!({
                KIND: "email",
                "message_id": message_id,
                "to": email.to,
                "subject": email.subject,
                "body": email.body,
                REFERENCE: email.reference,
            }));
            self.tables.note_effect(&format!("email#{message_id}"), &mail)?;
            Ok(message_id)
        })
    }

    fn find<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<Reconciled<String>, ToolError>> {
        Box::pin(async move {
            if !self.keeps_a_log {
                return Ok(Reconciled::Unknown);
            }
            let sent = self.tables.all(seed::EFFECTS)?;
            let found = sent.iter().find(|row| row.get(REFERENCE).is_some_and(|value| value == reference));
            let message_id = found.and_then(|row| row.get("message_id")?.as_str());
            Ok(message_id.map_or(Reconciled::NotDone, |id| Reconciled::Done(id.to_owned())))
        })
    }
}

fn effect(effect: Value) -> Map<String, Value> {
    let Value::Object(mut effect) = effect else { return Map::new() }; // both callers pass an object
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    effect.insert(MADE_AT.to_owned(), json!(u64::try_from(now.as_micros()).unwrap_or(u64::MAX)));
    effect
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        dev::{Embedded, effects::Effects},
        tools::CarrierName,
    };

    #[tokio::test]
    async fn the_same_key_gives_the_same_label_and_a_mail_is_sent_as_often_as_asked() {
        let database = Embedded::start(None, 0).await.expect("a database");
        let carrier = DemoCarrier(database.tables().clone());
        let label = |key: &str| LabelOrder {
            order_id: "ORD-12345".into(),
            carrier: CarrierName::Ups,
            idempotency_key: key.into(),
            time_left: Duration::from_secs(1),
        };
        let first = carrier.create_label(label("0123456789ab")).await.expect("a label");
        assert_eq!(carrier.create_label(label("0123456789ab")).await.expect("a label"), first);
        assert_ne!(carrier.create_label(label("fedcba987654")).await.expect("a label"), first);
        let mailer = DemoMailer { tables: database.tables().clone(), keeps_a_log: false };
        for subject in ["one", "two"] {
            let (to, subject, body) = ("ada@example.com".into(), subject.into(), "Hello".into());
            let (reference, time_left) = ("key".into(), Duration::from_secs(1));
            mailer.send(Email { to, subject, body, reference, time_left }).await.expect("sent");
        }
        let effects = Effects::read(database.tables(), std::collections::BTreeMap::new()).expect("the effects");
        let effects = serde_json::to_value(effects).expect("JSON");
        assert_eq!(effects["labels"].as_array().map(Vec::len), Some(2));
        assert_eq!(effects["labels"][0]["carrier"], "ups");
        assert_eq!(
            (&effects["emails"][0]["subject"], &effects["emails"][1]["subject"]),
            (&json!("one"), &json!("two"))
        );
        assert_eq!(effects["emails"][1]["body"], "Hello");
    }
}
