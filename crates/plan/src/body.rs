//! The content of a request, and the message of a call of gRPC.

use crate::Text;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use std::fmt;

/// The content of a request, or a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// As written, with variables.
    Text(Text),
    /// What a file contains; a binary message.
    File(Content),
    /// A binary message that was written as hex digits.
    Hex(Vec<u8>),
    /// A binary message that was written as base64.
    Base64(Vec<u8>),
}

/// A file that is sent, or that says what is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// Its name, as typed.
    pub file: String,
    /// What it contains; empty until it has been read.
    pub bytes: Vec<u8>,
}

/// What makes a request a call of gRPC.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Call {
    /// The response has any number of messages; if not, one.
    pub is_streaming: bool,
    /// The message, encoded; empty until the files have been read that say what it is.
    pub message: Vec<u8>,
}

/// What the calls of a population share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grpc {
    /// The descriptors of its methods and messages, which are given as JSON then: a FileDescriptorSet.
    pub protoset: Option<Content>,
    /// Without descriptors: responses have any number of messages.
    pub is_streaming: bool,
}

/// Octets of the longest content.
pub const LONGEST_BODY: usize = 16 << 20;

impl Content {
    /// A file that has not been read.
    pub(crate) fn named(file: &str) -> Result<Content, String> {
        match file {
            "" => Err("no file; use message.bin".to_owned()),
            _ => Ok(Content { file: file.to_owned(), bytes: Vec::new() }),
        }
    }
}

impl Body {
    /// How many numbers it draws.
    pub(crate) fn numbers(&self) -> usize {
        match self {
            Body::Text(text) => text.numbers(),
            Body::File(_) | Body::Hex(_) | Body::Base64(_) => 0,
        }
    }

    /// Whether it is always the same.
    pub(crate) fn is_fixed(&self) -> bool {
        match self {
            Body::Text(text) => text.fixed_text().is_some(),
            Body::File(_) | Body::Hex(_) | Body::Base64(_) => true,
        }
    }

    /// Octets of the longest that it can give.
    pub fn max_len(&self) -> usize {
        match self {
            Body::Text(text) => text.max_len(),
            Body::File(content) => content.bytes.len(),
            Body::Hex(bytes) | Body::Base64(bytes) => bytes.len(),
        }
    }

    /// Whether it is a binary message.
    pub fn is_binary(&self) -> bool {
        !matches!(self, Body::Text(_))
    }

    /// Its octets, where they are always the same.
    pub fn fixed(&self) -> Option<&[u8]> {
        match self {
            Body::Text(text) => text.fixed_text().map(str::as_bytes),
            Body::File(content) => Some(&content.bytes),
            Body::Hex(bytes) | Body::Base64(bytes) => Some(bytes),
        }
    }

    /// Writes one to the front of `out`, which must have room for it; how many octets.
    pub fn write(&self, values: &mut crate::Values, out: &mut [u8]) -> usize {
        match self {
            Body::Text(text) => text.write(values, out),
            Body::File(Content { bytes, .. }) | Body::Hex(bytes) | Body::Base64(bytes) => {
                out[..bytes.len()].copy_from_slice(bytes);
                bytes.len()
            }
        }
    }
}

/// Digits in pairs, with blanks between them or without.
pub(crate) fn from_hex(text: &str) -> Result<Vec<u8>, String> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).map(|digit| digit as u8))
        .collect();
    match digits {
        Some(digits) if digits.len() % 2 == 0 => {
            Ok(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
        }
        _ => Err(format!("not pairs of hex digits; use 00ff: {text:?}")),
    }
}

/// RFC 4648 section 4, with its padding.
pub(crate) fn from_base64(text: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode(text).map_err(|_| format!("not base64; use AP8=: {text:?}"))
}

/// The text as one writes it, or the name of the file.
impl fmt::Display for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Body::Text(text) => text.fmt(f),
            Body::File(content) => f.write_str(&content.file),
            Body::Hex(bytes) => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
            Body::Base64(bytes) => f.write_str(&STANDARD.encode(bytes)),
        }
    }
}
