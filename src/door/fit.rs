//! What is said in place of a result that does not fit its answer.
//!
//! The pipeline measures each result against [`Door::limit`](super::Door::limit), and all of an event's against
//! [`ANSWER_LIMIT`](super::ANSWER_LIMIT), as soon as it is there. Two things only a door can see: a body that grows when it
//! is written as text inside JSON, and failures that take of the room of results. By then the effect of a write is done, so
//! that it stays a success.

use std::borrow::Cow;

use crate::{
    outcome::{Failure, Outcome, crowded_out, left_out, too_large},
    tool::{Effect, Toolbox},
};

/// What a door remembers of a tool, in case its result does not fit.
#[derive(Clone, Debug)]
pub(super) struct Spare {
    effect: Effect,
    nothing: Cow<'static, str>,
}

impl Spare {
    /// Of the tool with this name, if there is one.
    pub(super) fn of(toolbox: &Toolbox, name: &str) -> Option<Self> {
        let definition = toolbox.get(name)?.definition();
        Some(Self { effect: definition.effect, nothing: definition.wording.nothing.clone() })
    }
}

/// The outcome as it is, if its size is within `most`; else what stands in for it.
pub(super) fn within(outcome: Outcome, spare: Option<&Spare>, size: usize, most: usize) -> Outcome {
    match outcome {
        Outcome::Success { replayed, .. } if size > most => {
            stand_in(spare, replayed, size, |nothing| too_large(size, most, nothing))
        }
        other => other,
    }
}

/// The same for one result of several, if its size is within what those before it have left.
pub(super) fn beside(outcome: Outcome, spare: Option<&Spare>, size: usize, left: usize) -> Outcome {
    match outcome {
        Outcome::Success { replayed, .. } if size > left => {
            stand_in(spare, replayed, size, |nothing| crowded_out(size, nothing))
        }
        other => other,
    }
}

fn stand_in(
    spare: Option<&Spare>,
    replayed: bool,
    size: usize,
    told: impl FnOnce(Cow<'static, str>) -> Failure,
) -> Outcome {
    match spare {
        Some(Spare { effect: Effect::ReadOnly, nothing }) => Outcome::Failure(told(nothing.clone())),
        _ => Outcome::Success { result: left_out(size), replayed },
    }
}
