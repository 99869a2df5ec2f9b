//! Who listens here, asked of the kernel (sock_diag(7)).
//!
//! `/proc/net/tcp` knows it too, but the kernel walks all sockets of the machine to write it, which takes
//! seconds when there are millions, and it does not tell the backlog.

use std::{io, net::IpAddr, net::Ipv4Addr, net::Ipv6Addr, net::SocketAddr, time::Duration};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
    sockopt::{Timeout, set_socket_timeout},
};

const AF_INET: u8 = libc::AF_INET as u8;
const AF_INET6: u8 = libc::AF_INET6 as u8;
/// States of a socket (include/net/tcp_states.h).
const ESTABLISHED: u8 = 1;
const LISTEN: u8 = 10;
/// `struct nlmsghdr`.
const HEADER: usize = 16;
/// `struct inet_diag_req_v2` (linux/inet_diag.h).
const REQUEST: usize = 56;
/// `struct inet_diag_msg`.
const MESSAGE: usize = 72;
/// The kernel fills the buffer with whole messages, at most 32 KiB at once.
const BUFFER: usize = 32 << 10;
/// An answer is there at once; nobody waits longer for one that is not.
const PATIENCE: Duration = Duration::from_secs(5);

/// A TCP socket of this network namespace that listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listening {
    /// Where.
    pub address: SocketAddr,
    /// The number by which `/proc/PID/fd` names it (`socket:[inode]`).
    pub inode: u64,
    /// Connections that wait to be accepted now.
    pub waiting: u32,
    /// How many may wait: what its program asked of listen(2), at most `net.core.somaxconn`.
    pub backlog: u32,
}

/// All of them, IPv4 and IPv6, in no order.
///
/// # Errors
/// The kernel has no `tcp_diag`, or a sandbox forbids netlink.
pub fn listening() -> io::Result<Vec<Listening>> {
    let mut found = Vec::new();
    ask(LISTEN, 0, |body| found.extend(listener(body)))?;
    Ok(found)
}

/// How many connections of this network namespace are established and have this port on their near side: the server's
/// ends, where it is here. The kernel goes through all its sockets for that and tells of each that counts: some ten
/// nanoseconds for each, and a microsecond for each told.
///
/// # Errors
/// As [`listening`].
pub fn established_at(port: u16) -> io::Result<u64> {
    let mut count = 0;
    ask(ESTABLISHED, port, |body| count += u64::from(is_established_at(body, port)))?;
    Ok(count)
}

/// The same connections, each with its near and its far end; of an IPv4 connection of an IPv6 socket, as IPv4.
///
/// # Errors
/// As [`listening`].
pub fn established(port: u16, mut take: impl FnMut(SocketAddr, SocketAddr)) -> io::Result<()> {
    ask(ESTABLISHED, port, |body| {
        if is_established_at(body, port)
            && let Some((near, far)) = ends(body)
        {
            take(near, far);
        }
    })
}

/// Asks for the sockets in a state, of both families, and hands over what the kernel tells of each.
fn ask(state: u8, port: u16, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let socket =
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
    let mut buffer = vec![0; BUFFER];
    for family in [AF_INET, AF_INET6] {
        send(&socket, &request(family, state, port), SendFlags::empty())?;
        loop {
            let (received, _) = recv(&socket, &mut buffer[..], RecvFlags::empty())?;
            if read(&buffer[..received], &mut take)? {
                break;
            }
        }
    }
    Ok(())
}

fn is_established_at(body: &[u8], port: u16) -> bool {
    body.len() >= MESSAGE && body[1] == ESTABLISHED && body[4..6] == port.to_be_bytes()
}

/// Asks for each socket of `family` in a state, with this port on its near side; 0: with any.
fn request(family: u8, state: u8, port: u16) -> [u8; HEADER + REQUEST] {
    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    const REQUEST_AND_DUMP: u16 = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    let mut bytes = [0; HEADER + REQUEST];
    bytes[0..4].copy_from_slice(&((HEADER + REQUEST) as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&REQUEST_AND_DUMP.to_ne_bytes());
    bytes[HEADER] = family;
    bytes[HEADER + 1] = libc::IPPROTO_TCP as u8;
    bytes[HEADER + 4..HEADER + 8].copy_from_slice(&(1u32 << state).to_ne_bytes());
    bytes[HEADER + 8..HEADER + 10].copy_from_slice(&port.to_be_bytes());
    bytes
}

/// Hands over the messages of one datagram; true where the last of the answer is among them.
fn read(mut datagram: &[u8], take: &mut impl FnMut(&[u8])) -> io::Result<bool> {
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
            DONE => return Ok(true),
            ERROR if body.len() >= 4 => {
                return Err(io::Error::from_raw_os_error((u32_at(body, 0) as i32).wrapping_neg()));
            }
            _ => take(body),
        }
        // Messages begin at multiples of four.
        datagram = &datagram[length.next_multiple_of(4).min(datagram.len())..];
    }
    Ok(false)
}

