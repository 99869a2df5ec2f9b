//! TCP state of a sample of connections (`struct tcp_info`): shows whether data was sent and acknowledged, to decide whether the network
//! path or the target's process is slow.

use std::{collections::HashSet, io, net::SocketAddr, time::Duration};

use crate::diag::{ESTABLISHED, Query, SYN_SENT, ends, for_each_socket, info, u32_at};

/// Offsets in `struct tcp_info` (linux/tcp.h).
const RETRANSMITS: usize = 2;
const PROBES: usize = 3;
const UNACKED: usize = 24;
const LAST_DATA_SENT: usize = 44;
const LAST_DATA_RECEIVED: usize = 52;
const LAST_ACK_RECEIVED: usize = 56;
const INFO_LENGTH: usize = 60;
/// Offset of `tcpi_notsent_bytes`, since Linux 4.6.
const NOT_SENT: usize = 144;
/// Offset of `tcpi_rcv_ooopack`, since Linux 5.4.
const OUT_OF_ORDER: usize = 224;
/// After this many retransmissions without an acknowledgement, it is more than a single loss: at least 0.6 s have passed.
const LOST_FOR_GOOD: u8 = 2;

/// Counts from a bounded sample of the connections and dials to some destinations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segments {
    /// Established connections examined.
    pub connections: u64,
    /// Connections whose last data is not acknowledged, after two or more retransmissions.
    pub unacknowledged: u64,
    /// Connections that have sent since they last received data, and whose data is all acknowledged.
    pub unanswered: u64,
    /// The unanswered connections that last sent a second ago or earlier.
    pub slow: u64,
    /// The shortest time since an `unacknowledged` connection received anything, including an ACK; `None` without such connections.
    pub stuck_for: Option<Duration>,
    /// Connections that received segments out of order, as happens after losses.
    pub disordered: u64,
    /// The shortest time since any connection received anything; `None` without connections.
    pub quiet: Option<Duration>,
    /// Dials whose SYN was retransmitted.
    pub syns: u64,
}

/// Queries up to `most` connections and dials per port, from this network namespace to these destinations. Each takes the kernel about
/// two microseconds.
///
/// # Errors
/// The kernel has no `tcp_diag`, or a sandbox forbids netlink.
pub fn segments_to(destinations: &[SocketAddr], most: u64) -> io::Result<Segments> {
    let wanted: HashSet<SocketAddr> =
        destinations.iter().map(|d| SocketAddr::new(d.ip().to_canonical(), d.port())).collect();
    let ports: HashSet<u16> = destinations.iter().map(SocketAddr::port).collect();
    let mut seen = Segments::default();
    for port in ports {
        let mut left = most;
        let query =
            Query { states: 1 << ESTABLISHED | 1 << SYN_SENT, far: port, info: true, ..Query::default() };
        for_each_socket(query, |body| {
            if ends(body).is_some_and(|(_, far)| wanted.contains(&far)) {
                seen.add(body);
                left = left.saturating_sub(1);
            }
            left > 0
        })?;
    }
    Ok(seen)
}

