//! A loop over Bedrock's Converse API that always ends, and ends well.
//!
//! | module | its one idea |
//! | --- | --- |
//! | [`conversation`] | messages, as Converse writes them |
//! | [`model`] | what is asked of a model, and what it answers |
//! | [`usage`] | tokens |
//! | [`limits`] | how much one turn may take |
//! | [`tools`] | the tools that a conversation is offered |
//! | [`stop`] | why a turn has stopped |
//! | [`run`] | the loop's decisions, as a state machine |
//! | `history` | a history that Bedrock accepts |
//! | `guard` | what a model may not ask for again |
//! | `budget` | whether a request still fits |
//! | `ledger` | what became of each call |
//! | `words` | what the model is told about limits and ends |
//! | [`report`] | the honest end |
//! | [`drive`] | does what the machine says |
//! | [`metrics`] | what requests and turns leave behind |
//! | [`memory`] | conversations that end with the process |
//! | [`store`] | conversations in DynamoDB |
//! | [`bedrock`] | a model on Bedrock, through the SDK |
//! | [`turn`] | one turn: load, drive, let go |
//! | [`settings`] | the loop's environment variables |
//! | [`function`] | the loop as a Lambda function |

pub mod bedrock;
mod budget;
pub mod conversation;
pub mod drive;
pub mod function;
mod guard;
mod history;
mod ledger;
pub mod limits;
pub mod memory;
pub mod metrics;
pub mod model;
pub mod report;
pub mod run;
pub mod settings;
pub mod stop;
pub mod store;
pub mod tools;
pub mod turn;
pub mod usage;
mod words;
