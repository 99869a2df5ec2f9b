//! Verification of server certificates and of handshake signatures.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rustls::{
    CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key},
    pki_types::{CertificateDer, ServerName, UnixTime},
};

use crate::certificate;

/// How long a verified chain is not verified again. Limited because a certificate might expire in the meantime.
const VERIFIED_FOR: Duration = Duration::from_secs(10);

/// Verifies a chain once for all connections that receive the same one, and the signature of each connection.
#[derive(Debug)]
pub(crate) struct Verifier {
    trust: Trust,
    /// Certificates that are trusted themselves.
    pinned: Vec<CertificateDer<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
    verified: Mutex<Option<Verified>>,
}

/// Which issuers are trusted.
#[derive(Debug)]
enum Trust {
    /// Any certificate is accepted.
    All,
    /// No issuer: the system has no trusted certificates.
    None,
    Roots(Arc<WebPkiServerVerifier>),
}

#[derive(Debug)]
struct Verified {
    chain: Vec<CertificateDer<'static>>,
    name: ServerName<'static>,
    until: u64,
}

impl Verifier {
    /// Trusts certificates issued by `roots`, and pinned ones; without roots, any certificate.
    pub(crate) fn new(
        roots: Option<Arc<RootCertStore>>,
        pinned: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Verifier, String> {
        let trust = match roots {
            None => Trust::All,
            Some(roots) if roots.is_empty() => Trust::None,
            Some(roots) => {
                let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build();
                Trust::Roots(verifier.map_err(|e| e.to_string())?)
            }
        };
        let algorithms = provider.signature_verification_algorithms;
        Ok(Verifier { trust, pinned, algorithms, verified: Mutex::new(None) })
    }

    fn was_verified(&self, chain: &[&CertificateDer<'_>], name: &ServerName<'_>, now: UnixTime) -> bool {
        let verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        verified.as_ref().is_some_and(|it| {
            now.as_secs() < it.until && it.name == *name && it.chain.iter().eq(chain.iter().copied())
        })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verifier = match &self.trust {
            Trust::All => return Ok(ServerCertVerified::assertion()),
            Trust::None => return Err(CertificateError::UnknownIssuer.into()),
            Trust::Roots(verifier) => verifier,
        };
        let chain: Vec<_> = std::iter::once(end_entity).chain(intermediates).collect();
        if self.was_verified(&chain, name, now) {
            return Ok(ServerCertVerified::assertion());
        }
        if self.pinned.contains(end_entity) {
            certificate::verify(end_entity, name, now)?;
        } else {
            verifier.verify_server_cert(end_entity, intermediates, name, ocsp, now).map_err(|error| {
                match error {
                    // webpki first reports that it cannot be both a server's and an issuer's certificate. The actionable problem is that it
                    // is not trusted.
                    rustls::Error::InvalidCertificate(CertificateError::Other(_))
                        if certificate::is_self_issued(end_entity) =>
                    {
                        CertificateError::UnknownIssuer.into()
                    }
                    error => error,
                }
            })?;
        }
        let chain = chain.into_iter().map(|certificate| certificate.clone().into_owned()).collect();
        let until = now.as_secs() + VERIFIED_FOR.as_secs();
        *self.verified.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Verified { chain, name: name.to_owned(), until });
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let info = certificate::public_key_info(certificate).ok_or(CertificateError::BadEncoding)?;
        let (algorithm, key) = certificate::public_key(&info).ok_or(CertificateError::BadEncoding)?;
        let of_scheme = self.algorithms.mapping.iter().filter(|(scheme, _)| *scheme == signed.scheme);
        let mut fitting = of_scheme
            .flat_map(|(_, all)| all.iter())
            .filter(|one| one.public_key_alg_id().as_ref() == algorithm);
        match fitting.any(|one| one.verify_signature(key, message, signed.signature()).is_ok()) {
            true => Ok(HandshakeSignatureValid::assertion()),
            false => Err(of_its_key(CertificateError::BadSignature.into())),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let info = certificate::public_key_info(certificate).ok_or(CertificateError::BadEncoding)?;
        verify_tls13_signature_with_raw_key(message, &info, signed, &self.algorithms).map_err(of_its_key)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// A wrong handshake signature, or one with a key that is too short, is not evidence about the issuer of the certificate.
fn of_its_key(error: rustls::Error) -> rustls::Error {
    match error {
        rustls::Error::InvalidCertificate(CertificateError::BadSignature) => {
            CertificateError::ApplicationVerificationFailure.into()
        }
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn a_signature_of_the_handshake_is_no_matter_of_the_issuer() {
        let of = |error: CertificateError| Error::from(of_its_key(error.into()));
        assert_eq!(of(CertificateError::BadSignature), Error::BadCertificate);
        assert_eq!(of(CertificateError::Expired), Error::Expired);
        // In the chain, a bad signature means another issuer with the same name.
        assert_eq!(Error::from(rustls::Error::from(CertificateError::BadSignature)), Error::UnknownIssuer);
    }
}
