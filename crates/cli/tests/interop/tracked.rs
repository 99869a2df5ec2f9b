//! Connection-tracking tables where client, router and target are different hosts: which host's was read.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::{
    firewall::{run, serve},
    namespace::{Namespace, Routed},
    program::{Program, Serving, Signal, file, throng},
};

/// From now on connections are tracked there.
fn track(at: &Namespace) {
    for hook in ["input", "output"] {
        at.filter(hook, "ct state new accept");
    }
}

#[test]
fn each_table_is_that_of_its_host() {
    let Some(net) = Routed::new() else { return };
    track(&net.client);
    track(&net.server);
    net.router.forbid("ct state new accept");
    let serving = serve(&net.server, "0.0.0.0");
    // 70 that only the target's host tracks.
    let own = format!("http://127.0.0.1:{}/", serving.address.port());
    let own = ["run", &own, "-c", "70", "-d", "forever", "--think", "1h"];
    let mut others = Program::from(net.server.enter(&throng(&own)));
    others.wait_for("open 70 of 70");
    let secret = file("tracked-secret");
    fs::write(&secret, "a-b-c\n").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let secret = secret.to_str().unwrap();
    let args = ["observe", "--listen", "10.88.2.2:0", "--until-stdin-ends", "--token-file", secret];
    let observer = Serving::from(net.server.enter(&throng(&args)), &[]);
    let at = format!("http://{}", observer.address);
    let target = format!("http://10.88.2.2:{}/", serving.address.port());
    let args =
        ["-c", "100", "-d", "2s", "--think", "100ms", "--observe", &at, "--observe-token-file", secret];
    let (ended, s) = run(&net.client, &target, &args);
    ended.assert_status(0);
    let tracked = |host: &str| s.count(&format!("observed.{host}.conntrack.max"));
    // And the request of throng observe, perhaps repeated.
    let (here, there) = (tracked("host"), tracked("target_host"));
    assert!((100..=110).contains(&here), "{here} here, {there} there");
    assert!((170..=185).contains(&there), "{here} here, {there} there");
    others.signal(Signal::INT);
    others.end();
}
