//! Cause: TLS handshakes fail.

use super::*;
use crate::tls;

/// Most faults were in the TLS handshake: a certificate, no common version, cipher or protocol (ALPN), or no TLS at all.
pub(crate) struct Tls {
    pub(crate) handshakes: u64,
    pub(crate) what: &'static str,
    /// What is known of it besides, in parentheses.
    pub(crate) known: String,
    fix: &'static str,
}

#[cfg(test)]
impl Tls {
    pub(super) fn new(handshakes: u64, what: &'static str, known: &str) -> Tls {
        Tls { handshakes, what, known: known.to_owned(), fix: "" }
    }
}

impl Cause for Tls {
    const ID: &'static str = "tls";
    const OF: (Side, Name) = (Side::Target, Name::Tls);

    fn find(case: &Case) -> Option<Found<Tls>> {
        let (what, fix) = tls::failed(case).filter(|_| case.trouble == Trouble::WrongAnswer)?;
        let found = Tls { handshakes: case.count, what, known: case.detail.suffix(), fix };
        Some(Found::seen(found, case.left()))
    }

    fn sentence(&self) -> String {
        format!("{} failed: {}{}", some(self.handshakes, "TLS handshake"), self.what, self.known)
    }

    fn detail(&self, _: &Case) -> String {
        self.sentence()
    }

    fn fix(&self, case: &Case) -> String {
        match is_of_some(case) {
            true => ONE_OF_SOME.to_owned(),
            false => tls::in_place_of(self.fix, &case.summary.target),
        }
    }
}

/// Whether the fault concerns only some connections: others with the same settings succeeded, so the target as a whole does speak TLS.
fn is_of_some(case: &Case) -> bool {
    let s = case.summary;
    let depends = matches!(case.kind, Some(Kind::NotTls | Kind::NoProtocol | Kind::NothingInCommon));
    depends && case.others_succeed(s.tls_us.count + s.tls_resumed_us.count)
}
