//! TLS settings of connections to `https://`, `wss://`, `tls://` and `grpcs://`.

/// The TLS settings that a user can choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// Accept any certificate.
    pub insecure: bool,
    /// Trusted certificates; `None`: the system's.
    pub roots: Option<Pem>,
    /// The client's certificate chain and its private key.
    pub identity: Option<(Pem, Pem)>,
    /// Server name to send and to verify the certificate against; `None`: the target's host.
    pub server_name: Option<String>,
    /// Versions to offer.
    pub versions: TlsVersions,
    /// Whether sessions are resumed.
    pub resume: bool,
}

impl Default for Tls {
    fn default() -> Tls {
        Tls {
            insecure: false,
            roots: None,
            identity: None,
            server_name: None,
            versions: TlsVersions::Both,
            resume: true,
        }
    }
}

/// Versions of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersions {
    /// 1.3 and 1.2.
    Both,
    /// 1.2 only.
    Only12,
    /// 1.3 only.
    Only13,
}

/// A file of certificates or of a key.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem {
    /// Its name, as typed.
    pub file: String,
    /// Its content; empty until it is read.
    pub text: String,
}

/// Omits the content, which may be a key.
impl std::fmt::Debug for Pem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pem").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Pem {
    /// A file that is not read yet.
    pub(crate) fn named(file: &str) -> Result<Pem, String> {
        match file {
            "" => Err("no file; use ca.pem".to_owned()),
            _ => Ok(Pem { file: file.to_owned(), text: String::new() }),
        }
    }
}

impl Tls {
    /// Each file to be read, with the flag that names it.
    pub fn files(&mut self) -> impl Iterator<Item = (&'static str, &mut Pem)> {
        let (cert, key) = self.identity.as_mut().map(|(cert, key)| (cert, key)).unzip();
        let roots = self.roots.as_mut().map(|pem| ("--cacert", pem));
        roots.into_iter().chain(cert.map(|pem| ("--cert", pem))).chain(key.map(|pem| ("--key", pem)))
    }
}

pub(crate) fn versions(text: &str) -> Result<TlsVersions, String> {
    match text {
        "1.2" => Ok(TlsVersions::Only12),
        "1.3" => Ok(TlsVersions::Only13),
        _ => Err(format!("{text:?} is not a version that can be chosen; use 1.2 or 1.3")),
    }
}

pub(crate) fn server_name(text: &str) -> Result<String, String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    match text {
        "" => Err("no name; use example.org".to_owned()),
        _ if text.chars().all(is_name) => Ok(text.to_owned()),
        _ => Err(format!("{text:?} is not a host name; use example.org")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_chosen_is_read() {
        for (text, expected) in
            [("1.2", Some(TlsVersions::Only12)), ("1.3", Some(TlsVersions::Only13)), ("1.1", None)]
        {
            assert_eq!(versions(text).ok(), expected, "{text}");
        }
        for (text, is_right) in
            [("example.org", true), ("a_b.c-d", true), ("", false), ("a b", false), ("a:1", false)]
        {
            assert_eq!(server_name(text).is_ok(), is_right, "{text}");
        }
    }

    #[test]
    fn a_key_is_not_printed() {
        let pem = Pem { text: "secret".to_owned(), ..Pem::named("key.pem").unwrap() };
        assert_eq!(format!("{pem:?}"), "Pem { file: \"key.pem\", .. }");
    }
}
