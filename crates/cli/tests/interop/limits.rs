//! Limits of throng's own host, each in a network namespace where it is small: the reports of a run and of a search.

use serde_json::Value;

use crate::{
    namespace::Pair,
    off_loopback::run,
    program::{Program, skip, throng},
};

/// `throng find` on the client's side, to its end.
fn find(pair: &Pair, target: &str, args: &[&str]) -> Value {
    let args = [&["find", target, "--json", "-"], args].concat();
    let ended = Program::from(pair.client.enter(&throng(&args))).end();
    serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}"))
}

#[test]
fn our_own_ports() {
    let Some(pair) = Pair::new() else { return };
    let serving = pair.serve("10.77.0.1");
    // 1,100 outside the kernel's port range, which is left to other programs. The probe has 402 of them.
    pair.client.set("net.ipv4.ip_local_reserved_ports", "1024-60899,62100-65535");
    let args = ["run", &serving.url("/"), "-c", "1200", "-d", "1s"];
    let refused = Program::from(pair.client.enter(&throng(&args))).end();
    assert_eq!(refused.status, Some(3), "{refused:?}");
    assert!(refused.stderr.contains("ports: 1,100 free 4-tuples") && refused.stderr.contains("--sources"));
    let args = ["--max", "1200", "-d", "1s", "--threshold", "held >= 99.9%"];
    let found = find(&pair, &serving.url("/"), &args);
    assert_eq!(
        (&found["outcome"], &found["limit"]["side"]),
        (&"not-reached".into(), &"host".into()),
        "{found:#}"
    );
    assert_eq!(found["invalid"], true, "it is no maximum of the target: {found:#}");
    assert_eq!(found["limit"]["cause"], "ports", "{found:#}");
    assert!(found["limit"]["sentence"].as_str().unwrap().contains("no free local port for"), "{found:#}");
    let max = found["max"].as_u64().unwrap();
    // Of the step that failed, which a confirmation may have gone below.
    let at = found["limit"]["at_connections"].as_u64().unwrap();
    assert!((640..=698).contains(&max) && (500..=698).contains(&at), "{found:#}");
}

#[test]
fn tracked_connections() {
    let Some(pair) = Pair::new() else { return };
    let serving = pair.serve("10.77.0.1");
    // A kernel with one limit for the whole machine refuses the change in a namespace; a test must not make it.
    for line in [
        "sysctl -q -w net.netfilter.nf_conntrack_max=300",
        "grep -qx 300 /proc/sys/net/netfilter/nf_conntrack_max",
        "iptables -A OUTPUT -m conntrack --ctstate NEW -j ACCEPT",
    ] {
        let mut args = line.split(' ');
        let mut command = pair.client.command(args.next().unwrap());
        command.args(args);
        if Program::from(command).end().status != Some(0) {
            return skip(format_args!("a namespace has no limit on tracked connections: {line}"));
        }
    }
    let load = ["-d", "2s", "--timeout", "1s", "--threshold", "held >= 99.9%"];
    let (_, s) = run(&pair, &serving.url("/"), &[&["-c", "500", "--think", "1m"], &load[..]].concat());
    assert_eq!((s.text("limit.side"), s.text("limit.cause")), ("host", "conntrack"), "{:#}", s.at("limit"));
    let found = find(&pair, &serving.url("/"), &[&["--max", "500"], &load[..]].concat());
    assert_eq!(found["limit"]["cause"], "conntrack", "{found:#}");
}
