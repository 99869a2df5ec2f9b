//! The record layer of TLS driven as a connection's loop drives it: whatever comes, nothing is read but what was sent, in order, up to
//! the first wrong byte; and it is the same however it is cut.

use std::cell::RefCell;

use net::{Layer, Unsealed};
use tls::{Client, Server, Tls, Versions, trial::SUITES};

const INDEX: u32 = 1;
const SECRETS: [[u8; 48]; 2] = [[5; 48], [9; 48]];
/// The longest stream: what is left of one is bounded by a record.
const MAX_RECORD: usize = 5 + (1 << 14) + 2048;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const DATA: u8 = 23;

thread_local! {
    /// Certificates take time: one pair of layers serves all streams, each opened anew.
    static PAIR: RefCell<(Tls, Tls)> = RefCell::new((client(), server()));
}

fn client() -> Tls {
    let client = Client {
        names: vec!["localhost".to_owned()],
        roots: None,
        insecure: true,
        identity: None,
        versions: Versions::Both,
        resume: true,
        alpn: Vec::new(),
    };
    client.layer().expect("nothing in it can be wrong")
}

fn server() -> Tls {
    Server::new(None, &[]).and_then(|server| server.layer()).expect("a certificate can be made")
}

/// A stream that the peer sends, and the data in it before anything that is not as it should be; from a text of commands:
///
/// `d N bytes` a record with these; `e` an empty one; `a` an alert, of level and number; `k` a KeyUpdate (2: malformed), then the next key;
/// `t N bytes` a ticket; `h N bytes` another handshake message; `r N bytes` bytes that are no record; `x` the bit of a byte of the last
/// record changed; `2` the last record twice.
fn stream(peer: &mut Tls, mut text: &[u8]) -> Vec<u8> {
    let (mut stream, mut last) = (Vec::new(), Vec::new());
    let take = |text: &mut &[u8], n: usize| {
        let (taken, rest) = text.split_at(n.min(text.len()));
        *text = rest;
        taken.to_vec()
    };
    let counted = |text: &mut &[u8]| {
        let n = take(text, 1).first().copied().unwrap_or(0);
        take(text, n.into())
    };
    while let Some((command, rest)) = text.split_first() {
        text = rest;
        let record = match command {
            b'd' => peer.seal_as(INDEX, DATA, &counted(&mut text)),
            b'e' => peer.seal_as(INDEX, DATA, &[]),
            b'a' => peer.seal_as(INDEX, ALERT, &take(&mut text, 2)),
            b'k' => {
                let asks = take(&mut text, 1);
                let record = peer.seal_as(INDEX, HANDSHAKE, &[&[24, 0, 0, 1], &asks[..]].concat());
                peer.renew_key(INDEX);
                record
            }
            b't' => {
                let body = counted(&mut text);
                peer.seal_as(INDEX, HANDSHAKE, &[&[4, 0, 0, body.len() as u8], &body[..]].concat())
            }
            b'h' => peer.seal_as(INDEX, HANDSHAKE, &counted(&mut text)),
            b'r' => counted(&mut text),
            b'x' if !last.is_empty() => {
                let at = take(&mut text, 1).first().copied().unwrap_or(0);
                let length = stream.len();
                let from = length - last.len();
                stream[from + usize::from(at) % last.len()] ^= 1 << (at & 7);
                Vec::new()
            }
            b'2' => last.clone(),
            _ => Vec::new(),
        };
        if !record.is_empty() {
            stream.extend_from_slice(&record);
            last = record;
        }
    }
    stream
}

/// Feeds `pieces` of the stream that `text` describes to a client or a server; tells what it reads, and how it ends.
pub(crate) fn check(data: &[u8]) {
    let Some((options, rest)) = data.split_first() else { return };
    let Some((distances, text)) = rest.split_at_checked(usize::from(options & 7)) else { return };
    let (suite, is_server) = (usize::from(options >> 3) % SUITES, options & 0x80 != 0);
    PAIR.with_borrow_mut(|(client, server)| {
        let (ours, peer) = if is_server { (server, client) } else { (client, server) };
        peer.open_under(INDEX, suite, [&SECRETS[1], &SECRETS[0]], [0, 0]);
        let stream = stream(peer, text);
        super::agree(&stream, distances, |pieces| {
            ours.open_under(INDEX, suite, [&SECRETS[0], &SECRETS[1]], [0, 0]);
            trace(ours, pieces)
        });
        ours.end(INDEX);
        assert_eq!(ours.kept(), (0, 0), "nothing is kept of a connection that is no more");
    });
}

fn trace(tls: &mut Tls, pieces: &[&[u8]]) -> String {
    let (mut rest, mut read, mut closed) = (Vec::new(), Vec::new(), false);
    for piece in pieces {
        rest.extend_from_slice(piece);
        loop {
            let used = match tls.handle_bytes(INDEX, &mut rest) {
                Ok(Unsealed::More(used)) => {
                    rest.drain(..used);
                    break;
                }
                Ok(Unsealed::Bytes(used, range)) => {
                    assert!(
                        !closed && !range.is_empty() && range.end <= used && used <= rest.len(),
                        "{range:?} of {used}"
                    );
                    read.extend_from_slice(&rest[range]);
                    used
                }
                Ok(Unsealed::Closed(used)) => {
                    assert!(!std::mem::replace(&mut closed, true), "a close comes once");
                    used
                }
                Ok(Unsealed::Opened(..)) => panic!("it was open"),
                Err(error) => {
                    // An alert says so, or it was one.
                    assert!(tls.poll_output(INDEX).len() < 100);
                    return format!("{} | {error:?}", read.escape_ascii());
                }
            };
            rest.drain(..used);
        }
        assert!(rest.len() < MAX_RECORD, "the rest is bounded: {}", rest.len());
        assert!(tls.kept().0 < 128 * 1024, "what is kept is bounded: {:?}", tls.kept());
        assert!(!closed || rest.is_empty(), "behind a close all is ignored");
    }
    format!("{} | closed {closed} | rest {}", read.escape_ascii(), rest.len())
}
