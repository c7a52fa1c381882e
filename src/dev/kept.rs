//! The conversation of `dev run-loop`, which may outlive the process in a file.

use std::{
    fmt::Display,
    path::{Path, PathBuf},
};

use futures_util::{FutureExt, future::BoxFuture};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Trouble,
    beside::Unplaced,
    lock::{Held, Lock},
};
use crate::agent::{
    drive::{Conversations, Revision, SaveError},
    memory::InMemory,
    run::AgentRun,
};

/// The one conversation of this process: in memory, or in a file.
pub struct Kept {
    /// Its id.
    pub id: String,
    file: Option<PathBuf>,
    memory: InMemory,
    /// The file is this process's.
    _lock: Option<Lock>,
}

/// What the file holds.
#[derive(Serialize, Deserialize)]
struct State {
    conversation: String,
    revision: u64,
    run: Value,
}

impl Kept {
    /// The conversation in this file, or a new one. Another process that is at the same file is not disturbed: each save would
    /// be on condition that nobody else has saved, but both would have asked the model and run its calls.
    pub fn open(file: Option<&Path>) -> Result<Self, Trouble> {
        let lock = file.map(Lock::take).transpose().map_err(|Held| in_use(file))?.flatten();
        let state = file.filter(|file| file.exists()).map(read).transpose()?;
        file.map_or(Ok(()), look)?;
        let new = || format!("local-{:016x}", rand::random::<u64>());
        let id = state.map_or_else(new, |state| state.conversation);
        Ok(Self { id, file: file.map(Path::to_owned), memory: InMemory::default(), _lock: lock })
    }
}

/// Looks whether a save will find room beside the file.
fn look(file: &Path) -> Result<(), Trouble> {
    Unplaced::make(file).map(drop).map_err(|error| Trouble(unkept(file, error)))
}

/// Why there is no conversation in this file.
pub fn unkept(file: &Path, error: impl Display) -> String {
    format!("The conversation cannot be kept in {}: {error}.", file.display())
}

fn in_use(file: Option<&Path>) -> Trouble {
    let file = file.unwrap_or(Path::new("")).display();
    Trouble(format!(
        "Another `dev run-loop` is at the conversation in {file}. Wait until it has ended, or name another file with --state."
    ))
}

fn read(file: &Path) -> Result<State, Trouble> {
    let bad =
        |why: String| Trouble(format!("The file {} is no conversation of `dev run-loop`: {why}.", file.display()));
    let text = std::fs::read(file).map_err(|error| bad(error.to_string()))?;
    serde_json::from_slice(&text).map_err(|error| bad(error.to_string()))
}

impl Conversations for Kept {
    fn load<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<(AgentRun, Revision)>, SaveError>> {
        let Some(file) = self.file.as_deref().filter(|file| file.exists()) else { return self.memory.load(id) };
        let state = read(file).map_err(|_| SaveError::Unreadable);
        let run = state.and_then(|State { run, revision, .. }| {
            serde_json::from_value(run).map(|run| Some((run, Revision(revision)))).map_err(|_| SaveError::Unreadable)
        });
        async move { run }.boxed()
    }

    fn save<'a>(
        &'a self,
        id: &'a str,
        run: &'a AgentRun,
        after: Option<Revision>,
    ) -> BoxFuture<'a, Result<Revision, SaveError>> {
        let Some(file) = self.file.as_deref() else { return self.memory.save(id, run, after) };
        let saved = save(file, id, run, after);
        async move { saved }.boxed()
    }
}

/// Writes it beside the file and puts it in its place, so that a process that dies leaves one of the two.
fn save(file: &Path, id: &str, run: &AgentRun, after: Option<Revision>) -> Result<Revision, SaveError> {
    let current = if file.exists() { Some(read(file).map_err(|_| SaveError::Unreadable)?) } else { None };
    if current.map(|state| Revision(state.revision)) != after {
        return Err(SaveError::Superseded);
    }
    let revision = after.map_or(0, |Revision(number)| number) + 1;
    let run = serde_json::to_value(run).map_err(unavailable)?;
    let state = State { conversation: id.to_owned(), revision, run };
    let state = serde_json::to_vec(&state).map_err(unavailable)?;
    let new = Unplaced::make(file).map_err(unavailable)?;
    std::fs::write(new.path(), state).and_then(|()| new.put(file)).map_err(unavailable)?;
    Ok(Revision(revision))
}

fn unavailable(error: impl std::error::Error + Send + Sync + 'static) -> SaveError {
    SaveError::Unavailable(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{limits::Limits, tools::Tools};

    #[test]
    fn a_save_touches_no_file_but_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let [file, others @ ..] = ["talk.json", "talk.new", "talk.json.new"].map(|name| folder.path().join(name));
        for other in &others {
            std::fs::write(other, "mine").expect("it is written");
        }
        let run = AgentRun::new(Limits::new(1_000), Tools::default());
        save(&file, "c", &run, None).expect("it is saved");
        for other in others {
            assert_eq!(std::fs::read_to_string(other).expect("it is there"), "mine");
        }
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 3);
    }
}
