//! Changes of this machine that fix a finding. All of them end with the next boot.

use plan::Network;
use std::fmt;
use std::net::IpAddr;

/// A change. Displays as the command line that makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repair {
    /// Set a kernel setting, such as `net.core.somaxconn`.
    Setting {
        /// Its name, with dots.
        name: String,
        /// The new value; several numbers are separated by one blank.
        value: String,
    },
    /// Add an address to a device.
    Address {
        /// The address.
        address: IpAddr,
        /// The device: `lo`, `eth0`.
        device: String,
    },
    /// Make a whole network local (AnyIP), where a device would have too many addresses.
    Route(Network),
}

/// All settings that throng may change. The list limits what a user who may run throng as root can do with it.
const SETTINGS: [&str; 13] = [
    "fs.file-max",
    "fs.nr_open",
    "kernel.io_uring_disabled",
    "net.core.somaxconn",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv6.conf.all.forwarding",
    "net.ipv6.ip_nonlocal_bind",
    "net.netfilter.nf_conntrack_max",
];

impl Repair {
    /// A change of a kernel setting in [`SETTINGS`].
    pub(crate) fn setting(name: &str, value: impl ToString) -> Repair {
        assert!(is_setting(name), "{name} is missing in the list of settings that may be changed");
        Repair::Setting { name: name.to_owned(), value: value.to_string() }
    }

    /// Whether this is a change that throng makes: a known setting with numbers, or a device with a valid name.
    pub(crate) fn is_known(&self) -> bool {
        match self {
            Repair::Setting { name, value } => is_setting(name) && is_numbers(value),
            Repair::Address { device, .. } => {
                (1..16).contains(&device.len())
                    && !device.starts_with('-')
                    && device.bytes().all(|b| b.is_ascii_graphic() && b != b'/')
            }
            Repair::Route(_) => true,
        }
    }

    /// The arguments of ip(8) that make the change (`add`) or undo it (`del`); `None` for a setting.
    pub(crate) fn ip(&self, verb: &str) -> Option<Vec<String>> {
        let args = match self {
            Repair::Setting { .. } => return None,
            Repair::Address { address: IpAddr::V4(address), device } => {
                format!("addr {verb} {address}/32 dev {device}")
            }
            // Without duplicate address detection, the address is usable at once (RFC 4862, section 5.4).
            Repair::Address { address: IpAddr::V6(address), device } if verb == "add" => {
                format!("addr add {address}/128 dev {device} nodad")
            }
            Repair::Address { address, device } => format!("addr {verb} {address}/128 dev {device}"),
            Repair::Route(network) => format!("route {verb} local {network} dev lo"),
        };
        Some(args.split(' ').map(str::to_owned).collect())
    }
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Repair::Setting { name, value } if value.contains(' ') => write!(f, "sysctl -w {name}='{value}'"),
            Repair::Setting { name, value } => write!(f, "sysctl -w {name}={value}"),
            _ => write!(f, "ip {}", self.ip("add").unwrap_or_default().join(" ")),
        }
    }
}

/// Settings of a single device that throng may change: the parts before and after its name.
const DEVICE_SETTINGS: [(&str, &str); 2] =
    [("net.ipv4.conf.", ".forwarding"), ("net.ipv6.conf.", ".accept_ra")];

/// Whether this setting may be changed: in the list, or of a device.
fn is_setting(name: &str) -> bool {
    let device = |(before, after)| name.strip_prefix(before)?.strip_suffix(after);
    SETTINGS.contains(&name) || DEVICE_SETTINGS.into_iter().filter_map(device).any(is_device)
}

/// Whether this is the name of a device, without any part of a path.
pub(crate) fn is_device(name: &str) -> bool {
    (1..16).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        && !matches!(name, "all" | "default")
}

/// Whether the text consists of numbers separated by single blanks.
pub(crate) fn is_numbers(text: &str) -> bool {
    text.split(' ').all(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwarding_is_changed_where_a_run_needs_it_only() {
        for (name, expected) in [
            ("net.ipv4.conf.eth0.forwarding", true),
            ("net.ipv4.conf.all.forwarding", false),
            ("net.ipv4.conf.default.forwarding", false),
            ("net.ipv4.conf.eth0.100.forwarding", false),
            ("net.ipv4.conf../x.forwarding", false),
            ("net.ipv4.conf..forwarding", false),
            // For IPv6 the kernel ignores which device forwards: all do or none does.
            ("net.ipv6.conf.eth0.forwarding", false),
            ("net.ipv6.conf.all.forwarding", true),
            ("net.ipv6.conf.eth0.accept_ra", true),
            ("net.ipv6.conf.all.accept_ra", false),
            ("net.ipv6.conf.eth0.100.accept_ra", false),
            ("net.ipv4.conf.eth0.rp_filter", false),
        ] {
            assert_eq!(is_setting(name), expected, "{name}");
        }
    }

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
        let undo = |repair: Repair| repair.ip("del").unwrap().join(" ");
        assert_eq!(undo(address("10.77.0.1", "lo")), "addr del 10.77.0.1/32 dev lo");
        assert_eq!(undo(address("fd00::1", "eth0")), "addr del fd00::1/128 dev eth0");
        assert_eq!(undo(route("10.9.0.0/16")), "route del local 10.9.0.0/16 dev lo");
        assert_eq!(setting("5").ip("add"), None);
    }
}
