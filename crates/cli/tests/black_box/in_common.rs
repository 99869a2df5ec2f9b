//! What slow, wrong and missing responses have in common: servers that are slow or wrong for a single reason.

use std::{
    net::{SocketAddr, TcpListener},
    thread::sleep,
    time::{Duration, Instant},
};

use crate::{
    scripted::{Peer, Scripted, ok},
    summary::{Summary, run},
};

/// Far longer than a response takes on a machine that others use, too.
const SLOW: Duration = Duration::from_millis(600);
/// Connections, each of which sends a request every 50 ms on average: threads of the server are slow ones.
const LOAD: [&str; 8] =
    ["-c", "48", "--think", "25ms..75ms", "-d", "5s", "--threshold", "latency_us.p99 < 10ms"];

/// The same of more connections: what is tied to a connection takes many of them to show.
const MANY: [&str; 8] =
    ["-c", "96", "--think", "25ms..75ms", "-d", "5s", "--threshold", "latency_us.p99 < 10ms"];

/// What is said: the dimension, and the sentence with its numbers of milliseconds and percent as `#`.
fn said(s: &Summary, of: &str) -> (String, String) {
    let all = s.at("in_common").as_array().expect("something is said");
    let one = all.iter().find(|one| one["of"] == of).expect("of this share");
    assert!(one["p"].as_f64().unwrap() < 1e-4, "{one}");
    assert!(!one["rows"].as_array().unwrap().is_empty(), "{one}");
    let sentence = one["sentence"].as_str().unwrap();
    let words: Vec<&str> = sentence.split(' ').collect();
    let is_measured = |at: usize| {
        let unit = words.get(at + 1).map_or("", |unit| unit.trim_end_matches(','));
        ["%", "ms", "s"].contains(&unit) && words[at].parse::<f64>().is_ok()
    };
    let words = (0..words.len()).map(|at| if is_measured(at) { "#" } else { words[at] });
    (one["dimension"].as_str().unwrap().to_owned(), words.collect::<Vec<_>>().join(" "))
}

/// The verdict of a failed threshold on latency ends with it.
fn check_verdict(s: &Summary, start: &str) {
    let sentence = s.at("in_common")[0]["sentence"].as_str().unwrap();
    assert_eq!(s.text("verdict"), "fail");
    assert!(s.text("headline").ends_with(&format!("; to find out: {start}: {sentence}")), "{s:?}");
}

/// A server that takes a while for some responses.
fn slow(is_slow: impl Fn(&Peer, u64) -> bool + Send + Sync + 'static) -> Scripted {
    Scripted::start(move |peer| responding(peer, &is_slow))
}

fn responding(peer: &mut Peer, is_slow: impl Fn(&Peer, u64) -> bool) {
    for nth in 1.. {
        if peer.request().is_none() {
            return;
        }
        if is_slow(peer, nth) {
            sleep(SLOW);
        }
        if !peer.send(&ok("hello")) {
            return;
        }
    }
}

#[test]
fn the_slow_went_to_one_of_three_destinations() {
    let listeners: Vec<TcpListener> = loop {
        let first = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = first.local_addr().unwrap().port();
        let others = [2, 3].map(|nth| TcpListener::bind(SocketAddr::from(([127, 0, 0, nth], port))));
        if let [Ok(second), Ok(third)] = others {
            break vec![first, second, third];
        }
    };
    let servers: Vec<Scripted> = (0..)
        .zip(listeners)
        .map(|(nth, listener)| Scripted::at(listener, move |peer| responding(peer, |_, _| nth == 2)))
        .collect();
    let port = servers[0].address.port();
    let (ended, s) = run(&format!("http://127.0.0.{{1..3}}:{port}/"), &MANY);
    let sentence = format!("all of the # % that took # ms went to 127.0.0.3:{port}");
    assert_eq!(said(&s, "slow"), ("destination".to_owned(), sentence));
    check_verdict(&s, "start from what they have in common");
    let table = format!("\n                127.0.0.3:{port} ");
    assert!(
        ended.stderr.contains("  in common     all of the ") && ended.stderr.contains(&table),
        "{ended:?}"
    );
}

#[test]
fn the_slow_are_on_every_eighth_connection() {
    let server = slow(|peer, _| peer.number % 8 == 0);
    let (_, s) = run(&server.url("/"), &LOAD);
    let sentence = "all of the # % that took # ms were on the same 6 of 48 connections each time";
    assert_eq!(said(&s, "slow"), ("connection".to_owned(), sentence.to_owned()));
}

