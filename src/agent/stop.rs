//! Why a turn has stopped.
//!
//! | stop | meaning | what can be done |
//! | --- | --- | --- |
//! | `end_turn` | the model has answered | say more |
//! | `max_steps`, `max_tool_calls`, `max_tokens`, `max_cost` | that limit was reached | say more |
//! | `repeated_failures` | the model asked for nothing but what had failed already | say more |
//! | `time` | the time was up | continue |
//! | `interrupted` | the process was ended, or the person did | continue |
//! | `awaiting_approval` | a person has to decide on calls | decide, then continue |
//! | `model_failed` | the model's call failed, after all that may be repeated | continue |
//! | `not_saved` | the conversation could not be saved, so nothing more was begun | continue |
//! | `cut_off` | the model's messages were twice too long, or cut off | say more |
//! | `malformed_reply` | the model's messages were twice not what it says they are | say more |
//! | `empty_answer` | the model twice said nothing | say more |
//! | `guardrail_intervened`, `content_filtered` | a guardrail, or a filter, has stopped the model | say something else |
//! | `model_context_window_exceeded` | the conversation is too long for the model | begin another one |
//! | `unknown_stop_reason` | the model stopped for a reason that this version does not know | say more |

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a turn has stopped. The name on the wire is [`Stop::name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Stop {
    /// The model has answered.
    EndTurn,
    /// `max_steps` was reached.
    MaxSteps,
    /// `max_tool_calls` was reached.
    MaxToolCalls,
    /// `max_tokens` was reached.
    MaxTokens,
    /// `max_cost` was reached.
    MaxCost,
    /// The model asked for nothing but calls that had failed already.
    RepeatedFailures,
    /// The time was up.
    Time,
    /// The process is ending, or the person has interrupted.
    Interrupted,
    /// A person has to decide on calls.
    AwaitingApproval,
    /// The model's call failed.
    ModelFailed,
    /// The conversation could not be saved.
    NotSaved,
    /// The model's messages were cut off, twice.
    CutOff,
    /// The model's messages were not whole, twice.
    MalformedReply,
    /// The model said nothing, twice.
    EmptyAnswer,
    /// A guardrail has stopped the model.
    GuardrailIntervened,
    /// A filter has stopped the model.
    ContentFiltered,
    /// The conversation is too long for the model.
    ModelContextWindowExceeded,
    /// Bedrock gave a reason that is not known here.
    UnknownStopReason,
}

impl Stop {
    /// Every stop.
    pub const ALL: [Self; 18] = [
        Self::EndTurn,
        Self::MaxSteps,
        Self::MaxToolCalls,
        Self::MaxTokens,
        Self::MaxCost,
        Self::RepeatedFailures,
        Self::Time,
        Self::Interrupted,
        Self::AwaitingApproval,
        Self::ModelFailed,
        Self::NotSaved,
        Self::CutOff,
        Self::MalformedReply,
        Self::EmptyAnswer,
        Self::GuardrailIntervened,
        Self::ContentFiltered,
        Self::ModelContextWindowExceeded,
        Self::UnknownStopReason,
    ];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::EndTurn => "end_turn",
            Self::MaxSteps => "max_steps",
            Self::MaxToolCalls => "max_tool_calls",
            Self::MaxTokens => "max_tokens",
            Self::MaxCost => "max_cost",
            Self::RepeatedFailures => "repeated_failures",
            Self::Time => "time",
            Self::Interrupted => "interrupted",
            Self::AwaitingApproval => "awaiting_approval",
            Self::ModelFailed => "model_failed",
            Self::NotSaved => "not_saved",
            Self::CutOff => "cut_off",
            Self::MalformedReply => "malformed_reply",
            Self::EmptyAnswer => "empty_answer",
            Self::GuardrailIntervened => "guardrail_intervened",
            Self::ContentFiltered => "content_filtered",
            Self::ModelContextWindowExceeded => "model_context_window_exceeded",
            Self::UnknownStopReason => "unknown_stop_reason",
        }
    }

    /// How the conversation can go on.
    pub const fn resume(self) -> Resume {
        match self {
            Self::Time | Self::Interrupted | Self::ModelFailed | Self::NotSaved => Resume::Continue,
            Self::AwaitingApproval => Resume::Decide,
            Self::ModelContextWindowExceeded => Resume::BeginAnew,
            _ => Resume::Say,
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a conversation can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resume {
    /// By a new message.
    Say,
    /// By resuming the turn as it stands.
    Continue,
    /// By a decision on what waits, and then resuming the turn. A new message instead means "not approved".
    Decide,
    /// Not at all: by another conversation.
    BeginAnew,
}

impl Resume {
    /// The same as a sentence for the person.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Say => "Send another message to go on.",
            Self::Continue => "The turn can be resumed where it stopped.",
            Self::Decide => {
                "Decide on what waits, then resume the turn. Another message instead counts as \"not approved\"."
            }
            Self::BeginAnew => "Begin another conversation.",
        }
    }
}

/// What a reply's stop reason says about the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyEnd {
    /// It is whole: its calls may run.
    Whole,
    /// It was cut off, or is broken: no call of it may run; the model may try once more.
    Broken(Stop),
    /// The turn is over, and no call of it may run.
    Over(Stop),
}

/// Reads the reason. Only `tool_use` promises whole calls; `end_turn` is let pass, because some models end so with whole
/// calls in the message.
pub(super) fn end_of_reply(reason: &str, has_calls: bool) -> ReplyEnd {
    match reason {
        "tool_use" if !has_calls => ReplyEnd::Broken(Stop::MalformedReply),
        "tool_use" | "end_turn" => ReplyEnd::Whole,
        "stop_sequence" if !has_calls => ReplyEnd::Whole,
        "max_tokens" | "stop_sequence" => ReplyEnd::Broken(Stop::CutOff),
        "malformed_tool_use" | "malformed_model_output" => ReplyEnd::Broken(Stop::MalformedReply),
        "guardrail_intervened" => ReplyEnd::Over(Stop::GuardrailIntervened),
        "content_filtered" => ReplyEnd::Over(Stop::ContentFiltered),
        "model_context_window_exceeded" => ReplyEnd::Over(Stop::ModelContextWindowExceeded),
        _ => ReplyEnd::Over(Stop::UnknownStopReason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stop_has_the_name_that_serde_writes() {
        for stop in Stop::ALL {
            assert_eq!(serde_json::to_value(stop).expect("JSON"), stop.name());
        }
    }

    #[test]
    fn only_a_whole_reply_has_calls_that_may_run() {
        for reason in ["tool_use", "end_turn"] {
            assert_eq!(end_of_reply(reason, true), ReplyEnd::Whole);
        }
        for reason in ["max_tokens", "stop_sequence", "malformed_tool_use", "malformed_model_output"] {
            assert!(matches!(end_of_reply(reason, true), ReplyEnd::Broken(_)), "{reason}");
        }
        for reason in ["guardrail_intervened", "content_filtered", "model_context_window_exceeded", "", "TOOL_USE", "x"]
        {
            assert!(matches!(end_of_reply(reason, true), ReplyEnd::Over(_)), "{reason}");
        }
    }
}
