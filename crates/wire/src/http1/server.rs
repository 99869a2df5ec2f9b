//! The server role: reads requests.

use super::Event;
use super::body::Stage;
use super::head::{self, Coding, Fields};
use crate::{Breach, offer::Offer};

/// A connection from the server's view: any number of requests, one after the other, pipelined or not.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    left: u64,
    stage: Stage,
    keeps_alive: bool,
}

const _: () = assert!(size_of::<Server>() <= 16, "a server's state is kept per connection");

/// The parsed head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The method as sent; any token (RFC 9110 section 9.1).
    pub method: &'a str,
    /// The target as sent: a path with its query, a URL, `host:port` or `*` (RFC 9112 section 3.2).
    pub target: &'a str,
    /// Whether the client wants to send another request on this connection.
    pub keeps_alive: bool,
    /// Whether the method is HEAD, so that the response has no body.
    pub head: bool,
    /// Whether the client waits for [`CONTINUE`](super::CONTINUE) before it sends the body.
    pub expects_continue: bool,
    /// Whether the request is HTTP/1.0, so that a kept connection must be confirmed in the response.
    pub http10: bool,
    /// The upgrade to WebSocket that the client offers, if any. This machine continues with HTTP: to accept, replace it.
    pub websocket: Option<Offer<'a>>,
}

impl Default for Server {
    fn default() -> Self {
        Self::new()
    }
}

impl Server {
    /// A new connection, whose first request is expected.
    pub const fn new() -> Self {
        Self { left: 0, stage: Stage::Head, keeps_alive: true }
    }

    /// Reads `input`: returns the number of bytes consumed, and an event. Call until `(0, None)`, see [the module](super).
    ///
    /// # Errors
    /// The [`Breach`] of the client: close the connection, optionally after a 400.
    pub fn handle_bytes<'a>(
        &mut self,
        input: &'a [u8],
    ) -> Result<(usize, Option<Event<'a, Request<'a>>>), Breach> {
        if self.stage == Stage::Head {
            return self.handle_head(input);
        }
        let after = if self.keeps_alive { Stage::Head } else { Stage::Left };
        self.stage.advance(&mut self.left, after, input)
    }

    fn handle_head<'a>(
        &mut self,
        input: &'a [u8],
    ) -> Result<(usize, Option<Event<'a, Request<'a>>>), Breach> {
        let blank = empty_lines(input)?;
        let input = head::window(&input[blank..]);
        let mut room = head::room();
        let mut parsed = httparse::Request::new(&mut []);
        let result = parsed.parse_with_uninit_headers(input, &mut room);
        let Some(n) = head::complete(result, input.len())? else { return Ok((blank, None)) };
        let fields = Fields::read(parsed.headers)?;
        let http10 = parsed.version == Some(0);
        // RFC 9112, section 3.2: exactly one `Host`, except that HTTP/1.0 may have none.
        if fields.hosts > 1 || (fields.hosts == 0 && !http10) {
            return Err(Breach::BadHead);
        }
        self.frame(http10, &fields)?;
        self.keeps_alive = fields.keeps_alive(http10);
        let method = parsed.method.expect("a complete head has a method");
        let request = Request {
            method,
            target: parsed.path.expect("a complete head has a target"),
            keeps_alive: self.keeps_alive,
            head: method == "HEAD",
            // An HTTP/1.0 client cannot mean it (RFC 9110, section 10.1.1).
            expects_continue: fields.expects_continue && !http10,
            http10,
            // Only a GET with HTTP/1.1 or later can upgrade (RFC 6455, section 4.1, items 2 to 4).
            websocket: fields.websocket().filter(|_| method == "GET" && !http10),
        };
        Ok((blank + n, Some(Event::Head(request))))
    }

    /// Decides how the body ends (RFC 9112, section 6.3). Framing that an intermediary might read differently is refused.
    fn frame(&mut self, http10: bool, fields: &Fields<'_>) -> Result<(), Breach> {
        self.stage = match (fields.coding, fields.length) {
            (Coding::Absent, length) => {
                self.left = length.unwrap_or(0);
                Stage::sized(self.left)
            }
            (Coding::Chunked { only: true }, None) if !http10 => Stage::ChunkLine,
            _ => return Err(Breach::BadLength),
        };
        Ok(())
    }
}

/// Number of bytes of empty lines before a request, which a server skips (RFC 9112, section 2.2).
fn empty_lines(input: &[u8]) -> Result<usize, Breach> {
    let mut at = 0;
    while input[at..].starts_with(b"\r\n") {
        at += 2;
    }
    match input[at..] {
        // The parser would accept a lone LF as an empty line.
        [b'\n', ..] => Err(Breach::BadHead),
        _ => Ok(at),
    }
}
