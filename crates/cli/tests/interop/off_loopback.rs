//! Across a cable between two network namespaces: sources, ports, IPv6, names with several addresses.

use std::{
    collections::{HashMap, HashSet},
    net::{IpAddr, SocketAddr},
};

use crate::{
    namespace::Pair,
    program::{Ended, Program, Serving, Signal, throng},
    server::folder,
    summary::Summary,
};

/// `throng run` on the client's side, to its end.
pub(crate) fn run(pair: &Pair, target: &str, args: &[&str]) -> (Ended, Summary) {
    let args = [&["run", target, "--json", "-"], args].concat();
    let ended = Program::from(pair.client.enter(&throng(&args))).end();
    let json = serde_json::from_str(&ended.stdout);
    let json = json.unwrap_or_else(|e| panic!("{e}: {ended:?}"));
    (ended, Summary(json))
}

/// Holds `connections` from the client's side until the server's side has seen them all; returns their other ends.
fn hold(pair: &Pair, serving: &Serving, to: &str, connections: usize, args: &[&str]) -> Vec<SocketAddr> {
    let port = serving.address.port();
    let (target, count) = (format!("http://{to}:{port}/"), connections.to_string());
    let load = ["run", &target, "-c", &count, "-d", "forever", "--think", "1h", "--json", "-"];
    let mut run = Program::from(pair.client.enter(&throng(&[&load, args].concat())));
    let all = format!("open {} of {}", thousands(connections), thousands(connections));
    run.wait_for(&all);
    let peers = pair.peers(port);
    run.signal(Signal::INT);
    let ended = run.end();
    assert_eq!(ended.status, Some(130), "{ended:?}");
    let summary = Summary(serde_json::from_str(&ended.stdout).unwrap());
    assert_eq!(summary.faults(), [], "{ended:?}");
    assert_eq!(summary.count("requests.answered"), connections as u64);
    assert_eq!(peers.len(), connections, "what is held here is open there");
    assert_eq!(peers.iter().collect::<HashSet<_>>().len(), connections, "no address and port twice");
    peers
}

fn thousands(n: usize) -> String {
    if n < 1000 { n.to_string() } else { format!("{},{:03}", n / 1000, n % 1000) }
}

fn addresses(peers: &[SocketAddr]) -> HashMap<IpAddr, usize> {
    let mut addresses = HashMap::new();
    for peer in peers {
        *addresses.entry(peer.ip()).or_default() += 1;
    }
    addresses
}

#[test]
fn the_address_of_the_route_is_used() {
    let Some(pair) = Pair::new() else { return };
    let serving = pair.serve("0.0.0.0");
    let peers = hold(&pair, &serving, "10.77.0.1", 200, &[]);
    assert!(peers.iter().all(|peer| peer.ip().to_string() == "10.77.0.2"), "{peers:?}");
    // The range from which the kernel chooses, in a new namespace.
    let range = pair.client.run("sysctl -n net.ipv4.ip_local_port_range");
    let range: Vec<u16> = range.split_whitespace().map(|n| n.parse().unwrap()).collect();
    let outside = |peer: &SocketAddr| peer.port() >= 1024 && !(range[0]..=range[1]).contains(&peer.port());
    assert!(peers.iter().all(outside), "{range:?}: {peers:?}");
}

#[test]
fn several_sources_share_the_dials() {
    let Some(pair) = Pair::new() else { return };
    for host in [3, 4] {
        pair.client.run(&format!("ip addr add 10.77.0.{host}/24 dev cable"));
    }
    let serving = pair.serve("0.0.0.0");
    let peers = hold(&pair, &serving, "10.77.0.1", 300, &["--sources", "10.77.0.2,10.77.0.3,10.77.0.4"]);
    let shares = addresses(&peers);
    let even = |host: u8| (90..=110).contains(shares.get(&IpAddr::from([10, 77, 0, host])).unwrap_or(&0));
    assert!(shares.len() == 3 && [2, 3, 4].into_iter().all(even), "{shares:?}");
}

#[test]
fn a_whole_network_is_dialled_from_once_doctor_has_made_it_local() {
    let Some(pair) = Pair::new() else { return };
    pair.server.run("ip route add 10.78.0.0/20 via 10.77.0.2");
    pair.server.run("ip -6 route add fd78::/112 via fd77::2");
    let state = folder("doctor");
    let doctor = |args: &[&str]| {
        let mut command = pair.client.enter(&throng(&[&["doctor"], args].concat()));
        command.env("XDG_STATE_HOME", &state);
        Program::from(command).end()
    };
    for (any, to, network, begin) in
        [("0.0.0.0", "10.77.0.1", "10.78.0.0/20", "10.78."), ("[::]", "[fd77::1]", "fd78::/112", "fd78::")]
    {
        let serving = pair.serve(any);
        let (url, sources) = (serving_url(&serving, to), ["--sources", network]);
        let args = [&["run", &url, "-c", "3000", "-d", "100ms"], &sources[..]].concat();
        let ended = Program::from(pair.client.enter(&throng(&args))).end();
        assert_eq!(ended.status, Some(3), "{ended:?}");
        assert!(ended.stderr.contains(" are not local addresses"), "{ended:?}");
        let fixed = doctor(&[&[&url, "-c", "3000", "--fix"], &sources[..]].concat());
        assert_eq!(fixed.status, Some(0), "{fixed:?}");
        let shares = addresses(&hold(&pair, &serving, to, 3000, &sources));
        assert!(shares.keys().all(|ip| ip.to_string().starts_with(begin)), "{shares:?}");
        assert!(shares.len() > 2000, "{} addresses of {network}", shares.len());
    }
    assert_eq!(doctor(&["--undo"]).status, Some(0));
    assert!(!pair.client.run("ip route show table local").contains("10.78"), "undone");
}

