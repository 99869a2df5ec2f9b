//! The HTTP/1 machines driven as a connection's loop drives them, with their invariants checked, and printed as
//! text.
//!
//! A trace reads like `200 length=5 keeps | body hello | end`: bodies in one piece and escaped; last comes
//! `breach NAME`, or `rest N` where N bytes are left unconsumed.

use std::fmt::Write as _;
use wire::Breach;
use wire::http1::{Client, Event, Head, MAX_HEAD, Request, Server};

/// Feeds `pieces` to a client that sends requests as long as it may (`heads(n)`: the nth is HEAD), and then
/// the end of the stream if `closes`.
///
/// A head reads `200 length=5 keeps timeout=9` or `200 length=? closes`, an interim one `interim 100`, an end
/// of the stream that says nothing `closed`.
pub fn client(pieces: &[&[u8]], heads: impl Fn(u32) -> bool, closes: bool) -> String {
    let mut machine = Client::new();
    let mut sent = 0;
    let mut trace = Trace::default();
    machine.order(heads(sent));
    let fed = trace.feed(pieces, |input| {
        let (n, event) = machine.handle_bytes(input, &[])?;
        if let Some(Event::Head(head)) = event {
            assert_eq!(head.head_bytes as usize, n, "a head has its own length");
        }
        if event == Some(Event::End) {
            assert!(machine.is_idle(), "nothing is outstanding after the end");
            if machine.keeps_alive() {
                sent += 1;
                machine.order(heads(sent));
            }
        }
        Ok((n, event.map(said)))
    });
    let rest = match fed {
        Ok(rest) => rest,
        Err(breach) => return trace.breach(breach),
    };
    if closes {
        match machine.handle_end() {
            Ok(Some(event)) => trace.add(said(event)),
            Ok(None) => trace.line("closed"),
            Err(breach) => return trace.breach(breach),
        }
        assert!(machine.is_idle() && !machine.keeps_alive(), "closed is idle for good");
        assert_eq!(machine.handle_end(), Ok(None), "an end is reported once");
    }
    trace.rest(rest)
}

/// Feeds `pieces` to a server.
///
/// A head reads `GET /path keeps`, with `head`, `continue`, `http10` and `websocket` (an offer; with `?` one to
/// refuse) behind it where they apply.
pub fn server(pieces: &[&[u8]]) -> String {
    let mut machine = Server::new();
    let mut trace = Trace::default();
    let fed = trace.feed(pieces, |input| {
        let (n, event) = machine.handle_bytes(input)?;
        Ok((n, event.map(said)))
    });
    match fed {
        Ok(rest) => trace.rest(rest),
        Err(breach) => trace.breach(breach),
    }
}

/// What a head says, of either role. `length`: of the body, where it is known; `lasts`: whether the connection does.
#[derive(PartialEq)]
struct Said {
    line: String,
    length: Option<u64>,
    lasts: bool,
}

impl From<Head> for Said {
    fn from(head: Head) -> Self {
        Self { line: response_line(&head), length: head.length, lasts: head.keeps_alive }
    }
}

impl From<Request<'_>> for Said {
    fn from(request: Request<'_>) -> Self {
        Self { line: request_line(&request), length: None, lasts: request.keeps_alive }
    }
}

