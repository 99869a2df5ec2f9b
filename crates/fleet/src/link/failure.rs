//! Why there is no connection to a NATS server, with the fix.

use std::{error::Error, fmt, io};

use async_nats::{
    ConnectError, ConnectErrorKind,
    rustls::{self, AlertDescription, CertificateError, InvalidMessage},
};

use super::Server;

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoLink {
    /// The problem and the fix.
    pub why: String,
    /// Nothing listens there (yet): worth retrying. False for a refusal.
    pub is_away: bool,
}

impl NoLink {
    /// Why an attempt to connect to this server failed.
    pub(super) fn new(server: &Server, error: &ConnectError) -> NoLink {
        let at = &server.to_string();
        let away = |why: String| NoLink { why, is_away: true };
        let refused = |why: String| NoLink { why, is_away: false };
        if let Some(why) = tls(at, error) {
            return refused(why);
        }
        match error.kind() {
            ConnectErrorKind::Dns => {
                away(format!("{at}: the name cannot be resolved; check the URL: {}", cause(error)))
            }
            ConnectErrorKind::TimedOut => {
                away(format!("{at}: no NATS server responded in time; check the address and the firewall"))
            }
            ConnectErrorKind::AuthorizationViolation => refused(match server.login() {
                None => format!(
                    "{at}: the server requires credentials; use --nats-creds FILE, --nats-token-file FILE or \
                    nats://USER:PASSWORD@HOST"
                ),
                Some(login) => format!(
                    "{at}: the server refuses {login} (authorization violation); check that it is one of this \
                    server, and not revoked or expired"
                ),
            }),
            ConnectErrorKind::Authentication => {
                refused(format!("{at}: the nkey cannot sign; use the seed of a user (SU…) in --nats-nkey"))
            }
            ConnectErrorKind::Tls => refused(format!("{at}: TLS: {}", cause(error))),
            _ => match io_kind(error) {
                Some(io::ErrorKind::ConnectionRefused) => {
                    away(format!("{at}: nothing listens there; start nats-server, or check the URL"))
                }
                Some(io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable) => {
                    away(format!("{at}: not reachable from here; check the address and the routes"))
                }
                _ => away(format!("{at}: the connection ended before NATS began: {}", cause(error))),
            },
        }
    }
}

impl fmt::Display for NoLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl Error for NoLink {}

/// A failure on this machine.
impl From<io::Error> for NoLink {
    fn from(error: io::Error) -> NoLink {
        NoLink { why: error.to_string(), is_away: false }
    }
}

/// An error with its chain of causes.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| inner(*error))
}

fn inner<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>() {
        // An error of the kernel has no source; one of TLS is wrapped inside.
        Some(io) => io.get_ref().map(|inner| inner as &(dyn Error + 'static)),
        None => error.source(),
    }
}

/// The root cause.
fn cause(error: &ConnectError) -> String {
    causes(error).last().map_or_else(|| error.to_string(), ToString::to_string)
}

fn io_kind(error: &ConnectError) -> Option<io::ErrorKind> {
    causes(error).filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind).last()
}

/// The TLS error, if that is the cause.
fn tls(at: &str, error: &ConnectError) -> Option<String> {
    let found = causes(error).find_map(|cause| cause.downcast_ref::<rustls::Error>())?;
    let why = match found {
        rustls::Error::InvalidCertificate(why) => return Some(certificate(at, why)),
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "the server does not speak TLS; use nats://, or configure a certificate on the server".to_owned()
        }
        rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "the server requires a client certificate; use --nats-cert FILE and --nats-key FILE".to_owned()
        }
        rustls::Error::AlertReceived(alert) if is_about_certificate(*alert) => format!(
            "the server refuses the client certificate ({alert:?}); it is absent, expired, or not from an authority \
            that the server trusts: openssl x509 -noout -enddate -issuer -in FILE"
        ),
        other => other.to_string(),
    };
    Some(format!("{at}: TLS: {why}"))
}

fn is_about_certificate(alert: AlertDescription) -> bool {
    use AlertDescription::{
        BadCertificate, CertificateExpired, CertificateRevoked, CertificateUnknown, UnknownCA,
        UnsupportedCertificate,
    };
    matches!(
        alert,
        BadCertificate
            | CertificateExpired
            | CertificateRevoked
            | CertificateUnknown
            | UnknownCA
            | UnsupportedCertificate
    )
}

/// What is wrong with the server's certificate.
fn certificate(at: &str, why: &CertificateError) -> String {
    let why = match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "has expired; renew it".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "is not valid yet; check the clocks of both machines".to_owned()
        }
        CertificateError::UnknownIssuer => {
            "is from an unknown authority; use --nats-ca FILE with the authority's certificate".to_owned()
        }
        CertificateError::NotValidForName => "is for another name; use a name that it has".to_owned(),
        CertificateError::NotValidForNameContext { presented, .. } => {
            format!("is for another name; use one that it has: {}", presented.join(", "))
        }
        other => other.to_string(),
    };
    format!("{at}: TLS: the server's certificate {why}")
}
