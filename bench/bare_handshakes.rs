//! The floor of `bench/handshakes`: one connection after another over a blocking socket, secured by the library that throng's
//! handshakes are from. Connect, handshake, one request, its response, close; the certificate is not verified, its signature is,
//! as with `throng run -k`.
//!
//! ```text
//! bare_handshakes full|resumed|plain ADDRESS THREADS SECONDS    such a loop in each thread; plain: without TLS
//! bare_handshakes parts                                         what the cryptography of a handshake costs, in microseconds
//! ```

#![allow(clippy::print_stdout)]

use std::{
    error::Error,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use ring::{
    rand::SystemRandom,
    signature::{self, EcdsaKeyPair, KeyPair},
};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, Stream,
    client::{
        Resumption,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{self, WebPkiSupportedAlgorithms},
    pki_types::{CertificateDer, ServerName, UnixTime},
    version::TLS13,
};

/// The cryptography of throng's own handshakes.
#[path = "../crates/tls/src/provider.rs"]
mod provider;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
/// How the response of `bench/nginx.conf` ends.
const RESPONSE_END: &[u8] = b"Hello World!";
/// Repetitions of each part.
const REPETITIONS: u32 = 2_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["parts"] => {
            parts();
            Ok(())
        }
        [kind @ ("full" | "resumed" | "plain"), address, threads, seconds] => {
            let (address, threads) = (address.parse()?, threads.parse()?);
            let until = Instant::now() + Duration::from_secs(seconds.parse()?);
            let config = (kind != "plain").then(|| config(kind == "resumed")).transpose()?.map(Arc::new);
            thread::scope(|scope| {
                let loops =
                    (0..threads).map(|_| scope.spawn(|| connections(config.as_ref(), address, until)));
                let loops: Vec<_> = loops.collect();
                loops.into_iter().try_for_each(|it| it.join().expect("a loop returns its errors"))
            })?;
            Ok(())
        }
        _ => Err("arguments: full|resumed|plain ADDRESS THREADS SECONDS, or parts".into()),
    }
}

/// Connections one after another; without TLS if there is no configuration.
fn connections(config: Option<&Arc<ClientConfig>>, address: SocketAddr, until: Instant) -> io::Result<()> {
    while Instant::now() < until {
        let mut socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        let Some(config) = config else {
            socket.write_all(REQUEST)?;
            read_response(&mut socket)?;
            continue;
        };
        let mut connection =
            ClientConnection::new(config.clone(), address.ip().into()).map_err(io::Error::other)?;
        // Sent with the end of the handshake, in one piece.
        connection.writer().write_all(REQUEST)?;
        read_response(&mut Stream::new(&mut connection, &mut socket))?;
    }
    Ok(())
}

fn config(resume: bool) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(provider::provider());
    let verifier = Arc::new(SignatureOnly(provider.signature_verification_algorithms));
    let config = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13])?;
    let mut config = config.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    if !resume {
        config.resumption = Resumption::disabled();
    }
    Ok(config)
}

fn read_response(from: &mut impl Read) -> io::Result<()> {
    let (mut response, mut length) = ([0; 4096], 0);
    while !response[..length].ends_with(RESPONSE_END) {
        match from.read(&mut response[length..])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => length += n,
        }
    }
    Ok(())
}

/// Accepts any certificate, whose owner must be the server.
#[derive(Debug)]
struct SignatureOnly(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for SignatureOnly {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        crypto::verify_tls12_signature(message, certificate, signed, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        crypto::verify_tls13_signature(message, certificate, signed, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

/// The cryptography of a client's full handshake; a resumed one has no signature to verify.
fn parts() {
    const WHY: &str = "the provider has what it made itself";
    let random = SystemRandom::new();
    let provider = provider::provider();
    let key = || provider.kx_groups[0].start().expect(WHY);
    let peer = key().pub_key().to_vec();
    let algorithm = &signature::ECDSA_P256_SHA256_ASN1_SIGNING;
    let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect(WHY);
    let signer = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).expect(WHY);
    // As long as what the server signs (RFC 8446 section 4.4.3).
    let message = [0; 130];
    let signed = signer.sign(&random, &message).expect(WHY);
    let owner = signature::UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_ASN1, signer.public_key());
    let made = each(|| drop(key()));
    let agreed = each(|| drop(key().complete(&peer).expect(WHY))) - made;
    let verified = each(|| owner.verify(&message, signed.as_ref()).expect(WHY));
    println!("{{\"key_us\": {made:.2}, \"agreement_us\": {agreed:.2}, \"verification_us\": {verified:.2}}}");
}

/// Microseconds of one of many.
fn each(mut part: impl FnMut()) -> f64 {
    let begin = Instant::now();
    (0..REPETITIONS).for_each(|_| part());
    begin.elapsed().as_secs_f64() * 1e6 / f64::from(REPETITIONS)
}
