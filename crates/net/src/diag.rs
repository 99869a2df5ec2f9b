//! Queries the kernel about its TCP sockets over netlink (sock_diag(7)), and reads the replies.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
    sockopt::{Timeout, set_socket_timeout},
};

pub(crate) const AF_INET: u8 = libc::AF_INET as u8;
pub(crate) const AF_INET6: u8 = libc::AF_INET6 as u8;
/// TCP states (include/net/tcp_states.h).
pub(crate) const ESTABLISHED: u8 = 1;
pub(crate) const SYN_SENT: u8 = 2;
pub(crate) const LISTEN: u8 = 10;
/// Size of `struct nlmsghdr`.
const HEADER: usize = 16;
/// Size of `struct inet_diag_req` (linux/inet_diag.h).
const REQUEST: usize = 60;
/// Size of `struct inet_diag_msg`.
pub(crate) const MESSAGE: usize = 72;
/// Receive buffer, in bytes: the kernel sends whole messages, at most 32 KiB at once.
const BUFFER: usize = 32 << 10;
/// Timeout of a reply, which is normally immediate.
const PATIENCE: Duration = Duration::from_secs(5);

/// Which sockets to report, and with which attributes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Query {
    /// A bit mask of TCP states.
    pub(crate) states: u32,
    /// Only sockets with this local port; 0 for any.
    pub(crate) near: u16,
    /// Only sockets with this remote port; 0 for any.
    pub(crate) far: u16,
    /// Whether to append `struct tcp_info` to each message (`INET_DIAG_INFO`).
    pub(crate) info: bool,
    /// Whether to append memory use and drops to each message (`INET_DIAG_SKMEMINFO`).
    pub(crate) memory: bool,
}

/// Queries sockets of both families and passes the kernel's message for each socket to `take`, until it returns false.
pub(crate) fn for_each_socket(query: Query, mut take: impl FnMut(&[u8]) -> bool) -> io::Result<()> {
    let socket =
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
    let mut buffer = vec![0; BUFFER];
    send(&socket, &request(query), SendFlags::empty())?;
    loop {
        let (received, _) = recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        if read(&buffer[..received], &mut take)? != Read::More {
            return Ok(());
        }
    }
}

/// A request for the TCP sockets of both families. The newer `SOCK_DIAG_BY_FAMILY` needs one request per family, and for each the kernel
/// walks its whole table of connections, which takes milliseconds even if the table is empty.
fn request(query: Query) -> [u8; HEADER + REQUEST] {
    const TCPDIAG_GETSOCK: u16 = 18;
    const REQUEST_AND_DUMP: u16 = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    /// Extensions are bits, counted from 1.
    const INFO_BIT: u8 = 1 << (INFO - 1);
    const MEMORY_BIT: u8 = 1 << (MEMORY - 1);
    let mut bytes = [0; HEADER + REQUEST];
    bytes[0..4].copy_from_slice(&((HEADER + REQUEST) as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&TCPDIAG_GETSOCK.to_ne_bytes());
    bytes[6..8].copy_from_slice(&REQUEST_AND_DUMP.to_ne_bytes());
    let (info, memory) = (u8::from(query.info) * INFO_BIT, u8::from(query.memory) * MEMORY_BIT);
    bytes[HEADER + 3] = info | memory;
    bytes[HEADER + 4..HEADER + 6].copy_from_slice(&query.near.to_be_bytes());
    bytes[HEADER + 6..HEADER + 8].copy_from_slice(&query.far.to_be_bytes());
    bytes[HEADER + 52..HEADER + 56].copy_from_slice(&query.states.to_ne_bytes());
    bytes
}

/// The state of a reply after a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// The reply is complete.
    All,
    /// The callback wants no more.
    Enough,
    /// More datagrams follow.
    More,
}

