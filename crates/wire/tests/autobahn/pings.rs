//! Chapter 2: pings and pongs.

use crate::endpoint::{echoes, fails, ping, pong};

#[test]
fn autobahn_2_1_to_2_6_a_ping() {
    let bytes = [0x00, 0xFF, 0xFE, 0xFD, 0xFC, 0xFB, 0x00, 0xFF];
    echoes("2.1", &[ping("")], &[pong("")]);
    echoes("2.2", &[ping("Hello, world!")], &[pong("Hello, world!")]);
    echoes("2.3", &[ping(bytes)], &[pong(bytes)]);
    echoes("2.4", &[ping([0xFE; 125])], &[pong([0xFE; 125])]);
    fails("2.5", &[ping([0xFE; 126])], &[], 1002);
    echoes("2.6", &[ping([0xFE; 125])], &[pong([0xFE; 125])]);
}

#[test]
fn autobahn_2_7_to_2_9_unsolicited_pongs() {
    let payload = "unsolicited pong payload";
    echoes("2.7", &[pong("")], &[]);
    echoes("2.8", &[pong(payload)], &[]);
    echoes("2.9", &[pong(payload), ping("ping payload")], &[pong("ping payload")]);
}

#[test]
fn autobahn_2_10_and_2_11_ten_pings() {
    let payload = |nth: u32| format!("payload-{nth}");
    let pings: Vec<_> = (0..10).map(|nth| ping(payload(nth))).collect();
    let pongs: Vec<_> = (0..10).map(|nth| pong(payload(nth))).collect();
    echoes("2.10", &pings, &pongs);
    echoes("2.11", &pings, &pongs);
}
