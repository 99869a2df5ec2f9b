//! The report of a fake machine, verbatim. `UPDATE_GOLDEN=1` rewrites it.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use host::{Listener, Need, Repair, Root};
use plan::Network;

use super::*;

/// A small machine with a bit of everything: too little for a million, and a target on it.
const MACHINE: &[(&str, &str)] = &[
    ("proc/meminfo", "MemTotal: 24684100 kB\nMemAvailable: 8000000 kB\n"),
    ("proc/self/limits", "Max open files            20000                20000                files\n"),
    ("proc/self/status", "CapEff:\t0000000000000000\nCpus_allowed_list:\t0-1\n"),
    ("proc/sys/fs/nr_open", "1048576\n"),
    ("proc/sys/fs/file-max", "2466190\n"),
    ("proc/sys/fs/file-nr", "410\t0\t2466190\n"),
    ("proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n"),
    ("proc/sys/net/ipv4/tcp_mem", "287901\t383870\t575802\n"),
    ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
    ("proc/sys/net/ipv4/tcp_wmem", "4096\t16384\t4194304\n"),
    ("proc/sys/net/ipv4/tcp_max_tw_buckets", "131072\n"),
    ("proc/sys/net/ipv4/tcp_max_syn_backlog", "2048\n"),
    ("proc/sys/net/ipv4/tcp_syncookies", "1\n"),
    ("proc/sys/net/core/somaxconn", "128\n"),
    ("proc/sys/net/netfilter/nf_conntrack_max", "262144\n"),
    ("proc/net/sockstat", "TCP: inuse 4 orphan 0 tw 700 alloc 4 mem 2\n"),
    ("proc/81/limits", "Max open files            1024                 1048576              files\n"),
    ("proc/81/status", "Threads:\t1\n"),
    ("proc/81/stat", "81 (nginx) S 1 1 1 0 -1 4194304 1 0 0 0 1 5 7 8 20 0\n"),
    ("proc/81/comm", "nginx\n"),
];

/// Gone when dropped, as is all that is in it.
struct Folder(std::path::PathBuf);

impl Folder {
    fn with_machine() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("throng-doctor-{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
        let folder = Folder(std::env::temp_dir().join(name));
        for (file, text) in MACHINE {
            let file = folder.0.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        fs::create_dir_all(folder.0.join("proc/81/fd")).unwrap();
        std::os::unix::fs::symlink("socket:[7]", folder.0.join("proc/81/fd/6")).unwrap();
        folder
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn report(connections: u64, is_requested: bool) -> Report {
    let folder = Folder::with_machine();
    let root = Root::at(&folder.0);
    let target = "http://127.0.0.{1..3}:80/";
    let listener = Listener {
        address: [0, 0, 0, 0].into(),
        port: 80,
        is_only_ipv6: false,
        inode: 7,
        backlog: Some(128),
        waiting: None,
        dropped: None,
    };
    let need = Need {
        target: Some(target.to_owned()),
        connections,
        expected: connections,
        dials: connections,
        threads: 2,
        sources: 254,
        networks: vec![Network::parse("10.77.0.0/24").unwrap()],
        device: "lo".to_owned(),
        destinations: 3,
        addresses: Vec::new(),
        is_v4: true,
        both_ends_here: true,
        listeners: vec![listener],
        tuples: 254 * 3 * 62_511,
        uring: Ok(()),
        layers: host::Layers::default(),
        is_tun: false,
    };
    Report {
        target: need.target.clone(),
        connections,
        is_requested,
        capacity: host::capacity(&root, &need),
        target_room: host::target_room(&root, &need),
        findings: host::examine(&root, &need),
    }
}

#[test]
fn the_report_is_as_it_was() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/doctor-report.txt");
    let text = report(1_000_000, true).text();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&golden, &text).unwrap();
    }
    assert_eq!(text, fs::read_to_string(&golden).unwrap_or_default(), "UPDATE_GOLDEN=1 writes it");
}

#[test]
fn a_long_value_moves_no_other() {
    let finding = |what, value: &str, fix: &str| Finding {
        what,
        value: value.to_owned(),
        needed: "5 needed".to_owned(),
        fix: fix.to_owned(),
        severity: if fix.is_empty() { Severity::Fine } else { Severity::Warn },
        repairs: Vec::new(),
    };
    let findings = vec![
        finding("ports", "7 free", ""),
        finding(
            "sources",
            "10.77.0.1, 10.77.0.2, 10.77.0.3, 10.77.0.4 and 253 more are not local addresses",
            "x",
        ),
        finding("target", &"y".repeat(50), ""),
    ];
    let all = Report { findings, ..report(10, true) };
    let lines = [
        "ok    ports    7 free                                            5 needed",
        "warn  sources  10.77.0.1, 10.77.0.2, 10.77.0.3, 10.77.0.4 and 253 more are not local addresses  5 needed",
        "               x",
        "ok    target   yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy  5 needed",
    ];
    assert_eq!(all.text().lines().take(4).collect::<Vec<_>>(), lines);
}

