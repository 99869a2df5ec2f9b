//! Changes of this machine that mend a finding. All of them end with the next boot.

use plan::Network;
use std::fmt;
use std::net::IpAddr;

/// One change. Prints as the command line that does it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repair {
    /// A kernel setting, `net.core.somaxconn`, gets this value.
    Setting {
        /// Its name, with dots.
        name: String,
        /// The new value; several numbers with one blank between them.
        value: String,
    },
    /// A device gets one more address.
    Address {
        /// Which.
        address: IpAddr,
        /// `lo`, `eth0`.
        device: String,
    },
    /// All of a network becomes local (AnyIP): for so many addresses that a device should not list them.
    Route(Network),
}

impl Repair {
    /// The words for ip(8) that make the change; `None` where it is none of addresses.
    pub(crate) fn ip(&self) -> Option<Vec<String>> {
        self.ip_words("add")
    }

    /// The words for ip(8) that take it back.
    pub(crate) fn ip_undo(&self) -> Option<Vec<String>> {
        self.ip_words("del")
    }

    fn ip_words(&self, verb: &str) -> Option<Vec<String>> {
        let words = match self {
            Repair::Setting { .. } => return None,
            Repair::Address { address: IpAddr::V4(address), device } => {
                format!("addr {verb} {address}/32 dev {device}")
            }
            // Without the search for duplicates the address may be used at once (RFC 4862, 5.4).
            Repair::Address { address: IpAddr::V6(address), device } if verb == "add" => {
                format!("addr add {address}/128 dev {device} nodad")
            }
            Repair::Address { address, device } => format!("addr {verb} {address}/128 dev {device}"),
            Repair::Route(network) => format!("route {verb} local {network} dev lo"),
        };
        Some(words.split(' ').map(str::to_owned).collect())
    }
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Repair::Setting { name, value } if value.contains(' ') => write!(f, "sysctl -w {name}='{value}'"),
            Repair::Setting { name, value } => write!(f, "sysctl -w {name}={value}"),
            _ => write!(f, "ip {}", self.ip().unwrap_or_default().join(" ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repair_reads_as_its_command() {
        let address = |text: &str, device: &str| Repair::Address {
            address: text.parse().unwrap(),
            device: device.to_owned(),
        };
        let setting = |value: &str| Repair::Setting { name: "net.ipv4.tcp_mem".into(), value: value.into() };
        let route = |text: &str| Repair::Route(Network::parse(text).unwrap());
        for (repair, expected) in [
            (setting("5"), "sysctl -w net.ipv4.tcp_mem=5"),
            (setting("5 6 7"), "sysctl -w net.ipv4.tcp_mem='5 6 7'"),
            (address("10.77.0.1", "lo"), "ip addr add 10.77.0.1/32 dev lo"),
            (address("fd00::1", "eth0"), "ip addr add fd00::1/128 dev eth0 nodad"),
            (route("10.9.0.0/16"), "ip route add local 10.9.0.0/16 dev lo"),
        ] {
            assert_eq!(repair.to_string(), expected);
        }
        let undo = |repair: Repair| repair.ip_undo().unwrap().join(" ");
        assert_eq!(undo(address("10.77.0.1", "lo")), "addr del 10.77.0.1/32 dev lo");
        assert_eq!(undo(address("fd00::1", "eth0")), "addr del fd00::1/128 dev eth0");
        assert_eq!(undo(route("10.9.0.0/16")), "route del local 10.9.0.0/16 dev lo");
        assert_eq!(setting("5").ip(), None);
    }
}
