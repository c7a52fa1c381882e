//! Log lines as JSON: one object a line, `timestamp` in RFC 3339, and the fields of all spans around it at the root.
//!
//! ```json
//! {"timestamp":"2026-11-29T08:15:00.123Z","level":"WARN","target":"action_group::call","message":"the record table failed",
//!  "request_id":"…","tool":"refund_order","operation":"PutItem","kind":"NoAnswer"}
//! ```
//!
//! So a line of a tool, or of a library below it, tells which call it is about, and a query needs no nested names. The
//! formatter of `tracing-subscriber` nests them.

use std::{
    fmt,
    io::Write,
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use serde_json::{Map, Value};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{
    Layer,
    layer::Context,
    registry::{LookupSpan, Scope},
};

use super::rfc3339;

/// Writes every event as a line.
pub(super) struct JsonLines(Mutex<Box<dyn Write + Send>>);

impl JsonLines {
    pub fn to(out: Box<dyn Write + Send>) -> Self {
        Self(Mutex::new(out))
    }

    /// One write a line. What cannot be logged is lost: a complaint on stderr would panic where stderr fails too.
    fn write(&self, line: Map<String, Value>) {
        let line = Value::Object(line).to_string() + "\n";
        let mut out = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for JsonLines {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut line = Fields::default();
        for span in context.event_scope(event).into_iter().flat_map(Scope::from_root) {
            if let Some(Fields(fields)) = span.extensions().get() {
                line.0.extend(fields.clone());
            }
        }
        event.record(&mut line);
        let metadata = event.metadata();
        line.put("timestamp", rfc3339(SystemTime::now().into()));
        line.put("level", metadata.level().as_str());
        line.put("target", metadata.target());
        self.write(line.0);
    }
}

/// Fields by name. A later one of the same name replaces the earlier: an event's its span's, an inner span's the outer's.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field.name(), value);
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.put(field.name(), u64::try_from(value).unwrap_or(u64::MAX));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field.name(), value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field.name(), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field.name(), format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn lines(logged: impl FnOnce()) -> Vec<Value> {
        let buffer = Buffer::default();
        let layer = JsonLines::to(Box::new(buffer.clone()));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), logged);
        let text = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    #[test]
    fn a_line_has_the_fields_of_its_spans_and_its_own_win() {
        let lines = lines(|| {
            let outer = tracing::info_span!("outer", id = "r-1", n = 1, late = tracing::field::Empty);
            outer.record("late", "set");
            outer.in_scope(|| {
                tracing::info_span!("inner", n = 2).in_scope(|| tracing::warn!(ok = true, "first\nand second"));
                tracing::error!(id = "r-2", "third");
            });
        });
        let without_time = |line: &Value| {
            let mut line = line.clone();
            line.as_object_mut().unwrap().retain(|name, _| !["timestamp", "target"].contains(&&**name));
            line
        };
        let expected = [
            json!({"level": "WARN", "message": "first\nand second", "id": "r-1", "n": 2, "late": "set", "ok": true}),
            json!({"level": "ERROR", "message": "third", "id": "r-2", "n": 1, "late": "set"}),
        ];
        assert_eq!(lines.iter().map(without_time).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn nothing_that_is_logged_can_pose_as_the_timestamp_or_the_level() {
        let lines = lines(|| tracing::warn!(timestamp = "never", level = "INFO", "x"));
        assert_eq!(lines[0]["level"], "WARN");
        assert!(lines[0]["timestamp"].as_str().unwrap().ends_with('Z'));
    }
}
