//! The side of the run.

use std::{
    io::Write,
    net::{SocketAddr, TcpStream},
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel},
    thread,
    time::Duration,
};

use samples::Look;
use units::Nanos;

use super::{PATIENCE, Token, read_until};

/// From one question to the next.
const EVERY: Duration = Duration::from_secs(1);
/// The longest answer that is read, bytes.
const MOST_ANSWER: usize = 64 << 10;
/// Looks that wait to be taken; a run takes one a second, and what is older is of no use.
const MOST_WAITING: usize = 8;

/// Asks a target's host each second, from a thread of its own: whatever happens to it, the run goes on.
#[derive(Debug)]
pub struct Poller {
    looks: Receiver<Result<Look, String>>,
    /// The thread ends when this is dropped, and a question that is under way has been answered or given up.
    _alive: Sender<()>,
}

impl Poller {
    /// Begins to ask about `ports`.
    ///
    /// # Errors
    /// There can be no further thread.
    pub fn start(address: SocketAddr, ports: &[u16], token: Option<Token>) -> std::io::Result<Poller> {
        let (hand_over, looks) = sync_channel(MOST_WAITING);
        let (_alive, is_alive) = channel();
        let ports = ports.to_vec();
        let ask = move || poll(address, &ports, token.as_ref(), &hand_over, &is_alive);
        thread::Builder::new().name("observe".to_owned()).spawn(ask)?;
        Ok(Poller { looks, _alive })
    }

    /// The next answer, or why there was none, if one has come.
    pub fn next(&self) -> Option<Result<Look, String>> {
        self.looks.try_recv().ok()
    }

    /// The same, waiting for it.
    pub fn wait(&self, most: Nanos) -> Option<Result<Look, String>> {
        self.looks.recv_timeout(Duration::from_nanos(most.0)).ok()
    }
}

fn poll(
    address: SocketAddr,
    ports: &[u16],
    token: Option<&Token>,
    hand_over: &SyncSender<Result<Look, String>>,
    is_alive: &Receiver<()>,
) {
    loop {
        // A full queue is no reason to wait: the run has other things to do just now.
        let _ = hand_over.try_send(fetch(address, ports, token));
        if is_alive.recv_timeout(EVERY) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

/// Asks once; takes no longer than twice [`PATIENCE`].
///
/// # Errors
/// It does not answer, refuses, or says something else than a look.
pub fn fetch(address: SocketAddr, ports: &[u16], token: Option<&Token>) -> Result<Look, String> {
    let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
    let authorization =
        token.map(|token| format!("Authorization: {}\r\n", token.header())).unwrap_or_default();
    let (status, text) = get(address, &format!("/observe?port={}", ports.join(",")), &authorization)?;
    match status {
        200 => {}
        401 => return Err("it wants a token: give --observe-token-file".to_owned()),
        403 => return Err("it does not accept this token: 403".to_owned()),
        status => return Err(format!("its answer is no look: {status}")),
    }
    Look::from_json(&text).map_err(|e| format!("its answer is no look, is it another version of throng? {e}"))
}

/// Connections that `throng serve` has open, by its own count at `/stats`, without the one that asks; takes no longer than
/// twice [`PATIENCE`].
///
/// # Errors
/// It does not answer, or says something else.
pub fn open_connections(address: SocketAddr) -> Result<u64, String> {
    let (status, text) = get(address, "/stats", "")?;
    let stats: serde_json::Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let open = stats["open"].as_u64().filter(|_| status == 200);
    open.map(|open| open.saturating_sub(1)).ok_or_else(|| format!("its answer has no counts: {status}"))
}

/// Status and content of the answer to a request with these further fields.
fn get(address: SocketAddr, path: &str, fields: &str) -> Result<(u16, String), String> {
    let patience = Duration::from_nanos(PATIENCE.0);
    let failed = |e: std::io::Error| e.to_string();
    let mut stream = TcpStream::connect_timeout(&address, patience).map_err(failed)?;
    stream.set_write_timeout(Some(patience)).map_err(failed)?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{fields}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(failed)?;
    let answer = read_until(&mut stream, MOST_ANSWER, |_| false).map_err(failed)?;
    let mut room = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut room);
    let Ok(httparse::Status::Complete(head)) = response.parse(&answer) else {
        return Err("its answer is not HTTP".to_owned());
    };
    let text = str::from_utf8(&answer[head..]).map_err(|e| e.to_string())?;
    Ok((response.code.unwrap_or_default(), text.to_owned()))
}
