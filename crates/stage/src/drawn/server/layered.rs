//! The layer (TLS) of the drawn server: its handshakes, some of which go wrong, and its ends.

use std::sync::OnceLock;

use net::{Close, Cx, Gone, Io, Key, Layered, Unsealed};
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519, SerialNumber};
use tls::Identity;
use units::{Nanos, Random};

use super::{Server, Speaks, Step, Turn};

/// Bytes that are not TLS; a fatal alert (`handshake_failure`); and a record that no key opens.
const NOT_TLS: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
const ALERT: &[u8] = b"\x15\x03\x03\0\x02\x02\x28";
const BROKEN: &[u8] = b"\x17\x03\x03\0\x22 not what any key would make of it";

/// The TLS settings of a run.
#[derive(Clone, Copy, Debug)]
pub(in crate::drawn) struct Layer {
    /// Flags of the client.
    pub(in crate::drawn) flags: &'static str,
    /// Percentage of handshakes that go wrong.
    wrong_percent: u64,
    /// Whether each output of the server is split into two records.
    splits: bool,
}

impl Layer {
    pub(in crate::drawn) fn draw(random: &mut Random) -> Layer {
        let flags = [" insecure=", " insecure=", " insecure= no-resume=", " insecure= tls=1.2"]
            [random.below(4) as usize];
        let wrong_percent = [0, 0, 3, 20][random.below(4) as usize];
        Layer { flags, wrong_percent, splits: random.below(3) == 0 }
    }

    /// The same target over TLS.
    pub(in crate::drawn) fn target(target: &str) -> String {
        match target.split_once("://").expect("a scheme") {
            ("tcp", rest) => format!("tls://{rest}"),
            (scheme, rest) => format!("{scheme}s://{rest}"),
        }
    }
}

/// The layer of a server.
pub(super) struct Secured {
    pub(super) layered: Layered<tls::Error>,
    of_run: Layer,
}

impl Secured {
    pub(super) fn new(layer: Layer) -> Secured {
        let layered = Layered::new(Box::new(server().layer().expect("key and certificate belong together")));
        Secured { layered, of_run: layer }
    }
}

/// Sends these bytes, sealed if there is a layer; returns the number of bytes on the wire.
pub(super) fn send<I: Io>(layer: &mut Option<Secured>, cx: &mut Cx<I>, k: Key, bytes: &[u8]) -> u64 {
    let at = if layer.as_ref().is_some_and(|layer| layer.of_run.splits) { bytes.len() / 2 } else { 0 };
    let mut sent = 0;
    for part in [&bytes[..at], &bytes[at..]] {
        let layered = layer.as_mut().map(|layer| &mut layer.layered);
        sent += net::send(layered, cx, k, part.len(), |out| {
            out.copy_from_slice(part);
            part.len()
        });
    }
    sent as u64
}

/// The same for all runs. Handshakes use real randomness, but it changes no length and thus no event of the network: Ed25519
/// signatures have a fixed length, and so have certificates with a fixed serial number.
fn server() -> &'static tls::Server {
    static SERVER: OnceLock<tls::Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let key = KeyPair::generate_for(&PKCS_ED25519).expect("there is randomness");
        let mut certificate = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        certificate.serial_number = Some(SerialNumber::from(1));
        let certificates = certificate.self_signed(&key).expect("by its own key").pem();
        let identity = Identity { certificates, key: key.serialize_pem() };
        tls::Server::new(Some(identity), &["h2", "http/1.1"]).expect("they belong together")
    })
}

/// How the server ends a connection in good order, or seemingly so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::drawn) enum Ending {
    /// FIN, without a layer.
    Plain,
    /// FIN without close_notify: anyone may have sent it (RFC 8446, section 6.1).
    Cut,
    /// close_notify with FIN; with FIN some time later; or with FIN left to the client.
    Said,
    SaidBefore,
    OnlySaid,
}

/// What a connection reads through its layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reads {
    All,
    /// Nothing yet: input waits.
    Later,
    /// Nothing: input is discarded.
    Never,
}

/// Sends close_notify, or unreadable data; returns the number of bytes.
pub(super) fn end<I: Io>(layer: &mut Option<Secured>, cx: &mut Cx<I>, k: Key, step: &Step) -> u64 {
    let Some(Secured { layered, .. }) = layer else { return 0 };
    if matches!(step, Step::Break) {
        return send(&mut None, cx, k, BROKEN);
    }
    layered.layer.close(k.index);
    layered.send_output(cx, k) as u64
}

