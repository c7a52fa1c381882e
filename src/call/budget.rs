//! Why budgets and not max retries? Three attempts a call are few for one call, and three times the traffic for a backend
//! that is down for all of them. A budget lets single failures be retried and stops when everything fails: a retry costs
//! [`RETRY`] tokens, an answer gives one back, so that in the long run one call in five is retried, and a dead backend
//! gets one request a call once the budget is spent.
//!
//! | budget | tokens at most | so many retries before an answer comes |
//! | --- | --- | --- |
//! | of one tool in the environment (this process) | [`TOOL`] | 20 |
//! | of one conversation | [`CONVERSATION`] | 10 |
//!
//! A retry needs both. Why one for each tool? One dead backend would else take the retries of all others. Why one for each
//! conversation? A model that asks a broken tool again and again would else spend the retries of everybody else.
//!
//! Why a count and not a rate, as tower's budget has? An environment serves one invocation at a time and is frozen
//! between them, so that its clock says little about the traffic.
//!
//! ```text
//! 100 calls, each throttled for ever: 20 retries, then none
//! 1 000 calls, every fifth request throttled: about 240 retries are wanted, some 220 of them are made
//! ```

use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex, PoisonError},
};

/// The tokens that a retry costs.
const RETRY: u32 = 5;
/// The tokens of a tool in an environment at the start, and at most.
const TOOL: u32 = 100;
/// The tokens of a conversation at its start, and at most.
const CONVERSATION: u32 = 50;
/// The conversations that are remembered. One that is forgotten begins anew, within the budget of the tool.
const REMEMBERED: usize = 256;

/// A count of tokens.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: u32,
    most: u32,
}

impl Bucket {
    const fn full(most: u32) -> Self {
        Self { tokens: most, most }
    }

    const fn can_pay(self) -> bool {
        self.tokens >= RETRY
    }

    fn pay(&mut self) {
        self.tokens = self.tokens.saturating_sub(RETRY);
    }

    fn earn(&mut self) {
        self.tokens = (self.tokens + 1).min(self.most);
    }
}

/// The tokens of an environment's tools and conversations. Pure: a conversation is a number.
#[derive(Debug, Default)]
struct Budget {
    /// As many as there are tools.
    tools: HashMap<&'static str, Bucket>,
    /// The most recently used first.
    conversations: VecDeque<(u64, Bucket)>,
}

impl Budget {
    /// Takes what a retry costs, from both buckets or from none.
    fn pay(&mut self, tool: &'static str, conversation: Option<u64>) -> bool {
        let affordable = self.tool(tool).can_pay() && self.of(conversation).is_none_or(|bucket| bucket.can_pay());
        if affordable {
            self.tool(tool).pay();
            self.of(conversation).into_iter().for_each(Bucket::pay);
        }
        affordable
    }

    fn earn(&mut self, tool: &'static str, conversation: Option<u64>) {
        self.tool(tool).earn();
        self.of(conversation).into_iter().for_each(Bucket::earn);
    }

    fn tool(&mut self, name: &'static str) -> &mut Bucket {
        self.tools.entry(name).or_insert(Bucket::full(TOOL))
    }

    fn of(&mut self, conversation: Option<u64>) -> Option<&mut Bucket> {
        let id = conversation?;
        let known = self.conversations.iter().position(|(known, _)| *known == id);
        let entry = known.and_then(|index| self.conversations.remove(index));
        self.conversations.push_front(entry.unwrap_or((id, Bucket::full(CONVERSATION))));
        self.conversations.truncate(REMEMBERED);
        self.conversations.front_mut().map(|(_, bucket)| bucket)
    }
}

/// The budget of this process. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Retries {
    budget: Arc<Mutex<Budget>>,
    /// Ids of conversations are kept as numbers of eight bytes: nothing of them stays, and two that collide share tokens.
    hasher: RandomState,
}

impl Retries {
    pub fn new() -> Self {
        Self { budget: Arc::default(), hasher: RandomState::new() }
    }