/// Passes the messages of one datagram to `take`.
pub(crate) fn read(mut datagram: &[u8], take: &mut impl FnMut(&[u8]) -> bool) -> io::Result<Read> {
    const ERROR: u16 = libc::NLMSG_ERROR as u16;
    const DONE: u16 = libc::NLMSG_DONE as u16;
    while datagram.len() >= HEADER {
        let length = u32_at(datagram, 0) as usize;
        let kind = u16::from_ne_bytes([datagram[4], datagram[5]]);
        if !(HEADER..=datagram.len()).contains(&length) {
            return Err(io::Error::other("the kernel's answer is cut off"));
        }
        let body = &datagram[HEADER..length];
        match kind {
            DONE => return Ok(Read::All),
            ERROR if body.len() >= 4 => {
                return Err(io::Error::from_raw_os_error((u32_at(body, 0) as i32).wrapping_neg()));
            }
            _ if !take(body) => return Ok(Read::Enough),
            _ => {}
        }
        // Messages are aligned to four bytes.
        datagram = &datagram[length.next_multiple_of(4).min(datagram.len())..];
    }
    Ok(Read::More)
}

/// `INET_DIAG_INFO` (linux/inet_diag.h).
const INFO: u16 = 2;
/// `INET_DIAG_SKMEMINFO`: nine numbers (linux/sock_diag.h).
const MEMORY: u16 = 7;
/// Index of the drops in `INET_DIAG_SKMEMINFO` (`SK_MEMINFO_DROPS`).
const DROPS: usize = 8;
/// `INET_DIAG_SKV6ONLY`, one byte: the kernel adds it for each IPv6 listener.
const ONLY_IPV6: u16 = 11;

/// The `struct tcp_info` of a message, if present.
pub(crate) fn info(body: &[u8]) -> Option<&[u8]> {
    attribute(body, INFO)
}

/// Packets that the socket has dropped since it exists: for a listener, SYNs and final ACKs of handshakes.
pub(crate) fn drops(body: &[u8]) -> Option<u32> {
    attribute(body, MEMORY)
        .filter(|value| value.len() >= 4 * (DROPS + 1))
        .map(|value| u32_at(value, 4 * DROPS))
}

/// Whether an IPv6 listener accepts no IPv4 (`IPV6_V6ONLY`).
pub(crate) fn is_only_ipv6(body: &[u8]) -> bool {
    attribute(body, ONLY_IPV6).is_some_and(|value| value.first() == Some(&1))
}

/// The value of the attribute of this type, if present.
fn attribute(body: &[u8], wanted: u16) -> Option<&[u8]> {
    let mut attributes = body.get(MESSAGE..)?;
    while attributes.len() >= 4 {
        let length = usize::from(u16::from_ne_bytes([attributes[0], attributes[1]]));
        let kind = u16::from_ne_bytes([attributes[2], attributes[3]]);
        let value = attributes.get(4..length)?;
        if kind == wanted {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
    None
}

/// The local and the remote address of a socket (`struct inet_diag_sockid`).
pub(crate) fn ends(body: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    let body = body.get(..MESSAGE)?;
    let port = |at: usize| u16::from_be_bytes([body[at], body[at + 1]]);
    let near = SocketAddr::new(address(body[0], &body[8..24])?, port(4));
    Some((near, SocketAddr::new(address(body[0], &body[24..40])?, port(6))))
}

/// An address of this family, from the first 4 bytes for IPv4, from exactly 16 for IPv6.
pub(crate) fn address(family: u8, bytes: &[u8]) -> Option<IpAddr> {
    match family {
        AF_INET => Some(Ipv4Addr::from(<[u8; 4]>::try_from(bytes.get(..4)?).ok()?).into()),
        // A server that binds an IPv4 address through an IPv6 socket, as a JVM does, listens at the IPv4 address.
        AF_INET6 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).to_canonical()),
        _ => None,
    }
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_error_of_the_kernel_is_reported() {
        let mut error = vec![0; 20];
        error[0] = 20;
        error[4] = 2;
        error[16..20].copy_from_slice(&(-libc::ENOENT).to_ne_bytes());
        let reported = read(&error, &mut |_: &[u8]| true).unwrap_err();
        assert_eq!(reported.kind(), io::ErrorKind::NotFound);
    }

    proptest! {
        /// No input causes a panic or an endless loop.
        #[test]
        fn any_reply_of_the_kernel_is_survived(bytes in proptest::collection::vec(0u8..24, 0..400)) {
            let _ = read(&bytes, &mut |body: &[u8]| info(body).is_none());
            let _ = (info(&bytes), drops(&bytes), is_only_ipv6(&bytes));
        }
    }
}
