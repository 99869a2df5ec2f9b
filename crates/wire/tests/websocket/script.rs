//! Generated conversations: valid frames, and the events that a reader must report for them.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use wire::websocket::{MAX_CONTROL, MAX_HEADER, Opcode, Role, write_frame};

/// A frame to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) opcode: Opcode,
    pub(crate) ends: bool,
    pub(crate) payload: Vec<u8>,
}

/// Frames, and the trace of `fuzz::websocket::frames` that must result.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) frames: Vec<Sent>,
    pub(crate) said: String,
    /// Length of the longest message, in bytes.
    pub(crate) longest: usize,
}

/// A message before fragmentation: whether it is text, its bytes, where it is cut, and pings or pongs before each fragment.
type Message = (bool, Vec<u8>, Vec<usize>, Vec<Option<(bool, Vec<u8>)>>);

/// Any number of messages, fragmented at any byte, with control frames between the fragments, and possibly a close.
pub(crate) fn script() -> impl Strategy<Value = Script> {
    (vec(message(), 0..5), option::of(close())).prop_map(|(messages, close)| {
        let mut script = Script { frames: Vec::new(), said: String::new(), longest: 0 };
        let mut said = Vec::new();
        for message in messages {
            script.longest = script.longest.max(message.1.len());
            send(message, &mut script.frames, &mut said);
        }
        if let Some((code, reason)) = close {
            let payload = code.map(|code| [&code.to_be_bytes(), reason.as_bytes()].concat());
            let (code, reason) = match code {
                Some(code) => (format!(" {code}"), reason.as_bytes()),
                None => (String::new(), &b""[..]),
            };
            said.push(line(&format!("close{code}"), reason));
            let payload = payload.unwrap_or_default();
            script.frames.push(Sent { opcode: Opcode::Close, ends: true, payload });
        }
        script.said = said.join(" | ");
        script
    })
}

fn message() -> impl Strategy<Value = Message> {
    let text = prop_oneof![9 => 0..80usize, 1 => 200..400usize]
        .prop_flat_map(|len| vec(any::<char>(), len))
        .prop_map(|chars| (true, String::from_iter(chars).into_bytes()));
    // Sometimes the lengths at which headers grow.
    let len = prop_oneof![9 => 0..300usize, 1 => 65_530..65_545usize];
    let binary = (len, any::<u8>()).prop_map(|(len, seed)| {
        (false, (0..len).map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed)).collect())
    });
    let between = vec(option::weighted(0.3, (any::<bool>(), vec(any::<u8>(), 0..=MAX_CONTROL))), 4);
    (prop_oneof![text, binary], vec(any::<usize>(), 0..4), between)
        .prop_map(|((text, payload), places, between)| (text, payload, places, between))
}

fn close() -> impl Strategy<Value = (Option<u16>, String)> {
    let code = prop_oneof![1000..=1003u16, 1007..=1011u16, 3000..=4999u16];
    // 30 characters have at most 120 of the 123 bytes.
    (option::of(code), vec(any::<char>(), 0..30).prop_map(String::from_iter))
}

fn send((text, payload, places, between): Message, frames: &mut Vec<Sent>, said: &mut Vec<String>) {
    let fragments = cut(&payload, &places);
    let last = fragments.len() - 1;
    for (nth, fragment) in fragments.into_iter().enumerate() {
        if let Some(Some((is_ping, payload))) = between.get(nth) {
            let (opcode, name) = if *is_ping { (Opcode::Ping, "ping") } else { (Opcode::Pong, "pong") };
            said.push(line(name, payload));
            frames.push(Sent { opcode, ends: true, payload: payload.clone() });
        }
        let opcode = match (nth, text) {
            (0, true) => Opcode::Text,
            (0, false) => Opcode::Binary,
            _ => Opcode::Continuation,
        };
        frames.push(Sent { opcode, ends: nth == last, payload: fragment.to_vec() });
    }
    said.push(line(if text { "text" } else { "binary" }, &payload));
}

/// A line of a trace.
pub(crate) fn line(what: &str, payload: &[u8]) -> String {
    let blank = if payload.is_empty() { "" } else { " " };
    format!("{what}{blank}{}", payload.escape_ascii())
}

impl Script {
    /// The frames as the crate writes them for a reader in this role, with masks derived from `seed`.
    pub(crate) fn written(&self, reader: Role, seed: u32) -> Vec<u8> {
        let mut stream = Vec::new();
        for (nth, Sent { opcode, ends, payload }) in self.frames.iter().enumerate() {
            let mask = seed.wrapping_mul(nth as u32 + 1).to_be_bytes();
            let mask = (reader == Role::Server).then_some(mask);
            let mut frame = vec![0; payload.len() + MAX_HEADER];
            let n = write_frame(&mut frame, *opcode, *ends, mask, payload).expect("it fits");
            assert_eq!(write_frame(&mut frame[..n - 1], *opcode, *ends, mask, payload), None, "{n} bytes");
            assert_eq!(write_frame(&mut frame[..n], *opcode, *ends, mask, payload), Some(n));
            stream.extend_from_slice(&frame[..n]);
        }
        stream
    }
}

/// Splits `stream` at these positions, modulo its length.
pub(crate) fn cut<'a>(stream: &'a [u8], places: &[usize]) -> Vec<&'a [u8]> {
    let mut places: Vec<_> = places.iter().map(|p| p % (stream.len() + 1)).collect();
    places.extend([0, stream.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect()
}

/// Positions to split at.
pub(crate) fn places() -> impl Strategy<Value = Vec<usize>> {
    vec(any::<usize>(), 0..12)
}

pub(crate) fn role() -> impl Strategy<Value = Role> {
    prop_oneof![Just(Role::Client), Just(Role::Server)]
}

/// The number of cases per property. Failed cases are not stored in a file, because a failure prints its input.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}
