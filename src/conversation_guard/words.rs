//! What the model is told of a call that a limit stops: why it was not run, and what to do instead.

use crate::outcome::{Changed, Failure, FailureKind};

/// Why a call is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The conversation has had so many calls, the most that it may have.
    Calls(u32),
    /// The very same call has failed so often.
    Same(u32),
    /// So many calls of the tool have failed in a row.
    Tool(u32),
}

impl Stop {
    pub fn failure(self) -> Failure {
        let failure = Failure::new(FailureKind::Rejected, self.sentence());
        failure.with_changed(Changed::Nothing, "This call changed nothing.")
    }

    fn sentence(self) -> String {
        match self {
            Self::Calls(most) => format!(
                "This conversation has had {most} tool calls, the most that it may have, so this one was not run. Call no \
                 more tools: answer with what is known, and tell the user what is left undone."
            ),
            Self::Same(times) => {
                let times = if times == 1 { String::from("once") } else { format!("{times} times") };
                format!(
                    "The same call, with the same arguments, has failed {times} in this conversation, so it was not run \
                     again. Mend what its failure said, or tell the user that it does not work."
                )
            }
            Self::Tool(times) => {
                let calls = if times == 1 { String::from("call") } else { format!("{times} calls") };
                let have = if times == 1 { "has" } else { "have" };
                format!(
                    "The last {calls} of this tool in this conversation {have} failed, so this one was not run. Do not call \
                     the tool again now: find another way, or tell the user that it does not work."
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failure_is_told_as_one() {
        assert!(Stop::Same(1).sentence().contains("has failed once"));
        assert!(Stop::Tool(1).sentence().starts_with("The last call of this tool in this conversation has failed,"));
        assert!(
            Stop::Tool(2).sentence().starts_with("The last 2 calls of this tool in this conversation have failed,")
        );
    }
}
