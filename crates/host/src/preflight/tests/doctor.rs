//! What doctor shows in addition to a run's warnings: sufficient limits, unreadable ones, the target's side, and what it can fix.

use super::*;
use crate::{Listener, addresses::foreign};
use plan::Http2Requests;
use proptest::prelude::*;

/// The line of the limit `what`, as `ok …`, `warn …`, `no …` or `? …`.
pub(super) fn line(changes: &[(&str, &str)], need: &Need, what: &str) -> String {
    let machine = Machine::with(&ROOMY);
    changes.iter().for_each(|(path, text)| machine.write(path, text));
    line_of(&machine, need, what)
}

pub(super) fn line_of(machine: &Machine, need: &Need, what: &str) -> String {
    let found = examine(&machine.root(), need);
    let lines: Vec<String> = found.iter().filter(|f| f.what == what).map(mark).collect();
    assert!(lines.len() <= 1, "{what} once: {lines:?}");
    lines.concat()
}

fn mark(finding: &Finding) -> String {
    let mark = match finding.severity {
        Severity::Refuse => "no",
        Severity::Warn => "warn",
        Severity::Fine => "ok",
        Severity::Unknown => "?",
    };
    assert_eq!(finding.fix.is_empty(), !finding.is_trouble(), "trouble has a fix: {finding:?}");
    format!("{mark} {finding}")
}

pub(super) fn here(connections: u64) -> Need {
    Need { both_ends_here: true, device: "lo".into(), ..need(connections) }
}

#[test]
fn sufficient_limits_are_shown_too() {
    let check = |what, expected: &str| assert_eq!(line(&[], &need(1_000), what), expected);
    check("sources", "ok sources: 1 address, automatic");
    check("memory", "ok memory: 23.3 GiB available, 4.3 MiB needed (4,528 bytes per connection)");
    check("file table", "ok file table: 2,465,780 free on this machine, 1,032 needed");
    check("open files", "ok open files: 20,000 allowed, 34 needed");
    check("open files ceiling", "ok open files ceiling: 1,048,576 at most, 34 needed");
    check("io_uring", "ok io_uring: allowed");
    check("tcp memory", "ok tcp memory: 575,802 pages free, 63 needed if one socket in 16 is busy");
    check("conntrack", "ok conntrack: not loaded");
    check("time wait", "ok time wait: 1,048,576 allowed, 1,000 if all close at once");
    check("connection hash", "ok connection hash: 262,144 buckets, 1,000 sockets with chains of at most 5");
    let passed = line(&[], &need(1_000_000), "open files");
    assert_eq!(passed, "ok open files: 20,000 allowed, 132 needed, exceeded with 50 tables of io_uring");
}

#[test]
fn hidden_processes_are_not_judged() {
    let machine = Machine::with(&[]);
    let listener = Listener { backlog: None, ..listening(0) };
    let found = examine(&machine.root(), &Need { listeners: vec![listener], ..here(1_000_000_000) });
    let unknown: Vec<&str> =
        found.iter().filter(|f| f.severity == Severity::Unknown).map(|f| f.what).collect();
    let expected = [
        "local port range",
        "memory",
        "file table",
        "open files",
        "cores",
        "tcp memory",
        "receive buffer",
        "send buffer",
        "accept queue",
        "half-open queue",
        "time wait",
        "connection hash",
        "target's open files",
        "target's backlog",
    ];
    assert_eq!(unknown, expected);
    assert!(found.iter().all(|f| !f.is_trouble() && f.repairs.is_empty()), "{found:?}");
}

#[test]
fn time_wait_takes_tuples_for_a_while() {
    let with = |tuples| Need { tuples, ..need(1_000) };
    let waiting = [("proc/net/sockstat", "TCP: inuse 4 orphan 0 tw 500 alloc 4 mem 0\n")];
    let value = |tuples: &str| format!("{tuples} free 4-tuples, up to 500 in TIME_WAIT");
    let fits = format!("ok ports: {}, 1,000 needed", value("1,500"));
    assert_eq!(line(&waiting, &with(1_500), "ports"), fits);
    let few = format!("warn ports: {}, 1,000 needed: sleep 60  # TIME_WAIT lasts this long", value("1,499"));
    assert_eq!(line(&waiting, &with(1_499), "ports"), few);
    assert!(line(&waiting, &with(999), "ports").starts_with("no ports: "));
    let machine = Machine::with(&waiting);
    let found = capacity(&machine.root(), &with(1_499));
    assert_eq!((found.connections, found.limited_by), (999, "ports"));
    // Warnings do not limit the capacity.
    let found = capacity_after_time_wait(&machine.root(), &with(1_499));
    assert_eq!((found.connections, found.limited_by), (1_499, "ports"));
}

