//! The honest end of a turn: why it stopped, what was done, what failed, what is not known, what was not attempted.
//!
//! The same report is a text for the person ([`Report::text`]) and JSON for a hand-off ([`Report::to_json`]).

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    ledger::{Entry, Fate, Known},
    stop::{Resume, Stop},
    usage::Usage,
};
use crate::outcome::FailureKind;

/// How a turn has ended, or where it stands.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Why it stopped.
    pub stop: Stop,
    /// What the person reads: the model's text only where the model has ended its turn by itself, or a guardrail has with
    /// its own text; else ours, made of the facts below.
    pub answer: String,
    /// The model's last words, where the answer is ours. Nobody has checked them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closing: Option<String>,
    /// Calls that succeeded.
    pub done: Vec<Item>,
    /// Calls that failed and changed nothing.
    pub failed: Vec<Item>,
    /// Calls whose outcome is not known.
    pub unknown: Vec<Item>,
    /// Calls that the model asked for and that were not run.
    pub not_attempted: Vec<Item>,
    /// Calls that wait for a person.
    pub waiting: Vec<Item>,
    /// Replies of the model in this turn, without the one to a closing request.
    pub steps: u32,
    /// Calls that were run in this turn, or may have been.
    pub tool_calls: u32,
    /// The tokens of this turn, as the model has told them.
    pub usage: Usage,
    /// The tokens that requests without an answer (failed, given up, lost with their driver), or with one that told none, are
    /// reckoned to have taken.
    pub estimated: Usage,
    /// How the conversation can go on.
    pub resume: Resume,
}

/// One call in a report.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// The tool, as it was asked for.
    pub tool: String,
    /// The arguments, as they were asked for.
    pub arguments: Value,
    /// `success`, `replayed`, the kind of failure, `not_run`, `awaiting_approval`; `open` if it had not begun at the end.
    pub outcome: String,
    /// Why there is no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The id by which a person decides on it (`dev approve ID`), where it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
    /// Whether it is an effect that failed or was not attempted, and no later equal call has brought it about.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left_undone: bool,
}

impl Report {
    /// A report of nothing so far.
    pub(super) const fn new(stop: Stop) -> Self {
        const NONE: Usage =
            Usage { input_tokens: 0, output_tokens: 0, cache_read_input_tokens: 0, cache_write_input_tokens: 0 };
        Self {
            stop,
            answer: String::new(),
            closing: None,
            done: Vec::new(),
            failed: Vec::new(),
            unknown: Vec::new(),
            not_attempted: Vec::new(),
            waiting: Vec::new(),
            steps: 0,
            tool_calls: 0,
            usage: NONE,
            estimated: NONE,
            resume: stop.resume(),
        }
    }

    /// The tokens of this turn, told and reckoned together.
    pub const fn tokens(&self) -> u64 {
        self.usage.total().saturating_add(self.estimated.total())
    }

    /// Adds a call. `perhaps`: if it has no end, it may have had its effect. `missed`: if it has not had its effect, there is
    /// one, and no later call has had it.
    pub(super) fn add(&mut self, entry: &Entry, perhaps: bool, missed: bool) {
        let (list, left_undone) = match &entry.fate {
            Fate::Open if perhaps => (&mut self.unknown, false),
            Fate::Open | Fate::NotRun { .. } => (&mut self.not_attempted, missed),
            Fate::Waiting(_) => (&mut self.waiting, false),
            // Without a record there is nothing to decide on, and nothing waits.
            Fate::Failed { kind, awaits: Some(_), .. } if kind == FailureKind::ApprovalRequired.name() => {
                (&mut self.waiting, false)
            }
            // This call changed nothing, but whoever is at the same action may have.
            Fate::Failed { .. } if perhaps && entry.is_in_progress() => (&mut self.unknown, false),
            Fate::Done { .. } | Fate::Failed { changed: Known::Done, .. } => (&mut self.done, false),
            Fate::Failed { changed: Known::Unknown, .. } => (&mut self.unknown, false),
            Fate::Failed { changed: Known::Nothing, .. } => (&mut self.failed, missed),
        };
        list.push(Item { left_undone, ..Item::of(entry) });
    }

    /// The report with its answer: the model's words if they end the turn, else why it stopped, and the facts.
    pub(super) fn with_answer(mut self, why: &str, words: String) -> Self {
        let words = Some(words).filter(|words| !words.is_empty());
        let facts = self.facts();
        let account = [why, &facts, self.resume.sentence()].into_iter().filter(|part| !part.is_empty());
        let account = account.collect::<Vec<_>>().join("\n");
        (self.answer, self.closing) = match (self.stop, words) {
            (Stop::EndTurn, Some(words)) => (words, None),
            (Stop::GuardrailIntervened, Some(words)) if facts.is_empty() => (words, None),
            (Stop::GuardrailIntervened, Some(words)) => (format!("{words}\n{account}"), None),
            (_, words) => (account, words),
        };
        self
    }

