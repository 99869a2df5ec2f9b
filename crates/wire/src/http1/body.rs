//! The stage of a message, and the framing of its body (RFC 9112, sections 6 and 7).

use super::{Event, MAX_CHUNK_LINE, MAX_HEAD};
use crate::Breach;

/// The stage of a connection. Each role stores the byte count that belongs to it (`left`) separately, so that its state fits in 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Client: no request is outstanding.
    Idle,
    /// A head is expected.
    Head,
    /// `left` bytes of body are expected.
    Sized,
    /// Client: the body ends when the peer closes the connection.
    UntilClose,
    /// A chunk-size line is expected.
    ChunkLine,
    /// `left` bytes of this chunk are expected.
    Chunk,
    /// The line end after a chunk is expected.
    ChunkEnd,
    /// Trailer lines, or the final empty line, are expected; `left` bytes may still be spent on them.
    Trailers,
    /// The message is consumed; only `End` remains to be reported.
    Done,
    /// This connection no longer carries HTTP: it is to be closed, or belongs to another protocol now.
    Left,
}

impl Stage {
    /// The stage for a body of `length` bytes.
    pub(super) fn sized(length: u64) -> Self {
        if length == 0 { Self::Done } else { Self::Sized }
    }

    /// Reads up to the next event of the body; after its end the stage is `after`. Consumes nothing in the stages without a body (`Idle`,
    /// `Head`, `Left`).
    pub(super) fn advance<'a, H>(
        &mut self,
        left: &mut u64,
        after: Self,
        input: &'a [u8],
    ) -> Result<(usize, Option<Event<'a, H>>), Breach> {
        let mut at = 0;
        loop {
            let rest = &input[at..];
            match *self {
                Self::Idle | Self::Head | Self::Left => return Ok((at, None)),
                Self::Done => {
                    *self = after;
                    return Ok((at, Some(Event::End)));
                }
                Self::UntilClose => return Ok((input.len(), data(rest))),
                Self::Sized | Self::Chunk => {
                    let n = usize::try_from(*left).map_or(rest.len(), |left| left.min(rest.len()));
                    *left -= n as u64;
                    if *left == 0 {
                        *self = if *self == Self::Sized { Self::Done } else { Self::ChunkEnd };
                    }
                    return Ok((at + n, data(&rest[..n])));
                }
                Self::ChunkLine => {
                    let Some((n, size)) = chunk_line(rest)? else { return Ok((at, None)) };
                    at += n;
                    (*self, *left) =
                        if size == 0 { (Self::Trailers, MAX_HEAD as u64) } else { (Self::Chunk, size) };
                }
                Self::ChunkEnd => {
                    let Some(n) = line_end(rest)? else { return Ok((at, None)) };
                    at += n;
                    *self = Self::ChunkLine;
                }
                Self::Trailers => {
                    let Some(n) = trailer_line(rest, *left)? else { return Ok((at, None)) };
                    at += n;
                    *left -= n as u64;
                    if n == EMPTY_LINE {
                        *self = Self::Done;
                    }
                }
            }
        }
    }
}

/// The length of an empty line. A trailer line is longer, since it has a name and a colon.
const EMPTY_LINE: usize = 2;

fn data<H>(bytes: &[u8]) -> Option<Event<'_, H>> {
    if bytes.is_empty() { None } else { Some(Event::Data(bytes)) }
}

/// Reads the chunk-size line at the start of `input`: its length including the line end, and the size; `None` while it is incomplete. Of
/// extensions, it checks only that they are text on this line, not their grammar (RFC 9112, section 7.1.1).
fn chunk_line(input: &[u8]) -> Result<Option<(usize, u64)>, Breach> {
    let line = &input[..input.len().min(MAX_CHUNK_LINE)];
    let mut size = 0u64;
    let mut at = 0;
    while let Some(digit) = line.get(at).and_then(|b| hex(*b)) {
        if size >> 60 != 0 {
            return Err(Breach::BadChunk);
        }
        size = size << 4 | digit;
        at += 1;
    }
    if at == 0 && !line.is_empty() {
        return Err(Breach::BadChunk);
    }
    // Blanks are allowed before an extension; servers that pad the size also leave them before the line end.
    while matches!(line.get(at), Some(b' ' | b'\t')) {
        at += 1;
    }
    if line.get(at) == Some(&b';') {
        while line.get(at).is_some_and(|b| is_text(*b)) {
            at += 1;
        }
    }
    match line_end(&line[at..])? {
        Some(n) => Ok(Some((at + n, size))),
        None if line.len() == MAX_CHUNK_LINE => Err(Breach::BadChunk),
        None => Ok(None),
    }
}

/// Skips the trailer line at the start of `input`: its length including the line end; `None` while it is incomplete. `room`: the maximum
/// length.
fn trailer_line(input: &[u8], room: u64) -> Result<Option<usize>, Breach> {
    let room = usize::try_from(room).map_or(input.len(), |room| room.min(input.len()));
    let Some(end) = input[..room].iter().position(|b| *b == b'\n') else {
        return if room < input.len() { Err(Breach::HeadTooLong) } else { Ok(None) };
    };
    let Some(line) = input[..end].strip_suffix(b"\r") else { return Err(Breach::BadChunk) };
    if line.is_empty() {
        return Ok(Some(EMPTY_LINE));
    }
    let Some(colon) = line.iter().position(|b| *b == b':') else { return Err(Breach::BadChunk) };
    let (name, value) = line.split_at(colon);
    if name.is_empty() || !name.iter().all(|b| is_token(*b)) || !value.iter().all(|b| is_text(*b)) {
        return Err(Breach::BadChunk);
    }
    Ok(Some(end + 1))
}

/// Reads a line end. A lone LF is refused, since leniency here enables request smuggling.
fn line_end(input: &[u8]) -> Result<Option<usize>, Breach> {
    match input {
        [b'\r', b'\n', ..] => Ok(Some(2)),
        [] | [b'\r'] => Ok(None),
        _ => Err(Breach::BadChunk),
    }
}

fn hex(b: u8) -> Option<u64> {
    match b {
        b'0'..=b'9' => Some(u64::from(b - b'0')),
        b'a'..=b'f' => Some(u64::from(b - b'a' + 10)),
        b'A'..=b'F' => Some(u64::from(b - b'A' + 10)),
        _ => None,
    }
}

/// Whether a byte may be in a field value: blank, visible or non-ASCII (RFC 9110, section 5.5).
fn is_text(b: u8) -> bool {
    b == b'\t' || (b >= b' ' && b != 0x7f)
}

/// Whether a byte may be in a field name (RFC 9110, section 5.6.2).
fn is_token(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b)
}
