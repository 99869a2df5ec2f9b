//! The side of the run: requests samples.

mod connection;

use std::{
    net::SocketAddr,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel},
    thread,
    time::Duration,
};

use samples::Sample;
use units::Nanos;

use super::Token;

pub(super) use connection::Connection;

/// Interval between requests.
const EVERY: Duration = Duration::from_secs(1);
/// Maximum number of samples to queue. A run takes one a second, and older ones are useless.
const MAX_WAITING: usize = 8;

/// Requests a sample from the target's host every second, on a separate thread: its failures do not affect the run. All
/// pollers of this process, such as the steps of a search, share one connection: if no new one can be opened, for example
/// because a conntrack table on the path is full, the kept one still works.
#[derive(Debug)]
pub struct Poller {
    samples: Receiver<Result<Sample, String>>,
    /// The thread ends when this is dropped and an outstanding request has completed or timed out.
    _alive: Sender<()>,
}

impl Poller {
    /// Starts requesting samples for `ports`.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(address: SocketAddr, ports: &[u16], token: Option<Token>) -> std::io::Result<Poller> {
        let (hand_over, samples) = sync_channel(MAX_WAITING);
        let (_alive, is_alive) = channel();
        let ports = ports.to_vec();
        let body = move || {
            units::failpoint("observe");
            poll(address, &ports, token.as_ref(), &hand_over, &is_alive);
        };
        thread::Builder::new().name("observe".to_owned()).spawn(body)?;
        Ok(Poller { samples, _alive })
    }

    /// The next sample, or the reason why there is none; `None` if nothing has arrived.
    pub fn next(&self) -> Option<Result<Sample, String>> {
        self.samples.try_recv().ok()
    }

    /// Like `next`, but waits for at most `most`.
    pub fn wait(&self, most: Nanos) -> Option<Result<Sample, String>> {
        self.samples.recv_timeout(Duration::from_nanos(most.0)).ok()
    }
}

fn poll(
    address: SocketAddr,
    ports: &[u16],
    token: Option<&Token>,
    hand_over: &SyncSender<Result<Sample, String>>,
    is_alive: &Receiver<()>,
) {
    let connection = Connection::kept(address);
    loop {
        // Drops the sample if the queue is full: the run is busy.
        let _ = hand_over.try_send(fetch_on(&connection, ports, token));
        if is_alive.recv_timeout(EVERY) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

/// Requests one sample on a separate connection. Takes at most twice the timeout of 2 s.
///
/// # Errors
/// No response, a refusal, or not a sample.
pub fn fetch(address: SocketAddr, ports: &[u16], token: Option<&Token>) -> Result<Sample, String> {
    fetch_on(&Connection::new(address), ports, token)
}

fn fetch_on(connection: &Connection, ports: &[u16], token: Option<&Token>) -> Result<Sample, String> {
    let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
    let authorization =
        token.map(|token| format!("Authorization: {}\r\n", token.header())).unwrap_or_default();
    let (status, text) = connection.get(&format!("/observe?port={}", ports.join(",")), &authorization)?;
    match status {
        200 => {}
        401 => return Err("it requires a token; use --observe-token-file".to_owned()),
        403 => return Err("it rejected the token: 403".to_owned()),
        // A server that forwards requests has no sample, and returns the reason.
        502 => return Err(text.trim().to_owned()),
        status => return Err(format!("unexpected response: {status}")),
    }
    Sample::from_json(&text)
        .map_err(|e| format!("the response is not a sample; is it another version of throng? {e}"))
}

/// Number of open connections of `throng serve`, by its own count at `/stats`, excluding that of this request. Takes at most twice the
/// timeout of 2 s.
///
/// # Errors
/// No response, or an unexpected one.
pub fn open_connections(address: SocketAddr) -> Result<u64, String> {
    let (status, text) = Connection::new(address).get("/stats", "Connection: close\r\n")?;
    let stats: serde_json::Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let open = stats["open"].as_u64().filter(|_| status == 200);
    open.map(|open| open.saturating_sub(1)).ok_or_else(|| format!("the response has no counts: {status}"))
}
