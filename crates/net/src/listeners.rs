//! Queries the kernel (sock_diag) about this machine's TCP listeners, and about established connections, accepted or still in an
//! accept queue.
//!
//! `/proc/net/tcp` lists the same sockets without the backlog, and to write it the kernel walks all sockets of the machine, which takes
//! seconds with millions of them.

use std::{
    io,
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use crate::diag::{ESTABLISHED, LISTEN, MESSAGE, Query, drops, ends, for_each_socket, is_only_ipv6, u32_at};

/// Timeout of the dial in [`refuses`]: without a reply, the dial does not count as refused.
const ANSWERS: Duration = Duration::from_secs(3);

/// A listening TCP socket of this network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listening {
    /// The local address.
    pub address: SocketAddr,
    /// Whether an IPv6 socket accepts no IPv4 (`IPV6_V6ONLY`); matters for a listener at the unspecified address.
    pub is_only_ipv6: bool,
    /// The inode number, which `/proc/PID/fd` shows as `socket:[inode]`.
    pub inode: u64,
    /// Current length of the accept queue.
    pub waiting: u32,
    /// The backlog: the argument of listen(2), limited to `net.core.somaxconn`.
    pub backlog: u32,
    /// SYNs and final ACKs of handshakes that the socket has dropped since it began to listen, usually because its queue was full
    /// (`sk_drops`).
    pub dropped: u32,
}

/// The server's end of an established connection. An IPv4 connection of an IPv6 socket has IPv4 addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The local address.
    pub near: SocketAddr,
    /// The client's address.
    pub far: SocketAddr,
    /// Whether the server's program has accepted the connection. If not, it is in the listener's accept queue.
    pub is_accepted: bool,
}

/// All listeners of this network namespace, IPv4 and IPv6, in no particular order.
///
/// # Errors
/// The kernel has no `tcp_diag`, or a sandbox forbids netlink.
pub fn listening() -> io::Result<Vec<Listening>> {
    let mut found = Vec::new();
    for_each_socket(Query { states: 1 << LISTEN, memory: true, ..Query::default() }, |body| {
        found.extend(listener(body));
        true
    })?;
    Ok(found)
}