#[test]
fn other_programs_need_ports_too() {
    let check = |range, expected| {
        assert_eq!(
            line(&[("proc/sys/net/ipv4/ip_local_port_range", range)], &need(1), "local port range"),
            expected
        );
    };
    check("32768\t60999\n", "ok local port range: 32768 to 60999: 28,232 ports, 2,000 for other programs");
    check("40000\t41999\n", "ok local port range: 40000 to 41999: 2,000 ports, 2,000 for other programs");
    check(
        "40000\t41998\n",
        "warn local port range: 40000 to 41998: 1,999 ports, 2,000 for other programs: \
         sysctl -w net.ipv4.ip_local_port_range='32768 60999'",
    );
}

#[test]
fn queues_take_the_dials_of_a_shard() {
    let queue = |most| [("proc/sys/net/core/somaxconn", most)];
    let check = |most, need: &Need, expected: &str| {
        assert_eq!(line(&queue(most), need, "accept queue"), expected);
    };
    let fits = "ok accept queue: at most 16 waiting, up to 16 simultaneous dials";
    check("16\n", &here(16), fits);
    check("1024\n", &here(1_000_000), &fits.replace("16", "1,024"));
    let short = "warn accept queue: at most 16 waiting, up to 17 simultaneous dials";
    check("16\n", &here(17), &format!("{short}: sysctl -w net.core.somaxconn=4096"));
    // Connections dialled at a rate do not wait simultaneously.
    check("16\n", &Need { dials: 16, ..here(600) }, fits);
    // The queue of another machine is not visible.
    check("16\n", &need(17), "");

    let half = |most, cookies| {
        [("proc/sys/net/ipv4/tcp_max_syn_backlog", most), ("proc/sys/net/ipv4/tcp_syncookies", cookies)]
    };
    let check = |changes: &[(&str, &str)], expected: &str| {
        assert_eq!(line(changes, &here(900), "half-open queue"), expected);
    };
    let dials = "up to 900 simultaneous dials";
    let cookies = format!("ok half-open queue: 128 at most, then SYN cookies, {dials}");
    check(&half("128\n", "1\n"), &cookies);
    check(&half("1200\n", "0\n"), &format!("ok half-open queue: 1,200 at most, no SYN cookies, {dials}"));
    let fix = "sysctl -w net.ipv4.tcp_max_syn_backlog=2048";
    let short = format!("warn half-open queue: 1,198 at most, no SYN cookies, {dials}: {fix}");
    check(&half("1198\n", "0\n"), &short);
}

#[test]
fn buffers_begin_with_a_page() {
    let check = |text, expected| {
        assert_eq!(line(&[("proc/sys/net/ipv4/tcp_rmem", text)], &need(1), "receive buffer"), expected);
    };
    check(
        "4096\t4096\t65536\n",
        "ok receive buffer: 4,096 bytes initially, 65,536 at most, 4,096 and 65,536 at least",
    );
    check(
        "8192\t4095\t9000000\n",
        "warn receive buffer: 4,095 bytes initially, 9,000,000 at most, 4,096 and 65,536 at least: \
         sysctl -w net.ipv4.tcp_rmem='8192 131072 9000000'",
    );
    let small = line(&[("proc/sys/net/ipv4/tcp_wmem", "1\t16384\t65535\n")], &need(1), "send buffer");
    assert!(small.ends_with("sysctl -w net.ipv4.tcp_wmem='4096 16384 4194304'"), "{small}");
    check("4096 x 65536\n", "? receive buffer: net.ipv4.tcp_rmem cannot be read, not judged");
}

