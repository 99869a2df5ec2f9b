//! A kept connection that is reopened when it is lost.

use std::{
    collections::BTreeMap,
    io::{self, ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use units::{Clock, Nanos};

use crate::remote::PATIENCE;

/// Maximum length of a response, bytes.
const MAX_ANSWER: usize = 64 << 10;

/// A connection to one address. Its users take turns.
#[derive(Clone, Debug)]
pub(in crate::remote) struct Connection {
    address: SocketAddr,
    link: Arc<Mutex<Option<Link>>>,
}

/// Status and content.
type Response = (u16, String);

/// Why a request has no response.
enum Failed {
    /// The connection ended before a response began.
    Lost(String),
    /// The response may still arrive.
    Late,
    /// The response is not valid.
    Wrong(String),
}

impl Connection {
    /// A new connection, opened by the first request.
    pub(in crate::remote) fn new(address: SocketAddr) -> Connection {
        Connection { address, link: Arc::default() }
    }

    /// The connection that all users in this process share for this address.
    pub(in crate::remote) fn kept(address: SocketAddr) -> Connection {
        static ALL: Mutex<BTreeMap<SocketAddr, Connection>> = Mutex::new(BTreeMap::new());
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(address).or_insert_with(|| Connection::new(address)).clone()
    }

    /// Status and content of the response to a request with these additional fields. A lost connection is reopened; a slow
    /// one is kept until there is another. Takes at most three times [`PATIENCE`].
    ///
    /// # Errors
    /// No response, or one that is not HTTP.
    pub(in crate::remote) fn get(&self, path: &str, fields: &str) -> Result<Response, String> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{fields}\r\n", self.address);
        let mut place = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(link) = place.as_mut() {
            match link.send(&request) {
                Ok(response) => {
                    place.take_if(|link| link.ends);
                    return Ok(response);
                }
                Err(Failed::Lost(_)) => *place = None,
                Err(Failed::Late) => match Link::dial(self.address) {
                    Ok(new) => *place = Some(new),
                    Err(_) => return Err(late()),
                },
                Err(Failed::Wrong(why)) => {
                    *place = None;
                    return Err(why);
                }
            }
        }
        let mut link = match place.take() {
            Some(link) => link,
            None => Link::dial(self.address).map_err(|e| e.to_string())?,
        };
        let response = link.send(&request).map_err(|failed| match failed {
            Failed::Late => late(),
            Failed::Lost(why) | Failed::Wrong(why) => why,
        })?;
        *place = Some(link).filter(|link| !link.ends);
        Ok(response)
    }
}

fn late() -> String {
    format!("no response within {PATIENCE}")
}

#[derive(Debug)]
struct Link {
    stream: TcpStream,
    input: Vec<u8>,
    /// Outstanding requests.
    owed: u32,
    /// The peer will close it.
    ends: bool,
}

impl Link {
    fn dial(address: SocketAddr) -> io::Result<Link> {
        let patience = Duration::from_nanos(PATIENCE.0);
        let stream = TcpStream::connect_timeout(&address, patience)?;
        stream.set_write_timeout(Some(patience))?;
        stream.set_nodelay(true)?;
        Ok(Link { stream, input: Vec::new(), owed: 0, ends: false })
    }

    /// Sends a request; skips responses to earlier ones.
    fn send(&mut self, request: &str) -> Result<Response, Failed> {
        let clock = Clock::start();
        // Waits for outstanding responses first, so that a slow peer is not flooded.
        while self.owed > 0 {
            self.read_response(&clock)?;
        }
        let sent = self.stream.write_all(request.as_bytes());
        sent.map_err(|e| Failed::Lost(e.to_string()))?;
        self.owed += 1;
        self.read_response(&clock)
    }

    fn read_response(&mut self, clock: &Clock) -> Result<Response, Failed> {
        loop {
            if let Some((length, response)) = self.parse(false)? {
                self.input.drain(..length);
                self.owed -= 1;
                return Ok(response);
            }
            if self.read(clock)? == 0 {
                self.ends = true;
                let whole = self.parse(true)?;
                return whole.map(|(_, response)| response).ok_or_else(|| not_http(self.input.is_empty()));
            }
        }
    }

    fn read(&mut self, clock: &Clock) -> Result<usize, Failed> {
        let mut piece = [0; 4096];
        loop {
            // A peer that sends byte by byte has no more time than another.
            let left = PATIENCE.since(clock.now());
            if left == Nanos::ZERO {
                return Err(Failed::Late);
            }
            let lost = |e: io::Error| Failed::Lost(e.to_string());
            self.stream.set_read_timeout(Some(Duration::from_nanos(left.0))).map_err(lost)?;
            match self.stream.read(&mut piece) {
                Ok(n) if self.input.len() + n > MAX_ANSWER => {
                    return Err(Failed::Wrong("the response is too long".to_owned()));
                }
                Ok(n) => {
                    self.input.extend_from_slice(&piece[..n]);
                    return Ok(n);
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(e) => return Err(lost(e)),
            }
        }
    }

    /// The response at the start of the input and its length, if it is complete. Without a `Content-Length` it ends with the connection
    /// (RFC 9112, section 6.3).
    fn parse(&mut self, is_end: bool) -> Result<Option<(usize, Response)>, Failed> {
        let mut room = [httparse::EMPTY_HEADER; 32];
        let mut response = httparse::Response::new(&mut room);
        let head = match response.parse(&self.input) {
            Ok(httparse::Status::Complete(head)) => head,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(not_http(false)),
        };
        let status = response.code.unwrap_or_default();
        let field = |name: &str| {
            let found = response.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name));
            found.and_then(|field| str::from_utf8(field.value).ok())
        };
        let ends = field("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        let whole = match field("content-length").map(|value| value.trim().parse::<usize>()) {
            Some(Ok(length)) if length <= MAX_ANSWER => {
                (self.input.len() >= head + length).then_some(head + length)
            }
            Some(_) => return Err(not_http(false)),
            None => is_end.then_some(self.input.len()),
        };
        let Some(whole) = whole else { return Ok(None) };
        let text = str::from_utf8(&self.input[head..whole]).map_err(|e| Failed::Wrong(e.to_string()))?;
        let response = (status, text.to_owned());
        self.ends |= ends;
        Ok(Some((whole, response)))
    }
}

/// If nothing was received, the connection counts as lost.
fn not_http(is_lost: bool) -> Failed {
    let why = "the response is not HTTP".to_owned();
    if is_lost { Failed::Lost(why) } else { Failed::Wrong(why) }
}
