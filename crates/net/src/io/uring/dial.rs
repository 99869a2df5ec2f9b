//! Dialling.
//!
//! A dial is two steps: a bound socket in a direct slot, and the connect. Where the kernel lacks operations for the
//! first (`bind` came to io_uring with Linux 6.11, `setsockopt` with 6.7) it is done by ordinary system calls.

use std::{io, net::SocketAddr, os::fd::AsRawFd};

use io_uring::{opcode, squeue, types};
use rustix::net::SocketFlags;

use super::{Address, NEAR, ONE, OPENING, Op, SKIP, Uring, address::family, user_data};
use crate::{
    io::{What, socket},
    slab::Key,
};

impl Uring {
    /// Makes a bound socket in the direct slot of `k`; [`Uring::connect_prepared`] dials from it.
    pub(super) fn prepare(&mut self, k: Key, from: SocketAddr, to: SocketAddr) {
        if self.without_chain {
            if let Err(e) = self.prepare_without_chain(k, from, to) {
                return self.report(k, What::failed(&e));
            }
        } else {
            self.prepare_in_ring(k, from, to);
        }
        // No router can respond to a dial on loopback: there a connect reported as successful was.
        self.set(k, if to.ip().is_loopback() { OPENING | NEAR } else { OPENING });
        self.prepared.push((k, to));
    }

    /// None of these operations waits, so that each has ended when the next one starts: a chain of links would cost
    /// a piece of deferred work for each.
    fn prepare_in_ring(&mut self, k: Key, from: SocketAddr, to: SocketAddr) {
        let (_, fd) = self.place(k);
        let step = |e: squeue::Entry| e.flags(SKIP).user_data(user_data(Op::Prepare, 0, k));
        let socket = opcode::Socket::new(family(to), libc::SOCK_STREAM, 0);
        let socket = step(socket.file_index(Some(self.slot(k))).build());
        // Not only to share the address among destinations: a server that starts later on the port, with the same
        // option, would find it in use while our connection is open, and for the minute of its TIME_WAIT.
        let switch_on = |level: i32, name: i32| {
            let one = std::ptr::from_ref(&ONE).cast();
            step(opcode::SetSockOpt::new(fd, level as u32, name as u32, one, 4).build())
        };
        let reuse = switch_on(libc::SOL_SOCKET, libc::SO_REUSEADDR);
        // See `socket::bound`.
        let no_delay = switch_on(libc::IPPROTO_TCP, libc::TCP_NODELAY);
        // SAFETY: the options are static.
        unsafe { self.push(k, &[socket, reuse, no_delay]) };
        if from.port() != 0 || !from.ip().is_unspecified() {
            let (address, len) = self.keep(from);
            // SAFETY: the address stays in place until the batch has been submitted.
            unsafe { self.push(k, &[step(opcode::Bind::new(fd, address, len).build())]) };
        }
    }

    /// The same by ordinary system calls; the ordinary descriptor is closed again at once.
    fn prepare_without_chain(&mut self, k: Key, from: SocketAddr, to: SocketAddr) -> io::Result<()> {
        let (ring, fd) = self.place(k);
        // The predecessor's close may still be queued: it must not close what is installed here.
        self.rings[ring].submit();
        let socket = socket::bound(from, to, SocketFlags::empty())?;
        self.rings[ring].install(fd.0, socket.as_raw_fd())
    }

    /// Dials from the prepared sockets. Failures of the preparation have been reported and are not dialled: an unbound
    /// socket would dial from a port of the kernel's choice.
    pub(super) fn connect_prepared(&mut self) {
        if self.prepared.is_empty() {
            return;
        }
        self.submit();
        self.reap();
        let mut prepared = std::mem::take(&mut self.prepared);
        for (k, to) in prepared.drain(..) {
            if self.is_current(k) && self.is(k, OPENING) {
                let (_, fd) = self.place(k);
                let (address, len) = self.keep(to);
                let entry = opcode::Connect::new(fd, address, len).build();
                // SAFETY: the address stays in place until the batch has been submitted.
                unsafe { self.push(k, &[entry.user_data(user_data(Op::Connect, self.near(k), k))]) };
            }
        }
        self.prepared = prepared;
    }

    /// Checks whether `k`, which dialled beyond loopback, is connected by dialling once more: EISCONN means yes. A connect
    /// may be reported as successful that was not: an ICMP error that arrives while the connect still holds the socket is
    /// put into the socket's error queue, which io_uring takes for the connect's end, and then it finds no error
    /// (`io_connect`, Linux 6.18). The kernel continues to dial, EALREADY, and ends it later with that error, unless a
    /// reply arrives.
    pub(super) fn confirm(&mut self, k: Key) {
        // The first connect has set the address.
        static AGAIN: libc::sockaddr = libc::sockaddr { sa_family: libc::AF_INET as u16, sa_data: [0; 14] };
        if self.is_current(k) {
            let (_, fd) = self.place(k);
            let entry = opcode::Connect::new(fd, &raw const AGAIN, size_of_val(&AGAIN) as u32).build();
            // SAFETY: the address is static.
            unsafe { self.push(k, &[entry.user_data(user_data(Op::Confirm, 0, k))]) };
        }
    }

    /// A delay until `k` is checked again: a poll would return immediately, since the error queue is never empty now.
    pub(super) fn pause(&mut self, k: Key) {
        static WHILE: types::Timespec = types::Timespec::new().nsec(10_000_000);
        if self.is_current(k) {
            let entry = opcode::Timeout::new(&raw const WHILE).build();
            // SAFETY: the time is static.
            unsafe { self.push(k, &[entry.user_data(user_data(Op::Pause, 0, k))]) };
        }
    }

    /// Keeps an address in place until the next batch.
    fn keep(&mut self, at: SocketAddr) -> (*const libc::sockaddr, libc::socklen_t) {
        assert!(self.addresses.len() < self.addresses.capacity(), "the addresses of a batch must not move");
        let (address, len) = Address::new(at);
        self.addresses.push(address);
        (self.addresses[self.addresses.len() - 1].as_ptr(), len)
    }
}
