//! Connections over a simulated device: what the watch reports, and how connections end when the shard is dropped.

use std::{cell::RefCell, rc::Rc};

use super::*;

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;
/// Length of an IPv4 header, in bytes.
const HEAD: usize = 20;

/// The behaviour of the far end.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Far {
    /// Accepts, and closes when it reads the end.
    Closes,
    /// Accepts, and never closes.
    Stays,
    /// Responds to the SYN with ICMP port unreachable.
    Rejects,
}

/// The TCP flags of the packets that were sent.
type Sent = Rc<RefCell<Vec<u8>>>;

/// A server that only reacts to the packets that it receives. Time passes with each sent packet (`each`), and while waiting without
/// packets.
struct Wire {
    far: Far,
    now: Nanos,
    each: Nanos,
    replies: VecDeque<Vec<u8>>,
    sent: Sent,
}

/// The complement of the sum of 16-bit words (RFC 1071).
fn checksum(bytes: &[u8]) -> [u8; 2] {
    let sum: u32 = bytes.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    (!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes()
}

impl Wire {
    /// Queues a packet to the source of the packet with this head.
    fn reply(&mut self, head: &[u8], protocol: u8, body: &[u8]) {
        let mut packet = vec![0; HEAD];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&((HEAD + body.len()) as u16).to_be_bytes());
        packet[8..10].copy_from_slice(&[64, protocol]);
        packet[12..16].copy_from_slice(&head[16..20]);
        packet[16..20].copy_from_slice(&head[12..16]);
        let sum = checksum(&packet);
        packet[10..12].copy_from_slice(&sum);
        packet.extend(body);
        self.replies.push_back(packet);
    }

    fn segment(&mut self, head: &[u8], flags: u8, (seq, ack): (u32, u32)) {
        let mut body = [&head[22..24], &head[20..22]].concat();
        body.extend(seq.to_be_bytes());
        body.extend(ack.to_be_bytes());
        body.extend([5 << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
        self.reply(head, 6, &body);
    }

    /// Queues an ICMP port unreachable about the packet with this head.
    fn reject(&mut self, head: &[u8]) {
        let mut body = [&[3, 3, 0, 0, 0, 0, 0, 0][..], &head[..HEAD + 8]].concat();
        let sum = checksum(&body);
        body[2..4].copy_from_slice(&sum);
        self.reply(head, 1, &body);
    }
}

impl Device for Wire {
    fn read(&mut self, into: &mut [u8]) -> Option<Incoming> {
        let packet = self.replies.pop_front()?;
        into[..packet.len()].copy_from_slice(&packet);
        Some(Incoming { at: 0, end: packet.len(), is_trusted: true })
    }

    fn write(&mut self, packet: &tcp::Outgoing) -> bool {
        let head = packet.head;
        let number = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
        let (flags, ours, next) = (head[33], number(28), number(24).wrapping_add(1));
        self.now = self.now + self.each;
        self.sent.borrow_mut().push(flags);
        match (flags & (SYN | FIN), self.far) {
            (SYN, Far::Rejects) => self.reject(head),
            (SYN, _) => self.segment(head, SYN | ACK, (7, next)),
            (FIN, Far::Stays) => self.segment(head, ACK, (ours, next)),
            (FIN, _) => self.segment(head, FIN | ACK, (ours, next)),
            _ => {}
        }
        true
    }

    fn wait(&mut self, until: Nanos) {
        if self.replies.is_empty() {
            self.now = self.now.max(until);
        }
    }

    fn nap(&mut self, time: Nanos) {
        self.now = self.now + time;
    }

    fn now(&self) -> Nanos {
        self.now
    }
}

/// Makes `count` dials; returns their results too.
fn dialled(count: u32, far: Far, each: Nanos) -> (Tun<Wire>, Sent, Vec<What>) {
    let sent = Sent::default();
    let wire = Wire { far, now: Nanos::from_secs(5), each, replies: VecDeque::new(), sent: sent.clone() };
    let to: SocketAddr = "192.0.2.9:80".parse().unwrap();
    let settings = Settings {
        connections: count,
        networks: vec![("198.18.0.0".parse().unwrap(), 24)],
        destinations: vec![to],
        mtu: mtu::USUAL,
        secret: [1, 2],
        watch: Arc::default(),
    };
    let mut tun = Tun::new(wire, settings);
    for index in 0..count {
        let from = SocketAddr::new("198.18.0.1".parse().unwrap(), 1024 + index as u16);
        tun.dial(Key { index, turn: 0 }, from, to);
    }
    let mut scratch = Scratch::new(false);
    let mut came = Vec::new();
    while came.len() < count as usize {
        tun.wait(tun.now(), &mut scratch);
        came.extend(std::iter::from_fn(|| tun.next()).map(|done| done.what));
    }
    (tun, sent, came)
}

/// Counted in the turn that reports the failed dials, because a run may end right after it.
#[test]
fn messages_of_icmp_are_told_with_the_dials_that_they_end() {
    let (tun, _, came) = dialled(20, Far::Rejects, Nanos::ZERO);
    assert!(came.iter().all(|what| matches!(what, What::Gone(Gone::Refused))), "{came:?}");
    assert_eq!(tun.watch.icmp(), 20);
}

#[test]
fn what_is_open_ends_as_sockets_do() {
    let check = |far, count: u32, each, expected: (u32, u32)| {
        let (mut tun, sent, came) = dialled(count, far, Nanos::ZERO);
        assert!(came.iter().all(|what| matches!(what, What::Dialled)), "{came:?}");
        sent.borrow_mut().clear();
        tun.port.device.each = each;
        drop(tun);
        let with = |flag: u8| sent.borrow().iter().filter(|flags| **flags & flag != 0).count() as u32;
        assert_eq!((with(FIN), with(RST)), expected, "{far:?}, {count}");
    };
    check(Far::Closes, 3, Nanos::ZERO, (3, 0));
    check(Far::Closes, 2_000, Nanos::ZERO, (2_000, 0));
    // The peer acknowledges the FIN and never closes: dropping waits for it, but sends nothing more.
    check(Far::Stays, 3, Nanos::ZERO, (3, 0));
    // When the time is up, only the connections of one turn have been closed; the others are reset.
    let few = (PACKETS / 2) as u32;
    check(Far::Closes, few + 44, Nanos::from_millis(10), (few, 44));
}
