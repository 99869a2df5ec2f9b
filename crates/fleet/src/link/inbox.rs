//! What arrives on a subject: bounded in number and size, whoever sends it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
        mpsc::{self, Receiver, SyncSender, TrySendError},
    },
    time::Duration,
};

use serde::de::DeserializeOwned;
use units::Nanos;

/// A longer message is not read: none of ours comes near to it.
pub(crate) const LONGEST_MESSAGE: usize = 8 << 20;
/// Bytes of messages that wait to be read.
const MOST_BYTES: usize = 64 << 20;
/// Messages that wait to be read.
const MOST_MESSAGES: usize = 1 << 16;

/// The end where messages are read.
pub(crate) struct Inbox<T> {
    messages: Receiver<(usize, T)>,
    waiting: Arc<AtomicUsize>,
}

/// The end where they arrive.
pub(super) struct Slot<T> {
    messages: SyncSender<(usize, T)>,
    waiting: Arc<AtomicUsize>,
    dropped: AtomicU64,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// It waits to be read, or is not of this protocol.
    Done,
    /// It is too long, or there is no room: so many were dropped by now.
    Dropped(u64),
    /// The reader is gone.
    Abandoned,
}

/// Both ends.
pub(super) fn inbox<T>() -> (Slot<T>, Inbox<T>) {
    let (sender, messages) = mpsc::sync_channel(MOST_MESSAGES);
    let waiting = Arc::<AtomicUsize>::default();
    let slot = Slot { messages: sender, waiting: waiting.clone(), dropped: AtomicU64::new(0) };
    (slot, Inbox { messages, waiting })
}

impl<T: DeserializeOwned> Slot<T> {
    /// Takes a message in. What is not of this protocol is not ours.
    pub(super) fn put(&self, payload: &[u8]) -> Put {
        let size = payload.len();
        if size > LONGEST_MESSAGE || self.waiting.load(Relaxed) + size > MOST_BYTES {
            return self.drop();
        }
        let Ok(message) = serde_json::from_slice(payload) else { return Put::Done };
        self.waiting.fetch_add(size, Relaxed);
        match self.messages.try_send((size, message)) {
            Ok(()) => Put::Done,
            Err(TrySendError::Full(_)) => {
                self.waiting.fetch_sub(size, Relaxed);
                self.drop()
            }
            Err(TrySendError::Disconnected(_)) => Put::Abandoned,
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

    /// A JSON text of this many bytes.
    fn text(bytes: usize) -> Vec<u8> {
        let mut text = vec![b'x'; bytes];
        (text[0], text[bytes - 1]) = (b'"', b'"');
        text
    }

    #[test]
    fn a_message_of_100_mb_is_dropped_unread() {
        let (slot, inbox) = inbox::<String>();
        assert_eq!(slot.put(&text(100_000_000)), Put::Dropped(1));
        assert_eq!(slot.put(&text(LONGEST_MESSAGE + 1)), Put::Dropped(2));
        assert_eq!(inbox.next(Nanos::ZERO), None);
        assert_eq!(slot.put(&text(LONGEST_MESSAGE)), Put::Done);
        assert_eq!(inbox.next(Nanos::ZERO).map(|text| text.len()), Some(LONGEST_MESSAGE - 2));
    }

    #[test]
    fn what_waits_is_bounded_in_bytes_and_in_number() {
        let (slot, inbox) = inbox::<String>();
        let long = text(LONGEST_MESSAGE);
        let room = MOST_BYTES / LONGEST_MESSAGE;
        assert!((0..room).all(|_| slot.put(&long) == Put::Done));
        assert_eq!((slot.put(&long), slot.put(b"1")), (Put::Dropped(1), Put::Dropped(2)));
        // What is read makes room.
        assert!(inbox.next(Nanos::ZERO).is_some() && slot.put(&long) == Put::Done);
        while inbox.next(Nanos::ZERO).is_some() {}
        assert!((0..MOST_MESSAGES).all(|_| slot.put(b"\"\"") == Put::Done));
        assert_eq!(slot.put(b"\"\""), Put::Dropped(3));
    }

    #[test]
    fn what_is_not_of_the_protocol_is_skipped() {
        let (slot, inbox) = inbox::<u32>();
        for payload in ["", "{", "-1", "\"a\"", "7", "[8]"] {
            assert_eq!(slot.put(payload.as_bytes()), Put::Done);
        }
        assert_eq!((inbox.next(Nanos::ZERO), inbox.next(Nanos::ZERO)), (Some(7), None));
        drop(inbox);
        assert_eq!(slot.put(b"1"), Put::Abandoned);
    }
}
