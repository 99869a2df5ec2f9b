//! Where connections go to and come from: destinations, sources, ports.

use std::{
    collections::HashSet,
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener},
};

use crate::{
    caller::Caller,
    program::{Program, Serving, Signal, skip},
    scripted::{Peer, Scripted, ok},
    summary::{Expected, run},
};

fn respond_to_all(peer: &mut Peer) {
    while peer.request().is_some() && peer.send(&ok("x")) {}
}

/// Servers on addresses that must all be free: the first port is the kernel's choice, the others follow from it.
fn servers<const N: usize>(place: impl Fn(usize, u16) -> (String, u16)) -> [Scripted; N] {
    for _ in 0..100 {
        let first = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = first.local_addr().unwrap().port();
        let others = (1..N).map(|i| TcpListener::bind(place(i, port)));
        let all: Result<Vec<TcpListener>, _> = [Ok(first)].into_iter().chain(others).collect();
        if let Ok(all) = all {
            let all: Vec<Scripted> =
                all.into_iter().map(|listener| Scripted::at(listener, respond_to_all)).collect();
            return all.try_into().ok().unwrap();
        }
    }
    panic!("no free places");
}

/// Each destination has its share, and is named by its own address.
fn check_shares(servers: &[Scripted], target: &str, connections: u64) {
    let counts = [("connections.held", connections)];
    let pass = Expected { status: 0, verdict: "pass", faults: &[], counts: &counts };
    pass.check(target, &["-c", &connections.to_string(), "-d", "100ms", "--think", "1m"]);
    for server in servers {
        server.assert_accepted(connections / servers.len() as u64, &server.address.to_string());
        let host = format!("\r\nHost: {}\r\n", server.address);
        let heads = server.log.heads.lock().unwrap();
        assert!(!heads.is_empty() && heads.iter().all(|head| head.contains(&host)), "{host:?}: {heads:?}");
    }
}

#[test]
fn ports_of_a_range_have_their_shares() {
    let servers = servers::<2>(|i, port| ("127.0.0.1".to_owned(), port.saturating_add(i as u16)));
    let (low, high) = (servers[0].address.port(), servers[1].address.port());
    check_shares(&servers, &format!("http://127.0.0.1:{{{low}..{high}}}/"), 40);
}

#[test]
fn addresses_of_a_range_have_their_shares() {
    let servers = servers::<3>(|i, port| (format!("127.0.0.{}", i + 1), port));
    let port = servers[0].address.port();
    check_shares(&servers, &format!("http://127.0.0.{{1..3}}:{port}/"), 30);
}

#[test]
fn names_and_ipv6_are_reached() {
    let server = Scripted::start(respond_to_all);
    let pass = Expected { status: 0, verdict: "pass", faults: &[], counts: &[("connections.held", 2)] };
    let args = ["-c", "2", "-d", "50ms", "--think", "1m"];
    let port = server.address.port();
    pass.check(&format!("http://localhost:{port}/"), &[&args[..], &["--sources", "127.0.0.9"]].concat());
    let hosts = server.log.heads.lock().unwrap().join("");
    assert!(hosts.contains(&format!("Host: localhost:{port}\r\n")), "the name as typed: {hosts}");
    // Where the machine has no IPv6 there is nothing to reach.
    let Ok(six) = TcpListener::bind("[::1]:0") else {
        skip("no IPv6 here");
        return;
    };
    let six = Scripted::at(six, respond_to_all);
    pass.check(&six.url("/"), &args);
    six.assert_accepted(2, "by IPv6");
}

/// Peers as the server saw them, each once.
fn peers(args: &[&str], connections: usize) -> HashSet<SocketAddr> {
    let server = Scripted::start(Peer::wait_gone);
    let target = format!("tcp://{}", server.address);
    let (ended, _) = run(&target, &[&["-d", "2s", "-c", &connections.to_string()], args].concat());
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    server.assert_accepted(connections as u64, "all that are held");
    let peers: HashSet<SocketAddr> = server.log.peers.lock().unwrap().iter().copied().collect();
    assert_eq!(peers.len(), connections, "no pair of address and port twice");
    peers
}

#[test]
fn sources_are_those_and_no_others() {
    let listed: [IpAddr; 2] = ["127.9.9.9", "127.9.9.10"].map(|ip| ip.parse().unwrap());
    let seen = peers(&["--sources", "127.9.9.9,127.9.9.10"], 60);
    assert!(seen.iter().all(|peer| listed.contains(&peer.ip())), "{seen:?}");
    let network = peers(&["--sources", "127.9.8.0/29"], 60);
    let inside = |peer: &SocketAddr| peer.ip().to_string().strip_prefix("127.9.8.").unwrap().parse().unwrap();
    assert!(network.iter().map(inside).all(|last: u8| (1..=6).contains(&last)), "{network:?}");
}

/// As that of other clients: servers allow, limit and log by address.
#[test]
fn loopback_is_dialled_from_127_0_0_1() {
    let seen = peers(&[], 60);
    assert!(seen.iter().all(|peer| peer.ip() == Ipv4Addr::LOCALHOST), "{seen:?}");
}

#[test]
fn ports_are_outside_the_kernels_own_range() {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let bounds: Vec<u16> = range.split_whitespace().map(|n| n.parse().unwrap()).collect();
    for args in [&[][..], &["--sources", "127.9.7.1"]] {
        for peer in peers(args, 200) {
            let port = peer.port();
            assert!(
                port >= 1024 && !(bounds[0]..=bounds[1]).contains(&port),
                "{port} of {bounds:?}, {args:?}"
            );
        }
    }
}

#[test]
fn others_can_still_dial_while_thousands_are_held() {
    let server = Serving::start(&[]);
    let mut run = Program::start(&["run", &server.url("/"), "-c", "5000", "-d", "forever", "--think", "1h"]);
    run.wait_for("open 5,000 of 5,000");
    let mut others: Vec<Caller> = (0..50).map(|_| Caller::dial(server.address)).collect();
    for caller in &mut others {
        assert_eq!(caller.get("/").status, 200);
    }
    // The other end's count of what is open now.
    crate::program::until("5,050 at the server", || {
        others[0].get("/stats").text().contains("{\"open\":5050,")
    });
    run.signal(Signal::INT);
    let ended = run.end();
    assert_eq!(ended.status, Some(130), "{ended:?}");
    assert!(ended.stdout.contains("5,000 held of 5,000 wanted"), "{ended:?}");
}
