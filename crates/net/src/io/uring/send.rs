//! Sends: tried in order without waiting; what a slow peer does not take is sent off the hot path.

use io_uring::opcode;

use super::{Op, SENDING, SKIP, Uring, user_data};
use crate::{io::Io, slab::Key};

/// The bytes of a send of this batch.
#[derive(Clone, Copy)]
pub(super) enum Sent {
    /// A part of the output buffer: offset and length.
    Out { at: usize, len: usize },
    /// Bytes that are never freed.
    Static(&'static [u8]),
}

impl Uring {
    /// # Safety
    /// The bytes must stay unchanged until the next batch.
    pub(super) unsafe fn send(&mut self, k: Key, sent: Sent) {
        let bytes = self.sent(sent);
        if self.is_write_blocked(k) {
            let bytes = bytes.to_vec();
            return self.behind.entry(k).or_default().extend_from_slice(&bytes);
        }
        let (_, fd) = self.place(k);
        let entry = opcode::Send::new(fd, bytes.as_ptr(), bytes.len() as u32)
            // WAITALL: a partial send is reported with its size. DONTWAIT: does not wait for the rest.
            .flags(libc::MSG_WAITALL | libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
            .build()
            .flags(SKIP)
            .user_data(user_data(Op::Send, self.sends.len() as u16, k));
        self.sends.push((k, sent));
        self.set(k, SENDING);
        // SAFETY: guaranteed by the caller; MSG_DONTWAIT ends the operation within the submission.
        unsafe { self.push(k, &[entry]) };
    }

    /// Begins a new batch. All sends of the last batch were submitted, and partial or failed ones are known.
    pub(super) fn begin_batch(&mut self) {
        let short = std::mem::take(&mut self.short);
        for (sent, k, went) in short {
            if self.is_current(k) {
                let unsent = self.sent(self.sends[usize::from(sent)].1)[went as usize..].to_vec();
                self.send_blocked(k, unsent);
            }
        }
        for (k, _) in self.sends.drain(..) {
            self.places[k.index as usize].flags &= !SENDING;
        }
        self.addresses.clear();
        self.out_used = 0;
    }

    fn sent(&self, sent: Sent) -> &[u8] {
        match sent {
            Sent::Out { at, len } => &self.out[at..at + len],
            Sent::Static(bytes) => bytes,
        }
    }

    /// Sends remaining bytes with an operation that may wait for the peer.
    pub(super) fn send_blocked(&mut self, k: Key, unsent: Vec<u8>) {
        let (_, fd) = self.place(k);
        let entry = opcode::Send::new(fd, unsent.as_ptr(), unsent.len() as u32)
            .flags(libc::MSG_WAITALL | libc::MSG_NOSIGNAL)
            .build()
            .user_data(user_data(Op::SendBlocked, 0, k));
        self.blocked.insert(k, unsent);
        // SAFETY: the bytes stay in `blocked`, at the same heap address, until the operation completes.
        unsafe { self.push(k, &[entry]) };
    }
}
