use super::*;
use proptest::prelude::*;

/// A link that keeps the last packet.
struct Kept(Vec<u8>, bool);

impl Link for Kept {
    fn completes_checksums(&self) -> bool {
        self.1
    }
    fn largest(&self) -> usize {
        0
    }
    fn send(&mut self, packet: Outgoing<'_>) {
        self.0 = [packet.head, packet.payload].concat();
    }
}

fn header(is_v6: bool, mss: Option<u16>, scale: Option<u8>) -> Header {
    let [local, remote] = match is_v6 {
        false => ["198.18.3.4", "10.20.30.40"],
        true => ["2001:2::1:2", "fd00::7"],
    }
    .map(|ip| bits(ip.parse().unwrap()));
    let tuple = Tuple { local, remote, local_port: 40_000, remote_port: 443 };
    let flags = SYN | ACK;
    Header { seq: 0xfedc_ba98, ack: 0x0102_0304, flags, window: 777, mss, scale, ..Header::of(tuple) }
}

fn written(header: &Header, payload: &[u8]) -> Vec<u8> {
    let mut link = Kept(Vec::new(), false);
    header.send(payload, None, &mut link);
    link.0
}

/// Checks that a written packet reads as the same segment, with the ends exchanged.
fn check(header: &Header, payload: &[u8]) {
    let packet = written(header, payload);
    let at = packet.len() - payload.len();
    let swapped = |tuple: Tuple| Tuple {
        local: tuple.remote,
        remote: tuple.local,
        local_port: tuple.remote_port,
        remote_port: tuple.local_port,
    };
    let expected = Segment {
        tuple: swapped(header.tuple),
        seq: header.seq,
        ack: header.ack,
        flags: header.flags,
        window: header.window,
        mss: header.mss,
        scale: header.scale.map(|scale| scale.min(14)),
        sack_permitted: header.sack_permitted,
        at: at as u32,
        len: payload.len() as u32,
    };
    assert_eq!(read(&packet, false), Packet::Segment(expected));
    // Bytes after the packet are ignored.
    assert_eq!(read(&[&packet[..], b"padding"].concat(), false), Packet::Segment(expected));
}

proptest! {
    #[test]
    fn what_is_written_is_read(is_v6: bool, mss: Option<u16>, scale: Option<u8>, sack_permitted: bool, payload in prop::collection::vec(any::<u8>(), 0..100)) {
        check(&Header { sack_permitted, ..header(is_v6, mss, scale) }, &payload);
    }

    /// The SACK option has the layout of RFC 2018, section 3; read here byte by byte.
    #[test]
    fn blocks_are_written_behind_the_header(is_v6: bool, blocks in prop::collection::vec(any::<(u32, u32)>(), 0..6)) {
        let mut header = Header { flags: ACK, ..header(is_v6, None, None) };
        blocks.iter().for_each(|block| header.sacks.add(*block));
        let mut said: Vec<_> = blocks.clone();
        said.dedup();
        said.truncate(4);
        prop_assume!(header.sacks.get() == said);
        let packet = written(&header, b"");
        let tcp = &packet[if is_v6 { 40 } else { 20 }..];
        prop_assert_eq!(usize::from(tcp[12] >> 4) * 4, tcp.len());
        let numbers: Vec<u8> = said.iter().flat_map(|(from, to)| [from.to_be_bytes(), to.to_be_bytes()].concat()).collect();
        let option = if said.is_empty() { vec![] } else { [&[1, 1, 5, 2 + numbers.len() as u8][..], &numbers].concat() };
        prop_assert_eq!(&tcp[20..], &option[..]);
        prop_assert!(matches!(read(&packet, false), Packet::Segment(segment) if segment.len == 0));
    }

    #[test]
    fn a_changed_bit_is_noticed(is_v6: bool, at: prop::sample::Index, bit in 0u8..8) {
        let packet = written(&header(is_v6, Some(1460), Some(5)), b"payload");
        let right = read(&packet, false);
        let mut wrong = packet.clone();
        let at = at.index(packet.len());
        wrong[at] ^= 1 << bit;
        // In IPv6, no checksum covers traffic class, flow label and hop limit, and they are ignored.
        let is_covered = !is_v6 || !(at < 4 && at * 8 + usize::from(7 - bit) >= 4 || at == 7);
        if is_covered {
            prop_assert!(matches!(read(&wrong, false), Packet::Malformed | Packet::WrongChecksum), "{at} {bit}");
        } else {
            prop_assert_eq!(read(&wrong, false), right);
        }
    }

    #[test]
    fn anything_is_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..120), first in prop_oneof![Just(0x45u8), Just(0x46), Just(0x60), any::<u8>()], trusted: bool) {
        let packet = [&[first][..], &bytes].concat();
        if let Packet::Segment(segment) = read(&packet, trusted) {
            prop_assert!((segment.at + segment.len) as usize <= packet.len());
        }
        icmp::read_v4(&bytes);
        icmp::read_v6(&bytes);
    }
}

