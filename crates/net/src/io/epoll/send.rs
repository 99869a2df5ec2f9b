//! Sends: tried immediately; bytes that the socket does not take are buffered until it is writable.

use std::{io, os::fd::OwnedFd};

use rustix::{
    event::epoll::{self, EventData},
    net::{SendFlags, send},
};

use super::{Epoll, READ_AND_WRITE, WRITES, data};
use crate::{
    io::{Gone, What},
    slab::Key,
};

/// Output that a slow peer has not taken yet.
pub(super) struct BlockedSend {
    bytes: Vec<u8>,
    /// How many of `bytes` were sent.
    sent: usize,
}

/// Sends without waiting; returns how many of `bytes` the socket took.
fn send_now(socket: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    match send(socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
        Ok(went) => Ok(went),
        Err(rustix::io::Errno::AGAIN) => Ok(0),
        Err(e) => Err(e.into()),
    }
}

impl Epoll {
    pub(super) fn send(&mut self, k: Key, bytes: &[u8]) {
        // Queued after the blocked bytes, to preserve the order.
        if !self.blocked.is_empty()
            && let Some(blocked) = self.blocked.get_mut(&k)
        {
            return blocked.bytes.extend_from_slice(bytes);
        }
        let Some(socket) = self.socket(k) else { return };
        match send_now(socket, bytes) {
            Ok(went) if went == bytes.len() => {}
            Ok(went) => self.block(k, &bytes[went..]),
            Err(e) => self.end(k, Gone::from_error(&e)),
        }
    }

    fn block(&mut self, k: Key, unsent: &[u8]) {
        self.blocked.insert(k, BlockedSend { bytes: unsent.to_vec(), sent: 0 });
        if self.place(k).flags & WRITES == 0
            && let Some(socket) = self.socket(k)
        {
            // Modifying the registration reports an event at once if the socket has become writable in the meantime.
            match epoll::modify(self.poll.fd(), socket, EventData::new_u64(data(k)), READ_AND_WRITE) {
                Ok(()) => self.place(k).flags |= WRITES,
                Err(e) => self.report(k, What::failed(&e.into())),
            }
        }
    }

    pub(super) fn send_blocked(&mut self, k: Key) {
        let Some(mut blocked) = self.blocked.remove(&k) else { return };
        let Some(socket) = self.socket(k) else { return };
        match send_now(socket, &blocked.bytes[blocked.sent..]) {
            Ok(went) if blocked.sent + went == blocked.bytes.len() => self.report(k, What::Drained),
            Ok(went) => {
                blocked.sent += went;
                self.blocked.insert(k, blocked);
            }
            Err(e) => self.end(k, Gone::from_error(&e)),
        }
    }
}
