//! Places and tuples: which are taken, free or lingering.

use std::net::SocketAddr;

use tcp::{Close, Refusal, Settings, Tcp, What, Why};
use units::Nanos;

use crate::script::Wire;
use crate::segment::{ACK, FIN, RST, SYN, Segment, ip_packet};

const NOW: Nanos = Nanos::from_secs(1);
const FIRST: u32 = 5_000;

fn tcp(places: u32, lingering: u32) -> (Tcp, Wire) {
    (Tcp::new(Settings { places, lingering, secret: [1, 2], ..Settings::default() }), Wire::default())
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// A peer's response to the last segment that was sent.
fn answer(wire: &mut Wire, flags: u8) -> Vec<u8> {
    let last = Segment::read(&wire.packets.pop_back().unwrap());
    wire.packets.clear();
    let room = last.payload.len() as u32 + u32::from(last.has(SYN)) + u32::from(last.has(FIN));
    let seq = if last.has(SYN) { FIRST } else { last.ack };
    let segment =
        Segment { from: last.to, to: last.from, seq, ack: last.seq.wrapping_add(room), flags, ..last };
    Segment { payload: Vec::new(), ..segment }.bytes()
}

fn open(tcp: &mut Tcp, wire: &mut Wire, place: u32, from: SocketAddr, to: SocketAddr) {
    tcp.connect(place, from, to, NOW, wire).unwrap();
    let packet = answer(wire, SYN | ACK);
    assert_eq!(tcp.receive(&packet, false, NOW, wire), None);
    assert_eq!(tcp.next_event(&mut [0]).map(|event| (event.place, event.what)), Some((place, What::Opened)));
    tcp.flush(NOW, wire);
}

#[test]
fn a_tuple_is_in_use_until_time_wait_is_over() {
    let (mut tcp, mut wire) = tcp(2, 8);
    let (from, to) = (address("198.18.0.1:1000"), address("10.0.0.1:80"));
    let dial = |tcp: &mut Tcp, at: u64| tcp.connect(1, from, to, Nanos::from_secs(at), &mut Wire::default());
    tcp.connect(0, from, to, NOW, &mut wire).unwrap();
    assert_eq!(dial(&mut tcp, 1), Err(Refusal::InUse), "SYN-SENT");
    tcp.close(0, Close::Graceful, NOW, &mut wire);
    open(&mut tcp, &mut wire, 0, from, to);
    assert_eq!(dial(&mut tcp, 1), Err(Refusal::InUse), "ESTABLISHED");
    tcp.close(0, Close::Graceful, NOW, &mut wire);
    assert_eq!(
        (dial(&mut tcp, 1), tcp.closing(), tcp.lingering()),
        (Err(Refusal::InUse), 1, 1),
        "FIN-WAIT-1"
    );
    let packet = answer(&mut wire, FIN | ACK);
    tcp.receive(&packet, false, NOW, &mut wire);
    assert_eq!((dial(&mut tcp, 1), tcp.closing(), tcp.lingering()), (Err(Refusal::InUse), 0, 1), "TIME-WAIT");
    assert!(tcp.wakes_at() <= Nanos::from_secs(61), "a minute later");
    tcp.expire(Nanos::from_millis(60_999), &mut wire);
    assert_eq!((dial(&mut tcp, 60), tcp.lingering()), (Err(Refusal::InUse), 1));
    tcp.expire(Nanos::from_secs(61), &mut wire);
    assert_eq!((dial(&mut tcp, 61), tcp.lingering()), (Ok(()), 0));
    // Another address, port or destination makes another connection.
    for (from, to) in [
        ("198.18.0.2:1000", "10.0.0.1:80"),
        ("198.18.0.1:1001", "10.0.0.1:80"),
        ("198.18.0.1:1000", "10.0.0.1:81"),
    ] {
        tcp.connect(0, address(from), address(to), NOW, &mut wire).unwrap();
        tcp.close(0, Close::Reset, NOW, &mut wire);
    }
    for (from, to) in
        [("198.18.0.2:1000", "[fd00::1]:80"), ("198.18.0.1:0", "10.0.0.1:80"), ("[fd00::1]:1", "[fd00::2]:0")]
    {
        assert_eq!(
            tcp.connect(0, address(from), address(to), NOW, &mut wire),
            Err(Refusal::Address),
            "{from} {to}"
        );
    }
}

#[test]
fn what_lingers_has_a_budget() {
    let (mut tcp, mut wire) = tcp(8, 2);
    let to = address("10.0.0.1:80");
    let from = |nth: u32| address(&format!("198.18.0.1:{}", 1000 + nth));
    for place in 0..5 {
        open(&mut tcp, &mut wire, place, from(place), to);
    }
    // Two are closed: one is in TIME-WAIT, the other waits for an acknowledgement.
    tcp.close(0, Close::Graceful, NOW, &mut wire);
    let packet = answer(&mut wire, FIN | ACK);
    tcp.receive(&packet, false, NOW, &mut wire);
    tcp.close(1, Close::Graceful, NOW, &mut wire);
    assert_eq!((tcp.lingering(), tcp.closing(), tcp.counts().cut_short), (2, 1, 0));
    // The third takes the entry of the one in TIME-WAIT, whose tuple becomes free.
    wire.packets.clear();
    tcp.close(2, Close::Graceful, NOW, &mut wire);
    assert!(Segment::read(&wire.packets[0]).has(FIN));
    assert_eq!((tcp.lingering(), tcp.closing(), tcp.counts().cut_short), (2, 2, 1));
    tcp.connect(0, from(0), to, NOW, &mut wire).unwrap();
    // There is no entry for the fourth, which is reset.
    wire.packets.clear();
    tcp.close(3, Close::Graceful, NOW, &mut wire);
    assert!(Segment::read(&wire.packets[0]).has(RST));
    assert_eq!((tcp.lingering(), tcp.counts().cut_short), (2, 2));
    // Free tuples can be dialled, the others cannot.
    for (nth, expected) in [(1, Err(Refusal::InUse)), (2, Err(Refusal::InUse)), (3, Ok(()))] {
        assert_eq!(tcp.connect(3, from(nth), to, NOW, &mut wire), expected, "{nth}");
    }
}

#[test]
fn events_of_a_closed_place_are_not_reported_for_the_next() {
    let (mut tcp, mut wire) = tcp(1, 8);
    let (from, to) = (address("[2001:2::1]:1000"), address("[fd00::1]:80"));
    tcp.connect(0, from, to, NOW, &mut wire).unwrap();
    let refusal = answer(&mut wire, RST | ACK);
    tcp.receive(&refusal, false, NOW, &mut wire);
    tcp.close(0, Close::Graceful, NOW, &mut wire);
    tcp.connect(0, from, to, NOW, &mut wire).unwrap();
    assert_eq!(tcp.next_event(&mut [0]), None, "the first was refused, not this one");
    let refusal = answer(&mut wire, RST | ACK);
    tcp.receive(&refusal, false, NOW, &mut wire);
    let event = tcp.next_event(&mut [0]).unwrap();
    assert_eq!((event.place, event.what), (0, What::Gone(Why::Refused)));
    assert_eq!(tcp.next_event(&mut [0]), None);
    // The place is free again, and closing it does nothing.
    wire.packets.clear();
    tcp.close(0, Close::Reset, NOW, &mut wire);
    tcp.send(0, b"nobody", NOW, &mut wire);
    assert!(wire.packets.is_empty());
    tcp.connect(0, from, to, NOW, &mut wire).unwrap();
}

/// Two ends that disagree must not loop forever, and no attacker may make this end send as much as it does.
#[test]
fn challenges_are_limited() {
    let (mut tcp, mut wire) = tcp(1, 8);
    open(&mut tcp, &mut wire, 0, address("198.18.0.1:1000"), address("10.0.0.1:80"));
    let ours = Segment::read(&wire.packets[0]);
    wire.packets.clear();
    let reset = Segment { from: ours.to, to: ours.from, seq: ours.ack + 9, ack: 0, flags: RST, ..ours };
    for _ in 0..5000 {
        tcp.receive(&reset.bytes(), false, NOW, &mut wire);
    }
    let counts = *tcp.counts();
    assert_eq!((wire.packets.len(), counts.challenges, counts.challenges_withheld), (1000, 1000, 4000));
    tcp.receive(&reset.bytes(), false, Nanos::from_secs(2), &mut wire);
    assert_eq!(wire.packets.len(), 1001, "another second");
}

#[test]
fn a_peer_is_heard_in_segments_of_its_connections_alone() {
    let (mut tcp, mut wire) = tcp(2, 8);
    let (from, to) = (address("198.18.0.1:1000"), address("10.0.0.1:80"));
    tcp.connect(0, from, to, NOW, &mut wire).unwrap();
    let syn = Segment::read(wire.packets.back().unwrap());
    assert_eq!(tcp.heard(), Nanos::ZERO);
    let at = Nanos::from_secs;
    tcp.receive(&answer(&mut wire, SYN | ACK), false, at(2), &mut wire);
    assert_eq!(tcp.heard(), at(2));
    // A packet that kernels send to new devices, and a segment of no connection.
    let solicitation = ip_packet("fe80::1".parse().unwrap(), "ff02::2".parse().unwrap(), 58, &[133; 8]);
    tcp.receive(&solicitation, true, at(3), &mut wire);
    let stray = Segment { from: syn.to, to: address("198.18.0.9:1"), flags: ACK, ..syn.clone() };
    tcp.receive(&stray.bytes(), false, at(4), &mut wire);
    assert_eq!((tcp.heard(), tcp.counts().packets_in, tcp.counts().not_ours), (at(2), 3, 1));
    // Another handshake says nothing about open connections; a segment of an open one does.
    tcp.connect(1, address("198.18.0.1:1001"), to, at(5), &mut wire).unwrap();
    tcp.receive(&answer(&mut wire, SYN | ACK), false, at(5), &mut wire);
    assert_eq!((tcp.heard(), tcp.heard_open()), (at(5), at(2)));
    let (seq, ack) = (FIRST + 1, syn.seq.wrapping_add(1));
    let more = Segment { from: syn.to, to: syn.from, seq, ack, flags: ACK, ..syn };
    tcp.receive(&more.bytes(), false, at(6), &mut wire);
    assert_eq!((tcp.heard(), tcp.heard_open()), (at(6), at(6)));
    // Nor does the end of a connection that was closed here.
    tcp.close(0, Close::Graceful, at(6), &mut wire);
    tcp.receive(&answer(&mut wire, ACK), false, at(7), &mut wire);
    assert_eq!((tcp.heard(), tcp.heard_open()), (at(6), at(6)));
}