    /// Pays for a retry of this tool. False if there must be none.
    pub fn pay(&self, tool: &'static str, conversation: Option<&str>) -> bool {
        self.with(conversation, |budget, conversation| budget.pay(tool, conversation))
    }

    /// The backend of this tool has answered.
    pub fn earn(&self, tool: &'static str, conversation: Option<&str>) {
        self.with(conversation, |budget, conversation| budget.earn(tool, conversation));
    }

    fn with<T>(&self, conversation: Option<&str>, act: impl FnOnce(&mut Budget, Option<u64>) -> T) -> T {
        let id = conversation.map(|id| self.hasher.hash_one(id));
        act(&mut self.budget.lock().unwrap_or_else(PoisonError::into_inner), id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABELS: &str = "create_shipping_label";

    fn affordable(budget: &mut Budget, conversation: Option<u64>) -> usize {
        (0..1_000).take_while(|_| budget.pay(LABELS, conversation)).count()
    }

    #[test]
    fn a_dead_backend_is_retried_twenty_times_and_then_no_more() {
        assert_eq!(affordable(&mut Budget::default(), None), 20);
    }

    #[test]
    fn five_answers_pay_for_a_retry_and_a_full_budget_takes_no_more() {
        let mut budget = Budget::default();
        affordable(&mut budget, None);
        (0..5).for_each(|_| budget.earn(LABELS, None));
        assert_eq!(affordable(&mut budget, None), 1);
        (0..10_000).for_each(|_| budget.earn(LABELS, None));
        assert_eq!(affordable(&mut budget, None), 20);
    }

    #[test]
    fn a_conversation_cannot_spend_the_retries_of_another() {
        let mut budget = Budget::default();
        assert_eq!(affordable(&mut budget, Some(1)), 10);
        assert_eq!(affordable(&mut budget, Some(2)), 10);
        assert_eq!(affordable(&mut budget, Some(3)), 0, "the tool's are spent");
    }

    #[test]
    fn a_dead_backend_takes_no_retries_from_the_tools_beside_it() {
        let mut budget = Budget::default();
        assert_eq!(affordable(&mut budget, None), 20);
        assert!(budget.pay("get_order", None) && !budget.pay(LABELS, None));
    }

    #[test]
    fn a_retry_that_is_refused_costs_nothing() {
        let mut budget = Budget::default();
        affordable(&mut budget, Some(1));
        assert!(!budget.pay(LABELS, Some(1)));
        assert_eq!(affordable(&mut budget, None), 10);
    }

    #[test]
    fn however_many_conversations_come_few_are_remembered() {
        let mut budget = Budget::default();
        affordable(&mut budget, Some(1));
        (2..300).for_each(|id| budget.earn(LABELS, Some(id)));
        assert_eq!(budget.conversations.len(), REMEMBERED);
    }

    #[test]
    fn the_conversation_in_use_is_not_forgotten() {
        let mut budget = Budget::default();
        affordable(&mut budget, Some(1));
        for id in 2..300 {
            budget.earn(LABELS, Some(id));
            assert!(!budget.pay(LABELS, Some(1)), "after {id} others");
        }
    }

    #[test]
    fn every_fifth_request_throttled_leaves_most_calls_their_retries() {
        let mut budget = Budget::default();
        let mut requests = 0_u32;
        let mut throttled = || {
            requests += 1;
            requests.is_multiple_of(5)
        };
        let (mut retries, mut denied) = (0, 0);
        for _ in 0..1_000 {
            let mut attempts = 1;
            while throttled() && attempts < 3 {
                if !budget.pay(LABELS, None) {
                    denied += 1;
                    break;
                }
                (attempts, retries) = (attempts + 1, retries + 1);
            }
            budget.earn(LABELS, None);
        }
        assert!((200..=220).contains(&retries) && denied < 50, "{retries} retries, {denied} denied");
    }
}
