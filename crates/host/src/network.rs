//! The kernel's TCP counters.

use crate::Root;
use samples::{NetCounters, SockStat};

/// Reads `/proc/net/sockstat`, and `sockstat6` if it exists: the kernel counts sockets in use by family, and one that listens on `::`
/// serves both families. `None`: the file cannot be read, or has no `TCP` line.
pub(crate) fn sock_stat(root: &Root) -> Option<SockStat> {
    let line: String = root.field("proc/net/sockstat", "TCP:")?;
    let value = |name: &str| {
        let mut fields = line.split_whitespace().skip_while(|field| *field != name).skip(1);
        fields.next().and_then(|value| value.parse().ok()).unwrap_or(0)
    };
    Some(SockStat {
        tcp_inuse: value("inuse") + root.field("proc/net/sockstat6", "TCP6: inuse ").unwrap_or(0),
        tcp_orphans: value("orphan"),
        tcp_tw: value("tw"),
        tcp_mem_pages: value("mem"),
    })
}

/// Reads `/proc/net/snmp` and `/proc/net/netstat` (kernel document `networking/snmp_counter`).
/// `None`: a file cannot be read, or lacks the `Tcp` or `TcpExt` rows.
pub(crate) fn net_counters(root: &Root) -> Option<NetCounters> {
    let snmp = root.read("proc/net/snmp").ok()?;
    let netstat = root.read("proc/net/netstat").ok()?;
    let tcp = Group::new(&snmp, "Tcp:")?;
    let ext = Group::new(&netstat, "TcpExt:")?;
    // One name and value per line; the file does not exist without IPv6.
    let unreachable_of_6: Option<u64> = root.field("proc/net/snmp6", "Icmp6InDestUnreachs");
    Some(NetCounters {
        attempt_fails: tcp.value("AttemptFails"),
        estab_resets: tcp.value("EstabResets"),
        out_resets: tcp.value("OutRsts"),
        retrans_segs: tcp.value("RetransSegs"),
        syn_retrans: ext.value("TCPSynRetrans"),
        tcp_timeouts: ext.value("TCPTimeouts"),
        listen_overflows: ext.value("ListenOverflows"),
        listen_drops: ext.value("ListenDrops"),
        syn_queue_drops: ext.value("TCPReqQFullDrop"),
        syn_cookies: ext.value("TCPReqQFullDoCookies"),
        abort_on_memory: ext.value("TCPAbortOnMemory"),
        memory_pressures: ext.value("TCPMemoryPressures"),
        pruned: ext.value("PruneCalled"),
        time_wait_overflow: ext.value("TCPTimeWaitOverflow"),
        icmp_unreachable: Group::new(&snmp, "Icmp:").map_or(0, |icmp| icmp.value("InDestUnreachs"))
            + unreachable_of_6.unwrap_or(0),
        retrans_fails: ext.value("TCPRetransFail"),
    })
}

/// Packets dropped because the connection tracking table was full, summed over all processors: the column `drop` of
/// `/proc/net/stat/nf_conntrack`, in hexadecimal. `None`: connection tracking is not active.
pub(crate) fn conntrack_drops(root: &Root) -> Option<u64> {
    let text = root.read("proc/net/stat/nf_conntrack").ok()?;
    let mut lines = text.lines();
    let column = lines.next()?.split_whitespace().position(|name| name == "drop")?;
    let drops = lines.filter_map(|line| u64::from_str_radix(line.split_whitespace().nth(column)?, 16).ok());
    Some(drops.sum())
}

/// A pair of lines with names and values in the same order: `Tcp: A B` over `Tcp: 1 2`.
struct Group<'a> {
    names: &'a str,
    values: &'a str,
}

impl<'a> Group<'a> {
    fn new(text: &'a str, prefix: &str) -> Option<Group<'a>> {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(prefix));
        Some(Group { names: lines.next()?, values: lines.next()? })
    }

