//! Whether a write that failed may have been applied all the same, over all attempts that the client made of it.
//!
//! The error that the client hands back speaks for its last attempt only. A transaction that was committed, whose answer
//! was lost, and that was throttled when the client sent it again, comes back as "throttled"; to call that "nothing was
//! written" would be a guess, and a wrong one.
//!
//! | how an attempt ended | applied? |
//! | --- | --- |
//! | DynamoDB refused it (4xx), or the connection was refused | surely not |
//! | a 5xx, a broken connection, an answer that cannot be read | perhaps |
//! | the time was up while it was on its way | perhaps |
//! | the time was up between two attempts, in the client's wait | as the attempts before say |

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use aws_sdk_dynamodb::{
    config::{
        ConfigBag, Intercept, RuntimeComponents,
        interceptors::{BeforeTransmitInterceptorContextRef, FinalizerInterceptorContextRef},
    },
    error::BoxError,
};
use aws_smithy_runtime_api::client::{
    interceptors::{context::Error, dyn_dispatch_hint},
    orchestrator::OrchestratorError,
};

use crate::aws::connection_was_refused;

/// Watches the attempts of one request. Hand a clone to the request.
#[derive(Clone, Debug, Default)]
pub(super) struct Doubt(Arc<State>);

#[derive(Debug, Default)]
struct State {
    /// Some attempt that ended may have been applied.
    remains: AtomicBool,
    /// An attempt has begun and not ended.
    on_its_way: AtomicBool,
}

impl Doubt {
    /// Whether some attempt may have been applied: one that ended, or one that was given up on its way.
    pub(super) fn remains(&self) -> bool {
        self.0.remains.load(Ordering::SeqCst) || self.0.on_its_way.load(Ordering::SeqCst)
    }
}

#[dyn_dispatch_hint]
impl Intercept for Doubt {
    fn name(&self) -> &'static str {
        "Doubt"
    }

    fn read_before_attempt(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        self.0.on_its_way.store(true, Ordering::SeqCst);
        Ok(())
    }

    fn read_after_attempt(
        &self,
        attempt: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let refused = attempt.response().is_some_and(|response| response.status().is_client_error());
        if let Some(Err(error)) = attempt.output_or_error()
            && !refused
            && !was_never_sent(error)
        {
            self.0.remains.store(true, Ordering::SeqCst);
        }
        self.0.on_its_way.store(false, Ordering::SeqCst);
        Ok(())
    }
}

fn was_never_sent(error: &OrchestratorError<Error>) -> bool {
    error.as_connector_error().is_some_and(|error| connection_was_refused(error))
}
