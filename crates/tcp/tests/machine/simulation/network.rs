//! The link of a simulation.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use tcp::{Link, Outgoing};
use units::Random;

use crate::segment::{ACK, FIN, PSH, Segment};

/// Maximum consecutive packets of one direction of a connection that are lost or damaged, so that connections end before timeouts do.
const MOST_LOST: u32 = 3;

/// What happens to packets, in percent, and their delays, in milliseconds.
#[derive(Clone, Debug)]
pub(crate) struct Weather {
    pub(crate) lost: u64,
    pub(crate) repeated: u64,
    pub(crate) damaged: u64,
    pub(crate) joined: u64,
    pub(crate) delay: (u64, u64),
    /// Whether the link segments large packets and completes checksums.
    pub(crate) offloads: bool,
}

/// What happens to a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Lost,
    Damaged,
    Whole,
}

/// A packet to the machine, or a segment to a server.
pub(crate) enum Delivery {
    Packet(Vec<u8>),
    Segment(Segment),
}

/// The packets in transit.
pub(crate) struct Network {
    pub(crate) weather: Weather,
    random: Random,
    now: u64,
    /// By time of arrival, then by order of sending.
    under_way: BTreeMap<(u64, u64), Delivery>,
    count: u64,
    lost: HashMap<(SocketAddr, SocketAddr), u32>,
    /// Number of packets that the link has segmented.
    pub(crate) cut: u64,
    /// The MTU; no larger packet may be sent.
    pub(crate) mtu: usize,
}

impl Network {
    pub(crate) fn new(weather: Weather, mtu: usize, seed: u64) -> Network {
        Network {
            weather,
            random: Random::new(seed),
            now: 0,
            under_way: BTreeMap::new(),
            count: 0,
            lost: HashMap::new(),
            cut: 0,
            mtu,
        }
    }

    pub(crate) fn at(&mut self, now: u64) -> &mut Network {
        self.now = now;
        self
    }

    pub(crate) fn next(&self) -> u64 {
        self.under_way.first_key_value().map_or(u64::MAX, |((at, _), _)| *at)
    }

    pub(crate) fn take(&mut self, now: u64) -> Option<Delivery> {
        let entry = self.under_way.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(entry.remove())
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    fn fate(&mut self, ends: (SocketAddr, SocketAddr), damaged: u64) -> Fate {
        let fate = match (self.chance(self.weather.lost), self.chance(damaged)) {
            (true, _) => Fate::Lost,
            (_, true) => Fate::Damaged,
            _ => Fate::Whole,
        };
        let in_a_row = self.lost.entry(ends).or_default();
        let fate = if *in_a_row < MOST_LOST { fate } else { Fate::Whole };
        *in_a_row = if fate == Fate::Whole { 0 } else { *in_a_row + 1 };
        fate
    }

    fn put(&mut self, delivery: Delivery) {
        let at = self.now + self.random.between(self.weather.delay.0, self.weather.delay.1);
        self.count += 1;
        self.under_way.insert((at, self.count), delivery);
    }

    /// Accepts the segments that a server has sent.
    pub(crate) fn server_sent(&mut self, out: Vec<Segment>) {
        let mut segments: Vec<Segment> = Vec::new();
        for segment in out {
            match segments.last_mut() {
                Some(last) if joins(last, &segment) && self.chance(self.weather.joined) => {
                    last.payload.extend(&segment.payload);
                    last.flags |= segment.flags;
                    (last.ack, last.window) = (segment.ack, segment.window);
                }
                _ => segments.push(segment),
            }
        }
        for segment in segments {
            let fate = self.fate((segment.from, segment.to), self.weather.damaged);
            if fate == Fate::Lost {
                continue;
            }
            let mut bytes = segment.bytes();
            if self.chance(self.weather.repeated) {
                self.put(Delivery::Packet(bytes.clone()));
            }
            if fate == Fate::Damaged {
                let at = self.random.below(bytes.len() as u64) as usize;
                match self.chance(50) {
                    true => bytes.truncate(at),
                    false => bytes[at] ^= 1 << self.random.below(8),
                }
            }
            self.put(Delivery::Packet(bytes));
        }
    }

    /// Injects a forged packet.
    pub(crate) fn inject(&mut self, segment: &Segment) {
        self.put(Delivery::Packet(segment.bytes()));
    }

    fn client_sent(&mut self, segment: Segment) {
        if self.fate((segment.from, segment.to), 0) == Fate::Lost {
            return;
        }
        if self.chance(self.weather.repeated) {
            self.put(Delivery::Segment(segment.clone()));
        }
        self.put(Delivery::Segment(segment));
    }
}

fn joins(a: &Segment, b: &Segment) -> bool {
    let is_plain = |segment: &Segment| segment.flags & !(ACK | PSH) == 0 && !segment.payload.is_empty();
    let is_next = a.seq.wrapping_add(a.payload.len() as u32) == b.seq;
    is_plain(a) && is_plain(b) && is_next && (a.from, a.to) == (b.from, b.to) && a.payload.len() < 30_000
}

impl Link for Network {
    fn completes_checksums(&self) -> bool {
        self.weather.offloads
    }

    fn largest(&self) -> usize {
        if self.weather.offloads { 60_000 } else { 0 }
    }

    fn send(&mut self, packet: Outgoing<'_>) {
        let mut head = packet.head.to_vec();
        assert!(packet.ip_len == if head[0] == 0x45 { 20 } else { 40 });
        if self.weather.offloads {
            complete(&mut head, packet.ip_len, packet.payload);
        }
        let whole = Segment::read(&[&head[..], packet.payload].concat());
        let size = packet.segment_size.map_or(packet.payload.len().max(1), usize::from);
        assert!(
            head.len() + size.min(packet.payload.len()) <= self.mtu,
            "a packet that the link cannot take"
        );
        if packet.payload.len() <= size {
            return self.client_sent(whole);
        }
        self.cut += 1;
        for (nth, payload) in whole.payload.chunks(size).enumerate() {
            let is_last = (nth + 1) * size >= whole.payload.len();
            self.client_sent(Segment {
                seq: whole.seq.wrapping_add((nth * size) as u32),
                flags: if is_last { whole.flags } else { whole.flags & !(PSH | FIN) },
                payload: payload.to_vec(),
                ..whole.clone()
            });
        }
    }
}

/// Completes the checksum as a network card does: sums from the TCP header on, including the content of the checksum field.
fn complete(head: &mut [u8], ip_len: usize, payload: &[u8]) {
    let tcp = [&head[ip_len..], payload].concat();
    let mut sum: u32 =
        tcp.chunks(2).map(|p| u32::from(p[0]) << 8 | p.get(1).map_or(0, |b| u32::from(*b))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    head[ip_len + 16..ip_len + 18].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}
