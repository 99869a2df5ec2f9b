//! Certificates and keys in files: made by openssl, or by rcgen where openssl cannot easily.

use std::{fs, path::Path};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType, date_time_ymd,
};

use crate::{
    program::Program,
    server::{free_place, program},
};

/// A certificate chain and its key: the files.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    pub(crate) cert: String,
    pub(crate) key: String,
}

impl Files {
    fn at(folder: &Path, name: &str) -> Files {
        let file = |end: &str| folder.join(format!("{name}{end}")).to_str().unwrap().to_owned();
        Files { cert: file(".pem"), key: file(".key") }
    }

    fn of(folder: &Path, name: &str, cert: &str, key: &str) -> Files {
        let files = Files::at(folder, name);
        fs::write(&files.cert, cert).unwrap();
        fs::write(&files.key, key).unwrap();
        files
    }
}

/// Runs openssl.
pub(crate) fn openssl(args: &[&str]) -> String {
    let ended = Program::from(program("openssl", args)).end();
    assert_eq!(ended.status, Some(0), "{args:?}: {ended:?}");
    ended.stdout
}

/// An algorithm, as `openssl req` wants it.
pub(crate) const ECDSA: &[&str] = &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
pub(crate) const RSA: &[&str] = &["-newkey", "rsa:2048"];

/// As most people make them: signed by itself, for localhost and the addresses of these tests.
pub(crate) fn self_signed(folder: &Path, algorithm: &[&str]) -> Files {
    let files = Files::at(folder, "self");
    let names = format!("subjectAltName=DNS:localhost,IP:127.0.0.1,IP:{}", free_place().ip());
    let args = [
        "-nodes",
        "-subj",
        "/CN=localhost",
        "-days",
        "2",
        "-addext",
        &names,
        "-keyout",
        &files.key,
        "-out",
        &files.cert,
    ];
    openssl(&[&["req", "-x509"], algorithm, &args].concat());
    files
}

/// The same certificate and key as Java wants them: a file with the password "secret".
pub(super) fn key_store(folder: &Path, files: &Files) -> String {
    let store = folder.join("store.p12").to_str().unwrap().to_owned();
    let from = ["pkcs12", "-export", "-in", &files.cert, "-inkey", &files.key];
    openssl(&[&from[..], &["-out", &store, "-passout", "pass:secret"]].concat());
    store
}

/// Someone who issues certificates.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// The file with its own certificate.
    pub(crate) fn file(&self, folder: &Path) -> String {
        Files::of(folder, "authority", &self.0.pem(), "").cert
    }

    /// A certificate for localhost and the addresses of these tests, with these changes.
    pub(crate) fn issue(
        &self,
        folder: &Path,
        name: &str,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Files {
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params
            .subject_alt_names
            .extend([free_place().ip(), "127.0.0.1".parse().unwrap()].map(SanType::IpAddress));
        params.distinguished_name.push(DnType::CommonName, name);
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.0).unwrap();
        Files::of(folder, name, &cert.pem(), &key.serialize_pem())
    }
}

pub(crate) fn expired(params: &mut CertificateParams) {
    (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
}

pub(crate) fn not_yet_valid(params: &mut CertificateParams) {
    (params.not_before, params.not_after) = (date_time_ymd(2090, 1, 1), date_time_ymd(2091, 1, 1));
}

pub(crate) fn of_another_name(params: &mut CertificateParams) {
    params.subject_alt_names = vec![SanType::DnsName("example.org".try_into().unwrap())];
}
