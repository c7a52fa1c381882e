//! Conversations in this process's memory: for a loop that is run once, and for tests.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use futures_util::{FutureExt, future::BoxFuture};

use super::{
    drive::{Conversations, Revision, SaveError},
    run::AgentRun,
};

/// Conversations as JSON, each with its revision.
#[derive(Debug, Default)]
pub struct InMemory(Mutex<HashMap<String, (String, Revision)>>);

impl Conversations for InMemory {
    fn load<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<(AgentRun, Revision)>, SaveError>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        let read = |(json, revision): (String, Revision)| {
            serde_json::from_str(&json).map(|run| (run, revision)).map_err(|_| SaveError::Unreadable)
        };
        async move { kept.map(read).transpose() }.boxed()
    }

    fn save<'a>(
        &'a self,
        id: &'a str,
        run: &'a AgentRun,
        after: Option<Revision>,
    ) -> BoxFuture<'a, Result<Revision, SaveError>> {
        async move {
            let json = serde_json::to_string(run).map_err(|error| SaveError::Unavailable(Box::new(error)))?;
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.get(id).map(|(_, revision)| *revision) != after {
                return Err(SaveError::Superseded);
            }
            let revision = Revision(after.map_or(0, |Revision(number)| number) + 1);
            kept.insert(id.to_owned(), (json, revision));
            Ok(revision)
        }
        .boxed()
    }
}
