//! Cause: dials are rejected by an ICMP message with a known sender.

use super::*;
use record::rejection::Rejection;

/// Dials are rejected with an ICMP message whose sender, type and code were determined (`observed.rejection`; Linux 5.18). Applies also to dials
/// without a SYN-ACK, because routers limit the rate of such messages.
pub(crate) struct Rejected {
    pub(crate) icmp: Rejection,
    /// Dials that were, and those without a reply.
    pub(crate) rejected: u64,
    pub(crate) silent: u64,
}

impl Rejected {
    /// Of its own accord a host sends only that one does not respond to itself; anything else is its firewall.
    fn who(&self) -> Who {
        let Rejection { at, is_ours, by, .. } = self.icmp;
        match by {
            Some(by) if is_ours && at.ip() != by && !self.is_decided() => Who::NoHost,
            Some(_) if is_ours => Who::ThisMachine,
            _ => Who::Other,
        }
    }

    /// Whether it is a policy, and not a missing route.
    fn is_decided(&self) -> bool {
        self.icmp.is_prohibition() || self.icmp.is_port_unreachable()
    }
}

#[derive(PartialEq, Eq)]
enum Who {
    NoHost,
    ThisMachine,
    Other,
}

impl Cause for Rejected {
    const ID: &'static str = "rejected";
    const OF: (Side, Name) = (Side::Path, Name::Unreachable);
    const YIELDS_TO: &'static str = "conntrack";

    fn find(case: &Case) -> Option<Found<Rejected>> {
        let icmp = case.evidence.rejection?;
        let fits = match case.trouble {
            Trouble::Path | Trouble::Waiting => true,
            // No other ICMP message becomes ECONNREFUSED.
            Trouble::Refused => icmp.is_port_unreachable(),
            Trouble::None | Trouble::Ours | Trouble::Lost | Trouble::WrongAnswer | Trouble::Other => false,
        };
        // Routers limit their ICMP messages: other dials just time out.
        let silent = case.faults_of(Side::Target, Kind::Timeout);
        let rejected =
            case.faults_of(Side::Path, Kind::Unreachable) + case.faults_of(Side::Target, Kind::Refused);
        let is_it = fits && case.stage == Some(Stage::Dial);
        is_it.then(|| Found::seen(Rejected { icmp, rejected, silent }, case.peak()).began(Began::Failing))
    }

    fn of(&self) -> (Side, Name) {
        match self.who() {
            Who::ThisMachine => (Side::Host, Name::Denied),
            Who::NoHost | Who::Other => Self::OF,
        }
    }

    fn sentence(&self) -> String {
        let n = Count(self.rejected + self.silent);
        match (self.who(), self.icmp.by) {
            (Who::NoHost, _) => format!("{} failed: no host responds at that address", n.of("dial")),
            (Who::ThisMachine, _) => format!("this machine's firewall rejected {}", n.of("dial")),
            (Who::Other, Some(by)) => format!("{} rejected by {by}", n.were("dial")),
            (Who::Other, None) => format!("{} rejected on the path", n.were("dial")),
        }
    }

    fn detail(&self, case: &Case) -> String {
        let (n, meaning) = (Count(self.rejected + self.silent), self.icmp.meaning());
        let what = match (self.rejected, self.silent) {
            (_, 0) => format!("{} rejected", n.were("dial")),
            (0, _) => format!("{} got no SYN-ACK", n.of("dial")),
            _ => format!("{} rejected or got no SYN-ACK", n.were("dial")),
        };
        let how = match self.who() {
            Who::NoHost => {
                format!("no host responds at that address, or at that of the next router ({meaning})")
            }
            Who::ThisMachine => format!("this machine rejects them itself with ICMP {meaning}"),
            Who::Other => {
                let who = self.icmp.by.map_or("a host on the path".to_owned(), |by| by.to_string());
                format!("{who} rejects with ICMP {meaning}")
            }
        };
        format!("{what}: {how}{}", case.since())
    }

    fn fix(&self, case: &Case) -> String {
        let at = self.icmp.at.ip();
        match self.who() {
            Who::NoHost => format!("check the address, and that the host is up (ip neigh, ping {at})"),
            Who::ThisMachine => "check this host's firewall (nft list ruleset, iptables -L -v)".to_owned(),
            Who::Other => {
                let who = self.icmp.by.map_or("a host on the path".to_owned(), |by| by.to_string());
                let its = if self.icmp.by == Some(at) { "the target's host" } else { who.as_str() };
                // A firewall may block all dials, or those beyond some number.
                let perhaps = match case.since().is_empty() {
                    true => {
                        "a rule against this port or this source, or a limit on connections or their rate"
                    }
                    false => {
                        "perhaps a limit on connections (ct count, connlimit) or on their rate (limit rate)"
                    }
                };
                match self.is_decided() {
                    true => format!("check the firewall of {its}: {perhaps}"),
                    false => format!(
                        "check {its}: its routes, and that it can reach the target's host (ip route get, ip neigh)"
                    ),
                }
            }
        }
    }
}
