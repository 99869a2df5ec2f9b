//! What is done with ordinary system calls: listening, and dialling where the kernel lacks the operations for
//! it (`bind` came to io_uring with Linux 6.11, `setsockopt` with 6.7).

use std::{
    io,
    net::SocketAddr,
    os::fd::{AsRawFd, OwnedFd},
};

use io_uring::opcode;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, listen, socket_with, sockopt};

use super::{Address, Op, Uring, user_data};
use crate::{
    io::{Gone, What},
    slab::Key,
};

/// The accept queue asked for; the kernel lowers it to `net.core.somaxconn`.
const BACKLOG: i32 = 65_535;

fn stream(at: SocketAddr) -> io::Result<OwnedFd> {
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    Ok(socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}

/// A listening socket that shares its port with the listeners of the other shards.
pub(super) fn listener(at: SocketAddr) -> io::Result<(OwnedFd, SocketAddr)> {
    let socket = stream(at)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    bind(&socket, &at)?;
    listen(&socket, BACKLOG)?;
    let bound = SocketAddr::try_from(getsockname(&socket)?).map_err(|_| io::Error::other("not an inet socket"))?;
    Ok((socket, bound))
}

fn bound_socket(from: SocketAddr, to: SocketAddr, share: bool) -> io::Result<OwnedFd> {
    let socket = stream(to)?;
    if share {
        sockopt::set_socket_reuseaddr(&socket, true)?;
    }
    if from.port() != 0 || !from.ip().is_unspecified() {
        bind(&socket, &from)?;
    }
    Ok(socket)
}

impl Uring {
    /// Socket and bind as system calls, the socket put into its direct slot, and only the connect left to the
    /// ring: the ordinary descriptor is closed again at once.
    pub(super) fn dial_by_hand(&mut self, k: Key, from: SocketAddr, to: SocketAddr, share: bool) {
        let (ring, fd) = self.place(k);
        let installed = bound_socket(from, to, share)
            .and_then(|socket| self.rings[ring].install(fd.0, socket.as_raw_fd()));
        if let Err(e) = installed {
            return self.tell(k, What::Gone(Gone::from_errno(e.raw_os_error().unwrap_or(libc::EIO))));
        }
        let (to_address, to_len) = Address::new(to);
        let at = self.addresses.len();
        self.addresses.push(to_address);
        let entry = opcode::Connect::new(fd, self.addresses[at].as_ptr(), to_len)
            .build()
            .user_data(user_data(Op::Connect, 0, k));
        // SAFETY: the address stays in place until `settle`, which submits first.
        unsafe { self.push(k, &[entry]) };
    }
}
