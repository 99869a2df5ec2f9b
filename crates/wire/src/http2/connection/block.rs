//! Field blocks, in HEADERS and CONTINUATION frames: requests, responses and trailers (RFC 9113, sections 6.2, 6.10 and 8.1).

use super::{Came, Connection, Context, HAS_RESET, HEADER, LEAVING, NO_TABLE};
use crate::http2::frame::{self, Header, number31};
use crate::http2::hpack::{self, Dynamic, Fields, Stop};
use crate::http2::stream::{HAS_HEAD, IS_HEAD, IS_TUNNEL, REMOTE_ENDED};
use crate::http2::{
    Code, Event, Head, MAX_BLOCK, MAX_CONTINUATIONS, MAX_FRAME, MAX_STREAMS, Role, Stream, TakesFields, head,
};

/// A complete field block.
struct Block<'a> {
    /// Length of all its frames, in bytes.
    len: usize,
    bytes: &'a [u8],
    stream: u32,
    ends: bool,
    /// Whether the stream depends on itself, which was an error in RFC 7540 (section 5.3.1).
    is_circular: bool,
}

impl Connection {
    pub(super) fn handle_block<'a>(
        &mut self,
        header: Header,
        input: &'a [u8],
        stream: Option<&mut Stream>,
        context: Context<'a, '_>,
    ) -> Came<'a> {
        let is_idle = self.is_idle(header.stream)?;
        if is_idle && self.role == Role::Client {
            return Err(Code::PROTOCOL_ERROR);
        }
        let Context { scratch, table, second, expected, fields: takes } = context;
        let Some(block) = read(header, input, &mut scratch.block)? else { return Ok((0, None)) };
        if self.role == Role::Client && hpack::ends_table(block.bytes) {
            self.flags |= NO_TABLE;
        }
        let dynamic = match table {
            _ if self.is(NO_TABLE) => Dynamic::Off,
            Some(table) => Dynamic::Table(table),
            None => Dynamic::Absent,
        };
        let fields = Fields::new(block.bytes, &mut scratch.text, dynamic);
        let read = match stream {
            None if is_idle => self.request(&block, fields, second),
            None => fields.finish().map(|()| self.closed_block(second)),
            Some(stream) if stream.is(REMOTE_ENDED) => {
                fields.finish().map(|()| self.fail(stream, Code::STREAM_CLOSED, second))
            }
            Some(stream) if stream.is(HAS_HEAD) => self.trailers(&block, fields, stream, second),
            Some(stream) => self.response(&block, fields, stream, (second, expected, takes)),
        };
        match read {
            Ok(event) => Ok((block.len, event?)),
            Err(Stop::TableNeeded) => Ok((0, Some(Event::TableNeeded))),
            Err(Stop::Invalid) => Err(Code::COMPRESSION_ERROR),
            Err(Stop::TooLong) => Err(Code::ENHANCE_YOUR_CALM),
        }
    }

    /// Handles a block for a stream that both sides have ended: a connection error (section 5.1), unless this end has reset a stream.
    fn closed_block<'a>(&mut self, second: u32) -> Result<Option<Event<'a>>, Code> {
        self.control(second)?;
        if self.is(HAS_RESET) { Ok(None) } else { Err(Code::STREAM_CLOSED) }
    }

    fn request<'a>(
        &mut self,
        block: &Block<'a>,
        fields: Fields<'a, '_>,
        second: u32,
    ) -> Result<Result<Option<Event<'a>>, Code>, Stop> {
        let request = head::request(fields, block.ends)?.filter(|_| !block.is_circular);
        self.next = block.stream + 2;
        self.open += 1;
        let mut stream = Stream::new(block.stream, HAS_HEAD);
        let is_full = self.open > MAX_STREAMS || self.is(LEAVING);
        let Some(request) = request.filter(|_| !is_full) else {
            let code = if is_full { Code::REFUSED_STREAM } else { Code::PROTOCOL_ERROR };
            return Ok(self.fail(&mut stream, code, second));
        };
        stream.left = request.length.filter(|_| request.method != "CONNECT").unwrap_or(u64::MAX);
        if block.ends {
            self.end_remote(&mut stream);
        }
        Ok(Ok(Some(Event::Request(request, stream))))
    }

    fn response<'a>(
        &mut self,
        block: &Block<'a>,
        fields: Fields<'a, '_>,
        stream: &mut Stream,
        (second, expected, takes): (u32, &[(String, String)], Option<&mut dyn TakesFields>),
    ) -> Result<Result<Option<Event<'a>>, Code>, Stop> {
        let response = head::response(fields, expected, takes)?;
        let Some(response) = response.filter(|response| response.status >= 200 || !block.ends) else {
            return Ok(self.fail(stream, Code::PROTOCOL_ERROR, second));
        };
        let status = response.status;
        if status < 200 {
            return Ok(Ok(Some(Event::Interim(status))));
        }
        // No body: RFC 9110, section 6.4.1; the length of a tunnel: RFC 9113, section 8.5.
        let has_no_body = stream.is(IS_HEAD) || matches!(status, 204 | 304);
        let length = match response.length {
            _ if has_no_body => Some(0),
            _ if stream.is(IS_TUNNEL) && status < 300 => None,
            length => length,
        };
        if block.ends && length.is_some_and(|length| length > 0) {
            return Ok(self.fail(stream, Code::PROTOCOL_ERROR, second));
        }
        stream.left = length.unwrap_or(u64::MAX);
        stream.flags |= HAS_HEAD;
        if block.ends {
            self.end_remote(stream);
        }
        let head = Head {
            status,
            head_bytes: block.len as u32,
            length: if block.ends { Some(0) } else { length },
            ends: block.ends,
            has_expected: response.has_expected,
            protocol: response.protocol,
            location: response.location,
            grpc: response.grpc,
        };
        Ok(Ok(Some(Event::Head(head))))
    }

    fn trailers<'a>(
        &mut self,
        block: &Block<'a>,
        fields: Fields<'a, '_>,
        stream: &mut Stream,
        second: u32,
    ) -> Result<Result<Option<Event<'a>>, Code>, Stop> {
        let is_complete = block.ends && matches!(stream.left, 0 | u64::MAX) && !block.is_circular;
        let trailers = head::trailers(fields)?;
        let Some(trailers) = trailers.filter(|_| is_complete) else {
            return Ok(self.fail(stream, Code::PROTOCOL_ERROR, second));
        };
        self.end_remote(stream);
        Ok(Ok(Some(Event::Trailers(trailers))))
    }
}

