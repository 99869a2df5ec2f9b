//! How connections end, and attempts at them.

use io_uring::{opcode, squeue};
use units::Nanos;

use super::{ACCEPTING, NEAR, OPENING, Op, Place, SKIP, Uring, user_data};
use crate::{io::Close, slab::Key};

/// The address that takes a connect back (`connect(2)`: AF_UNSPEC).
static NOWHERE: libc::sockaddr = libc::sockaddr { sa_family: libc::AF_UNSPEC as u16, sa_data: [0; 14] };

impl Uring {
    /// Ends what stands at `k`. Nothing is waited for but an accept: what is answered later is answered to a key that
    /// is stale, and the place is free for its successor behind the close in the same queue.
    pub(super) fn end(&mut self, k: Key, how: Close) {
        let (_, fd) = self.place(k);
        self.behind.remove(&k);
        if self.is(k, ACCEPTING) {
            self.give_up_accept(k);
        }
        let quiet = |e: squeue::Entry| e.flags(SKIP).user_data(user_data(Op::Quiet, 0, k));
        // A pending operation keeps the socket open: take it back before the close. What is not pending answers
        // ENOENT, which nobody reads.
        let cancel = |op, extra| quiet(opcode::AsyncCancel::new(user_data(op, extra, k)).build());
        if self.clogged.contains_key(&k) {
            // SAFETY: the entry points to nothing.
            unsafe { self.push(k, &[cancel(Op::SendRest, 0)]) };
        }
        let opening = self.is(k, OPENING);
        let pending = if opening { cancel(Op::Connect, self.near(k)) } else { cancel(Op::Poll, 0) };
        // SAFETY: the entry points to nothing.
        unsafe { self.push(k, &[pending]) };
        if opening || how == Close::Reset {
            // Connecting to nowhere disconnects as a close that lingers for no time does: RST, and nothing that was sent
            // is kept. SO_LINGER can be set in the ring since Linux 6.7, this works on all. A connect that was not
            // answered ends of it, so that no harm is done where the cancellation has just missed it.
            let nowhere = opcode::Connect::new(fd, &raw const NOWHERE, size_of_val(&NOWHERE) as u32);
            // SAFETY: the address is static.
            unsafe { self.push(k, &[quiet(nowhere.build())]) };
        }
        // SAFETY: the entry points to nothing.
        unsafe { self.push(k, &[quiet(opcode::Close::new(fd).build())]) };
        self.places[k.index as usize] = Place { turn: k.turn.wrapping_add(1), ..Place::default() };
    }

    /// What marks the connect of `k`.
    pub(super) fn near(&self, k: Key) -> u16 {
        u16::from(self.is(k, NEAR))
    }

    /// Takes back an accept that is not answered yet, and waits for the answer: the peer must not come into the slot
    /// when the successor is there. A cancellation may find the operation on its way, so it is repeated.
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
