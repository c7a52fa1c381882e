//! The state of a turn: all that [`AgentRun`](super::AgentRun) keeps beside the conversation.

use serde::{Deserialize, Serialize};

use super::super::{guard::Guard, ledger::Entry, model::ModelFailure, stop::Stop, usage::Usage};

/// What has happened since the person's last message.
#[derive(Clone, Default, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools, reason = "facts that are true or not at any phase, each of its own")]
pub(super) struct Turn {
    pub(super) phase: Phase,
    pub(super) steps: u32,
    /// As the model has told it.
    pub(super) spent: Usage,
    /// What nobody has told, estimated.
    pub(super) guessed: Usage,
    pub(super) guard: Guard,
    pub(super) ledger: Vec<Entry>,
    /// The entries at the beginning that were asked for in an earlier turn.
    pub(super) carried: usize,
    /// The first entry of the calls that have no result yet.
    pub(super) open: usize,
    pub(super) begun: Begun,
    /// What is open has run, and waits because it has asked for a person by itself.
    #[serde(default)]
    pub(super) asked: bool,
    /// The limit beyond which a call of this batch was.
    pub(super) beyond: Option<Stop>,
    /// The tools of which the guard has refused calls of this batch.
    pub(super) refused: Vec<String>,
    /// The model has been told once that its reply could not be used.
    pub(super) once_more: bool,
    /// No tool is run any more, and why.
    pub(super) closing: Option<Stop>,
    pub(super) failure: Option<ModelFailure>,
    pub(super) failures: u32,
    pub(super) interrupted: bool,
    /// The driver has let go of the run while the model was to be asked: no request is on its way.
    #[serde(default)]
    pub(super) put_down: bool,
    pub(super) last_words: String,
    /// The stop reason that is not known here, if one has ended the turn: as it can be shown.
    pub(super) reason: Option<String>,
}

/// Where the turn stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Phase {
    /// The model is to be asked.
    Model,
    /// Whether a person has to decide is to be asked.
    Approval,
    /// Calls wait for a person.
    Paused,
    /// Calls are to be run, or were handed out.
    Tools,
    /// Calls of a driver that is gone are to be looked at, before this message counts.
    Orphans(String),
    /// The turn is over.
    Over(Stop),
}

impl Default for Phase {
    fn default() -> Self {
        Self::Over(Stop::EndTurn)
    }
}

/// Whether the calls that have no result have begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Begun {
    /// Not under this driver.
    #[default]
    No,
    /// The driver has let go of the run before it handed them out.
    PutDown,
    /// The run was loaded, and nobody can tell.
    Perhaps,
}
