//! One execution of a call: the steps of `call/recorded.rs` and `call/atomic.rs`, one request at a time. Whatever is a
//! decision there is the same function here.

use std::{sync::OnceLock, time::Duration};

use action_group::{
    call::decisions::{Ended, Settling, failure as failure_of, keeping_doubt, may_be_done, retry, settling},
    clock::Timestamp,
    idempotency::{Claim, Decided, Decision, Record, State, StoreErrorKind, Stored, conditions::is_fenced_in, decide},
    outcome::{Changed, Failure, FailureKind},
    tool::{Definition, Effect, Route, Scope, ToolError, ToolErrorKind, Wording},
};

use super::table::{ARGUMENTS, Entry, Holder, Reply, Write};

/// What the execution does next: each is one request, or one run of the tool's code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    Idle,
    Acquire,
    GiveUpAcquiring,
    Look,
    TakeOver(Record, Option<&'static str>),
    GiveUpTakingOver(Record),
    MarkUnknown(Record),
    Reconcile(Record),
    Run,
    Commit,
    Complete(&'static str, bool),
    Settle(Settling, Answer),
    ReleaseToAsk,
    AskInPlace,
    /// A record is put in the way of a commit, and then a person is asked.
    BarToAsk,
    /// The same before an end: the answer that nothing was done, and the one that it is not known.
    Bar([Answer; 2]),
    LookBeforeFailing(Answer),
    /// The holder of a record that is looked at is shut out, who is gone.
    ShutOut(Record, Answer),
    Dead,
    Ended(Answer),
}

/// What the caller reads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    Success {
        result: String,
        replayed: bool,
    },
    /// The tool failed, and nothing was changed: by nobody, as the sentence reads.
    Nothing,
    Unknown {
        retryable: bool,
    },
    /// What the record says, or that it cannot be read.
    Told(FailureKind),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::struct_excessive_bools, reason = "what the code keeps, in places of their own")]
pub struct Caller {
    pub name: &'static str,
    pub step: Step,
    pub lease_until: Timestamp,
    pub expires_at: Timestamp,
    pub needs_approval: bool,
    pub holder: Option<Holder>,
    /// Which life of the record this execution belongs to.
    pub life: usize,
    pub requests: u32,
    /// Whether the client has sent the present request before, and got no answer.
    pub asked_again: bool,
    /// Whether it is acquiring the key, and not in the middle of a commit.
    enters: bool,
    pub maybe_done: bool,
    approved: bool,
    /// Who has decided, as the record says that it holds.
    decided: Option<Decided>,
    /// Whether an equal call has said that nothing was done, since this one has ended and could not tell.
    pub denied: bool,
    /// Whether it could not keep its commit out, and knows that it could not.
    pub open: bool,
}

/// What an answer is decided with.
pub struct Now {
    pub effect: EffectOf,
    pub time: Timestamp,
    pub time_left: Duration,
    pub doubt: Doubt,
    pub asks_heirs: bool,
    pub bars: Bars,
}

/// What becomes of a commit without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bars {
    /// A record is put in its way, and stays: what the code does.
    Stay,
    /// The record goes when a call that has taken it over has done nothing. Must fail: the commit lands then.
    Go,
    /// It is left to land when it likes. Must fail.
    None,
}

/// What becomes of the record when the tool asks for approval after an attempt that may have been done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Doubt {
    /// It waits as it is: what the code does.
    Kept,
    /// It is released, and waits anew. Must fail: it says that nothing was done.
    Released,
    /// It is given up to the next call, as after any other failure in doubt. Must fail: nobody can ever approve it.
    GivenUp,
}

/// `Effect` with a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EffectOf {
    Once,
    Keyed,
    Atomic,
}

impl EffectOf {
    pub const fn effect(self) -> Effect {
        match self {
            Self::Once => Effect::Once,
            Self::Keyed => Effect::Keyed,
            Self::Atomic => Effect::Atomic,
        }
    }

    fn definition(self) -> &'static Definition {
        static ALL: OnceLock<[Definition; 3]> = OnceLock::new();
        let all = ALL.get_or_init(|| [Effect::Once, Effect::Keyed, Effect::Atomic].map(definition));
        &all[self as usize]
    }
}

pub fn definition(effect: Effect) -> Definition {
    Definition {
        name: "tool",
        description: String::new(),
        schema: serde_json::Value::Null,
        effect,
        may_need_approval: false,
        timeout: Duration::from_secs(1),
        window: Duration::from_mins(1),
        key_version: 1,
        scope: Scope::Deployment,
        route: Route::post("/tool"),
        wording: Wording::default(),
    }
}

type Written = Result<Reply, StoreErrorKind>;

