//! The client side: which versions and protocols are offered, which issuers are trusted, and the client certificate.

use std::sync::Arc;

use rustls::{
    ClientConfig, RootCertStore, SupportedCipherSuite, SupportedProtocolVersion,
    client::Resumption,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, ServerName},
    version::{TLS12, TLS13},
};

use crate::{
    handshake::Captured,
    layer::{Side, Tls},
    pem::{self, Identity, Unusable},
    provider::provider,
    tickets::Tickets,
    verify::Verifier,
};

/// The TLS versions to offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Versions {
    /// 1.3 and 1.2.
    Both,
    /// 1.2 only.
    Only12,
    /// 1.3 only.
    Only13,
}

static BOTH: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];

/// TLS settings for connections to a target; the same for all shards.
#[derive(Clone, Debug)]
pub struct Client {
    /// The server name per destination, for which the certificate must be issued; one name if it is the same for all.
    pub names: Vec<String>,
    /// Trusted certificates as PEM text, which replace the system's; `None`: the system's.
    pub roots: Option<String>,
    /// Whether any certificate is accepted.
    pub insecure: bool,
    /// The client certificate, if there is one.
    pub identity: Option<Identity>,
    /// The versions to offer.
    pub versions: Versions,
    /// Whether sessions are resumed.
    pub resume: bool,
    /// The protocols to offer by ALPN (RFC 7301), in order of preference.
    pub alpn: Vec<&'static str>,
}

impl Client {
    /// Checks that these settings can be used.
    ///
    /// # Errors
    /// The flag whose certificate, key or name cannot be used, and why.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        self.layer().map(|_| ())
    }

    /// Creates the layer of one shard.
    ///
    /// # Errors
    /// As [`Client::check`].
    pub fn layer(&self) -> Result<Tls, (&'static str, String)> {
        let provider = Arc::new(self.provider());
        let pinned = self.roots.as_deref().map_or(Ok(Vec::new()), pem::certificates);
        let pinned = pinned.map_err(|e| ("--cacert", e))?;
        let roots = if self.insecure { None } else { Some(Arc::new(self.roots(&pinned)?)) };
        let verifier = Verifier::new(roots, pinned, &provider).map_err(|e| ("--cacert", e))?;
        let config =
            ClientConfig::builder_with_provider(provider.clone()).with_protocol_versions(self.versions());
        let config = config.map_err(|e| ("--tls", e.to_string()))?;
        let config = config.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
        let (captured, tickets) = (Arc::new(Captured::default()), Arc::new(Tickets::default()));
        let mut config = match &self.identity {
            None => config.with_client_cert_resolver(captured.clone()),
            Some(identity) => {
                let chain = pem::certificates(&identity.certificates).map_err(|e| ("--cert", e))?;
                let key = pem::key(&identity.key).map_err(|e| ("--key", e))?;
                let pair = pem::pair(chain, key, &provider).map_err(|e| match e {
                    Unusable::Certificate(why) => ("--cert", why),
                    Unusable::Key(why) => ("--key", why),
                })?;
                config.with_client_cert_resolver(Arc::new(pair))
            }
        };
        config.key_log = captured.clone();
        config.enable_secret_extraction = true;
        config.alpn_protocols = self.alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        config.resumption =
            if self.resume { Resumption::store(tickets.clone()) } else { Resumption::disabled() };
        let names = self.names.iter().map(|name| server_name(name)).collect::<Result<_, _>>()?;
        let tickets = self.resume.then_some(tickets);
        Ok(Tls::new(Side::Client { config: Arc::new(config), names, tickets }, captured))
    }

    /// The cryptography, with AES-128 before AES-256: throng measures connections, and a server that follows the client's order saves a
    /// fifth.
    fn provider(&self) -> CryptoProvider {
        let mut provider = provider();
        let is_aes_256 = |suite: &SupportedCipherSuite| format!("{:?}", suite.suite()).contains("AES_256");
        provider.cipher_suites.sort_by_key(is_aes_256);
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        crate::shares::reuse(&mut provider);
        provider
    }

    fn versions(&self) -> &'static [&'static SupportedProtocolVersion] {
        match self.versions {
            Versions::Both => &BOTH,
            Versions::Only12 => &BOTH[1..],
            Versions::Only13 => &BOTH[..1],
        }
    }

    /// The certificates of trusted issuers: the given ones, otherwise the system's.
    fn roots(&self, given: &[CertificateDer<'static>]) -> Result<RootCertStore, (&'static str, String)> {
        let mut roots = RootCertStore::empty();
        for certificate in given {
            let unusable =
                |e: rustls::Error| pem::unreadable(&e).map_or_else(|| e.to_string(), str::to_owned);
            roots.add(certificate.clone()).map_err(|e| ("--cacert", unusable(e)))?;
        }
        if self.roots.is_some() {
            return Ok(roots);
        }
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Ok(roots)
    }
}

/// A DNS name, or an address, for which no SNI is sent (RFC 6066, section 3).
fn server_name(name: &str) -> Result<ServerName<'static>, (&'static str, String)> {
    let name = name.trim_start_matches('[').trim_end_matches(']');
    ServerName::try_from(name.to_owned())
        .map_err(|_| ("--sni", format!("{name:?} is not a name that a certificate can have")))
}
