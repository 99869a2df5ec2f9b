//! The basis of all cases: frames built manually, the endpoint under test, and the comparison of its output.

use wire::websocket::{Closing, Event, Frames, Opcode, Payload, Role, write_close, write_frame};

/// A frame as the suite's fuzzer sends or expects it, built here and not by the crate under test.
#[derive(Clone)]
pub(crate) struct Frame {
    opcode: u8,
    ends: bool,
    reserved: u8,
    payload: Vec<u8>,
}

pub(crate) fn frame(opcode: u8, payload: impl AsRef<[u8]>) -> Frame {
    Frame { opcode, ends: true, reserved: 0, payload: payload.as_ref().to_vec() }
}

pub(crate) fn continuation(payload: impl AsRef<[u8]>) -> Frame {
    frame(0x0, payload)
}

pub(crate) fn text(payload: impl AsRef<[u8]>) -> Frame {
    frame(0x1, payload)
}

pub(crate) fn binary(payload: impl AsRef<[u8]>) -> Frame {
    frame(0x2, payload)
}

pub(crate) fn ping(payload: impl AsRef<[u8]>) -> Frame {
    frame(0x9, payload)
}

pub(crate) fn pong(payload: impl AsRef<[u8]>) -> Frame {
    frame(0xA, payload)
}

pub(crate) fn close(code: u16, reason: impl AsRef<[u8]>) -> Frame {
    frame(0x8, [&code.to_be_bytes(), reason.as_ref()].concat())
}

impl Frame {
    /// The frame without its FIN bit.
    pub(crate) fn more(self) -> Self {
        Self { ends: false, ..self }
    }

    /// The frame with these reserved bits, 1 to 7.
    pub(crate) fn reserved(self, reserved: u8) -> Self {
        Self { reserved, ..self }
    }

    pub(crate) fn bytes(&self, mask: Option<[u8; 4]>) -> Vec<u8> {
        let len = self.payload.len();
        let mut bytes = vec![u8::from(self.ends) << 7 | self.reserved << 4 | self.opcode];
        let masked = u8::from(mask.is_some()) << 7;
        match len {
            0..=125 => bytes.push(masked | len as u8),
            126..=65535 => {
                bytes.push(masked | 126);
                bytes.extend((len as u16).to_be_bytes());
            }
            _ => {
                bytes.push(masked | 127);
                bytes.extend((len as u64).to_be_bytes());
            }
        }
        bytes.extend(mask.unwrap_or_default().iter().take(if mask.is_some() { 4 } else { 0 }));
        let mask = mask.unwrap_or_default();
        bytes.extend(self.payload.iter().enumerate().map(|(i, byte)| byte ^ mask[i % 4]));
        bytes
    }
}

/// The masks of the fuzzer and of the endpoint; the values are arbitrary.
const THEIRS: [u8; 4] = [0x37, 0xFA, 0x21, 0x3D];
const OURS: [u8; 4] = [0xC0, 0x01, 0x7F, 0x99];

/// An endpoint that echoes messages, replies to pings and closes, and fails the connection when it must.
pub(crate) struct Endpoint {
    role: Role,
    frames: Frames,
    rest: Vec<u8>,
    message: Vec<u8>,
    /// The output of the endpoint.
    out: Vec<u8>,
    pub(crate) failed: bool,
}

/// Maximum length of a message that the endpoint accepts, in bytes; case 7.1.6 sends a quarter of it.
const MOST: u64 = 1 << 20;

impl Endpoint {
    pub(crate) fn new(role: Role) -> Self {
        let (rest, message, out) = (Vec::new(), Vec::new(), Vec::new());
        Self { role, frames: Frames::new(role), rest, message, out, failed: false }
    }

    /// The mask used by the peer of this endpoint.
    pub(crate) fn mask_in(&self) -> Option<[u8; 4]> {
        (self.role == Role::Server).then_some(THEIRS)
    }

    fn mask_out(&self) -> Option<[u8; 4]> {
        (self.role == Role::Client).then_some(OURS)
    }

    pub(crate) fn handle_bytes(&mut self, bytes: &[u8]) {
        if self.failed {
            return;
        }
        let mut rest = std::mem::take(&mut self.rest);
        rest.extend_from_slice(bytes);
        let mut at = 0;
        loop {
            match self.frames.handle_bytes(&rest[at..], MOST) {
                Ok((0, None)) => break,
                Ok((n, event)) => {
                    event.into_iter().for_each(|event| self.reply_to(event));
                    at += n;
                }
                Err(breach) => {
                    self.failed = true;
                    return self.close(Some(breach.close_code()));
                }
            }
        }
        rest.drain(..at);
        self.rest = rest;
    }