/// Whether a dial to this address is refused, because nothing listens there.
pub fn refuses(to: SocketAddr) -> bool {
    let dialled = TcpStream::connect_timeout(&to, ANSWERS);
    dialled.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// Number of established connections of this network namespace with this local port: the server's ends, if the server runs here. The
/// kernel walks all sockets, which takes about ten nanoseconds per socket, and a microsecond per match.
///
/// # Errors
/// As [`listening`].
pub fn established_at(port: u16) -> io::Result<u64> {
    count_established(port, |_| true)
}

/// Passes the connections that [`established_at`] counts to `take`, until it returns false.
///
/// # Errors
/// As [`listening`].
pub fn established(port: u16, mut take: impl FnMut(End) -> bool) -> io::Result<()> {
    for_each_established(port, |body| {
        ends(body).is_none_or(|(near, far)| take(End { near, far, is_accepted: is_accepted(body) }))
    })
}

/// Passes the near and far address of each established connection of this network namespace to this remote port, on any host, to `take`:
/// the clients' ends, if the clients run here.
///
/// # Errors
/// As [`listening`].
pub fn dialled(port: u16, mut take: impl FnMut(SocketAddr, SocketAddr)) -> io::Result<()> {
    let query = Query { states: 1 << ESTABLISHED, far: port, ..Query::default() };
    for_each_socket(query, |body| {
        if is_established(body, port, 6)
            && let Some((near, far)) = ends(body)
        {
            take(near, far);
        }
        true
    })
}

/// Number of the server's ends that no program has accepted: they are in the listener's accept queue. Connections that their clients have
/// closed meanwhile are not counted.
///
/// # Errors
/// As [`listening`].
pub fn unaccepted_at(port: u16) -> io::Result<u64> {
    count_established(port, |body| !is_accepted(body))
}

/// Whether the connection was accepted. A socket gets an inode only then.
fn is_accepted(body: &[u8]) -> bool {
    u32_at(body, 68) != 0
}

fn count_established(port: u16, counts: impl Fn(&[u8]) -> bool) -> io::Result<u64> {
    let mut count = 0;
    for_each_established(port, |body| {
        count += u64::from(counts(body));
        true
    })?;
    Ok(count)
}

fn for_each_established(port: u16, mut take: impl FnMut(&[u8]) -> bool) -> io::Result<()> {
    let query = Query { states: 1 << ESTABLISHED, near: port, ..Query::default() };
    for_each_socket(query, |body| !is_established(body, port, 4) || take(body))
}

/// `at`: the offset of the port in the message, 4 for the near end and 6 for the far end (`struct inet_diag_sockid`).
fn is_established(body: &[u8], port: u16, at: usize) -> bool {
    body.len() >= MESSAGE && body[1] == ESTABLISHED && body[at..at + 2] == port.to_be_bytes()
}

fn listener(body: &[u8]) -> Option<Listening> {
    if body.len() < MESSAGE || body[1] != LISTEN {
        return None;
    }
    Some(Listening {
        address: ends(body)?.0,
        is_only_ipv6: is_only_ipv6(body),
        waiting: u32_at(body, 56),
        backlog: u32_at(body, 60),
        inode: u32_at(body, 68).into(),
        dropped: drops(body).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rustix::net::{AddressFamily, SocketType};
    use std::{
        io::Write,
        net::{Ipv6Addr, TcpListener, TcpStream},
    };

    fn find(address: SocketAddr) -> Option<Listening> {
        listening().unwrap().into_iter().find(|l| l.address == address)
    }

    #[test]
    fn listeners_of_both_families_are_seen_with_their_queues() {
        for place in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(place) else {
                let _ = writeln!(std::io::stderr(), "skipped: no {place} here");
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
            let _ = writeln!(std::io::stderr(), "skipped: no IPv6 here");
            return;
        };
        let port = listener.local_addr().unwrap().port();
        assert!(find(SocketAddr::from(([127, 0, 0, 1], port))).is_some(), "as every JVM binds it");
    }

    #[test]
    fn a_listener_for_ipv6_alone_is_one() {
        let listener_of = |only: bool| {
            let socket = rustix::net::socket(AddressFamily::INET6, SocketType::STREAM, None)
                .ok()
                .map(TcpListener::from)?;
            rustix::net::sockopt::set_ipv6_v6only(&socket, only).ok()?;
            rustix::net::bind(&socket, &SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0))).ok()?;
            rustix::net::listen(&socket, 1).ok()?;
            Some(socket)
        };
        for only in [true, false] {
            let Some(listener) = listener_of(only) else {
                let _ = writeln!(std::io::stderr(), "skipped: no IPv6 here");
                return;
            };
            let found = find(listener.local_addr().unwrap()).unwrap();
            assert_eq!(found.is_only_ipv6, only, "{found:?}");
        }
    }

    #[test]
    fn the_servers_ends_of_connections_are_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        rustix::net::listen(&listener, 400).unwrap();
        assert_eq!(established_at(address.port()).unwrap(), 0, "a listener is no connection");
        let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert_eq!((refuses(address), refuses(nobody)), (false, true));
        listener.accept().unwrap();
        let mut dialled: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(address).unwrap()).collect();
        assert_eq!(established_at(address.port()).unwrap(), 300, "neither the clients' ends nor others");
        let mut fars = std::collections::HashSet::new();
        let mut accepted = 0;
        established(address.port(), |end| {
            assert_eq!(end.near, address);
            accepted += usize::from(end.is_accepted);
            fars.insert(end.far)
        })
        .unwrap();
        assert_eq!(accepted, 0, "they are in the queue");
        let ours = dialled.iter().map(|stream| stream.local_addr().unwrap()).collect();
        assert_eq!(fars, ours);
        let mut nears = std::collections::HashSet::new();
        super::dialled(address.port(), |near, far| {
            assert_eq!(far, address);
            assert!(nears.insert(near), "twice: {near}");
        })
        .unwrap();
        assert_eq!(nears, ours, "the clients' ends");
        dialled.truncate(200);
        assert_eq!(established_at(address.port()).unwrap(), 200, "those that the client has left are none");
    }

    #[test]
    fn unaccepted_connections_are_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut dialled: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(address).unwrap()).collect();
        assert_eq!(unaccepted_at(address.port()).unwrap(), 20);
        let accepted: Vec<_> = (0..12).map(|_| listener.accept().unwrap()).collect();
        assert_eq!(unaccepted_at(address.port()).unwrap(), 8);
        assert_eq!(established_at(address.port()).unwrap(), 20);
        let mut by_state = [0, 0];
        established(address.port(), |end| {
            by_state[usize::from(end.is_accepted)] += 1;
            true
        })
        .unwrap();
        assert_eq!(by_state, [8, 12]);
        // Connections that their clients have closed are still in the queue, but no longer established.
        dialled.truncate(15);
        assert_eq!(unaccepted_at(address.port()).unwrap(), 3);
        drop(accepted);
    }

    #[test]
    fn what_a_full_queue_drops_is_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let _in_queue = TcpStream::connect(address).unwrap();
        assert_eq!(find(address).unwrap().dropped, 0);
        let dropped = TcpStream::connect_timeout(&address, Duration::from_millis(100));
        assert!(dropped.is_err(), "its queue of one is full");
        assert!(find(address).unwrap().dropped > 0);
    }

    proptest! {
        /// No input causes a panic.
        #[test]
        fn any_message_is_survived(bytes in proptest::collection::vec(0u8..24, 0..100)) {
            let is_ours = is_established(&bytes, 5, 4) || is_established(&bytes, 5, 6);
            let _ = (listener(&bytes), is_ours && ends(&bytes).is_some());
        }
    }
}
