//! Creates sockets by ordinary system calls, for the [`Io`](super::Io) backends that use kernel sockets.

use std::{
    io,
    net::SocketAddr,
    os::fd::{AsRawFd, OwnedFd},
};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, listen, socket_with, sockopt};

/// The requested backlog; the kernel lowers it to `net.core.somaxconn`.
const BACKLOG: i32 = 65_535;

fn stream(at: SocketAddr, flags: SocketFlags) -> io::Result<OwnedFd> {
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    Ok(socket_with(family, SocketType::STREAM, flags | SocketFlags::CLOEXEC, None)?)
}

/// A listening socket that shares its port with the listeners of the other shards.
pub(super) fn listener(at: SocketAddr, flags: SocketFlags) -> io::Result<(OwnedFd, SocketAddr)> {
    let socket = stream(at, flags)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    // Accepted sockets inherit TCP_NODELAY. Without it, the second of two short responses to pipelined requests would wait for the
    // acknowledgement of the first, which the peer may delay by 40 ms (RFC 9293, section 3.7.4).
    sockopt::set_tcp_nodelay(&socket, true)?;
    bind(&socket, &at)?;
    listen(&socket, BACKLOG)?;
    let bound =
        SocketAddr::try_from(getsockname(&socket)?).map_err(|_| io::Error::other("not an inet socket"))?;
    Ok((socket, bound))
}

/// Checks that no other process listens at an address. throng's listeners share their port (SO_REUSEPORT), and the kernel allows that for
/// all processes of a user: connections would be divided among unrelated processes.
///
/// # Errors
/// The error of `bind` or `listen`: EADDRINUSE if another process listens there.
pub fn check_free(at: SocketAddr) -> io::Result<()> {
    let socket = stream(at, SocketFlags::empty())?;
    // Connections that remain from an earlier server do not matter.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &at)?;
    Ok(listen(&socket, 1)?)
}

/// Limits the segments of both ends: the SYN announces the limit to the peer (`TCP_MAXSEG`, RFC 9293, section 3.7.1).
pub(super) fn limit_segments(socket: &OwnedFd, bytes: u16) -> io::Result<()> {
    // SAFETY: the value of this option is an int.
    unsafe { set_option(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, &libc::c_int::from(bytes)) }
}

/// Sets a socket option that `rustix` does not offer.
///
/// # Errors
/// The error of `setsockopt`.
///
/// # Safety
/// The option takes a `T`, and any pointer in it must be valid for this option.
pub(crate) unsafe fn set_option<T>(
    socket: &OwnedFd,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the value has that length and outlives the call; the caller guarantees the rest.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), length)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Creates a socket to dial `to` from `from`; a zero address and port leave the choice to the kernel.
pub(crate) fn bound(from: SocketAddr, to: SocketAddr, flags: SocketFlags) -> io::Result<OwnedFd> {
    let socket = stream(to, flags)?;
    // Needed to share a local address among destinations, and for servers: otherwise a server with this option that starts later on
    // the port would find it in use while the connection is open, and during its TIME_WAIT.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    // Without TCP_NODELAY, the second of two small writes would wait for the acknowledgement of the first, which the peer may delay
    // by 40 ms (RFC 9293, section 3.7.4). That time would be attributed to the target.
    sockopt::set_tcp_nodelay(&socket, true)?;
    if from.port() != 0 || !from.ip().is_unspecified() {
        bind(&socket, &from)?;
    }
    Ok(socket)
}