#[test]
fn tls_and_http2_take_memory_at_each_end() {
    let check = |layers, ends: bool, expected: &str| {
        let need = Need { both_ends_here: ends, layers, ..need(1_000) };
        let found = line(&[], &need, "memory");
        assert_eq!(found.strip_prefix("ok memory: 23.3 GiB available, "), Some(expected));
    };
    let of = |tls, http2| Layers { tls, http2, ..Layers::default() };
    check(of(0.0, 0.0), false, "4.3 MiB needed (4,528 bytes per connection)");
    check(of(1.0, 0.0), false, "4.6 MiB needed (4,784 bytes per connection, TLS 256 of them)");
    check(of(0.0, 1.0), false, "4.6 MiB needed (4,784 bytes per connection, HTTP/2 256 of them)");
    let both = "4.8 MiB needed (5,040 bytes per connection, TLS 256 of them, HTTP/2 256 of them)";
    check(of(1.0, 1.0), false, both);
    let half = "8.9 MiB needed (9,312 bytes per connection, both ends here, TLS 256 of them)";
    check(of(0.5, 0.0), true, half);
    // Only the client's end keeps captures, messages and heartbeats: 300 bytes for three in four connections, and 80 for one in a
    // hundred.
    let kept = Layers { captures: 225.0, messages: 0.8, beats: 48.0, ..Layers::default() };
    let client = "4.6 MiB needed (4,802 bytes per connection, captured values 225 of them, messages of the server 1 of them, heartbeats and PINGs 48 of them)";
    check(kept, false, client);
    let here = "8.9 MiB needed (9,330 bytes per connection, both ends here, captured values 225 of them, messages of the server 1 of them, heartbeats and PINGs 48 of them)";
    check(kept, true, here);
    // They count against memory too.
    let small = [("proc/meminfo", "MemTotal: 100000 kB\nMemAvailable: 45280 kB\n")];
    let fitting = |layers| capacity(&Machine::with(&small).root(), &Need { layers, ..need(1) }).connections;
    assert_eq!((fitting(of(0.0, 0.0)), fitting(of(1.0, 1.0))), (10_240, 45_280 * 1_024 / 5_040));
}

#[test]
fn handshakes_want_processors() {
    let check = |handshakes, ends: bool, threads, expected: &str| {
        let status = [("proc/self/status", "Cpus_allowed_list:\t0-3\n")];
        let layers = Layers { tls: 1.0, handshakes, ..Layers::default() };
        let need = Need { both_ends_here: ends, threads, layers, ..need(100_000) };
        assert_eq!(line(&status, &need, "TLS handshakes"), expected);
    };
    let at = |per_s| Some(Handshakes { count: 100_000, per_s });
    check(None, false, 4, "");
    check(
        at(None),
        false,
        1,
        "ok TLS handshakes: about 6,451/s with 1 processor, 15.5 s of CPU for 100,000 (155 µs of CPU each, full)",
    );
    check(
        at(Some(25_806.0)),
        false,
        4,
        "ok TLS handshakes: about 25,806/s with 4 processors, 25,806/s (155 µs of CPU each, full)",
    );
    check(
        at(Some(25_807.0)),
        false,
        4,
        "warn TLS handshakes: about 25,806/s with 4 processors, 25,807/s (155 µs of CPU each, full): \
        throng run http://192.0.2.9/ -c 100000 --ramp 25806/s  # or fewer arrivals, more processors or more machines",
    );
    check(
        at(Some(20_000.0)),
        true,
        1,
        "warn TLS handshakes: about 12,903/s with 4 processors, both ends here, 20,000/s (310 µs of CPU each, full): \
        throng run http://192.0.2.9/ -c 100000 --ramp 12903/s  # or fewer arrivals, more processors or more machines",
    );
}

#[test]
fn http2_requests_want_processors() {
    let check = |http2_requests, threads, expected: &str| {
        let status = [("proc/self/status", "Cpus_allowed_list:\t0-3\n")];
        let layers = Layers { http2: 1.0, http2_requests, ..Layers::default() };
        let need = Need { threads, layers, ..need(100) };
        assert_eq!(line(&status, &need, "HTTP/2 requests"), expected);
    };
    let at = |streams, per_s| Some(Http2Requests { streams, per_s });
    check(None, 4, "");
    check(
        at(1, None),
        1,
        "ok HTTP/2 requests: about 204,081/s from throng with 1 processor, (4.9 µs of CPU each)",
    );
    check(
        at(10, Some(833_333.0)),
        2,
        "ok HTTP/2 requests: about 833,333/s from throng with 2 processors, 833,333/s (2.4 µs of CPU each)",
    );
    check(
        at(100, Some(2_000_001.0)),
        8,
        "warn HTTP/2 requests: about 2,000,000/s from throng with 4 processors, 2,000,001/s (2 µs of CPU each): \
        lower the rate, raise --streams, or use more processors or machines",
    );
}

