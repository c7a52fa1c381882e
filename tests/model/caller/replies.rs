//! What the answer to a request that writes comes to.

use action_group::{
    call::decisions::Ended,
    idempotency::{Decision, Record, State, StoreErrorKind, Stored, conditions::is_fenced_in, decide},
    outcome::FailureKind,
};

use super::{super::table::ARGUMENTS, Answer, Caller, Now, Step, Written, asking::released, meeting::replay, names};

impl Caller {
    /// The answer to a request that writes.
    pub fn wrote(&mut self, reply: Written, now: &Now) {
        let asked_again = std::mem::take(&mut self.asked_again);
        // What a client has sent before may have been applied, although now it is refused.
        let reply = reply.map_err(|kind| if asked_again { StoreErrorKind::NoAnswer } else { kind });
        match self.step.clone() {
            Step::Acquire => match reply {
                Ok(Ok(())) if self.needs_approval => self.told(FailureKind::ApprovalRequired, now),
                Ok(Ok(())) => self.go(self.first(), now),
                Ok(Err(record)) => self.meet(record.expect("a put fails on a record"), now),
                Err(StoreErrorKind::NoAnswer) => self.step = Step::GiveUpAcquiring,
                Err(_) => self.told(FailureKind::Transient, now),
            },
            Step::GiveUpAcquiring | Step::GiveUpTakingOver(_) => self.told(FailureKind::Transient, now),
            Step::TakeOver(old, _) if asked_again && reply == Ok(Err(None)) => self.step = Step::GiveUpTakingOver(old),
            Step::TakeOver(old, done) => self.took_over(&old, done, reply, now),
            Step::MarkUnknown(old) => match reply {
                Ok(Err(Some(found))) if found.owner != old.owner || found.state != State::Unknown => self.wait(now),
                Ok(_) => self.step = Step::Reconcile(Record { state: State::Unknown, ..old }),
                Err(_) => self.step = Step::Reconcile(old),
            },
            Step::Complete(result, replayed) => self.completed(result, replayed, reply),
            Step::Commit => self.committed(reply, asked_again, now),
            Step::Settle(_, answer) => self.step = Step::Ended(self.found(reply).unwrap_or(answer)),
            Step::AskInPlace => self.asked_in_place(reply, now),
            Step::BarToAsk => self.barred(reply, None, now),
            Step::Bar(answers) => self.barred(reply, Some(answers), now),
            Step::ShutOut(old, answer) => {
                let owner = names(self.name)[2];
                let out = match reply {
                    Ok(Ok(())) => true,
                    Ok(Err(Some(record))) => is_fenced_in(Some(&record), owner, old.attempt + 1, &[State::Started]),
                    _ => false,
                };
                self.step = Step::Ended(if out { answer } else { Answer::Unknown { retryable: true } });
            }
            Step::ReleaseToAsk if reply.is_err() => self.told(FailureKind::Transient, now),
            Step::ReleaseToAsk => {
                if released(&reply, self.name) {
                    self.renew();
                }
                match self.found(reply) {
                    Some(answer) => self.step = Step::Ended(answer),
                    None => self.ask(),
                }
            }
            step => unreachable!("{step:?} writes nothing"),
        }
    }

    fn took_over(&mut self, old: &Record, done: Option<&'static str>, reply: Written, now: &Now) {
        let next = self.next(old, now.effect.effect(), now.time);
        let ours = |record: &Record| is_fenced_in(Some(record), next.owner, next.attempt, &[State::Started]);
        match reply {
            Ok(Err(Some(record))) if !ours(&record) => self.wait(now),
            Ok(Ok(()) | Err(Some(_))) => {
                self.maybe_done |= old.may_be_done(now.effect.effect());
                self.decided.clone_from(&old.decided);
                self.go(next, now);
                if let Some(result) = done {
                    self.step = Step::Complete(result, true);
                }
            }
            Ok(Err(None)) => self.wait(now),
            Err(StoreErrorKind::NoAnswer) => self.step = Step::GiveUpTakingOver(old.clone()),
            Err(_) => self.told(FailureKind::Transient, now),
        }
    }

    fn completed(&mut self, result: &'static str, replayed: bool, reply: Written) {
        let found = match reply {
            Ok(Err(Some(record))) if record.owner == self.name && record.state == State::Completed => None,
            Ok(Err(record)) => record.and_then(|record| record.result),
            _ => None,
        };
        self.step = Step::Ended(match found {
            Some(stored) => replay(stored),
            None => Answer::Success { result: result.into(), replayed },
        });
    }

    fn committed(&mut self, reply: Written, asked_again: bool, now: &Now) {
        self.maybe_done |= asked_again && reply.as_ref().is_ok_and(Result::is_err);
        match reply {
            Ok(Ok(())) => self.step = Step::Ended(Answer::Success { result: self.name.into(), replayed: false }),
            Ok(Err(record)) => {
                let record = record.expect("a put fails on a record");
                let ours = record.owner == self.name;
                if self.maybe_done && !ours {
                    self.renew();
                }
                self.meet(record, now);
                if let Step::Ended(Answer::Success { replayed, .. }) = &mut self.step {
                    *replayed &= !ours;
                }
            }
            Err(StoreErrorKind::NoAnswer) => self.failed(&Ended::CommitLost, now),
            Err(_) => self.failed(&Ended::StoreRefused, now),
        }
    }

    /// What became of a record that was put in the way of a commit: the call goes on to ask, or ends with one of these.
    fn barred(&mut self, reply: Written, answers: Option<[Answer; 2]>, now: &Now) {
        let ours = |record: &Record| is_fenced_in(Some(record), names(self.name)[2], 1, &[State::Started]);
        let out = match &reply {
            Ok(Ok(())) => true,
            Ok(Err(record)) => record.as_ref().is_some_and(ours),
            Err(_) => false,
        };
        if out {
            self.maybe_done = false;
            if let Some([nothing, _]) = answers {
                self.step = Step::Ended(nothing);
            } else {
                self.renew();
                self.ask();
            }
            return;
        }
        let record = reply.ok().and_then(Result::err).flatten();
        let made = record.and_then(|record| match decide(&record, &self.claim(now.effect), ARGUMENTS, now.time) {
            Decision::Replay(Stored::Json(result)) => {
                Some(Answer::Success { result, replayed: record.owner != self.name })
            }
            _ => None,
        });
        self.open = made.is_none();
        let unknown = answers.map_or(Answer::Unknown { retryable: true }, |[_, unknown]| unknown);
        self.step = Step::Ended(made.unwrap_or(unknown));
    }

    /// The result in the record that was in the way of settling.
    pub(super) fn found(&self, reply: Written) -> Option<Answer> {
        let record = reply.ok()?.err()??;
        let Stored::Json(result) = record.result? else { unreachable!("results are small here") };
        Some(Answer::Success { result, replayed: record.owner != self.name })
    }
}