    fn value(&self, name: &str) -> u64 {
        let place = self.names.split_whitespace().position(|n| n == name);
        place.and_then(|i| self.values.split_whitespace().nth(i)?.parse().ok()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Machine;

    #[test]
    fn sockets_of_both_families_are_in_use() {
        let machine = Machine::with(&[
            ("proc/net/sockstat", "TCP: inuse 3 orphan 1 tw 2 alloc 4 mem 5\n"),
            ("proc/net/sockstat6", "TCP6: inuse 40\nUDP6: inuse 7\n"),
        ]);
        assert_eq!(sock_stat(&machine.root()).unwrap().tcp_inuse, 43);
    }

    #[test]
    fn packets_that_found_no_room_are_counted_over_all_processors() {
        let file = "proc/net/stat/nf_conntrack";
        let machine = Machine::with(&[(
            file,
            "entries  found insert_failed drop early_drop\n1f 0 3 0a 4\n1f 0 2 06 9\n",
        )]);
        assert_eq!(conntrack_drops(&machine.root()), Some(16));
        for text in ["", "entries found\n1 2\n"] {
            assert_eq!(conntrack_drops(&Machine::with(&[(file, text)]).root()), None, "{text}");
        }
        assert_eq!(conntrack_drops(&Machine::with(&[]).root()), None);
    }

    #[test]
    fn messages_of_both_families_are_counted() {
        let machine = Machine::with(&[
            ("proc/net/snmp", SNMP),
            ("proc/net/netstat", NETSTAT),
            ("proc/net/snmp6", "Icmp6InErrors\t0\nIcmp6InDestUnreachs             \t7\n"),
        ]);
        assert_eq!(net_counters(&machine.root()).unwrap().icmp_unreachable, 15 + 7);
    }

    fn check_sockets(text: &str, expected: Option<[u64; 4]>) {
        let machine = Machine::with(&[("proc/net/sockstat", text)]);
        let found =
            sock_stat(&machine.root()).map(|s| [s.tcp_inuse, s.tcp_orphans, s.tcp_tw, s.tcp_mem_pages]);
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn sockets_come_from_the_tcp_line() {
        let text =
            "sockets: used 11\nTCP: inuse 2000012 orphan 3 tw 7 alloc 2000020 mem 22\nUDP: inuse 5 mem 6\n";
        check_sockets(text, Some([2_000_012, 3, 7, 22]));
        check_sockets("TCP: inuse 4\n", Some([4, 0, 0, 0]));
        check_sockets("UDP: inuse 5 mem 6\n", None);
        check_sockets("", None);
    }

    const SNMP: &str = "Ip: Forwarding\nIp: 2\nIcmp: InMsgs InDestUnreachs\nIcmp: 9 15\n\
        Tcp: MaxConn ActiveOpens AttemptFails EstabResets RetransSegs OutRsts\nTcp: -1 19 4 5 6 12\n";
    const NETSTAT: &str = "TcpExt: ListenOverflows TCPSynRetrans TCPTimeouts ListenDrops TCPReqQFullDrop \
        TCPAbortOnMemory TCPMemoryPressures TCPTimeWaitOverflow TCPReqQFullDoCookies PruneCalled TCPRetransFail\n\
        TcpExt: 1 2 3 7 8 9 10 11 13 14 16\n\
        IpExt: InOctets\nIpExt: 12\n";

    fn check_counters(snmp: &str, netstat: &str, expected: Option<NetCounters>) {
        let machine = Machine::with(&[("proc/net/snmp", snmp), ("proc/net/netstat", netstat)]);
        assert_eq!(net_counters(&machine.root()), expected);
    }

    #[test]
    fn counters_are_found_by_name() {
        let all = NetCounters {
            attempt_fails: 4,
            estab_resets: 5,
            out_resets: 12,
            retrans_segs: 6,
            syn_retrans: 2,
            tcp_timeouts: 3,
            listen_overflows: 1,
            listen_drops: 7,
            syn_queue_drops: 8,
            syn_cookies: 13,
            abort_on_memory: 9,
            memory_pressures: 10,
            pruned: 14,
            time_wait_overflow: 11,
            icmp_unreachable: 15,
            retrans_fails: 16,
        };
        check_counters(SNMP, NETSTAT, Some(all));
        // An older kernel has fewer counters.
        let few = NetCounters { attempt_fails: 4, listen_drops: 7, ..NetCounters::default() };
        check_counters("Tcp: AttemptFails\nTcp: 4\n", "TcpExt: ListenDrops\nTcpExt: 7\n", Some(few));
        check_counters("Tcp: AttemptFails\n", NETSTAT, None);
        check_counters(SNMP, "IpExt: A\nIpExt: 1\n", None);
    }

    #[test]
    fn this_machine_counts() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let before = net_counters(&Root::real()).unwrap();
        assert!(sock_stat(&Root::real()).unwrap().tcp_inuse >= 1);
        let address = listener.local_addr().unwrap();
        drop(listener);
        assert!(std::net::TcpStream::connect(address).is_err());
        let after = net_counters(&Root::real()).unwrap();
        assert!(after.since(&before).attempt_fails >= 1, "{before:?} {after:?}");
    }
}