#[test]
fn threads_want_a_core_each() {
    let check = |list: &str, threads, expected| {
        let status = format!("Cpus_allowed_list:\t{list}\n");
        let need = Need { threads, ..need(50) };
        assert_eq!(line(&[("proc/self/status", &status)], &need, "cores"), expected, "{list}");
    };
    check("0-3,8", 5, "ok cores: 5 for this process, 5 threads");
    check("3", 1, "ok cores: 1 for this process, 1 thread");
    let few = "warn cores: 2 for this process, 3 threads: throng run http://192.0.2.9/ -c 50 --threads 2";
    check("0-1", 3, few);
    check("x", 1, "? cores: Cpus_allowed_list cannot be read, not judged");
}

/// A control group leaves less than the machine has, in both versions.
#[test]
fn a_control_group_is_the_limit_where_it_is_the_smaller() {
    let of = |groups: &str, limit: &str, usage: &str| {
        let changes = [("proc/self/cgroup", groups), (limit, "45280000\n"), (usage, "0\n")];
        let machine = Machine::with(&ROOMY);
        changes.iter().for_each(|(path, text)| machine.write(path, text));
        let found = capacity(&machine.root(), &need(1));
        assert_eq!((found.connections, found.limited_by), (10_000, "memory"), "{groups}");
        assert!(
            line_of(&machine, &need(10_000), "memory")
                .starts_with("ok memory: 43.2 MiB available in the control group, ")
        );
        let fix = "throng run http://192.0.2.9/ -c 10000  # or raise the group's memory limit";
        assert!(line_of(&machine, &need(10_001), "memory").ends_with(fix));
        machine.write(usage, "45280000\n");
        let none = ": raise the group's memory limit: there is not enough for one connection";
        assert!(line_of(&machine, &need(1), "memory").ends_with(none));
    };
    of("0::/a\n", "sys/fs/cgroup/a/memory.max", "sys/fs/cgroup/a/memory.current");
    let v1 = "sys/fs/cgroup/memory/a/memory.";
    of("4:memory:/a\n", &format!("{v1}limit_in_bytes"), &format!("{v1}usage_in_bytes"));
}

/// A machine on which processes hold the listener with inode 7: number, parent, limit, links.
pub(super) fn with_servers(servers: &[(u32, u32, &str, &[&str])]) -> Machine {
    let machine = Machine::with(&ROOMY);
    for (pid, parent, limit, links) in servers {
        let file = |name: &str| format!("proc/{pid}/{name}");
        machine
            .write(&file("stat"), &format!("{pid} (x) S {parent} 1 1 0 -1 4194304 1 0 0 0 1 5 7 8 20 0\n"));
        machine.write(&file("status"), "Threads:\t1\n");
        machine.write(&file("comm"), "nginx\n");
        machine.write(&file("limits"), &format!("Max open files  {limit}  1048576  files\n"));
        machine.link(&file("fd/0"), "socket:[7]");
        for (fd, link) in links.iter().enumerate() {
            machine.link(&file(&format!("fd/{}", fd + 1)), link);
        }
    }
    machine
}

pub(super) fn listening(backlog: u64) -> Listener {
    Listener {
        address: "0.0.0.0".parse().unwrap(),
        port: 80,
        is_only_ipv6: false,
        inode: 7,
        backlog: Some(backlog),
        waiting: None,
        dropped: None,
    }
}

