//! The handshake of one connection, performed by rustls. It is fed record by record, so that rustls never sees the data after the
//! handshake.
//!
//! Only this file uses rustls's connections. The unbuffered interface that it needs does not exist in later versions of rustls.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use rustls::{
    CipherSuite, ClientConfig, ConnectionTrafficSecrets, HandshakeKind, KeyLog, ProtocolVersion,
    ServerConfig, SignatureScheme,
    client::{ClientConnectionData, ResolvesClientCert, UnbufferedClientConnection},
    kernel::KernelConnection,
    pki_types::ServerName,
    server::UnbufferedServerConnection,
    sign::CertifiedKey,
    unbuffered::{ConnectionState, EncodeError, EncodeTlsData, UnbufferedStatus},
};

use crate::{
    error::Error,
    keys::{Cipher, Secret, Suite, Version},
    record,
};

/// The alert that announces an orderly end of a connection.
const CLOSE_NOTIFY: u8 = 0;

/// A handshake in progress.
pub(crate) struct Handshake {
    conn: Conn,
    /// Bytes of the input that rustls has seen but not consumed: the start of a message that spans several records.
    seen: usize,
    /// The traffic secrets of TLS 1.3: client, server.
    secrets: [Option<Secret>; 2],
    /// Whether the server has requested a client certificate, and there is none.
    lacks_certificate: bool,
}

enum Conn {
    Client(Box<UnbufferedClientConnection>),
    Server(Box<UnbufferedServerConnection>),
}

/// The result of a completed handshake.
pub(crate) struct Outcome {
    pub(crate) suite: Suite,
    /// The secret for sending, and the number of the next record; `rx` for receiving.
    pub(crate) tx: (Secret, u64),
    pub(crate) rx: (Secret, u64),
    /// Whether an earlier session was resumed.
    pub(crate) resumed: bool,
    /// The negotiated application protocol (ALPN), if any.
    pub(crate) alpn: Option<Vec<u8>>,
    /// For clients: rustls's connection, which is needed to read session tickets that arrive later.
    pub(crate) rest: Option<KernelConnection<ClientConnectionData>>,
}

/// The result of a step of the handshake.
enum Step {
    Again,
    /// More input is needed.
    Blocked,
    Open,
}

impl Handshake {
    pub(crate) fn client(config: &Arc<ClientConfig>, name: ServerName<'static>) -> Result<Handshake, Error> {
        Ok(Handshake::of(Conn::Client(Box::new(UnbufferedClientConnection::new(config.clone(), name)?))))
    }

    pub(crate) fn server(config: &Arc<ServerConfig>) -> Result<Handshake, Error> {
        Ok(Handshake::of(Conn::Server(Box::new(UnbufferedServerConnection::new(config.clone())?))))
    }

    fn of(conn: Conn) -> Handshake {
        Handshake { conn, seen: 0, secrets: [None, None], lacks_certificate: false }
    }

    /// Reads input and appends output to `out`. Returns the number of consumed bytes, and whether the handshake is complete.
    pub(crate) fn handle_bytes(
        &mut self,
        input: &mut [u8],
        out: &mut Vec<u8>,
        captured: &Captured,
    ) -> Result<(usize, bool), Error> {
        let (mut used, mut end) = (0, self.seen);
        loop {
            let (discarded, step) = self.step(&mut input[used..end], out);
            used += discarded;
            for (secret, captured) in self.secrets.iter_mut().zip(captured.take()) {
                *secret = captured.or(*secret);
            }
            self.lacks_certificate |= captured.lacks_certificate.swap(false, Relaxed);
            match step {
                Err(error) => {
                    self.write_alert(&mut input[used..end], out);
                    return Err(self.explained(error));
                }
                Ok(Step::Again) => {}
                Ok(Step::Open) => return Ok((used, true)),
                Ok(Step::Blocked) => match record::length(&input[end..])? {
                    Some(length) => end += length,
                    None => {
                        self.seen = end - used;
                        return Ok((used, false));
                    }
                },
            }
        }
    }

    fn step(&mut self, input: &mut [u8], out: &mut Vec<u8>) -> (usize, Result<Step, Error>) {
        match &mut self.conn {
            Conn::Client(conn) => step(conn.process_tls_records(input), out),
            Conn::Server(conn) => step(conn.process_tls_records(input), out),
        }
    }

    /// After an error: writes rustls's alert to `out`. Called only once, because with another step rustls would read the same input again,
    /// and return another alert.
    fn write_alert(&mut self, input: &mut [u8], out: &mut Vec<u8>) {
        let _ = self.step(input, out);
    }

    /// Maps a handshake failure to a missing client certificate. Version and cipher are negotiated before the server requests a
    /// certificate, so a later failure is about the certificate. OpenSSL sends handshake_failure for it in TLS 1.2.
    fn explained(&self, error: Error) -> Error {
        match error {
            Error::NothingInCommon if self.lacks_certificate => Error::CertificateRequired,
            error => error,
        }
    }

