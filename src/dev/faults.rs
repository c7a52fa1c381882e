//! What `--fault` asks for, and how often each tool's backend was called.
//!
//! A fault misbehaves before the effect (the backend does nothing), after it (the effect is made), or with the result.
//! The effect of an `Atomic` tool is a commit, which comes after the tool's part; so faults after it are taken when the
//! commit is seen (`commits`), all others when the tool is called (`faulty`).

use std::{
    collections::{BTreeMap, VecDeque},
    str::FromStr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::Trouble;

/// How a backend misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Throttle,
    RetryAfter(Duration),
    Unavailable,
    Reset,
    Hang,
    HangAfterEffect,
    KillAfterEffect,
    Panic,
    Leak,
    Huge,
}

/// Where in a call a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    BeforeEffect,
    AfterEffect,
    Result,
}

impl Kind {
    pub const fn moment(self) -> Moment {
        match self {
            Self::HangAfterEffect | Self::KillAfterEffect => Moment::AfterEffect,
            Self::Huge => Moment::Result,
            _ => Moment::BeforeEffect,
        }
    }
}

/// The names, as they stand in `--fault`.
const KINDS: &str = "throttle, retry-after:SECONDS, unavailable, reset, hang, hang-after-effect, kill-after-effect, \
                     panic, leak, huge";

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "throttle" => Ok(Self::Throttle),
            "unavailable" => Ok(Self::Unavailable),
            "reset" => Ok(Self::Reset),
            "hang" => Ok(Self::Hang),
            "hang-after-effect" => Ok(Self::HangAfterEffect),
            "kill-after-effect" => Ok(Self::KillAfterEffect),
            "panic" => Ok(Self::Panic),
            "leak" => Ok(Self::Leak),
            "huge" => Ok(Self::Huge),
            _ => match text.strip_prefix("retry-after:").map(|seconds| (seconds, seconds.parse())) {
                Some((_, Ok(seconds))) => Ok(Self::RetryAfter(Duration::from_secs(seconds))),
                Some((seconds, Err(_))) => {
                    Err(format!("{seconds:?} is no time; give a whole number of seconds, such as retry-after:2"))
                }
                None => Err(format!("there is no kind of fault {text:?}; the kinds are {KINDS}")),
            },
        }
    }
}

/// `TOOL=KIND[*N]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    tool: String,
    kind: Kind,
    /// How many times still; `None` for ever.
    times: Option<u32>,
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (tool, rest) = text
            .split_once('=')
            .ok_or_else(|| String::from("a fault is TOOL=KIND or TOOL=KIND*N, such as get_order=throttle*2"))?;
        let (kind, times) = match rest.split_once('*') {
            None => (rest, None),
            Some((kind, times)) => match times.parse() {
                Ok(times @ 1..) => (kind, Some(times)),
                _ => {
                    return Err(format!("{times:?} is no number of times; give 1 or more, or leave it out for always"));
                }
            },
        };
        Ok(Self { tool: tool.to_owned(), kind: kind.parse()?, times })
    }
}

