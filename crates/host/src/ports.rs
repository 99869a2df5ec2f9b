//! Which ports may be dialled from, as far as this machine decides it.

use crate::Root;
use plan::PortFacts;
use std::fs::File;
use std::io::{BufRead, BufReader};

/// Reads the facts of this network namespace (kernel document `networking/ip-sysctl`).
pub fn port_facts(root: &Root) -> PortFacts {
    let mut listening: Vec<u16> = listeners(root).into_iter().map(|l| l.port).collect();
    listening.sort_unstable();
    listening.dedup();
    let range = root.read("proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let reserved = root.read("proc/sys/net/ipv4/ip_local_reserved_ports").unwrap_or_default();
    PortFacts {
        local_range: parse_range(&range).unwrap_or((32768, 60999)),
        reserved: reserved.trim().split(',').filter_map(parse_span).collect(),
        listening,
    }
}

/// `32768   60999`
fn parse_range(text: &str) -> Option<(u16, u16)> {
    let mut fields = text.split_whitespace();
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// `8080` or `9148-9200`
fn parse_span(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some((first.parse().ok()?, last.parse().ok()?))
}

/// A socket that listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listener {
    pub(crate) port: u16,
    pub(crate) inode: u64,
}

/// All listening TCP sockets of this network namespace, IPv4 and IPv6.
pub(crate) fn listeners(root: &Root) -> Vec<Listener> {
    ["proc/net/tcp", "proc/net/tcp6"].into_iter().flat_map(|file| listeners_in(root, file)).collect()
}

/// The kernel lists listening sockets first and then the others, of which there may be millions: reading
/// ends at the first of those (kernel document `networking/proc_net_tcp`).
fn listeners_in(root: &Root, file: &str) -> Vec<Listener> {
    let Ok(file) = File::open(root.path(file)) else { return Vec::new() };
    let rows = BufReader::new(file).lines().map_while(Result::ok);
    rows.skip(1).map_while(|row| parse_listener(&row)).collect()
}

/// `0: 00000000:07E8 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1077 …`; state 0A is
/// LISTEN; `None` for any other.
fn parse_listener(row: &str) -> Option<Listener> {
    const LISTEN: &str = "0A";
    let mut fields = row.split_whitespace();
    let port = fields.nth(1)?.rsplit_once(':')?.1;
    if fields.nth(1)? != LISTEN {
        return None;
    }
    Some(Listener { port: u16::from_str_radix(port, 16).ok()?, inode: fields.nth(5)?.parse().ok()? })
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
        assert_eq!(port_facts(&machine.root()), expected, "{files:?}");
    }

    #[test]
    fn facts_come_from_four_files() {
        let range = ("proc/sys/net/ipv4/ip_local_port_range", "1024\t65000\n");
        let reserved = ("proc/sys/net/ipv4/ip_local_reserved_ports", "8080,9148-9200\n");
        check(&[], (32768, 60999), &[], &[]);
        check(&[range], (1024, 65000), &[], &[]);
        check(&[reserved], (32768, 60999), &[(8080, 8080), (9148, 9200)], &[]);
        check(&[("proc/sys/net/ipv4/ip_local_reserved_ports", "\n")], (32768, 60999), &[], &[]);
        // Row 3 lies behind a connection: the kernel never writes it there, and nobody reads so far.
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
        let port = listener.local_addr().unwrap().port();
        assert!(port_facts(&Root::real()).listening.contains(&port), "{port}");
    }
}
