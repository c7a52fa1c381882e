//! What an author of a tool uses: the trait to implement, the effect to declare, the errors to return.
//!
//! A tool is written once and is reachable through every door. It holds its clients, names itself, describes its
//! arguments by a struct, and says what would happen if it ran twice:
//!
//! ```
//! use action_group::tool::{CallContext, Effect, Policy, Success, Tool, ToolError};
//!
//! /// Find the time in a city.
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! #[serde(deny_unknown_fields)]
//! struct TimeIn {
//!     /// The city, for example "Oslo".
//!     #[schemars(length(min = 1, max = 80), extend("examples" = ["Oslo"]))]
//!     city: String,
//! }
//!
//! struct GetTime;
//!
//! impl Tool for GetTime {
//!     const NAME: &'static str = "get_time";
//!     type Args = TimeIn;
//!     type Output = String;
//!
//!     fn policy(&self) -> Policy<TimeIn> {
//!         Policy::new(Effect::ReadOnly)
//!     }
//!
//!     async fn call(&self, args: TimeIn, _: &CallContext) -> Result<Success<String>, ToolError> {
//!         match args.city.as_str() {
//!             "Oslo" => Ok(String::from("12:00").into()),
//!             other => Err(ToolError::not_found(format!("There is no city {other:?}. Ask for the nearest large city."))),
//!         }
//!     }
//! }
//! ```
//!
//! | effect | what if it ran twice? | retried |
//! | --- | --- | --- |
//! | [`Effect::ReadOnly`] | harmless | yes |
//! | [`Effect::Keyed`] | the system behind dedupes by [`CallContext::idempotency_key`] | yes, with the same key |
//! | [`Effect::Atomic`] | the effect is the writes in [`Success::writes`]; they commit with the record or not at all | yes |
//! | [`Effect::Once`] | must never happen | only if surely nothing was sent |

mod any;
mod aws;
mod caller;
mod context;
mod definition;
mod error;
mod fault;
mod http;
mod policy;
mod success;
mod toolbox;

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};

pub use self::{
    any::{AnyTool, Plan},
    caller::Caller,
    context::CallContext,
    definition::{Definition, Method, Route},
    error::{Phase, ToolError, ToolErrorKind},
    http::{HttpAnswer, HttpBackend},
    policy::{Effect, Policy, Scope, Wording},
    success::{Item, Reconciled, Success, Write},
    toolbox::{Entry, Toolbox, ToolboxBuilder, ToolboxError},
};
pub(crate) use self::{
    fault::{Named, code_of, name_of_sdk, well_known as fault_of},
    http::retry_after,
};

/// One thing an agent can ask for. See the [module's example](self).
pub trait Tool: Send + Sync + 'static {
    /// The name the model calls it by: `[a-zA-Z0-9]+(_[a-zA-Z0-9]+)*`, 40 characters at most, so that it is legal at
    /// every door (the gateway prefixes `<target>___`, Converse allows 64 in all).
    const NAME: &'static str;

    /// Where the tool stands in an OpenAPI action group. Default: `POST /<NAME>`, all arguments in the body.
    const ROUTE: Option<Route> = None;

    /// The arguments. The doc comment of the struct is the tool's description, those of the fields are the arguments';
    /// the schema made from it is both what the model is told and what is checked.
    type Args: DeserializeOwned + JsonSchema + Send + 'static;

    /// The result. Any value that serialises to JSON.
    type Output: Serialize + Send + 'static;

    /// What if it ran twice, how long may it take, what makes two calls the same action. Read once, at start.
    /// The default is the strictest: [`Effect::Once`].
    fn policy(&self) -> Policy<Self::Args> {
        Policy::new(Effect::Once)
    }

    /// Runs one attempt. It is called again only where the effect allows it, and dropped when its time is up.
    fn call(
        &self,
        args: Self::Args,
        context: &CallContext,
    ) -> impl Future<Output = Result<Success<Self::Output>, ToolError>> + Send;

    /// Finds out what became of an effect whose outcome is not known, without doing anything. Asked when an equal call
    /// meets such a record of a [`Once`](Effect::Once) tool. The default cannot tell, and a person has to.
    fn reconcile(
        &self,
        args: Self::Args,
        context: &CallContext,
    ) -> impl Future<Output = Result<Reconciled<Self::Output>, ToolError>> + Send {
        let _ = (args, context);
        std::future::ready(Ok(Reconciled::Unknown))
    }
}
