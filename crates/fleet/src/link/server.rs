//! The addresses of NATS servers, and the credentials for them.

use std::{fmt, io, net::IpAddr, path::PathBuf};

use async_nats::{
    ConnectOptions, ServerAddr,
    rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use nkeys::{KeyPair, KeyPairType};
use percent_encoding::percent_decode_str;
use units::ParseError;

use crate::error::Error;

/// NATS servers of one fleet, and the credentials for them.
#[derive(Clone)]
pub struct Server {
    addresses: Vec<ServerAddr>,
    login: Login,
    is_tls_required: bool,
    ca: Option<PathBuf>,
    certificate: Option<(PathBuf, PathBuf)>,
}

/// Credentials besides those in the URL. Secrets are the contents of their files.
#[derive(Clone, Default)]
pub struct Access {
    /// User and password.
    pub user: Option<(String, String)>,
    /// A token.
    pub token: Option<String>,
    /// The seed of an nkey.
    pub nkey: Option<String>,
    /// The text of a credentials file: the JWT of a user, and the seed of its nkey.
    pub creds: Option<String>,
    /// A PEM file of the authorities to trust instead of the system's.
    pub ca: Option<PathBuf>,
    /// PEM files of the client certificate and its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// The credentials to log in with.
#[derive(Clone, PartialEq, Eq)]
enum Login {
    None,
    User(String, String),
    Token(String),
    Nkey(String),
    Creds(String),
}

impl Server {
    /// Parses `nats://[USER:PASSWORD@]HOST:PORT`, or several URLs separated by commas; `tls://` requires TLS.
    ///
    /// # Errors
    /// Not a URL, or one without credentials for a server that is not on loopback; contains the fix.
    pub fn parse(urls: &str) -> Result<Server, Error> {
        Server::with(urls, Access::default())
    }

    /// Like [`Server::parse`], with credentials from elsewhere.
    ///
    /// # Errors
    /// As [`Server::parse`]; or there are two ways to log in.
    pub fn with(urls: &str, access: Access) -> Result<Server, Error> {
        let addresses = urls.split(',').map(|url| address(url.trim())).collect::<Result<Vec<_>, _>>()?;
        let is_tls_required = access.ca.is_some()
            || access.certificate.is_some()
            || addresses.iter().any(ServerAddr::tls_required);
        let login = login(&addresses, &access)?;
        let Access { ca, certificate, .. } = access;
        let elsewhere = addresses.iter().find(|address| !is_loopback(address.host()));
        if let Some(at) = elsewhere
            && login == Login::None
            && certificate.is_none()
        {
            let (scheme, host, port) = (at.scheme(), bracketed(at.host()), at.port());
            let fix = format!(
                "use {scheme}://USER:PASSWORD@{host}:{port}, --nats-creds FILE or --nats-token-file FILE"
            );
            let why = format!("a server that is not on loopback requires credentials; {fix}");
            return Err(Error::Invalid(why));
        }
        Ok(Server { addresses, login, is_tls_required, ca, certificate })
    }

    /// Whether traffic to the server can be read on the network: neither TLS nor loopback.
    pub fn is_in_clear(&self) -> bool {
        let is_far = self.addresses.iter().any(|at| !is_loopback(at.host()) && !at.tls_required());
        is_far && !self.is_tls_required
    }

    /// The credentials without the secret: `user "u"`, `the token`; `None`: anonymous.
    pub(super) fn login(&self) -> Option<String> {
        match &self.login {
            Login::None => None,
            Login::User(user, _) => Some(format!("user {user:?}")),
            Login::Token(_) => Some("the token".to_owned()),
            Login::Nkey(seed) => Some(match KeyPair::from_seed(seed) {
                Ok(pair) => format!("the nkey {}", pair.public_key()),
                Err(_) => "the nkey".to_owned(),
            }),
            Login::Creds(_) => Some("the user of the credentials file".to_owned()),
        }
    }

    /// A secret shared by all who log in with the same credentials; empty if none are required.
    pub(super) fn secret(&self) -> Vec<u8> {
        match &self.login {
            Login::User(_, secret) | Login::Token(secret) | Login::Nkey(secret) | Login::Creds(secret) => {
                secret.clone().into_bytes()
            }
            // The connection attempt reports a file that cannot be read.
            Login::None => {
                let key = self.certificate.as_ref().and_then(|(_, key)| std::fs::read(key).ok());
                key.unwrap_or_default()
            }
        }
    }

    pub(super) fn addresses(&self) -> Vec<ServerAddr> {
        self.addresses.clone()
    }

    /// Options for a connection.
    ///
    /// # Errors
    /// The credentials are not valid.
    pub(super) fn options(&self) -> io::Result<ConnectOptions> {
        let options = ConnectOptions::new().require_tls(self.is_tls_required);
        let options = match self.login.clone() {
            Login::None => options,
            Login::User(user, password) => options.user_and_password(user, password),
            Login::Token(token) => options.token(token),
            Login::Nkey(seed) => options.nkey(seed),
            Login::Creds(text) => options.credentials(&text)?,
        };
        let options = self.ca.iter().fold(options, |o, file| o.add_root_certificates(file.clone()));
        let own = self.certificate.iter();
        Ok(own.fold(options, |o, (file, key)| o.add_client_certificate(file.clone(), key.clone())))
    }
}

/// Whether this text contains a certificate in PEM.
pub fn has_certificate(text: &str) -> bool {
    matches!(CertificateDer::pem_slice_iter(text.as_bytes()).next(), Some(Ok(_)))
}

/// Whether this text contains a private key in PEM.
pub fn has_private_key(text: &str) -> bool {
    PrivateKeyDer::from_pem_slice(text.as_bytes()).is_ok()
}

/// The addresses, without secrets.
impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, at) in self.addresses.iter().enumerate() {
            let comma = if nth > 0 { "," } else { "" };
            write!(f, "{comma}{}://{}:{}", at.scheme(), bracketed(at.host()), at.port())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({self})")
    }
}

