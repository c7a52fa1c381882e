//! The Lambda Runtime API: takes invocations, hands them to the handler, posts the answers.
//!
//! ```text
//! GET  /runtime/invocation/next          ──► Invocation ──► handler, on its own threads
//! POST /runtime/invocation/{id}/response ◄── answer
//! POST /runtime/invocation/{id}/error    ◄── no tool call, a panic, a hang, an answer that was too large
//! POST /runtime/init/error               ◄── the start failed
//! ```
//!
//! Why not `lambda_runtime`'s own loop? It parses the client context before it calls the handler, as text to text, and
//! the process ends when the parsing fails. AgentCore Gateway sends an object there when it propagates headers, so one
//! such call would end the function, and the next one would too. This loop takes every header and every payload as they
//! come. `tests/upstream.rs` shows the fault upstream, and fails when it is mended: then this folder can go.
//!
//! | what happens | what the caller gets | the process |
//! | --- | --- | --- |
//! | any client context, payload or missing header | what the handler answers | goes on |
//! | the handler panics | an `Internal` error | goes on |
//! | the handler does not answer | an `Internal` error, just before the deadline | goes on |
//! | the payload does not end | an `Internal` error, just before the deadline | goes on |
//! | the Runtime API does not take the answer within 5 s | | goes on |
//! | Lambda refuses the answer | an `Internal` error, if it was too large | goes on |
//! | `/next` fails four times in a row | | ends with exit code 1 |
//! | SIGTERM | what is known within 300 ms | ends with exit code 0 |
//! | the start fails | the sentence, as an init error | ends with exit code 1 |
//! | there is no Runtime API | | ends with exit code 2 |
//!
//! The loop has a thread and an event loop of its own, and the handler runs elsewhere, so that tools which block all of
//! the handler's threads still cannot stop the answer.

mod api;
mod end;
mod guard;
mod invocation;
mod serve;
mod workers;

use std::{
    panic::AssertUnwindSafe,
    process::ExitCode,
    sync::{Arc, Once},
};

use futures_util::FutureExt;
use tokio::{runtime::Handle, select, time::Instant};

#[cfg(feature = "dev")]
pub(crate) use self::end::asked as asked_to_end;
pub(crate) use self::guard::{LONGEST, MARGIN};
pub use self::{
    api::{Api, ApiError},
    serve::{Answer, FunctionError, Invocation, Serve},
    workers::run,
};
use crate::{
    ending::Ending,
    env::{Env, log_filter},
    telemetry::{LogFormat, init_logs},
};

/// The whole life of a Lambda process: builds the handler, then serves until the Runtime API goes away. Call it from
/// `main`, and build the handler in the closure:
///
/// ```no_run
/// # use action_group::{handler::Handler, runtime, start::StartError};
/// # async fn handler() -> Result<Handler, StartError> { Err(StartError::Other(String::new())) }
/// fn main() -> std::process::ExitCode {
///     runtime::main(async || handler().await)
/// }
/// ```
///
/// An error of the start is told to Lambda, by its type, and to the log. Its type should have the form `Category.Reason`.
pub fn main<S: Serve, E: Into<FunctionError>>(build: impl AsyncFnOnce() -> Result<S, E>) -> ExitCode {
    init_logs(LogFormat::Json, log_filter(&mut Env::process())); // a bad level is reported together with the other settings
    let Ok(address) = std::env::var("AWS_LAMBDA_RUNTIME_API") else {
        eprintln!("{NO_RUNTIME_API}");
        return ExitCode::from(2);
    };
    let concurrency = concurrency(std::env::var("AWS_LAMBDA_MAX_CONCURRENCY").ok().as_deref());
    match live(&address, concurrency, build) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::FAILURE
        }
    }
}

const NO_RUNTIME_API: &str = "\
This program is a Lambda function. It takes its invocations from the Lambda Runtime API, but AWS_LAMBDA_RUNTIME_API is
not set, so it runs neither on Lambda nor under `cargo lambda watch`. To run the tools on this machine:

    cargo run -- invoke events/converse/get-order.json";

