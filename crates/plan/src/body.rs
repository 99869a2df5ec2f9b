//! Contents of requests, and messages of gRPC calls.

use crate::Text;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use std::fmt;

/// The content of a request, or a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Text with variables.
    Text(Text),
    /// The content of a file; as a message it is binary.
    File(Content),
    /// A binary message, written as hex digits.
    Hex(Vec<u8>),
    /// A binary message, written as base64.
    Base64(Vec<u8>),
}

/// A file that is sent, or that determines what is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// Name, as typed.
    pub file: String,
    /// Content; empty until it has been read.
    pub bytes: Vec<u8>,
}

/// The gRPC call of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Call {
    /// Whether the response has any number of messages; otherwise exactly one.
    pub is_streaming: bool,
    /// The encoded message; empty until the files that determine it have been read.
    pub message: Vec<u8>,
}

/// Settings shared by the gRPC calls of a population.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grpc {
    /// A FileDescriptorSet with the methods and messages, which are then written as JSON.
    pub protoset: Option<Content>,
    /// Without descriptors: whether responses have any number of messages.
    pub is_streaming: bool,
}

/// Maximum length of a content in bytes.
pub const LONGEST_BODY: usize = 16 << 20;

impl Content {
    /// A file that has not been read yet.
    pub(crate) fn named(file: &str) -> Result<Content, String> {
        match file {
            "" => Err("no file; use message.bin".to_owned()),
            _ => Ok(Content { file: file.to_owned(), bytes: Vec::new() }),
        }
    }
}

impl Body {
    /// Number of random numbers it draws.
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

    /// Maximum length in bytes.
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

    /// Its bytes, if they are always the same.
    pub fn fixed(&self) -> Option<&[u8]> {
        match self {
            Body::Text(text) => text.fixed_text().map(str::as_bytes),
            Body::File(content) => Some(&content.bytes),
            Body::Hex(bytes) | Body::Base64(bytes) => Some(bytes),
        }
    }

    /// Writes it to the start of `out`, which must have enough room, and returns the length.
    pub fn write(&self, values: &mut crate::Values, out: &mut [u8]) -> usize {
        if let Some(signed) = values.take_body() {
            out[..signed.len()].copy_from_slice(&signed);
            return signed.len();
        }
        match self {
            Body::Text(text) => text.write(values, out),
            Body::File(Content { bytes, .. }) | Body::Hex(bytes) | Body::Base64(bytes) => {
                out[..bytes.len()].copy_from_slice(bytes);
                bytes.len()
            }
        }
    }
}

/// Decodes pairs of hex digits, with or without whitespace.
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

/// Decodes base64 with padding (RFC 4648 section 4).
pub(crate) fn from_base64(text: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode(text).map_err(|_| format!("not base64; use AP8=: {text:?}"))
}

/// Prints the text as written, or the name of the file.
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
