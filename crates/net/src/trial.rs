//! A single dial that finds out how the destination responds, in more detail than an errno: for an ICMP message with type, code and sender.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    os::fd::{AsRawFd, OwnedFd},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    net::{SocketFlags, connect, sockopt},
};
use units::{Clock, Nanos};

use crate::{
    icmp::{self, Icmp},
    io::socket::{bound, set_option},
    machine::timespec,
};

/// The result of a single dial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DialOutcome {
    /// The connection was established; it was closed at once.
    Accepted,
    /// The destination sent a reset.
    Reset,
    /// An ICMP message rejected the dial.
    Icmp(Icmp),
    /// This machine refused the dial; the errno.
    Failed(i32),
    /// No response in the time allowed.
    Silence,
}

/// Dials `at` once, from `from` if given, and closes the connection at once. An ICMP message during the dial ends it, although the kernel
/// would continue and send the SYN again a second later.
///
/// ICMP messages are available since Linux 5.18; on older kernels a rejected dial is [`DialOutcome::Failed`].
pub fn try_dial(at: SocketAddr, from: Option<IpAddr>, patience: Duration) -> DialOutcome {
    dial(at, from, patience).unwrap_or_else(|e| DialOutcome::Failed(e.raw_os_error().unwrap_or(0)))
}

fn dial(at: SocketAddr, from: Option<IpAddr>, patience: Duration) -> io::Result<DialOutcome> {
    let any = if at.is_ipv4() { IpAddr::from([0; 4]) } else { IpAddr::from([0u16; 8]) };
    let from = SocketAddr::new(from.unwrap_or(any), 0);
    let socket = bound(from, at, SocketFlags::NONBLOCK)?;
    let reports = receive_errors(&socket, at);
    let begun = connect(&socket, &at);
    let clock = Clock::start();
    let until = clock.now() + Nanos(patience.as_nanos() as u64);
    let rejected = || reports.then(|| queued(&socket)).flatten().map(DialOutcome::Icmp);
    match (rejected(), begun) {
        (Some(icmp), _) => return Ok(icmp),
        (None, Ok(())) => return Ok(DialOutcome::Accepted),
        (None, Err(Errno::INPROGRESS)) => {}
        (None, Err(e)) => return Ok(failed(e)),
    }
    loop {
        let events = ready(&socket, until.since(clock.now()))?;
        if events.is_empty() {
            return Ok(DialOutcome::Silence);
        }
        if let Some(icmp) = rejected() {
            return Ok(icmp);
        }
        if let Err(e) = sockopt::socket_error(&socket)? {
            return Ok(failed(e));
        }
        if events.contains(PollFlags::OUT) && !events.intersects(PollFlags::ERR | PollFlags::HUP) {
            return Ok(DialOutcome::Accepted);
        }
    }
}

fn failed(errno: Errno) -> DialOutcome {
    if errno == Errno::CONNREFUSED { DialOutcome::Reset } else { DialOutcome::Failed(errno.raw_os_error()) }
}

/// Waits up to `left` for events on the socket; empty if there were none.
fn ready(socket: &OwnedFd, left: Nanos) -> io::Result<PollFlags> {
    let mut wanted = [PollFd::new(socket, PollFlags::OUT)];
    match poll(&mut wanted, Some(&timespec(left))) {
        Ok(_) | Err(Errno::INTR) => Ok(wanted[0].revents()),
        Err(e) => Err(e.into()),
    }
}

/// Makes the kernel store ICMP messages for this socket (`IP_RECVERR`); returns whether it does.
fn receive_errors(socket: &OwnedFd, at: SocketAddr) -> bool {
    let (level, name) = match at {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_RECVERR),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
    };
    // SAFETY: the value of this option is an int.
    unsafe { set_option(socket, level, name, &libc::c_int::from(true)).is_ok() }
}

/// The ICMP message that the kernel stored for this socket, if any.
fn queued(socket: &OwnedFd) -> Option<Icmp> {
    // The rejected segment itself is not needed. Control messages must be aligned, so the buffer is an array of u64.
    let (mut data, mut control) = ([0u8; 64], [0u64; 32]);
    let mut part = libc::iovec { iov_base: data.as_mut_ptr().cast(), iov_len: data.len() };
    // SAFETY: all zeros is a valid msghdr: no name, no parts, no control messages.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
    (message.msg_control, message.msg_controllen) = (control.as_mut_ptr().cast(), size_of_val(&control) as _);
    // SAFETY: the header points to one part and to a buffer for control messages, each with its length, and all outlive the call. An
    // empty queue returns EAGAIN.
    let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_ERRQUEUE) };
    if received < 0 {
        return None;
    }
    let bytes: Vec<u8> = control.iter().flat_map(|word| word.to_ne_bytes()).collect();
    icmp::first(bytes.get(..message.msg_controllen as usize)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    const PATIENCE: Duration = Duration::from_secs(5);

    #[test]
    fn a_listener_accepts_and_a_closed_port_resets() {
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(any).unwrap();
            let at = listener.local_addr().unwrap();
            assert_eq!(try_dial(at, None, PATIENCE), DialOutcome::Accepted);
            assert_eq!(try_dial(at, Some(at.ip()), PATIENCE), DialOutcome::Accepted);
            drop(listener);
            assert_eq!(try_dial(at, None, PATIENCE), DialOutcome::Reset);
        }
    }

    #[test]
    fn refusals_by_this_machine_have_their_errno() {
        // A documentation address (RFC 5737), which no machine has.
        let from = Some([192, 0, 2, 1].into());
        let at = SocketAddr::from(([127, 0, 0, 1], 9));
        assert_eq!(try_dial(at, from, PATIENCE), DialOutcome::Failed(libc::EADDRNOTAVAIL));
    }
}
