//! Metric lines and the causes in log lines, to look at.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    io::Write,
    sync::{Arc, Mutex},
};

use tracing::{Event, Subscriber, field::Field};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt as _},
    util::SubscriberInitExt as _,
};

/// What has been written; each clone sees all of it.
#[derive(Clone, Default)]
pub struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).expect("UTF-8")
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What stands as `fault` in the log lines of the calls of one tool.
#[derive(Clone)]
pub struct Faults {
    tool: &'static str,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Faults {
    /// Listens, for as long as the program runs: calls have tasks of their own, on any thread.
    pub fn of(tool: &'static str) -> Self {
        let faults = Self { tool, seen: Arc::default() };
        tracing_subscriber::registry().with(faults.clone()).init();
        faults
    }

    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

impl<S: Subscriber> Layer<S> for Faults {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = BTreeMap::new();
        event.record(&mut |field: &Field, value: &dyn Debug| {
            fields.insert(field.name(), format!("{value:?}").trim_matches('"').to_owned());
        });
        if fields.get("tool").is_some_and(|tool| tool == self.tool) {
            self.seen.lock().unwrap().extend(fields.remove("fault"));
        }
    }
}
