//! At most once per key, and an outcome that is never guessed.
//!
//! Before a side effect begins, one conditional `PutItem` acquires its key; afterwards one conditional `UpdateItem`
//! records how it ended. Whoever holds the record is named in it as `owner`, and every later write is conditional on
//! that owner and its attempt: a late execution can neither overwrite nor delete what another has recorded.
//!
//! | step | request | condition |
//! | --- | --- | --- |
//! | acquire | `PutItem` | no record, or an expired one |
//! | take over | `UpdateItem` | the old owner and attempt |
//! | complete, mark unknown, relinquish | `UpdateItem` | our owner and attempt |
//! | release | `DeleteItem` | our owner and attempt |
//! | commit (an atomic effect) | `TransactWriteItems`: the completed record and the tool's writes | no record, an expired one, or ours |
//! | look again: somebody holds the key, or an atomic call failed before its commit | `GetItem`, consistent | |
//!
//! What a record means is decided in one pure function, [`decide`], wherever the record came from.

mod decide;
mod doubt;
mod guard;
mod key;
mod record;
mod store;
mod transaction;

pub use self::{
    decide::{Claim, Decision, TAKE_OVER_MARGIN, decide},
    guard::{Guard, Settled},
    key::{Key, KeyFault},
    record::{Record, State, Stored},
    store::{Acquired, Store, StoreError, StoreErrorKind},
    transaction::{Commit, CommitError},
};
