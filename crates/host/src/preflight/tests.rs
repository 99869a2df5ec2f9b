//! Machines that suffice, and machines that do not.

mod backlog;
mod doctor;

use super::*;
use crate::fake::Machine;
use crate::{Repair, Severity};

/// 24 GB, one table of 20,000 open files, the kernel's defaults for the rest.
const ROOMY: [(&str, &str); 9] = [
    ("proc/meminfo", "MemTotal: 24684100 kB\nMemAvailable: 24430920 kB\n"),
    ("proc/self/limits", "Max open files            20000                20000                files\n"),
    ("proc/self/status", "CapEff:\t0000000000000000\n"),
    ("proc/sys/fs/nr_open", "1048576\n"),
    ("proc/sys/fs/file-max", "2466190\n"),
    ("proc/sys/fs/file-nr", "410\t0\t2466190\n"),
    ("proc/sys/net/ipv4/tcp_mem", "287901\t383870\t575802\n"),
    ("proc/sys/net/ipv4/tcp_max_tw_buckets", "1048576\n"),
    ("proc/sys/net/ipv4/tcp_ehash_entries", "262144\n"),
];

const ADMINISTRATOR: (&str, &str) = ("proc/self/status", "CapEff:\t000001fffeffffff\n");

/// `connections` from one address to one on another machine, with enough ports.
fn need(connections: u64) -> Need {
    Need {
        target: Some("http://192.0.2.9/".to_owned()),
        connections,
        expected: connections,
        dials: connections,
        threads: 1,
        sources: 1,
        networks: Vec::new(),
        device: "eth0".to_owned(),
        destinations: 1,
        addresses: vec!["192.0.2.9".parse().unwrap()],
        is_v4: true,
        both_ends_here: false,
        listeners: Vec::new(),
        tuples: u64::MAX,
        uring: Ok(()),
        layers: Layers::default(),
        is_tun: false,
    }
}

/// The findings of [`ROOMY`] with `changes`, as `refuse …` and `warn …` lines.
fn check(changes: &[(&str, &str)], need: &Need, expected: &[&str]) {
    let machine = Machine::with(&ROOMY);
    for (path, text) in changes {
        machine.write(path, text);
    }
    let line = |f: &Finding| match f.severity {
        Severity::Refuse => format!("refuse {f}"),
        _ => format!("warn {f}"),
    };
    let found: Vec<String> = preflight(&machine.root(), need).iter().map(line).collect();
    assert_eq!(found, expected, "{need:?}");
}

#[test]
fn a_million_with_both_ends_passes_a_limit_of_20_000_files() {
    check(&[], &need(1), &[]);
    check(&[], &Need { both_ends_here: true, ..need(600_000) }, &[]);
    let long_chains = "warn connection hash: 262,144 buckets, 2,000,000 sockets with chains longer than 5: \
        sysctl -w net.ipv4.tcp_child_ehash_entries=524288 && unshare -n  # then run in that new network namespace";
    check(&[], &Need { both_ends_here: true, ..need(1_000_000) }, &[long_chains]);
}

