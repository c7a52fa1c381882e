//! What the model is told about calls that are not run, and about a turn that comes to its end. All effective limits are
//! named with their values.

use super::{limits::Limits, stop::Stop, tools::Facts};
use crate::tool::Effect;

/// Why a call is not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// A guard refuses it.
    Refused(Refused),
    /// A limit is reached.
    Limit(Stop),
    /// The message with it was cut off or broken.
    Broken(Stop),
    /// The turn is over.
    Over(Stop),
    /// No tool is run any more in this turn.
    Closing,
    /// A person had to decide and wrote something else.
    NotApproved,
    /// It stood beside such a call.
    BesideNotApproved,
    /// Its record could not be read, and a person wrote something else meanwhile.
    Unread,
    /// It had not begun when the turn was interrupted.
    NotBegun,
}

/// Why the guard refuses a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The very same call has failed so often.
    Identical(u32),
    /// The tool is withdrawn.
    Withdrawn,
}

impl Why {
    /// Why, for the person: `the limit of tool calls (max_tool_calls = 25) is reached`.
    pub fn reason(self, limits: &Limits) -> String {
        match self {
            Self::Refused(Refused::Identical(times)) => {
                let times = if times == 1 { String::from("once") } else { format!("{times} times") };
                let most = limits.max_identical_failures;
                format!("the very same call has failed already, {times} (max_identical_failures = {most})")
            }
            Self::Refused(Refused::Withdrawn) => format!(
                "the tool is withdrawn, because it has failed already (max_consecutive_failures = {}, \
                 max_identical_failures = {})",
                limits.max_consecutive_failures, limits.max_identical_failures
            ),
            Self::Limit(stop) => format!("{} is reached", limit(stop, limits)),
            Self::Broken(Stop::CutOff) => {
                String::from("the message with it was cut off before its end (too many tokens)")
            }
            Self::Broken(_) => String::from("the message with it is malformed"),
            Self::Over(stop) => format!("the turn has ended ({stop})"),
            Self::Closing => String::from("no tool is run any more in this turn"),
            Self::NotApproved => String::from("a person had to approve it and has not"),
            Self::BesideNotApproved => String::from("it stood beside a call that a person had to approve and has not"),
            Self::Unread => String::from("whether a person had to approve it, or had, could not be found out"),
            Self::NotBegun => String::from("the turn was interrupted before"),
        }
    }

    /// The result that the model reads: why, and what to do next.
    pub fn sentence(self, limits: &Limits) -> String {
        let next = match self {
            Self::Refused(Refused::Identical(_)) => "Change the arguments, or tell the user what cannot be done.",
            Self::Refused(Refused::Withdrawn) => "Do without it, or tell the user what cannot be done.",
            Self::Limit(_) => "Tell the user what is left to do.",
            Self::Broken(Stop::CutOff) => "Send less at once: a shorter text, fewer calls, smaller arguments.",
            Self::Broken(_) => "Make the call again, in full, as the tool's schema says.",
            Self::Over(_) => "Do not make it again unless the user asks for it.",
            Self::Closing => "Answer the user in text.",
            Self::NotApproved | Self::BesideNotApproved | Self::Unread => {
                "The user has written something else instead."
            }
            Self::NotBegun => "Make it again only if it is still wanted.",
        };
        format!("This call was not run: {}. {next} Nothing was changed by it.", self.reason(limits))
    }
}

/// The limit that such a stop is about, with its value.
pub(super) fn limit(stop: Stop, limits: &Limits) -> String {
    match stop {
        Stop::MaxSteps => format!("the limit of steps (max_steps = {})", limits.max_steps),
        Stop::MaxToolCalls => format!("the limit of tool calls (max_tool_calls = {})", limits.max_tool_calls),
        Stop::MaxTokens => format!("the limit of tokens (max_tokens = {})", limits.max_tokens),
        Stop::MaxCost => format!("the limit of cost (max_cost = {})", limits.max_cost.unwrap_or_default()),
        other => format!("the limit {other}"),
    }
}

