//! gRPC: the messages in the bodies of HTTP/2, and how a call ends (`grpc/doc/PROTOCOL-HTTP2.md`,
//! `grpc/doc/http-grpc-status-mapping.md`).

use crate::Breach;
use crate::out::Out;

/// Octets before each message: whether it is compressed, and its length.
pub const PREFIX: usize = 5;

/// The statuses of a call that are used here (`grpc/doc/statuscodes.md`).
pub mod status {
    /// Not an error.
    pub const OK: u16 = 0;
    /// An error of another system, or one that is not known.
    pub const UNKNOWN: u16 = 2;
    /// The request is wrong.
    pub const INVALID_ARGUMENT: u16 = 3;
    /// The caller may not.
    pub const PERMISSION_DENIED: u16 = 7;
    /// No such method.
    pub const UNIMPLEMENTED: u16 = 12;
    /// A rule of the protocol was broken.
    pub const INTERNAL: u16 = 13;
    /// The service is not there at present.
    pub const UNAVAILABLE: u16 = 14;
    /// The caller is not known.
    pub const UNAUTHENTICATED: u16 = 16;
    /// The highest that is defined.
    pub const LAST: u16 = 16;
}

/// What a response of HTTP without `grpc-status` means, where its status is not 200.
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

/// Whether this is the content type of gRPC: `application/grpc`, where the format of its messages or parameters may follow. Its relatives,
/// such as `application/grpc-web`, frame their messages otherwise.
pub fn is_type(content_type: &[u8]) -> bool {
    let rest = content_type.strip_prefix(b"application/grpc");
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';' | b' ')))
}

/// The messages of a body, one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// What has come of the length; then how many bytes of the message are to come.
    left: [u8; 4],
    /// How much of the prefix has come.
    came: u8,
    may_be_compressed: bool,
}

const _: () = assert!(size_of::<Messages>() <= 6, "each call under way has one");

/// A piece of a message as it comes, wherever frames and reads have cut it. It is empty only where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// These bytes of the message.
    pub bytes: &'a [u8],
    /// The last piece.
    pub ends: bool,
}

impl Messages {
    /// Those of a body from its begin on; `may_be_compressed`: its head names a `grpc-encoding`.
    pub const fn new(may_be_compressed: bool) -> Self {
        Self { left: [0; 4], came: 0, may_be_compressed }
    }

    /// Whether no message has come in part.
    pub const fn is_between_messages(&self) -> bool {
        self.came == 0
    }

    /// Reads a part of the body: how many bytes are consumed, and a piece of a message. Call until `(0, None)`.
    ///
    /// # Errors
    /// The first byte of a prefix is neither 0 nor, where messages may be compressed, 1.
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

/// Writes the prefix of a message that is not compressed into `out`: the bytes written, `None` where they do not fit.
pub fn write_prefix(out: &mut [u8], length: u32) -> Option<usize> {
    let mut out = Out::new(out);
    out.put(&[0])?;
    out.put(&length.to_be_bytes())?;
    Some(out.len())
}
