//! The loop: each worker fetches an invocation, has it served, posts the answer, and fetches the next.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use lambda_runtime_api_client::BoxError;
use tokio::{runtime::Handle, select, time::Instant};

use super::{Answer, Api, ApiError, Invocation, api::Delivery, guard, invocation::Incoming};
use crate::ending::Ending;

/// Serves invocations, `concurrency` at a time, each on a thread of `work`, until `ending` begins.
///
/// # Errors
///
/// Says why the Runtime API has gone.
pub async fn run<S, F>(api: &Api, work: &Handle, concurrency: usize, ending: &Ending, serve: S) -> Result<(), ApiError>
where
    S: Fn(Invocation) -> F + Clone + Send + 'static,
    F: Future<Output = Answer> + Send,
{
    let workers = (0..concurrency.max(1)).map(|_| worker(api, work, ending, serve.clone()));
    // The others may be serving still, so the first that fails does not end them.
    join_all(workers).await.into_iter().collect()
}

async fn worker<S, F>(api: &Api, work: &Handle, ending: &Ending, serve: S) -> Result<(), ApiError>
where
    S: Fn(Invocation) -> F + Clone + Send + 'static,
    F: Future<Output = Answer> + Send,
{
    let mut failures = 0;
    loop {
        let next = select! {
            biased; // an invocation that has come is served
            next = api.next() => next,
            () = ending.begun() => return Ok(()),
        };
        match next {
            Ok(None) => failures = 0,
            Ok(Some((incoming, payload))) => {
                failures = 0;
                serve_one(api, work, serve.clone(), incoming, payload).await;
            }
            Err(error) => {
                failures += 1;
                let Some(pause) = pause(failures) else {
                    tracing::error!(%error, failures, "The next invocation could not be fetched; giving up.");
                    return Err(error);
                };
                tracing::warn!(%error, failures, "The next invocation could not be fetched; trying again.");
                tokio::time::sleep(pause).await;
            }
        }
    }
}

async fn serve_one<S, F>(api: &Api, work: &Handle, serve: S, incoming: Incoming, payload: Result<Bytes, BoxError>)
where
    S: Fn(Invocation) -> F + Send + 'static,
    F: Future<Output = Answer> + Send,
{
    let Incoming { context, invocation_id, client_context, deadline } = incoming;
    let request_id = context.request_id;
    if request_id.is_empty() {
        tracing::error!("An invocation came without a request id, so it cannot be answered.");
        return;
    }
    let answer = match payload {
        Err(error) => {
            tracing::error!(request_id, %error, "The payload of an invocation could not be read.");
            Err(guard::internal("The payload could not be read. Nothing was changed."))
        }
        Ok(payload) => {
            // The X-Ray id goes along in the invocation. It is not put into `_X_AMZN_TRACE_ID`, as other runtimes do:
            // a process that serves several invocations has no one id, and setting a variable is unsafe with threads.
            let trace_id = context.xray_trace_id;
            let invocation = Invocation {
                payload,
                client_context,
                request_id: request_id.clone(),
                trace_id,
                identity: context.identity.map(|identity| identity.identity_id),
                tenant: context.tenant_id,
                deadline,
            };
            let ends = guard::ends(deadline, Instant::now());
            guard::answer(work, ends, &request_id, async move { serve(invocation).await }).await
        }
    };
    deliver(api, &request_id, invocation_id.as_ref(), &answer).await;
    crate::telemetry::flush().await; // the caller has its answer, and the process is not frozen before it asks for more
}

/// Posts the answer. What cannot be delivered is logged once, and the loop goes on.
async fn deliver(api: &Api, request_id: &str, invocation_id: Option<&http::HeaderValue>, answer: &Answer) {
    match api.answer(request_id, invocation_id, answer).await {
        Ok(Delivery::Taken) => {}
        Ok(Delivery::TooLarge) => {
            tracing::error!(request_id, "Lambda refused the answer, because it is too large.");
            let told = Err(guard::internal(
                "The answer was too large for Lambda to deliver. What was asked for may have been done.",
            ));
            let _ = api.answer(request_id, invocation_id, &told).await; // Lambda may have ended the invocation already
        }
        Ok(Delivery::Refused(status)) => {
            tracing::error!(request_id, status = status.as_u16(), "Lambda refused the answer.");
        }
        Err(error) => tracing::error!(request_id, %error, "The answer could not be sent to Lambda."),
    }
}

/// How long to wait after this many failures in a row; `None` to give up.
fn pause(failures: u32) -> Option<Duration> {
    (failures < 4).then(|| Duration::from_millis(50) * 2_u32.pow(failures))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_for_the_runtime_api_grows_and_ends() {
        let pauses: Vec<_> = (1..).map_while(pause).collect();
        assert_eq!(pauses, [100, 200, 400].map(Duration::from_millis));
    }
}
