//! The kernel's own counters of what TCP does on this machine.

use crate::Root;
use crate::root::unexpected;
use std::io;

/// TCP sockets of this network namespace now, from `/proc/net/sockstat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SockStat {
    /// Sockets in use; a connection within the namespace has two.
    pub tcp_inuse: u64,
    /// Connections in TIME_WAIT.
    pub tcp_tw: u64,
    /// Memory that socket buffers of the whole machine hold, in pages; the limit is `tcp_mem`.
    pub tcp_mem_pages: u64,
}

/// Reads `/proc/net/sockstat`.
///
/// # Errors
/// The file cannot be read, or has no `TCP` line.
pub fn sock_stat(root: &Root) -> io::Result<SockStat> {
    const FILE: &str = "proc/net/sockstat";
    let text = root.read(FILE)?;
    let line =
        text.lines().find_map(|line| line.strip_prefix("TCP:")).ok_or_else(|| unexpected(FILE, "TCP:"))?;
    let value = |name: &str| {
        let mut fields = line.split_whitespace().skip_while(|field| *field != name).skip(1);
        fields.next().and_then(|value| value.parse().ok()).unwrap_or(0)
    };
    Ok(SockStat { tcp_inuse: value("inuse"), tcp_tw: value("tw"), tcp_mem_pages: value("mem") })
}

/// TCP events since this network namespace began; a counter that the kernel does not have is zero. Take
/// the difference of two looks with [`NetCounters::since`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetCounters {
    /// Dials that failed: refused, or reset while opening (`AttemptFails`, RFC 4022).
    pub attempt_fails: u64,
    /// Open connections that were reset (`EstabResets`).
    pub estab_resets: u64,
    /// Segments sent again (`RetransSegs`).
    pub retrans_segs: u64,
    /// First and later SYNs, or their answers, sent again (`TCPSynRetrans`): nobody answered in time.
    pub syn_retrans: u64,
    /// Retransmission timers that fired (`TCPTimeouts`).
    pub tcp_timeouts: u64,
    /// Connections that found a listener's accept queue full (`ListenOverflows`).
    pub listen_overflows: u64,
    /// Connections that a listener dropped for any reason (`ListenDrops`).
    pub listen_drops: u64,
    /// SYNs dropped because the queue of half-open connections was full (`TCPReqQFullDrop`).
    pub syn_queue_drops: u64,
    /// Connections ended because socket memory ran out (`TCPAbortOnMemory`).
    pub abort_on_memory: u64,
    /// Times that socket memory came under pressure (`TCPMemoryPressures`).
    pub memory_pressures: u64,
    /// Connections that skipped TIME_WAIT because `tcp_max_tw_buckets` was reached (`TCPTimeWaitOverflow`).
    pub time_wait_overflow: u64,
}

/// Reads `/proc/net/snmp` and `/proc/net/netstat` (kernel document `networking/snmp_counter`).
///
/// # Errors
/// A file cannot be read, or lacks the `Tcp` or `TcpExt` rows.
pub fn net_counters(root: &Root) -> io::Result<NetCounters> {
    let snmp = root.read("proc/net/snmp")?;
    let netstat = root.read("proc/net/netstat")?;
    let tcp = Group::new(&snmp, "Tcp:").ok_or_else(|| unexpected("proc/net/snmp", "Tcp:"))?;
    let ext = Group::new(&netstat, "TcpExt:").ok_or_else(|| unexpected("proc/net/netstat", "TcpExt:"))?;
    Ok(NetCounters {
        attempt_fails: tcp.value("AttemptFails"),
        estab_resets: tcp.value("EstabResets"),
        retrans_segs: tcp.value("RetransSegs"),
        syn_retrans: ext.value("TCPSynRetrans"),
        tcp_timeouts: ext.value("TCPTimeouts"),
        listen_overflows: ext.value("ListenOverflows"),
        listen_drops: ext.value("ListenDrops"),
        syn_queue_drops: ext.value("TCPReqQFullDrop"),
        abort_on_memory: ext.value("TCPAbortOnMemory"),
        memory_pressures: ext.value("TCPMemoryPressures"),
        time_wait_overflow: ext.value("TCPTimeWaitOverflow"),
    })
}

