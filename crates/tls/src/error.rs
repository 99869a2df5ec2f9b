//! [`Error`]: what may go wrong on a TLS connection. Such a failure is counted as data; it is not an error of throng.

use rustls::{AlertDescription, CertificateError};

/// Why a connection could not be opened, or cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The peer's certificate was not issued by a trusted issuer.
    UnknownIssuer,
    /// The certificate is for another name.
    WrongName,
    /// The certificate has expired.
    Expired,
    /// The certificate is not valid yet.
    NotYetValid,
    /// The certificate is invalid for another reason.
    BadCertificate,
    /// The peer rejects the client certificate, or requires one.
    CertificateRequired,
    /// The two ends have no version or cipher in common.
    NothingInCommon,
    /// The two ends have no application protocol in common (ALPN, RFC 7301).
    NoProtocol,
    /// The peer sent a fatal alert with this number (RFC 8446, section 6).
    Alert(u8),
    /// The input is not TLS.
    NotTls,
    /// A record or a message is too long.
    TooLong,
    /// A record fails authentication: it was changed, or is out of order.
    BadMac,
    /// A record or a message is not allowed at this point.
    Unexpected,
    /// A message cannot be parsed.
    Malformed,
    /// A message has a value that is not defined.
    Illegal,
    /// Too many records without content in a row.
    Flood,
}

impl Error {
    /// The alert to send to the peer (RFC 8446, section 6.2); `None` if none is sent, as in response to an alert.
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

    /// The error for a fatal alert of the peer.
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
