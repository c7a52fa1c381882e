//! The end of the process, told to those who wait: from then on nothing new is begun, and what is on its way is settled.

use std::sync::Arc;

use tokio::sync::watch;

/// Whether the end has begun. Clones share it.
#[derive(Clone, Debug)]
pub struct Ending(Arc<watch::Sender<bool>>);

impl Ending {
    /// No end in sight.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Begins it. It cannot be taken back.
    pub fn begin(&self) {
        self.0.send_replace(true);
    }

    /// Whether it has begun.
    pub fn has_begun(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it begins.
    pub async fn begun(&self) {
        let _ = self.0.subscribe().wait_for(|begun| *begun).await; // the sender lives as long as `self`
    }
}

impl Default for Ending {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn the_end_is_told_to_those_who_wait_and_to_those_who_come_later() {
        let ending = Ending::new();
        let (early, late) = (ending.clone(), ending.clone());
        assert!(!ending.has_begun() && early.begun().now_or_never().is_none());
        let waiting = tokio::spawn(async move { early.begun().await });
        ending.begin();
        waiting.await.expect("an end");
        late.begun().await;
        assert!(late.has_begun());
    }
}
