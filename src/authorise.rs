//! Who may do what: a seam, asked once per call, for a policy of your own. The default allows everything.
//!
//! It is asked when the arguments are known to be valid, and before anything is acquired, run or replayed. A refusal is
//! of the kind `denied`: the model reads one flat sentence, the log has an ERROR line with the rule's name, and the
//! metric `Denied` counts it. Whatever goes wrong with the question refuses the call too.
//!
//! | the policy | the call |
//! | --- | --- |
//! | [`Decision::Allow`] | goes on |
//! | [`Decision::Deny`] | `denied` |
//! | [`Decision::Unavailable`], or no answer while there is time | `transient`; nothing was changed |
//! | panics | `internal`; nothing was changed |
//!
//! A policy that needs nothing but its question is a closure:
//!
//! ```
//! use action_group::{authorise::Decision, tool::{Caller, Definition, Effect}};
//! use serde_json::Value;
//!
//! let only_tenants_write = |tool: &Definition, _: &Value, caller: &Caller| {
//!     if tool.effect == Effect::ReadOnly || caller.tenant().is_some() {
//!         Decision::Allow
//!     } else {
//!         Decision::deny("only-tenants-write")
//!     }
//! };
//! # fn takes(_: impl action_group::authorise::Authorise) {}
//! # takes(only_tenants_write);
//! ```
//!
//! One that asks somebody else implements [`Authorise`]; `examples/authorise.rs` is a whole function with one, and
//! `docs/doors.md` says how Cedar goes in. It is handed over in [`app::pipeline`](crate::app::pipeline), by
//! [`Pipeline::authorised_by`](crate::call::Pipeline::authorised_by), so that it counts for the doors and for the loop.

use std::borrow::Cow;

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::tool::{Caller, Definition};

/// What a policy says of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// The call goes on.
    Allow,
    /// The call is refused by the rule of this name. The name is for the log, and the model never reads it; put no value
    /// of the call into it.
    Deny(Cow<'static, str>),
    /// Nobody could decide. The call is refused, and may be made again later.
    Unavailable,
}

impl Decision {
    /// Refused by the rule of this name.
    pub fn deny(rule: impl Into<Cow<'static, str>>) -> Self {
        Self::Deny(rule.into())
    }
}

/// A policy. The arguments are the model's choice, the caller is not.
pub trait Authorise: Send + Sync + 'static {
    /// Decides on one call. It is dropped when the call's time is up, which refuses the call.
    fn authorise<'a>(
        &'a self,
        tool: &'a Definition,
        arguments: &'a Value,
        caller: &'a Caller,
    ) -> BoxFuture<'a, Decision>;
}

impl<F> Authorise for F
where
    F: Fn(&Definition, &Value, &Caller) -> Decision + Send + Sync + 'static,
{
    fn authorise<'a>(
        &'a self,
        tool: &'a Definition,
        arguments: &'a Value,
        caller: &'a Caller,
    ) -> BoxFuture<'a, Decision> {
        Box::pin(async move { self(tool, arguments, caller) })
    }
}

/// The default policy: whoever may invoke the function may use its tools.
pub fn allow_all(_: &Definition, _: &Value, _: &Caller) -> Decision {
    Decision::Allow
}

/// The examples of the documentation, so that they are compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/doors.md")]
struct Doors;