/// The faults still to come and the calls so far, of every tool.
#[derive(Debug)]
pub struct Backstage(Mutex<BTreeMap<&'static str, Backend>>);

#[derive(Debug, Default)]
struct Backend {
    faults: VecDeque<Fault>,
    calls: u64,
}

impl Backstage {
    /// For the tools of these names. Several faults of one tool are used in turn.
    pub fn new(tools: impl IntoIterator<Item = &'static str>, faults: Vec<Fault>) -> Result<Self, Trouble> {
        let mut backends: BTreeMap<_, _> = tools.into_iter().map(|tool| (tool, Backend::default())).collect();
        for fault in faults {
            let Some(backend) = backends.get_mut(fault.tool.as_str()) else {
                let names: Vec<_> = backends.keys().copied().collect();
                let (tool, names) = (fault.tool, names.join(", "));
                return Err(Trouble(format!("There is no tool {tool:?} to misbehave. The tools are {names}.")));
            };
            backend.faults.push_back(fault);
        }
        Ok(Self(Mutex::new(backends)))
    }

    /// A panic between lock and unlock leaves nothing half done.
    fn backends(&self) -> MutexGuard<'_, BTreeMap<&'static str, Backend>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses up the tool's next fault, if it strikes now.
    pub fn take(&self, tool: &str, strikes: impl Fn(Moment) -> bool) -> Option<Kind> {
        let mut backends = self.backends();
        let faults = &mut backends.get_mut(tool)?.faults;
        let kind = faults.front().map(|fault| fault.kind).filter(|kind| strikes(kind.moment()))?;
        match &mut faults.front_mut()?.times {
            None => {}
            Some(1) => drop(faults.pop_front()),
            Some(times) => *times -= 1,
        }
        Some(kind)
    }

    /// Counts a call that reached the tool's backend.
    pub fn count(&self, tool: &str) {
        if let Some(backend) = self.backends().get_mut(tool) {
            backend.calls += 1;
        }
    }

    /// Whether there is such a tool.
    pub fn knows(&self, tool: &str) -> bool {
        self.backends().contains_key(tool)
    }

    /// How often each tool's backend was called.
    pub fn calls(&self) -> BTreeMap<&'static str, u64> {
        self.backends().iter().map(|(tool, backend)| (*tool, backend.calls)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backstage(faults: &[&str]) -> Backstage {
        let faults = faults.iter().map(|fault| fault.parse().expect("a fault")).collect();
        Backstage::new(["get_order", "send_email"], faults).expect("known tools")
    }

    #[test]
    fn every_kind_that_is_listed_can_be_asked_for() {
        for kind in KINDS.split(", ") {
            let kind = kind.replace("SECONDS", "120");
            assert!(kind.parse::<Kind>().is_ok(), "{kind}");
        }
        assert_eq!("retry-after:1".parse(), Ok(Kind::RetryAfter(Duration::from_secs(1))));
    }

    #[test]
    fn a_bad_fault_is_told_what_would_be_good() {
        let fault = |text: &str| text.parse::<Fault>().expect_err("a bad fault");
        assert!(fault("get_order=explode").contains("hang-after-effect"));
        assert!(fault("get_order=retry-after").contains("retry-after:SECONDS"));
        assert!(fault("get_order").contains("TOOL=KIND*N"));
        assert!(fault("get_order=hang*0").contains("1 or more"));
        let trouble = Backstage::new(["get_order"], vec!["get=hang".parse().expect("a fault")]).expect_err("unknown");
        assert!(trouble.to_string().contains("The tools are get_order."));
    }

    #[test]
    fn a_fault_strikes_as_often_as_asked_and_without_a_number_for_ever() {
        let some = backstage(&["get_order=throttle*2"]);
        let taken: Vec<_> = (0..3).map(|_| some.take("get_order", |_| true)).collect();
        assert_eq!(taken, [Some(Kind::Throttle), Some(Kind::Throttle), None]);
        assert_eq!(some.take("send_email", |_| true), None);
        let always = backstage(&["get_order=panic"]);
        assert!((0..99).all(|_| always.take("get_order", |_| true) == Some(Kind::Panic)));
    }

    #[test]
    fn several_faults_of_a_tool_strike_in_turn() {
        let both = backstage(&["get_order=throttle*1", "get_order=reset*1"]);
        let taken: Vec<_> = (0..3).map(|_| both.take("get_order", |_| true)).collect();
        assert_eq!(taken, [Some(Kind::Throttle), Some(Kind::Reset), None]);
    }

    #[test]
    fn a_fault_waits_for_its_moment() {
        let later = backstage(&["send_email=kill-after-effect*1"]);
        assert_eq!(later.take("send_email", |moment| moment != Moment::AfterEffect), None);
        assert_eq!(later.take("send_email", |moment| moment == Moment::AfterEffect), Some(Kind::KillAfterEffect));
    }
}
