//! Sockets made by ordinary system calls, for the fills of [`Io`](super::Io) that have a kernel under them.

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
    // Accepted sockets inherit it. Without it, the second of two short responses to pipelined requests would wait for the
    // acknowledgement of the first, which the peer may delay by 40 ms (RFC 9293 section 3.7.4).
    sockopt::set_tcp_nodelay(&socket, true)?;
    bind(&socket, &at)?;
    listen(&socket, BACKLOG)?;
    let bound =
        SocketAddr::try_from(getsockname(&socket)?).map_err(|_| io::Error::other("not an inet socket"))?;
    Ok((socket, bound))
}

/// Whether another process listens at an address already. Listeners of ours share their port, and the kernel lets those of a user's
/// other processes in: connections would be divided among strangers.
///
/// # Errors
/// The error of `bind` or `listen`: EADDRINUSE, if one does.
pub fn check_free(at: SocketAddr) -> io::Result<()> {
    let socket = stream(at, SocketFlags::empty())?;
    // Connections of a server that was there before do not matter.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &at)?;
    Ok(listen(&socket, 1)?)
}

/// Neither end is to send larger segments: the SYN says so to the other (`TCP_MAXSEG`, RFC 9293, section 3.7.1).
pub(super) fn limit_segments(socket: &OwnedFd, bytes: u16) -> io::Result<()> {
    // SAFETY: its value is an int.
    unsafe { set_option(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, &libc::c_int::from(bytes)) }
}

/// Sets an option that `rustix` does not have.
///
/// # Errors
/// That of `setsockopt`.
///
/// # Safety
/// The option takes a `T`, and what that points to, if anything, is what the option takes there.
pub(crate) unsafe fn set_option<T>(
    socket: &OwnedFd,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the value has that length and outlives the call; the rest is the caller's promise.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), length)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A socket to dial `to` from `from`; a zero address and port leave that choice to the kernel.
pub(crate) fn bound(from: SocketAddr, to: SocketAddr, flags: SocketFlags) -> io::Result<OwnedFd> {
    let socket = stream(to, flags)?;
    // Not only to share the address among destinations: otherwise a server that starts later on the port, with the same
    // option, would find it in use while our connection is open, and during its TIME_WAIT.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    // With it off, the second of two small writes would wait for the acknowledgement of the first, which the peer may
    // put off by 40 ms (RFC 9293 section 3.7.4): that time would pass for the target's.
    sockopt::set_tcp_nodelay(&socket, true)?;
    if from.port() != 0 || !from.ip().is_unspecified() {
        bind(&socket, &from)?;
    }
    Ok(socket)
}
