//! At most once per key, and an outcome that is never guessed.
//!
//! Before a side effect begins, one conditional `PutItem` acquires its key; afterwards one conditional `UpdateItem`
//! records how it ended. Whoever holds the record is named in it as `owner`, and every later write is conditional on
//! that owner and its attempt: a late execution can neither overwrite nor delete what another has recorded.
//!
//! | step | request | condition |
//! | --- | --- | --- |
//! | acquire | `PutItem` | no record, or an expired one |
//! | ask for approval, bar a commit | `PutItem` | no record, or an expired one |
//! | list what waits | `Query` of the index `waiting` | |
//! | approve, deny | `GetItem`, consistent; then `UpdateItem` | it waits, and as it was shown |
//! | take over, use an approval | `UpdateItem` | the old owner, attempt and state |
//! | complete, mark unknown, relinquish, await approval in place | `UpdateItem` | our owner and attempt |
//! | release | `DeleteItem`; or by `UpdateItem` back to approved, or left to the next call where it bars | our owner and attempt |
//! | commit (an atomic effect) | `TransactWriteItems`: the completed record and the tool's writes | no record, an expired one, or ours |
//! | look again: somebody holds the key, or an atomic call failed before its commit | `GetItem`, consistent | |
//!
//! What a record means is decided in one pure function, [`decide`], wherever the record came from.
//!
//! | file | its one idea |
//! | --- | --- |
//! | `key` | what makes two calls the same action |
//! | `record` | the item that holds a key's state |
//! | `decide` | what a record means for the call that meets it |
//! | `request`, `doubt` | one request: given up in time, its failure read, over all of the client's attempts |
//! | `store` | the table: reading, first writing, fencing |
//! | `acquire`, `guard` | how an execution comes to hold a key; the right to settle what it holds |
//! | `transaction` | an atomic effect and its record, in one commit |
//! | `asking` | what a person is shown of a call that waits, which its record keeps |
//! | `approvals` | what waits for a person, the decision, and which call is meant by it |

mod acquire;
mod approvals;
mod asking;
mod decide;
mod doubt;
mod guard;
mod key;
mod record;
mod request;
mod store;
mod transaction;

/// The conditions of the requests, as predicates on a record: what the model checker runs in the place of DynamoDB.
#[doc(hidden)]
pub mod conditions {
    pub use super::{
        store::{is_fenced_in, is_free},
        transaction::may_commit,
    };
}

pub use self::{
    acquire::Acquired,
    approvals::{APPROVED_FOR, ApprovalError, ApprovalId, ListError, NoApprovalId, Pending, Verdict, WAITING, Waiting},
    asking::{AskedBy, Asking},
    decide::{Claim, Decision, TAKE_OVER_MARGIN, decide},
    guard::{Guard, Settled},
    key::{Key, KeyFault},
    record::{Decided, Record, State, Stored},
    request::{StoreError, StoreErrorKind},
    store::Store,
    transaction::{Commit, Transaction, Tried},
};
pub(crate) use self::{
    key::{canonical, digest_of, hex},
    record::{n, s},
    request::within,
};