impl NetCounters {
    /// What happened from `earlier` to `self`; zero where a counter went backwards.
    pub fn since(&self, earlier: &NetCounters) -> NetCounters {
        NetCounters {
            attempt_fails: self.attempt_fails.saturating_sub(earlier.attempt_fails),
            estab_resets: self.estab_resets.saturating_sub(earlier.estab_resets),
            retrans_segs: self.retrans_segs.saturating_sub(earlier.retrans_segs),
            syn_retrans: self.syn_retrans.saturating_sub(earlier.syn_retrans),
            tcp_timeouts: self.tcp_timeouts.saturating_sub(earlier.tcp_timeouts),
            listen_overflows: self.listen_overflows.saturating_sub(earlier.listen_overflows),
            listen_drops: self.listen_drops.saturating_sub(earlier.listen_drops),
            syn_queue_drops: self.syn_queue_drops.saturating_sub(earlier.syn_queue_drops),
            abort_on_memory: self.abort_on_memory.saturating_sub(earlier.abort_on_memory),
            memory_pressures: self.memory_pressures.saturating_sub(earlier.memory_pressures),
            time_wait_overflow: self.time_wait_overflow.saturating_sub(earlier.time_wait_overflow),
        }
    }
}

/// A pair of lines, names and values in the same order: `Tcp: A B` over `Tcp: 1 2`.
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

    fn check_sockets(text: &str, expected: Option<(u64, u64, u64)>) {
        let machine = Machine::with(&[("proc/net/sockstat", text)]);
        let found = sock_stat(&machine.root()).ok().map(|s| (s.tcp_inuse, s.tcp_tw, s.tcp_mem_pages));
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn sockets_come_from_the_tcp_line() {
        let text =
            "sockets: used 11\nTCP: inuse 2000012 orphan 3 tw 7 alloc 2000020 mem 22\nUDP: inuse 5 mem 6\n";
        check_sockets(text, Some((2_000_012, 7, 22)));
        check_sockets("TCP: inuse 4\n", Some((4, 0, 0)));
        check_sockets("UDP: inuse 5 mem 6\n", None);
        check_sockets("", None);
    }

    const SNMP: &str = "Ip: Forwarding\nIp: 2\n\
        Tcp: MaxConn ActiveOpens AttemptFails EstabResets RetransSegs\nTcp: -1 19 4 5 6\n";
    const NETSTAT: &str = "TcpExt: ListenOverflows TCPSynRetrans TCPTimeouts ListenDrops TCPReqQFullDrop \
        TCPAbortOnMemory TCPMemoryPressures TCPTimeWaitOverflow\nTcpExt: 1 2 3 7 8 9 10 11\n\
        IpExt: InOctets\nIpExt: 12\n";

    fn check_counters(snmp: &str, netstat: &str, expected: Result<NetCounters, io::ErrorKind>) {
        let machine = Machine::with(&[("proc/net/snmp", snmp), ("proc/net/netstat", netstat)]);
        assert_eq!(net_counters(&machine.root()).map_err(|e| e.kind()), expected);
    }

    #[test]
    fn counters_are_found_by_name() {
        let all = NetCounters {
            attempt_fails: 4,
            estab_resets: 5,
            retrans_segs: 6,
            syn_retrans: 2,
            tcp_timeouts: 3,
            listen_overflows: 1,
            listen_drops: 7,
            syn_queue_drops: 8,
            abort_on_memory: 9,
            memory_pressures: 10,
            time_wait_overflow: 11,
        };
        check_counters(SNMP, NETSTAT, Ok(all));
        // An older kernel has fewer.
        let few = NetCounters { attempt_fails: 4, listen_drops: 7, ..NetCounters::default() };
        check_counters("Tcp: AttemptFails\nTcp: 4\n", "TcpExt: ListenDrops\nTcpExt: 7\n", Ok(few));
        check_counters("Tcp: AttemptFails\n", NETSTAT, Err(io::ErrorKind::InvalidData));
        check_counters(SNMP, "IpExt: A\nIpExt: 1\n", Err(io::ErrorKind::InvalidData));

        let gone = all.since(&few);
        assert_eq!(gone, NetCounters { attempt_fails: 0, listen_drops: 0, ..all });
        assert_eq!(few.since(&all), NetCounters::default());
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
