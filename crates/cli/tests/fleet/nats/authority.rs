//! Certificates, made for one test.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};

/// A certificate authority; what it issues is in its folder.
pub(super) struct Authority {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
    /// Its own certificate.
    pub(super) file: String,
}

/// A certificate and its key, as files.
pub(super) struct Issued {
    pub(super) cert: String,
    pub(super) key: String,
}

/// How long a certificate is valid.
#[derive(Clone, Copy)]
pub(super) enum Until {
    Later,
    /// It was, until a day long ago.
    LongAgo,
}

impl Authority {
    pub(super) fn new(folder: &Path, name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let file = write(folder, &format!("{name}.pem"), &params.self_signed(&key).unwrap().pem());
        Authority { folder: folder.to_owned(), issuer: Issuer::new(params, key), file }
    }

    /// A certificate for a name or an address.
    pub(super) fn issue(&self, name: &str, until: Until) -> Issued {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = match until {
            Until::Later => date_time_ymd(2100, 1, 1),
            Until::LongAgo => date_time_ymd(2021, 1, 1),
        };
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        let stem = format!("{name}-{:x}", key.public_key_raw()[7]);
        Issued {
            cert: write(&self.folder, &format!("{stem}.pem"), &cert.pem()),
            key: write(&self.folder, &format!("{stem}.key"), &key.serialize_pem()),
        }
    }
}

/// Writes a file and names it.
pub(super) fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}
