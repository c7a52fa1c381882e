//! The attempts of one call, which only the SDK sees: how many there were, and which of them the service has throttled.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_sdk_bedrockruntime::{
    config::{
        ConfigBag, Intercept, RuntimeComponents,
        interceptors::{BeforeTransmitInterceptorContextRef, FinalizerInterceptorContextRef},
    },
    error::BoxError,
};

use crate::{agent::drive::Heard, aws::THROTTLING};

/// For each attempt that has begun, whether it was throttled. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Attempts(Arc<Mutex<Vec<bool>>>);

impl Attempts {
    /// Waits for the client, and tells of its attempts when it has ended: also where nobody waits for it any more, which
    /// ends the attempt that was on its way.
    pub async fn tell<T>(self, client: impl Future<Output = T>, heard: &mut (dyn FnMut(Heard<'_>) + Send)) -> T {
        let _telling = Telling { attempts: self, heard };
        Box::pin(client).await
    }

    fn lock(&self) -> MutexGuard<'_, Vec<bool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells of the attempts when it is dropped.
struct Telling<'a> {
    attempts: Attempts,
    heard: &'a mut (dyn FnMut(Heard<'_>) + Send),
}

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        let attempts = std::mem::take(&mut *self.attempts.lock());
        for (number, throttled) in (1..).zip(attempts) {
            (self.heard)(Heard::Attempt { number, throttled });
        }
    }
}

impl Intercept for Attempts {
    fn name(&self) -> &'static str {
        "Attempts"
    }

    fn read_before_attempt(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        self.lock().push(false);
        Ok(())
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
        if let Some(last) = self.lock().last_mut() {
            *last = throttled;
        }
        Ok(())
    }
}
