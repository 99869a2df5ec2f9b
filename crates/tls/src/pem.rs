//! Certificates and keys from PEM text (RFC 7468).

use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

/// A certificate chain, the end entity's first, and its private key; both as PEM text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The chain.
    pub certificates: String,
    /// The key: PKCS #8, PKCS #1 or SEC 1.
    pub key: String,
}

/// All certificates of a text; the error says what is wrong with it.
pub(crate) fn certificates(text: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    match all {
        Ok(all) if all.is_empty() => {
            Err("it has no certificate in PEM form (-----BEGIN CERTIFICATE-----)".to_owned())
        }
        Ok(all) => Ok(all),
        Err(e) => Err(format!("it cannot be read as PEM: {e}")),
    }
}

/// The first private key of a text; the error says what is wrong with it.
pub(crate) fn key(text: &str) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|e| match e {
        rustls::pki_types::pem::Error::NoItemsFound if text.contains("ENCRYPTED") => {
            "its key is encrypted; decrypt it with openssl pkey".to_owned()
        }
        rustls::pki_types::pem::Error::NoItemsFound => {
            "it has no private key in PEM form (-----BEGIN PRIVATE KEY-----)".to_owned()
        }
        e => format!("it cannot be read as PEM: {e}"),
    })
}
