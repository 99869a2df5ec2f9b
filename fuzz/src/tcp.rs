//! [`tcp::Tcp`] against a peer that sends whatever the input says: what is reported is the peer's stream, in order and once; what goes out
//! is ours, in packets without fault; and when all is closed and time has passed, nothing is left.

use std::net::SocketAddr;

use tcp::{Close, Link, Outgoing, Settings, Tcp, What};
use units::Nanos;

const PLACES: usize = 2;
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;
/// First number of the peer's stream: it wraps soon.
const PEER_FIRST: u32 = u32::MAX - 1000;
static TEXT: [u8; 5000] = [b's'; 5000];

/// Byte of a stream with this number.
fn byte(seq: u32) -> u8 {
    (seq ^ seq >> 8 ^ seq >> 16) as u8
}

/// A connection as its peer sees it.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// First number of ours, and the one behind the last that was sent.
    first: u32,
    sent: u32,
    /// What we expect of the peer.
    acked: u32,
    /// Numbers of the peer that were reported.
    read: u32,
    is_connected: bool,
    is_held: bool,
    ended: bool,
    port: u16,
}

struct Peer {
    seen: [Seen; PLACES],
    is_v6: bool,
    offloads: bool,
    last: Vec<u8>,
    packets: u64,
}

impl Peer {
    fn ends(&self, place: usize) -> (SocketAddr, SocketAddr) {
        let port = self.seen[place].port;
        match self.is_v6 {
            false => (([198, 18, 0, 1], port).into(), ([10, 0, 0, 1], 80).into()),
            true => {
                (([0x2001, 2, 0, 0, 0, 0, 0, 1], port).into(), ([0xfd00, 0, 0, 0, 0, 0, 0, 1], 80).into())
            }
        }
    }

    /// A packet of the peer: an IP header, and what follows it.
    fn packet(&self, place: usize, protocol: u8, body: &[u8]) -> Vec<u8> {
        let (to, from) = self.ends(place);
        let mut packet = match self.is_v6 {
            false => {
                let mut head = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0];
                head[2..4].copy_from_slice(&(20 + body.len() as u16).to_be_bytes());
                head
            }
            true => {
                let mut head = vec![0x60, 0, 0, 0, 0, 0, protocol, 64];
                head[4..6].copy_from_slice(&(body.len() as u16).to_be_bytes());
                head
            }
        };
        for end in [from, to] {
            match end {
                SocketAddr::V4(end) => packet.extend(end.ip().octets()),
                SocketAddr::V6(end) => packet.extend(end.ip().octets()),
            }
        }
        if !self.is_v6 {
            let sum = !fold(sum(&packet));
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        packet.extend(body);
        packet
    }

