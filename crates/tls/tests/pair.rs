//! throng's client and server against each other.

use net::{Layer, Opening, Unsealed};
use proptest::prelude::*;
use tls::{Client, Error, Identity, Server, Tls, Versions};

const INDEX: u32 = 3;

fn client(roots: &Server) -> Client {
    Client {
        names: vec!["localhost".to_owned()],
        roots: Some(roots.certificate()),
        insecure: false,
        identity: None,
        versions: Versions::Both,
        resume: true,
        alpn: vec!["http/1.1"],
    }
}

/// A certificate for localhost, and its key.
fn identity() -> Identity {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("it can be made");
    Identity { certificates: made.cert.pem(), key: made.signing_key.serialize_pem() }
}

fn server() -> Server {
    Server::new(None, &["http/1.1", "h2"]).expect("a certificate can be made")
}

/// One end: its layer, input that was not used yet, and the data that it has read.
struct End {
    tls: Tls,
    input: Vec<u8>,
    read: Vec<u8>,
    opened: Option<Opening>,
    closed: bool,
}

impl End {
    fn new(tls: Tls) -> End {
        End { tls, input: Vec::new(), read: Vec::new(), opened: None, closed: false }
    }

    fn open(&mut self) {
        (self.opened, self.closed) = (None, false);
        self.input.clear();
        self.read.clear();
        self.tls.open(INDEX, 0).expect("a handshake can begin");
    }

    fn send(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![0; self.tls.sealed_len(bytes.len())];
        let length = self.tls.seal(INDEX, bytes, &mut out);
        out.truncate(length);
        out
    }

    /// Passes bytes to this end; returns its output.
    fn take(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        self.input.extend_from_slice(bytes);
        loop {
            let used = match self.tls.handle_bytes(INDEX, &mut self.input)? {
                Unsealed::More(used) => {
                    self.input.drain(..used);
                    return Ok(self.tls.poll_output(INDEX));
                }
                Unsealed::Opened(used, opening) => {
                    self.opened = Some(opening);
                    used
                }
                Unsealed::Bytes(used, range) => {
                    self.read.extend_from_slice(&self.input[range]);
                    used
                }
                Unsealed::Closed(used) => {
                    self.closed = true;
                    used
                }
            };
            self.input.drain(..used);
        }
    }
}

/// Transfers bytes in pieces of this size until neither end has output.
fn carry(client: &mut End, server: &mut End, piece: usize) -> Result<(), Error> {
    let mut to_server = client.tls.poll_output(INDEX);
    let mut to_client = server.tls.poll_output(INDEX);
    while !to_server.is_empty() || !to_client.is_empty() {
        let (mut replies, mut answers) = (Vec::new(), Vec::new());
        for part in to_server.chunks(piece) {
            replies.extend(server.take(part)?);
        }
        for part in to_client.chunks(piece) {
            answers.extend(client.take(part)?);
        }
        (to_server, to_client) = (answers, replies);
    }
    Ok(())
}

fn exchange(client: &mut End, server: &mut End, piece: usize) {
    for (length, byte) in [(0, b'a'), (1, b'b'), (5_000, b'c'), (40_000, b'd')] {
        let bytes = vec![byte; length];
        for _ in 0..2 {
            server.read.clear();
            for part in client.send(&bytes).chunks(piece) {
                server.take(part).expect("it was sealed by the other end");
            }
            assert!(server.read == bytes, "{length}");
            std::mem::swap(client, server);
        }
    }
}

#[test]
fn sessions_are_opened_resumed_and_closed() {
    let ours = server();
    for versions in [Versions::Both, Versions::Only12, Versions::Only13] {
        for piece in [1, 7, 100_000] {
            let settings = Client { versions, ..client(&ours) };
            let mut client = End::new(settings.layer().expect("the settings are right"));
            let mut server = End::new(ours.layer().expect("the settings are right"));
            for resumed in [false, true, true] {
                client.open();
                server.open();
                carry(&mut client, &mut server, piece).expect("they agree");
                let opening = Some(Opening { resumed, http2: false });
                assert_eq!((client.opened, server.opened), (opening, opening), "{versions:?}");
                exchange(&mut client, &mut server, piece);
                client.tls.close(INDEX);
                carry(&mut client, &mut server, piece).expect("an end is no error");
                assert!(server.closed && !client.closed);
                client.tls.end(INDEX);
                server.tls.end(INDEX);
            }
        }
    }
}

#[test]
fn what_is_wrong_with_a_certificate_is_said() {
    let (ours, other) = (server(), server());
    for (settings, expected) in [
        (Client { roots: Some(other.certificate()), ..client(&ours) }, Err(Error::UnknownIssuer)),
        (Client { names: vec!["example.org".to_owned()], ..client(&ours) }, Err(Error::WrongName)),
        (Client { names: vec!["127.0.0.1".to_owned()], ..client(&ours) }, Ok(())),
        (Client { names: vec!["[::1]".to_owned()], ..client(&ours) }, Ok(())),
        (
            Client { insecure: true, roots: None, names: vec!["example.org".to_owned()], ..client(&ours) },
            Ok(()),
        ),
        (Client { alpn: vec!["h2"], ..client(&ours) }, Ok(())),
        (Client { alpn: vec!["mqtt"], ..client(&ours) }, Err(Error::NoProtocol)),
    ] {
        let mut client = End::new(settings.layer().expect("the settings are right"));
        let mut server = End::new(ours.layer().expect("the settings are right"));
        client.open();
        server.open();
        assert_eq!(carry(&mut client, &mut server, 1_000), expected, "{settings:?}");
        let http2 = client.opened.is_some_and(|opening| opening.http2);
        assert_eq!(http2, settings.alpn == ["h2"]);
    }
}