/// Reads the block whose first frame is at the start of `input`; `None` while it is incomplete. The checks follow the order of the bytes,
/// so that the result does not depend on how the input is split.
fn read<'a>(
    header: Header,
    input: &'a [u8],
    joined: &'a mut [u8; MAX_BLOCK],
) -> Result<Option<Block<'a>>, Code> {
    let end = HEADER + header.len as usize;
    let Some(payload) = input.get(HEADER..end) else { return Ok(None) };
    let (bytes, is_circular) = fragment(header, payload)?;
    let ends = header.has(frame::END_STREAM);
    let block = Block { len: end, bytes, stream: header.stream, ends, is_circular };
    if header.has(frame::END_HEADERS) {
        return Ok(Some(block));
    }
    join(block, input, joined)
}

/// The first fragment of a block without padding and priority, and whether its priority refers to the stream itself.
fn fragment(header: Header, payload: &[u8]) -> Result<(&[u8], bool), Code> {
    let (mut bytes, mut padding, mut is_circular) = (payload, 0, false);
    if header.has(frame::PADDED) {
        let (first, rest) = bytes.split_first().ok_or(Code::FRAME_SIZE_ERROR)?;
        (bytes, padding) = (rest, usize::from(*first));
    }
    if header.has(frame::WITH_PRIORITY) {
        let (priority, rest) = bytes.split_at_checked(5).ok_or(Code::FRAME_SIZE_ERROR)?;
        (bytes, is_circular) = (rest, number31(priority) == header.stream);
    }
    let len = bytes.len().checked_sub(padding).ok_or(Code::PROTOCOL_ERROR)?;
    Ok((&bytes[..len], is_circular))
}

/// Joins a block of several frames; copies them together.
#[cold]
fn join<'a>(
    mut block: Block<'a>,
    input: &[u8],
    joined: &'a mut [u8; MAX_BLOCK],
) -> Result<Option<Block<'a>>, Code> {
    let mut len = block.bytes.len();
    joined[..len].copy_from_slice(block.bytes);
    for nth in 0.. {
        let rest = &input[block.len..];
        let Some(header) = Header::read(rest) else { return Ok(None) };
        if header.kind != frame::CONTINUATION || header.stream != block.stream {
            return Err(Code::PROTOCOL_ERROR);
        }
        let size = header.len as usize;
        if size > MAX_FRAME {
            return Err(Code::FRAME_SIZE_ERROR);
        }
        if nth == MAX_CONTINUATIONS || len + size > MAX_BLOCK {
            return Err(Code::ENHANCE_YOUR_CALM);
        }
        let Some(bytes) = rest.get(HEADER..HEADER + size) else { return Ok(None) };
        joined[len..len + size].copy_from_slice(bytes);
        len += size;
        block.len += HEADER + size;
        if header.has(frame::END_HEADERS) {
            break;
        }
    }
    block.bytes = &joined[..len];
    Ok(Some(block))
}
