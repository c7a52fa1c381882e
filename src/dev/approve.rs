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
    schema, seed,
};
use crate::{
    clock::Clock,
    idempotency::{self, Store, Verdict},
    tool::{Effect, Toolbox},
};

#[derive(Debug, Args)]
pub struct Pending {
    /// The file that `dev invoke --db` keeps the database in.
    #[arg(long, value_name = "PATH")]
    pub db: PathBuf,
}

#[derive(Debug, Args)]
pub struct Decide {
    /// The id that `dev pending` shows, whole.
    #[arg(value_name = "ID")]
    pub id: String,
    /// Who decides. It stands in the record, also when the call is done.
    #[arg(long, value_name = "NAME")]
    pub by: String,
    /// The file that `dev invoke --db` keeps the database in.
    #[arg(long, value_name = "PATH")]
    pub db: PathBuf,
}

/// What an approval of a call that waits comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approved {
    /// It runs, and surely has not been done.
    Runs,
    /// An attempt may have done it, and it runs again with the same key.
    RunsAgain,
    /// An attempt may have done it under this effect, and the tool has another by now: it is not done by another way.
    IsLookedUp { begun_as: &'static str, effect: &'static str },
}

impl Approved {
    /// What an approval of this call comes to, with these tools.
    pub fn of(call: &idempotency::Pending, toolbox: &Toolbox) -> Self {
        Self::with(call, toolbox.get(&call.tool).map(|entry| entry.definition().effect))
    }

    fn with(call: &idempotency::Pending, effect: Option<Effect>) -> Self {
        match effect {
            Some(effect) if !call.runs_as(effect) => {
                Self::IsLookedUp { begun_as: call.effect.unwrap_or(effect).name(), effect: effect.name() }
            }
            _ if call.maybe_done => Self::RunsAgain,
            _ => Self::Runs,
        }
    }

    /// The same for the person who decides, as the end of a sentence; empty where nothing is special.
    pub fn told(self) -> String {
        match self {
            Self::Runs => String::new(),
            Self::RunsAgain => {
                String::from("an attempt before may have done it; approved, it runs again with the same key")
            }
            Self::IsLookedUp { begun_as, effect } => format!(
                "an attempt before may have done it; approved, it does not run: it was begun as {begun_as}, and the tool is \
                 {effect} by now, so the tool is only asked what became of it, and where it cannot tell nobody can"
            ),
        }
    }
}

/// Prints the calls that wait, one JSON object a line.
pub async fn pending(options: &Pending) -> Result<ExitCode, Trouble> {
    let (_database, store) = open(&options.db).await?;
    let toolbox = schema::toolbox()?;
    let (mut next, mut listed) = (None, 0);
    loop {
        let waiting = store.pending(next.as_deref()).await.map_err(|error| Trouble(error.to_string()))?;
        for call in &waiting.calls {
            print(format_args!("{}\n", shown(call, Approved::of(call, &toolbox))))?;
        }
        listed += waiting.calls.len();
        next = waiting.next;
        if next.is_none() {
            break;
        }
    }
    if listed == 0 {
        tell(Tone::Quiet, "Nothing waits for approval.");
    }
    Ok(ExitCode::SUCCESS)
}

/// Decides on one, and prints what was decided on.
pub async fn decide(options: &Decide, verdict: Verdict) -> Result<ExitCode, Trouble> {
    if options.by.trim().is_empty() {
        return Err(Trouble(String::from("--by must name the person who decides.")));
    }
    let (_database, store) = open(&options.db).await?;
    let toolbox = schema::toolbox()?;
    let decided = store.decide_approval(&options.id, &options.by, verdict).await;
    let call = decided.map_err(|error| Trouble(error.to_string()))?;
    let approved = Approved::of(&call, &toolbox);
    print(format_args!("{}\n", shown(&call, approved)))?;
    tell(Tone::Good, &decided_on(verdict, approved));
    Ok(ExitCode::SUCCESS)
}

