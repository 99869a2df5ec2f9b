//! Reads and writes segments as bytes, independently of the machine under test, straight from RFC 791, 8200, 9293 and 1071.

use std::net::{IpAddr, SocketAddr};

pub(crate) const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
pub(crate) const RST: u8 = 4;
pub(crate) const PSH: u8 = 8;
pub(crate) const ACK: u8 = 16;

/// A segment with the addresses of both ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u8,
    pub(crate) window: u16,
    pub(crate) mss: Option<u16>,
    pub(crate) scale: Option<u8>,
    pub(crate) sack_permitted: bool,
    /// SACK blocks (RFC 2018, section 3).
    pub(crate) sacks: Vec<(u32, u32)>,
    pub(crate) payload: Vec<u8>,
}

fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |b| u32::from(*b))).sum()
}

fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn octets(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

fn pseudo(from: IpAddr, to: IpAddr, protocol: u8, len: usize) -> u32 {
    sum(&octets(from)) + sum(&octets(to)) + u32::from(protocol) + len as u32
}

/// An IP packet with this body.
pub(crate) fn ip_packet(from: IpAddr, to: IpAddr, protocol: u8, body: &[u8]) -> Vec<u8> {
    let mut head = match (from, to) {
        (IpAddr::V4(_), IpAddr::V4(_)) => {
            let mut head = vec![0x45, 0, 0, 0, 0, 7, 0, 0, 50, protocol, 0, 0];
            head[2..4].copy_from_slice(&(20 + body.len() as u16).to_be_bytes());
            head
        }
        (IpAddr::V6(_), IpAddr::V6(_)) => {
            let mut head = vec![0x60, 0, 0, 0, 0, 0, protocol, 50];
            head[4..6].copy_from_slice(&(body.len() as u16).to_be_bytes());
            head
        }
        _ => panic!("two versions of IP in one packet"),
    };
    head.extend(octets(from));
    head.extend(octets(to));
    if head[0] == 0x45 {
        let checksum = !fold(sum(&head));
        head[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
    head.extend(body);
    head
}

impl Segment {
    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The segment as an IP packet.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut options = Vec::new();
        if let Some(mss) = self.mss {
            options.extend([2, 4]);
            options.extend(mss.to_be_bytes());
        }
        if let Some(scale) = self.scale {
            options.extend([3, 3, scale, 0]);
        }
        if self.sack_permitted {
            options.extend([4, 2, 1, 1]);
        }
        assert!(self.sacks.is_empty(), "no peer of a test sends blocks");
        let mut tcp = Vec::new();
        tcp.extend(self.from.port().to_be_bytes());
        tcp.extend(self.to.port().to_be_bytes());
        tcp.extend(self.seq.to_be_bytes());
        tcp.extend(self.ack.to_be_bytes());
        tcp.extend([(5 + options.len() as u8 / 4) << 4, self.flags]);
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(options);
        tcp.extend(&self.payload);
        let checksum = !fold(pseudo(self.from.ip(), self.to.ip(), 6, tcp.len()) + sum(&tcp));
        tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
        ip_packet(self.from.ip(), self.to.ip(), 6, &tcp)
    }

    /// Reads a packet that must be valid.
    pub(crate) fn read(packet: &[u8]) -> Segment {
        let (from, to, tcp): (IpAddr, IpAddr, _) = if packet[0] == 0x45 {
            assert_eq!(fold(sum(&packet[..20])), 0xffff, "the checksum of the IP header");
            assert_eq!(usize::from(u16::from_be_bytes([packet[2], packet[3]])), packet.len());
            assert_eq!((packet[6], packet[7], packet[9]), (0x40, 0, 6), "not to be fragmented");
            let address = |at: usize| <[u8; 4]>::try_from(&packet[at..at + 4]).unwrap().into();
            (address(12), address(16), &packet[20..])
        } else {
            assert_eq!((packet[0], packet[6]), (0x60, 6));
            assert_eq!(usize::from(u16::from_be_bytes([packet[4], packet[5]])), packet.len() - 40);
            let address = |at: usize| <[u8; 16]>::try_from(&packet[at..at + 16]).unwrap().into();
            (address(8), address(24), &packet[40..])
        };
        assert_eq!(fold(pseudo(from, to, 6, tcp.len()) + sum(tcp)), 0xffff, "the checksum");
        let u16_at = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
        let u32_at = |at: usize| u32::from_be_bytes(tcp[at..at + 4].try_into().unwrap());
        let head = usize::from(tcp[12] >> 4) * 4;
        let (mut mss, mut scale, mut at) = (None, None, 20);
        let (mut sack_permitted, mut sacks) = (false, Vec::new());
        while at < head {
            match tcp[at] {
                0 => break,
                1 => at += 1,
                2 => (mss, at) = (Some(u16_at(at + 2)), at + 4),
                3 => (scale, at) = (Some(tcp[at + 2]), at + 3),
                4 => (sack_permitted, at) = (true, at + 2),
                5 => {
                    let len = usize::from(tcp[at + 1]);
                    assert!(len % 8 == 2 && len > 2 && at + len <= head, "whole blocks");
                    sacks.extend((at + 2..at + len).step_by(8).map(|at| (u32_at(at), u32_at(at + 4))));
                    at += len;
                }
                _ => at += usize::from(tcp[at + 1]),
            }
        }
        Segment {
            from: SocketAddr::new(from, u16_at(0)),
            to: SocketAddr::new(to, u16_at(2)),
            seq: u32_at(4),
            ack: u32_at(8),
            flags: tcp[13],
            window: u16_at(14),
            mss,
            scale,
            sack_permitted,
            sacks,
            payload: tcp[head..].to_vec(),
        }
    }
}

/// An ICMP error, for IPv4 or IPv6 like the quoted packet, with the `word` after its checksum.
pub(crate) fn icmp(router: IpAddr, quoted: &[u8], kind: u8, code: u8, word: u32) -> Vec<u8> {
    let to: IpAddr = match router {
        IpAddr::V4(_) => <[u8; 4]>::try_from(&quoted[12..16]).unwrap().into(),
        IpAddr::V6(_) => <[u8; 16]>::try_from(&quoted[8..24]).unwrap().into(),
    };
    let mut body = vec![kind, code, 0, 0];
    body.extend(word.to_be_bytes());
    // At least eight bytes of the segment are quoted (RFC 792); no more here.
    body.extend(&quoted[..quoted.len().min(if router.is_ipv4() { 28 } else { 48 })]);
    let (protocol, pseudo) = match router {
        IpAddr::V4(_) => (1, 0),
        IpAddr::V6(_) => (58, pseudo(router, to, 58, body.len())),
    };
    let checksum = !fold(sum(&body) + pseudo);
    body[2..4].copy_from_slice(&checksum.to_be_bytes());
    ip_packet(router, to, protocol, &body)
}
