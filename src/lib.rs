//! Runs the tools of an Amazon Bedrock agent on AWS Lambda.
//!
//! ```text
//! event + context
//!   └─ door.decode ──► calls ──► for each call, concurrently:
//!                                  find tool ─ validate arguments ─ time left ─ policy, authorise
//!                                  ─ acquire key, approval ─ attempt (timeout, retry) ─ record outcome
//!                                  ─ fit the answer ─ metric, log
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
//! | [`authorise`] | who may do what: a seam for a policy of your own |
//! | [`conversation_guard`] | limits for loops that others run: a budget of calls, and a stop to calls that keep failing |
//! | [`readable`] | what a tool says, without characters that nobody sees |
//! | [`outcome`] | how a call ends, and who can fix it |
//! | [`idempotency`] | at most once per key, and an outcome that is never guessed |
//! | [`telemetry`] | the metric line and the log line of every call |
//! | [`aws`] | the configuration of every AWS client, and what its failures mean |
//! | [`clock`] | the time of day, and a clock that tests can stop |
//! | [`ending`] | the end of the process, told to those who wait |
//! | [`handler`] | one invocation, from bytes to answer |
//! | [`payload`] | bytes to JSON, within limits and unambiguous |
//! | [`agent`] | a bounded loop over Converse, where nobody else runs one |
//! | [`app`] | puts the parts together |
//! | [`approver`] | a second function, by which a person approves what waits |
//! | [`start`] | why a function cannot start |
//! | [`settings`] | what the function itself needs to know, checked at start |
//! | [`env`](mod@env) | the environment variables, read by type, with every fault collected |
//! | [`runtime`] | the Lambda Runtime API: invocations in, answers out |
//! | `dev` | the local program: the embedded DynamoDB, the demo backends, the command line |

extern crate self as action_group; // so that the examples of the documentation can be pasted into src/tools

pub mod agent;
pub mod app;
pub mod approver;
pub mod arguments;
pub mod authorise;
pub mod aws;
pub mod call;
pub mod clock;
pub mod conversation_guard;
#[cfg(feature = "dev")]
pub mod dev;
pub mod door;
pub mod ending;
pub mod env;
pub mod handler;
pub mod idempotency;
pub mod outcome;
pub mod payload;
pub mod readable;
pub mod runtime;
pub mod settings;
pub mod start;
pub mod telemetry;
pub mod tool;
pub mod tools;