/// What becomes of a call on which a person has decided so.
fn decided_on(verdict: Verdict, approved: Approved) -> String {
    let text = match (verdict, approved) {
        (Verdict::Approve, Approved::Runs) => "Approved. The same call runs once, if it is made within the hour.",
        (Verdict::Approve, Approved::RunsAgain) => {
            "Approved. An attempt before may have done it; the same call runs again with the same key, if it is made \
             before its record ends."
        }
        (Verdict::Approve, Approved::IsLookedUp { begun_as, effect }) => {
            return format!(
                "Approved, but it does not run: an attempt before may have done it as {begun_as}, and the tool is {effect} by \
                 now. The same call asks the tool what became of it; where it cannot tell, a person has to find out."
            );
        }
        (Verdict::Deny, Approved::Runs) => "Denied. The same call is refused from now on.",
        (Verdict::Deny, _) => {
            "Denied. The same call is not tried again. An attempt before may have done it, so its caller is not told \
             that nothing was done."
        }
    };
    text.to_owned()
}

async fn open(db: &Path) -> Result<(Embedded, Store), Trouble> {
    if !db.exists() {
        return Err(Trouble(format!("There is no database {}. `dev invoke --db` makes one.", db.display())));
    }
    let database = Embedded::start(Some(db), 0).await?;
    let client = aws_sdk_dynamodb::Client::new(&sdk_config(&database.endpoint(), http_client()));
    Ok((database, Store::new(client, seed::IDEMPOTENCY, Clock::system())))
}

fn shown(call: &idempotency::Pending, approved: Approved) -> Value {
    let arguments = serde_json::from_str(&call.arguments).unwrap_or_else(|_| Value::from(call.arguments.as_str()));
    let mut shown = json!(call);
    shown["arguments"] = arguments;
    if call.maybe_done {
        shown["note"] = Value::from(approved.told());
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGAIN: Approved = Approved::RunsAgain;
    const LOOKED_UP: Approved = Approved::IsLookedUp { begun_as: "keyed", effect: "once" };

    #[test]
    fn a_person_who_decides_in_doubt_is_not_promised_an_hour_or_that_nothing_was_done() {
        for verdict in [Verdict::Approve, Verdict::Deny] {
            let sure = decided_on(verdict, Approved::Runs);
            assert!(!sure.contains("may have done it"), "{sure}");
            for doubted in [AGAIN, LOOKED_UP].map(|approved| decided_on(verdict, approved)) {
                assert!(doubted.contains("may have done it") && !doubted.contains("hour"), "{doubted}");
            }
        }
    }

    #[test]
    fn a_person_is_told_that_an_approved_call_does_not_run_whose_tool_has_another_effect_by_now() {
        for text in [LOOKED_UP.told(), decided_on(Verdict::Approve, LOOKED_UP)] {
            assert!(text.contains("does not run") && text.contains("keyed") && text.contains("once"), "{text}");
        }
        for text in [AGAIN.told(), decided_on(Verdict::Approve, AGAIN)] {
            assert!(text.contains("runs again with the same key"), "{text}");
        }
    }

    fn waiting(maybe_done: bool) -> idempotency::Pending {
        idempotency::Pending::sample("refund_order", maybe_done, Effect::Keyed)
    }

    #[test]
    fn what_an_approval_comes_to_is_told_by_the_effect_before_and_now() {
        for (maybe_done, effect, wanted) in [
            (false, Some(Effect::Once), Approved::Runs),
            (true, Some(Effect::Keyed), AGAIN),
            (true, Some(Effect::Once), LOOKED_UP),
            (true, None, AGAIN),
        ] {
            assert_eq!(Approved::with(&waiting(maybe_done), effect), wanted);
        }
    }

    #[test]
    fn a_person_reads_when_it_was_asked_for_and_until_when_it_waits_and_a_program_too() {
        let shown = shown(&waiting(false), Approved::Runs);
        assert_eq!(
            (&shown["asked_at"], &shown["expires_at"]),
            (&json!("2026-11-30T09:48:21Z"), &json!("2026-11-30T10:48:21Z"))
        );
    }
}
