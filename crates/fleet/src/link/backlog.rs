//! What was read of a log and waits to be taken: bounded in bytes. Nothing of a log may be dropped: where there is no room, its reader
//! waits.

use std::{
    sync::{
        Arc,
        mpsc::{self, Receiver, Sender},
    },
    time::Duration,
};

use tokio::sync::Semaphore;
use units::Nanos;

/// Bytes that wait to be taken: what a thousand agents store in a second. In memory an entry is larger.
const MOST_BYTES: usize = 16 << 20;
/// What an entry counts for at least, so that one bound is enough.
const LEAST: usize = 1 << 10;
const UNITS: usize = MOST_BYTES / LEAST;

/// The end where entries are taken.
pub(super) struct Backlog<T> {
    waiting: Receiver<(u32, T)>,
    room: Arc<Semaphore>,
}

/// The end where they are put.
pub(super) struct Filler<T> {
    waiting: Sender<(u32, T)>,
    room: Arc<Semaphore>,
}

/// Both ends.
pub(super) fn backlog<T>() -> (Filler<T>, Backlog<T>) {
    let (sender, waiting) = mpsc::channel();
    let room = Arc::new(Semaphore::new(UNITS));
    (Filler { waiting: sender, room: room.clone() }, Backlog { waiting, room })
}

/// Of an entry of this many bytes. One that is larger than all the room waits for all of it.
fn permits(bytes: usize) -> u32 {
    bytes.div_ceil(LEAST).clamp(1, UNITS) as u32
}

impl<T> Filler<T> {
    /// Whether an entry of this many bytes need not wait.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.room.available_permits() >= permits(bytes) as usize
    }

    /// Puts the next entry, of this many bytes, as soon as there is room; until then it stays where it is, also where this is
    /// cancelled. Returns whether there is someone who takes it.
    pub(super) async fn put(&self, next: &mut Option<(usize, T)>) -> bool {
        let Some((bytes, _)) = next else { return true };
        let permits = permits(*bytes);
        // It is closed by the other end.
        let Ok(room) = self.room.acquire_many(permits).await else { return false };
        room.forget();
        next.take().is_none_or(|(_, entry)| self.waiting.send((permits, entry)).is_ok())
    }
}

impl<T> Backlog<T> {
    /// The next entry, if one comes in time.
    pub(super) fn next(&self, wait: Nanos) -> Option<T> {
        let (permits, entry) = self.waiting.recv_timeout(Duration::from_nanos(wait.0)).ok()?;
        self.room.add_permits(permits as usize);
        Some(entry)
    }
}

impl<T> Drop for Backlog<T> {
    fn drop(&mut self) {
        self.room.close();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    /// Puts an entry, if there is room now, and what is left of it otherwise.
    fn put(filler: &Filler<u32>, bytes: usize, entry: u32) -> (Option<bool>, Option<(usize, u32)>) {
        let mut next = Some((bytes, entry));
        let done = filler.put(&mut next).now_or_never();
        (done, next)
    }

    #[test]
    fn an_entry_without_room_waits_and_none_is_lost() {
        const MIB: usize = 1 << 20;
        let (filler, backlog) = backlog();
        assert!((0..16).all(|entry| put(&filler, MIB, entry) == (Some(true), None)));
        assert!(!filler.has_room(1));
        assert_eq!(put(&filler, 1, 16), (None, Some((1, 16))));
        // What is taken makes room.
        assert_eq!((backlog.next(Nanos::ZERO), filler.has_room(MIB)), (Some(0), true));
        assert_eq!(put(&filler, 1, 16), (Some(true), None));
        let taken: Vec<u32> = std::iter::from_fn(|| backlog.next(Nanos::ZERO)).collect();
        assert_eq!(taken, (1..=16).collect::<Vec<_>>());
        assert_eq!(put(&filler, usize::MAX, 17), (Some(true), None), "larger than all the room");
        assert_eq!(put(&filler, 1, 18).0, None);
        assert_eq!(backlog.next(Nanos::ZERO), Some(17));
        // Small ones are bounded in number.
        assert!((0..UNITS as u32).all(|entry| put(&filler, 0, entry).0 == Some(true)));
        assert_eq!(put(&filler, 0, 0).0, None);
        drop(backlog);
        assert_eq!(put(&filler, 1, 18).0, Some(false));
    }
}
