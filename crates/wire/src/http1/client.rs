//! The client role: reads responses to outstanding requests.

use super::Event;
use super::body::Stage;
use super::head::{self, Coding, Fields, ResponseHead};
use crate::Breach;

/// A connection from the client's view: one request outstanding at a time.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    left: u64,
    stage: Stage,
    /// Whether the method of the outstanding request is HEAD.
    head: bool,
    keeps_alive: bool,
    switched: bool,
}

const _: () = assert!(size_of::<Client>() <= 16, "a client's state is kept per request in flight");

/// The parsed head of a final response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The status code, 101 or 200 to 999.
    pub status: u16,
    /// Length of the head in bytes, as received.
    pub head_bytes: u32,
    /// Length of the body in bytes, 0 for a HEAD request; `None` if it is not known in advance (chunked, or until the connection ends).
    pub length: Option<u64>,
    /// Whether the connection may carry another request after this response.
    pub keeps_alive: bool,
    /// `Keep-Alive: timeout=N`: the server's idle timeout in seconds.
    pub keep_alive_timeout_s: Option<u32>,
    /// Whether the head has all expected fields.
    pub has_expected: bool,
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

impl Client {
    /// A new connection, without an outstanding request.
    pub const fn new() -> Self {
        Self { left: 0, stage: Stage::Idle, head: false, keeps_alive: true, switched: false }
    }

    /// Records that a request was sent. `head`: its method is HEAD, so the response has no body.
    ///
    /// # Panics
    /// If a request is outstanding, or the connection has left HTTP by a 101.
    pub fn order(&mut self, head: bool) {
        assert!(self.stage == Stage::Idle, "order: one request at a time, on HTTP only: {:?}", self.stage);
        self.head = head;
        self.stage = Stage::Head;
    }

    /// Reads `input`: returns the number of bytes consumed, and an event. Call until `(0, None)`, see [the module](super). `expected`:
    /// fields to look for in the head of the final response, each by its name and a text that its value contains.
    ///
    /// # Errors
    /// The [`Breach`] of the server; the connection must not be used any more.
    pub fn handle_bytes<'a>(
        &mut self,
        input: &'a [u8],
        expected: &[(String, String)],
    ) -> Result<(usize, Option<Event<'a, Head>>), Breach> {
        match self.stage {
            Stage::Idle if !input.is_empty() => Err(Breach::UnexpectedBytes),
            Stage::Head if !input.is_empty() => self.handle_head(input, expected),
            _ => self.stage.advance(&mut self.left, after(self.switched), input),
        }
    }

    /// Handles the close of the server's side, after all its bytes were passed. This ends a body that lasts until the close.
    ///
    /// # Errors
    /// [`Breach::Truncated`] if a response is outstanding or incomplete.
    pub fn handle_end(&mut self) -> Result<Option<Event<'static, Head>>, Breach> {
        self.keeps_alive = false;
        match self.stage {
            Stage::Idle | Stage::Left => Ok(None),
            Stage::UntilClose | Stage::Done => {
                self.stage = after(self.switched);
                Ok(Some(Event::End))
            }
            _ => Err(Breach::Truncated),
        }
    }

    /// Whether no request is outstanding.
    pub fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle | Stage::Left)
    }

    /// Whether the connection may carry another request. Valid between [`Event::End`] and the next order.
    pub fn keeps_alive(&self) -> bool {
        self.keeps_alive
    }

    fn handle_head<'a>(
        &mut self,
        input: &'a [u8],
        expected: &[(String, String)],
    ) -> Result<(usize, Option<Event<'a, Head>>), Breach> {
        let event = head::response(input, 0, |head| self.event(&head, expected))?;
        event.unwrap_or(Ok((0, None)))
    }

    fn event<'a>(
        &mut self,
        head: &ResponseHead<'_, '_>,
        expected: &[(String, String)],
    ) -> Result<(usize, Option<Event<'a, Head>>), Breach> {
        let ResponseHead { n, status, http10, headers } = *head;
        if matches!(status, 100 | 102..200) {
            return Ok((n, Some(Event::Interim(status))));
        }
        let fields = Fields::read(headers)?;
        let length = self.frame(status, http10, &fields);
        let head_bytes = u32::try_from(n).expect("a head is at most MAX_HEAD long");
        Ok((
            n,
            Some(Event::Head(Head {
                status,
                head_bytes,
                length,
                keeps_alive: self.keeps_alive,
                keep_alive_timeout_s: fields.timeout_s,
                has_expected: head::has_fields(headers, expected),
            })),
        ))
    }

    /// Decides how the body ends (RFC 9112, section 6.3) and whether the connection persists. Returns the length of the body, if known.
    fn frame(&mut self, status: u16, http10: bool, fields: &Fields<'_>) -> Option<u64> {
        self.switched = status == 101;
        self.keeps_alive = fields.keeps_alive(http10) && !self.switched;
        if self.head || matches!(status, 101 | 204 | 304) {
            self.stage = Stage::Done;
            return Some(0);
        }
        match (fields.coding, fields.length) {
            (Coding::Absent, Some(length)) => {
                self.left = length;
                self.stage = Stage::sized(length);
                Some(length)
            }
            (Coding::Chunked { .. }, length) => {
                self.stage = Stage::ChunkLine;
                // The framing is faulty but readable; the connection must not be trusted after this response (RFC 9112, section 6.1).
                self.keeps_alive &= length.is_none() && !http10;
                None
            }
            (Coding::Absent, None) | (Coding::Other, _) => {
                self.stage = Stage::UntilClose;
                self.keeps_alive = false;
                None
            }
        }
    }
}

/// The stage of a client after a response.
fn after(switched: bool) -> Stage {
    if switched { Stage::Left } else { Stage::Idle }
}
