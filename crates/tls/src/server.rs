//! The server side: its certificate, and the keys of its session tickets.

use std::sync::Arc;

use ring::digest;
use rustls::{
    ServerConfig,
    crypto::ring::Ticketer,
    pki_types::{CertificateDer, PrivateKeyDer},
    server::ProducesTickets,
    version::{TLS12, TLS13},
};

use crate::{
    handshake::Captured,
    layer::{Side, Tls},
    pem::{self, Identity, Unusable},
    provider::provider,
};

/// TLS settings of a server; the same for all shards.
#[derive(Clone, Debug)]
pub struct Server {
    text: String,
    chain: Vec<CertificateDer<'static>>,
    key: Arc<PrivateKeyDer<'static>>,
    tickets: Arc<dyn ProducesTickets>,
    alpn: Vec<&'static str>,
}

impl Server {
    /// Settings with this certificate, or with a new self-signed one for `localhost` and the loopback addresses. `alpn`: the supported
    /// protocols (RFC 7301).
    ///
    /// # Errors
    /// The certificate or the key cannot be used; the text explains why.
    pub fn new(identity: Option<Identity>, alpn: &[&'static str]) -> Result<Server, String> {
        let identity = identity.map_or_else(made_now, Ok)?;
        let server = Server {
            chain: pem::certificates(&identity.certificates).map_err(|e| format!("--tls-cert: {e}"))?,
            key: Arc::new(pem::key(&identity.key).map_err(|e| format!("--tls-key: {e}"))?),
            tickets: Ticketer::new().map_err(|e| e.to_string())?,
            alpn: alpn.to_vec(),
            text: identity.certificates,
        };
        server.layer().map(|_| server)
    }

    /// The certificate chain, as PEM text.
    pub fn certificate(&self) -> String {
        self.text.clone()
    }

    /// SHA-256 fingerprint of the certificate, in the format of browsers and openssl: `AB:CD:…`.
    pub fn fingerprint(&self) -> String {
        let digest = digest::digest(&digest::SHA256, &self.chain[0]);
        let bytes: Vec<String> = digest.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
        bytes.join(":")
    }

    /// Creates the layer of one shard.
    ///
    /// # Errors
    /// Certificate and key do not match, or the type of the key is not supported.
    pub fn layer(&self) -> Result<Tls, String> {
        let provider = Arc::new(provider());
        let pair = pem::pair(self.chain.clone(), self.key.clone_key(), &provider).map_err(|e| match e {
            Unusable::Certificate(why) => format!("--tls-cert: {why}"),
            Unusable::Key(why) => format!("--tls-key: {why}"),
        })?;
        let config = ServerConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13, &TLS12]);
        let config = config.map_err(|e| e.to_string())?.with_no_client_auth();
        let mut config = config.with_cert_resolver(Arc::new(pair));
        let captured = Arc::new(Captured::default());
        config.key_log = captured.clone();
        config.enable_secret_extraction = true;
        config.alpn_protocols = self.alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        config.ticketer = self.tickets.clone();
        config.send_tls13_tickets = 1;
        Ok(Tls::new(Side::Server(Arc::new(config)), captured))
    }
}

fn made_now() -> Result<Identity, String> {
    let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    let made = rcgen::generate_simple_self_signed(names).map_err(|e| e.to_string())?;
    Ok(Identity { certificates: made.cert.pem(), key: made.signing_key.serialize_pem() })
}