#[test]
fn the_targets_own_limit_is_seen() {
    let check = |servers: &[(u32, u32, &str, &[&str])], open, expected: &str| {
        // This many are reserved for slow responses, and not expected to be open.
        let need = Need { connections: 2 * open, listeners: vec![listening(128)], ..here(open) };
        let machine = with_servers(servers);
        assert_eq!(line_of(&machine, &need, "target's open files"), expected);
        let fits = target_room(&machine.root(), &need).map(|room| room >= open);
        let shown = [("ok", Some(true)), ("warn", Some(false)), ("?", None)];
        let (_, is_shown_to_fit) = shown.iter().find(|(mark, _)| expected.starts_with(mark)).unwrap();
        assert_eq!(fits, *is_shown_to_fit, "{expected}");
    };
    let one: &[(u32, u32, &str, &[&str])] = &[(9, 1, "1024", &["/dev/null"])];
    check(one, 1_022, "ok target's open files: nginx (9): 1,024 allowed, 2 open, 1,022 needed");
    check(
        one,
        1_023,
        "warn target's open files: nginx (9): 1,024 allowed, 2 open, 1,023 needed: \
         prlimit --pid 9 --nofile=2048",
    );
    let rings: &[(u32, u32, &str, &[&str])] = &[(9, 1, "1024", &["anon_inode:[io_uring]"])];
    check(
        rings,
        1_000_000,
        "ok target's open files: nginx (9): 1,024 allowed, 2 open, exceeded with tables of io_uring, 1,000,000 needed",
    );
    // The listener, and therefore each connection, is in the file tables of threads.
    let machine = with_servers(one);
    std::fs::remove_file(machine.root().path("proc/9/fd/0")).unwrap();
    machine.link("proc/9/task/10/fd/3", "socket:[7]");
    let many = Need { listeners: vec![listening(128)], ..here(1_000_000) };
    assert_eq!(
        line_of(&machine, &many, "target's open files"),
        "ok target's open files: nginx (9): 1,024 allowed, 1 open, exceeded with file tables of its threads, 1,000,000 needed"
    );
    // The master accepts none; its two workers share them.
    let workers: &[(u32, u32, &str, &[&str])] =
        &[(10, 1, "99999", &[]), (11, 10, "1024", &[]), (12, 10, "1024", &[])];
    let value = "target's open files: nginx (11): 1,024 allowed, 1 open, and so on: 2 processes";
    check(workers, 2_046, &format!("ok {value}, 2,046 needed"));
    let fix = "prlimit --pid 11 --nofile=2048 && prlimit --pid 12 --nofile=2048";
    check(workers, 2_047, &format!("warn {value}, 2,047 needed: {fix}"));
    check(&[], 5, "? target's open files: its process belongs to another user; run as root, not judged");

    let nobody = line(&[], &here(5), "target's open files");
    assert_eq!(
        nobody,
        "? target's open files: no listener on this machine: not started yet, or behind address translation (a published container port), not judged"
    );
    assert_eq!(line(&[], &need(5), "target's open files"), "", "another machine");
    assert_eq!(line(&[], &Need { target: None, ..here(5) }, "target's open files"), "", "no target");
}

#[test]
fn missing_sources_are_repaired_by_addresses_or_a_route() {
    let repairs = |sources: &str, changes: &[(&str, &str)]| -> Vec<String> {
        let machine = Machine::with(changes);
        let need = Need { networks: vec![Network::parse(sources).unwrap()], ..need(1) };
        let found = examine(&machine.root(), &need);
        let sources = found.iter().find(|f| f.what == "sources").unwrap();
        assert_eq!(sources.repairs.is_empty(), sources.severity == Severity::Fine, "{sources:?}");
        sources.repairs.iter().map(Repair::to_string).collect()
    };
    assert_eq!(
        repairs("10.77.0.0/30", &[]),
        ["ip addr add 10.77.0.1/32 dev eth0", "ip addr add 10.77.0.2/32 dev eth0"]
    );
    // One of the two already exists.
    let one = ("proc/net/fib_trie", "  |-- 10.77.0.1\n     /32 host LOCAL\n");
    assert_eq!(repairs("10.77.0.0/30", &[one]), ["ip addr add 10.77.0.2/32 dev eth0"]);
    assert_eq!(repairs("10.77.0.0/24", &[]).len(), 254);
    assert_eq!(repairs("10.77.0.0/23", &[]), ["ip route add local 10.77.0.0/23 dev lo"]);
    let bind = ("proc/sys/net/ipv6/ip_nonlocal_bind", "0\n");
    assert_eq!(
        repairs("fd77::/64", &[bind]),
        ["sysctl -w net.ipv6.ip_nonlocal_bind=1", "ip route add local fd77::/64 dev lo"]
    );
    let allowed = ("proc/sys/net/ipv6/ip_nonlocal_bind", "1\n");
    assert_eq!(repairs("fd77::/64", &[allowed]), ["ip route add local fd77::/64 dev lo"]);
    let route = "fd770000000000000000000000000000 40 0 00 0 00000400 00000002 00000000 80000001 lo\n";
    assert_eq!(
        repairs("fd77::/64", &[bind, ("proc/net/ipv6_route", route)]),
        ["sysctl -w net.ipv6.ip_nonlocal_bind=1"]
    );
    assert_eq!(repairs("fd77::/64", &[allowed, ("proc/net/ipv6_route", route)]), Vec::<String>::new());
}

