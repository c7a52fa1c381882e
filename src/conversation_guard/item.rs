//! The item of a conversation in the table of records: no record of an action, and under a key that no action has.
//!
//! | attribute | holds |
//! | --- | --- |
//! | `calls` | how many calls there were; only ever added to, so that none is lost |
//! | `failures` | the failures that count, as text; the first of two writers at once counts |
//! | `expires_at` | when DynamoDB may delete it |

use std::time::Duration;

use aws_sdk_dynamodb::{operation::update_item::UpdateItemError, types::ReturnValue::AllNew};

use crate::idempotency::{Store, StoreError, n, s, within};

/// Adds calls, and reads all that was counted: how many calls there are now, and the failures.
///
/// # Errors
///
/// The calls may have been added all the same.
pub(super) async fn add_calls(
    store: &Store,
    pk: &str,
    calls: u32,
    kept: Duration,
    time: Duration,
) -> Result<(u32, Option<String>), StoreError> {
    let request = store
        .update_beside(pk)
        .update_expression("ADD calls :calls SET expires_at = :expires")
        .expression_attribute_values(":calls", n(calls))
        .expression_attribute_values(":expires", n(store.now().plus(kept).as_secs_up()))
        .return_values(AllNew)
        .send();
    let answer = within(time, "UpdateItem", request).await?;
    let item = answer.map_err(|error| StoreError::from_sdk("UpdateItem", error))?.attributes.unwrap_or_default();
    let total = item.get("calls").and_then(|calls| calls.as_n().ok()?.parse().ok()).unwrap_or(u32::MAX);
    Ok((total, item.get("failures").and_then(|failures| failures.as_s().ok()).cloned()))
}

/// Replaces the failures that [`add_calls`] has read. Where another invocation of the conversation was
/// first, its own stay, and these are not counted.
pub(super) async fn replace_failures(
    store: &Store,
    pk: &str,
    old: Option<&str>,
    new: &str,
    time: Duration,
) -> Result<(), StoreError> {
    let condition = if old.is_some() { "failures = :old" } else { "attribute_not_exists(failures)" };
    let request = store
        .update_beside(pk)
        .update_expression("SET failures = :new")
        .condition_expression(condition)
        .set_expression_attribute_values(Some(
            old.map(|old| (String::from(":old"), s(old))).into_iter().chain([(String::from(":new"), s(new))]).collect(),
        ))
        .send();
    match within(time, "UpdateItem", request).await? {
        Err(error) if error.as_service_error().is_some_and(UpdateItemError::is_conditional_check_failed_exception) => {
            Ok(())
        }
        answer => answer.map(drop).map_err(|error| StoreError::from_sdk("UpdateItem", error)),
    }
}