/// What is said of a call whose end is not known, and whether anything was changed by it. Of a tool that is not there (any
/// more) nobody knows.
pub(super) fn interrupted(facts: Option<&Facts>) -> (&'static str, &str) {
    const UNKNOWN: &str = "The call was interrupted, and its outcome is unknown.";
    match facts {
        None => (UNKNOWN, "There is no such tool now. Another version or program may have run it."),
        Some(facts) if facts.effect == Effect::ReadOnly => {
            ("The call was interrupted, and has no result.", &facts.nothing)
        }
        Some(facts) => (UNKNOWN, &facts.unknown),
    }
}

/// What is said of a call that waited after an attempt that may have been done, where the user has written something else.
pub(super) const fn not_approved_in_doubt() -> &'static str {
    "An earlier attempt may have done this. A person had to approve another one and has not: the user has written something \
     else instead."
}

/// What the model is told before its last request.
pub(super) fn closing(stop: Stop, limits: &Limits) -> String {
    let why = match stop {
        Stop::RepeatedFailures => format!(
            "nothing was asked for but what had failed already (max_consecutive_failures = {}, max_identical_failures = {})",
            limits.max_consecutive_failures, limits.max_identical_failures
        ),
        other => format!("{} is reached", limit(other, limits)),
    };
    format!(
        "[Note by the system, not by the user: {why}. No tool will be run any more in this turn, and a call in your answer \
         will be ignored. Answer in text now: what was done, what was not, and what you do not know. Promise nothing.]"
    )
}

/// What the model is told after a reply that could not be used.
pub(super) fn once_more(stop: Stop) -> &'static str {
    match stop {
        Stop::CutOff => {
            "[Note by the system, not by the user: your last message was cut off before its end (too many tokens). \
             Send less at once. If it happens again, the turn ends.]"
        }
        Stop::EmptyAnswer => {
            "[Note by the system, not by the user: your last message was empty. Answer in text. If it happens again, the \
             turn ends.]"
        }
        _ => {
            "[Note by the system, not by the user: your last message was malformed, or announced a tool call that it did \
             not hold. Make the call in full, or answer in text. If it happens again, the turn ends.]"
        }
    }
}

/// A stop reason as a person can read it: it is a word of Bedrock's, but nobody has checked it.
pub(super) fn shown(reason: &str) -> String {
    const MOST: usize = 60;
    let visible = reason.trim().chars().filter(|c| !c.is_control());
    visible.map(|c| if c.is_ascii() { c } else { char::REPLACEMENT_CHARACTER }).take(MOST).collect()
}

/// Why a turn has stopped, for the person. `reason` is the model's own one, where it is not known here.
pub(super) fn stopped(stop: Stop, limits: &Limits, reason: &str) -> String {
    let why = match stop {
        Stop::EndTurn => return String::from("The turn has ended."),
        Stop::MaxSteps | Stop::MaxToolCalls | Stop::MaxTokens | Stop::MaxCost => {
            format!("{} was reached", limit(stop, limits))
        }
        Stop::RepeatedFailures => format!(
            "the assistant asked only for what had failed already (at most {} failures in a row of one tool, \
             max_consecutive_failures; at most {} of the same call, max_identical_failures)",
            limits.max_consecutive_failures, limits.max_identical_failures
        ),
        Stop::Time => String::from("the time was up"),
        Stop::Interrupted => String::from("it was interrupted"),
        Stop::AwaitingApproval => return String::from("A person has to approve before this goes on."),
        Stop::ModelFailed => String::from("the model could not be asked"),
        Stop::NotSaved => String::from("the conversation could not be saved"),
        Stop::CutOff => String::from("the model's messages were cut off, twice"),
        Stop::MalformedReply => String::from("the model's messages were malformed, twice"),
        Stop::EmptyAnswer => String::from("the model gave no answer, twice"),
        Stop::GuardrailIntervened => String::from("a guardrail has intervened"),
        Stop::ContentFiltered => String::from("the model's content was filtered"),
        Stop::ModelContextWindowExceeded => String::from("the conversation has become too long for the model"),
        Stop::UnknownStopReason if reason.is_empty() => String::from("the model stopped without a reason"),
        Stop::UnknownStopReason => format!("the model stopped for a reason that is not known here: \"{reason}\""),
    };
    format!("This was stopped before its end: {why}.")
}
