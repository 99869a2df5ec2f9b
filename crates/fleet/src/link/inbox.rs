//! What arrives on a subject: bounded in number and size.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
        mpsc::{self, Receiver, Sender},
    },
    time::Duration,
};

use units::Nanos;

/// A longer message is not read: none of ours comes near to it.
pub(crate) const LONGEST_MESSAGE: usize = 8 << 20;
/// Bytes of messages that wait to be read.
const MOST_BYTES: usize = 64 << 20;
/// Messages that wait to be read.
const MOST_MESSAGES: usize = 1 << 16;
/// What a message counts for at least, so that one bound is enough. A bounded channel would have the room of all of them from the start: 16 MB
/// for each subject.
const LEAST: usize = MOST_BYTES / MOST_MESSAGES;

/// The end where messages are read.
pub(crate) struct Inbox<T> {
    messages: Receiver<(usize, T)>,
    waiting: Arc<AtomicUsize>,
}

/// The end where they arrive.
pub(super) struct Slot<T> {
    messages: Sender<(usize, T)>,
    waiting: Arc<AtomicUsize>,
    dropped: AtomicU64,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// It waits to be read, or is not of this protocol.
    Done,
    /// It is too long, or there is no room; how many were dropped so far.
    Dropped(u64),
    /// The reader is gone.
    Abandoned,
}

/// Both ends.
pub(super) fn inbox<T>() -> (Slot<T>, Inbox<T>) {
    let (sender, messages) = mpsc::channel();
    let waiting = Arc::<AtomicUsize>::default();
    let slot = Slot { messages: sender, waiting: waiting.clone(), dropped: AtomicU64::new(0) };
    (slot, Inbox { messages, waiting })
}

impl<T> Slot<T> {
    /// Takes a message of this size in. What cannot be read is not of this protocol, and not ours.
    pub(super) fn put(&self, size: usize, read: impl FnOnce() -> Option<T>) -> Put {
        let size = size.max(LEAST);
        if size > LONGEST_MESSAGE || self.waiting.load(Relaxed) + size > MOST_BYTES {
            return self.drop();
        }
        let Some(message) = read() else { return Put::Done };
        self.waiting.fetch_add(size, Relaxed);
        match self.messages.send((size, message)) {
            Ok(()) => Put::Done,
            Err(_) => Put::Abandoned,
        }
    }

    fn drop(&self) -> Put {
        Put::Dropped(self.dropped.fetch_add(1, Relaxed) + 1)
    }
}

impl<T> Inbox<T> {
    /// The next message, if one comes in time.
    pub(crate) fn next(&self, wait: Nanos) -> Option<T> {
        let (size, message) = self.messages.recv_timeout(Duration::from_nanos(wait.0)).ok()?;
        self.waiting.fetch_sub(size, Relaxed);
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of this many bytes.
    fn put(slot: &Slot<usize>, bytes: usize) -> Put {
        slot.put(bytes, || Some(bytes))
    }

    #[test]
    fn a_message_of_100_mb_is_dropped_unread() {
        let (slot, inbox) = inbox();
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
        let (slot, inbox) = inbox();
        let room = MOST_BYTES / LONGEST_MESSAGE;
        assert!((0..room).all(|_| put(&slot, LONGEST_MESSAGE) == Put::Done));
        assert_eq!((put(&slot, LONGEST_MESSAGE), put(&slot, 1)), (Put::Dropped(1), Put::Dropped(2)));
        // What is read makes room.
        assert!(inbox.next(Nanos::ZERO).is_some() && put(&slot, LONGEST_MESSAGE) == Put::Done);
        while inbox.next(Nanos::ZERO).is_some() {}
        assert!((0..MOST_MESSAGES).all(|_| put(&slot, 2) == Put::Done));
        assert_eq!(put(&slot, 2), Put::Dropped(3));
    }

    #[test]
    fn what_is_not_of_the_protocol_is_skipped() {
        let (slot, inbox) = inbox();
        assert_eq!((slot.put(5, || None), put(&slot, 7)), (Put::Done, Put::Done));
        assert_eq!((inbox.next(Nanos::ZERO), inbox.next(Nanos::ZERO)), (Some(7), None));
        drop(inbox);
        assert_eq!(put(&slot, 1), Put::Abandoned);
    }
}
