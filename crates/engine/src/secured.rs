//! How the connections of a population are secured, in the terms of crate `tls`.

use plan::{Pem, Population, TlsVersions};
use samples::{Fault, Kind, Stage};
use tls::{Identity, Versions};

/// How the connections of a population are secured; none where they are not.
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

/// The fault of a connection with which this is wrong.
pub fn tls_fault(error: tls::Error) -> Fault {
    use tls::Error as E;
    let kind = match error {
        E::UnknownIssuer => Kind::UnknownIssuer,
        E::WrongName => Kind::WrongName,
        E::Expired => Kind::Expired,
        E::NotYetValid => Kind::NotYetValid,
        E::BadCertificate => Kind::BadCertificate,
        E::CertificateRequired => Kind::CertificateRequired,
        E::NothingInCommon => Kind::NothingInCommon,
        E::NoProtocol => Kind::NoProtocol,
        E::Alert(_) => Kind::TlsAlert,
        E::NotTls => Kind::NotTls,
        E::TooLong | E::BadMac | E::Unexpected | E::Malformed | E::Illegal | E::Flood => Kind::BadAnswer,
    };
    Fault::target(Stage::Tls, kind)
}
