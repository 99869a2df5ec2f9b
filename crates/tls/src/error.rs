//! What may be wrong with a TLS connection: data, not an error of ours.

use rustls::{AlertDescription, CertificateError};

/// Why a connection could not be opened, or cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The peer's certificate was not issued by anyone we trust.
    UnknownIssuer,
    /// It is for another name.
    WrongName,
    /// It has expired.
    Expired,
    /// It is not valid yet.
    NotYetValid,
    /// Something else is wrong with it.
    BadCertificate,
    /// The peer does not accept our certificate, or wants one.
    CertificateRequired,
    /// No version or cipher that both have.
    NothingInCommon,
    /// No application protocol that both have (ALPN, RFC 7301).
    NoProtocol,
    /// A fatal alert, by its number (RFC 8446 section 6).
    Alert(u8),
    /// What came is not TLS.
    NotTls,
    /// A record or a message is longer than it may be.
    TooLong,
    /// A record does not have the right tag: it was changed, or is out of order.
    BadMac,
    /// A record or message that is not allowed here.
    Unexpected,
    /// A message that cannot be read.
    Malformed,
    /// A message with a value that does not exist.
    Illegal,
    /// Too many records without content in a row.
    Flood,
}

impl Error {
    /// The alert that says so to the peer (RFC 8446 section 6.2); none in reply to one.
    pub(crate) fn alert(self) -> Option<u8> {
        let alert = match self {
            Error::UnknownIssuer => AlertDescription::UnknownCA,
            Error::WrongName | Error::BadCertificate | Error::NotYetValid => AlertDescription::BadCertificate,
            Error::Expired => AlertDescription::CertificateExpired,
            Error::CertificateRequired | Error::Alert(_) | Error::NotTls => return None,
            Error::NothingInCommon => AlertDescription::HandshakeFailure,
            Error::NoProtocol => AlertDescription::NoApplicationProtocol,
            Error::TooLong => AlertDescription::RecordOverflow,
            Error::BadMac => AlertDescription::BadRecordMac,
            Error::Unexpected | Error::Flood => AlertDescription::UnexpectedMessage,
            Error::Malformed => AlertDescription::DecodeError,
            Error::Illegal => AlertDescription::IllegalParameter,
        };
        Some(alert.into())
    }

    /// A fatal alert of the peer.
    pub(crate) fn of_alert(alert: AlertDescription) -> Error {
        use AlertDescription as A;
        match alert {
            A::BadCertificate
            | A::UnsupportedCertificate
            | A::CertificateRevoked
            | A::CertificateExpired
            | A::CertificateUnknown
            | A::UnknownCA
            | A::AccessDenied
            | A::CertificateRequired => Error::CertificateRequired,
            A::HandshakeFailure | A::ProtocolVersion | A::InsufficientSecurity => Error::NothingInCommon,
            A::NoApplicationProtocol => Error::NoProtocol,
            other => Error::Alert(other.into()),
        }
    }
}

impl From<rustls::Error> for Error {
    fn from(error: rustls::Error) -> Error {
        use rustls::Error as E;
        match error {
            E::InvalidCertificate(error) => match error {
                CertificateError::UnknownIssuer | CertificateError::BadSignature => Error::UnknownIssuer,
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                    Error::WrongName
                }
                CertificateError::Expired | CertificateError::ExpiredContext { .. } => Error::Expired,
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                    Error::NotYetValid
                }
                _ => Error::BadCertificate,
            },
            E::NoCertificatesPresented => Error::BadCertificate,
            E::AlertReceived(alert) => Error::of_alert(alert),
            E::PeerIncompatible(_) => Error::NothingInCommon,
            E::NoApplicationProtocol => Error::NoProtocol,
            E::InvalidMessage(rustls::InvalidMessage::InvalidContentType) => Error::NotTls,
            E::PeerSentOversizedRecord | E::InvalidMessage(rustls::InvalidMessage::MessageTooLarge) => {
                Error::TooLong
            }
            E::DecryptError => Error::BadMac,
            E::InappropriateMessage { .. }
            | E::InappropriateHandshakeMessage { .. }
            | E::PeerMisbehaved(_) => Error::Unexpected,
            _ => Error::Malformed,
        }
    }
}
