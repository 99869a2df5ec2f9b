//! Reads and writes IP packets that contain TCP, without allocation (RFC 791, 8200, 9293); also reads ICMP errors about TCP segments.

use std::net::{IpAddr, Ipv4Addr};

use crate::checksum::Sum;
use crate::link::{Link, Outgoing};

mod icmp;
#[cfg(test)]
mod tests;

pub(crate) use icmp::{Error, Quote};

pub(crate) const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
pub(crate) const RST: u8 = 4;
pub(crate) const PSH: u8 = 8;
pub(crate) const ACK: u8 = 16;

const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_ICMP: u8 = 1;
const PROTOCOL_ICMP6: u8 = 58;

const OPTION_END: u8 = 0;
const OPTION_NOTHING: u8 = 1;
const OPTION_MSS: u8 = 2;
const OPTION_SCALE: u8 = 3;
const OPTION_SACK_PERMITTED: u8 = 4;
const OPTION_SACK: u8 = 5;
/// Larger window shifts count as this one (RFC 7323, section 2.3).
const MAX_SCALE: u8 = 14;

/// An address as 128 bits; an IPv4 address in its mapped form (RFC 4291, section 2.5.5.2).
pub(crate) fn bits(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u128::from(ip.to_ipv6_mapped()),
        IpAddr::V6(ip) => u128::from(ip),
    }
}

/// Whether these 128 bits are a mapped IPv4 address.
pub(crate) fn is_v4(address: u128) -> bool {
    address >> 32 == 0xffff
}

fn mapped(address: [u8; 4]) -> u128 {
    u128::from(Ipv4Addr::from(address).to_ipv6_mapped())
}

/// The addresses and ports of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tuple {
    pub(crate) local: u128,
    pub(crate) remote: u128,
    pub(crate) local_port: u16,
    pub(crate) remote_port: u16,
}

/// A received segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) tuple: Tuple,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u8,
    pub(crate) window: u16,
    /// The options are only read if the segment has SYN.
    pub(crate) mss: Option<u16>,
    pub(crate) scale: Option<u8>,
    /// Whether the sender accepts selective acknowledgements (RFC 2018).
    pub(crate) sack_permitted: bool,
    /// Offset of the payload in the packet.
    pub(crate) at: u32,
    pub(crate) len: u32,
}

impl Segment {
    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Number of sequence numbers that it occupies; SYN and FIN occupy one each.
    pub(crate) fn room(&self) -> u32 {
        self.len + u32::from(self.has(SYN)) + u32::from(self.has(FIN))
    }
}

/// The result of reading a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packet {
    Segment(Segment),
    /// An ICMP error about a segment that was sent.
    Error(Quote),
    /// Another protocol or message, a fragment, or not a valid packet.
    Malformed,
    WrongChecksum,
}

/// Reads a packet. `trusted`: the kernel has verified the TCP checksum, or never computed it.
pub(crate) fn read(packet: &[u8], trusted: bool) -> Packet {
    let Some(ip) = Ip::read(packet) else { return Packet::Malformed };
    let Some(ip) = ip else { return Packet::WrongChecksum };
    let body = &packet[ip.at..ip.end];
    match (ip.protocol, is_v4(ip.source)) {
        (PROTOCOL_TCP, _) => {
            if !trusted && pseudo(ip.source, ip.destination, body.len() as u32).add(body).checksum() != 0 {
                return Packet::WrongChecksum;
            }
            segment(&ip, body).map_or(Packet::Malformed, Packet::Segment)
        }
        (PROTOCOL_ICMP, true) if Sum::default().add(body).checksum() != 0 => Packet::WrongChecksum,
        (PROTOCOL_ICMP, true) => icmp::read_v4(body).map_or(Packet::Malformed, Packet::Error),
        (PROTOCOL_ICMP6, false) => {
            let sum = pseudo_of(PROTOCOL_ICMP6, ip.source, ip.destination, body.len() as u32).add(body);
            if sum.checksum() != 0 {
                return Packet::WrongChecksum;
            }
            icmp::read_v6(body).map_or(Packet::Malformed, Packet::Error)
        }
        _ => Packet::Malformed,
    }
}

/// The fields of an IP header that are used. The body is at `at..end`.
struct Ip {
    source: u128,
    destination: u128,
    protocol: u8,
    at: usize,
    end: usize,
}

impl Ip {
    /// Reads the header. `Some(None)`: its checksum is wrong.
    fn read(packet: &[u8]) -> Option<Option<Ip>> {
        match packet.first()? >> 4 {
            4 => {
                let (ip, header) = Ip::read_v4(packet)?;
                let fits = ip.end <= packet.len();
                let sound = Sum::default().add(header).checksum() == 0;
                fits.then(|| sound.then_some(ip))
            }
            6 => Ip::read_v6(packet).filter(|ip| ip.end <= packet.len()).map(Some),
            _ => None,
        }
    }

