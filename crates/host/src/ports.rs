//! The local ports that may be used for dialling, as far as this machine limits them, and its listeners.

use crate::Root;
use plan::PortFacts;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::IpAddr;

/// Reads the port settings of this network namespace (kernel document `networking/ip-sysctl`).
pub fn port_facts(root: &Root, listeners: &[Listener]) -> PortFacts {
    let mut listening: Vec<u16> = listeners.iter().map(|l| l.port).collect();
    listening.sort_unstable();
    listening.dedup();
    let reserved = root.read("proc/sys/net/ipv4/ip_local_reserved_ports").unwrap_or_default();
    PortFacts {
        local_range: local_range(root).unwrap_or((32768, 60999)),
        reserved: reserved.trim().split(',').filter_map(parse_span).collect(),
        listening,
    }
}

/// `net.ipv4.ip_local_port_range`: first and last port.
pub(crate) fn local_range(root: &Root) -> Option<(u16, u16)> {
    let range = root.setting("net.ipv4.ip_local_port_range").ok()?;
    let (first, last) = range.split_once(' ')?;
    Some((first.parse().ok()?, last.parse().ok()?))
}

/// A port or a range: `8080` or `9148-9200`.
fn parse_span(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some((first.parse().ok()?, last.parse().ok()?))
}

/// A listening TCP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Its address; unspecified: all addresses.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
    /// It listens at all IPv6 addresses but does not accept IPv4, as far as known.
    pub is_only_ipv6: bool,
    /// The inode in `/proc/PID/fd`: `socket:[inode]`.
    pub inode: u64,
    /// Maximum length of its accept queue; `None`: unknown.
    pub backlog: Option<u64>,
    /// Connections in its accept queue now; `None`: unknown.
    pub waiting: Option<u64>,
    /// SYNs and final ACKs of handshakes that it has dropped so far, usually because its queue was full; `None`: unknown.
    pub dropped: Option<u64>,
}

/// All listeners of this network namespace, IPv4 and IPv6, from `/proc/net`, without backlogs and without the distinction whether an IPv6
/// listener accepts IPv4. Slow: the kernel walks all sockets of the machine, which takes seconds with millions.
pub fn listeners(root: &Root) -> Vec<Listener> {
    ["proc/net/tcp", "proc/net/tcp6"].into_iter().flat_map(|file| listeners_in(root, file)).collect()
}

/// Reads the listeners of one file. The kernel lists listening sockets first, and then possibly millions of others: reading ends at the
/// first of those (kernel document `networking/proc_net_tcp`).
fn listeners_in(root: &Root, file: &str) -> Vec<Listener> {
    let Ok(file) = File::open(root.path(file)) else { return Vec::new() };
    let rows = BufReader::new(file).lines().map_while(Result::ok);
    rows.skip(1).map_while(|row| parse_listener(&row)).collect()
}

/// Parses a row: `0: 00000000:07E8 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1077 …`. State 0A is LISTEN; `None` for
/// other states.
fn parse_listener(row: &str) -> Option<Listener> {
    const LISTEN: &str = "0A";
    let mut fields = row.split_whitespace();
    let (address, port) = fields.nth(1)?.rsplit_once(':')?;
    if fields.nth(1)? != LISTEN {
        return None;
    }
    Some(Listener {
        address: parse_address(address)?,
        port: u16::from_str_radix(port, 16).ok()?,
        is_only_ipv6: false,
        inode: fields.nth(5)?.parse().ok()?,
        backlog: None,
        waiting: None,
        dropped: None,
    })
}

/// An address in 32-bit words in the machine's byte order, in hexadecimal: `0100007F` is 127.0.0.1 on little endian.
fn parse_address(text: &str) -> Option<IpAddr> {
    let word = |at: usize| Some(u32::from_str_radix(text.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    match text.len() {
        8 => Some(IpAddr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?].concat();
            // An IPv4 address bound through an IPv6 socket is listened on as IPv4.
            Some(IpAddr::from(<[u8; 16]>::try_from(words).ok()?).to_canonical())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Machine;

    const TCP: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1077 1 x 100 0 0 10 0
   1: 0100007F:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000    33        0 1078 1 x 100 0 0 10 0
   2: 0100007F:1F90 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 1079 1 x 20 4 30 10 -1
   3: 0100007F:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1080 1 x 100 0 0 10 0
";
    const TCP6: &str = "\
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 2001 1 x 100 0 0 10 0
   1: 00000000000000000000000001000000:22B8 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 2002 1 x 100 0 0 10 0
";

    fn check(files: &[(&str, &str)], local_range: (u16, u16), reserved: &[(u16, u16)], listening: &[u16]) {
        let machine = Machine::with(files);
        let expected = PortFacts { local_range, reserved: reserved.to_vec(), listening: listening.to_vec() };
        let root = machine.root();
        assert_eq!(port_facts(&root, &listeners(&root)), expected, "{files:?}");
    }

    #[test]
    fn facts_come_from_four_files() {
        let range = ("proc/sys/net/ipv4/ip_local_port_range", "1024\t65000\n");
        let reserved = ("proc/sys/net/ipv4/ip_local_reserved_ports", "8080,9148-9200\n");
        check(&[], (32768, 60999), &[], &[]);
        check(&[range], (1024, 65000), &[], &[]);
        check(&[reserved], (32768, 60999), &[(8080, 8080), (9148, 9200)], &[]);
        check(&[("proc/sys/net/ipv4/ip_local_reserved_ports", "\n")], (32768, 60999), &[], &[]);
        // Row 3 follows a connection, where the kernel never puts a listener; it is not read.
        check(&[("proc/net/tcp", TCP)], (32768, 60999), &[], &[80, 8080]);
        check(
            &[range, reserved, ("proc/net/tcp", TCP), ("proc/net/tcp6", TCP6)],
            (1024, 65000),
            &[(8080, 8080), (9148, 9200)],
            &[80, 8080, 8888],
        );
        check(&[("proc/net/tcp6", TCP6)], (32768, 60999), &[], &[8080, 8888]);
        check(&[("proc/net/tcp", "header only\n")], (32768, 60999), &[], &[]);
        check(&[("proc/net/tcp", "header\nnonsense\n")], (32768, 60999), &[], &[]);
    }

    #[test]
    fn a_listener_of_this_process_is_seen() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = listeners(&Root::real());
        assert!(
            seen.iter().any(|l| (l.address, l.port) == (address.ip(), address.port())),
            "{address}: {seen:?}"
        );
    }

    #[test]
    fn addresses_are_read_in_the_byte_order_of_the_machine() {
        let host = |bytes: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(bytes));
        assert_eq!(parse_address(&host([192, 0, 2, 7])), Some("192.0.2.7".parse().unwrap()));
        let six = [[0x20, 1, 0x0d, 0xb8], [0; 4], [0; 4], [0, 0, 0, 9]].map(host).concat();
        assert_eq!(parse_address(&six), Some("2001:db8::9".parse().unwrap()));
        for wrong in ["", "0100007", "0100007G", "é100007"] {
            assert_eq!(parse_address(wrong), None, "{wrong}");
        }
    }
}