fn address(url: &str) -> Result<ServerAddr, ParseError> {
    // An invalid URL may contain a secret too.
    let shown = url.rsplit_once('@').map_or(url.to_owned(), |(_, host)| format!("nats://…@{host}"));
    let wrong = || ParseError::new(&shown, "a NATS server", "nats://HOST:4222 or tls://HOST:4222");
    let address: ServerAddr = url.parse().map_err(|_| wrong())?;
    let is_one = ["nats://", "tls://"].iter().any(|scheme| url.starts_with(scheme));
    if is_one && !address.host().is_empty() { Ok(address) } else { Err(wrong()) }
}

/// The single way to log in.
fn login(addresses: &[ServerAddr], access: &Access) -> Result<Login, Error> {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let in_url = |at: &ServerAddr| match (at.username(), at.password()) {
        (Some(user), Some(password)) => Some(Login::User(decoded(user), decoded(password))),
        // As other NATS clients interpret it.
        (Some(token), None) => Some(Login::Token(decoded(token))),
        (None, _) => None,
    };
    let mut found: Vec<Login> = addresses.iter().filter_map(in_url).collect();
    found.dedup();
    if found.len() > 1 {
        return Err(invalid("servers of one fleet take the same credentials; use --nats-creds FILE"));
    }
    // The URL takes precedence over the environment: it is more explicit.
    if let Some(login) = found.pop() {
        return Ok(login);
    }
    let Access { user, token, nkey, creds, .. } = access.clone();
    let all = [
        user.map(|(user, password)| Login::User(user, password)),
        token.map(Login::Token),
        nkey.map(Login::Nkey),
        creds.map(Login::Creds),
    ];
    let mut all = all.into_iter().flatten();
    let first = all.next().unwrap_or(Login::None);
    match all.next() {
        None => usable(first),
        Some(_) => Err(invalid("there are two ways to log in; use one of user, token, nkey and creds")),
    }
}

/// Checks that the contents of the files are valid.
fn usable(login: Login) -> Result<Login, Error> {
    let is_of_user = |pair: KeyPair| pair.key_pair_type() == KeyPairType::User;
    match &login {
        Login::Nkey(seed) if !KeyPair::from_seed(seed).is_ok_and(is_of_user) => {
            Err(invalid("not the seed of a user's nkey, which begins with SU; create one with nk -gen user"))
        }
        Login::Creds(text) if ConnectOptions::with_credentials(text).is_err() => Err(invalid(
            "not a credentials file, which has a user's JWT and seed; create one with nsc generate creds",
        )),
        _ => Ok(login),
    }
}

