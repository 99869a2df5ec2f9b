//! A transcript: what one connection sent and received, step by step, for people who ask why a scenario does not do what they meant.

mod lines;

use std::net::SocketAddr;

use units::Nanos;

use crate::{fault::Fault, secrets::mask};

pub use lines::Transcript;

/// An entry of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When, since the beginning.
    pub at: Nanos,
    /// What happened.
    pub event: Event,
}

/// What happens on a connection. Secrets are masked before an event is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A dial begins.
    Dial {
        /// Local address; with port 0 the kernel chooses one.
        from: SocketAddr,
        /// Address of the target.
        to: SocketAddr,
    },
    /// The connection is open, this long after its dial.
    Open(Nanos),
    /// The TLS handshake is complete.
    Secure {
        /// Its time.
        took: Nanos,
        /// Whether it resumed an earlier session.
        resumed: bool,
        /// Whether both sides agreed on HTTP/2.
        http2: bool,
    },
    /// A step begins: its index among the steps.
    Step(u16),
    /// The step of this index is skipped, because its condition does not hold.
    Skipped(u16),
    /// Something was sent.
    Sent(Piece),
    /// Something was received.
    Received(Piece),
    /// The response redirects the request, which is sent again.
    Redirect,
    /// The response of a step is complete.
    Response(Response),
    /// A response will not come.
    Failed(Fault),
    /// The user pauses for this long.
    Pause(Nanos),
    /// The connection has ended: by the user, by an announced close, or by this fault.
    End(Option<Fault>),
    /// No step is left.
    Done,
}

impl Event {
    /// Masks secrets in it: those with a known name, and `values`.
    pub fn mask(&mut self, values: &[Box<[u8]>]) {
        match self {
            Event::Sent(piece) | Event::Received(piece) => match piece {
                Piece::Head(text) | Piece::Control(text) => mask_text(text, values),
                Piece::Content(content) | Piece::Message { content, .. } => {
                    mask(&mut content.bytes, values);
                    content.decoded.iter_mut().for_each(|bytes| mask(bytes, values));
                }
            },
            Event::Response(response) => {
                for Mismatch { got, wanted, .. } in &mut response.mismatches {
                    mask_text(got, values);
                    mask_text(wanted, values);
                }
                for value in response.captured.iter_mut().filter_map(|(_, value)| value.as_mut()) {
                    *value = "*".repeat(value.chars().count());
                }
            }
            Event::Dial { .. }
            | Event::Open(_)
            | Event::Secure { .. }
            | Event::Step(_)
            | Event::Skipped(_)
            | Event::Redirect
            | Event::Failed(_)
            | Event::Pause(_)
            | Event::End(_)
            | Event::Done => {}
        }
    }
}

fn mask_text(text: &mut String, values: &[Box<[u8]>]) {
    let mut bytes = std::mem::take(text).into_bytes();
    mask(&mut bytes, values);
    // A secret is masked byte by byte, and its ends may be within a character.
    *text = String::from_utf8_lossy(&bytes).into_owned();
}

/// A part of what is sent or received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// HTTP: the start line and the fields, a line each.
    Head(String),
    /// Content of a request or response, without framing.
    Content(Content),
    /// WebSocket: a message.
    Message {
        /// Whether it is text.
        is_text: bool,
        /// The message.
        content: Content,
    },
    /// A control frame of WebSocket or HTTP/2, in words.
    Control(String),
}

/// Bytes, as many as are kept of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// The first bytes.
    pub bytes: Vec<u8>,
    /// Number of bytes in all.
    pub length: u64,
    /// The bytes decoded, if they have a content coding.
    pub decoded: Option<Vec<u8>>,
}

impl Content {
    /// Maximum number of bytes kept.
    pub const KEPT: usize = 1 << 20;

    /// Adds the bytes that follow; at most `most` are kept in all, and none after a gap.
    pub fn push(&mut self, bytes: &[u8], most: usize) {
        if self.is_whole() {
            let room = most.saturating_sub(self.bytes.len());
            self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        self.length += bytes.len() as u64;
    }

    /// Adds the content that follows; at most `most` bytes are kept in all.
    pub fn add(&mut self, more: &Content, most: usize) {
        self.push(&more.bytes, most);
        self.length += more.length - more.bytes.len() as u64;
    }

    /// Whether all bytes are kept.
    pub fn is_whole(&self) -> bool {
        self.bytes.len() as u64 == self.length
    }
}

/// A complete response, with its times and what was found in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// HTTP or gRPC status, if it has one.
    pub status: Option<u16>,
    /// Octets of content.
    pub length: u64,
    /// From sending to the first byte of the response.
    pub first_byte: Option<Nanos>,
    /// From sending to the end of the response.
    pub took: Nanos,
    /// Why the response is wrong; `None` if it is right.
    pub wrong: Option<Fault>,
    /// What was there instead of what was expected, as far as what was kept of the response shows it.
    pub mismatches: Vec<Mismatch>,
    /// Each captured variable with its value, and each for which the response has no usable value: if one is missing, none is captured.
    pub captured: Vec<(String, Option<String>)>,
}

/// An expectation that a response did not meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// What was compared: `status`, `length`, `header content-type`, `/items/3/price`.
    pub place: String,
    /// What was expected, as text.
    pub wanted: String,
    /// What was there instead; empty if nothing was.
    pub got: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_counted_to_its_end_and_kept_as_far_as_there_is_room() {
        let mut content = Content::default();
        content.push(&vec![b'a'; Content::KEPT], Content::KEPT);
        assert!(content.is_whole());
        content.push(b"bc", Content::KEPT);
        assert_eq!((content.length, content.bytes.len()), (Content::KEPT as u64 + 2, Content::KEPT));
        assert!(!content.is_whole() && content.bytes.ends_with(b"aa"));
        let mut few = Content::default();
        few.add(&content, 3);
        few.add(&content, 9);
        assert_eq!((&few.bytes[..], few.length), (&b"aaa"[..], 2 * content.length), "nothing after a gap");
    }
}
