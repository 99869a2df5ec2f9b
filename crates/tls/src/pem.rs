//! Reads certificates and private keys from PEM text (RFC 7468).

use rustls::{
    crypto::CryptoProvider,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{Error, PemObject},
    },
    sign::{CertifiedKey, SingleCertAndKey},
};

use crate::certificate;

/// A certificate chain, end entity first, and its private key; both as PEM text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The chain.
    pub certificates: String,
    /// The key: PKCS #8, PKCS #1 or SEC 1.
    pub key: String,
}

/// All certificates of a text; the error is a message for the user.
pub(crate) fn certificates(text: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    match all {
        Ok(all) if all.is_empty() && is_der(text) => Err(not_pem("x509")),
        Ok(all) if all.is_empty() => {
            Err("it has no certificate in PEM form (-----BEGIN CERTIFICATE-----)".to_owned())
        }
        Ok(all) => Ok(all),
        Err(e) => Err(format!("it cannot be read as PEM: {e}")),
    }
}

/// The first private key of a text; the error is a message for the user.
pub(crate) fn key(text: &str) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|e| match e {
        // PKCS #8 has a separate label for encrypted keys; PKCS #1 and SEC 1 have a header (RFC 1421), which is not base64.
        _ if text.contains("ENCRYPTED") => "its key is encrypted; decrypt it with openssl pkey".to_owned(),
        Error::NoItemsFound if is_der(text) => not_pem("pkey"),
        Error::NoItemsFound => "it has no private key in PEM form (-----BEGIN PRIVATE KEY-----)".to_owned(),
        e => format!("it cannot be read as PEM: {e}"),
    })
}

/// The part of an identity that cannot be used, and why.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    Certificate(String),
    Key(String),
}

/// Pairs a chain, end entity first, with the private key of the end entity. Certificates of any X.509 version are accepted: whether they
/// are valid is the peer's decision.
pub(crate) fn pair(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    provider: &CryptoProvider,
) -> Result<SingleCertAndKey, Unusable> {
    let own = chain.first().and_then(certificate::public_key_info);
    let own = own.ok_or_else(|| Unusable::Certificate(UNREADABLE.to_owned()))?;
    let key = provider.key_provider.load_private_key(key).map_err(|e| Unusable::Key(e.to_string()))?;
    if key.public_key().is_some_and(|public| public != own) {
        return Err(Unusable::Key(FOREIGN_KEY.to_owned()));
    }
    Ok(CertifiedKey::new(chain, key).into())
}

const FOREIGN_KEY: &str = "it does not belong to the certificate that is given with it";
const UNREADABLE: &str = "it has a certificate that cannot be read; openssl x509 -text -in FILE says more";

/// The message for a certificate that cannot be read; `None` for other errors.
pub(crate) fn unreadable(error: &rustls::Error) -> Option<&'static str> {
    matches!(error, rustls::Error::InvalidCertificate(_)).then_some(UNREADABLE)
}

/// Whether a text was a DER file: a sequence of 128 bytes or more, whose second byte is not UTF-8.
fn is_der(text: &str) -> bool {
    text.starts_with("0\u{fffd}")
}

fn not_pem(command: &str) -> String {
    format!("it is not PEM; convert it with openssl {command} -inform der")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_der_form_is_named_as_such() {
        let der = String::from_utf8_lossy(&[0x30, 0x82, 0x01, 0x0a, 0x00]).into_owned();
        let why = |command| Some(format!("it is not PEM; convert it with openssl {command} -inform der"));
        assert_eq!((certificates(&der).err(), key(&der).err()), (why("x509"), why("pkey")));
        let begin = "it has no certificate in PEM form";
        assert!(certificates("hello").is_err_and(|why| why.starts_with(begin)));
    }

    #[test]
    fn an_encrypted_key_is_named_as_such() {
        let sec1 = "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAAAA\n\
            -----END EC PRIVATE KEY-----\n";
        let pkcs8 = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
        for text in [sec1, pkcs8] {
            let why = "its key is encrypted; decrypt it with openssl pkey";
            assert_eq!(key(text).err().as_deref(), Some(why), "{text}");
        }
    }
}