#[test]
fn a_device_has_no_sockets_and_its_own_needs() {
    let able = [ADMINISTRATOR, ("dev/net/tun", "")];
    let tun = |connections| Need { is_tun: true, ..need(connections) };
    let forwards = |on: &'static str| ("proc/sys/net/ipv4/conf/eth0/forwarding", on);
    // No files, rings or ports of this machine.
    let tight = [
        able[0],
        able[1],
        forwards("1"),
        ("proc/sys/fs/file-max", "100\n"),
        ("proc/self/limits", "Max open files  64  64  files\n"),
        ("proc/sys/net/ipv4/ip_local_port_range", "1024 1100\n"),
        ("proc/sys/net/ipv4/tcp_max_tw_buckets", "1\n"),
    ];
    check(&tight, &Need { uring: Err("seccomp".into()), ..tun(1_000_000) }, &[]);
    // 96 bytes for throng's end, and 4,400 for the target's if that is on this machine.
    let small = ("proc/meminfo", "MemTotal: 900000 kB\nMemAvailable: 442188 kB\n");
    let machine = Machine::with(&[&ROOMY[1..], &[able[0], able[1], small]].concat());
    let most = |need: &Need| capacity(&machine.root(), need).connections;
    assert_eq!(most(&tun(1)), 442_188 * 1024 / 96);
    assert_eq!(most(&Need { both_ends_here: true, ..tun(1) }), 442_188 * 1024 / (96 + 4_400));
    let text = "refuse TUN device: not available: modprobe tun  \
        # in a container: docker run --user 0 --device /dev/net/tun --cap-add NET_ADMIN, or --io uring";
    check(&[able[0], forwards("1")], &tun(1), &[text]);
    let text = "refuse TUN device: not available: run the same command with sudo, \
        or setcap cap_net_admin+ep on the binary, in a container --user 0 --cap-add NET_ADMIN; or --io uring";
    check(&[able[1], forwards("1")], &tun(1), &[text]);
    let text = "warn forwarding: off for eth0, and a route back to the sources in the target's network: \
        sysctl -w net.ipv4.conf.eth0.forwarding=1";
    check(&[able[0], able[1], forwards("0")], &tun(1), &[text]);
    a_device_forwards_ipv6(&able);
    // Within this machine nothing is forwarded, and its own addresses cannot be sources.
    let here =
        Need { both_ends_here: true, networks: vec![Network::parse("127.9.0.0/16").unwrap()], ..tun(1) };
    let text = "refuse sources: 127.9.0.0/16 cannot be used: 127.0.0.0/8 is of this machine: \
        omit --sources, or use a network of its own, such as 198.18.0.0/15";
    check(&able, &here, &[text]);
}

/// A network routed to a device is taken away from its other users.
#[test]
fn a_device_has_a_network_of_its_own() {
    let able = [
        ADMINISTRATOR,
        ("dev/net/tun", ""),
        ("proc/sys/net/ipv4/conf/eth0/forwarding", "1"),
        ("proc/sys/net/ipv6/conf/all/forwarding", "1"),
        ("proc/net/fib_trie", "  |-- 10.77.1.5\n     /32 host LOCAL\n"),
    ];
    let with = |sources: &str| Need {
        is_tun: true,
        is_v4: sources.contains('.'),
        networks: vec![Network::parse(sources).unwrap()],
        ..need(1)
    };
    let refused = |sources: &str, why: &str| {
        let example = if sources.contains('.') { "198.18.0.0/15" } else { "2001:2::/48" };
        let text = format!(
            "refuse sources: {sources} cannot be used: {why}: \
            omit --sources, or use a network of its own, such as {example}"
        );
        check(&able, &with(sources), &[&text]);
    };
    check(&able, &with("10.99.0.0/16"), &[]);
    check(&able, &with("fd77::/64"), &[]);
    // The first address is unused.
    refused("10.77.1.0/24", "10.77.1.5 is of this machine");
    refused("0.0.0.0/0", "10.77.1.5 is of this machine");
    refused("192.0.2.0/24", "192.0.2.9 is dialled");
    refused("224.0.0.0/24", "224.0.0.0/4 is multicast");
    refused("ff02::/112", "ff00::/8 is multicast");
    refused("169.254.1.0/24", "169.254.0.0/16 is link-local");
    refused("fe80::/64", "fe80::/10 is link-local");
    refused("::1", "::1 is of this machine");
}

#[test]
fn a_lack_of_4_tuples_of_devices_names_what_is_enough() {
    let with = |threads, networks: &[&str], tuples| {
        let networks = networks.iter().map(|network| Network::parse(network).unwrap()).collect();
        Need { is_tun: true, threads, networks, tuples, ..need(40_000_000) }
    };
    let check = |need: &Need, expected: &str| assert_eq!(tun::more_tuples(need).command, expected);
    check(
        &with(2, &[], 2 * 16_386_048),
        "throng run http://192.0.2.9/ --io tun -c 40000000 --threads 4  # each has a network of its own",
    );
    check(
        &Need { target: None, ..with(2, &[], 2 * 16_386_048) },
        "# a run with --threads 4: each has a network of its own",
    );
    check(
        &with(2, &["198.18.5.0/24"], 2 * 126 * 64_512),
        "# --sources with 3 times as many addresses, for 2 shards",
    );
    check(
        &with(2, &["198.18.5.7"], 0),
        "throng run http://192.0.2.9/ --io tun -c 40000000 --sources 198.18.5.6/31  \
        # at least 2 addresses for 2 shards; or --threads 1",
    );
    // With a probe there is one more shard than threads.
    check(
        &with(1, &["fd77::7"], 0),
        "throng run http://192.0.2.9/ --io tun -c 40000000 --sources fd77::6/127  \
        # at least 2 addresses for all shards",
    );
    check(
        &with(3, &["198.18.5.0/24", "198.18.6.7"], 0),
        "# at least 4 addresses for 3 shards in each network of --sources; or --threads 1",
    );
}

