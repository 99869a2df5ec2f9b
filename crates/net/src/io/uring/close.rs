//! Closes connections, and cancels attempts to open them.

use io_uring::{opcode, squeue};
use units::Nanos;

use super::{ACCEPTING, NEAR, OPENING, Op, Place, SKIP, Uring, user_data};
use crate::{io::Close, slab::Key};

/// Connecting to this address undoes a connect (`connect(2)`: AF_UNSPEC).
static NOWHERE: libc::sockaddr = libc::sockaddr { sa_family: libc::AF_UNSPEC as u16, sa_data: [0; 14] };

impl Uring {
    /// Ends the connection at `k`. Only a pending accept is waited for: later completions have a stale key, and the slot is free for the
    /// next connection after the close in the same queue.
    pub(super) fn end(&mut self, k: Key, how: Close) {
        let (_, fd) = self.place(k);
        self.behind.remove(&k);
        self.take_ended(k);
        if self.is(k, ACCEPTING) {
            self.give_up_accept(k);
        }
        let quiet = |e: squeue::Entry| e.flags(SKIP).user_data(user_data(Op::Quiet, 0, k));
        // A pending operation keeps the socket open, so it is cancelled before the close. If none is pending, the cancellation completes
        // with ENOENT, which is ignored.
        let cancel = |op, extra| quiet(opcode::AsyncCancel::new(user_data(op, extra, k)).build());
        if self.blocked.contains_key(&k) {
            // SAFETY: the entry points to nothing.
            unsafe { self.push(k, &[cancel(Op::SendBlocked, 0)]) };
        }
        let opening = self.is(k, OPENING);
        let pending = if opening { cancel(Op::Connect, self.near(k)) } else { cancel(Op::Poll, 0) };
        // SAFETY: the entry points to nothing.
        unsafe { self.push(k, &[pending]) };
        if opening || how == Close::Reset {
            // Connecting to AF_UNSPEC disconnects like a close with a linger time of zero: it sends RST and discards unsent data. SO_LINGER
            // can be set in the ring only since Linux 6.7; this works on all kernels. It also ends a pending connect, in case the
            // cancellation has just missed it.
            let nowhere = opcode::Connect::new(fd, &raw const NOWHERE, size_of_val(&NOWHERE) as u32);
            // SAFETY: the address is static.
            unsafe { self.push(k, &[quiet(nowhere.build())]) };
        }
        // SAFETY: the entry points to nothing.
        unsafe { self.push(k, &[quiet(opcode::Close::new(fd).build())]) };
        self.places[k.index as usize] = Place { turn: k.turn.wrapping_add(1), ..Place::default() };
    }

    /// The extra field in the user data of the connect of `k`: 1 if its destination is on loopback, otherwise 0.
    pub(super) fn near(&self, k: Key) -> u16 {
        u16::from(self.is(k, NEAR))
    }

    /// Cancels a pending accept and waits for its completion, so that the peer cannot arrive in the slot of the next connection. A
    /// cancellation may find the operation in progress, so it is repeated.
    fn give_up_accept(&mut self, k: Key) {
        let (ring, _) = self.place(k);
        while self.is(k, OPENING) {
            let cancel = opcode::AsyncCancel::new(user_data(Op::Accept, 0, k)).build();
            // SAFETY: the entry points to nothing.
            unsafe { self.push(k, &[cancel.flags(SKIP).user_data(user_data(Op::Quiet, 0, k))]) };
            self.rings[ring].submit_and_sleep(Nanos::from_micros(50), Nanos::ZERO, 1);
            self.reap();
        }
    }
}
