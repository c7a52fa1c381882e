//! Runs the tools of an Amazon Bedrock agent on AWS Lambda.
//!
//! ```text
//! event + context
//!   └─ door.decode ──► calls ──► for each call, concurrently:
//!                                  find tool ─ validate arguments ─ acquire key
//!                                  ─ attempt (timeout, retry) ─ record outcome ─ metric, log
//!   ◄─ door.encode ◄─ outcomes ◄──┘
//! ```
//!
//! | module | its one idea |
//! | --- | --- |
//! | [`tools`] | the tools of this deployment; the only folder that a user of the template must open |
//! | [`tool`] | what a tool's author uses: the trait, the effect, the errors |
//! | [`door`] | the wire formats through which calls arrive and are answered |
//! | [`call`] | a call's life, from name and arguments to outcome |
//! | [`arguments`] | the schema the model is told, and the check against it |
//! | [`outcome`] | how a call ends, and who can fix it |
//! | [`handler`] | one invocation, from bytes to answer |
//! | `dev` | the local program's parts, without which the Lambda binary is built |

pub mod arguments;
pub mod call;
#[cfg(feature = "dev")]
pub mod dev;
pub mod door;
pub mod handler;
pub mod outcome;
pub mod tool;