    fn reply_to(&mut self, event: Event<'_>) {
        match event {
            Event::Data(data) => {
                self.message.extend(data.payload.bytes());
                if data.ends {
                    let message = std::mem::take(&mut self.message);
                    self.send(if data.text { Opcode::Text } else { Opcode::Binary }, &message);
                }
            }
            Event::Ping(payload) => self.send(Opcode::Pong, &copy(payload)),
            Event::Pong(_) => {}
            Event::Closing(Closing { code, .. }) => self.close(code),
        }
    }

    fn send(&mut self, opcode: Opcode, payload: &[u8]) {
        let mut frame = vec![0; wire::websocket::MAX_HEADER + payload.len()];
        let n = write_frame(&mut frame, opcode, true, self.mask_out(), payload).expect("it fits");
        self.out.extend_from_slice(&frame[..n]);
    }

    fn close(&mut self, code: Option<u16>) {
        let mut frame = [0; 8];
        let n = write_close(&mut frame, code, self.mask_out()).expect("it fits");
        self.out.extend_from_slice(&frame[..n]);
    }
}

fn copy(payload: Payload<'_>) -> Vec<u8> {
    let mut bytes = vec![0; payload.len()];
    payload.copy_to(&mut bytes);
    bytes
}

/// A case that ends well: `sent`, then a close by the fuzzer; `expected`, then the close of the endpoint.
pub(crate) fn echoes(case: &str, sent: &[Frame], expected: &[Frame]) {
    let with_close = |frames: &[Frame]| [frames, &[close(1000, "")]].concat();
    answers(case, &with_close(sent), &with_close(expected), false);
}

/// A case in which the endpoint must fail the connection with `code`, after it has sent `expected`.
pub(crate) fn fails(case: &str, sent: &[Frame], expected: &[Frame], code: u16) {
    answers(case, sent, &[expected, &[close(code, "")]].concat(), true);
}

/// Checks a case in both roles: in one piece, frame by frame, byte by byte, and in pieces of 997 bytes (as in case 1.1.8).
pub(crate) fn answers(case: &str, sent: &[Frame], expected: &[Frame], fails: bool) {
    for role in [Role::Server, Role::Client] {
        let frames: Vec<_> = sent.iter().map(|frame| frame.bytes(Endpoint::new(role).mask_in())).collect();
        let whole = frames.concat();
        let octets: Vec<_> = whole.chunks(1).collect();
        let odd: Vec<_> = whole.chunks(997).collect();
        let by_frame: Vec<_> = frames.iter().map(Vec::as_slice).collect();
        for (how, chops) in
            [("one chop", vec![&whole[..]]), ("frames", by_frame), ("octets", octets), ("997s", odd)]
        {
            let mut endpoint = Endpoint::new(role);
            chops.iter().for_each(|chop| endpoint.handle_bytes(chop));
            let expected: Vec<u8> =
                expected.iter().flat_map(|frame| frame.bytes(endpoint.mask_out())).collect();
            let right = endpoint.out == expected && endpoint.failed == fails;
            let (sent, expected) = (shown(&endpoint.out), shown(&expected));
            assert!(right, "case {case}, {role:?}, {how}: answered {sent} for {expected}");
        }
    }
}

/// A case in which the endpoint must fail early: not after the first part, but with the second (1007).
pub(crate) fn fails_fast(case: &str, first: &[u8], second: &[u8], role: Role) {
    let mut endpoint = Endpoint::new(role);
    endpoint.handle_bytes(first);
    assert!(!endpoint.failed, "case {case}, {role:?}: failed too early");
    endpoint.handle_bytes(second);
    let expected = close(1007, "").bytes(endpoint.mask_out());
    assert!(endpoint.failed && endpoint.out == expected, "case {case}, {role:?}: {}", shown(&endpoint.out));
}

/// The beginning of the output, which may be hundreds of kilobytes long.
fn shown(bytes: &[u8]) -> String {
    let head = &bytes[..bytes.len().min(200)];
    format!("{} ({} bytes)", head.escape_ascii(), bytes.len())
}
