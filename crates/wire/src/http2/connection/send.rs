//! Sends heads, bodies and resets of streams, within the peer's limits.

use super::{Connection, HAS_RESET, HEADER, LEAVING};
use crate::http2::frame::{self, Header};
use crate::http2::settings::MAX_WINDOW;
use crate::http2::stream::{IS_HEAD, IS_TUNNEL, LOCAL_ENDED};
use crate::http2::{Code, MAX_FRAME, Role, Stream, write_goaway, write_reset};
use crate::out::Out;

/// The kind of request method, as far as it affects the reading of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// HEAD: the response has no body.
    Head,
    /// CONNECT: a 2xx response begins a tunnel.
    Connect,
    /// Any other method.
    Other,
}

/// The instruction that changes the encoder's dynamic table to 0 bytes (RFC 7541, section 6.3).
const RESIZE: u8 = 0x20;

impl Connection {
    /// Client: opens a stream and writes the head of its request into `out`: returns the number of bytes, and the stream; `None` if it does
    /// not fit. `block`: the encoded fields. `ends`: there is no body.
    ///
    /// # Panics
    /// If no further stream may be opened ([`has_place`](Self::has_place)).
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

    /// Writes the head of a response, an interim response, or trailers into `out`: returns the number of bytes, `None` if they do not fit.
    /// `block`: the encoded fields; what does not fit in a frame of [`MAX_FRAME`] bytes follows in CONTINUATIONs. `ends`: nothing follows.
    ///
    /// # Panics
    /// If this end has already ended the stream.
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

    /// Number of body bytes that the windows allow now on this stream.
    pub fn window(&self, stream: &Stream) -> usize {
        let of_stream = i64::from(self.peer.initial_window) + i64::from(stream.window);
        of_stream.min(self.send_window.into()).clamp(0, MAX_WINDOW.into()) as usize
    }

    /// Writes as much of a body into `out` as fits and as the windows allow: returns the number of bytes written, and how many of `bytes`
    /// they carry. `ends`: the body ends with `bytes`, and so does the stream once all are written; without `bytes`, that needs no window.
    ///
    /// # Panics
    /// If this end has already ended the stream.
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
            // `n` is at most the window, which fits in both types.
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

    /// Writes a reset of a stream into `out`: returns the number of bytes, `None` if it does not fit; 0 bytes for a closed stream.
    pub fn cancel(&mut self, out: &mut [u8], stream: &mut Stream, code: Code) -> Option<usize> {
        if stream.is_closed() {
            return Some(0);
        }
        let n = write_reset(out, stream.id, code)?;
        self.flags |= HAS_RESET;
        self.close(stream);
        Some(n)
    }

    /// Writes a GOAWAY into `out`: returns the number of bytes, `None` if it does not fit. A server then refuses new streams.
    pub fn goaway(&mut self, out: &mut [u8], code: Code) -> Option<usize> {
        let last = match self.role {
            Role::Server => self.next.saturating_sub(2),
            // A server cannot open streams here, so the client has processed none.
            Role::Client => 0,
        };
        let n = write_goaway(out, last, code)?;
        self.flags |= LEAVING;
        Some(n)
    }
}
