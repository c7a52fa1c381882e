//! The agent loop: that it always ends, and ends well.
//!
//! | module | shows |
//! | --- | --- |
//! | `history` | that each request is one that Bedrock takes |
//! | `limits` | that each limit holds, and what the model may still do at it |
//! | `stops` | each stop reason, by name |
//! | `approval`, `asked` | the pause for a person, whether the policy or the tool wants it, and what ends it |
//! | `handoff` | the report |
//! | `property` | all of it with random models, failures, kills and resumes |
//! | `sample` | that such requests go out as they were made; leaves some for a judge outside |
//! | `driven` | the driver with the real pipeline |
//! | `killed` | the driver that follows one that has died |
//! | `cut_off` | a turn that its time, the end of the process or a failing save cuts off |
//! | `lines` | the metric line of each request |
//! | `command` | `dev run-loop` |

#![cfg(feature = "dev")] // the embedded DynamoDB

#[path = "../emf/mod.rs"]
mod emf;
#[path = "../legal/mod.rs"]
mod legal;
#[path = "../support/mod.rs"]
mod support;

mod approval;
mod asked;
mod chance;
mod command;
mod cut_off;
mod driven;
mod handoff;
mod history;
mod killed;
mod limits;
mod lines;
mod machine;
mod property;
mod sample;
mod stops;
mod toolbox;
mod world;