#[test]
fn programs_read_the_same() {
    let report = report(1_000_000, true);
    let read: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
    let head = ["schema", "target", "connections", "fits", "verdict"].map(|name| read[name].clone());
    let target = json!("http://127.0.0.{1..3}:80/");
    // 1,024 allowed, 1 open.
    let expected = [json!("throng.doctor/1"), target, json!(1_000_000), json!(1_023), json!("refuse")];
    assert_eq!(head, expected);
    let find = |what: &str| read["findings"].as_array().unwrap().iter().find(|f| f["what"] == what).unwrap();
    assert_eq!(
        *find("accept queue"),
        json!({ "what": "accept queue", "value": "at most 128 waiting", "needed": "up to 1,024 simultaneous dials",
            "cure": "sysctl -w net.core.somaxconn=4096", "severity": "warn", "fixable": true })
    );
    let severities = |what: &str| (find(what)["severity"].clone(), find(what)["fixable"].clone());
    assert_eq!(severities("memory"), (json!("refuse"), json!(false)));
    assert_eq!(severities("sources"), (json!("refuse"), json!(true)));
    assert_eq!(severities("io_uring"), (json!("ok"), json!(false)));
    // Hidden on this machine.
    assert_eq!(severities("connection hash"), (json!("ok"), json!(false)));
    assert_eq!(read["findings"].as_array().unwrap().len(), report.findings.len());
}

fn finding(what: &'static str, severity: Severity) -> Finding {
    let repairs = vec![Repair::Setting { name: "a.b".into(), value: "5".into() }];
    Finding { what, value: "v".into(), needed: "n".into(), fix: "c".into(), severity, repairs }
}

/// The last line, and the verdict.
fn check(is_requested: bool, capacity: u64, findings: &[Finding], expected: (&str, Severity)) {
    let report = Report {
        target: None,
        connections: 5_000,
        is_requested,
        capacity: Capacity { connections: capacity, limited_by: "memory" },
        target_room: None,
        findings: findings.to_vec(),
    };
    let text = report.text();
    assert_eq!((text.lines().last().unwrap(), report.verdict()), expected, "{findings:?}");
}

#[test]
fn the_last_line_tells_whether_it_fits() {
    let (fine, unknown) = (finding("cores", Severity::Fine), finding("memory", Severity::Unknown));
    let (warn, refuse) = (finding("hash", Severity::Warn), finding("sources", Severity::Refuse));
    check(true, 9_000, &[fine.clone(), unknown], ("5,000 connections fit", Severity::Fine));
    check(true, 9_000, &[warn.clone(), fine], ("5,000 connections fit, with warnings", Severity::Warn));
    let no = "5,000 connections do not fit: sources, ports";
    check(true, 9_000, &[warn, refuse.clone(), finding("ports", Severity::Refuse)], (no, Severity::Refuse));
    let most = "this machine can hold about 4,000 connections, limited by memory";
    let no = format!("5,000 connections do not fit: {most}");
    check(true, 4_000, std::slice::from_ref(&refuse), (&no, Severity::Refuse));
    let no = "5,000 connections do not fit: sources";
    check(true, 0, std::slice::from_ref(&refuse), (no, Severity::Refuse));
    check(false, 0, std::slice::from_ref(&refuse), ("no connection fits: memory", Severity::Refuse));
    check(false, 4_000, &[refuse], (most, Severity::Refuse));
    check(false, 4_000, &[], (most, Severity::Fine));
    let files = finding("target's open files", Severity::Warn);
    let no = "5,000 connections do not fit: target's open files";
    check(true, 9_000, std::slice::from_ref(&files), (no, Severity::Refuse));
    // How much room the target has is not known.
    check(false, 4_000, &[files], (most, Severity::Warn));
    check(false, u64::MAX, &[], ("no known limit on the number of connections", Severity::Fine));
}

/// The last line, of a target with this much room on a machine that can hold this many, and `fits` of the JSON.
fn check_room(is_requested: bool, room: u64, capacity: u64, expected: (&str, Option<u64>)) {
    let report = Report {
        target: None,
        connections: 5_000,
        is_requested,
        capacity: Capacity { connections: capacity, limited_by: "memory" },
        target_room: Some(room),
        findings: vec![finding(TARGETS_FILES, Severity::Warn)],
    };
    let text = report.text();
    let read: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
    assert_eq!((text.lines().last().unwrap(), read["fits"].as_u64()), expected, "{room} {capacity}");
}

#[test]
fn the_last_line_tells_what_fits_before_the_targets_limit_is_raised() {
    let limited = "limited by the target's open files; with the fixes above,";
    let few = format!("as set up, about 141 connections fit, {limited} about 2,600,000, limited by memory");
    check_room(false, 141, 2_600_000, (&few, Some(141)));
    let none = format!("as set up, no connection fits, {limited} no known limit");
    check_room(false, 0, u64::MAX, (&none, Some(0)));
    // It is no limit where memory is the smaller one.
    let most = "this machine can hold about 4,000 connections, limited by memory";
    check_room(false, 4_001, 4_000, (most, Some(4_000)));
    check_room(false, u64::MAX, u64::MAX, ("no known limit on the number of connections", None));
    check_room(true, 141, 9_000, ("5,000 connections do not fit: target's open files", Some(141)));
    let both = format!("as set up, about 141 connections fit, {limited} about 4,000, limited by memory");
    check_room(true, 141, 4_000, (&format!("5,000 connections do not fit: {both}"), Some(141)));
}