#[test]
fn a_link_that_completes_checksums_gets_the_sum_of_the_pseudo_header() {
    for is_v6 in [false, true] {
        let header = header(is_v6, None, None);
        let mut link = Kept(Vec::new(), true);
        header.send(b"odd", None, &mut link);
        let mut packet = link.0;
        let ip_len = if is_v6 { 40 } else { 20 };
        assert_eq!(read(&packet, false), Packet::WrongChecksum);
        assert!(matches!(read(&packet, true), Packet::Segment(_)));
        // As the kernel and network cards do it: the sum from the TCP header on, including the content of the checksum field.
        let sum = Sum::default().add(&packet[ip_len..]).checksum();
        packet[ip_len + 16..ip_len + 18].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(packet, written(&header, b"odd"));
    }
}

#[test]
fn only_whole_packets_of_tcp_are_segments() {
    let v4 = written(&header(false, None, None), b"x");
    let v6 = written(&header(true, None, None), b"x");
    let changed = |packet: &[u8], at: usize, value: u8| {
        let mut packet = packet.to_vec();
        packet[at] = value;
        if packet[0] >> 4 == 4 {
            packet[10..12].fill(0);
            let len = (usize::from(packet[0] & 15) * 4).min(packet.len());
            let sum = Sum::default().add(&packet[..len]).checksum();
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        read(&packet, true)
    };
    assert!(matches!(changed(&v4, 1, 3), Packet::Segment(_)), "traffic class");
    for (at, value) in [
        (0, 0x44),
        (0, 0x4f),
        (0, 0x55),
        (3, 39),
        (3, 200),
        (6, 0x20),
        (7, 1),
        (9, 17),
        (32, 0x40),
        (32, 0xf0),
    ] {
        assert_eq!(changed(&v4, at, value), Packet::Malformed, "{at} {value:x}");
    }
    for (at, value) in [(0, 0x50), (5, 19), (5, 200), (6, 17), (6, 44), (6, 0), (52, 0x40)] {
        assert_eq!(changed(&v6, at, value), Packet::Malformed, "{at} {value:x}");
    }
    for n in 0..v4.len() {
        assert_eq!(read(&v4[..n], true), Packet::Malformed, "{n} of {}", v4.len());
    }
    for n in 0..v6.len() {
        assert_eq!(read(&v6[..n], true), Packet::Malformed, "{n} of {}", v6.len());
    }
    // An IPv4-mapped address in an IPv6 header.
    let mut mapped = v6.clone();
    mapped[8..24].copy_from_slice(&header(false, None, None).tuple.remote.to_be_bytes());
    assert_eq!(read(&mapped, true), Packet::Malformed);
}

#[test]
fn options_of_ip_are_skipped() {
    let v4 = written(&header(false, None, None), b"x");
    let mut packet = v4.clone();
    packet.splice(20..20, [1, 1, 1, 0]);
    packet[0] = 0x46;
    packet[3] += 4;
    packet[10..12].fill(0);
    let sum = Sum::default().add(&packet[..24]).checksum();
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    assert!(matches!(read(&packet, false), Packet::Segment(Segment { at: 44, len: 1, .. })));

    let mut packet = written(&header(true, None, None), b"x");
    // Hop-by-hop options, then 16 bytes of destination options.
    packet.splice(40..40, [[60, 0, 1, 4, 0, 0, 0, 0], [6, 1, 1, 12, 0, 0, 0, 0], [0; 8]].concat());
    packet[6] = 0;
    packet[5] += 24;
    assert!(matches!(read(&packet, false), Packet::Segment(Segment { at: 84, len: 1, .. })));
}

#[test]
fn options_of_tcp_are_read_as_far_as_they_are_sound() {
    for (bytes, expected) in [
        (&[][..], (None, None)),
        (&[2, 4, 5, 180], (Some(1460), None)),
        (&[1, 3, 3, 7], (None, Some(7))),
        (&[1, 3, 3, 15], (None, Some(14))),
        (&[4, 2, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0, 2, 4, 1, 0, 3, 3, 2], (Some(256), Some(2))),
        (&[0, 2, 4, 5, 180], (None, None)),
        (&[2, 4, 5], (None, None)),
        (&[2, 3, 5, 2, 4, 5, 180], (Some(1460), None)),
        (&[9, 1, 2, 4, 5, 180], (None, None)),
        (&[9, 0, 2, 4, 5, 180], (None, None)),
        (&[2], (None, None)),
    ] {
        let Options { mss, scale, .. } = options(bytes);
        assert_eq!((mss, scale), expected, "{bytes:?}");
    }
}