#[test]
fn a_source_that_is_not_ours_is_refused_with_a_fix() {
    let Some(pair) = Pair::new() else { return };
    let args = ["run", "http://10.77.0.1:9/", "-c", "5", "--sources", "10.79.0.5"];
    let ended = Program::from(pair.client.enter(&throng(&args))).end();
    assert_eq!(ended.status, Some(3), "{ended:?}");
    assert!(ended.stderr.contains("10.79.0.5 is not a local address"), "{ended:?}");
    assert!(ended.stderr.contains("ip addr add 10.79.0.5/32"), "{ended:?}");
}

#[test]
fn ipv6_is_spoken() {
    let Some(pair) = Pair::new() else { return };
    let serving = pair.serve("[::]");
    let peers = hold(&pair, &serving, "[fd77::1]", 200, &[]);
    assert!(peers.iter().all(|peer| peer.ip().to_string() == "fd77::2"), "{peers:?}");
    pair.client.run("ip addr add fd77::3/64 dev cable nodad");
    let peers = hold(&pair, &serving, "[fd77::1]", 200, &["--sources", "fd77::2,fd77::3"]);
    assert_eq!(addresses(&peers).len(), 2);
    let (ended, s) = run(&pair, &serving_url(&serving, "[fd77::1]"), &["-c", "20", "-n", "400"]);
    assert_eq!((ended.status, s.faults()), (Some(0), vec![]), "{ended:?}");
}

fn serving_url(serving: &Serving, host: &str) -> String {
    format!("http://{host}:{}/", serving.address.port())
}

/// Connections on the server's side by their local address.
fn destinations(pair: &Pair, port: u16) -> HashMap<String, usize> {
    let text = pair.server.run(&format!("ss -Htn state established sport = {port}"));
    let mut counts = HashMap::new();
    for line in text.lines() {
        let local = line.split_whitespace().nth(2).expect("a local address");
        *counts.entry(local.rsplit_once(':').expect("a port").0.to_owned()).or_default() += 1;
    }
    counts
}

#[test]
fn all_addresses_of_a_name_have_their_shares() {
    let Some(pair) = Pair::new() else { return };
    for host in [5, 6] {
        pair.server.run(&format!("ip addr add 10.77.0.{host}/24 dev cable"));
    }
    pair.client.replace("/etc/hosts", "10.77.0.1 farm\n10.77.0.5 farm\n10.77.0.6 farm\n");
    let serving = pair.serve("0.0.0.0");
    let port = serving.address.port();
    let args = ["run", &format!("http://farm:{port}/"), "-c", "90", "-d", "forever", "--think", "1h"];
    let mut run = Program::from(pair.client.enter(&throng(&args)));
    run.wait_for("open 90 of 90");
    let shares = destinations(&pair, port);
    let expected = ["10.77.0.1", "10.77.0.5", "10.77.0.6"].map(|address| (address.to_owned(), 30));
    assert_eq!(shares, HashMap::from(expected));
    run.signal(Signal::INT);
    assert_eq!(run.end().status, Some(130));
}

/// Those above 65,035; and the kernel keeps a few for its own choice.
fn leave_500_ports(pair: &Pair) {
    pair.client.set("net.ipv4.ip_local_reserved_ports", "1024-60899,61000-65035");
}

#[test]
fn further_sources_give_further_ports() {
    let Some(pair) = Pair::new() else { return };
    leave_500_ports(&pair);
    let serving = pair.serve("0.0.0.0");
    let url = serving_url(&serving, "10.77.0.1");
    let args = ["run", &url, "-c", "1200", "-d", "300ms", "--think", "1m"];
    let ended = Program::from(pair.client.enter(&throng(&args))).end();
    assert_eq!(ended.status, Some(3), "{ended:?}");
    assert!(ended.stderr.contains("ports: 500 free 4-tuples"), "{ended:?}");
    assert!(ended.stderr.contains("--sources with 3 addresses (now 1)"), "{ended:?}");
    for host in [3, 4] {
        pair.client.run(&format!("ip addr add 10.77.0.{host}/24 dev cable"));
    }
    // As the fix says.
    let sources = ["--sources", "10.77.0.2,10.77.0.3,10.77.0.4"];
    let peers = hold(&pair, &serving, "10.77.0.1", 1200, &sources);
    assert_eq!(addresses(&peers).len(), 3);
    assert!(peers.iter().all(|peer| peer.port() > 65_035), "reserved ports are left alone");
}

#[test]
fn destinations_give_further_ports_too() {
    let Some(pair) = Pair::new() else { return };
    leave_500_ports(&pair);
    pair.server.run("ip addr add 10.77.0.5/24 dev cable");
    pair.client.replace("/etc/hosts", "10.77.0.1 farm\n10.77.0.5 farm\n");
    let serving = pair.serve("0.0.0.0");
    let args = ["-c", "900", "-d", "300ms", "--think", "1m"];
    let (ended, s) = run(&pair, &serving_url(&serving, "farm"), &args);
    assert_eq!((ended.status, s.faults()), (Some(0), vec![]), "{ended:?}");
    assert_eq!((s.count("connections.held"), s.count("requests.answered")), (900, 900));
}
