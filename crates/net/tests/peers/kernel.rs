//! The backends of `Io` that use the kernel, as one type: the backend is chosen at run time.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
};

use net::{
    Close, Done, Io, Key, Scratch,
    io::{epoll::Epoll, tun::Tun, uring::Uring},
};
use units::Nanos;

pub(crate) enum Kernel {
    Uring(Box<Uring>),
    Epoll(Box<Epoll>),
    /// With the last local port that was dialled from.
    Tun(Box<Tun>, u16),
}

/// The network of the device.
pub(crate) const NETWORK: (IpAddr, u8) = (IpAddr::V4(Ipv4Addr::new(198, 18, 0, 0)), 24);

impl Kernel {
    /// Number of times that the kernel was entered for a ring.
    pub(crate) fn entered(&self) -> u64 {
        match self {
            Kernel::Uring(io) => io.entered(),
            Kernel::Epoll(_) | Kernel::Tun(..) => 0,
        }
    }
}

/// Makes the same call on any of them.
macro_rules! on {
    ($kernel:expr, $io:ident => $call:expr) => {
        match $kernel {
            Kernel::Uring($io) => $call,
            Kernel::Epoll($io) => $call,
            Kernel::Tun($io, _) => $call,
        }
    };
}

impl Io for Kernel {
    fn dial(&mut self, k: Key, mut from: SocketAddr, to: SocketAddr) {
        if let Kernel::Tun(io, port) = self {
            // For sockets the kernel would choose the port.
            if from.port() == 0 {
                *port = port.checked_add(1).unwrap_or(1024);
                from = SocketAddr::from(([198, 18, 0, 9], *port));
            }
            io.add_destination(to);
        }
        on!(self, io => io.dial(k, from, to));
    }
    fn listen(&mut self, at: SocketAddr) -> io::Result<SocketAddr> {
        on!(self, io => io.listen(at))
    }
    fn accept(&mut self, k: Key) {
        on!(self, io => io.accept(k));
    }
    fn unlisten(&mut self) {
        on!(self, io => io.unlisten());
    }
    fn park(&mut self, k: Key) {
        on!(self, io => io.park(k));
    }
    fn out(&mut self, kept: usize, room: usize) -> &mut [u8] {
        on!(self, io => io.out(kept, room))
    }
    fn send_out(&mut self, k: Key, len: usize) {
        on!(self, io => io.send_out(k, len));
    }
    fn send_static(&mut self, k: Key, bytes: &'static [u8]) {
        on!(self, io => io.send_static(k, bytes));
    }
    fn is_write_blocked(&self, k: Key) -> bool {
        on!(self, io => io.is_write_blocked(k))
    }
    fn blocked(&self) -> usize {
        on!(self, io => io.blocked())
    }
    fn hold(&mut self, k: Key) {
        on!(self, io => io.hold(k));
    }
    fn resume(&mut self, k: Key) {
        on!(self, io => io.resume(k));
    }
    fn close(&mut self, k: Key, how: Close) {
        on!(self, io => io.close(k, how));
    }
    fn coalesce(&mut self, by: Nanos) {
        on!(self, io => io.coalesce(by));
    }
    fn wait(&mut self, until: Nanos, scratch: &mut Scratch) -> Nanos {
        on!(self, io => io.wait(until, scratch))
    }
    fn next(&mut self) -> Option<Done> {
        on!(self, io => io.next())
    }
    fn now(&self) -> Nanos {
        on!(self, io => io.now())
    }
}