impl Caller {
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            step: Step::Idle,
            lease_until: Timestamp::default(),
            expires_at: Timestamp::default(),
            needs_approval: false,
            holder: None,
            life: 0,
            requests: 0,
            asked_again: false,
            enters: false,
            maybe_done: false,
            approved: false,
            decided: None,
            denied: false,
            open: false,
        }
    }

    /// Begins: the claim is made once.
    pub fn begin(&mut self, effect: EffectOf, needs_approval: bool, now: Timestamp, [headroom, window]: [Duration; 2]) {
        self.lease_until = now.plus(headroom);
        self.expires_at = now.plus(headroom + window);
        self.needs_approval = needs_approval;
        self.enters = effect != EffectOf::Atomic || needs_approval;
        self.step = if self.enters { Step::Acquire } else { Step::Run };
    }

    pub fn is_active(&self) -> bool {
        !matches!(self.step, Step::Idle | Step::Dead | Step::Ended(_))
    }

    fn entry(&self, effect: Option<Effect>, now: Timestamp) -> Entry {
        Entry { owner: self.name, effect, now, lease_until: self.lease_until, expires_at: self.expires_at }
    }

    fn claim(&self, effect: EffectOf) -> Claim {
        Claim {
            owner: self.name.into(),
            effect: effect.effect(),
            lease_until: self.lease_until,
            expires_at: self.expires_at,
            for_approval: self.needs_approval.then(Box::default),
        }
    }

    /// The request of this step, if it writes to the table.
    pub fn write(&self, effect: Option<Effect>, now: Timestamp) -> Option<Write> {
        let holder = self.holder;
        let held = || holder.expect("a guard");
        Some(match &self.step {
            Step::Acquire => {
                let state = if self.needs_approval { State::AwaitingApproval } else { State::Started };
                Write::Acquire(self.entry(effect, now), state)
            }
            Step::GiveUpAcquiring => Write::Release(self.first()),
            Step::Bar(_) | Step::BarToAsk => Write::Acquire(self.barring(effect, now), State::Started),
            Step::ShutOut(old, _) => Write::TakeOver(self.barring(effect, now), old.clone()),
            Step::GiveUpTakingOver(old) => {
                let next = self.next(old, effect.unwrap_or(Effect::Once), now);
                match old.state {
                    State::Approved => Write::Release(next),
                    State::Unknown => Write::MarkUnknown(next),
                    _ => Write::Relinquish(next),
                }
            }
            Step::TakeOver(old, _) => Write::TakeOver(self.entry(effect, now), old.clone()),
            Step::MarkUnknown(old) => Write::SettleUnknown(old.clone()),
            Step::Complete(result, _) => Write::Complete(held(), result),
            Step::Commit => Write::Commit(self.entry(effect, now), self.name, self.decided.clone()),
            Step::Settle(Settling::Release, _) | Step::ReleaseToAsk => Write::Release(held()),
            Step::AskInPlace => Write::AwaitApproval(held(), self.maybe_done),
            Step::Settle(Settling::MarkUnknown, _) => Write::MarkUnknown(held()),
            Step::Settle(Settling::Relinquish, _) => Write::Relinquish(held()),
            Step::Idle
            | Step::Look
            | Step::LookBeforeFailing(_)
            | Step::Reconcile(_)
            | Step::Run
            | Step::Dead
            | Step::Ended(_) => return None,
        })
    }

    fn next(&self, old: &Record, effect: Effect, now: Timestamp) -> Holder {
        let (approved_until, bars) = (old.approval(effect, now), old.bars());
        Holder { owner: self.name, attempt: old.attempt + 1, approved_until, bars }
    }

    fn first(&self) -> Holder {
        Holder { owner: self.name, attempt: 1, approved_until: None, bars: false }
    }

    /// The record of nobody, which only keeps others out.
    fn barring(&self, effect: Option<Effect>, now: Timestamp) -> Entry {
        Entry { owner: names(self.name)[2], lease_until: Timestamp::default(), ..self.entry(effect, now) }
    }

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

    /// A condition of the tool's own failed. What was sent before may still be applied, should it come to hold.
    pub fn commit_failed(&mut self, error: ToolError, now: &Now) {
        self.maybe_done |= std::mem::take(&mut self.asked_again);
        self.failed(&Ended::Failed(error), now);
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

    /// Does what the record asks for.
    fn meet(&mut self, record: Record, now: &Now) {
        match decide(&record, &self.claim(now.effect), ARGUMENTS, now.time) {
            Decision::Acquire => self.again(now),
            Decision::Ours => {
                self.maybe_done |= record.maybe_done;
                let (attempt, approved_until) = (record.attempt, record.approved_until);
                let bars = attempt > 1 && record.bars();
                self.decided = record.decided;
                self.go(Holder { owner: self.name, attempt, approved_until, bars }, now);
            }
            Decision::Replay(stored) => self.step = Step::Ended(replay(stored)),
            Decision::InProgress(_) => self.wait(now),
            Decision::TakeOver | Decision::UseApproval => self.step = Step::TakeOver(record, None),
            Decision::MarkUnknown => self.step = Step::MarkUnknown(record),
            Decision::Unknown => self.step = Step::Reconcile(record),
            Decision::AwaitApproval | Decision::Denied if record.maybe_done => self.doubted(),
            Decision::AwaitApproval => self.told(FailureKind::ApprovalRequired, now),
            Decision::Denied => self.told(FailureKind::Denied, now),
            Decision::KeyReused => self.told(FailureKind::KeyReused, now),
        }
    }

    /// Where the record is met in the middle of a commit, nobody waits: it is one more attempt.
    fn again(&mut self, now: &Now) {
        if self.enters { self.step = Step::Acquire } else { self.failed(&Ended::Conflict, now) }
    }

    fn wait(&mut self, now: &Now) {
        if self.enters { self.step = Step::Look } else { self.failed(&Ended::Conflict, now) }
    }

    /// What a look at the record found.
    pub fn looked(&mut self, found: Result<Option<Record>, StoreErrorKind>, now: &Now) {
        if let Step::LookBeforeFailing(answer) = self.step.clone() {
            return self.fails_unless_done(answer, found, now);
        }
        match found {
            Ok(Some(record)) => self.meet(record, now),
            Ok(None) => self.step = Step::Acquire,
            Err(_) => self.told(FailureKind::Transient, now),
        }
    }

    pub fn stop_waiting(&mut self, now: &Now) {
        self.told(FailureKind::InProgress, now);
    }

    fn go(&mut self, holder: Holder, now: &Now) {
        let holder = Holder { bars: holder.bars && now.bars == Bars::Stay, ..holder };
        self.approved = holder.approved_until.is_some();
        self.holder = Some(holder);
        self.enters = false;
        if self.needs_approval && !self.approved && now.asks_heirs { self.asks(now) } else { self.step = Step::Run }
    }

    pub fn is_approved(&self) -> bool {
        self.approved
    }

    /// The tool's code ended so.
    pub fn ran(&mut self, ended: Result<&'static str, Ended>, now: &Now) {
        match ended {
            Ok(_) if now.effect == EffectOf::Atomic => self.step = Step::Commit,
            Ok(result) => self.step = Step::Complete(result, false),
            Err(ended) => self.failed(&ended, now),
        }
    }

    /// An attempt ended without a result.
    pub fn failed(&mut self, ended: &Ended, now: &Now) {
        if matches!(ended, Ended::Failed(error) if error.kind() == ToolErrorKind::ApprovalRequired && !self.approved) {
            return self.asks(now);
        }
        let effect = now.effect.effect();
        self.maybe_done |= may_be_done(ended, effect);
        if retry(ended, effect, self.requests, now.time_left, 0.0).is_some() {
            self.step = Step::Run;
            return;
        }
        let failure = failure_of(now.effect.definition(), ended, self.maybe_done, "");
        let answer = answer_of(&failure);
        // A transaction that failed by the tool's own condition has found no record.
        let looked = matches!((&self.step, ended), (Step::Commit, Ended::Failed(_)));
        let nothing = || answer_of(&failure_of(now.effect.definition(), ended, false, ""));
        self.step = match self.holder {
            Some(_) => Step::Settle(settling(failure.changed(), effect), answer),
            None if self.maybe_done && now.bars != Bars::None => Step::Bar([nothing(), answer]),
            None if looked => Step::Ended(answer),
            None => Step::LookBeforeFailing(answer),
        };
    }

    /// What the look before a failure found.
    fn fails_unless_done(&mut self, answer: Answer, found: Result<Option<Record>, StoreErrorKind>, now: &Now) {
        let for_this_call =
            if answer == Answer::Nothing { Answer::Told(FailureKind::Rejected) } else { answer.clone() };
        self.step = Step::Ended(match found {
            Ok(Some(record)) => match decide(&record, &self.claim(now.effect), ARGUMENTS, now.time) {
                Decision::Replay(Stored::Json(result)) => {
                    Answer::Success { result, replayed: record.owner != self.name }
                }
                Decision::Acquire => answer,
                Decision::TakeOver if record.bars() => {
                    self.step = Step::ShutOut(record, answer);
                    return;
                }
                _ => for_this_call,
            },
            Ok(None) => answer,
            Err(_) => for_this_call,
        });
    }

    /// A record that begins anew has a new owner.
    fn renew(&mut self) {
        self.name = names(self.name)[1];
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

    /// The tool wants a person's approval, which the call does not have.
    fn asks(&mut self, now: &Now) {
        let unknown = Answer::Unknown { retryable: true };
        let doubt = if self.maybe_done { now.doubt } else { Doubt::Released };
        match (self.holder, doubt) {
            (Some(_), Doubt::Kept) => self.step = Step::AskInPlace,
            (Some(holder), _) if holder.bars && !self.maybe_done => self.step = Step::AskInPlace,
            (Some(_), Doubt::Released) => self.step = Step::ReleaseToAsk,
            (Some(_), Doubt::GivenUp) => self.step = Step::Settle(Settling::Relinquish, unknown),
            (None, Doubt::Kept | Doubt::GivenUp) => self.step = Step::BarToAsk,
            (None, Doubt::Released) => self.ask(),
        }
    }

    fn asked_in_place(&mut self, reply: Written, now: &Now) {
        let ours = |record: &Record| record.owner == self.name && record.state == State::AwaitingApproval;
        let written = match &reply {
            Ok(Ok(())) => true,
            Ok(Err(record)) => record.as_ref().is_some_and(ours),
            Err(_) => false,
        };
        let otherwise = if reply.is_err() { FailureKind::Transient } else { FailureKind::InProgress };
        match (written, self.found(reply)) {
            (true, _) if self.maybe_done => self.doubted(),
            (true, _) => self.told(FailureKind::ApprovalRequired, now),
            (false, Some(answer)) => self.step = Step::Ended(answer),
            (false, None) if self.maybe_done => self.step = Step::Ended(Answer::Unknown { retryable: true }),
            (false, None) => self.told(otherwise, now),
        }
    }

    /// It waits for a person, or was refused by one, and may have been done before.
    fn doubted(&mut self) {
        self.step = Step::Ended(Answer::Unknown { retryable: false });
    }

    fn ask(&mut self) {
        (self.holder, self.decided) = (None, None);
        self.needs_approval = true;
        self.enters = true;
        self.step = Step::Acquire;
    }

    /// What the tool found out about an effect whose outcome is not known.
    pub fn reconciled(&mut self, record: Record, found: Found) {
        self.step = match found {
            Found::Unknown => Step::Ended(Answer::Unknown { retryable: false }),
            Found::NotDone => Step::TakeOver(record, None),
            Found::Done(result) => Step::TakeOver(record, Some(result)),
        };
    }

    /// The result in the record that was in the way of settling.
    fn found(&self, reply: Written) -> Option<Answer> {
        let record = reply.ok()?.err()??;
        let Stored::Json(result) = record.result? else { unreachable!("results are small here") };
        Some(Answer::Success { result, replayed: record.owner != self.name })
    }

    /// The call is refused: without denying what may have been done.
    fn told(&mut self, kind: FailureKind, now: &Now) {
        let failure = keeping_doubt(now.effect.definition(), Failure::new(kind, ""), self.maybe_done);
        self.step = Step::Ended(match failure.changed() {
            Changed::Nothing => Answer::Told(kind),
            _ => Answer::Unknown { retryable: failure.retryable() },
        });
    }
}

/// A name, the one after it, and that of nobody's record, which this one leaves.
fn names(name: &str) -> [&'static str; 3] {
    const NAMES: [[&str; 3]; 11] = [
        ["a", "a'", "a-"],
        ["a'", "a''", "a'-"],
        ["a''", "a''", "a''-"],
        ["b", "b'", "b-"],
        ["b'", "b''", "b'-"],
        ["b''", "b''", "b''-"],
        ["c", "c'", "c-"],
        ["c'", "c'", "c'-"],
        ["later", "later'", "later-"],
        ["later'", "later''", "later'-"],
        ["later''", "later''", "later''-"],
    ];
    *NAMES.iter().find(|names| names[0] == name).expect("a name")
}

/// What [`Tool::reconcile`](action_group::tool::Tool::reconcile) says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Found {
    Done(&'static str),
    NotDone,
    Unknown,
}

/// Whether a release has surely been applied.
fn released(reply: &Written, name: &str) -> bool {
    match reply {
        Ok(Ok(()) | Err(None)) => true,
        Ok(Err(Some(record))) => record.owner == name && record.state == State::Approved,
        Err(_) => false,
    }
}

fn replay(stored: Stored) -> Answer {
    let Stored::Json(result) = stored else { unreachable!("results are small here") };
    Answer::Success { result, replayed: true }
}

fn answer_of(failure: &Failure) -> Answer {
    match failure.changed() {
        Changed::Nothing => Answer::Nothing,
        _ => Answer::Unknown { retryable: failure.retryable() },
    }
}