fn live<S: Serve, E: Into<FunctionError>>(
    address: &str,
    concurrency: usize,
    build: impl AsyncFnOnce() -> Result<S, E>,
) -> Result<(), String> {
    let cannot = |error: std::io::Error| format!("The function cannot start its threads: {error}.");
    let api = Api::at(address, concurrency).map_err(|error| error.to_string())?;
    let own = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
    let work = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads(concurrency))
        .enable_all()
        .build()
        .map_err(cannot)?;

    let start = match work.block_on(AssertUnwindSafe(build()).catch_unwind()) {
        Ok(started) => started.map_err(Into::into),
        Err(_) => Err(FunctionError::new("Start.Failed", "The start panicked. The log says where.")),
    };
    let end = match start {
        Ok(handler) => own.block_on(until_the_end(&api, work.handle(), concurrency, Arc::new(handler), end::asked())),
        Err(error) => {
            own.block_on(api.fail_start(&error));
            Err(error.error_message)
        }
    };
    work.shutdown_background(); // a thread that a tool blocks would hold up the end
    end
}

/// Serves until the Runtime API goes away, or the process is `asked` to end.
async fn until_the_end<S: Serve>(
    api: &Api,
    work: &Handle,
    concurrency: usize,
    handler: Arc<S>,
    asked: impl Future<Output = ()>,
) -> Result<(), String> {
    let extension = api.register().await;
    let ending = Ending::new();
    let asked = async {
        asked.await;
        tracing::info!("The function ends.");
        ending.begin();
        handler.end();
        tokio::time::sleep(end::GRACE).await;
    };
    let serving = Arc::clone(&handler);
    let first = Arc::new(Once::new());
    let serve = move |invocation: Invocation| {
        let handler = Arc::clone(&serving);
        if let Some(deadline) = invocation.deadline {
            first.call_once(|| handler.check_time(deadline.saturating_duration_since(Instant::now())));
        }
        async move { handler.serve(invocation).await }
    };
    select! {
        served = run(api, work, concurrency, &ending, serve) => served.map_err(|error| error.to_string()),
        () = asked => Ok(()),
        () = api.stay(extension) => Ok(()),
    }
}

/// How many invocations are served at once. Only Lambda sets it, so that nonsense counts as not set.
fn concurrency(value: Option<&str>) -> usize {
    value.and_then(|text| text.parse().ok()).filter(|n| (1..=1_600).contains(n)).unwrap_or(1)
}

/// More threads than there are cores, so that tools which block some do not stop the calls beside them: a deadline is seen
/// by a thread that is free. One that sleeps costs some kilobytes.
pub(crate) fn threads(concurrency: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    concurrency.min(cores).max(LEAST_THREADS)
}

/// A message of a model rarely has more calls than this.
const LEAST_THREADS: usize = 8;

#[cfg(test)]
mod tests {
    use tokio::sync::Notify;

    use super::*;

    /// A handler that neither answers nor hears that the process ends.
    #[derive(Default)]
    struct Deaf(Notify);

    impl Serve for Deaf {
        async fn serve(&self, _: Invocation) -> Answer {
            self.0.notify_one();
            std::future::pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_process_is_gone_with_the_grace_whatever_is_on_its_way() {
        const NEXT: &[u8] =
            b"HTTP/1.1 200 OK\r\nconnection: close\r\nlambda-runtime-aws-request-id: id\r\ncontent-length: 1\r\n\r\n1";
        let (api, handler) = (api::tests::silent(NEXT).await, Arc::new(Deaf::default()));
        let (serving, mut begun) = (Arc::clone(&handler), None);
        let asked = async {
            serving.0.notified().await;
            begun = Some(Instant::now());
        };
        let end = until_the_end(&api, &Handle::current(), 1, handler, asked).await;
        assert_eq!((end, begun.map(|begun| begun.elapsed())), (Ok(()), Some(end::GRACE)));
    }

    #[test]
    fn nonsense_about_concurrency_counts_as_one() {
        assert_eq!(concurrency(Some("8")), 8);
        for nonsense in [None, Some(""), Some("0"), Some("-1"), Some("many"), Some("100000")] {
            assert_eq!(concurrency(nonsense), 1, "{nonsense:?}");
        }
        assert_eq!(threads(1), LEAST_THREADS);
    }
}
