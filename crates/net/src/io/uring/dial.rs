//! Dialling.
//!
//! A dial has two steps: create a bound socket in a direct slot, and connect it. If the kernel lacks io_uring operations for the first
//! step (`bind` was added in Linux 6.11, `setsockopt` in 6.7), ordinary system calls are used for it.

use std::{io, net::SocketAddr, os::fd::AsRawFd};

use io_uring::{opcode, squeue, types};
use rustix::net::SocketFlags;

use super::{Address, NEAR, ONE, OPENING, Op, SKIP, Uring, address::family, user_data};
use crate::{
    io::{What, socket},
    slab::Key,
};

impl Uring {
    /// Creates a bound socket in the direct slot of `k`; [`Uring::connect_prepared`] dials from it.
    pub(super) fn prepare(&mut self, k: Key, from: SocketAddr, to: SocketAddr) {
        if self.without_chain {
            if let Err(e) = self.prepare_without_chain(k, from, to) {
                return self.report(k, What::failed(&e));
            }
        } else {
            self.prepare_in_ring(k, from, to);
        }
        // On loopback no router can send ICMP errors, so a connect reported as successful needs no check.
        self.set(k, if to.ip().is_loopback() { OPENING | NEAR } else { OPENING });
        self.prepared.push((k, to));
    }

    /// Creates the socket with operations of the ring. None of them waits, so each has ended when the next one starts; linking them would
    /// cost deferred work for each.
    fn prepare_in_ring(&mut self, k: Key, from: SocketAddr, to: SocketAddr) {
        let (_, fd) = self.place(k);
        let step = |e: squeue::Entry| e.flags(SKIP).user_data(user_data(Op::Prepare, 0, k));
        let socket = opcode::Socket::new(family(to), libc::SOCK_STREAM, 0);
        let socket = step(socket.file_index(Some(self.slot(k))).build());
        // Needed to share the address among destinations, and for servers: a server with this option that starts later on the port would
        // otherwise find it in use while the connection is open, and for the minute of its TIME_WAIT.
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

    /// Creates the socket by ordinary system calls; the ordinary descriptor is closed again at once.
    fn prepare_without_chain(&mut self, k: Key, from: SocketAddr, to: SocketAddr) -> io::Result<()> {
        let (ring, fd) = self.place(k);
        // The close of the slot's last connection may still be queued: it must not close the socket that is installed here.
        self.rings[ring].submit();
        let socket = socket::bound(from, to, SocketFlags::empty())?;
        self.rings[ring].install(fd.0, socket.as_raw_fd())
    }

    /// Dials from the prepared sockets. A connection whose preparation failed was reported and is not dialled: an unbound socket would dial
    /// from a port chosen by the kernel.
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

    /// Checks whether `k`, which dialled beyond loopback, is connected, by a second connect: EISCONN means that it is.
    ///
    /// io_uring may report a failed connect as successful: an ICMP error that arrives while the connect still holds the socket goes to the
    /// socket's error queue, which io_uring takes for the end of the connect, and then it finds no error (`io_connect`, Linux 6.18). The
    /// kernel continues to dial (EALREADY), and ends it later with the error, unless a reply arrives.
    pub(super) fn confirm(&mut self, k: Key) {
        // The address itself is ignored: the first connect has set it.
        static AGAIN: libc::sockaddr = libc::sockaddr { sa_family: libc::AF_INET as u16, sa_data: [0; 14] };
        if self.is_current(k) {
            let (_, fd) = self.place(k);
            let entry = opcode::Connect::new(fd, &raw const AGAIN, size_of_val(&AGAIN) as u32).build();
            // SAFETY: the address is static.
            unsafe { self.push(k, &[entry.user_data(user_data(Op::Confirm, 0, k))]) };
        }
    }

    /// Checks `k` again after 10 ms. A poll would return at once, since the error queue is not empty.
    pub(super) fn pause(&mut self, k: Key) {
        static WHILE: types::Timespec = types::Timespec::new().nsec(10_000_000);
        if self.is_current(k) {
            let entry = opcode::Timeout::new(&raw const WHILE).build();
            // SAFETY: the time is static.
            unsafe { self.push(k, &[entry.user_data(user_data(Op::Pause, 0, k))]) };
        }
    }

    /// Keeps an address at a fixed place in memory until the next batch.
    fn keep(&mut self, at: SocketAddr) -> (*const libc::sockaddr, libc::socklen_t) {
        assert!(self.addresses.len() < self.addresses.capacity(), "the addresses of a batch must not move");
        let (address, len) = Address::new(at);
        self.addresses.push(address);
        (self.addresses[self.addresses.len() - 1].as_ptr(), len)
    }
}
