//! Control frames: SETTINGS, WINDOW_UPDATE, PING, RST_STREAM, GOAWAY, PRIORITY.

use super::{ACKED, Came, Connection, HAS_RESET, HEADER, NO_TABLE, Stage};
use crate::http2::frame::{self, Header, number, number31};
use crate::http2::settings::{ENTRY, MAX_WINDOW};
use crate::http2::{Code, Event, Role, Stream};

impl Connection {
    /// Handles a control frame once it is complete, except for the debug data of a GOAWAY.
    pub(super) fn handle_control<'a>(
        &mut self,
        header: Header,
        input: &'a [u8],
        stream: Option<&mut Stream>,
        second: u32,
    ) -> Came<'a> {
        let len = header.len as usize;
        let is_sized = match header.kind {
            frame::PRIORITY => len == 5,
            frame::PING => len == 8,
            frame::GOAWAY => len >= 8,
            frame::SETTINGS if header.has(frame::ACK) => len == 0,
            frame::SETTINGS => len.is_multiple_of(ENTRY),
            _ => len == 4,
        };
        if !is_sized {
            return Err(Code::FRAME_SIZE_ERROR);
        }
        let is_placed = match header.kind {
            frame::PRIORITY | frame::RST_STREAM => header.stream != 0,
            frame::WINDOW_UPDATE => true,
            _ => header.stream == 0,
        };
        if !is_placed {
            return Err(Code::PROTOCOL_ERROR);
        }
        let taken = if header.kind == frame::GOAWAY { 8 } else { len };
        let Some(payload) = input[HEADER..].get(..taken) else { return Ok((0, None)) };
        let event = match header.kind {
            frame::SETTINGS => self.settings(header, payload, second)?,
            frame::PING => Some(self.ping(header, payload, second)?),
            frame::GOAWAY => Some(self.goes_away(header, payload, &input[HEADER + taken..])),
            frame::WINDOW_UPDATE if header.stream == 0 => Some(self.grow_window(number31(payload))?),
            frame::WINDOW_UPDATE => self.grow_stream_window(header, stream, number31(payload), second)?,
            frame::RST_STREAM => self.reset(header, stream, payload, second)?,
            _ => self.priority(header, stream, payload, second)?,
        };
        Ok((HEADER + taken, event))
    }

    /// SETTINGS (section 6.5).
    fn settings<'a>(
        &mut self,
        header: Header,
        payload: &[u8],
        second: u32,
    ) -> Result<Option<Event<'a>>, Code> {
        self.control(second)?;
        if header.has(frame::ACK) {
            // Reported once, for the SETTINGS in the preface; acknowledgements of further ones have no meaning here.
            let is_new = !self.is(ACKED);
            self.flags |= ACKED;
            if self.role == Role::Server {
                self.flags |= NO_TABLE;
            }
            return Ok(is_new.then_some(Event::SettingsAcked));
        }
        let is_first = self.stage == Stage::Settings;
        self.peer.read(payload, self.role, is_first)?;
        self.stage = Stage::Frame;
        Ok(Some(if is_first { Event::Opened } else { Event::Settings }))
    }

    /// PING (section 6.7).
    fn ping<'a>(&mut self, header: Header, payload: &[u8], second: u32) -> Result<Event<'a>, Code> {
        self.control(second)?;
        let payload = *payload.first_chunk().expect("the length was checked");
        Ok(if header.has(frame::ACK) { Event::Pong(payload) } else { Event::Ping(payload) })
    }

    /// GOAWAY (section 6.8): a later one may lower the last stream, not raise it. `rest`: the bytes that follow, starting with the debug
    /// data.
    fn goes_away<'a>(&mut self, header: Header, payload: &[u8], rest: &'a [u8]) -> Event<'a> {
        self.last = self.last.min(number31(payload));
        let more = header.len - 8;
        self.begin_skip(more);
        let debug = &rest[..rest.len().min(more as usize)];
        Event::Goaway { last: self.last, code: Code(number(&payload[4..])), debug }
    }

    /// WINDOW_UPDATE for the connection (section 6.9).
    fn grow_window<'a>(&mut self, increment: u32) -> Result<Event<'a>, Code> {
        if increment == 0 {
            return Err(Code::PROTOCOL_ERROR);
        }
        let window = i64::from(self.send_window) + i64::from(increment);
        self.send_window = i32::try_from(window).map_err(|_| Code::FLOW_CONTROL_ERROR)?;
        Ok(Event::Window(0))
    }

    /// WINDOW_UPDATE for a stream (section 6.9).
    fn grow_stream_window<'a>(
        &mut self,
        header: Header,
        stream: Option<&mut Stream>,
        increment: u32,
        second: u32,
    ) -> Result<Option<Event<'a>>, Code> {
        if self.is_idle(header.stream)? {
            return Err(Code::PROTOCOL_ERROR);
        }
        let Some(stream) = stream.filter(|stream| !stream.is_closed()) else { return Ok(None) };
        if increment == 0 {
            return self.fail(stream, Code::PROTOCOL_ERROR, second);
        }
        let added = i64::from(stream.window) + i64::from(increment);
        if added + i64::from(self.peer.initial_window) > i64::from(MAX_WINDOW) {
            return self.fail(stream, Code::FLOW_CONTROL_ERROR, second);
        }
        stream.window = i32::try_from(added).expect("no more than a window");
        Ok(Some(Event::Window(stream.id)))
    }

    /// RST_STREAM (section 6.4).
    fn reset<'a>(
        &mut self,
        header: Header,
        stream: Option<&mut Stream>,
        payload: &[u8],
        second: u32,
    ) -> Result<Option<Event<'a>>, Code> {
        if self.is_idle(header.stream)? {
            return Err(Code::PROTOCOL_ERROR);
        }
        let stream = stream.filter(|stream| !stream.is_closed());
        if self.role == Role::Server {
            // Counted even if the stream is closed: a request that was answered at once has cost as much.
            self.budget.reset(second)?;
        }
        let Some(stream) = stream else { return Ok(None) };
        self.close(stream);
        Ok(Some(Event::Reset(Code(number(payload)))))
    }

    /// PRIORITY (section 5.3.2): ignored, except that self-dependency was an error in RFC 7540 (section 5.3.1), which conformance testers
    /// check.
    fn priority<'a>(
        &mut self,
        header: Header,
        stream: Option<&mut Stream>,
        payload: &[u8],
        second: u32,
    ) -> Result<Option<Event<'a>>, Code> {
        self.control(second)?;
        match stream.filter(|stream| !stream.is_closed()) {
            _ if number31(payload) != header.stream => Ok(None),
            Some(stream) => self.fail(stream, Code::PROTOCOL_ERROR, second),
            None => {
                self.flags |= HAS_RESET;
                Err(Code::PROTOCOL_ERROR)
            }
        }
    }
}