/// Certificates without extensions, as `openssl x509 -req` creates them. webpki would read them only to check a trusted issuer.
#[test]
fn certificates_of_version_1_are_for_any_peer_that_takes_them() {
    let pem = include_str!("version1.pem").to_owned();
    let own = || Identity { certificates: pem.clone(), key: pem.clone() };
    let ours = Server::new(Some(own()), &["http/1.1"]).expect("the certificate can be read");
    for versions in [Versions::Only12, Versions::Only13] {
        let insecure = Client { insecure: true, versions, identity: Some(own()), ..client(&server()) };
        let mut client = End::new(insecure.layer().expect("the settings are right"));
        let mut server = End::new(ours.layer().expect("the settings are right"));
        client.open();
        server.open();
        assert_eq!(carry(&mut client, &mut server, 1_000), Ok(()), "{versions:?}");
    }
}

#[test]
fn plain_text_is_no_tls() {
    let ours = server();
    let mut client = End::new(client(&ours).layer().expect("the settings are right"));
    client.open();
    assert_eq!(client.take(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Err(Error::NotTls));
    let mut server = End::new(ours.layer().expect("the settings are right"));
    server.open();
    assert_eq!(server.take(b"GET / HTTP/1.1\r\n\r\n"), Err(Error::NotTls));
}

#[test]
fn unusable_settings_are_refused() {
    let ours = server();
    let foreign = [identity(), identity()];
    let [Identity { certificates, .. }, Identity { key, .. }] = foreign;
    let foreign = Identity { certificates, key };
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let no_certificate = Identity { certificates: broken.to_owned(), key: foreign.key.clone() };
    let unreadable = "it has a certificate that cannot be read; openssl x509 -text -in FILE says more";
    let why = Server::new(Some(no_certificate.clone()), &[]).expect_err("it is no certificate");
    assert_eq!(why, format!("--tls-cert: {unreadable}"));
    let why = Server::new(Some(foreign.clone()), &[]).expect_err("the key is another's");
    assert_eq!(why, "--tls-key: it does not belong to the certificate that is given with it");
    for (settings, (place, text)) in [
        (Client { identity: Some(foreign), ..client(&ours) }, ("--key", "it does not belong")),
        (Client { roots: Some(String::new()), ..client(&ours) }, ("--cacert", "it has no certificate")),
        (Client { roots: Some(broken.to_owned()), ..client(&ours) }, ("--cacert", unreadable)),
        (Client { identity: Some(no_certificate), ..client(&ours) }, ("--cert", unreadable)),
        (Client { names: vec!["a b".to_owned()], ..client(&ours) }, ("--sni", "\"a b\" is not a name")),
    ] {
        let (named, why) = settings.check().expect_err("it is refused");
        assert!(named == place && why.starts_with(text), "{named}: {why}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A change in transit is detected: only data that was sent is ever read.
    #[test]
    fn a_changed_byte_is_noticed(at in 0usize..2_000, bit in 0u8..8, version in 0..2) {
        let ours = server();
        let versions = [Versions::Only12, Versions::Only13][version as usize];
        let mut client = End::new(Client { versions, ..client(&ours) }.layer().expect("the settings are right"));
        let mut server = End::new(ours.layer().expect("the settings are right"));
        client.open();
        server.open();
        carry(&mut client, &mut server, 1_000).expect("they agree");
        let mut sealed = client.send(&[7; 1_900]);
        let at = at % sealed.len();
        sealed[at] ^= 1 << bit;
        let taken = server.take(&sealed);
        prop_assert!(server.read.is_empty());
        // A change of the length may make the end wait for a longer record.
        prop_assert!(taken.is_err() || (3..5).contains(&at), "{taken:?}");
    }
}

#[test]
fn a_peak_of_handshakes_is_over_once() {
    let mut tls = client(&server()).layer().expect("the settings are right");
    for (peak, is_much) in [(1_000, false), (2_000, true), (500, false), (1_500, true)] {
        (0..peak).for_each(|index| tls.open(index, 0).expect("a handshake can begin"));
        assert!(!tls.shrink(), "{peak} are under way");
        (200..peak).for_each(|index| tls.end(index));
        assert!(!tls.shrink() || peak >= 1_600, "many of {peak} are under way");
        (0..peak).for_each(|index| tls.end(index));
        assert_eq!(tls.shrink(), is_much && peak < 1_600, "{peak} are over");
        assert!(!tls.shrink(), "they are over already");
    }
}
