//! A conversation as items: a head, and each message in as many parts as it needs.
//!
//! Pure: from a run to items and back. The head lists the digest and the number of parts of each message, so that what was
//! kept already is not written again, parts that no longer count are not read, and damage is seen.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{
    agent::{drive::SaveError, run::AgentRun},
    idempotency::hex,
};

/// The largest part, in bytes of text. An item of DynamoDB has 400 KB at most, its names included.
const PART: usize = 350_000;
/// What one transaction carries: 4 MB and 100 items at most, the head included.
const TRANSACTION: usize = 3_500_000;
/// The most parts of one message; more than a transaction can carry.
const MOST_PARTS: usize = 100;

/// What the head says of one message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    digest: String,
    parts: usize,
}

/// One item of a message: where it stands, and its text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub step: usize,
    pub text: String,
}

/// A run, ready to be written.
#[derive(Debug)]
pub(super) struct Split {
    /// The run without its messages, as JSON.
    pub state: String,
    /// The messages, as the head lists them.
    pub kept: Vec<Kept>,
    /// The parts that are not there yet.
    pub new: Vec<Part>,
}

/// Splits a run. `before` is what is there already.
pub(super) fn split(run: &AgentRun, before: &[Kept]) -> Result<Split, SaveError> {
    let mut state = serde_json::to_value(run).map_err(|error| SaveError::Unavailable(error.into()))?;
    let messages = state.get_mut(MESSAGES).map(Value::take).unwrap_or_default();
    let state = state.to_string();
    let (mut kept, mut new) = (Vec::new(), Vec::new());
    for (index, message) in messages.as_array().into_iter().flatten().enumerate() {
        let text = message.to_string();
        let parts = parts(&text);
        let this = Kept { digest: digest(&text), parts: parts.len() };
        if before.get(index) != Some(&this) {
            new.extend(
                parts
                    .into_iter()
                    .enumerate()
                    .map(|(part, text)| Part { step: step(index, part), text: text.to_owned() }),
            );
        }
        kept.push(this);
    }
    let size = state.len() + new.iter().map(|part| part.text.len()).sum::<usize>();
    let fits = state.len() + kept.len() * LISTED <= PART && size <= TRANSACTION && new.len() < MOST_PARTS;
    if fits { Ok(Split { state, kept, new }) } else { Err(SaveError::TooLarge { size, limit: TRANSACTION }) }
}

/// Joins what was read: the state, the list in the head, and all parts in the order of their steps.
pub(super) fn join(state: &str, kept: &[Kept], parts: Vec<Part>) -> Result<AgentRun, SaveError> {
    let mut texts = vec![String::new(); kept.len()];
    for Part { step, text } in parts {
        let (index, part) = place(step);
        if kept.get(index).is_some_and(|kept| part < kept.parts) {
            texts[index].push_str(&text);
        }
    }
    let whole = texts.iter().zip(kept).all(|(text, kept)| digest(text) == kept.digest);
    let messages = texts.iter().map(|text| serde_json::from_str(text)).collect::<Result<Vec<Value>, _>>();
    let (true, Ok(messages), Ok(mut state)) = (whole, messages, serde_json::from_str::<Value>(state)) else {
        return Err(SaveError::Unreadable);
    };
    if let Some(fields) = state.as_object_mut() {
        fields.insert(String::from(MESSAGES), messages.into());
    }
    serde_json::from_value(state).map_err(|_| SaveError::Unreadable)
}

/// The field of a run that holds its messages.
const MESSAGES: &str = "messages";
/// What one message adds to the head.
const LISTED: usize = 64;

/// The steps of a conversation: 0 is the head, the parts of message `index` follow each other.
const fn step(index: usize, part: usize) -> usize {
    (index + 1) * MOST_PARTS + part
}

const fn place(step: usize) -> (usize, usize) {
    ((step / MOST_PARTS).saturating_sub(1), step % MOST_PARTS)
}

/// The first and the last step of so many messages.
pub(super) const fn steps(messages: usize) -> (usize, usize) {
    (step(0, 0), step(messages, 0))
}

/// The text in parts, none of which splits a character.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while rest.len() > PART {
        let (part, after) = rest.split_at(rest.floor_char_boundary(PART));
        parts.push(part);
        rest = after;
    }
    parts.push(rest);
    parts
}

fn digest(text: &str) -> String {
    hex(&Sha256::digest(text)[..16])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{conversation::Message, limits::Limits, tools::Tools};

    fn run(texts: &[&str]) -> AgentRun {
        let messages = texts.iter().map(|text| Message::user(*text)).collect();
        AgentRun::new(Limits::new(1_000), Tools::default()).with_history(messages)
    }

    #[test]
    fn what_is_split_is_joined_again_and_characters_stay_whole() {
        let long = "é".repeat(400_001);
        let run = run(&[&long]);
        let Split { state, kept, new } = split(&run, &[]).expect("it fits");
        assert!(new.len() == 3 && new.iter().all(|part| part.text.len() <= PART), "{} parts", new.len());
        let joined = join(&state, &kept, new).expect("a run");
        assert_eq!(joined.messages(), run.messages());
    }

    #[test]
    fn only_what_has_changed_is_written_again() {
        let before = split(&run(&["a"]), &[]).expect("it fits").kept;
        let after = split(&run(&["a"]), &before).expect("it fits");
        assert_eq!((after.new, after.kept), (vec![], before.clone()));
        let other = split(&run(&["b"]), &before).expect("it fits");
        assert_eq!(other.new.iter().map(|part| part.step).collect::<Vec<_>>(), [100]);
    }

    #[test]
    fn parts_of_an_earlier_time_do_not_count_and_missing_ones_are_damage() {
        let run = run(&["a"]);
        let stale = [Part { step: 101, text: String::from("x") }, Part { step: 200, text: String::from("y") }];
        let Split { state, kept, new } = split(&run, &[]).expect("it fits");
        let joined = join(&state, &kept, new.into_iter().chain(stale).collect()).expect("a run");
        assert_eq!(joined.messages(), run.messages());
        assert!(matches!(join(&state, &kept, vec![]), Err(SaveError::Unreadable)));
        assert!(matches!(join("{}", &[], vec![]), Err(SaveError::Unreadable)));
    }

    #[test]
    fn what_no_transaction_can_carry_is_refused_with_its_size() {
        let error = split(&run(&[&"x".repeat(TRANSACTION)]), &[]).expect_err("too large");
        assert!(matches!(error, SaveError::TooLarge { size, .. } if size > TRANSACTION), "{error}");
    }
}