/// Near and far end of a socket (`struct inet_diag_sockid`).
fn ends(body: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    let address = |bytes: &[u8]| -> Option<IpAddr> {
        match body[0] {
            AF_INET => Some(Ipv4Addr::from(<[u8; 4]>::try_from(&bytes[..4]).ok()?).into()),
            // A server that binds an IPv4 address through an IPv6 socket, as a JVM does, listens at that address.
            AF_INET6 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).to_canonical()),
            _ => None,
        }
    };
    let port = |at: usize| u16::from_be_bytes([body[at], body[at + 1]]);
    Some((
        SocketAddr::new(address(&body[8..24])?, port(4)),
        SocketAddr::new(address(&body[24..40])?, port(6)),
    ))
}

fn listener(body: &[u8]) -> Option<Listening> {
    if body.len() < MESSAGE || body[1] != LISTEN {
        return None;
    }
    Some(Listening {
        address: ends(body)?.0,
        waiting: u32_at(body, 56),
        backlog: u32_at(body, 60),
        inode: u32_at(body, 68).into(),
    })
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::{TcpListener, TcpStream};

    fn find(address: SocketAddr) -> Option<Listening> {
        listening().unwrap().into_iter().find(|l| l.address == address)
    }

    #[test]
    fn listeners_of_both_families_are_seen_with_their_queues() {
        for place in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(place) else {
                eprintln!("skipped: no {place} here");
                continue;
            };
            let address = listener.local_addr().unwrap();
            let before = find(address).unwrap();
            assert_eq!(before.waiting, 0, "{before:?}");
            rustix::net::listen(&listener, 7).unwrap();
            let dialled: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(address).unwrap()).collect();
            let after = find(address).unwrap();
            assert_eq!(after, Listening { waiting: 3, backlog: 7, ..before });
            drop((listener, dialled));
            assert_eq!(find(address), None);
        }
    }

    #[test]
    fn an_ipv4_address_bound_through_an_ipv6_socket_is_one() {
        let Ok(listener) = TcpListener::bind("[::ffff:127.0.0.1]:0") else {
            eprintln!("skipped: no IPv6 here");
            return;
        };
        let port = listener.local_addr().unwrap().port();
        assert!(find(SocketAddr::from(([127, 0, 0, 1], port))).is_some(), "as every JVM binds it");
    }

    #[test]
    fn the_servers_ends_of_connections_are_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        rustix::net::listen(&listener, 400).unwrap();
        assert_eq!(established_at(address.port()).unwrap(), 0, "a listener is no connection");
        let mut dialled: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(address).unwrap()).collect();
        assert_eq!(established_at(address.port()).unwrap(), 300, "neither the clients' ends nor others");
        let mut fars = std::collections::HashSet::new();
        established(address.port(), |near, far| {
            assert_eq!(near, address);
            fars.insert(far);
        })
        .unwrap();
        let ours = dialled.iter().map(|stream| stream.local_addr().unwrap()).collect();
        assert_eq!(fars, ours);
        dialled.truncate(200);
        assert_eq!(established_at(address.port()).unwrap(), 200, "those that the client has left are none");
    }

    #[test]
    fn an_error_of_the_kernel_is_told() {
        let mut error = vec![0; 20];
        error[0] = 20;
        error[4] = 2;
        error[16..20].copy_from_slice(&(-libc::ENOENT).to_ne_bytes());
        let told = read(&error, &mut |_: &[u8]| {}).unwrap_err();
        assert_eq!(told.kind(), io::ErrorKind::NotFound);
    }

    proptest! {
        /// Whatever comes: no panic, and an end.
        #[test]
        fn any_answer_is_survived(bytes in proptest::collection::vec(0u8..24, 0..400)) {
            let mut take = |body: &[u8]| {
                let _ = (listener(body), is_established_at(body, 5) && ends(body).is_some());
            };
            let _ = read(&bytes, &mut take);
        }
    }
}
