//! Whether a try of a request may have been applied, although the last one was refused.
//!
//! The SDK asks again when an answer is lost. If that second try is throttled, the SDK reports a throttled request, and
//! the first may have been applied all the same.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use aws_smithy_runtime_api::{
    box_error::BoxError,
    client::{
        interceptors::{Intercept, context::FinalizerInterceptorContextRef},
        runtime_components::RuntimeComponents,
    },
};
use aws_smithy_types::config_bag::ConfigBag;

/// Watches the tries of one request. A copy of it is given to the request.
#[derive(Clone, Debug, Default)]
pub(super) struct Tries {
    lost: Arc<AtomicBool>,
}

impl Tries {
    /// Whether one of them got no clear answer.
    pub fn may_be_applied(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Intercept for Tries {
    fn name(&self) -> &'static str {
        "Tries"
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let refused = context.response().is_some_and(|response| response.status().is_client_error());
        if matches!(context.output_or_error(), Some(Err(_))) && !refused {
            self.lost.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}
