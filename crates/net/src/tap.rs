//! Observes the segments that begin and end connections as they arrive at this host (packet(7)). They carry the remaining time to live,
//! which a TCP socket does not show. A BPF filter in the kernel drops all other packets before they are copied.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::{AsRawFd, OwnedFd},
};

use rustix::net::{AddressFamily, SocketFlags, SocketType, eth, socket_with};

use crate::io::socket::set_option;

/// A TCP segment with SYN, FIN or RST (RFC 9293, section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// The source address and port.
    pub from: SocketAddr,
    /// The remaining time to live, or hop limit for IPv6.
    pub ttl: u8,
    /// Whether it is a reset.
    pub is_reset: bool,
    /// Whether it came over the loopback device, so that this host has sent it.
    pub is_own: bool,
}

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
/// The protocol number of TCP in an IP header.
const TCP: u8 = 6;
/// Length of the IPv6 header, and of the part of the TCP header up to and including the flags.
const IPV6: usize = 40;
const UNTIL_FLAGS: usize = 14;
/// The index of the loopback device in every network namespace (`LOOPBACK_IFINDEX` in Linux).
const LOOPBACK: i32 = 1;
/// Bytes copied per packet: IP and TCP headers with all their options.
const MOST: usize = 128;

/// A packet socket that receives copies of the SYN, FIN and RST segments of one address family that arrive at this host.
#[derive(Debug)]
pub struct Tap {
    socket: OwnedFd,
    is_ipv4: bool,
}

