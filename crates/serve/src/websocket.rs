//! The WebSocket echo: sends back what arrives, frame by frame, without storing it.

use wire::websocket::{self, Event, Frames, Header, Opcode, Payload};

/// Largest message that is echoed, in bytes.
const LARGEST: u64 = 64 * 1024 * 1024;

/// The response to an invalid upgrade request, or one of another version (RFC 6455 section 4.4).
pub(crate) const UPGRADE_REQUIRED: &[u8] = b"HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\n\
Connection: Upgrade, close\r\nSec-WebSocket-Version: 13\r\nContent-Length: 0\r\n\r\n";

/// Room for an echo in addition to its input. An unmasked frame is never longer than the masked one it echoes; only the rest of a
/// frame whose header arrived earlier needs an additional header.
pub(crate) const ROOM: usize = 2 * websocket::MAX_HEADER + websocket::MAX_CONTROL;

/// The result of an input.
#[derive(Debug, Default)]
pub(crate) struct Echoed {
    /// Bytes of input used.
    pub(crate) used: usize,
    /// Bytes of output written.
    pub(crate) written: usize,
    /// Messages and pings with a complete reply.
    pub(crate) answered: u64,
    /// Whether the connection is to be closed after the output.
    pub(crate) ends: bool,
    /// Whether that is because the peer broke the protocol.
    pub(crate) breached: bool,
}

/// Replies to `input`; `out` has room for its length and [`ROOM`].
pub(crate) fn echo(frames: &mut Frames, input: &[u8], out: &mut [u8]) -> Echoed {
    let mut echoed = Echoed::default();
    while !echoed.ends {
        let (used, event) = match frames.handle_bytes(&input[echoed.used..], LARGEST) {
            Ok((0, None)) => break,
            Ok(came) => came,
            Err(breach) => {
                (echoed.ends, echoed.breached, echoed.used) = (true, true, input.len());
                close(&mut echoed, out, Some(breach.close_code()));
                break;
            }
        };
        echoed.used += used;
        match event {
            None | Some(Event::Pong(_)) => {}
            Some(Event::Data(data)) => {
                // An empty piece matters only at the beginning or end of a message.
                if !data.payload.is_empty() || data.begins || data.ends {
                    let opcode = match (data.begins, data.text) {
                        (false, _) => Opcode::Continuation,
                        (true, true) => Opcode::Text,
                        (true, false) => Opcode::Binary,
                    };
                    write(&mut echoed, out, opcode, data.ends, &data.payload);
                }
                echoed.answered += u64::from(data.ends);
            }
            Some(Event::Ping(ping)) => {
                write(&mut echoed, out, Opcode::Pong, true, &ping);
                echoed.answered += 1;
            }
            Some(Event::Closing(closing)) => {
                (echoed.ends, echoed.used) = (true, input.len());
                close(&mut echoed, out, closing.code);
            }
        }
    }
    echoed
}

fn write(echoed: &mut Echoed, out: &mut [u8], opcode: Opcode, ends: bool, payload: &Payload<'_>) {
    let header = Header { opcode, ends, len: payload.len() as u64, mask: None };
    let out = &mut out[echoed.written..];
    let head = websocket::write_header(out, &header).expect("an echo has room for its input and a head");
    payload.copy_to(&mut out[head..]);
    echoed.written += head + payload.len();
}

fn close(echoed: &mut Echoed, out: &mut [u8], code: Option<u16>) {
    let out = &mut out[echoed.written..];
    echoed.written += websocket::write_close(out, code, None).expect("an echo has room for a close");
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::websocket::Role;

    /// Frames as a client writes them; each has an opcode, whether it ends a message, and a payload.
    fn masked(frames: &[(Opcode, bool, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (opcode, ends, payload) in frames {
            let mut out = vec![0; payload.len() + websocket::MAX_HEADER];
            let len = websocket::write_frame(&mut out, *opcode, *ends, Some([1, 2, 3, 4]), payload).unwrap();
            bytes.extend_from_slice(&out[..len]);
        }
        bytes
    }

    /// Echoes `input` in pieces of `size`; returns the output and the number of replies.
    fn over(input: &[u8], size: usize) -> (Vec<u8>, u64, bool, bool) {
        let mut frames = Frames::new(Role::Server);
        let (mut sent, mut rest, mut answered) = (Vec::new(), Vec::new(), 0);
        for piece in input.chunks(size) {
            rest.extend_from_slice(piece);
            let mut out = vec![0; rest.len() + ROOM];
            let echoed = echo(&mut frames, &rest, &mut out);
            sent.extend_from_slice(&out[..echoed.written]);
            rest.drain(..echoed.used);
            answered += echoed.answered;
            if echoed.ends {
                return (sent, answered, true, echoed.breached);
            }
        }
        (sent, answered, false, false)
    }

    #[test]
    fn whole_frames_come_back_unmasked() {
        let long = vec![b'x'; 70_000];
        let input = masked(&[
            (Opcode::Text, true, b"ping"),
            (Opcode::Ping, true, b"there?"),
            (Opcode::Binary, false, &[0, 255]),
            (Opcode::Continuation, true, b""),
            (Opcode::Pong, true, b"unasked"),
            (Opcode::Binary, true, &long),
        ]);
        let mut expected =
            b"\x81\x04ping\x8a\x06there?\x02\x02\x00\xff\x80\x00\x82\x7f\0\0\0\0\0\x01\x11\x70".to_vec();
        expected.extend_from_slice(&long);
        assert_eq!(over(&input, input.len()), (expected, 4, false, false));
    }

    #[test]
    fn pieces_come_back_as_fragments_of_the_same_message() {
        let input = masked(&[(Opcode::Text, true, b"hello"), (Opcode::Text, true, "ä".as_bytes())]);
        for size in 1..input.len() {
            let (sent, answered, ..) = over(&input, size);
            let mut client = Frames::new(Role::Client);
            let (mut at, mut texts, mut text) = (0, Vec::new(), Vec::new());
            while let (n, Some(Event::Data(data))) = client.handle_bytes(&sent[at..], 100).unwrap() {
                at += n;
                text.extend(data.payload.bytes());
                if data.ends {
                    texts.push(std::mem::take(&mut text));
                }
            }
            assert_eq!((answered, at), (2, sent.len()), "in pieces of {size}");
            assert_eq!(texts, [b"hello".to_vec(), "ä".as_bytes().to_vec()], "in pieces of {size}");
        }
    }

    #[test]
    fn a_close_gets_a_close_and_a_breach_is_named() {
        let mut close = masked(&[(Opcode::Close, true, &[3, 232, b'o', b'k'])]);
        close.extend_from_slice(b"never read");
        assert_eq!(over(&close, close.len()), (b"\x88\x02\x03\xe8".to_vec(), 0, true, false));
        let bad = masked(&[(Opcode::Text, true, &[0xff])]);
        assert_eq!(over(&bad, bad.len()), (b"\x88\x02\x03\xef".to_vec(), 0, true, true));
    }
}
