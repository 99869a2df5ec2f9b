//! What is sent on streams: heads, bodies and resets, as far as the peer's limits allow.

use super::{Connection, HAS_RESET, HEADER, LEAVING};
use crate::http2::frame::{self, Header};
use crate::http2::settings::MAX_WINDOW;
use crate::http2::stream::{IS_HEAD, IS_TUNNEL, LOCAL_ENDED};
use crate::http2::{Code, MAX_FRAME, Role, Stream, write_goaway, write_reset};
use crate::out::Out;

/// What of a request's method decides how the response is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The response has no body.
    Head,
    /// A response of 2xx begins a tunnel.
    Connect,
    /// Any other.
    Other,
}

/// A change of our encoder's table to 0 bytes (RFC 7541 section 6.3).
const RESIZE: u8 = 0x20;

impl Connection {
    /// Client: opens a stream and writes the head of its request into `out`: the bytes written, and the stream; `None` where it
    /// does not fit. `block`: the fields, encoded. `ends`: no body follows.
    ///
    /// # Panics
    /// If there is no [place](Self::has_place).
    pub fn write_request(
        &mut self,
        out: &mut [u8],
        block: &[u8],
        ends: bool,
        method: Method,
    ) -> Option<(usize, Stream)> {
        assert!(self.role == Role::Client && self.has_place(), "write_request: no place: {self:?}");
        let kind = match method {
            Method::Head => IS_HEAD,
            Method::Connect => IS_TUNNEL,
            Method::Other => 0,
        };
        let mut stream = Stream::new(self.next, kind);
        self.open += 1;
        let Some(n) = self.write_headers(out, &mut stream, block, ends) else {
            self.open -= 1;
            return None;
        };
        self.next += 2;
        Some((n, stream))
    }

    /// Writes the head of a response, an interim one, or trailers into `out`: the bytes written, `None` where they do not fit.
    /// `block`: the fields, encoded; what does not fit into a frame of [`MAX_FRAME`] follows in CONTINUATIONs. `ends`: nothing follows.
    ///
    /// # Panics
    /// If our side of the stream has ended.
    pub fn write_headers(
        &mut self,
        out: &mut [u8],
        stream: &mut Stream,
        block: &[u8],
        ends: bool,
    ) -> Option<usize> {
        let resize: &[u8] = if self.peer.must_resize { &[RESIZE] } else { &[] };
        assert!(!stream.is(LOCAL_ENDED), "write_headers: {stream:?} has ended");
        let (first, rest) = block.split_at(block.len().min(MAX_FRAME - resize.len()));
        let mut out = Out::new(out);
        let mut put = |kind: u8, flags: u8, parts: [&[u8]; 2]| {
            let len = (parts[0].len() + parts[1].len()) as u32;
            out.put(&Header { len, kind, flags, stream: stream.id }.bytes())?;
            out.put(parts[0])?;
            out.put(parts[1])
        };
        let last = |is_last: bool| if is_last { frame::END_HEADERS } else { 0 };
        let end = if ends { frame::END_STREAM } else { 0 };
        put(frame::HEADERS, end | last(rest.is_empty()), [resize, first])?;
        let frames = rest.chunks(MAX_FRAME);
        let count = frames.len();
        for (nth, part) in (1..).zip(frames) {
            put(frame::CONTINUATION, last(nth == count), [part, &[]])?;
        }
        self.peer.must_resize = false;
        if ends {
            self.end_local(stream);
        }
        Some(out.len())
    }

    /// How many bytes of body the windows allow now on this stream.
    pub fn window(&self, stream: &Stream) -> usize {
        let of_stream = i64::from(self.peer.initial_window) + i64::from(stream.window);
        of_stream.min(self.send_window.into()).clamp(0, MAX_WINDOW.into()) as usize
    }

    /// Writes as much of a body into `out` as there is room and the windows allow: how many bytes were written, and how many
    /// of `bytes` they carry. `ends`: the body ends with `bytes`, and the stream with it once all of them are written; that
    /// needs no window where there are none.
    ///
    /// # Panics
    /// If our side of the stream has ended.
    pub fn write_data(
        &mut self,
        out: &mut [u8],
        stream: &mut Stream,
        bytes: &[u8],
        ends: bool,
    ) -> (usize, usize) {
        assert!(!stream.is(LOCAL_ENDED), "write_data: {stream:?} has ended");
        let (mut written, mut taken) = (0, 0);
        while let Some(room) = out[written..].len().checked_sub(HEADER) {
            let most = room.min(self.window(stream)).min(self.peer.max_frame as usize);
            let n = most.min(bytes.len() - taken);
            let is_last = ends && taken + n == bytes.len();
            if n == 0 && !is_last {
                break;
            }
            let flags = if is_last { frame::END_STREAM } else { 0 };
            let header = Header { len: n as u32, kind: frame::DATA, flags, stream: stream.id };
            out[written..][..HEADER].copy_from_slice(&header.bytes());
            out[written + HEADER..][..n].copy_from_slice(&bytes[taken..taken + n]);
            (written, taken) = (written + HEADER + n, taken + n);
            // No more than the window, which both can hold.
            self.send_window -= n as i32;
            stream.window -= n as i32;
            if is_last {
                self.end_local(stream);
            }
            if taken == bytes.len() {
                break;
            }
        }
        (written, taken)
    }

    /// Resets a stream, and writes that into `out`: the bytes written, `None` where it does not fit. There are none for a
    /// stream that is closed.
    pub fn cancel(&mut self, out: &mut [u8], stream: &mut Stream, code: Code) -> Option<usize> {
        if stream.is_closed() {
            return Some(0);
        }
        let n = write_reset(out, stream.id, code)?;
        self.flags |= HAS_RESET;
        self.close(stream);
        Some(n)
    }

    /// Announces the end of the connection, and writes that into `out`: the bytes written, `None` where it does not fit. A
    /// server refuses streams that are opened after it.
    pub fn goaway(&mut self, out: &mut [u8], code: Code) -> Option<usize> {
        let last = match self.role {
            Role::Server => self.next.saturating_sub(2),
            // Of what the server has opened.
            Role::Client => 0,
        };
        let n = write_goaway(out, last, code)?;
        self.flags |= LEAVING;
        Some(n)
    }
}
