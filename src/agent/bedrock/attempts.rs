//! The attempts of one call, which only the SDK sees: how many there were, and which of them the service has throttled.

use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_bedrockruntime::{
    config::{ConfigBag, Intercept, RuntimeComponents, interceptors::FinalizerInterceptorContextRef},
    error::BoxError,
};

use crate::{agent::drive::Heard, tool::THROTTLING};

/// For each attempt, whether it was throttled. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Attempts(Arc<Mutex<Vec<bool>>>);

impl Attempts {
    /// Tells of each attempt so far.
    pub fn tell(&self, heard: &mut (dyn FnMut(Heard<'_>) + Send)) {
        let attempts = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for (number, throttled) in (1..).zip(attempts) {
            heard(Heard::Attempt { number, throttled });
        }
    }
}

impl Intercept for Attempts {
    fn name(&self) -> &'static str {
        "Attempts"
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let response = context.response();
        let code = response.and_then(|response| response.headers().get("x-amzn-errortype"));
        // `ThrottlingException:http://…`
        let code = code.and_then(|code| code.split(':').next());
        let throttled = code.map_or_else(
            || response.is_some_and(|response| response.status().as_u16() == 429),
            |code| THROTTLING.contains(&code),
        );
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(throttled);
        Ok(())
    }
}
