//! The outcome is never guessed, whatever becomes of the requests to DynamoDB: each fault at each step, through the
//! pipeline and the real AWS SDK with its retries.
//!
//! | module | shows |
//! | --- | --- |
//! | `commits` | that the commit of an atomic effect is told truly |
//! | `records` | the same of each request around an effect, of every kind |
//! | `heirs` | that of two executions under one record neither denies what the other has done |

#![cfg(feature = "dev")]

#[path = "../support/mod.rs"]
mod support;

mod commits;
mod heirs;
mod records;
mod world;
