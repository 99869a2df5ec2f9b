//! DATA frames and flow control for received data (RFC 9113, sections 5.2 and 6.1).

use super::{Came, Connection, DATA_ENDS, HEADER, Stage};
use crate::http2::frame::{self, Header};
use crate::http2::stream::{HAS_HEAD, REMOTE_ENDED};
use crate::http2::{Code, Data, Event, Stream};

impl Connection {
    /// Handles the header of a DATA frame, and the part of its payload that has arrived.
    pub(super) fn begin_data<'a>(
        &mut self,
        header: Header,
        input: &'a [u8],
        mut stream: Option<&mut Stream>,
        second: u32,
    ) -> Came<'a> {
        if self.is_idle(header.stream)? {
            return Err(Code::PROTOCOL_ERROR);
        }
        let (mut at, mut padding) = (HEADER, 0);
        if header.has(frame::PADDED) {
            if header.len == 0 {
                return Err(Code::FRAME_SIZE_ERROR);
            }
            let Some(&length) = input.get(HEADER) else { return Ok((0, None)) };
            (at, padding) = (HEADER + 1, u32::from(length) + 1);
        }
        let left = header.len.checked_sub(padding).ok_or(Code::PROTOCOL_ERROR)?;
        // Padding counts towards the window, and so does data that is ignored.
        self.received += header.len;
        if self.received > self.windows().0 {
            return Err(Code::FLOW_CONTROL_ERROR);
        }
        let ends = header.has(frame::END_STREAM);
        if left == 0 && !ends {
            self.control(second)?;
        }
        let padding = padding.saturating_sub(1);
        let Some(known) = stream.as_deref_mut() else {
            self.begin_skip(left + padding);
            return Ok((at, self.closed(header.stream)));
        };
        if let Some(code) = self.wrong_data(known, header.len, left, ends) {
            self.begin_skip(left + padding);
            return Ok((at, self.fail(known, code, second)?));
        }
        (self.reads, self.left, self.padding) = (header.stream, left, padding as u8);
        self.flags = self.flags & !DATA_ENDS | if ends { DATA_ENDS } else { 0 };
        self.stage = Stage::Data;
        let (n, event) = self.handle_data(&input[at..], stream);
        Ok((at + n, event))
    }

    /// The error of a DATA frame, if any. `len`: length of the frame; `data`: length without padding.
    fn wrong_data(&self, stream: &mut Stream, len: u32, data: u32, ends: bool) -> Option<Code> {
        if stream.is(REMOTE_ENDED) {
            return Some(Code::STREAM_CLOSED);
        }
        stream.received += len;
        if stream.received > self.windows().1 {
            return Some(Code::FLOW_CONTROL_ERROR);
        }
        if !stream.is(HAS_HEAD) {
            return Some(Code::PROTOCOL_ERROR);
        }
        if stream.left != u64::MAX {
            // The body must have the announced length (section 8.1.1).
            match stream.left.checked_sub(data.into()) {
                Some(left) if left == 0 || !ends => stream.left = left,
                _ => return Some(Code::PROTOCOL_ERROR),
            }
        }
        None
    }

    /// Handles the available part of a DATA frame's payload. The caller may have closed the stream since the frame began.
    pub(super) fn handle_data<'a>(
        &mut self,
        input: &'a [u8],
        stream: Option<&mut Stream>,
    ) -> (usize, Option<Event<'a>>) {
        let n = input.len().min(self.left as usize);
        self.left -= n as u32;
        let is_last = self.left == 0;
        let ends = is_last && self.is(DATA_ENDS);
        if is_last {
            self.begin_skip(self.padding.into());
        }
        let Some(stream) = stream.filter(|stream| !stream.is(REMOTE_ENDED)) else { return (n, None) };
        if ends {
            self.end_remote(stream);
        }
        (n, (n > 0 || ends).then_some(Event::Data(Data { bytes: &input[..n], ends })))
    }

    /// The increment for the peer's connection window, if an update is due: when half of the window is used. Send it by
    /// [`write_window_update`](crate::http2::write_window_update) for stream 0.
    pub fn take_credit(&mut self) -> Option<u32> {
        let window = self.windows().0;
        take_half(&mut self.received, window)
    }

    /// Like [`take_credit`](Self::take_credit), for one stream. A caller that stores data calls it only after passing the data on, so that
    /// the peer must wait.
    pub fn take_stream_credit(&self, stream: &mut Stream) -> Option<u32> {
        if stream.is(REMOTE_ENDED) {
            return None;
        }
        take_half(&mut stream.received, self.windows().1)
    }
}

fn take_half(received: &mut u32, window: u32) -> Option<u32> {
    (*received >= window / 2).then(|| std::mem::take(received))
}
