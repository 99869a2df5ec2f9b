//! Facts about this machine, by which runs are checked for comparability.

use samples::{HostFacts, Setting};

use crate::{Root, memory, open_files, processors::processors};

/// Kernel, processors and memory; empty or zero if they cannot be read.
pub fn facts(root: &Root) -> HostFacts {
    HostFacts {
        kernel: root.read("proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
        cores: processors(root).unwrap_or_default(),
        memory_bytes: memory(root).map_or(0, |memory| memory.total),
    }
}

/// Settings that limit connections on most machines; missing ones are skipped.
const SETTINGS: &[&str] = &[
    "fs.file-max",
    "fs.nr_open",
    "kernel.io_uring_disabled",
    "net.core.netdev_max_backlog",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_max",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_max_orphans",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_wmem",
    "net.netfilter.nf_conntrack_max",
    "vm.max_map_count",
    "vm.overcommit_memory",
];

/// The host name; empty if it cannot be read.
pub fn host_name(root: &Root) -> String {
    root.read("proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

/// Identifies what shares ports: the machine's boot, and the network namespace.
pub fn network_id(root: &Root) -> String {
    let boot = root.read("proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = std::fs::read_link(root.path("proc/self/ns/net")).unwrap_or_default();
    format!("{} {}", boot.trim(), namespace.display())
}

/// Limits and settings that may affect connections.
pub fn settings(root: &Root) -> Vec<Setting> {
    let limit = open_files(root).map(|files| Setting {
        name: "open files (soft, hard)".to_owned(),
        value: format!("{} {}", files.soft, files.hard),
    });
    let sysctl = |name: &&str| Some(Setting { name: (*name).to_owned(), value: root.setting(name).ok()? });
    limit.into_iter().chain(SETTINGS.iter().filter_map(sysctl)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Machine;

    #[test]
    fn facts_are_those_of_the_machine() {
        let machine = Machine::with(&[
            ("proc/sys/kernel/osrelease", "6.12.1-amd64\n"),
            ("proc/self/status", "Cpus_allowed_list:\t0-3,8\n"),
            ("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 500 kB\n"),
        ]);
        let expected = HostFacts { kernel: "6.12.1-amd64".to_owned(), cores: 5, memory_bytes: 1_024_000 };
        assert_eq!(facts(&machine.root()), expected);
        assert_eq!(facts(&Machine::with(&[]).root()), HostFacts::default());
        let named = Machine::with(&[("proc/sys/kernel/hostname", "vm17\n")]);
        assert_eq!(
            (host_name(&named.root()), host_name(&machine.root())),
            ("vm17".to_owned(), String::new())
        );
    }

    #[test]
    fn settings_are_those_that_can_be_read() {
        let machine = Machine::with(&[
            ("proc/sys/net/core/somaxconn", "4096\n"),
            ("proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n"),
        ]);
        let found: Vec<(String, String)> =
            settings(&machine.root()).into_iter().map(|s| (s.name, s.value)).collect();
        let expected = [("net.core.somaxconn", "4096"), ("net.ipv4.ip_local_port_range", "32768 60999")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}
