//! What kind of failure ended a call, and who can fix it.

use std::fmt;

/// What kind of failure ended a call. [`FailureKind::name`] is its spelling at every door, in logs and in metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// The arguments break a rule of the tool's schema.
    InvalidInput,
    /// What the arguments name does not exist.
    NotFound,
    /// A business rule forbids it.
    Rejected,
    /// There is no tool of that name.
    UnknownTool,
    /// The caller may not do this, whoever asks and however often.
    Denied,
    /// A person has to approve it first.
    ApprovalRequired,
    /// The same action is running already.
    InProgress,
    /// The key of this action was used with other arguments.
    KeyReused,
    /// A backend was not available; trying later may help.
    Transient,
    /// The time ran out before an answer came.
    Timeout,
    /// The effect may or may not have happened.
    OutcomeUnknown,
    /// The result does not fit the answer.
    TooLarge,
    /// A fault of ours.
    Internal,
}

/// Who can do something about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fixer {
    /// The model, by calling differently.
    Model,
    /// Nobody needs to do anything but wait.
    Time,
    /// A person outside the conversation.
    Person,
    /// The developer of the function.
    Developer,
}

impl FailureKind {
    /// Every kind, in the order of the variants.
    pub const ALL: [Self; 13] = [
        Self::InvalidInput,
        Self::NotFound,
        Self::Rejected,
        Self::UnknownTool,
        Self::Denied,
        Self::ApprovalRequired,
        Self::InProgress,
        Self::KeyReused,
        Self::Transient,
        Self::Timeout,
        Self::OutcomeUnknown,
        Self::TooLarge,
        Self::Internal,
    ];

    /// The name on the wire, in logs and in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InvalidInput => "invalid_input",
            Self::NotFound => "not_found",
            Self::Rejected => "rejected",
            Self::UnknownTool => "unknown_tool",
            Self::Denied => "denied",
            Self::ApprovalRequired => "approval_required",
            Self::InProgress => "in_progress",
            Self::KeyReused => "key_reused",
            Self::Transient => "transient",
            Self::Timeout => "timeout",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::TooLarge => "too_large",
            Self::Internal => "internal",
        }
    }

    /// Who can fix a failure of this kind.
    pub const fn fixer(self) -> Fixer {
        match self {
            Self::InvalidInput
            | Self::NotFound
            | Self::Rejected
            | Self::UnknownTool
            | Self::KeyReused
            | Self::TooLarge => Fixer::Model,
            Self::Transient | Self::Timeout | Self::InProgress => Fixer::Time,
            Self::Denied | Self::ApprovalRequired | Self::OutcomeUnknown => Fixer::Person,
            Self::Internal => Fixer::Developer,
        }
    }

    /// Whether the very same call may succeed later, as far as the kind alone can tell.
    pub const fn retryable(self) -> bool {
        matches!(self.fixer(), Fixer::Time)
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_name_of_its_own() {
        let names: std::collections::HashSet<_> = FailureKind::ALL.iter().map(|k| k.name()).collect();
        assert_eq!(names.len(), FailureKind::ALL.len());
    }
}
