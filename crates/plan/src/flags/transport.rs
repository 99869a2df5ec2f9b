//! What carries requests and messages: `--http2`, `--streams`, and the flags of TLS.

use super::{FlagReader, streams};
use crate::{Pem, Scheme, Tls, TlsVersions, flag, tls};

/// Where HTTP/2 is wanted of a target that it cannot carry.
pub(crate) const NO_STREAMS: &str = "requires a target with http://, https://, ws:// or wss://";

impl FlagReader<'_> {
    /// HTTP/2: requests at once on a connection.
    pub(super) fn streams(&mut self, scheme: Option<Scheme>) -> Option<u16> {
        if scheme.is_some_and(|scheme| !scheme.has_streams()) {
            for flag in [&flag::HTTP2, &flag::STREAMS] {
                self.refuse(flag, NO_STREAMS);
            }
            return None;
        }
        if scheme == Some(Scheme::Grpc) {
            self.refuse(&flag::HTTP2, "gRPC is over HTTP/2; remove it");
        } else if self.get(&flag::HTTP2).is_none() {
            self.refuse(&flag::STREAMS, "requires --http2");
            return None;
        }
        Some(self.read(&flag::STREAMS, 1, streams))
    }

    /// How connections are secured; `secure`: whether the target's are, where that is known.
    pub(super) fn tls(&mut self, secure: Option<bool>) -> Tls {
        if secure == Some(false) {
            for flag in flag::OF_TLS {
                self.refuse(flag, "requires a target with https://, wss://, tls:// or grpcs://");
            }
            return Tls::default();
        }
        let roots = self.given(&flag::CACERT, Pem::named);
        let (cert, key) = (self.given(&flag::CERT, Pem::named), self.given(&flag::KEY, Pem::named));
        match (self.get(&flag::CERT), self.get(&flag::KEY)) {
            (Some(_), None) => self.refuse(&flag::CERT, "requires --key FILE"),
            (None, Some(_)) => self.refuse(&flag::KEY, "requires --cert FILE"),
            _ => {}
        }
        Tls {
            insecure: self.get(&flag::INSECURE).is_some(),
            roots,
            identity: cert.zip(key),
            server_name: self.given(&flag::SNI, tls::server_name),
            versions: self.read(&flag::TLS, TlsVersions::Both, tls::versions),
            resume: self.get(&flag::NO_RESUME).is_none(),
        }
    }
}