fn invalid(why: &str) -> Error {
    Error::Invalid(why.to_owned())
}

fn is_loopback(host: &str) -> bool {
    host.parse().map_or(host == "localhost", |ip: IpAddr| ip.is_loopback())
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, access: Access, expected: Result<Login, &str>) {
        match (Server::with(url, access), expected) {
            (Ok(server), Ok(login)) => assert!(server.login == login, "{url}"),
            (Err(why), Err(part)) => assert!(why.to_string().contains(part), "{url}: {why}"),
            (other, _) => panic!("{url}: {other:?}"),
        }
    }

    #[test]
    fn a_server_is_on_loopback_or_has_credentials() {
        let none = Access::default;
        for url in ["nats://127.0.0.1:4222", "nats://localhost", "nats://[::1]:4222", "tls://127.0.0.1"] {
            check(url, none(), Ok(Login::None));
        }
        for (url, fix) in [
            ("nats://10.0.0.1:4222", "use nats://USER:PASSWORD@10.0.0.1:4222"),
            ("tls://[fd00::1]:4222", "use tls://USER:PASSWORD@[fd00::1]:4222"),
            ("nats://127.0.0.1,nats://broker", "use nats://USER:PASSWORD@broker:4222"),
            ("http://127.0.0.1:4222", "is not a NATS server; use nats://HOST:4222"),
            ("", "is not a NATS server; use nats://HOST:4222"),
        ] {
            check(url, none(), Err(fix));
        }
    }

    #[test]
    fn there_is_one_way_to_log_in() {
        let user = |user: &str, password: &str| Login::User(user.to_owned(), password.to_owned());
        let access = || Access { token: Some("t".to_owned()), ..Access::default() };
        check("nats://u:p%40@10.0.0.1", Access::default(), Ok(user("u", "p@")));
        check("nats://secret@10.0.0.1", Access::default(), Ok(Login::Token("secret".to_owned())));
        check("nats://10.0.0.1", access(), Ok(Login::Token("t".to_owned())));
        check("nats://u:p@10.0.0.1", access(), Ok(user("u", "p")));
        check("nats://u:p@10.0.0.1,nats://10.0.0.2", access(), Ok(user("u", "p")));
        check("nats://u:p@10.0.0.1,nats://u:q@10.0.0.2", access(), Err("take the same credentials"));
        let nkey = |seed: &str| Access { nkey: Some(seed.to_owned()), ..Access::default() };
        let two = Access { nkey: Some("SU".to_owned()), ..access() };
        check("nats://10.0.0.1", two, Err("there are two ways to log in"));
        let seed = KeyPair::new_user().seed().unwrap();
        check("nats://10.0.0.1", nkey(&seed), Ok(Login::Nkey(seed.clone())));
        check("nats://10.0.0.1", nkey("SU"), Err("not the seed of a user's nkey"));
        check("nats://10.0.0.1", nkey(&KeyPair::new_account().seed().unwrap()), Err("which begins with SU"));
        let creds = Access { creds: Some("none".to_owned()), ..Access::default() };
        check("nats://10.0.0.1", creds, Err("not a credentials file"));
        let own = Access { certificate: Some(("c".into(), "k".into())), ..Access::default() };
        check("nats://10.0.0.1", own, Ok(Login::None));
    }

    #[test]
    fn what_goes_in_clear_is_known() {
        for (url, is_in_clear) in [
            ("nats://127.0.0.1", false),
            ("nats://u:p@10.0.0.1", true),
            ("tls://u:p@10.0.0.1", false),
            ("tls://u:p@10.0.0.1,nats://10.0.0.2", false),
        ] {
            assert_eq!(Server::parse(url).unwrap().is_in_clear(), is_in_clear, "{url}");
        }
    }

    #[test]
    fn a_secret_is_not_shown() {
        let server = Server::parse("nats://u:secret@10.0.0.1,tls://[::1]:99").unwrap();
        assert_eq!(format!("{server} {server:?}").matches("secret").count(), 0);
        assert_eq!(server.to_string(), "nats://10.0.0.1:4222,tls://[::1]:99");
        let why = Server::parse("http://u:secret@10.0.0.1").unwrap_err().to_string();
        assert!(!why.contains("secret"), "{why}");
    }
}
