//! The error texts of an HTTP/2 server, for error samples: its frames are no readable sample.

use samples::{Detail, ErrorSample};

use super::State;

/// The field that explains the status of a response.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// The exchange of the response.
    of: u32,
    /// The field with its name.
    field: Vec<u8>,
}

/// How a server announced the end of a connection: its error code, if any, and its text, which is the debug data of a GOAWAY (RFC
/// 9113, section 6.8) or the reason of a WebSocket close.
#[derive(Debug, Default)]
pub(in crate::protocol) struct Farewell {
    pub(in crate::protocol) error: Detail,
    words: Vec<u8>,
}

impl Farewell {
    pub(in crate::protocol) fn new(error: Detail, words: &[u8]) -> Farewell {
        Farewell { error, words: words[..words.len().min(ErrorSample::BYTES)].to_vec() }
    }

    pub(in crate::protocol) fn is_empty(&self) -> bool {
        self.error.is_none() && self.words.is_empty()
    }

    /// The server's text.
    pub(in crate::protocol) fn words(&self) -> &[u8] {
        &self.words
    }
}

impl Said {
    /// The field as text.
    pub(super) fn field(&self) -> &[u8] {
        &self.field
    }

    pub(super) fn is_empty(&self) -> bool {
        self.field.is_empty()
    }

    /// The response on this exchange has ended: drops the field unless it belongs to this response.
    pub(super) fn end(&mut self, exchange: u32) {
        if self.of != exchange {
            self.field.clear();
        }
    }
}

impl State {
    /// Keeps a field that explains the status of the response on a stream.
    pub(in crate::protocol) fn say(&mut self, place: usize, name: &str, value: &[u8]) {
        if value.is_empty() {
            return;
        }
        let of = self.under_way[place].exchange;
        let said = &mut self.rare.get_or_insert_default().said;
        said.of = of;
        said.field.clear();
        said.field.extend([name.as_bytes(), b": ", value].concat().iter().take(ErrorSample::BYTES));
    }
}