    /// Ends the handshake, and extracts the secrets.
    pub(crate) fn finish(self) -> Result<Outcome, Error> {
        let (client, server) = (self.secrets[0], self.secrets[1]);
        match self.conn {
            Conn::Client(conn) => {
                let resumed = conn.handshake_kind() == Some(HandshakeKind::Resumed);
                let alpn = conn.alpn_protocol().map(<[u8]>::to_vec);
                let (extracted, rest) = conn.dangerous_into_kernel_connection()?;
                let suite = suite(rest.negotiated_cipher_suite().suite(), rest.protocol_version())?;
                let tx = (secret(client, extracted.tx.1, suite)?, extracted.tx.0);
                let rx = (secret(server, extracted.rx.1, suite)?, extracted.rx.0);
                Ok(Outcome { suite, tx, rx, resumed, alpn, rest: Some(rest) })
            }
            Conn::Server(conn) => {
                let resumed = conn.handshake_kind() == Some(HandshakeKind::Resumed);
                let alpn = conn.alpn_protocol().map(<[u8]>::to_vec);
                let (extracted, rest) = conn.dangerous_into_kernel_connection()?;
                let suite = suite(rest.negotiated_cipher_suite().suite(), rest.protocol_version())?;
                let tx = (secret(server, extracted.tx.1, suite)?, extracted.tx.0);
                let rx = (secret(client, extracted.rx.1, suite)?, extracted.rx.0);
                Ok(Outcome { suite, tx, rx, resumed, alpn, rest: None })
            }
        }
    }
}

fn step<D>(status: UnbufferedStatus<'_, '_, D>, out: &mut Vec<u8>) -> (usize, Result<Step, Error>) {
    let step = match status.state {
        Err(e) => Err(e.into()),
        Ok(ConnectionState::EncodeTlsData(data)) => encode(data, out).map(|()| Step::Again),
        Ok(ConnectionState::TransmitTlsData(data)) => {
            data.done();
            Ok(Step::Again)
        }
        Ok(ConnectionState::BlockedHandshake) => Ok(Step::Blocked),
        Ok(ConnectionState::WriteTraffic(_)) => Ok(Step::Open),
        // The peer closed the connection before the handshake was complete.
        Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => Err(Error::Alert(CLOSE_NOTIFY)),
        // The peer sent data that is allowed only after the handshake.
        Ok(_) => Err(Error::Unexpected),
    };
    (status.discard, step)
}

fn encode<D>(mut data: EncodeTlsData<'_, D>, out: &mut Vec<u8>) -> Result<(), Error> {
    let at = out.len();
    let room = match data.encode(&mut []) {
        Err(EncodeError::InsufficientSize(size)) => size.required_size,
        Err(EncodeError::AlreadyEncoded) | Ok(_) => return Ok(()),
    };
    out.resize(at + room, 0);
    data.encode(&mut out[at..]).map_err(|_| Error::Malformed)?;
    Ok(())
}

fn suite(suite: CipherSuite, version: ProtocolVersion) -> Result<Suite, Error> {
    use CipherSuite as C;
    let cipher = match suite {
        C::TLS13_AES_128_GCM_SHA256
        | C::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
        | C::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => Cipher::Aes128Gcm,
        C::TLS13_AES_256_GCM_SHA384
        | C::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
        | C::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => Cipher::Aes256Gcm,
        C::TLS13_CHACHA20_POLY1305_SHA256
        | C::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256
        | C::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => Cipher::ChaCha20Poly1305,
        _ => return Err(Error::NothingInCommon),
    };
    match version {
        ProtocolVersion::TLSv1_3 => Ok(Suite { version: Version::Tls13, cipher }),
        ProtocolVersion::TLSv1_2 => Ok(Suite { version: Version::Tls12, cipher }),
        _ => Err(Error::NothingInCommon),
    }
}

/// The secret of one direction: in TLS 1.3 the traffic secret, because keys can be updated; in TLS 1.2 the key.
fn secret(traffic: Option<Secret>, keys: ConnectionTrafficSecrets, suite: Suite) -> Result<Secret, Error> {
    if suite.version == Version::Tls13 {
        return traffic.ok_or(Error::Unexpected);
    }
    match &keys {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv }
        | ConnectionTrafficSecrets::Aes256Gcm { key, iv }
        | ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
            Ok(Secret::of_key(key.as_ref(), iv.as_ref()))
        }
        _ => Err(Error::NothingInCommon),
    }
}

/// Values that rustls reports only through callbacks. There is one instance per shard: the values taken after a step belong to the
/// connection of that step.
#[derive(Debug, Default)]
pub(crate) struct Captured {
    /// The traffic secrets, which rustls passes to a key log.
    secrets: Mutex<[Option<Logged>; 2]>,
    /// Whether the server has requested a client certificate: rustls then calls the resolver, which has none.
    lacks_certificate: AtomicBool,
}

#[derive(Debug)]
struct Logged(Vec<u8>);

/// The key log labels of the two secrets (RFC 9850).
const LABELS: [&str; 2] = ["CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0"];

impl Captured {
    fn secrets(&self) -> MutexGuard<'_, [Option<Logged>; 2]> {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> [Option<Secret>; 2] {
        let mut secrets = self.secrets();
        [0, 1].map(|at| secrets[at].take().map(|Logged(secret)| Secret::of_traffic(&secret)))
    }
}

impl KeyLog for Captured {
    fn log(&self, label: &str, _: &[u8], secret: &[u8]) {
        if let Some(at) = LABELS.iter().position(|it| *it == label) {
            self.secrets()[at] = Some(Logged(secret.to_vec()));
        }
    }

    fn will_log(&self, label: &str) -> bool {
        LABELS.contains(&label)
    }
}

/// Resolves no certificate, for a client without one.
impl ResolvesClientCert for Captured {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.lacks_certificate.store(true, Relaxed);
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}