#[test]
fn commands_survive_a_shell() {
    let runs = Need { target: Some("http://127.0.0.{1..3}/".to_owned()), ..need(1) }.run("-c 5");
    assert_eq!(runs, "throng run 'http://127.0.0.{1..3}/' -c 5");
    assert_eq!(Need { target: None, ..need(1) }.run("-c 5"), "throng doctor -c 5");
    assert!(!foreign(&Root::at("/nowhere"), &["10.0.0.1".parse().unwrap()]).is_empty());
}

proptest! {
    /// No repair lowers a limit, on any machine, and afterwards the finding is gone. Two settings are not limits: a switch, and a range
    /// that becomes wider.
    #[test]
    fn repairs_only_ever_raise(
        (connections, ends) in (1u64..40_000_000, any::<bool>()),
        mem in [0u64..900_000, 0u64..900_000, 0u64..900_000],
        buffers in [0u64..9_000_000, 0u64..9_000_000, 0u64..9_000_000],
        few in [0u64..5_000, 0u64..5_000, 0u64..3, 0u64..5_000_000, 0u64..5_000_000, 0u64..5_000_000],
        range in (1u16.., 1u16..),
    ) {
        let triple = |[a, b, c]: [u64; 3]| format!("{a}\t{b}\t{c}\n");
        let range = (range.0.min(range.1), range.0.max(range.1));
        let machine = Machine::with(&ROOMY);
        for (name, text) in [
            ("fs/file-max", few[3].to_string()),
            ("fs/nr_open", few[4].to_string()),
            ("net/ipv4/tcp_mem", triple(mem)),
            ("net/ipv4/tcp_rmem", triple(buffers)),
            ("net/ipv4/tcp_wmem", triple(buffers)),
            ("net/ipv4/tcp_max_syn_backlog", few[1].to_string()),
            ("net/ipv4/tcp_syncookies", few[2].to_string()),
            ("net/ipv4/tcp_max_tw_buckets", few[5].to_string()),
            ("net/ipv4/ip_local_port_range", format!("{} {}", range.0, range.1)),
            ("net/core/somaxconn", few[0].to_string()),
            ("net/netfilter/nf_conntrack_max", few[5].to_string()),
            ("net/netfilter/nf_conntrack_count", few[0].to_string()),
            ("kernel/io_uring_disabled", "2".to_owned()),
        ] {
            machine.write(&format!("proc/sys/{name}"), &text);
        }
        let need = Need { both_ends_here: ends, uring: Err("off".into()), ..need(connections) };
        let root = machine.root();
        for finding in examine(&root, &need) {
            for repair in &finding.repairs {
                let Repair::Setting { name, value } = repair else { panic!("{repair}") };
                let file = format!("proc/sys/{}", name.replace('.', "/"));
                let before = numbers(&root.read(&file).unwrap());
                let after = numbers(value);
                let grows = before.iter().zip(&after).all(|(before, after)| before <= after);
                let wider = before.len() == 2 && after[1] - after[0] > before[1] - before[0];
                prop_assert!(grows && before != after || wider || name == "kernel.io_uring_disabled", "{}", repair);
                machine.write(&file, value);
            }
        }
        let left: Vec<Finding> = examine(&root, &need).into_iter().filter(|f| !f.repairs.is_empty()).collect();
        prop_assert!(left.iter().all(|f| f.what == "io_uring"), "{:?}", left);
    }
}

fn numbers(text: &str) -> Vec<u64> {
    text.split_whitespace().map(|word| word.parse().unwrap()).collect()
}
