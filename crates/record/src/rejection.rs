//! The ICMP message that rejects dials.

use std::net::{IpAddr, SocketAddr};

use samples::RejectionSeen;
use serde::{Deserialize, Serialize};

/// An ICMP message in reply to a dial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection {
    /// The sender; `None` if the kernel does not report it.
    pub by: Option<IpAddr>,
    /// Whether it is ICMPv6.
    pub is_v6: bool,
    /// ICMP type.
    pub kind: u8,
    /// ICMP code.
    pub code: u8,
    /// The address that was dialled.
    pub at: SocketAddr,
    /// This machine itself sent it.
    pub is_ours: bool,
}

impl Rejection {
    /// The rejection as it appears in the summary.
    pub fn for_summary(self) -> RejectionSeen {
        RejectionSeen {
            at: self.at.to_string(),
            by: self.by.map(|by| by.to_string()),
            own: self.is_ours,
            message: self.meaning().to_owned(),
            icmp_type: self.kind,
            icmp_code: self.code,
            icmp6: self.is_v6,
        }
    }

    /// The meaning of the message (RFC 792 and RFC 1812, section 5.2.7; RFC 4443, section 3).
    pub const fn meaning(&self) -> &'static str {
        match (self.is_v6, self.kind, self.code) {
            (false, 3, 0) | (true, 1, 0) => "network unreachable",
            (false, 3, 1) | (true, 1, 3) => "host unreachable",
            (false, 3, 2) => "protocol unreachable",
            (false, 3, 3) | (true, 1, 4) => "port unreachable",
            (false, 3, 6) => "network unknown",
            (false, 3, 7) => "host unknown",
            (false, 3, 9) => "network administratively prohibited",
            (false, 3, 10) => "host administratively prohibited",
            (false, 3, 13) | (true, 1, 1) => "administratively prohibited",
            (true, 1, 5) => "source address not permitted",
            (true, 1, 6) => "route rejected",
            (false, 11, _) | (true, 3, _) => "time exceeded",
            (false, 12, _) | (true, 4, _) => "parameter problem",
            (false, 3, _) | (true, 1, _) => "destination unreachable",
            _ => "another message",
        }
    }

    /// Whether a policy prohibits the connection, as opposed to a missing route.
    pub const fn is_prohibition(&self) -> bool {
        matches!((self.is_v6, self.kind, self.code), (false, 3, 9 | 10 | 13) | (true, 1, 1 | 5 | 6))
    }

    /// Whether it is "port unreachable". For TCP a closed port sends a reset, so this is the default reply of a firewall's reject rule.
    pub const fn is_port_unreachable(&self) -> bool {
        matches!((self.is_v6, self.kind, self.code), (false, 3, 3) | (true, 1, 4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn firewall_messages_are_distinguished_from_network_messages() {
        let check = |is_v6, kind, code, expected: (bool, bool)| {
            let icmp =
                Rejection { by: None, is_v6, kind, code, at: ([10, 9, 0, 1], 80).into(), is_ours: false };
            assert_eq!((icmp.is_prohibition(), icmp.is_port_unreachable()), expected, "{icmp:?}");
        };
        check(false, 3, 13, (true, false));
        check(false, 3, 10, (true, false));
        check(true, 1, 1, (true, false));
        check(false, 3, 3, (false, true));
        check(true, 1, 4, (false, true));
        check(false, 3, 1, (false, false));
        check(false, 11, 0, (false, false));
        check(true, 3, 1, (false, false));
        let prohibited = Rejection {
            by: None,
            is_v6: false,
            kind: 3,
            code: 13,
            at: ([10, 9, 0, 1], 80).into(),
            is_ours: false,
        };
        assert_eq!(prohibited.meaning(), "administratively prohibited");
    }
}
