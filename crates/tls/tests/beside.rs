//! Against rustls's own connections, which have an independent record layer: data and KeyUpdates in both directions.

use std::{io::Read, io::Write, sync::Arc};

use net::{Layer, Unsealed};
use rustls::{
    ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    version::{TLS12, TLS13},
};
use tls::{Client, Identity, Server, Tls, Versions};

const INDEX: u32 = 7;

/// A certificate for localhost, and its key.
fn identity() -> Identity {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("it can be made");
    Identity { certificates: made.cert.pem(), key: made.signing_key.serialize_pem() }
}

fn certificate(identity: &Identity) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(identity.certificates.as_bytes()).expect("it is PEM")
}

fn suites(number: usize) -> (rustls::crypto::CryptoProvider, &'static rustls::SupportedProtocolVersion) {
    let version = if number < 3 { &TLS13 } else { &TLS12 };
    let wanted = ["AES_128_GCM", "AES_256_GCM", "CHACHA20"][number % 3];
    let mut provider = ring::default_provider();
    provider.cipher_suites.retain(|suite| format!("{:?}", suite.suite()).contains(wanted));
    (provider, version)
}

/// throng's client and rustls's server.
fn with_their_server(number: usize) -> (Tls, Connection) {
    let identity = identity();
    let (provider, version) = suites(number);
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).expect("it is PEM");
    let config = ServerConfig::builder_with_provider(Arc::new(provider)).with_protocol_versions(&[version]);
    let config = config.expect("it has suites").with_no_client_auth();
    let config = config.with_single_cert(vec![certificate(&identity)], key).expect("they belong together");
    let client = Client {
        names: vec!["localhost".to_owned()],
        roots: Some(identity.certificates),
        insecure: false,
        identity: None,
        versions: Versions::Both,
        resume: true,
        alpn: Vec::new(),
    };
    let server = ServerConnection::new(Arc::new(config)).expect("its settings are right");
    (client.layer().expect("the settings are right"), server.into())
}

/// throng's server and rustls's client.
fn with_their_client(number: usize) -> (Tls, Connection) {
    let identity = identity();
    let (provider, version) = suites(number);
    let mut roots = RootCertStore::empty();
    roots.add(certificate(&identity)).expect("a certificate");
    let config = ClientConfig::builder_with_provider(Arc::new(provider)).with_protocol_versions(&[version]);
    let config = config.expect("it has suites").with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let client = ClientConnection::new(Arc::new(config), name).expect("its settings are right");
    let server = Server::new(Some(identity), &[]).and_then(|server| server.layer());
    (server.expect("the settings are right"), client.into())
}

/// Both ends, and the data that throng's end has read.
struct Ends {
    ours: Tls,
    theirs: Connection,
    input: Vec<u8>,
    read: Vec<u8>,
    is_open: bool,
    closed: bool,
}

impl Ends {
    fn open((mut ours, theirs): (Tls, Connection)) -> Ends {
        ours.open(INDEX, 0).expect("a handshake can begin");
        let mut ends =
            Ends { ours, theirs, input: Vec::new(), read: Vec::new(), is_open: false, closed: false };
        ends.carry();
        assert!(ends.is_open && !ends.theirs.is_handshaking());
        ends
    }

    /// Transfers bytes until neither end has any.
    fn carry(&mut self) {
        loop {
            let output = self.ours.poll_output(INDEX);
            self.give(&output);
            if !self.theirs.wants_write() {
                break;
            }
            while self.theirs.wants_write() {
                self.theirs.write_tls(&mut self.input).expect("a vector takes all");
            }
            self.take();
        }
    }

    /// Passes bytes to rustls.
    fn give(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            self.theirs.read_tls(&mut bytes).expect("a slice gives all");
            self.theirs.process_new_packets().expect("what we send is right");
        }
    }

    /// Passes rustls's output to throng.
    fn take(&mut self) {
        loop {
            let used =
                match self.ours.handle_bytes(INDEX, &mut self.input).expect("what rustls sends is right") {
                    Unsealed::More(used) => {
                        self.input.drain(..used);
                        return;
                    }
                    Unsealed::Opened(used, _) => {
                        self.is_open = true;
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

    /// Exchanges data in both directions.
    fn exchange(&mut self, length: usize) {
        let bytes = vec![b'x'; length];
        let mut out = vec![0; self.ours.sealed_len(length)];
        let sealed = self.ours.seal(INDEX, &bytes, &mut out);
        let mut got = Vec::new();
        for part in out[..sealed].chunks(4_000) {
            self.give(part);
            let mut piece = [0; 20_000];
            while let Ok(n @ 1..) = self.theirs.reader().read(&mut piece) {
                got.extend_from_slice(&piece[..n]);
            }
        }
        assert!(got == bytes, "{length}");
        self.read.clear();
        self.theirs.writer().write_all(&bytes).expect("it is open");
        self.carry();
        assert!(self.read == bytes, "{length}");
    }
}

#[test]
fn data_goes_both_ways_in_every_suite() {
    for number in 0..tls::trial::SUITES {
        for ends in [with_their_server(number), with_their_client(number)] {
            let mut ends = Ends::open(ends);
            for length in [1, 16_384, 16_385, 50_000] {
                ends.exchange(length);
            }
            ends.theirs.send_close_notify();
            ends.carry();
            assert!(ends.closed, "{number}");
            ends.ours.close(INDEX);
            let output = ends.ours.poll_output(INDEX);
            ends.give(&output);
            // close_notify was sent: without it, rustls would report an error at the end.
            assert_eq!(ends.theirs.reader().read(&mut [0]).ok(), Some(0), "{number}");
        }
    }
}

#[test]
fn keys_are_updated_both_ways() {
    for number in 0..3 {
        for ends in [with_their_server(number), with_their_client(number)] {
            let mut ends = Ends::open(ends);
            ends.exchange(100);
            for n in 1..=40 {
                // rustls requests a KeyUpdate with its own; it is sent with the next data.
                ends.theirs.refresh_traffic_keys().expect("TLS 1.3 can");
                ends.carry();
                assert_eq!(ends.ours.numbers(INDEX)[1], 0, "{number}, {n}");
                ends.exchange(n * 500);
                let records = (n as u64 * 500).div_ceil(16_384);
                assert_eq!(ends.ours.numbers(INDEX), [records; 2], "{number}, {n}");
            }
        }
    }
}
