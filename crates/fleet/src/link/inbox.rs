//! Queues of received messages, bounded in bytes. A message on a subject is dropped and counted if the queue is full. Entries of a log
//! must not be dropped: its reader waits for room.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc::{self, Receiver, Sender},
    },
    time::Duration,
};

use tokio::sync::{Semaphore, TryAcquireError};
use units::Nanos;

/// Maximum length of a message that is read; throng's own are far shorter.
pub(crate) const LONGEST_MESSAGE: usize = 8 << 20;
/// Maximum bytes of queued messages on a subject.
const SUBJECT_BYTES: usize = 64 << 20;
/// Maximum bytes of queued log entries: what a thousand agents store in a second. Decoded entries use more memory.
const LOG_BYTES: usize = 16 << 20;
/// Minimum size that a message counts for, so that one bound also limits their number. A bounded channel would allocate its whole
/// capacity at once: 16 MB for each subject.
const LEAST: usize = 1 << 10;

/// The receiving end.
pub(crate) struct Inbox<T> {
    waiting: Receiver<(u32, T)>,
    room: Arc<Semaphore>,
}

/// The sending end for entries of a log.
pub(super) struct Filler<T> {
    waiting: Sender<(u32, T)>,
    room: Arc<Semaphore>,
    /// Units of room when nothing is queued.
    units: usize,
}

/// The sending end for messages on a subject.
pub(super) struct Slot<T> {
    filler: Filler<T>,
    dropped: AtomicU64,
}

/// The outcome of queueing a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// Queued, or ignored because it is not of this protocol.
    Done,
    /// Dropped because it is too long or the queue is full; contains the total number of drops.
    Dropped(u64),
    /// The receiver is gone.
    Abandoned,
}

/// Both ends of a queue for a log.
pub(super) fn of_log<T>() -> (Filler<T>, Inbox<T>) {
    with_room(LOG_BYTES)
}

/// Both ends of a queue for a subject.
pub(super) fn of_subject<T>() -> (Slot<T>, Inbox<T>) {
    let (filler, inbox) = with_room(SUBJECT_BYTES);
    (Slot { filler, dropped: AtomicU64::new(0) }, inbox)
}

fn with_room<T>(bytes: usize) -> (Filler<T>, Inbox<T>) {
    let (sender, waiting) = mpsc::channel();
    let units = bytes / LEAST;
    let room = Arc::new(Semaphore::new(units));
    (Filler { waiting: sender, room: room.clone(), units }, Inbox { waiting, room })
}

impl<T> Filler<T> {
    /// Units of room used by a message of this size. One that exceeds the whole room uses all of it.
    fn permits(&self, bytes: usize) -> u32 {
        bytes.div_ceil(LEAST).clamp(1, self.units) as u32
    }

    /// Whether an entry of this size fits without waiting.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.room.available_permits() >= self.permits(bytes) as usize
    }

    /// Queues the next entry as soon as there is room. It stays in `next` until then, even if this future is dropped. Returns whether the
    /// receiver still exists.
    pub(super) async fn put(&self, next: &mut Option<(usize, T)>) -> bool {
        let Some((bytes, _)) = next else { return true };
        let permits = self.permits(*bytes);
        // Closed by the receiver.
        let Ok(room) = self.room.acquire_many(permits).await else { return false };
        room.forget();
        next.take().is_none_or(|(_, entry)| self.waiting.send((permits, entry)).is_ok())
    }
}

impl<T> Slot<T> {
    /// Queues a message of this size. A message that cannot be decoded is not of this protocol, and is ignored.
    pub(super) fn put(&self, size: usize, read: impl FnOnce() -> Option<T>) -> Put {
        let filler = &self.filler;
        if size > LONGEST_MESSAGE {
            return self.drop();
        }
        let permits = filler.permits(size);
        let room = match filler.room.try_acquire_many(permits) {
            Ok(room) => room,
            Err(TryAcquireError::NoPermits) => return self.drop(),
            Err(TryAcquireError::Closed) => return Put::Abandoned,
        };
        let Some(message) = read() else { return Put::Done };
        room.forget();
        match filler.waiting.send((permits, message)) {
            Ok(()) => Put::Done,
            Err(_) => Put::Abandoned,
        }
    }

    fn drop(&self) -> Put {
        Put::Dropped(self.dropped.fetch_add(1, Relaxed) + 1)
    }
}