impl Turn<'_> {
    /// Plans how a connection with a layer begins; returns what it reads of the handshake.
    fn shake_hands(&mut self, wrong_percent: u64) -> Reads {
        if self.random.below(100) >= wrong_percent {
            return Reads::All;
        }
        self.page.blame();
        let soon = self.within(20);
        match self.random.below(5) {
            0 => {
                let late = self.within(150);
                self.plan(late, Step::Read);
                return Reads::Later;
            }
            // During the handshake, or soon after.
            1 => {
                self.close(soon);
                return Reads::All;
            }
            2 => self.plan(soon, Step::Raw(NOT_TLS)),
            3 => self.plan(soon, Step::Raw(ALERT)),
            // No response.
            _ => {}
        }
        if self.random.below(4) == 0 {
            let later = self.within(150);
            self.plan(soon + later, Step::Close(Close::Graceful));
        }
        Reads::Never
    }

    /// How the connection is to end in good order.
    pub(in crate::drawn) fn ending(&mut self) -> Ending {
        match self.has_layer {
            true => [Ending::Cut, Ending::Said, Ending::SaidBefore, Ending::OnlySaid]
                [self.random.below(4) as usize],
            false => Ending::Plain,
        }
    }

    /// Plans this ending.
    pub(in crate::drawn) fn finish(&mut self, after: Nanos, ending: Ending) {
        let fin = match ending {
            Ending::Plain | Ending::Cut | Ending::Said => Some(after),
            Ending::SaidBefore => Some(after + self.within(50)),
            Ending::OnlySaid => None,
        };
        if !matches!(ending, Ending::Plain | Ending::Cut) {
            self.plan(after, Step::CloseNotify);
        }
        fin.into_iter().for_each(|at| self.plan(at, Step::Close(Close::Graceful)));
    }

    /// Plans a bad ending: a reset, or a record that cannot be opened.
    pub(super) fn fail(&mut self, after: Nanos) {
        let is_broken = self.has_layer && self.random.below(3) == 0;
        self.plan(after, if is_broken { Step::Break } else { Step::Close(Close::Reset) });
    }
}

impl<S: Speaks> Server<S> {
    fn layered(&mut self) -> &mut Layered<tls::Error> {
        &mut self.layer.as_mut().expect("asked where there is a layer").layered
    }

    /// A connection was accepted: opens its layer.
    pub(super) fn open_layer<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let Secured { layered, of_run } = self.layer.as_mut().expect("asked where there is a layer");
        let wrong_percent = of_run.wrong_percent;
        layered.layer.open(k.index, 0).expect("a server only waits");
        let reads = self.with(cx.now(), k, |_, _, turn| turn.shake_hands(wrong_percent));
        self.links[k.index as usize].reads = reads;
        self.perform(cx, k);
    }

    /// Reads all input; returns the number of bytes used.
    pub(super) fn read_layer<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &mut [u8]) -> usize {
        let used = match self.links[k.index as usize].reads {
            Reads::All => self.read_records(cx, k, input),
            Reads::Later => 0,
            Reads::Never => input.len(),
        };
        self.books.bytes_in += used as u64;
        used
    }

    /// The same while the connection reads; if it ends, all input counts as used.
    fn read_records<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &mut [u8]) -> usize {
        let mut used = 0;
        while cx.is_open(k) {
            let layered = self.layered();
            let read = layered.layer.handle_bytes(k.index, &mut input[used..]);
            let sent = layered.send_output(cx, k);
            self.books.bytes_out += sent as u64;
            match read {
                Ok(Unsealed::More(n)) => return used + n,
                Ok(Unsealed::Closed(n)) => {
                    used += n;
                    self.books.farewell(cx.now(), n as u64);
                }
                Ok(Unsealed::Opened(n, _)) => {
                    used += n;
                    if self.links[k.index as usize].over.is_none() {
                        self.begin(cx, k);
                    }
                }
                Ok(Unsealed::Bytes(n, range)) => {
                    self.read_unsealed(cx, k, &input[used..][range], n);
                    used += n;
                }
                Err(error) => {
                    self.note_error(k, error);
                    return input.len();
                }
            }
        }
        input.len()
    }

    /// Lets the protocol read unsealed bytes of any length; unused ones are kept for it. `sealed`: their length on the wire.
    fn read_unsealed<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, bytes: &[u8], sealed: usize) {
        if self.links[k.index as usize].over.is_some() {
            return;
        }
        let farewell_bytes = self.books.farewell_bytes();
        let leftover = self.layered().take_leftover(k.index, bytes);
        let whole = leftover.as_deref().unwrap_or(bytes);
        let used = self.read(cx, k, whole);
        if cx.is_open(k) {
            self.layered().leave(k.index, &whole[used..]);
        }
        if self.books.farewell_bytes() > farewell_bytes {
            // Adds the overhead of sealing to the closing messages.
            self.books.farewell(cx.now(), (sealed - bytes.len()) as u64);
        }
    }

    /// The client has ended a connection. In good order its close_notify came first (RFC 8446, section 6.1), unless it was in the
    /// middle of a record: what a full window had not taken by then is never sent.
    pub(super) fn end_layer<I: Io>(&mut self, cx: &Cx<I>, k: Key, why: Gone) {
        let Some(Secured { layered, .. }) = &mut self.layer else { return };
        let link = &self.links[k.index as usize];
        let was_open = link.conn.is_some() && link.reads == Reads::All && cx.leftover_len(k) == 0;
        let is_unsaid = was_open && why == Gone::Ended && !layered.layer.is_closed(k.index);
        self.books.unsaid += u64::from(is_unsaid);
        layered.end(k.index);
    }

    /// The client sent an alert, the only thing that it may send that is not as expected.
    fn note_error(&mut self, k: Key, error: tls::Error) {
        let link = &mut self.links[k.index as usize];
        link.reads = Reads::Never;
        let is_alert = matches!(error, tls::Error::Alert(_));
        assert!(is_alert || link.over.is_some(), "a client that keeps to the RFC: {error:?}");
        self.books.alerts += 1;
    }
}