/// All devices forward, or none. Advertised default routes are kept if `accept_ra` is set before.
fn a_device_forwards_ipv6(able: &[(&'static str, &'static str)]) {
    let need = Need { is_v4: false, is_tun: true, ..need(1) };
    let all = |on: &'static str| ("proc/sys/net/ipv6/conf/all/forwarding", on);
    let of = |found: &[(&'static str, &'static str)], expected: &[&str]| {
        check(&[able, found].concat(), &need, expected);
    };
    let off =
        "warn forwarding: off for all devices, and a route back to the sources in the target's network: ";
    let forward = "sysctl -w net.ipv6.conf.all.forwarding=1";
    of(&[all("1")], &[]);
    // The setting of a single device does not count.
    of(&[all("0"), ("proc/sys/net/ipv6/conf/eth0/forwarding", "1")], &[&format!("{off}{forward}")]);
    const ZERO: &str = "00000000000000000000000000000000";
    let route = |flags: &str, device: &str| {
        format!(
            "{ZERO} 00 {ZERO} 00 fe800000000000000000000000000001 00000400 00000001 00000000 {flags} {device}\n"
        )
    };
    // Advertised by eth1 and eth0.5, configured manually for eth2.
    let routes = |names: [&str; 2]| -> &'static str {
        let lines = [route("00450003", names[0]), route("00450003", names[1]), route("00000003", "eth2")];
        lines.concat().leak()
    };
    let accepts = ["eth1", "eth2", "eth3", "eth0.5"]
        .map(|name| (&*format!("proc/sys/net/ipv6/conf/{name}/accept_ra").leak(), "1"));
    let with = |names| [&accepts[..], &[all("0"), ("proc/net/ipv6_route", routes(names))]].concat();
    of(&with(["eth1", "eth1"]), &[&format!("{off}sysctl -w net.ipv6.conf.eth1.accept_ra=2 && {forward}")]);
    // A device name with a dot cannot be written with `sysctl -w` and dots, and doctor does not change it.
    let text = "sysctl -w net/ipv6/conf/eth0.5/accept_ra=2 net/ipv6/conf/eth1/accept_ra=2 net/ipv6/conf/all/forwarding=1";
    of(&with(["eth1", "eth0.5"]), &[&format!("{off}{text}")]);
}

#[test]
fn nothing_known_is_nothing_found() {
    let machine = Machine::with(&[]);
    assert_eq!(preflight(&machine.root(), &need(u64::MAX)), []);
    assert_eq!(capacity(&machine.root(), &need(1)).connections, u64::MAX);
}

#[test]
fn sources_must_be_ours() {
    let with = |sources: &[&str]| Need {
        networks: sources.iter().map(|s| Network::parse(s).unwrap()).collect(),
        ..need(10)
    };
    check(
        &[],
        &with(&["203.0.113.9"]),
        &["refuse sources: 203.0.113.9 is not a local address: \
           ip addr add 203.0.113.9/32 dev eth0  # or choose another"],
    );
    check(
        &[],
        &with(&["2001:db8::9", "203.0.113.9", "203.0.113.10"]),
        &["refuse sources: 2001:db8::9 and 2 more are not local addresses: \
           throng doctor http://192.0.2.9/ --fix --sources 2001:db8::9,203.0.113.9,203.0.113.10"],
    );
    check(&[], &with(&["127.9.9.9", "127.7.0.0/16", "::1"]), &[]);
}