fn said<H: Into<Said>>(event: Event<'_, H>) -> Event<'_, Said> {
    match event {
        Event::Interim(status) => Event::Interim(status),
        Event::Head(head) => Event::Head(head.into()),
        Event::Data(bytes) => Event::Data(bytes),
        Event::End => Event::End,
    }
}

fn response_line(head: &Head) -> String {
    let length = head.length.map_or_else(|| "?".to_owned(), |n| n.to_string());
    let lasts = if head.keeps_alive { "keeps" } else { "closes" };
    let timeout = head.keep_alive_timeout_s.map(|s| format!(" timeout={s}")).unwrap_or_default();
    format!("{} length={length} {lasts}{timeout}", head.status)
}

fn request_line(r: &Request<'_>) -> String {
    let mut line = format!("{} {}", r.method, r.target);
    line.push_str(if r.keeps_alive { " keeps" } else { " closes" });
    let valid = r.websocket.map(|offer| offer.is_valid());
    for (is_so, word) in [
        (r.head, " head"),
        (r.expects_continue, " continue"),
        (r.http10, " http10"),
        (valid == Some(true), " websocket"),
        (valid == Some(false), " websocket?"),
    ] {
        if is_so {
            line.push_str(word);
        }
    }
    line
}

/// What a machine has said so far.
#[derive(Default)]
struct Trace {
    text: String,
    body: Vec<u8>,
    /// Between a head and its end: what is known of the body's length.
    message: Option<Option<u64>>,
    /// The last message was also the connection's.
    last: bool,
}

impl Trace {
    /// The loop of a connection: all there is until nothing happens, and the rest again with the next piece.
    /// Returns the length of the rest.
    fn feed<F>(&mut self, pieces: &[&[u8]], mut handle_bytes: F) -> Result<usize, Breach>
    where
        F: for<'a> FnMut(&'a [u8]) -> Result<(usize, Option<Event<'a, Said>>), Breach>,
    {
        let mut rest = Vec::new();
        for piece in pieces {
            rest.extend_from_slice(piece);
            let mut at = 0;
            loop {
                let input = &rest[at..];
                let (n, event) = handle_bytes(input)?;
                let taken = input.get(..n).expect("no more is consumed than there is");
                match &event {
                    Some(Event::End) => {}
                    Some(Event::Data(body)) => {
                        assert!(!body.is_empty(), "a body event has bytes");
                        let (body, taken) = (body.as_ptr_range(), taken.as_ptr_range());
                        assert!(
                            taken.start <= body.start && body.end <= taken.end,
                            "a body lies in the input"
                        );
                    }
                    Some(_) => assert!(n > 0, "only an end costs nothing"),
                    None if n == 0 => break,
                    None => {}
                }
                at += n;
                if let Some(event) = event {
                    self.add(event);
                }
            }
            rest.drain(..at);
            let left = self.last && self.message.is_none();
            assert!(rest.len() < MAX_HEAD || left, "the rest is bounded: {}", rest.len());
        }
        Ok(rest.len())
    }

    fn add(&mut self, event: Event<'_, Said>) {
        match event {
            Event::Interim(status) => {
                assert!(self.message.is_none(), "an interim response comes before the final one");
                self.line(&format!("interim {status}"));
            }
            Event::Head(Said { line, length, lasts }) => {
                assert!(self.message.is_none() && !self.last, "a head comes between messages");
                self.message = Some(length);
                self.last = !lasts;
                self.line(&line);
            }
            Event::Data(bytes) => {
                assert!(self.message.is_some(), "a body belongs to a message");
                self.body.extend_from_slice(bytes);
            }
            Event::End => {
                let length = self.message.take().expect("an end belongs to a message");
                let got = self.body.len() as u64;
                assert!(length.is_none_or(|n| n == got), "{got} bytes of body, {length:?} announced");
                self.line("end");
            }
        }
    }

    /// A line, behind what has come of the body.
    fn line(&mut self, line: &str) {
        self.body_so_far();
        let bar = if self.text.is_empty() { "" } else { " | " };
        write!(self.text, "{bar}{line}").expect("a string takes all");
    }

    fn body_so_far(&mut self) {
        let body = std::mem::take(&mut self.body);
        if !body.is_empty() {
            self.line(&format!("body {}", body.escape_ascii()));
        }
    }

    fn breach(mut self, breach: Breach) -> String {
        self.line(&format!("breach {breach}"));
        self.text
    }

    fn rest(mut self, bytes: usize) -> String {
        self.body_so_far();
        if bytes > 0 {
            self.line(&format!("rest {bytes}"));
        }
        self.text
    }
}
