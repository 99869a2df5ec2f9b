//! gRPC: the messages in HTTP/2 bodies, and the status of a call (`grpc/doc/PROTOCOL-HTTP2.md`,
//! `grpc/doc/http-grpc-status-mapping.md`).

use crate::Breach;
use crate::out::Out;

/// Length of the prefix of each message, in bytes: a compression flag and the length of the message.
pub const PREFIX: usize = 5;

/// The status codes of calls that are used here (`grpc/doc/statuscodes.md`).
pub mod status {
    /// No error.
    pub const OK: u16 = 0;
    /// An error from another system, or an unknown error.
    pub const UNKNOWN: u16 = 2;
    /// The request is invalid.
    pub const INVALID_ARGUMENT: u16 = 3;
    /// The caller lacks permission.
    pub const PERMISSION_DENIED: u16 = 7;
    /// The method does not exist.
    pub const UNIMPLEMENTED: u16 = 12;
    /// A protocol rule was violated.
    pub const INTERNAL: u16 = 13;
    /// The service is temporarily unavailable.
    pub const UNAVAILABLE: u16 = 14;
    /// The caller is not authenticated.
    pub const UNAUTHENTICATED: u16 = 16;
    /// The highest status code that is defined.
    pub const LAST: u16 = 16;
}

/// The gRPC status of an HTTP response without `grpc-status`, whose status is not 200.
pub const fn status_of_http(status: u16) -> u16 {
    match status {
        400 => status::INTERNAL,
        401 => status::UNAUTHENTICATED,
        403 => status::PERMISSION_DENIED,
        404 => status::UNIMPLEMENTED,
        429 | 502 | 503 | 504 => status::UNAVAILABLE,
        _ => status::UNKNOWN,
    }
}

/// Whether this is the content type of gRPC: `application/grpc`, optionally with a message format or parameters. Related types, such as
/// `application/grpc-web`, use another framing.
pub fn is_type(content_type: &[u8]) -> bool {
    let rest = content_type.strip_prefix(b"application/grpc");
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';' | b' ')))
}

/// Reads the messages of a body, one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// While the prefix is incomplete, the bytes of the length that have arrived; then the number of bytes of the message to come.
    left: [u8; 4],
    /// Number of bytes of the prefix that have arrived.
    came: u8,
    may_be_compressed: bool,
}

const _: () = assert!(size_of::<Messages>() <= 6, "each call under way has one");

/// A part of a message as it arrives, cut at arbitrary positions by frames and reads. It is empty only if it ends the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// Whether it is the last part.
    pub ends: bool,
}

impl Messages {
    /// A reader for a new body. `may_be_compressed`: the head names a `grpc-encoding`.
    pub const fn new(may_be_compressed: bool) -> Self {
        Self { left: [0; 4], came: 0, may_be_compressed }
    }

    /// Whether no message is incomplete.
    pub const fn is_between_messages(&self) -> bool {
        self.came == 0
    }

    /// Reads a part of the body: returns the number of bytes consumed, and a part of a message. Call until `(0, None)`.
    ///
    /// # Errors
    /// The first byte of a prefix is neither 0 nor, if messages may be compressed, 1.
    pub fn handle_bytes<'a>(&mut self, input: &'a [u8]) -> Result<(usize, Option<Piece<'a>>), Breach> {
        let mut used = 0;
        while usize::from(self.came) < PREFIX {
            let Some(&byte) = input.get(used) else { return Ok((used, None)) };
            used += 1;
            match self.came {
                0 if byte == 0 || (byte == 1 && self.may_be_compressed) => self.left = [0; 4],
                0 => return Err(Breach::BadPrefix),
                nth => self.left[usize::from(nth) - 1] = byte,
            }
            self.came += 1;
        }
        let left = u32::from_be_bytes(self.left);
        let rest = &input[used..];
        let n = rest.len().min(left as usize);
        let ends = n == left as usize;
        self.left = (left - n as u32).to_be_bytes();
        if ends {
            self.came = 0;
        }
        Ok((used + n, (ends || n > 0).then_some(Piece { bytes: &rest[..n], ends })))
    }
}

/// Writes the prefix of an uncompressed message into `out`: returns the number of bytes, `None` if they do not fit.
pub fn write_prefix(out: &mut [u8], length: u32) -> Option<usize> {
    let mut out = Out::new(out);
    out.put(&[0])?;
    out.put(&length.to_be_bytes())?;
    Some(out.len())
}
