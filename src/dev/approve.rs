//! `dev pending`, `dev approve`, `dev deny`: the person's side of approval, on the database of `dev invoke --db`.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use serde_json::{Value, json};

use super::{
    Trouble,
    account::{Tone, tell},
    database::{Embedded, http_client, sdk_config},
    output::print,
    seed,
};
use crate::{
    clock::Clock,
    idempotency::{self, Store, Verdict},
};

#[derive(Debug, Args)]
pub struct Pending {
    /// The file that `dev invoke --db` keeps the database in.
    #[arg(long, value_name = "PATH")]
    pub db: PathBuf,
}

#[derive(Debug, Args)]
pub struct Decide {
    /// The key that `dev pending` shows, or as much of its beginning as tells it apart.
    #[arg(value_name = "KEY")]
    pub key: String,
    /// Who decides. It stands in the record, also when the call is done.
    #[arg(long, value_name = "NAME")]
    pub by: String,
    /// The file that `dev invoke --db` keeps the database in.
    #[arg(long, value_name = "PATH")]
    pub db: PathBuf,
}

/// Prints the calls that wait, one JSON object a line.
pub async fn pending(options: &Pending) -> Result<ExitCode, Trouble> {
    let (_database, store) = open(&options.db).await?;
    let waiting = store.pending().await.map_err(|error| Trouble(error.to_string()))?;
    if waiting.is_empty() {
        tell(Tone::Quiet, "Nothing waits for approval.");
    }
    for call in waiting {
        print(format_args!("{}\n", shown(&call)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Decides on one, and prints what was decided on.
pub async fn decide(options: &Decide, verdict: Verdict) -> Result<ExitCode, Trouble> {
    if options.by.trim().is_empty() {
        return Err(Trouble(String::from("--by must name the person who decides.")));
    }
    let (_database, store) = open(&options.db).await?;
    let decided = store.decide_approval(&options.key, &options.by, verdict).await;
    let call = decided.map_err(|error| Trouble(error.to_string()))?;
    print(format_args!("{}\n", shown(&call)))?;
    tell(Tone::Good, decided_on(verdict, call.maybe_done));
    Ok(ExitCode::SUCCESS)
}

/// What becomes of a call on which a person has decided so.
const fn decided_on(verdict: Verdict, maybe_done: bool) -> &'static str {
    match (verdict, maybe_done) {
        (Verdict::Approve, false) => "Approved. The same call runs once, if it is made within the hour.",
        (Verdict::Approve, true) => {
            "Approved. An attempt before may have done it; the same call runs again with the same key, if it is made \
             before its record ends."
        }
        (Verdict::Deny, false) => "Denied. The same call is refused from now on.",
        (Verdict::Deny, true) => {
            "Denied. The same call is not tried again. An attempt before may have done it, so its caller is not told \
             that nothing was done."
        }
    }
}

async fn open(db: &Path) -> Result<(Embedded, Store), Trouble> {
    if !db.exists() {
        return Err(Trouble(format!("There is no database {}. `dev invoke --db` makes one.", db.display())));
    }
    let database = Embedded::start(Some(db), 0).await?;
    let client = aws_sdk_dynamodb::Client::new(&sdk_config(&database.endpoint(), http_client()));
    Ok((database, Store::new(client, seed::IDEMPOTENCY, Clock::system())))
}

fn shown(call: &idempotency::Pending) -> Value {
    let arguments = serde_json::from_str(&call.arguments).unwrap_or_else(|_| Value::from(call.arguments.as_str()));
    let mut shown = json!({"key": call.key, "tool": call.tool, "arguments": arguments, "asked_at": call.asked_at});
    if call.maybe_done {
        shown["maybe_done"] = Value::from(true);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_who_decides_in_doubt_is_not_promised_an_hour_or_that_nothing_was_done() {
        for verdict in [Verdict::Approve, Verdict::Deny] {
            let [sure, doubted] = [false, true].map(|maybe_done| decided_on(verdict, maybe_done));
            assert!(!sure.contains("may have done it"), "{sure}");
            assert!(doubted.contains("may have done it") && !doubted.contains("hour"), "{doubted}");
        }
    }
}
