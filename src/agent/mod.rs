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
//! | [`report`] | the honest end |
//! | [`drive`] | does what the machine says |
//! | [`bedrock`] | a model on Bedrock, through the SDK |
//! | [`store`] | conversations in DynamoDB |
//! | [`turn`] | one turn: load, drive, let go |
//! | [`settings`] | the loop's environment variables |
//! | [`function`] | the loop as a Lambda function |

pub mod bedrock;
pub mod conversation;
pub mod drive;
pub mod function;
pub mod limits;
pub mod model;
pub mod report;
pub mod run;
pub mod settings;
pub mod stop;
pub mod store;
pub mod tools;
pub mod turn;
pub mod usage;