impl Segments {
    fn add(&mut self, body: &[u8]) {
        let Some(info) = info(body).filter(|info| info.len() >= INFO_LENGTH) else { return };
        // Data that this host's interface drops (without a carrier) counts as not sent: TCP probes instead of retransmitting.
        let is_sent_again = info[RETRANSMITS].max(info[PROBES]) >= LOST_FOR_GOOD;
        if body[1] == SYN_SENT {
            self.syns += u64::from(info[RETRANSMITS] > 0);
            return;
        }
        let ms = |at: usize| Duration::from_millis(u32_at(info, at).into());
        self.connections += 1;
        // Data that the peer's window holds back has not arrived either.
        let is_unsent = info.len() >= NOT_SENT + 4 && u32_at(info, NOT_SENT) > 0;
        let is_unacknowledged = u32_at(info, UNACKED) > 0 || info[PROBES] > 0 || is_unsent;
        let is_stuck = is_unacknowledged && is_sent_again;
        self.unacknowledged += u64::from(is_stuck);
        let has_disorder = info.len() >= OUT_OF_ORDER + 4 && u32_at(info, OUT_OF_ORDER) > 0;
        self.disordered += u64::from(has_disorder);
        let spoke_last = u32_at(info, LAST_DATA_SENT) < u32_at(info, LAST_DATA_RECEIVED);
        let is_unanswered = !is_unacknowledged && spoke_last;
        self.unanswered += u64::from(is_unanswered);
        self.slow += u64::from(is_unanswered && ms(LAST_DATA_SENT) >= Duration::from_secs(1));
        let quiet = ms(LAST_DATA_RECEIVED).min(ms(LAST_ACK_RECEIVED));
        let least = |known: Option<Duration>| Some(known.map_or(quiet, |least| least.min(quiet)));
        self.quiet = least(self.quiet);
        self.stuck_for = if is_stuck { least(self.stuck_for) } else { self.stuck_for };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::MESSAGE;
    use std::{
        io::Write,
        net::{TcpListener, TcpStream},
    };

    #[test]
    fn acknowledged_requests_without_a_response_blame_the_process() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut dialled: Vec<TcpStream> = (0..9).map(|_| TcpStream::connect(address).unwrap()).collect();
        std::thread::sleep(Duration::from_millis(20));
        for stream in dialled.iter_mut().take(5) {
            stream.write_all(b"anybody?").unwrap();
        }
        let seen = segments_to(&[address], 1_000).unwrap();
        assert_eq!(
            (seen.connections, seen.unanswered, seen.unacknowledged, seen.syns),
            (9, 5, 0, 0),
            "{seen:?}"
        );
        assert!(seen.quiet.is_some_and(|quiet| quiet < Duration::from_secs(5)), "{seen:?}");
        assert_eq!(segments_to(&[address], 4).unwrap().connections, 4, "a sample has a bound");
        let elsewhere = SocketAddr::new([127, 0, 0, 9].into(), address.port());
        assert_eq!(segments_to(&[elsewhere], 1_000).unwrap(), Segments::default());
    }

    /// A kernel message followed by `struct tcp_info`.
    fn message(state: u8, retransmits: u8, fields: &[(usize, u32)]) -> Vec<u8> {
        let mut bytes = vec![0; MESSAGE + 4 + 228];
        (bytes[0], bytes[1]) = (crate::diag::AF_INET, state);
        bytes[MESSAGE..MESSAGE + 2].copy_from_slice(&232u16.to_ne_bytes());
        bytes[MESSAGE + 2..MESSAGE + 4].copy_from_slice(&2u16.to_ne_bytes());
        let info = &mut bytes[MESSAGE + 4..];
        info[RETRANSMITS] = retransmits;
        for (at, value) in fields {
            info[*at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        bytes
    }

    #[test]
    fn retransmissions_without_acknowledgement_blame_the_path() {
        let mut seen = Segments::default();
        let dark =
            [(UNACKED, 1), (LAST_DATA_SENT, 100), (LAST_DATA_RECEIVED, 9_000), (LAST_ACK_RECEIVED, 8_000)];
        seen.add(&message(ESTABLISHED, 5, &dark));
        // Sent a moment ago, not yet retransmitted.
        seen.add(&message(ESTABLISHED, 0, &dark));
        seen.add(&message(SYN_SENT, 1, &[(UNACKED, 1)]));
        seen.add(&message(SYN_SENT, 0, &[(UNACKED, 1)]));
        // This host's interface has no carrier and drops the data: for TCP it is neither sent nor acknowledged.
        let dropped_here = |probes| [&dark[1..], &[(PROBES, probes)]].concat();
        seen.add(&message(ESTABLISHED, 0, &dropped_here(2)));
        seen.add(&message(ESTABLISHED, 0, &dropped_here(1)));
        let quiet = Some(Duration::from_secs(8));
        let expected = Segments {
            connections: 4,
            unacknowledged: 2,
            stuck_for: quiet,
            quiet,
            syns: 1,
            ..Segments::default()
        };
        assert_eq!(seen, expected);
        // A working connection that received segments out of order.
        seen.add(&message(
            ESTABLISHED,
            0,
            &[(OUT_OF_ORDER, 3), (LAST_DATA_SENT, 9_000), (LAST_ACK_RECEIVED, 9_000)],
        ));
        let disordered = Segments { connections: 5, disordered: 1, quiet: Some(Duration::ZERO), ..expected };
        assert_eq!(std::mem::replace(&mut seen, expected), disordered);
        // All data sent is acknowledged; the peer's window holds back the rest.
        seen.add(&message(ESTABLISHED, 0, &[(NOT_SENT, 900), (LAST_DATA_RECEIVED, 9_000)]));
        let unsent = Segments { connections: 5, quiet: Some(Duration::ZERO), ..expected };
        assert_eq!(std::mem::replace(&mut seen, expected), unsent);
        // A truncated message is ignored.
        seen.add(&message(ESTABLISHED, 5, &dark)[..MESSAGE + 20]);
        assert_eq!(seen, expected);
    }
}
