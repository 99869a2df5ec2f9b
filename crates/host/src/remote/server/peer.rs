//! A peer: a persistent connection with its requests.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{IpAddr, TcpStream},
};

use rustix::event::PollFlags;
use units::Nanos;

use super::Reply;
use crate::remote::{KEPT, PATIENCE};

/// Maximum length of a request head, in bytes.
const MAX_HEAD: usize = 8 << 10;

#[derive(Debug)]
pub(super) struct Peer {
    pub(super) stream: TcpStream,
    pub(super) from: IpAddr,
    input: Vec<u8>,
    /// Output that the peer has not accepted yet.
    output: Vec<u8>,
    /// When the wait for its request, or for it to read a response, began; and when it ends.
    pub(super) since: Nanos,
    until: Nanos,
    /// It has sent at least one valid request.
    pub(super) has_asked: bool,
    /// The connection ends after the output.
    ends: bool,
    pub(super) is_gone: bool,
}

impl Peer {
    pub(super) fn new(stream: TcpStream, from: IpAddr, now: Nanos) -> io::Result<Peer> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Peer {
            stream,
            from,
            input: Vec::new(),
            output: Vec::new(),
            since: now,
            until: now + PATIENCE,
            has_asked: false,
            ends: false,
            is_gone: false,
        })
    }

    pub(super) fn waits_for(&self) -> PollFlags {
        if self.output.is_empty() { PollFlags::IN } else { PollFlags::OUT }
    }

    /// Reads and writes what is possible, and responds to requests.
    pub(super) fn go_on(&mut self, now: Nanos, reply: &mut dyn FnMut(&[u8]) -> Reply) {
        if self.output.is_empty() {
            self.read(now);
        } else {
            self.write(now);
        }
        while !self.is_gone && self.output.is_empty() {
            let Some(length) = head_length(&self.input) else { break };
            let head: Vec<u8> = self.input.drain(..length).collect();
            let (status, body) = reply(&head);
            self.has_asked |= status == 200;
            self.respond(now, status, &body, status == 200 && may_go_on(&head));
        }
        if !self.is_gone && self.output.is_empty() && self.input.len() > MAX_HEAD {
            self.respond(now, 431, "", false);
        }
    }

    /// Handles the end of the wait.
    pub(super) fn pass(&mut self, now: Nanos) {
        if self.is_gone || now < self.until {
            return;
        }
        // A peer that has begun a request, or never sent one, gets a response; an idle one does not.
        if self.output.is_empty() && !self.ends && (!self.has_asked || !self.input.is_empty()) {
            self.respond(now, 408, "", false);
        }
        self.is_gone = true;
    }

    fn read(&mut self, now: Nanos) {
        let mut piece = [0; 4096];
        match self.stream.read(&mut piece) {
            Ok(0) => self.is_gone = true,
            Ok(n) => {
                if self.input.is_empty() && self.has_asked {
                    // The wait for its next request begins, as for a first one.
                    (self.since, self.until) = (now, now + PATIENCE);
                }
                self.input.extend_from_slice(&piece[..n]);
            }
            Err(e) if is_for_later(&e) => {}
            Err(_) => self.is_gone = true,
        }
    }

    fn write(&mut self, now: Nanos) {
        match self.stream.write(&self.output) {
            Ok(n) => drop(self.output.drain(..n)),
            Err(e) if is_for_later(&e) => return,
            Err(_) => self.is_gone = true,
        }
        if self.output.is_empty() {
            self.is_gone |= self.ends;
            (self.since, self.until) = (now, now + KEPT);
        }
    }

    fn respond(&mut self, now: Nanos, status: u16, body: &str, goes_on: bool) {
        self.output = respond(status, body, goes_on).into_bytes();
        self.ends = !goes_on;
        (self.since, self.until) = (now, now + PATIENCE);
        self.write(now);
    }
}

fn is_for_later(e: &io::Error) -> bool {
    matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn head_length(input: &[u8]) -> Option<usize> {
    input[..input.len().min(MAX_HEAD)].windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

/// Whether another request may follow this one (RFC 9112, section 9.3): not with HTTP/1.0, and not after content.
fn may_go_on(head: &[u8]) -> bool {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let mut lines = head.lines();
    let is_newer = lines.next().is_some_and(|first| first.ends_with(" http/1.1"));
    let mut fields = lines.filter_map(|line| line.split_once(':'));
    is_newer
        && fields.all(|(name, value)| match name {
            "content-length" | "transfer-encoding" => false,
            "connection" => !value.contains("close"),
            _ => true,
        })
}

fn respond(status: u16, body: &str, goes_on: bool) -> String {
    let (reason, kind) = match status {
        200 => ("OK", "application/json"),
        400 => ("Bad Request", "text/plain"),
        401 => ("Unauthorized", "text/plain"),
        403 => ("Forbidden", "text/plain"),
        404 => ("Not Found", "text/plain"),
        405 => ("Method Not Allowed", "text/plain"),
        408 => ("Request Timeout", "text/plain"),
        _ => ("Request Header Fields Too Large", "text/plain"),
    };
    // 401 names the scheme of the token (RFC 9110 section 11.6.1), 405 the allowed methods (15.5.6).
    let further = match (status, goes_on) {
        (401, _) => "WWW-Authenticate: Bearer\r\nConnection: close\r\n",
        (405, _) => "Allow: GET\r\nConnection: close\r\n",
        (_, false) => "Connection: close\r\n",
        (_, true) => "",
    };
    format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{further}Cache-Control: no-store\r\n\r\n\
         {body}",
        body.len()
    )
}
