//! A server that follows its script, right or wrong: a thread for each connection, and a log.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::OwnedFd,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::JoinHandle,
    time::Duration,
};

use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};

use crate::program::until;

/// A peer that has sent nothing for this long will send nothing more: no thread waits for ever.
const SILENCE: Duration = Duration::from_secs(30);

/// The log of all connections.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) peers: Mutex<Vec<SocketAddr>>,
    /// Heads of requests in the order of their arrival.
    pub(crate) heads: Mutex<Vec<String>>,
    /// Times that scripts have taken.
    pub(crate) times: Mutex<Vec<Duration>>,
    /// All bytes received.
    bytes: Mutex<Vec<u8>>,
}

impl Log {
    pub(crate) fn accepted(&self) -> u64 {
        self.peers.lock().unwrap().len() as u64
    }

    pub(crate) fn requests(&self) -> u64 {
        self.heads.lock().unwrap().len() as u64
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.bytes.lock().unwrap().clone()
    }

    /// The targets of the requests (`/?length=7`), in order.
    pub(crate) fn targets(&self) -> Vec<String> {
        let target = |head: &String| head.split(' ').nth(1).expect("a request line").to_owned();
        self.heads.lock().unwrap().iter().map(target).collect()
    }
}

/// A listening server.
pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    pub(crate) log: Arc<Log>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Scripted {
    pub(crate) fn start(script: impl Fn(&mut Peer) + Send + Sync + 'static) -> Scripted {
        Scripted::at(TcpListener::bind("127.0.0.1:0").unwrap(), script)
    }

    /// Sends the same response to each request.
    pub(crate) fn responding(response: impl Into<String>) -> Scripted {
        let response = response.into();
        Scripted::start(move |peer| while peer.request().is_some() && peer.send(&response) {})
    }

    pub(crate) fn at(listener: TcpListener, script: impl Fn(&mut Peer) + Send + Sync + 'static) -> Scripted {
        let address = listener.local_addr().unwrap();
        let (log, stop) = (Arc::new(Log::default()), Arc::new(AtomicBool::new(false)));
        let (its_log, its_stop, script) = (log.clone(), stop.clone(), Arc::new(script));
        let thread = std::thread::spawn(move || {
            while let Ok((stream, peer)) = listener.accept() {
                if its_stop.load(Relaxed) {
                    return;
                }
                its_log.peers.lock().unwrap().push(peer);
                let (log, script, number) = (its_log.clone(), script.clone(), its_log.accepted());
                std::thread::spawn(move || script(&mut Peer::new(stream, number, log)));
            }
        });
        Scripted { address, log, stop, thread: Some(thread) }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// This many connections and no more have come. Those that the kernel has taken may wait for this server's thread.
    pub(crate) fn assert_accepted(&self, count: u64, why: &str) {
        until(&format!("{count} connections: {why}"), || self.log.accepted() >= count);
        assert_eq!(self.log.accepted(), count, "{why}");
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        // It waits in accept: a connection wakes it.
        let _ = TcpStream::connect(self.address);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// One accepted connection.
pub(crate) struct Peer {
    stream: TcpStream,
    unread: Vec<u8>,
    /// From 1, in the order in which they were accepted.
    pub(crate) number: u64,
    pub(crate) log: Arc<Log>,
}

impl Peer {
    fn new(stream: TcpStream, number: u64, log: Arc<Log>) -> Peer {
        stream.set_read_timeout(Some(SILENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Peer { stream, unread: Vec::new(), number, log }
    }

    /// The next request's head; none if the peer has closed.
    pub(crate) fn request(&mut self) -> Option<String> {
        let end = loop {
            match self.unread.windows(4).position(|four| four == b"\r\n\r\n") {
                Some(at) => break at + 4,
                None if self.receive() => {}
                None => return None,
            }
        };
        let head: Vec<u8> = self.unread.drain(..end).collect();
        let head = String::from_utf8(head).expect("heads of ours are ASCII");
        self.log.heads.lock().unwrap().push(head.clone());
        Some(head)
    }

    /// The content of the request with this head; none if the peer has closed.
    pub(crate) fn content(&mut self, head: &str) -> Option<Vec<u8>> {
        let length = |line: &str| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok();
        let length: usize = head.lines().find_map(length).unwrap_or(0);
        while self.unread.len() < length {
            self.receive().then_some(())?;
        }
        Some(self.unread.drain(..length).collect())
    }

    /// Consumes input up to this text; false if the peer has closed.
    pub(crate) fn line(&mut self, end: &str) -> bool {
        loop {
            match self.unread.windows(end.len()).position(|bytes| bytes == end.as_bytes()) {
                Some(at) => {
                    self.unread.drain(..at + end.len());
                    return true;
                }
                None if self.receive() => {}
                None => return false,
            }
        }
    }

    /// Consumes the input so far; false at the end.
    fn receive(&mut self) -> bool {
        let mut piece = [0; 4096];
        let n = self.stream.read(&mut piece).unwrap_or(0);
        self.unread.extend_from_slice(&piece[..n]);
        self.log.bytes.lock().unwrap().extend_from_slice(&piece[..n]);
        n > 0
    }

    /// Sends what comes next back; false if the peer has closed.
    pub(crate) fn echo(&mut self) -> bool {
        self.wait_for_more() && {
            let bytes = std::mem::take(&mut self.unread);
            self.send_bytes(&bytes)
        }
    }

    /// Sends something; false if the peer has closed.
    pub(crate) fn send(&mut self, text: &str) -> bool {
        self.send_bytes(text.as_bytes())
    }

    /// The same with any bytes.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// Reads until the peer closes.
    pub(crate) fn wait_gone(&mut self) {
        while self.receive() {}
    }

    /// Whether the peer sends something more, instead of closing.
    pub(crate) fn wait_for_more(&mut self) -> bool {
        !self.unread.is_empty() || self.receive()
    }

    /// Whether the unconsumed input begins like this.
    pub(crate) fn has(&self, begin: &str) -> bool {
        self.unread.starts_with(begin.as_bytes())
    }

    /// Whether the peer neither sends nor closes for a time. Its input is kept.
    pub(crate) fn is_silent_for(&mut self, time: Duration) -> bool {
        self.stream.set_read_timeout(Some(time)).unwrap();
        let mut piece = [0; 4096];
        let came = self.stream.read(&mut piece);
        self.stream.set_read_timeout(Some(SILENCE)).unwrap();
        self.unread.extend_from_slice(&piece[..*came.as_ref().unwrap_or(&0)]);
        came.is_err_and(|e| e.kind() == ErrorKind::WouldBlock)
    }

    /// The connection will end with a reset.
    pub(crate) fn reset(&mut self) {
        rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO)).unwrap();
    }
}

/// A complete response.
pub(crate) fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// A port whose socket accepts no connection: with a backlog it lets this many wait, without one it
/// refuses them all.
pub(crate) fn taken_port(backlog: Option<i32>) -> (OwnedFd, SocketAddr) {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &"127.0.0.1:0".parse::<SocketAddr>().unwrap()).unwrap();
    if let Some(n) = backlog {
        listen(&socket, n).unwrap();
    }
    let address = SocketAddr::try_from(getsockname(&socket).unwrap()).unwrap();
    (socket, address)
}
