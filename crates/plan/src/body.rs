//! The content of a request, and the message of a call of gRPC.

use crate::Text;
use std::fmt;

/// The content of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// As written, with variables.
    Text(Text),
    /// What a file contains.
    File(Content),
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
            Body::File(_) => 0,
        }
    }

    /// Whether it is always the same.
    pub(crate) fn is_fixed(&self) -> bool {
        match self {
            Body::Text(text) => text.fixed_text().is_some(),
            Body::File(_) => true,
        }
    }

    /// Octets of the longest that it can give.
    pub(crate) fn max_len(&self) -> usize {
        match self {
            Body::Text(text) => text.max_len(),
            Body::File(content) => content.bytes.len(),
        }
    }

    /// Writes one to the front of `out`, which must have room for it; how many octets.
    pub fn write(&self, values: &mut crate::Values, out: &mut [u8]) -> usize {
        match self {
            Body::Text(text) => text.write(values, out),
            Body::File(content) => {
                out[..content.bytes.len()].copy_from_slice(&content.bytes);
                content.bytes.len()
            }
        }
    }
}

/// The text as one writes it, or the name of the file.
impl fmt::Display for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Body::Text(text) => text.fmt(f),
            Body::File(content) => f.write_str(&content.file),
        }
    }
}