    /// Reads an IPv4 header; the packet may be truncated, as it is in an ICMP quote.
    fn read_v4(packet: &[u8]) -> Option<(Ip, &[u8])> {
        let head: &[u8; 20] = packet.first_chunk()?;
        let at = usize::from(head[0] & 15) * 4;
        let end = usize::from(u16::from_be_bytes([head[2], head[3]]));
        // A fragment (more fragments, or an offset) is not enough to read the segment.
        let is_fragment = u16::from_be_bytes([head[6], head[7]]) & 0x3fff != 0;
        if head[0] >> 4 != 4 || at < 20 || end < at || packet.len() < at || is_fragment {
            return None;
        }
        let [.., s0, s1, s2, s3, d0, d1, d2, d3] = *head;
        let (source, destination) = (mapped([s0, s1, s2, s3]), mapped([d0, d1, d2, d3]));
        Some((Ip { source, destination, protocol: head[9], at, end }, &packet[..at]))
    }

    /// Reads an IPv6 header, skipping extension headers that do not matter to a host (RFC 8200, section 4).
    fn read_v6(packet: &[u8]) -> Option<Ip> {
        let head: &[u8; 40] = packet.first_chunk()?;
        if head[0] >> 4 != 6 {
            return None;
        }
        let address = |at: usize| u128::from_be_bytes(head[at..at + 16].try_into().expect("16 bytes"));
        let end = 40 + usize::from(u16::from_be_bytes([head[4], head[5]]));
        let (mut protocol, mut at) = (head[6], 40);
        // Hop-by-hop and destination options.
        while let 0 | 60 = protocol {
            let extension = packet.get(at..at + 2)?;
            protocol = extension[0];
            at += (usize::from(extension[1]) + 1) * 8;
        }
        let ip = Ip { source: address(8), destination: address(24), protocol, at, end };
        // A mapped address is not valid in an IPv6 packet.
        (at <= end && at <= packet.len() && !is_v4(ip.source) && !is_v4(ip.destination)).then_some(ip)
    }
}

fn segment(ip: &Ip, body: &[u8]) -> Option<Segment> {
    let head: &[u8; 20] = body.first_chunk()?;
    let u16_at = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let u32_at = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let head_len = usize::from(head[12] >> 4) * 4;
    if head_len < 20 || head_len > body.len() {
        return None;
    }
    let flags = head[13];
    let Options { mss, scale, sack_permitted } =
        if flags & SYN == 0 { Options::default() } else { options(&body[20..head_len]) };
    Some(Segment {
        tuple: Tuple {
            local: ip.destination,
            remote: ip.source,
            local_port: u16_at(2),
            remote_port: u16_at(0),
        },
        seq: u32_at(4),
        ack: u32_at(8),
        flags,
        window: u16_at(14),
        mss,
        scale,
        sack_permitted,
        at: (ip.at + head_len) as u32,
        len: (body.len() - head_len) as u32,
    })
}

/// The options of a SYN.
#[derive(Default)]
struct Options {
    mss: Option<u16>,
    scale: Option<u8>,
    sack_permitted: bool,
}

/// Reads options; a malformed option ends the list.
fn options(mut options: &[u8]) -> Options {
    let mut found = Options::default();
    while let [kind, rest @ ..] = options {
        options = match (*kind, rest) {
            (OPTION_END, _) => break,
            (OPTION_NOTHING, _) => rest,
            (_, [len, ..]) if usize::from(*len) >= 2 && usize::from(*len) <= options.len() => {
                match options[..usize::from(*len)] {
                    [OPTION_MSS, 4, high, low] => found.mss = Some(u16::from_be_bytes([high, low])),
                    [OPTION_SCALE, 3, shift] => found.scale = Some(shift.min(MAX_SCALE)),
                    [OPTION_SACK_PERMITTED, 2] => found.sack_permitted = true,
                    _ => {}
                }
                &options[usize::from(*len)..]
            }
            _ => break,
        };
    }
    found
}

/// The sum of the pseudo-header, which the TCP checksum covers in addition to the segment (RFC 9293, section 3.1).
pub(crate) fn pseudo(source: u128, destination: u128, len: u32) -> Sum {
    pseudo_of(PROTOCOL_TCP, source, destination, len)
}

fn pseudo_of(protocol: u8, source: u128, destination: u128, len: u32) -> Sum {
    let rest = (u64::from(len) << 32 | u64::from(protocol)).to_be_bytes();
    if is_v4(source) {
        Sum::default().add(&(source as u32).to_be_bytes()).add(&(destination as u32).to_be_bytes()).add(&rest)
    } else {
        Sum::default().add(&source.to_be_bytes()).add(&destination.to_be_bytes()).add(&rest)
    }
}

/// The headers of a segment to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) tuple: Tuple,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u8,
    pub(crate) window: u16,
    pub(crate) mss: Option<u16>,
    pub(crate) scale: Option<u8>,
    pub(crate) sack_permitted: bool,
    /// Must be empty if the segment has SYN.
    pub(crate) sacks: Sacks,
}

/// SACK blocks: first number, and the number after the last; the most recent block first (RFC 2018, section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sacks {
    blocks: [(u32, u32); MOST_SACKS],
    count: usize,
}

