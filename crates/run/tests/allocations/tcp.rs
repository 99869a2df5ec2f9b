//! [`tcp::Tcp`] allocates nothing once it has reached its maximum of concurrent work: with connections dialled, requests, responses in
//! order and out of order, holds, losses and closes.

use std::net::SocketAddr;

use tcp::{Close, Link, Outgoing, Settings, Tcp, What};
use units::Nanos;

use super::{switched, take_count};

const CONNECTIONS: u32 = 200;
const ROUNDS: u64 = 40;
const REQUEST: &[u8] = &[b'q'; 100];
const RESPONSE: usize = 200;
const SYN: u8 = 2;
const FIN: u8 = 1;
const ACK: u8 = 16;
const HEADS: usize = 40;

/// A stateless peer: it answers each segment by its content. Its packets are in a queue of fixed size.
struct Peer {
    queue: Box<[([u8; HEADS + RESPONSE], usize)]>,
    len: usize,
    /// Responses come in two halves, the second one first.
    swaps: bool,
    /// Loses every nth segment.
    loses: usize,
    nth: usize,
}

impl Peer {
    /// Answers with a segment; `seq` and `ack` are the peer's.
    fn answer(&mut self, to: &[u8], flags: u8, seq: u32, ack: u32, len: usize) {
        let (packet, used) = &mut self.queue[self.len];
        self.len += 1;
        *used = HEADS + len;
        packet[..HEADS].fill(0);
        (packet[0], packet[8], packet[9]) = (0x45, 64, 6);
        packet[2..4].copy_from_slice(&(*used as u16).to_be_bytes());
        packet[12..16].copy_from_slice(&to[16..20]);
        packet[16..20].copy_from_slice(&to[12..16]);
        let sum: u32 = packet[..20].chunks(2).map(|p| u32::from(p[0]) << 8 | u32::from(p[1])).sum();
        let sum = !(((sum & 0xffff) + (sum >> 16)) as u16);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet[20..22].copy_from_slice(&to[22..24]);
        packet[22..24].copy_from_slice(&to[20..22]);
        packet[24..28].copy_from_slice(&seq.to_be_bytes());
        packet[28..32].copy_from_slice(&ack.to_be_bytes());
        (packet[32], packet[33]) = (0x50, flags);
        packet[34..36].copy_from_slice(&60_000u16.to_be_bytes());
    }
}

impl Link for Peer {
    fn completes_checksums(&self) -> bool {
        true
    }

    fn largest(&self) -> usize {
        0
    }

    fn send(&mut self, packet: Outgoing<'_>) {
        let head = packet.head;
        let u32_at = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
        let (seq, ack, flags) = (u32_at(24), u32_at(28), head[33]);
        self.nth += 1;
        if self.loses > 0 && self.nth.is_multiple_of(self.loses) {
            return;
        }
        let len = packet.payload.len() as u32;
        match flags & (SYN | FIN) {
            SYN => self.answer(head, SYN | ACK, 7, seq.wrapping_add(1), 0),
            FIN => self.answer(head, FIN | ACK, ack, seq.wrapping_add(len + 1), 0),
            _ if len > 0 && self.swaps => {
                let half = RESPONSE / 2;
                self.answer(head, ACK, ack.wrapping_add(half as u32), seq.wrapping_add(len), half);
                self.answer(head, ACK, ack, seq.wrapping_add(len), half);
            }
            _ if len > 0 => self.answer(head, ACK, ack, seq.wrapping_add(len), RESPONSE),
            _ => {}
        }
    }
}

struct Load {
    tcp: Tcp,
    peer: Peer,
    now: Nanos,
    port: u16,
    received: u64,
}

impl Load {
    fn connect(&mut self, place: u32) {
        // More ports than connections that stay in TIME_WAIT for a minute, before the same tuples are used again.
        self.port = if self.port > 40_000 { 1024 } else { self.port + 1 };
        let from = SocketAddr::from(([198, 18, 0, 1], self.port));
        self.tcp.connect(place, from, ([10, 0, 0, 1], 80).into(), self.now, &mut self.peer).unwrap();
    }

    /// Delivers the peer's answers until there are none left.
    fn deliver(&mut self) {
        let mut buffer = [0; 512];
        while self.peer.len > 0 {
            for nth in 0..std::mem::take(&mut self.peer.len) {
                // A copy, since answers to it are written meanwhile.
                let (packet, len) = self.peer.queue[nth];
                let event = self.tcp.receive(&packet[..len], true, self.now, &mut self.peer);
                if let Some(What::Bytes { len, .. }) = event.map(|event| event.what) {
                    self.received += u64::from(len);
                }
                while let Some(event) = self.tcp.next_event(&mut buffer) {
                    match event.what {
                        What::Kept { len } => self.received += u64::from(len),
                        What::Opened => {}
                        other => panic!("{other:?}"),
                    }
                }
            }
        }
        while let Some(event) = self.tcp.next_event(&mut buffer) {
            let What::Kept { len } = event.what else { panic!("{event:?}") };
            self.received += u64::from(len);
        }
        self.tcp.flush(self.now, &mut self.peer);
    }

    /// A request on each connection, answered in a different way each round; then some are closed and redialled.
    fn round(&mut self, round: u64) {
        self.peer.swaps = round % 4 == 1;
        self.peer.loses = if round % 4 == 2 { 5 } else { 0 };
        for place in 0..CONNECTIONS {
            if round % 4 == 3 {
                self.tcp.hold(place);
            }
            self.tcp.send(place, REQUEST, self.now, &mut self.peer);
            // The peer's queue is short.
            if place % 20 == 19 {
                self.deliver();
            }
        }
        for place in 0..CONNECTIONS {
            self.tcp.resume(place);
        }
        self.deliver();
        // Lost segments are retransmitted.
        self.peer.loses = 0;
        for _ in 0..8 {
            self.now = self.now + Nanos::from_millis(300);
            self.tcp.expire(self.now, &mut self.peer);
            self.deliver();
        }
        let how = if round.is_multiple_of(2) { Close::Graceful } else { Close::Reset };
        for place in 0..20 {
            self.tcp.close(place, how, self.now, &mut self.peer);
        }
        self.deliver();
        (0..20).for_each(|place| self.connect(place));
        self.deliver();
        self.now = self.now + Nanos::from_secs(10);
        self.tcp.expire(self.now, &mut self.peer);
    }
}

#[test]
fn a_tcp_allocates_nothing_once_it_is_warm() {
    let settings = Settings { places: CONNECTIONS, lingering: 300, secret: [1, 2], ..Settings::default() };
    let peer = Peer {
        queue: vec![([0; HEADS + RESPONSE], 0); 1000].into_boxed_slice(),
        len: 0,
        swaps: false,
        loses: 0,
        nth: 0,
    };
    let now = Nanos::from_secs(1);
    let mut load = Load { tcp: Tcp::new(settings), peer, now, port: 1024, received: 0 };
    for place in 0..CONNECTIONS {
        load.connect(place);
    }
    load.deliver();
    (0..ROUNDS).for_each(|round| load.round(round));
    let counts = *load.tcp.counts();
    assert!(counts.retransmitted > 100 && counts.out_of_order > 1000, "{counts:?}");
    assert!(load.tcp.lingering() > 20, "closes linger: {}", load.tcp.lingering());
    let before = load.received;
    switched(true, || (0..ROUNDS).for_each(|round| load.round(round)));
    let (count, first) = take_count();
    assert_eq!(load.received - before, ROUNDS * u64::from(CONNECTIONS) * RESPONSE as u64);
    assert_eq!(count, 0, "allocations, the first at\n{first}");
}
