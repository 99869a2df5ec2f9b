//! What a server of HTTP/2 says in words. Its frames are no sample of an error, but these are.

use samples::{Detail, ErrorSample};

use super::State;
use crate::protocol::Session;

/// The field that explains the status of a response.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Of the response on this exchange.
    of: u32,
    /// With its name.
    field: Vec<u8>,
}

/// How a server has announced the end of a connection: with which error, if any, and what it said, the debug data of a GOAWAY (RFC 9113,
/// section 6.8) or the reason of a WebSocket close.
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

    /// What it said.
    pub(in crate::protocol) fn words(&self) -> &[u8] {
        &self.words
    }
}

impl Said {
    pub(super) fn is_empty(&self) -> bool {
        self.field.is_empty()
    }

    /// The response on this exchange has ended: what others said is none of it.
    pub(super) fn end(&mut self, exchange: u32) {
        if self.of != exchange {
            self.field.clear();
        }
    }
}

impl State {
    /// The response on a stream has a field that explains its status.
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

impl Session {
    /// What the server said of the response that was completed last, where its bytes are no sample of it.
    pub(crate) fn said(&self) -> &[u8] {
        match self {
            Session::Http2(state) => state.rare.as_ref().map_or(&[], |rare| &rare.said.field),
            _ => &[],
        }
    }

    /// The same of the end of the session.
    pub(crate) fn farewell(&self) -> &[u8] {
        match self {
            Session::Http2(state) => state.rare.as_ref().map_or(&[], |rare| rare.farewell.words()),
            Session::Tunnels(state) => state.farewell(),
            _ => &[],
        }
    }
}