/// As many as fit in a header without other options.
pub(crate) const MOST_SACKS: usize = 4;

impl Sacks {
    pub(crate) fn get(&self) -> &[(u32, u32)] {
        &self.blocks[..self.count]
    }

    /// Adds a block, unless it is already there or there is no room.
    pub(crate) fn add(&mut self, block: (u32, u32)) {
        if self.count < MOST_SACKS && !self.get().contains(&block) {
            self.blocks[self.count] = block;
            self.count += 1;
        }
    }
}

/// Maximum length of the headers: IPv6, and TCP with all options (RFC 9293, section 3.1).
const MAX_HEAD: usize = 40 + 60;
const HOPS: u8 = 64;
const DO_NOT_FRAGMENT: u8 = 0x40;

impl Header {
    /// A header with the addresses and ports of a connection; all other fields are zero.
    pub(crate) fn of(tuple: Tuple) -> Header {
        Header {
            tuple,
            seq: 0,
            ack: 0,
            flags: 0,
            window: 0,
            mss: None,
            scale: None,
            sack_permitted: false,
            sacks: Sacks::default(),
        }
    }

    /// Sends the segment with its payload.
    pub(crate) fn send(&self, payload: &[u8], segment_size: Option<u16>, link: &mut impl Link) {
        let mut head = [0; MAX_HEAD];
        let (ip_len, len) = self.write(payload, link.completes_checksums(), &mut head);
        link.send(Outgoing { head: &head[..len], ip_len, payload, segment_size });
    }

    /// Writes the headers. Returns the length of the IP header, and of both. `sum_only`: see [`Link::completes_checksums`].
    fn write(&self, payload: &[u8], sum_only: bool, out: &mut [u8; MAX_HEAD]) -> (usize, usize) {
        let ip_len = if is_v4(self.tuple.local) { 20 } else { 40 };
        let (ip, tcp) = out.split_at_mut(ip_len);
        let tcp_len = self.write_tcp(tcp);
        let whole = tcp_len + payload.len();
        let tuple = &self.tuple;
        if is_v4(tuple.local) {
            // No identification: it has no meaning if the packet is not fragmented (RFC 6864).
            ip[0] = 0x45;
            ip[2..4].copy_from_slice(&((20 + whole) as u16).to_be_bytes());
            ip[6] = DO_NOT_FRAGMENT;
            ip[8] = HOPS;
            ip[9] = PROTOCOL_TCP;
            ip[12..16].copy_from_slice(&(tuple.local as u32).to_be_bytes());
            ip[16..20].copy_from_slice(&(tuple.remote as u32).to_be_bytes());
            let sum = Sum::default().add(ip).checksum();
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
        } else {
            ip[0] = 0x60;
            ip[4..6].copy_from_slice(&(whole as u16).to_be_bytes());
            ip[6] = PROTOCOL_TCP;
            ip[7] = HOPS;
            ip[8..24].copy_from_slice(&tuple.local.to_be_bytes());
            ip[24..40].copy_from_slice(&tuple.remote.to_be_bytes());
        }
        let pseudo = pseudo(tuple.local, tuple.remote, whole as u32);
        let sum = match sum_only {
            true => pseudo.folded(),
            false => pseudo.add(&tcp[..tcp_len]).add(payload).checksum(),
        };
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        (ip_len, ip_len + tcp_len)
    }

    fn write_tcp(&self, tcp: &mut [u8]) -> usize {
        tcp[0..2].copy_from_slice(&self.tuple.local_port.to_be_bytes());
        tcp[2..4].copy_from_slice(&self.tuple.remote_port.to_be_bytes());
        tcp[4..8].copy_from_slice(&self.seq.to_be_bytes());
        tcp[8..12].copy_from_slice(&self.ack.to_be_bytes());
        tcp[13] = self.flags;
        tcp[14..16].copy_from_slice(&self.window.to_be_bytes());
        let mut len = 20;
        if let Some(mss) = self.mss {
            let [high, low] = mss.to_be_bytes();
            tcp[len..len + 4].copy_from_slice(&[OPTION_MSS, 4, high, low]);
            len += 4;
        }
        if let Some(scale) = self.scale {
            tcp[len..len + 4].copy_from_slice(&[OPTION_NOTHING, OPTION_SCALE, 3, scale]);
            len += 4;
        }
        if self.sack_permitted {
            tcp[len..len + 4].copy_from_slice(&[OPTION_NOTHING, OPTION_NOTHING, OPTION_SACK_PERMITTED, 2]);
            len += 4;
        }
        let sacks = self.sacks.get();
        if !sacks.is_empty() {
            let size = 2 + 8 * sacks.len() as u8;
            tcp[len..len + 4].copy_from_slice(&[OPTION_NOTHING, OPTION_NOTHING, OPTION_SACK, size]);
            len += 4;
            for (from, to) in sacks {
                tcp[len..len + 4].copy_from_slice(&from.to_be_bytes());
                tcp[len + 4..len + 8].copy_from_slice(&to.to_be_bytes());
                len += 8;
            }
        }
        tcp[12] = (len as u8 / 4) << 4;
        len
    }
}