impl<T> Inbox<T> {
    /// The next message, if one arrives within `wait`.
    pub(crate) fn next(&self, wait: Nanos) -> Option<T> {
        let (permits, next) = self.waiting.recv_timeout(Duration::from_nanos(wait.0)).ok()?;
        self.room.add_permits(permits as usize);
        Some(next)
    }
}

impl<T> Drop for Inbox<T> {
    fn drop(&mut self) {
        self.room.close();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    /// Puts a message of this size.
    fn put(slot: &Slot<usize>, bytes: usize) -> Put {
        slot.put(bytes, || Some(bytes))
    }

    #[test]
    fn a_message_of_100_mb_is_dropped_unread() {
        let (slot, inbox) = of_subject();
        for long in [100_000_000, LONGEST_MESSAGE + 1] {
            assert!(matches!(slot.put(long, || panic!("it is not read")), Put::Dropped(1 | 2)));
        }
        assert_eq!(inbox.next(Nanos::ZERO), None);
        assert_eq!(
            (put(&slot, LONGEST_MESSAGE), inbox.next(Nanos::ZERO)),
            (Put::Done, Some(LONGEST_MESSAGE))
        );
    }

    #[test]
    fn what_waits_is_bounded_in_bytes_and_in_number() {
        let (slot, inbox) = of_subject();
        let room = SUBJECT_BYTES / LONGEST_MESSAGE;
        assert!((0..room).all(|_| put(&slot, LONGEST_MESSAGE) == Put::Done));
        assert_eq!((put(&slot, LONGEST_MESSAGE), put(&slot, 1)), (Put::Dropped(1), Put::Dropped(2)));
        // Reading makes room.
        assert!(inbox.next(Nanos::ZERO).is_some() && put(&slot, LONGEST_MESSAGE) == Put::Done);
        while inbox.next(Nanos::ZERO).is_some() {}
        assert!((0..SUBJECT_BYTES / LEAST).all(|_| put(&slot, 2) == Put::Done));
        assert_eq!(put(&slot, 2), Put::Dropped(3));
    }

    #[test]
    fn what_is_not_of_the_protocol_is_skipped() {
        let (slot, inbox) = of_subject();
        assert_eq!((slot.put(5, || None), put(&slot, 7)), (Put::Done, Put::Done));
        assert_eq!((inbox.next(Nanos::ZERO), inbox.next(Nanos::ZERO)), (Some(7), None));
        // Its room has been released.
        assert!(slot.filler.has_room(SUBJECT_BYTES));
        drop(inbox);
        assert_eq!(put(&slot, 1), Put::Abandoned);
    }

    /// Puts an entry if there is room now. Returns the result, and the entry if it still waits.
    fn fill(filler: &Filler<u32>, bytes: usize, entry: u32) -> (Option<bool>, Option<(usize, u32)>) {
        let mut next = Some((bytes, entry));
        let done = filler.put(&mut next).now_or_never();
        (done, next)
    }

    #[test]
    fn an_entry_without_room_waits_and_none_is_lost() {
        const MIB: usize = 1 << 20;
        let (filler, inbox) = of_log();
        assert!((0..16).all(|entry| fill(&filler, MIB, entry) == (Some(true), None)));
        assert!(!filler.has_room(1));
        assert_eq!(fill(&filler, 1, 16), (None, Some((1, 16))));
        // Taking an entry makes room.
        assert_eq!((inbox.next(Nanos::ZERO), filler.has_room(MIB)), (Some(0), true));
        assert_eq!(fill(&filler, 1, 16), (Some(true), None));
        let taken: Vec<u32> = std::iter::from_fn(|| inbox.next(Nanos::ZERO)).collect();
        assert_eq!(taken, (1..=16).collect::<Vec<_>>());
        assert_eq!(fill(&filler, usize::MAX, 17), (Some(true), None), "larger than all the room");
        assert_eq!(fill(&filler, 1, 18).0, None);
        assert_eq!(inbox.next(Nanos::ZERO), Some(17));
        // Small entries are bounded in number.
        assert!((0..LOG_BYTES / LEAST).all(|_| fill(&filler, 0, 0).0 == Some(true)));
        assert_eq!(fill(&filler, 0, 0).0, None);
        drop(inbox);
        assert_eq!(fill(&filler, 1, 18).0, Some(false));
    }
}
