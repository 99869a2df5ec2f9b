//! A target whose address is translated, as a container's published port is: its ends of the connections are in another
//! network namespace, whatever listens at the dialled address.

use std::process::Command;

use crate::{
    firewall::{run, serve},
    namespace::Pair,
    program::{Program, Serving, Signal, throng},
    summary::Summary,
};

/// A host (the client's side) that publishes a container's port (the server's side) at its own address and at 127.0.0.1.
struct Published {
    pair: Pair,
    _container: Serving,
    port: u16,
}

impl Published {
    fn new() -> Option<Published> {
        let pair = Pair::new()?;
        let container = serve(&pair.server, "10.77.0.1");
        let port = 8080;
        let inside = container.address.port();
        let host = &pair.client;
        // As dockerd does it without its proxy.
        host.set("net.ipv4.conf.all.route_localnet", "1");
        host.run("nft add table ip published");
        host.run("nft add chain ip published output { type nat hook output priority -100 ; }");
        host.run("nft add chain ip published postrouting { type nat hook postrouting priority 100 ; }");
        for address in ["10.77.0.2", "127.0.0.1"] {
            let rule = format!("ip daddr {address} tcp dport {port} dnat to 10.77.0.1:{inside}");
            host.run(&format!("nft add rule ip published output {rule}"));
        }
        host.run("nft add rule ip published postrouting ip saddr 127.0.0.0/8 oifname cable masquerade");
        Some(Published { pair, _container: container, port })
    }

    /// A listener at the published port on the host itself that never gets a connection: a container engine's proxy.
    fn proxy(&self) -> Serving {
        let listen = format!("0.0.0.0:{}", self.port);
        let args = ["serve", "--listen", &listen, "--until-stdin-ends", "--threads", "1"];
        Serving::from(self.pair.client.enter(&throng(&args)), &[])
    }

    fn url(&self, scheme: &str, address: &str) -> String {
        format!("{scheme}://{address}:{}", self.port)
    }
}

/// Nothing is reported of the target's process, and no end disagrees.
fn check_unseen(s: &Summary) {
    for path in ["target_cost", "connections.seen_by_target", "connections.unaccepted", "observed.target"] {
        assert!(s.at(path).is_null(), "{path}: {:#}", s.at(path));
    }
    assert!(!s.at("reasons").to_string().contains("disagree"), "{:#}", s.at("reasons"));
}

#[test]
fn both_ends_of_a_published_port_agree() {
    let Some(published) = Published::new() else { return };
    let args = ["-c", "100", "-d", "1s", "--think", "100ms..200ms"];
    for with_proxy in [false, true] {
        let proxy = with_proxy.then(|| published.proxy());
        for address in ["10.77.0.2", "127.0.0.1"] {
            let (ended, s) = run(&published.pair.client, &published.url("http", address), &args);
            ended.assert_status(0);
            assert_eq!((s.count("connections.held"), s.faults()), (100, vec![]), "{address}, {with_proxy}");
            check_unseen(&s);
        }
        drop(proxy);
    }
}

/// Another program's connection at the published port's number, to the real listener.
fn stray(published: &Published) -> Program {
    let args = [
        "run",
        &format!("http://127.0.0.2:{}/", published.port),
        "-c",
        "1",
        "-d",
        "forever",
        "--think",
        "1h",
    ];
    let mut stray = Program::from(published.pair.client.enter(&throng(&args)));
    stray.wait_for("open 1 of 1");
    stray
}

#[test]
fn a_stray_connection_is_not_the_other_end_of_ours() {
    let Some(published) = Published::new() else { return };
    let _proxy = published.proxy();
    let stray = stray(&published);
    let (ended, s) =
        run(&published.pair.client, &published.url("tcp", "10.77.0.2"), &["-c", "60", "-d", "1s"]);
    ended.assert_status(0);
    assert_eq!(s.count("connections.held"), 60);
    check_unseen(&s);
    assert!(s.text("headline").contains("is not known"), "{}", s.text("headline"));
    stray.signal(Signal::INT);
    stray.end();
}

#[test]
fn an_invisible_listener_is_not_reported_as_missing() {
    let Some(published) = Published::new() else { return };
    let url = published.url("http", "10.77.0.2");
    let doctor: Command = published.pair.client.enter(&throng(&["doctor", &url, "-c", "100"]));
    let ended = Program::from(doctor).end();
    assert!(ended.stdout.contains("or behind address translation"), "{ended:?}");
}
