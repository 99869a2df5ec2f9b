//! `throng run --http2` against servers that violate the protocol: each violation is reported as its own fault, and the connections
//! of another population are not affected. population go on beside it.

use std::fs;

use serde_json::Value;

use crate::{
    program::{Program, Serving},
    scripted::{Peer, Scripted},
};

const SETTINGS: u8 = 4;
const PING: u8 = 6;

const END_HEADERS: u8 = 4;
const END_STREAM: u8 = 1;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    [&[a, b, c, kind, flags], &stream.to_be_bytes()[..], payload].concat()
}

/// SETTINGS, and then this.
fn after_settings(frames: &[u8]) -> Vec<u8> {
    [&frame(SETTINGS, 0, 0, b""), frames].concat()
}

/// SETTINGS that offer WebSocket, and then this.
fn after_offer(frames: &[u8]) -> Vec<u8> {
    [&frame(SETTINGS, 0, 0, &[0, 8, 0, 0, 0, 1]), frames].concat()
}

/// A server that replies to the client's preface with these bytes and to nothing else.
fn says(bytes: Vec<u8>) -> Scripted {
    Scripted::start(move |peer: &mut Peer| {
        if peer.line("SM\r\n\r\n") {
            peer.send_bytes(&bytes);
            peer.wait_gone();
        }
    })
}

/// A population's name, its keys, what its server sends, and the fault of each of its connections with its detail.
type Case = (&'static str, &'static str, Vec<u8>, &'static str, &'static str);

const FRAME: &str = "frame that HTTP/2 does not allow there";
const TOO_LONG: &str = "fields of over 32 KiB or 16 CONTINUATION frames, the most that throng reads";
const HPACK: &str = "malformed HPACK, or a table that throng does not offer";

fn cases() -> Vec<Case> {
    let (bad, mute) = ("exchange·bad-answer", "exchange·timeout");
    // More than is allowed in a second, in each of two: wherever one begins.
    let flood = |kind, payload: &[u8]| after_settings(&frame(kind, 0, 0, payload).repeat(5_000));
    let endless = [frame(1, 0, 1, &[0x88]), frame(9, 0, 1, b"").repeat(1_000)].concat();
    let largest = [0x7f, 255, 255, 255];
    let response = frame(1, END_HEADERS | END_STREAM, 1, &[0x88]);
    let no_window = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
    vec![
        ("garbage", "", b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(), "handshake·bad-answer", FRAME),
        ("http1", "", b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "handshake·nothing-in-common", ""),
        ("silent", "", Vec::new(), "handshake·timeout", ""),
        ("ping-first", "", frame(PING, 0, 0, &[0; 8]), "handshake·bad-answer", FRAME),
        ("settings-flood", "", flood(SETTINGS, b""), mute, ""),
        ("ping-flood", "", flood(PING, &[0; 8]), mute, ""),
        ("unknown-flood", "", flood(99, b""), mute, ""),
        ("push", "", after_settings(&frame(5, END_HEADERS, 1, &[0, 0, 0, 2, 0x88])), bad, FRAME),
        ("idle-stream", "", after_settings(&frame(0, 0, 99, b"news")), bad, FRAME),
        ("own-stream", "", after_settings(&frame(1, END_HEADERS, 2, &[0x88])), bad, FRAME),
        (
            "window",
            "",
            after_settings(&frame(8, 0, 0, &largest).repeat(2)),
            bad,
            "window of HTTP/2 exceeded, or raised beyond its maximum",
        ),
        (
            "large-frame",
            "",
            after_settings(&[255, 255, 255, 0, 0, 0, 0, 0, 1]),
            bad,
            "frame of HTTP/2 with a wrong size",
        ),
        ("endless", "", after_settings(&endless), bad, TOO_LONG),
        ("table", "", after_settings(&frame(1, END_HEADERS, 1, &[0xbe])), bad, HPACK),
        ("no-response", "", after_settings(b""), mute, ""),
        ("no-window", "method = \"POST\"\nbody = \"hello\"", no_window, mute, "HTTP/2 window closed"),
        ("no-pong", "ping = \"10ms\"", after_settings(b""), mute, ""),
        ("no-pong-beside", "ping = \"10ms\"\nthink = \"1m\"", after_settings(&response), "hold·timeout", ""),
        ("ws-none", "ws", after_settings(b""), "handshake·nothing-in-common", ""),
        ("ws-silent", "ws", after_offer(b""), "handshake·timeout", ""),
        ("ws-404", "ws", after_offer(&frame(1, END_HEADERS, 1, &[0x8d])), "handshake·wrong-status", ""),
        ("ws-reset", "ws", after_offer(&frame(3, 0, 1, &8u32.to_be_bytes())), "handshake·reset", "CANCEL"),
        ("ws-no-echo", "ws", after_offer(&frame(1, END_HEADERS, 1, &[0x88])), mute, ""),
    ]
}

/// Connections of each population.
const CONNECTIONS: u64 = 2;

#[test]
fn servers_that_break_http2_are_faults_and_others_go_on() {
    let right = Serving::start(&[]);
    let mut text = format!(
        "duration = \"2500ms\"\ntimeout = \"1s\"\nramp = \"1k/s\"\nhttp2 = true\n[[population]]\nname = \"right\"\ntarget = \"{}\"\n\
        connections = 4\nthink = \"20ms\"\n",
        right.url("/")
    );
    let cases = cases();
    let mut servers = Vec::new();
    for (name, keys, bytes, ..) in &cases {
        let server = says(bytes.clone());
        let (scheme, keys) = if *keys == "ws" { ("ws", "ping = \"10ms\"") } else { ("http", *keys) };
        text += &format!(
            "[[population]]\nname = \"{name}\"\ntarget = \"{scheme}://{}/\"\nconnections = {CONNECTIONS}\n{keys}\n",
            server.address
        );
        servers.push(server);
    }
    let path = std::env::temp_dir().join(format!("throng-{}-hostile.toml", std::process::id()));
    fs::write(&path, text).unwrap();
    let ended = Program::start(&["run", path.to_str().unwrap(), "--json", "-"]).end();
    fs::remove_file(&path).unwrap();
    let summary: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}"));
    let populations = &summary["populations"];
    for (name, _, _, fault, detail) in &cases {
        let faults = populations[name]["faults"].as_array().expect("a list");
        let found: Vec<String> = faults
            .iter()
            .map(|fault| {
                ["side", "stage", "kind", "detail"].map(|key| fault[key].as_str().unwrap_or("")).join("·")
            })
            .collect();
        assert_eq!(found, [format!("target·{fault}·{detail}")], "{name}: {}", ended.stderr);
        // Its connections go on, with one request after the other.
        if !name.ends_with("-flood") && !["no-response", "no-window"].contains(name) {
            let count = faults[0]["count"].as_u64();
            assert_eq!(count, Some(CONNECTIONS), "{name}: one for each connection");
        }
    }
    let own = &populations["right"];
    assert_eq!(
        (own["faults"].as_array().map(Vec::len), own["connections"]["held"].as_u64()),
        (Some(0), Some(4))
    );
    let (sent, answered) = (&own["requests"]["sent"], &own["requests"]["answered"]);
    // On each connection more than the first.
    assert!(sent == answered && sent.as_u64() >= Some(8), "{own:#}");
    ended.assert_status(1);
}
