//! A client that sends exactly what the test gives it and reads one response at a time.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// A connection to a server under test.
pub(crate) struct Caller {
    stream: TcpStream,
    unread: Vec<u8>,
}

/// One response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Response {
    /// The value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

impl Caller {
    pub(crate) fn dial(address: SocketAddr) -> Caller {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.set_nodelay(true).unwrap();
        Caller { stream, unread: Vec::new() }
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.send_bytes(text.as_bytes());
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// The next bytes, this many.
    pub(crate) fn take(&mut self, length: usize) -> Vec<u8> {
        while self.unread.len() < length {
            assert!(self.receive(), "ended too early: {:?}", self.unread);
        }
        self.unread.drain(..length).collect()
    }

    /// Requests a path and waits for the response; the connection is kept.
    pub(crate) fn get(&mut self, path: &str) -> Response {
        self.send(&get(path));
        self.response()
    }

    /// The next response, its body by its length.
    pub(crate) fn response(&mut self) -> Response {
        let head = self.head();
        let response = Response { status: head[9..12].parse().unwrap(), head, body: Vec::new() };
        let length = response.field("content-length").expect("a length").parse().unwrap();
        Response { body: self.take(length), ..response }
    }

    /// The next head; what follows is not read.
    pub(crate) fn head(&mut self) -> String {
        let end = loop {
            match self.unread.windows(4).position(|four| four == b"\r\n\r\n") {
                Some(at) => break at + 4,
                None => assert!(self.receive(), "ended in a head: {:?}", self.unread),
            }
        };
        String::from_utf8(self.unread.drain(..end).collect()).unwrap()
    }

    fn receive(&mut self) -> bool {
        let mut piece = [0; 4096];
        let n = self.stream.read(&mut piece).expect("an answer in time");
        self.unread.extend_from_slice(&piece[..n]);
        n > 0
    }

    /// Whether the connection ends without further bytes.
    pub(crate) fn is_over(&mut self) -> bool {
        let mut piece = [0; 64];
        self.unread.is_empty() && self.stream.read(&mut piece).is_ok_and(|n| n == 0)
    }
}

/// A request without a body.
pub(crate) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")
}
