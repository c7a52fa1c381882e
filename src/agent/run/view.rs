//! What can be said of a run without changing it: whether it must stop, what is asked next, where it stands.

use super::{
    super::{
        budget,
        ledger::{Entry, Fate},
        limits::TimeLeft,
        model::{ModelFailureKind, ModelRequest},
        report::Report,
        stop::{Resume, Stop},
        usage::Usage,
        words,
    },
    AgentRun, Begun, Phase, ToolCall,
};
use crate::tool::Effect;

impl AgentRun {
    /// Why this driver must not go on, although the turn is not over.
    pub(super) fn halted(&self, time: TimeLeft) -> Option<Stop> {
        let turn = &self.turn;
        if matches!(turn.phase, Phase::Over(_) | Phase::Paused) {
            return None;
        }
        let failed = turn.failure.as_ref().filter(|failure| !failure.kind.may_be_repeated() || turn.failures > 1);
        match failed.map(|failure| failure.kind) {
            _ if turn.interrupted => Some(Stop::Interrupted),
            Some(ModelFailureKind::Timeout) => Some(Stop::Time),
            Some(_) => Some(Stop::ModelFailed),
            None if time.0 < self.limits.shortest_step => Some(Stop::Time),
            None if turn.phase == Phase::Model => self.most_output().err().map(|stop| turn.closing.unwrap_or(stop)),
            None => None,
        }
    }

    pub(super) fn spent(&self) -> Usage {
        let mut spent = self.turn.spent;
        spent += self.turn.guessed;
        spent
    }

    /// The tokens of this turn: as the model has told them, and by estimate.
    pub(in super::super) const fn taken(&self) -> (Usage, Usage) {
        (self.turn.spent, self.turn.guessed)
    }

    pub(super) fn most_output(&self) -> Result<u32, Stop> {
        budget::output_left(&self.limits, &self.spent(), self.measured.estimate(&self.messages))
    }

    pub(super) fn request(&self) -> ModelRequest {
        ModelRequest {
            messages: self.messages.clone(),
            system: self.system.clone(),
            tool_config: self.tools.config(self.turn.guard.withdrawn()),
            max_output_tokens: self.most_output().ok(),
        }
    }

    /// The calls that have no result and are not refused.
    pub(super) fn open(&self, which: impl Fn(&ToolCall) -> bool) -> Vec<ToolCall> {
        let open = self.turn.ledger.iter().skip(self.turn.open).filter(|entry| entry.is_open());
        open.map(|entry| entry.call.clone()).filter(which).collect()
    }

    pub(super) fn may_wait(&self, tool: &str) -> bool {
        self.tools.get(tool).is_some_and(|facts| facts.may_need_approval)
    }

    /// The calls of this turn that have run, or will.
    pub(super) fn tool_calls(&self) -> u32 {
        let run = |entry: &&Entry| !matches!(entry.fate, Fate::NotRun { .. });
        u32::try_from(self.turn.ledger.iter().skip(self.turn.carried).filter(run).count()).unwrap_or(u32::MAX)
    }

    /// Those of them that have run, or may have.
    fn calls_run(&self) -> u32 {
        let (handed_out, asked) = (self.has_handed_out(), self.turn.asked);
        let ran = |entry: &&Entry| entry.has_run() || (entry.is_open() && (handed_out || asked));
        u32::try_from(self.turn.ledger.iter().skip(self.turn.carried).filter(ran).count()).unwrap_or(u32::MAX)
    }

    /// Whether a driver that is gone may have begun what is open.
    fn has_handed_out(&self) -> bool {
        matches!(self.turn.phase, Phase::Tools | Phase::Orphans(_)) && self.turn.begun == Begun::Perhaps
    }

    pub(super) fn report_of(&self, stop: Stop) -> Report {
        let why = match &self.turn.failure {
            Some(failure) if stop == Stop::ModelFailed => failure.sentence.as_str(),
            _ => "",
        };
        // A conversation that is larger than its budget cannot go on under it.
        let outgrown = stop == Stop::MaxTokens && self.measured.estimate(&self.messages) >= self.limits.max_tokens;
        self.account(stop, if outgrown { Resume::BeginAnew } else { stop.resume() }, why)
    }

    /// The report where the run could not be saved, and why: what is done is told, although the conversation may not know it.
    pub(in super::super) fn unsaved(&self, resume: Resume, why: &str) -> Report {
        self.account(Stop::NotSaved, resume, why)
    }

    fn account(&self, stop: Stop, resume: Resume, why: &str) -> Report {
        let turn = &self.turn;
        let mut report = Report {
            resume,
            steps: turn.steps,
            tool_calls: self.calls_run(),
            usage: turn.spent,
            estimated: turn.guessed,
            ..Report::new(stop)
        };
        let handed_out = self.has_handed_out();
        for (index, entry) in turn.ledger.iter().enumerate() {
            let is_read = entry.facts(&self.tools).is_some_and(|facts| facts.effect == Effect::ReadOnly);
            let later = |has: fn(&Entry) -> bool| {
                let mut later = turn.ledger.iter().skip(index + 1);
                later.any(|later| has(later) && later.is_same(entry))
            };
            let perhaps = if entry.is_in_progress() {
                // What was asked for again, and has an end, is known.
                !later(Entry::has_run)
            } else {
                index >= turn.open && (handed_out || entry.in_doubt)
            };
            // What no deployment has had, none has begun.
            let can_have_begun = !is_read && entry.facts(&self.tools).is_some();
            report.add(entry, perhaps && can_have_begun, !is_read && !later(Entry::is_done));
        }
        let why = format!("{} {why}", words::stopped(stop, &self.limits, turn.reason.as_deref().unwrap_or_default()));
        report.with_answer(why.trim_end(), turn.last_words.clone())
    }
}
