//! IPv4 routes in all tables, from `proc/net/fib_trie`. `proc/net/route` has only the table main, whereas `proc/net/ipv6_route` has all
//! tables.

use std::net::Ipv4Addr;

use super::{EVERYWHERE, Network};
use crate::Root;

/// The text of `proc/net/fib_trie`; empty if it cannot be read.
pub(super) fn read(root: &Root) -> String {
    root.read("proc/net/fib_trie").unwrap_or_default()
}

/// Networks that are local to this machine.
pub(super) fn local(text: &str) -> impl Iterator<Item = Network> {
    let is_local = |row: &Row<'_>| row.kind.split_whitespace().any(|word| word == "LOCAL");
    rows(text).into_iter().filter(is_local).map(|row| row.network)
}

/// Networks that are reached without a router by tables other than main, with the number of the table.
pub(super) fn connected_by_tables(text: &str) -> Vec<(u32, Network)> {
    let is_connected =
        |row: &Row<'_>| row.kind.starts_with("link UNICAST") && row.network.length > EVERYWHERE;
    let connected = rows(text).into_iter().filter(is_connected);
    connected.filter_map(|row| Some((row.table?, row.network))).collect()
}

/// A route.
struct Row<'a> {
    /// The number of its table; `None` for the tables main and local.
    table: Option<u32>,
    network: Network,
    /// Scope and type: `host LOCAL`, `link UNICAST`, `universe UNICAST` (via a router).
    kind: &'a str,
}

/// Parses the text. A leaf `|-- 192.0.2.2` is followed by its prefixes, one per line: `/32 host LOCAL`. A table begins with `Main:`,
/// `Local:` or `Id 100:`; the number is signed.
fn rows(text: &str) -> Vec<Row<'_>> {
    let (mut rows, mut table) = (Vec::new(), None);
    let mut leaf: Option<Ipv4Addr> = None;
    for line in text.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            leaf = address.parse().ok();
        } else if let Some((length, kind)) = line.strip_prefix('/').and_then(|rest| rest.split_once(' ')) {
            let length = length.parse().ok().filter(|length| *length <= 32);
            let network = leaf.zip(length).map(|(base, length)| Network { base: base.into(), length });
            rows.extend(network.map(|network| Row { table, network, kind }));
        } else {
            leaf = None;
            if let Some(name) = line.strip_suffix(':') {
                let number = name.strip_prefix("Id ").and_then(|number| number.parse().ok());
                table = number.map(i32::cast_unsigned);
            }
        }
    }
    rows
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Tables for policy routing, which the kernel lists before main; the number of the second one is 4,000,000,000.
    pub(in crate::addresses) const TABLES: &str = "\
Id 100:
  +-- 0.0.0.0/4 2 0 2
     |-- 0.0.0.0
        /0 link UNICAST
     |-- 10.88.0.0
        /24 link UNICAST
        /32 link BROADCAST
Id -294967296:
  +-- 10.98.0.0/15 2 0 2
     |-- 10.98.0.0
        /16 link UNICAST tos=8
     |-- 10.99.0.0
        /16 universe UNICAST
";
    const MAIN: &str = "\
Main:
  |-- 10.1.0.0
     /24 link UNICAST
Local:
  |-- 10.1.0.1
     /32 host LOCAL
";

    /// Networks connected by main are named by their device, from another file.
    #[test]
    fn tables_other_than_main_and_local_have_their_numbers() {
        let rows = format!("{TABLES}{MAIN}");
        let found: Vec<(u32, String)> =
            connected_by_tables(&rows).iter().map(|(table, network)| (*table, network.to_string())).collect();
        assert_eq!(found, [(100, "10.88.0.0/24".to_owned()), (4_000_000_000, "10.98.0.0/16".to_owned())]);
        assert!(connected_by_tables(MAIN).is_empty());
        let local: Vec<String> = local(&rows).map(|network| network.to_string()).collect();
        assert_eq!(local, ["10.1.0.1"]);
    }
}
