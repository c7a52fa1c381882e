//! A task that ends with whoever waits for it: what is abandoned does not run on.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::task::JoinHandle;
use tracing::Instrument;

/// Runs on a thread of its own choice, beside whoever waits for it. Dropping it ends it at its next `.await`.
pub(crate) struct Task<T>(JoinHandle<T>);

/// The task panicked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Panicked;

impl<T: Send + 'static> Task<T> {
    pub(crate) fn spawn(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self(tokio::spawn(work.in_current_span()))
    }
}

impl<T> Future for Task<T> {
    type Output = Result<T, Panicked>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let ended = ready!(Pin::new(&mut self.0).poll(context));
        Poll::Ready(ended.map_err(|_| Panicked)) // the only other reason is our own `abort`, after which nobody polls
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