#[test]
fn the_slow_came_from_one_of_three_addresses() {
    let is_third = |peer: &Peer| {
        peer.log.peers.lock().unwrap()[peer.number as usize - 1].ip().to_string() == "127.0.0.3"
    };
    let server = slow(move |peer, _| is_third(peer));
    let sources = ["--sources", "127.0.0.2,127.0.0.3,127.0.0.4"];
    let (_, s) = run(&server.url("/"), &[&MANY[..], &sources].concat());
    let sentence = "all of the # % that took # ms came from 127.0.0.3";
    assert_eq!(said(&s, "slow"), ("source".to_owned(), sentence.to_owned()));
}

#[test]
fn the_slow_came_at_once_each_two_seconds() {
    let began = Instant::now();
    let server = Scripted::start(move |peer| {
        while peer.request().is_some() {
            let since = began.elapsed().as_millis() as u64 % 2_000;
            // For a part of each two seconds all wait, too short a time for a stall.
            if since < 350 {
                sleep(Duration::from_millis(350 - since));
            }
            if !peer.send(&ok("hello")) {
                return;
            }
        }
    });
    let args = ["-c", "48", "--think", "20ms..60ms", "-d", "9s", "--threshold", "latency_us.p999 < 10ms"];
    let (_, s) = run(&server.url("/"), &args);
    let (dimension, sentence) = said(&s, "slow");
    assert_eq!(dimension, "moment", "{sentence}");
    assert!(sentence.contains(" moments, one each #"), "{sentence}");
    assert!(sentence.ends_with(", on every connection at once"), "{sentence}");
    // That is a cause: no other connection had a response meanwhile.
    assert_eq!(s.text("limit.cause"), "stall");
    assert!(s.text("limit.sentence").starts_with("the target paused "), "{s:?}");
}

#[test]
fn the_rest_of_short_responses_is_late() {
    let server = Scripted::start(|peer| {
        while peer.request().is_some() && peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe") {
            sleep(Duration::from_millis(41));
            if !peer.send("llo") {
                return;
            }
        }
    });
    let (_, s) = run(&server.url("/"), &LOAD);
    let (dimension, sentence) = said(&s, "slow");
    assert_eq!(dimension, "part");
    // Of nearly all: on a busy machine some first bytes are late, too.
    assert!(sentence.starts_with("the first byte of "), "{sentence}");
    assert!(sentence.ends_with(" # ms later, as with Nagle's algorithm and delayed ACK"), "{sentence}");
    check_verdict(&s, "start from what they have in common");
}

#[test]
fn the_slow_are_the_first_requests_of_their_connections() {
    let server = Scripted::start(|peer| {
        for nth in 1..=8 {
            if peer.request().is_none() {
                return;
            }
            if nth == 1 {
                sleep(SLOW);
            }
            let closes = if nth == 8 { "Connection: close\r\n" } else { "" };
            let response = format!("HTTP/1.1 200 OK\r\n{closes}Content-Length: 5\r\n\r\nhello");
            if !peer.send(&response) {
                return;
            }
        }
    });
    let (_, s) = run(&server.url("/"), &LOAD);
    let sentence = "all of the # % that took # ms were the first request on their connection";
    assert_eq!(said(&s, "slow"), ("number".to_owned(), sentence.to_owned()));
}

#[test]
fn the_slow_are_the_large_ones() {
    let server = Scripted::start(|peer| {
        while let Some(head) = peer.request() {
            let is_large = head.starts_with("GET /9 ");
            if is_large {
                sleep(SLOW);
            }
            if !peer.send(&ok(&"x".repeat(if is_large { 40_000 } else { 100 }))) {
                return;
            }
        }
    });
    let (_, s) = run(&server.url("/{rand 1 9}"), &LOAD);
    let sentence = "all of the # % that took # ms had a response of more than 32.0 KiB";
    assert_eq!(said(&s, "slow"), ("size".to_owned(), sentence.to_owned()));
}

#[test]
fn the_wrong_and_the_missing_have_connections_in_common() {
    let server = Scripted::start(|peer| {
        while peer.request().is_some() {
            match peer.number % 8 {
                3 => sleep(Duration::from_millis(400)),
                5 if !peer.send("HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n") => return,
                5 => continue,
                _ => {}
            }
            if !peer.send(&ok("hello")) {
                return;
            }
        }
    });
    let (_, s) = run(&server.url("/"), &LOAD);
    let of =
        |what: &str| format!("all of the # % that {what} were on the same 6 of 48 connections each time");
    assert_eq!(said(&s, "wrong"), ("connection".to_owned(), of("failed")));
}

#[test]
fn nothing_is_said_of_what_is_slow_at_random() {
    // The digits of a number that none of the dimensions knows.
    let server = slow(|peer, nth| {
        let mixed = (peer.number * 1_000_003 + nth).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed >> 32 & 0xF == 0
    });
    let (_, s) = run(&server.url("/"), &LOAD);
    assert!(s.number("latency_us.p99") > 100_000.0, "some are slow");
    assert_eq!(s.0.get("in_common"), None);
}