    fn segment(&self, place: usize, flags: u8, seq: u32, ack: u32, window: u16, len: usize) -> Vec<u8> {
        let (to, from) = self.ends(place);
        let mut tcp = Vec::new();
        tcp.extend(from.port().to_be_bytes());
        tcp.extend(to.port().to_be_bytes());
        tcp.extend(seq.to_be_bytes());
        tcp.extend(ack.to_be_bytes());
        // Options by the window's lowest bits, so that there are all.
        let options: &[u8] = match window & 3 {
            0 => &[],
            1 => &[2, 4, 1, 0],
            2 => &[2, 4, 5, 180, 1, 3, 3, 2],
            _ => &[4, 2, 3, 3],
        };
        let options = if flags & SYN == 0 { &[] } else { options };
        tcp.extend([(5 + options.len() as u8 / 4) << 4, flags]);
        tcp.extend(window.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(options);
        let first = seq.wrapping_add(u32::from(flags & SYN != 0));
        tcp.extend((0..len as u32).map(|nth| byte(first.wrapping_add(nth))));
        self.packet(place, 6, &tcp)
    }
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

impl Link for Peer {
    fn completes_checksums(&self) -> bool {
        self.offloads
    }

    fn largest(&self) -> usize {
        if self.offloads { 60_000 } else { 0 }
    }

    fn send(&mut self, packet: Outgoing<'_>) {
        self.packets += 1;
        let (ip, tcp) = packet.head.split_at(packet.ip_len);
        let len = tcp.len() + packet.payload.len();
        match self.is_v6 {
            false => {
                assert_eq!((ip.len(), ip[0], fold(sum(ip))), (20, 0x45, 0xffff));
                assert_eq!(usize::from(u16::from_be_bytes([ip[2], ip[3]])), 20 + len);
            }
            true => {
                assert_eq!((ip.len(), ip[0]), (40, 0x60));
                assert_eq!(usize::from(u16::from_be_bytes([ip[4], ip[5]])), len);
            }
        }
        if !self.offloads {
            let addresses = &ip[if self.is_v6 { 8 } else { 12 }..];
            assert_eq!(fold(sum(addresses) + 6 + len as u32 + sum(tcp) + sum(packet.payload)), 0xffff);
            assert_eq!(packet.segment_size, None);
        }
        let size = packet.segment_size.map_or(packet.payload.len(), usize::from);
        assert!(size + packet.head.len() <= 1500, "larger than the link");
        self.last = [packet.head, packet.payload].concat();
        let u32_at = |at: usize| u32::from_be_bytes(tcp[at..at + 4].try_into().expect("four bytes"));
        let (seq, ack, flags) = (u32_at(4), u32_at(8), tcp[13]);
        let port = u16::from_be_bytes([tcp[0], tcp[1]]);
        let Some(seen) = self.seen.iter_mut().find(|seen| seen.port == port) else { return };
        if flags & RST != 0 {
            return;
        }
        if flags == SYN {
            seen.first = seq;
        }
        let room = packet.payload.len() as u32 + u32::from(flags & SYN != 0) + u32::from(flags & FIN != 0);
        let end = seq.wrapping_add(room);
        if end.wrapping_sub(seen.first) > seen.sent.wrapping_sub(seen.first) || flags == SYN {
            assert!(
                seq.wrapping_sub(seen.first) <= seen.sent.wrapping_sub(seen.first) || flags == SYN,
                "a gap"
            );
            seen.sent = end;
        }
        if flags & ACK != 0 {
            seen.acked = ack;
        }
        let first = seen.first;
        for (nth, found) in packet.payload.iter().enumerate() {
            let position = seq.wrapping_add(nth as u32).wrapping_sub(first);
            assert!(*found == b's' || *found == byte(position), "byte {position} of ours");
        }
    }
}

struct Stage {
    tcp: Tcp,
    peer: Peer,
    now: Nanos,
    /// Bytes given to each connection, which places its own bytes.
    given: [u32; PLACES],
    /// A packet was not the driver's: bytes may be anything.
    is_wild: bool,
}

/// A peer's segments, and what a program does meanwhile, as commands; the first byte gives the version of IP, offloads and the window.
///
/// Each command is a byte: the lowest bit is the place, the others what happens; see [`Stage::command`] for what follows it.
pub(crate) fn segments(data: &[u8]) {
    let Some((options, mut data)) = data.split_first() else { return };
    let windows = [1_000, 10_000, 65_535, 1 << 20];
    let settings = Settings {
        places: PLACES as u32,
        secret: [1, 2],
        mtu: 1500,
        lingering: 1 + u32::from(options >> 4 & 3),
        window: windows[usize::from(options >> 2 & 3)],
    };
    let peer = Peer {
        seen: [Seen::default(); PLACES],
        is_v6: options & 1 != 0,
        offloads: options & 2 != 0,
        last: Vec::new(),
        packets: 0,
    };
    let now = Nanos::from_secs(1);
    let mut stage = Stage { tcp: Tcp::new(settings), peer, now, given: [0; PLACES], is_wild: false };
    for place in 0..PLACES {
        stage.connect(place);
    }
    while !data.is_empty() {
        let before = stage.peer.packets;
        stage.command(&mut data);
        stage.events();
        let sent = stage.peer.packets - before;
        assert!(sent < 6_000, "one thing came, and packets went out: {sent}");
    }
    stage.end();
}

fn take<const N: usize>(data: &mut &[u8]) -> [u8; N] {
    let mut taken = [0; N];
    let n = N.min(data.len());
    taken[..n].copy_from_slice(&data[..n]);
    *data = &data[n..];
    taken
}

impl Stage {
    fn connect(&mut self, place: usize) {
        let port = self.peer.seen[place].port.checked_add(1).unwrap_or(1);
        let port = if port < 1000 { 1000 + 1000 * place as u16 } else { port };
        self.peer.seen[place] =
            Seen { is_connected: true, port, read: PEER_FIRST.wrapping_add(1), ..Seen::default() };
        self.given[place] = 0;
        let (from, to) = self.peer.ends(place);
        let dialled = self.tcp.connect(place as u32, from, to, self.now, &mut self.peer);
        assert_eq!(dialled, Ok(()), "a tuple that was not used for long");
    }

    fn command(&mut self, data: &mut &[u8]) {
        let [command] = take(data);
        let place = usize::from(command & 1);
        let (id, now) = (place as u32, self.now);
        match command >> 1 & 15 {
            // A segment near what both expect.
            0..=5 => {
                let [flags, s0, s1, a0, a1, w0, w1, len] = take(data);
                let seen = self.peer.seen[place];
                // Where its stream begins is known only if it begins as this says.
                let (expected, delta) = match seen.acked {
                    0 => (PEER_FIRST, 0),
                    acked => (acked, i16::from_be_bytes([s0, s1])),
                };
                let seq = expected.wrapping_add_signed(i32::from(delta));
                let ack = seen.sent.wrapping_add_signed(i32::from(i16::from_be_bytes([a0, a1])));
                let len = usize::from(len) * if command & 64 == 0 { 1 } else { 200 };
                let window = u16::from_be_bytes([w0, w1]);
                let packet = self.peer.segment(place, flags, seq, ack, window, len);
                self.receive(&packet, true);
            }
            // Any packet.
            6 => {
                let [len] = take(data);
                let (packet, rest) = data.split_at(data.len().min(usize::from(len)));
                *data = rest;
                self.is_wild = true;
                self.receive(packet, command & 32 != 0);
            }
            // The body of a packet between the two ends.
            7 => {
                let [protocol, len] = take(data);
                let (body, rest) = data.split_at(data.len().min(usize::from(len)));
                *data = rest;
                self.is_wild = true;
                let packet = self.peer.packet(place, protocol, body);
                self.receive(&packet, true);
            }
            8 | 9 => self.send(place, take(data)),
            10 if command & 32 == 0 => {
                self.peer.seen[place].is_held = self.peer.seen[place].is_connected;
                self.tcp.hold(id);
            }
            10 => {
                self.peer.seen[place].is_held = false;
                self.tcp.resume(id);
            }
            11 => {
                let how = if command & 32 == 0 { Close::Graceful } else { Close::Reset };
                self.tcp.close(id, how, now, &mut self.peer);
                self.peer.seen[place].is_connected = false;
            }
            12 if !self.peer.seen[place].is_connected => self.connect(place),
            13 => {
                let [span] = take(data);
                self.pass(Nanos::from_millis(1 << (span % 18)));
            }
            14 => {
                let [kind, code, m0, m1] = take(data);
                let mut body = vec![kind, code, 0, 0, 0, 0, m0, m1];
                body.extend(&self.peer.last[..self.peer.last.len().min(60)]);
                let sum = !fold(sum(&body));
                body[2..4].copy_from_slice(&sum.to_be_bytes());
                let packet = self.peer.packet(place, if self.peer.is_v6 { 58 } else { 1 }, &body);
                self.receive(&packet, true);
            }
            _ => self.tcp.flush(now, &mut self.peer),
        }
    }

    fn send(&mut self, place: usize, [kind, len]: [u8; 2]) {
        let (id, now) = (place as u32, self.now);
        if kind & 1 == 0 {
            let len = usize::from(len) * 19;
            self.tcp.send_static(id, &TEXT[..len], now, &mut self.peer);
            self.given[place] = self.given[place].wrapping_add(len as u32);
        } else {
            let from = self.given[place].wrapping_add(1);
            let bytes: Vec<u8> = (0..u32::from(len) * 19).map(|nth| byte(from.wrapping_add(nth))).collect();
            self.tcp.send(id, &bytes, now, &mut self.peer);
            self.given[place] = self.given[place].wrapping_add(bytes.len() as u32);
        }
    }

    fn receive(&mut self, packet: &[u8], trusted: bool) {
        if let Some(event) = self.tcp.receive(packet, trusted, self.now, &mut self.peer) {
            let What::Bytes { at, len } = event.what else { panic!("{event:?} from receive") };
            self.read(event.place as usize, &packet[at as usize..][..len as usize]);
        }
    }

    /// Bytes that were reported are the next of the peer's stream.
    fn read(&mut self, place: usize, bytes: &[u8]) {
        let seen = &mut self.peer.seen[place];
        assert!(!bytes.is_empty() && seen.is_connected && !seen.is_held && !seen.ended);
        for found in bytes {
            assert!(self.is_wild || *found == byte(seen.read), "number {} of the peer", seen.read);
            seen.read = seen.read.wrapping_add(1);
        }
    }

    fn events(&mut self) {
        let mut buffer = [0; 700];
        while let Some(event) = self.tcp.next_event(&mut buffer) {
            let place = event.place as usize;
            let seen = &mut self.peer.seen[place];
            assert!(seen.is_connected, "{event:?} where nothing is connected");
            match event.what {
                What::Opened | What::Drained => {}
                What::Bytes { .. } => panic!("the packet is gone"),
                What::Kept { len } => self.read(place, &buffer[..len as usize]),
                What::Ended => {
                    assert!(!seen.ended, "it ends once");
                    seen.ended = true;
                }
                What::Gone(_) => seen.is_connected = false,
            }
        }
        assert!(self.tcp.blocked() <= PLACES);
    }

    fn pass(&mut self, span: Nanos) {
        let until = self.now + span;
        while self.tcp.wakes_at() <= until {
            self.now = self.now.max(self.tcp.wakes_at());
            self.tcp.expire(self.now, &mut self.peer);
            self.events();
        }
        self.now = until;
    }

    fn end(&mut self) {
        for place in 0..PLACES as u32 {
            self.tcp.close(place, Close::Graceful, self.now, &mut self.peer);
            self.peer.seen[place as usize].is_connected = false;
        }
        self.tcp.flush(self.now, &mut self.peer);
        self.pass(Nanos::from_secs(3600));
        let left = (self.tcp.in_flight(), self.tcp.lingering(), self.tcp.closing(), self.tcp.blocked());
        assert_eq!(left, (0, 0, 0, 0), "flights, lingering, closing, blocked");
    }
}