#[test]
fn a_lack_of_ports_names_the_number_of_addresses_needed() {
    let with = |connections, sources, destinations, tuples| Need {
        sources,
        destinations,
        tuples,
        ..need(connections)
    };
    check(&[], &with(36_280, 1, 1, 36_280), &[]);
    check(
        &[],
        &with(70_000, 1, 1, 62_512),
        &[
            "refuse ports: 62,512 free 4-tuples, 70,000 needed: throng doctor http://192.0.2.9/ -c 70000 --fix --sources 10.128.0.0/30  # --sources with 2 addresses (now 1), or 2 destinations (now 1)",
        ],
    );
    let here = |need| Need { device: "lo".into(), target: Some("tcp://127.0.0.{1..3}:9".into()), ..need };
    check(
        &[],
        &here(with(1_000_000, 2, 3, 6 * 62_512)),
        &[
            "refuse ports: 375,072 free 4-tuples, 1,000,000 needed: throng run 'tcp://127.0.0.{1..3}:9' -c 1000000 --sources 127.128.0.0/29  # --sources with 6 addresses (now 2), or 8 destinations (now 3)",
        ],
    );
    check(
        &[],
        &with(5, 0, 0, 0),
        &[
            "refuse ports: 0 free 4-tuples, 5 needed: throng doctor http://192.0.2.9/ -c 5 --fix --sources 10.128.0.0/29  # --sources with 5 addresses (now 0), or 5 destinations (now 0)",
        ],
    );
    let six = Need { is_v4: false, ..here(with(70_000, 1, 1, 62_512)) };
    let found = preflight(&Machine::with(&[]).root(), &six);
    assert!(found[0].fix.contains(" -c 70000 --fix --sources fd77::/126  # "), "{}", found[0].fix);
    // The proposed network has as many addresses as stated.
    assert_eq!(Network::parse("10.128.0.0/29").unwrap().count(), 6);
    let machine = Machine::with(&[]);
    let found = preflight(&machine.root(), &with(u64::from(u32::MAX), 1, 1, 1));
    let advice = "# --sources with 4,294,967,295 addresses (now 1), or 4,294,967,295 destinations (now 1)";
    assert_eq!(found[0].fix, advice, "a network is not that large");
}

/// 4,528 bytes per end: the limit is exact to one connection.
#[test]
fn memory_is_weighed_to_the_connection() {
    let small = [("proc/meminfo", "MemTotal: 900000 kB\nMemAvailable: 442188 kB\n")];
    assert_eq!(442_188 * 1024 / 4_528, 100_000);
    check(&small, &need(100_000), &[]);
    let refused = "refuse memory: 432 MiB available, 432 MiB needed (4,528 bytes per connection): \
        throng run http://192.0.2.9/ -c 100000  # or free memory";
    check(&small, &need(100_001), &[refused]);
    check(&small, &Need { both_ends_here: true, ..need(50_000) }, &[]);
    let refused = "refuse memory: 432 MiB available, 432 MiB needed (9,056 bytes per connection, both ends here): \
        throng run http://192.0.2.9/ -c 50000  # or free memory";
    check(&small, &Need { both_ends_here: true, ..need(50_001) }, &[refused]);
}

/// The limit applies to reserved address space, which is far more than what is used.
#[test]
fn address_space_is_for_each_thread() {
    let page = rustix::param::page_size() as u64;
    let taken = format!("{} 30 2 1 0 1 0\n", (90 << 20) / page);
    let with = |limit: &str, threads: u64, expected: &[&str]| {
        let limits = format!(
            "Max open files            20000                20000                files\n\
             Max address space         {limit}            unlimited            bytes\n"
        );
        let changes = [("proc/self/limits", limits.as_str()), ("proc/self/statm", taken.as_str())];
        check(&changes, &Need { threads, ..need(5) }, expected);
    };
    let refused = "refuse address space: 290 MiB allowed (ulimit -v), 330 MiB needed with 2 threads: ulimit -v unlimited  \
        # or use fewer --threads";
    with("304087040", 2, &[refused]);
    with("304087040", 1, &[]);
    with("367001600", 2, &[]);
    with("unlimited", 9, &[]);
}

#[test]
fn four_hundred_million_are_refused_for_memory_first() {
    let machine = Machine::with(&ROOMY);
    let found = preflight(&machine.root(), &Need { both_ends_here: true, ..need(400_000_000) });
    assert_eq!((found[0].what, found[0].severity), ("memory", Severity::Refuse));
    assert_eq!(found[0].needed, "3.3 TiB needed (9,056 bytes per connection, both ends here)");
    assert!(found.is_sorted_by_key(|f| f.severity), "{found:?}");
}

