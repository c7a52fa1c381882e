//! The room that the results of one event share.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

/// How many bytes of JSON the results of an event's calls may still have together. Clones share it.
///
/// Whoever ends first has the room, and a result that finds none is dropped at once: kept until the last call has ended,
/// the results of hundreds of calls would fill the memory of a small function, to be left out of the answer then.
#[derive(Clone, Debug)]
pub struct Room(Arc<AtomicUsize>);

impl Room {
    /// Room for so many bytes.
    pub fn of(bytes: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(bytes)))
    }

    /// Takes room for a result of this size, if there is as much.
    pub(super) fn take(&self, size: usize) -> bool {
        self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(size)).is_ok()
    }
}

impl Default for Room {
    /// As much as is wanted.
    fn default() -> Self {
        Self::of(usize::MAX)
    }
}
