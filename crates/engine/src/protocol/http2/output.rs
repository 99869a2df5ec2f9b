//! Output of an HTTP/2 connection besides requests: replies to the server's frames, and the rest of incomplete bodies.
//!
//! A body is sent as far as the server's windows allow (RFC 9113, section 5.2), a piece at a time ([`net::PIECE`]): a server that
//! reads slowly costs one piece of memory, whatever its windows are.

use std::borrow::Cow;

use net::Io;
use samples::Rule;
use wire::http2::{self, Connection, Stream};

use super::{State, UnderWay};
use crate::{failure::Failure, out::Writer};

/// Maximum number of queued replies while the server does not read: more than it may cause in a second ([`http2::MAX_CONTROLS`]);
/// `nghttp2` allows 1,000.
const MOST_REPLIES: u16 = 4096;

/// Room for the longest frame without a variable payload: a GOAWAY.
pub(super) const SHORT: usize = 32;

/// Encodes a short frame.
pub(in crate::protocol) fn frame(write: impl FnOnce(&mut [u8]) -> Option<usize>) -> Vec<u8> {
    let mut out = [0; SHORT];
    let length = write(&mut out).expect("there is room for a short frame");
    out[..length].to_vec()
}

/// Queue of frames to be sent.
#[derive(Debug, Default)]
pub(in crate::protocol) struct Queue {
    frames: Vec<u8>,
    replies: u16,
    /// Whether there is new output.
    is_due: bool,
}

impl Queue {
    pub(in crate::protocol) fn push(&mut self, frames: &[u8]) {
        self.frames.extend_from_slice(frames);
        self.is_due = true;
    }

    /// Queues a reply to a frame of the server.
    ///
    /// # Errors
    /// The server keeps sending and does not read the replies.
    pub(in crate::protocol) fn reply(&mut self, frame: &[u8]) -> Result<(), Failure> {
        self.replies += 1;
        self.push(frame);
        if self.replies > MOST_REPLIES { Err(Rule::Unread.into()) } else { Ok(()) }
    }

    /// Output that waits elsewhere may continue.
    pub(in crate::protocol) fn touch(&mut self) {
        self.is_due = true;
    }

    pub(in crate::protocol) fn is_due(&self) -> bool {
        self.is_due
    }

    pub(in crate::protocol) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    #[cfg(test)]
    pub(in crate::protocol) fn take(&mut self) -> Vec<u8> {
        std::mem::take(self).frames
    }

    /// Sends the queue even if the server does not read: used before a request, since a queued reset may make room for its
    /// stream.
    pub(in crate::protocol) fn flush<I: Io>(&mut self, to: &mut Writer<'_, I>) {
        self.is_due = false;
        if !to.is_write_blocked() {
            self.replies = 0;
        }
        if !self.frames.is_empty() {
            to.send(self.frames.len(), |out| {
                out.copy_from_slice(&self.frames);
                self.frames.len()
            });
            self.frames.clear();
        }
    }

    /// Sends the queue if the server reads. Returns false if it does not; the caller is then called again when it does.
    pub(in crate::protocol) fn send<I: Io>(&mut self, to: &mut Writer<'_, I>) -> bool {
        self.is_due = false;
        let reads = !to.is_write_blocked();
        if reads {
            self.flush(to)
        } else {
            to.call_when_writable()
        }
        reads
    }
}

/// A body that is partly sent.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Number of its stream.
    pub(super) stream: u32,
    pub(super) body: Cow<'static, [u8]>,
    /// Bytes sent so far.
    pub(super) sent: usize,
}

/// Room for a body in DATA frames.
pub(in crate::protocol) fn room(body: usize) -> usize {
    body + (body / http2::MAX_FRAME + 1) * 9
}

impl State {
    /// Sends what is waiting, as far as the server reads and its windows allow.
    pub(super) fn send_waiting<I: Io>(&mut self, to: &mut Writer<'_, I>) {
        let Some(rare) = &mut self.rare else { return };
        if !rare.queue.send(to) {
            return;
        }
        let most = if self.may_send() { to.writable_len() } else { 0 };
        if most > 0 {
            to.send(room(most), |out| self.write_waiting(out, most));
        }
        if self.may_send() {
            to.call_when_writable();
        }
        self.drop_rare();
    }

    /// Whether the windows allow more of a waiting body.
    pub(super) fn may_send(&self) -> bool {
        let Some(rare) = &self.rare else { return false };
        let window = |it: &Waiting| self.stream(it.stream).map_or(0, |stream| self.connection.window(stream));
        rare.waiting.iter().any(|it| window(it) > 0)
    }

    fn stream(&self, number: u32) -> Option<&Stream> {
        self.place(number).map(|place| &self.under_way[place].stream)
    }

    /// Whether a request waits for the server's windows, and not for its socket.
    pub(super) fn waits(&self, exchange: u32) -> bool {
        let Some(rare) = &self.rare else { return false };
        let Some(it) = self.under_way.iter().find(|it| it.exchange == exchange) else { return false };
        let waits = rare.waiting.iter().any(|waiting| waiting.stream == it.stream.id());
        waits && self.connection.window(&it.stream) == 0
    }

    /// Writes up to `most` bytes of the waiting bodies, oldest first; returns the length including frame headers.
    fn write_waiting(&mut self, out: &mut [u8], most: usize) -> usize {
        let State { connection, under_way, rare, .. } = self;
        let Some(rare) = rare else { return 0 };
        let (mut written, mut left) = (0, most);
        for it in &mut rare.waiting {
            let place = under_way.binary_search_by_key(&it.stream, |it| it.stream.id());
            let stream = &mut under_way[place.expect("what waits is under way")].stream;
            let (n, taken) = write(connection, &mut out[written..], stream, &it.body[it.sent..], left);
            (written, left, it.sent) = (written + n, left - taken, it.sent + taken);
        }
        rare.waiting.retain(|it| it.sent < it.body.len());
        written
    }

    /// Frees the rare state of an idle connection if it is empty.
    pub(super) fn drop_rare(&mut self) {
        let State { connection, under_way, rare, .. } = self;
        rare.take_if(|rare| {
            rare.table.take_if(|_| !connection.has_table());
            let is_silent = rare.farewell.is_empty() && rare.said.is_empty();
            is_silent && rare.queue.is_empty() && rare.table.is_none() && under_way.is_empty()
        });
    }
}

impl UnderWay {
    /// Writes up to `most` bytes of the body; returns the length including frame headers, and how much of the body it carries.
    pub(super) fn write_body(
        &mut self,
        connection: &mut Connection,
        out: &mut [u8],
        body: &[u8],
        most: usize,
    ) -> (usize, usize) {
        write(connection, out, &mut self.stream, body, most)
    }
}

/// Writes up to `most` bytes of a body in DATA frames; the last byte ends the stream.
fn write(
    connection: &mut Connection,
    out: &mut [u8],
    stream: &mut Stream,
    body: &[u8],
    most: usize,
) -> (usize, usize) {
    match body.get(..most).filter(|part| part.len() < body.len()) {
        _ if most == 0 => (0, 0),
        Some(part) => connection.write_data(out, stream, part, false),
        None => connection.write_data(out, stream, body, true),
    }
}