#[test]
fn the_file_table_binds_all_but_an_administrator() {
    let tight = ("proc/sys/fs/file-max", "1000\n");
    let text = "file table: 590 free on this machine, 1,032 needed: sysctl -w fs.file-max=1442";
    check(&[tight], &need(558), &[]);
    check(&[tight], &need(1_000), &[&format!("refuse {text}")]);
    check(&[tight, ADMINISTRATOR], &need(1_000), &[&format!("warn {text}")]);
    // All bits but the one that matters.
    check(
        &[tight, ("proc/self/status", "CapEff:\tffffffffffdfffff\n")],
        &need(1_000),
        &[&format!("refuse {text}")],
    );
    check(&[tight, ("proc/self/status", "Name:\tx\n")], &need(1_000), &[&format!("refuse {text}")]);
    // Saturated, with more in use than allowed.
    let full = [tight, ("proc/sys/fs/file-nr", "1200\t0\t1000\n")];
    let text = "refuse file table: 0 free on this machine, 33 needed: sysctl -w fs.file-max=1233";
    check(&full, &need(1), &[text]);
}

#[test]
fn open_files_never_refuse() {
    let limit = |n: u64| format!("Max open files            {n}                 {n}                files\n");
    let tables = "Max open files  64  64  files\n";
    // 64 slots per ring: 16 rings use 32 descriptors besides the 32 others; the 17th does not fit.
    check(&[("proc/self/limits", tables)], &need(1_024), &[]);
    let text = "warn open files: 64 allowed, 66 needed: \
        ulimit -n 128  # as root; '* - nofile 128' in /etc/security/limits.conf lasts";
    check(&[("proc/self/limits", tables)], &need(1_025), &[text]);

    let blocked = Need { uring: Err("seccomp".into()), ..need(1_000_000) };
    let uring = "warn io_uring: not available (seccomp): docker run --security-opt seccomp=unconfined  \
        # or allow io_uring_setup, _enter and _register in the container's seccomp profile; \
        epoll is used instead";
    let text = "warn open files: 65,536 allowed, 1,000,032 needed: ulimit -n 1048576  # as root; \
        '* - nofile 1048576' in /etc/security/limits.conf lasts; until then 16 threads, each with its own file table, are used";
    check(&[("proc/self/limits", &limit(65_536))], &blocked, &[text, uring]);
    check(&[("proc/self/limits", &limit(1_000_032))], &blocked, &[uring]);
    let text = "warn open files: 20,000 allowed, 1,000,032 needed: ulimit -n 1048576  # as root; \
        '* - nofile 1048576' in /etc/security/limits.conf lasts; until then 51 threads, each with its own file table, are used";
    let ceiling = "warn open files ceiling: 20,000 at most, 1,048,576 needed: sysctl -w fs.nr_open=1048576";
    check(&[("proc/sys/fs/nr_open", "20000\n")], &blocked, &[text, ceiling, uring]);
    // Just below the limit that the fix sets.
    let ceiling =
        "warn open files ceiling: 1,048,575 at most, 1,048,576 needed: sysctl -w fs.nr_open=1048576";
    check(&[("proc/sys/fs/nr_open", "1048575\n")], &blocked, &[text, ceiling, uring]);
    check(&[("proc/sys/fs/nr_open", "1048576\n")], &blocked, &[text, uring]);
}

#[test]
fn io_uring_switched_off_has_another_fix() {
    let blocked = Need { uring: Err("operation not permitted".into()), ..need(1) };
    let switched = "warn io_uring: not available (operation not permitted): \
        sysctl -w kernel.io_uring_disabled=0  # epoll is used instead";
    let profile = "warn io_uring: not available (operation not permitted): \
        docker run --security-opt seccomp=unconfined  # or allow io_uring_setup, _enter and _register in the \
        container's seccomp profile; epoll is used instead";
    for (text, expected) in [("2\n", switched), ("1\n", switched), ("0\n", profile)] {
        check(&[("proc/sys/kernel/io_uring_disabled", text)], &blocked, &[expected]);
    }
    check(&[], &blocked, &[profile]);
    check(&[("proc/sys/kernel/io_uring_disabled", "2\n")], &need(1), &[]);
}