    /// Whether the model's answer alone could hide something: an effect that is left undone, is not known, or waits.
    pub fn needs_facts(&self) -> bool {
        let left_undone = self.failed.iter().chain(&self.not_attempted).any(|item| item.left_undone);
        left_undone || !(self.unknown.is_empty() && self.waiting.is_empty())
    }

    /// The report as text for the person: the answer, and what it must not hide.
    pub fn text(&self) -> String {
        let mut text = self.answer.clone();
        if self.stop == Stop::EndTurn && self.needs_facts() {
            let _ = write!(text, "\n\n{}", self.facts()); // writing to a String cannot fail
        }
        if let Some(closing) = &self.closing {
            let _ = write!(text, "\n\nThe assistant's last words, which nobody has checked:\n{closing}");
        }
        text
    }

    /// The report as JSON, for a hand-off.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default() // all of its keys are texts
    }

    /// A line for each call, by how it ended.
    fn facts(&self) -> String {
        let lists = [
            ("Done", &self.done),
            ("Failed, nothing was changed", &self.failed),
            ("Not known whether it was done", &self.unknown),
            ("Waits for approval", &self.waiting),
            ("Not attempted", &self.not_attempted),
        ];
        lists
            .into_iter()
            .filter(|(_, items)| !items.is_empty())
            .map(|(title, items)| section(title, items))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// What is said of a call that waits, and has no id.
const UNDECIDED: &str = "It could not be found out whether a person has to approve it, so there is nothing to decide yet. \
                         Resume the turn to look again.";

/// What is said of a call that waits after an attempt that may have been done.
const IN_DOUBT: &str = "An earlier attempt may have done it. To approve it is to have it tried again.";

/// A list with its title; of many calls the first ones.
fn section(title: &str, items: &[Item]) -> String {
    const MOST: usize = 10;
    let mut text = format!("{title}:");
    for item in items.iter().take(MOST) {
        let _ = write!(text, "\n- {}", item.line()); // writing to a String cannot fail
    }
    if items.len() > MOST {
        let _ = write!(text, "\n- and {} more", items.len() - MOST);
    }
    text
}

impl Item {
    fn of(Entry { call, fate, in_doubt, .. }: &Entry) -> Self {
        let (outcome, message, approval_id) = match fate {
            Fate::Open => ("open", None, None),
            Fate::Waiting(None) => ("awaiting_approval", Some(String::from(UNDECIDED)), None),
            Fate::Waiting(id) => ("awaiting_approval", in_doubt.then(|| String::from(IN_DOUBT)), id.clone()),
            Fate::NotRun { reason, .. } => ("not_run", Some(format!("not run, because {reason}")), None),
            Fate::Done { replayed: false } => ("success", None, None),
            Fate::Done { replayed: true } => ("replayed", None, None),
            Fate::Failed { kind, message, awaits, .. } => (kind.as_str(), Some(message.clone()), awaits.clone()),
        };
        let (tool, arguments) = (call.tool.clone(), shown(&call.input));
        Self { tool, arguments, outcome: outcome.to_owned(), message, approval_id, left_undone: false }
    }

    /// `refund_order {"amount_cents":1500,…}: why`.
    fn line(&self) -> String {
        let call = format!("{} {}", cut(&self.tool, 80), cut(&self.arguments.to_string(), 200));
        match (&self.approval_id, &self.message, self.outcome.as_str()) {
            (Some(id), Some(message), _) => format!("{call} (approval {id}): {}", cut(message, 300)),
            (Some(id), None, _) => format!("{call} (approval {id})"),
            (None, Some(message), _) => format!("{call}: {}", cut(message, 300)),
            (None, None, "replayed") => format!("{call} (it was done before)"),
            _ => call,
        }
    }
}

/// The arguments, if they are not so many that they would hide everything else.
fn shown(arguments: &Value) -> Value {
    const MOST: usize = 4_000;
    let size = arguments.to_string().len();
    if size > MOST { Value::from(format!("({size} bytes)")) } else { arguments.clone() }
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl std::fmt::Debug for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Report").field("stop", &self.stop).finish_non_exhaustive() // what people wrote stays out of logs
    }
}

impl std::fmt::Debug for Item {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Item").field("tool", &self.tool).field("outcome", &self.outcome).finish_non_exhaustive()
    }
}
