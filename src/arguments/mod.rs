//! Arguments: the schema that the model is told, and the check against that very schema.
//!
//! One schema, made from the tool's Rust type, is exported at every door and is what arguments are checked against, so
//! that the two cannot drift apart. It is written in a small dialect that every door can be given or reduced from, and
//! a toolbox whose schemas leave it does not start. All faults are reported at once, because each round trip to the
//! model costs a call:
//!
//! ```text
//! 3 faults in the arguments:
//! amount_cents must be a whole number of at least 1, but is the text "ten"; for example 1500.
//! reason is missing: a text of 1 to 200 characters; for example "damaged".
//! currency is not an argument of this tool, which has amount_cents, order_id, reason.
//! ```
//!
//! | file | its one idea |
//! | --- | --- |
//! | `schema` | from a Rust type to the dialect |
//! | `dialect` | what the dialect allows, and why something else is refused at start |
//! | `check` | the walk through the values: all faults, in a stable order |
//! | `rules` | one value against the rules of its own schema |
//! | `number`, `format` | exact numbers; e-mail addresses, dates and the like |
//! | `text`, `brackets` | values that arrive as text; lists and objects in it that are not JSON |
//! | `wording` | rules and values in words |
//! | `example` | a value that would be right |

mod brackets;
mod check;
mod dialect;
mod example;
mod format;
mod number;
mod rules;
mod schema;
#[cfg(test)]
mod tests;
mod text;
pub(crate) mod wording;

use std::{collections::BTreeSet, fmt};

pub use self::{check::Checker, dialect::schema_faults, schema::schema_of, text::read_text};
pub(crate) use self::{format::is_email, rules::same};

/// How many faults [`in_words`] tells; the model can mend the rest in the next round.
const TOLD: usize = 20;

/// One thing that is wrong with the arguments. `Display` gives a sentence with the path, the rule and an example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where: `amount_cents`, `tags[2]`, `address.street`; empty for the whole, and `rule` is then a whole sentence.
    pub path: String,
    /// What is wrong, and the rule: `must be a whole number, but is the text "ten"`.
    pub rule: String,
    /// A value that would be right, as JSON: `1500`.
    pub example: Option<String>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let between = if self.path.is_empty() { "" } else { " " };
        write!(f, "{}{between}{}", self.path, self.rule.trim_end_matches('.'))?;
        if let Some(example) = &self.example {
            write!(f, "; for example {example}")?;
        }
        f.write_str(".")
    }
}

/// All faults as one text for the model: bounded, and one fault for each path, the first. So faults of reading can be
/// followed by those of the check, which finds missing what could not be read.
pub fn in_words(faults: &[Fault]) -> String {
    let mut paths = BTreeSet::new();
    let told: Vec<&Fault> = faults.iter().filter(|fault| fault.path.is_empty() || paths.insert(&fault.path)).collect();
    let mut lines: Vec<String> = told.iter().take(TOLD).map(ToString::to_string).collect();
    if told.len() > 1 {
        let at_least = if faults.len() >= check::MOST { "At least " } else { "" };
        lines.insert(0, format!("{at_least}{} faults in the arguments:", told.len()));
    }
    if let Some(more @ 1..) = told.len().checked_sub(TOLD) {
        lines.push(format!("And {more} more."));
    }
    lines.join("\n")
}