#[test]
fn socket_buffers_have_a_limit_of_their_own() {
    let tight = ("proc/sys/net/ipv4/tcp_mem", "75 100 150\n");
    let busy = ("proc/net/sockstat", "TCP: inuse 4 orphan 0 tw 0 alloc 4 mem 50\n");
    check(&[tight, busy], &need(1_600), &[]);
    let text = "warn tcp memory: 100 pages free, 101 needed if one socket in 16 is busy: \
        sysctl -w net.ipv4.tcp_mem='111 151 302'";
    check(&[tight, busy], &need(1_601), &[text]);
    check(&[tight], &need(2_400), &[]);
    check(&[tight, busy], &Need { both_ends_here: true, ..need(800) }, &[]);
    check(&[("proc/sys/net/ipv4/tcp_mem", "1 2\n")], &need(5_000), &[]);
}

#[test]
fn tables_of_connections_only_warn() {
    let track = |limit| {
        [
            ("proc/sys/net/netfilter/nf_conntrack_max", limit),
            ("proc/sys/net/netfilter/nf_conntrack_count", "536\n"),
        ]
    };
    check(&track("65536\n"), &need(65_000), &[]);
    let text = "warn conntrack: 65,000 entries free, 70,000 needed if conntrack tracks this traffic: \
        sysctl -w net.netfilter.nf_conntrack_max=70536";
    check(&track("65536\n"), &need(70_000), &[text]);
    check(&track("0\n"), &need(70_000), &[]);

    let buckets = [("proc/sys/net/ipv4/tcp_max_tw_buckets", "131072\n")];
    check(&buckets, &need(131_072), &[]);
    let text = "warn time wait: 131,072 allowed, 131,073 if all close at once: sysctl -w net.ipv4.tcp_max_tw_buckets=131073";
    check(&buckets, &need(131_073), &[text]);

    let chains = |entries| [("proc/sys/net/ipv4/tcp_ehash_entries", entries)];
    check(&chains("1024\n"), &need(5_120), &[]);
    let text = "warn connection hash: 1,024 buckets, 5,121 sockets with chains longer than 5: \
        sysctl -w net.ipv4.tcp_child_ehash_entries=2048 && unshare -n  # then run in that new network namespace";
    check(&chains("1024\n"), &need(5_121), &[text]);
    // A namespace that shares the host's buckets is recognised by the sign.
    check(&chains("-1024\n"), &need(5_121), &[text]);
}

#[test]
fn capacity_is_the_least_of_memory_files_and_ports() {
    let check = |changes: &[(&str, &str)], need: Need, expected: u64, limited_by: &str| {
        let machine = Machine::with(&ROOMY);
        for (path, text) in changes {
            machine.write(path, text);
        }
        let found = capacity(&machine.root(), &need);
        assert_eq!((found.connections, found.limited_by), (expected, limited_by), "{need:?}");
        let fits = Need { connections: expected, ..need };
        let refused =
            |need: &Need| preflight(&machine.root(), need).iter().any(|f| f.severity == Severity::Refuse);
        assert!(
            !refused(&fits) && refused(&Need { connections: expected + 1, ..fits.clone() }),
            "{expected}"
        );
    };
    let small = [("proc/meminfo", "MemTotal: 900000 kB\nMemAvailable: 442188 kB\n")];
    check(&small, need(1), 100_000, "memory");
    check(&small, Need { both_ends_here: true, ..need(1) }, 50_000, "memory");
    check(&[], need(1), 2_465_748, "file table");
    check(&[], Need { both_ends_here: true, ..need(1) }, 1_232_874, "file table");
    check(&[], Need { tuples: 36_280, ..need(1) }, 36_280, "ports");
    // An administrator may exceed file-max: memory decides.
    check(&[ADMINISTRATOR], need(1), 24_430_920 * 1024 / 4_528, "memory");
    // Just enough for the files other than connections, and then not even for those.
    check(&[("proc/sys/fs/file-max", "442\n")], need(1), 0, "file table");
    let full = Machine::with(&ROOMY);
    full.write("proc/sys/fs/file-max", "100\n");
    assert_eq!(capacity(&full.root(), &need(1)).connections, 0);
}

#[test]
fn this_machine_holds_one_and_not_a_trillion() {
    assert!(preflight(&Root::real(), &need(1)).iter().all(|f| f.severity == Severity::Warn));
    let found = preflight(&Root::real(), &need(1_000_000_000_000));
    assert!(found.iter().any(|f| f.what == "memory" && f.severity == Severity::Refuse), "{found:?}");
}
