//! An ICMP echo: shows how many hops away a host is that sends nothing else.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, ipproto, recv, sendto, socket, sockopt};
use units::{Clock, Nanos};

/// ICMP message types (RFC 792).
const ECHO: u8 = 8;
const ECHO_REPLY: u8 = 0;
/// The payload that identifies the reply: other processes may send echo requests, too.
const MARK: [u8; 8] = *b"throngTT";
/// Length of the ICMP header, and the minimum length of the IP header.
const HEADER: usize = 8;
const IP_HEADER: usize = 20;

/// The time to live with which a host's reply to an echo request arrives. `None` without a reply within `patience`, and for IPv6.
///
/// # Errors
/// Without `CAP_NET_RAW`.
pub fn echo_ttl(at: IpAddr, patience: Duration) -> io::Result<Option<u8>> {
    let IpAddr::V4(host) = at else { return Ok(None) };
    let socket = socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::ICMP))?;
    sendto(&socket, &request(), SendFlags::empty(), &SocketAddr::new(at, 0))?;
    let clock = Clock::start();
    let until = clock.now() + Nanos(patience.as_nanos() as u64);
    let mut packet = [0; 256];
    loop {
        let left = until.since(clock.now());
        if left == Nanos::ZERO {
            return Ok(None);
        }
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(Duration::from_nanos(left.0)))?;
        match recv(&socket, &mut packet, RecvFlags::empty()) {
            Ok((length, _)) => {
                if let Some(ttl) = reply(&packet[..length], host) {
                    return Ok(Some(ttl));
                }
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// An echo request. The checksum is the complement of the sum of the 16-bit words (RFC 1071).
fn request() -> [u8; HEADER + MARK.len()] {
    let mut packet = [0; HEADER + MARK.len()];
    packet[0] = ECHO;
    packet[HEADER..].copy_from_slice(&MARK);
    let words = packet.as_chunks::<2>().0.iter().map(|word| u32::from(u16::from_be_bytes(*word)));
    let sum: u32 = words.sum();
    let sum = !((sum & 0xFFFF) + (sum >> 16)) as u16;
    packet[2..4].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// The time to live of an IP packet, if it is the reply of this host to [`request`].
fn reply(packet: &[u8], host: Ipv4Addr) -> Option<u8> {
    let header = usize::from(packet.first()? & 0xF) * 4;
    let is_its = packet.get(12..16)? == host.octets() && header >= IP_HEADER;
    let icmp = packet.get(header..)?;
    let is_reply = *icmp.first()? == ECHO_REPLY && icmp.get(HEADER..HEADER + MARK.len())? == MARK;
    (is_its && is_reply).then_some(packet[8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_replies_without_a_router_between() {
        match echo_ttl(Ipv4Addr::LOCALHOST.into(), Duration::from_secs(5)) {
            Ok(ttl) => assert_eq!(ttl, Some(64)),
            Err(e) => eprintln!("skipped: {e}"),
        }
    }

    #[test]
    fn only_the_hosts_reply_to_this_request_counts() {
        let host = Ipv4Addr::new(10, 0, 0, 9);
        let mut packet = vec![0; 20];
        (packet[0], packet[8]) = (0x45, 61);
        packet[12..16].copy_from_slice(&host.octets());
        packet.extend(request());
        assert_eq!(reply(&packet, host), None, "the request itself");
        packet[20] = ECHO_REPLY;
        assert_eq!(reply(&packet, host), Some(61));
        assert_eq!(reply(&packet, Ipv4Addr::new(10, 0, 0, 8)), None);
        for length in 0..packet.len() {
            assert_eq!(reply(&packet[..length], host), None, "{length}");
        }
        packet[30] ^= 1;
        assert_eq!(reply(&packet, host), None, "of another process");
    }
}
