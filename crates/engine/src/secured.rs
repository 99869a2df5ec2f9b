//! The TLS configuration of a population, in the terms of crate `tls`, and the faults of TLS errors.

use plan::{Pem, Population, TlsVersions};
use samples::{Detail, Fault, Kind, Rule, Stage};
use tls::{Identity, Versions};

use crate::failure::Failure;

/// The TLS configuration of a population; `None` without TLS.
pub fn secured(population: &Population) -> Option<tls::Client> {
    let Population { target, tls: chosen, .. } = population;
    if !target.secure {
        return None;
    }
    let pem = |pem: &Pem| pem.text.clone();
    let names = match &chosen.server_name {
        Some(name) => vec![name.clone()],
        None if target.routed_host().is_some() => {
            target.routed_host().map(str::to_owned).into_iter().collect()
        }
        None if target.is_named() => vec![target.host.clone()],
        None => target.destinations.iter().map(|destination| destination.ip().to_string()).collect(),
    };
    let identity =
        chosen.identity.as_ref().map(|(chain, key)| Identity { certificates: pem(chain), key: pem(key) });
    Some(tls::Client {
        names,
        roots: chosen.roots.as_ref().map(pem),
        insecure: chosen.insecure,
        identity,
        versions: match chosen.versions {
            TlsVersions::Both => Versions::Both,
            TlsVersions::Only12 => Versions::Only12,
            TlsVersions::Only13 => Versions::Only13,
        },
        resume: chosen.resume,
        alpn: match population.streams {
            Some(_) => vec!["h2"],
            None if target.scheme.has_path() => vec!["http/1.1"],
            None => Vec::new(),
        },
    })
}

/// The fault of a TLS error at this stage. Errors that only the handshake can have are faults of the handshake; others belong to
/// what was under way.
pub fn tls_fault(error: tls::Error, stage: Stage) -> Fault {
    use tls::Error as E;
    let failure: Failure = match error {
        E::UnknownIssuer => Kind::UnknownIssuer.into(),
        E::WrongName => Kind::WrongName.into(),
        E::Expired => Kind::Expired.into(),
        E::NotYetValid => Kind::NotYetValid.into(),
        E::BadCertificate => Kind::BadCertificate.into(),
        E::CertificateRequired => Kind::CertificateRequired.into(),
        E::NothingInCommon => Kind::NothingInCommon.into(),
        E::NoProtocol => Kind::NoProtocol.into(),
        E::NotTls => Kind::NotTls.into(),
        E::Alert(alert) => Failure { kind: Kind::TlsAlert, detail: Detail::of_alert(alert) },
        E::TooLong => Rule::RecordTooLong.into(),
        E::BadMac => Rule::RecordMac.into(),
        E::Unexpected => Rule::TlsUnexpected.into(),
        E::Malformed => Rule::TlsMalformed.into(),
        E::Illegal => Rule::TlsIllegal.into(),
        E::Flood => Rule::TlsFlood.into(),
    };
    let is_later = matches!(failure.kind, Kind::BadAnswer | Kind::TlsAlert);
    failure.at(if is_later { stage } else { Stage::Tls })
}