impl Tap {
    /// Opens a tap for segments with SYN, FIN or RST.
    ///
    /// # Errors
    /// Without `CAP_NET_RAW` in this network namespace.
    pub fn open(is_ipv4: bool) -> io::Result<Tap> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        // Without a protocol nothing arrives before the filter is attached.
        let socket = socket_with(AddressFamily::PACKET, SocketType::DGRAM, flags, None)?;
        let tap = Tap { socket, is_ipv4 };
        tap.filter(FIN | SYN | RST)?;
        let protocol = if is_ipv4 { eth::IP } else { eth::IPV6 };
        tap.listen(protocol.as_raw().get() as u16)?;
        Ok(tap)
    }

    /// Restricts the tap to resets.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn only_resets(&self) -> io::Result<()> {
        self.filter(RST)
    }

    /// The next segment that has arrived; `None` if there is none.
    pub fn next(&self) -> Option<Control> {
        let mut packet = [0; MOST];
        loop {
            let (length, device) = self.receive(&mut packet)?;
            if let Some(control) = Control::of(&packet[..length.min(MOST)]) {
                return Some(Control { is_own: device == LOOPBACK, ..control });
            }
        }
    }

    /// The length of the next packet, and the index of the device on which it arrived; `None` if there is none.
    fn receive(&self, packet: &mut [u8]) -> Option<(usize, i32)> {
        // SAFETY: all zeros is a valid sockaddr_ll.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        let mut length = size_of_val(&address) as libc::socklen_t;
        // SAFETY: the descriptor is open; the buffer and the address have these lengths, and outlive the call.
        let received = unsafe {
            libc::recvfrom(
                self.socket.as_raw_fd(),
                packet.as_mut_ptr().cast(),
                packet.len(),
                libc::MSG_TRUNC,
                (&raw mut address).cast(),
                &raw mut length,
            )
        };
        Some((usize::try_from(received).ok()?, address.sll_ifindex))
    }

    /// Attaches a filter that passes only segments with one of these flags.
    fn filter(&self, flags: u8) -> io::Result<()> {
        let mut program = program(self.is_ipv4, flags);
        let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
        // SAFETY: its value is a program of that length, which the kernel copies.
        unsafe { set_option(&self.socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program) }
    }

    /// Starts receiving packets of this protocol (in network byte order) from all devices.
    fn listen(&self, protocol: u16) -> io::Result<()> {
        // SAFETY: all zeros is a valid sockaddr_ll; interface 0 means all devices.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        (address.sll_family, address.sll_protocol) = (libc::AF_PACKET as u16, protocol);
        // SAFETY: the descriptor is open, and the address has that length and outlives the call.
        let result = unsafe {
            libc::bind(
                self.socket.as_raw_fd(),
                (&raw const address).cast(),
                size_of_val(&address) as libc::socklen_t,
            )
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// The BPF program: passes IP packets that carry TCP with one of these flags. Jump offsets count from the next instruction.
fn program(is_ipv4: bool, flags: u8) -> [libc::sock_filter; 7] {
    use libc::{BPF_ABS, BPF_B, BPF_IMM, BPF_IND, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_JUMP, BPF_K, BPF_LD};
    use libc::{BPF_LDX, BPF_MSH, BPF_RET, BPF_STMT};
    let stmt = |code: u32, k: u32| {
        // SAFETY: BPF_STMT only combines its arguments.
        unsafe { BPF_STMT(code as u16, k) }
    };
    let jump = |code: u32, k: u32, no: u8| {
        // SAFETY: BPF_JUMP only combines its arguments.
        unsafe { BPF_JUMP((BPF_JMP | code | BPF_K) as u16, k, 0, no) }
    };
    let (protocol, header) = match is_ipv4 {
        true => (9, stmt(BPF_LDX | BPF_B | BPF_MSH, 0)),
        false => (6, stmt(BPF_LDX | BPF_IMM, IPV6 as u32)),
    };
    [
        stmt(BPF_LD | BPF_B | BPF_ABS, protocol),
        jump(BPF_JEQ, TCP.into(), 4),
        header,
        stmt(BPF_LD | BPF_B | BPF_IND, UNTIL_FLAGS as u32 - 1),
        jump(BPF_JSET, flags.into(), 1),
        stmt(BPF_RET | BPF_K, MOST as u32),
        stmt(BPF_RET | BPF_K, 0),
    ]
}

impl Control {
    /// Reads an IP packet; `None` if it is not such a segment.
    fn of(packet: &[u8]) -> Option<Control> {
        let (ip, ttl, header) = match packet.first()? >> 4 {
            4 => {
                let ip = Ipv4Addr::from(*packet.get(12..)?.first_chunk::<4>()?);
                (IpAddr::V4(ip), packet[8], usize::from(packet[0] & 0xf) * 4)
            }
            _ => {
                let ip = Ipv6Addr::from(*packet.get(8..)?.first_chunk::<16>()?);
                (IpAddr::V6(ip), packet[7], IPV6)
            }
        };
        let segment = packet.get(header..)?.first_chunk::<UNTIL_FLAGS>()?;
        let (port, flags) = (u16::from_be_bytes([segment[0], segment[1]]), segment[UNTIL_FLAGS - 1]);
        let is_reset = flags & RST != 0;
        let control = Control { from: SocketAddr::new(ip, port), ttl, is_reset, is_own: false };
        (flags & (FIN | SYN | RST) != 0).then_some(control)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    fn from(tap: &Tap, at: SocketAddr) -> Vec<(u8, bool)> {
        let all = std::iter::from_fn(|| tap.next()).filter(|control| control.from == at && control.is_own);
        all.map(|control| (control.ttl, control.is_reset)).collect()
    }

    #[test]
    fn beginnings_ends_and_resets_arrive() {
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(any).unwrap();
            let at = listener.local_addr().unwrap();
            let tap = match Tap::open(at.is_ipv4()) {
                Ok(tap) => tap,
                Err(e) => return eprintln!("skipped: {e}"),
            };
            let stream = TcpStream::connect(at).unwrap();
            let (accepted, _) = listener.accept().unwrap();
            // Plain data is filtered out.
            std::io::Write::write_all(&mut &accepted, b"data").unwrap();
            assert_eq!(from(&tap, at), [(64, false)], "{any}");
            drop(accepted);
            assert_eq!(from(&tap, at), [(64, false)], "{any}");
            drop((stream, listener));
            tap.only_resets().unwrap();
            TcpStream::connect(at).unwrap_err();
            let others = TcpListener::bind(any).unwrap();
            drop(TcpStream::connect(others.local_addr().unwrap()).unwrap());
            assert_eq!(from(&tap, at), [(64, true)], "{any}");
            assert_eq!(from(&tap, others.local_addr().unwrap()), [], "{any}");
        }
    }

    #[test]
    fn a_packet_that_is_cut_off_is_none() {
        let mut packet = vec![0; 60];
        (packet[0], packet[8]) = (0x46, 63);
        packet[12..16].copy_from_slice(&[10, 0, 0, 9]);
        // The IP header has an option.
        packet[24..26].copy_from_slice(&8_000u16.to_be_bytes());
        packet[24 + UNTIL_FLAGS - 1] = RST | 0x10;
        let from = "10.0.0.9:8000".parse().unwrap();
        assert_eq!(Control::of(&packet), Some(Control { from, ttl: 63, is_reset: true, is_own: false }));
        let complete = 24 + UNTIL_FLAGS;
        for length in 0..packet.len() {
            assert_eq!(Control::of(&packet[..length]).is_some(), length >= complete, "{length}");
        }
        packet[24 + UNTIL_FLAGS - 1] = 0x10;
        assert_eq!(Control::of(&packet), None, "an acknowledgement");
    }
}
