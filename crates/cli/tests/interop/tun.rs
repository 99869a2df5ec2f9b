//! `--io tun`, throng's TCP over a TUN device: the unchanged suites of the other backends, and what only this backend has.

use std::{
    io::Write,
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::Value;

use crate::{
    namespace::{Namespace, Pair, may_make_namespaces},
    off_loopback,
    program::{ASKS, Ended, Program, RUN_IO, Serving, Signal, file, throng, until},
    summary::Summary,
};

/// Runs tests of this binary again, with `--io tun`, in a network namespace of their own: those whose names begin with one of `names` and
/// contain none of `except`. The reason for each exception is stated at the call.
fn suites_over_tun(names: &[&str], except: &[&str]) {
    if !may_make_namespaces() {
        return;
    }
    let own = std::env::current_exe().unwrap();
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"]).arg(own);
    command.args(names).args(except.iter().flat_map(|name| ["--skip", name]));
    command.args(["--test-threads", "2"]).env(RUN_IO, "tun").stdin(Stdio::null());
    let output = command.output().unwrap();
    let [text, errors] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    // Marked, so that a reader of this test's own output does not count these lines as its results.
    let all: String = text.lines().chain(errors.lines()).map(|line| format!("| {line}\n")).collect();
    assert!(output.status.success(), "{all}");
    let passed: Vec<&str> = text.lines().filter_map(passed).collect();
    for name in names {
        assert!(passed.iter().any(|test| test.starts_with(name)), "no test of {name}: {all}");
    }
    // A test that skips itself passes for the harness, and prints at least one such line.
    let skipped = errors.lines().filter(|line| line.starts_with("skipped")).count();
    assert!(passed.len() > skipped, "{} tests, {skipped} of them skipped: {all}", passed.len());
    let _ = writeln!(std::io::stderr(), "over a TUN device: {} tests, {skipped} skipped", passed.len());
}

/// The test that a line of the harness reports as passed.
fn passed(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... ok")
}

/// Tests of TLS are in suites of their own: two processes must not use the same folders at once.
const SECURED: &str = "secured::";

#[test]
fn nginx_sees_no_difference() {
    suites_over_tun(&["nginx::"], &[SECURED]);
}

#[test]
fn websockets_and_http2_see_no_difference() {
    suites_over_tun(&["websocket_servers::", "http2::"], &[SECURED]);
}

#[test]
fn haproxy_sees_no_difference() {
    suites_over_tun(&["haproxy::"], &[SECURED]);
}

#[test]
fn grpc_sees_no_difference() {
    // What grpcurl calls is `serve`.
    let of_serve = ["grpcurl_calls_serve", "serve_ends_the_streams", "messages_are_json_for_a_protoset"];
    suites_over_tun(&["grpc::"], &of_serve);
}

#[test]
fn node_and_python_see_no_difference() {
    suites_over_tun(&["node::", "python::", "typed::"], &[SECURED]);
}

#[test]
fn logins_and_sub_protocols_see_no_difference() {
    // RabbitMQ takes longest to start, and what is sent to it is what the others get.
    suites_over_tun(&["logins::", "subprotocols::"], &["subprotocols::stomp"]);
}

#[test]
fn tls_sees_no_difference() {
    suites_over_tun(&["secured::nginx::", "secured::faults::", "secured::http2::nginx"], &[]);
}

#[test]
fn servers_with_tls_see_no_difference() {
    suites_over_tun(&["secured::servers::", "secured::caddy::", "secured::connect_to::"], &[]);
}

#[test]
fn figures_of_tls_are_the_same() {
    // The search takes minutes; `a_search_finds_a_limit` has one over a device.
    let long = ["the_rate_of_handshakes_that_a_target_takes_is_found"];
    suites_over_tun(&["secured::figures::", "secured::mixed::", "secured::serving::throng"], &long);
}

#[test]
fn ways_across_networks_see_no_difference() {
    suites_over_tun(&["firewall::a_router"], &[]);
}

#[test]
fn limits_of_the_path_and_the_host_are_the_same() {
    // A device uses no port of this machine; and a link that goes down takes the server's route back to the device with it.
    let excepted = ["limits::our_own_ports", "cable::a_cable_that_is_put_back_in_time_is_no_fault"];
    suites_over_tun(&["cable::a_cable", "limits::"], &excepted);
}

#[test]
fn a_search_finds_a_limit() {
    if !may_make_namespaces() {
        return;
    }
    let here = Namespace::new();
    let args =
        ["serve", "--listen", "127.0.0.1:0", "--until-stdin-ends", "--threads", "1", "--max-open", "300"];
    let serving = Serving::from(here.enter(&throng(&args)), &[]);
    // How late throng is on a busy machine does not matter here.
    let judged = ["--max", "1000", "-d", "1s", "--threshold", "held >= 99.9%"];
    let target = url(&serving);
    let args = [&["find", &target, "--io", "tun", "--json", "-"], &judged[..]].concat();
    let ended = Program::from(here.enter(&throng(&args))).end_within(Duration::from_secs(300));
    let found: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}"));
    assert_eq!((ended.status, &found["outcome"]), (Some(0), &"found".into()), "{ended:?}");
    assert_eq!(found["limit"]["side"], "target", "{found:#}");
    // The probe has connections of its own.
    let max = found["max"].as_u64().unwrap();
    assert!((270..=300).contains(&max), "{found:#}");
    assert_eq!(devices(&here), 0, "each step's device goes with it");
}

#[test]
fn the_probe_runs_beside_the_load() {
    let Some((here, serving)) = served() else { return };
    let args = ["-c", "30", "-d", "2s", "--think", "500ms", "--probe", "50/s"];
    let (ended, s) = run(&here, &url(&serving), &args);
    ended.assert_status(0);
    assert_eq!((s.text("io"), s.count("connections.held"), s.faults()), ("tun", 30, vec![]), "{ended:?}");
    let [sent, answered, failed] =
        ["sent", "answered", "failed"].map(|name| s.count(&format!("probe.{name}")));
    assert!(
        sent >= 20 && answered + s.count("probe.unanswered") == sent && failed == 0,
        "{:#}",
        s.at("probe")
    );
    let [fresh, kept] = ["fresh_us", "kept_us"].map(|name| s.count(&format!("probe.{name}.count")));
    assert!(fresh >= 10 && kept >= 10, "{:#}", s.at("probe"));
    assert!(
        s.number("probe.connect_us.p50") > 0.0 && s.number("probe.fresh_us.p50") > 0.0,
        "{:#}",
        s.at("probe")
    );
}

/// A namespace with `throng serve` at loopback in it.
fn served() -> Option<(Namespace, Serving)> {
    if !may_make_namespaces() {
        return None;
    }
    let here = Namespace::new();
    let words = ["serve", "--listen", "127.0.0.1:0", "--until-stdin-ends", "--threads", "1"];
    let serving = Serving::from(here.enter(&throng(&words)), &[]);
    Some((here, serving))
}

fn url(serving: &Serving) -> String {
    format!("http://{}/", serving.address)
}

/// `throng run --io tun` in this namespace, to its end.
fn run(here: &Namespace, target: &str, args: &[&str]) -> (Ended, Summary) {
    let args = [&["run", target, "--io", "tun", "--json", "-"], args].concat();
    let ended = Program::from(here.enter(&throng(&args))).end();
    let json = serde_json::from_str(&ended.stdout);
    let json = json.unwrap_or_else(|e| panic!("{e}: {ended:?}"));
    (ended, Summary(json))
}

/// A run that holds until it gets a signal.
fn hold(here: &Namespace, serving: &Serving, connections: &str) -> Program {
    let target = url(serving);
    let load =
        ["run", &target, "-c", connections, "-d", "forever", "--think", "1h", "--io", "tun", "--json", "-"];
    let mut run = Program::from(here.enter(&throng(&load)));
    run.wait_for(&format!("open {connections} of {connections}"));
    run
}

fn devices(here: &Namespace) -> usize {
    here.run("ip -br link show").lines().filter(|line| line.starts_with("throng")).count()
}

#[test]
fn the_kernel_has_the_servers_sockets_only() {
    let Some((here, serving)) = served() else { return };
    let run = hold(&here, &serving, "500");
    let sockets = here.run("ss -Htn state established");
    let port = format!("127.0.0.1:{}", serving.address.port());
    let of_server = sockets.lines().filter(|line| line.split_whitespace().nth(2) == Some(&port)).count();
    assert_eq!((of_server, sockets.lines().count()), (500, 500), "{sockets}");
    assert!(sockets.lines().all(|line| line.contains(" 198.18.")), "{sockets}");
    assert!(devices(&here) >= 1);
    run.signal(Signal::INT);
    let ended = run.end();
    let s = Summary(serde_json::from_str(&ended.stdout).unwrap());
    assert_eq!((ended.status, s.text("io"), s.faults()), (Some(130), "tun", vec![]), "{ended:?}");
    assert_eq!((s.count("connections.peak"), s.count("requests.answered")), (500, 500), "{ended:?}");
    assert_eq!(devices(&here), 0, "a device goes with its run");
    until("the server has no connection left", || here.run("ss -Htn state connected").is_empty());
}

#[test]
fn a_device_goes_with_a_killed_process() {
    let Some((here, serving)) = served() else { return };
    let run = hold(&here, &serving, "20");
    assert!(devices(&here) >= 1 && here.run("ip route").contains("198.18."));
    run.signal(Signal::KILL);
    run.end();
    assert_eq!(devices(&here), 0);
    assert!(!here.run("ip route").contains("198.18."));
}

#[test]
fn two_runs_do_not_meet() {
    let Some((here, serving)) = served() else { return };
    let runs = [hold(&here, &serving, "300"), hold(&here, &serving, "300")];
    let sockets = here.run("ss -Htn state established");
    assert_eq!(sockets.lines().count(), 600, "{sockets}");
    for run in runs {
        run.signal(Signal::INT);
        let ended = run.end();
        let s = Summary(serde_json::from_str(&ended.stdout).unwrap());
        assert_eq!((s.count("connections.peak"), s.faults()), (300, vec![]), "{ended:?}");
    }
}

#[test]
fn sources_are_divided_among_shards() {
    let Some((here, serving)) = served() else { return };
    let args =
        ["-c", "100", "-d", "300ms", "--threads", "2", "--sources", "10.200.0.0/24", "--think", "20ms"];
    let (ended, s) = run(&here, &url(&serving), &args);
    ended.assert_status(0);
    assert_eq!((s.faults(), s.count("connections.held")), (vec![], 100), "{ended:?}");
    // One address is not enough for two shards, and one of this machine is for none.
    let (few, own) =
        ("--sources 10.200.0.8/31 --threads 2  # at least 2 addresses for 2 shards", "is of this machine");
    for (sources, why) in [("10.200.0.9", few), ("127.9.0.0/24", own)] {
        let url = url(&serving);
        let args = ["run", &url, "-c", "2", "--threads", "2", "--io", "tun", "--sources", sources, ASKS];
        let ended = Program::from(here.enter(&throng(&args))).end();
        assert_eq!(ended.status, Some(3), "{ended:?}");
        assert!(ended.stderr.contains(why), "{ended:?}");
    }
}

#[test]
fn a_port_without_a_listener_refuses() {
    let Some((here, serving)) = served() else { return };
    let address = serving.address;
    drop(serving);
    // What io_uring holds of a process that was killed, the kernel ends a moment after the process: until then it accepts, and resets.
    until("nothing listens", || here.run("ss -Htln").is_empty());
    let (ended, s) = run(&here, &format!("http://{address}/"), &["-c", "20", "-d", "300ms"]);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert_eq!(s.faults(), [("target·dial·refused".to_owned(), 20)], "{ended:?}");
}

#[test]
fn across_a_cable() {
    let Some(pair) = Pair::new() else { return };
    pair.client.forward();
    pair.server.route_devices("10.77.0.2", "fd77::2");
    let serving = pair.serve("[::]");
    for host in ["10.77.0.1", "[fd77::1]"] {
        let url = format!("http://{host}:{}/", serving.address.port());
        let args = ["-c", "50", "-n", "2000", "--io", "tun"];
        let (ended, s) = off_loopback::run(&pair, &url, &args);
        ended.assert_status(0);
        assert_eq!((s.text("io"), s.count("connections.held"), s.faults()), ("tun", 50, vec![]), "{ended:?}");
        assert_eq!(s.count("requests.answered"), 2_000, "{ended:?}");
    }
}

/// The way out is narrower than the server's: what does not fit would be dropped on arrival, without an ICMP message.
#[test]
fn segments_fit_the_way_out() {
    let Some(pair) = Pair::new() else { return };
    pair.client.forward();
    pair.server.route_devices("10.77.0.2", "fd77::2");
    pair.client.run("ip link set cable mtu 1280");
    // Cut by the server itself, as on a wire: a device of the same kernel would take a packet that is still whole.
    pair.server.run("ip link set cable gso_max_segs 1");
    let serving = pair.serve("[::]");
    for host in ["10.77.0.1", "[fd77::1]"] {
        let url = format!("http://{host}:{}/?length=9000", serving.address.port());
        let args = ["-c", "5", "-n", "50", "--timeout", "3s", "--io", "tun"];
        let (ended, s) = off_loopback::run(&pair, &url, &args);
        ended.assert_status(0);
        assert_eq!((s.count("requests.answered"), s.faults()), (50, vec![]), "{ended:?}");
    }
}

#[test]
fn doctor_opens_the_way_to_another_machine() {
    let Some(pair) = Pair::new() else { return };
    pair.server.route_devices("10.77.0.2", "fd77::2");
    let serving = pair.serve("[::]");
    let state = file("tun-doctor-state");
    // Of a run that failed before it was undone.
    let _ = std::fs::remove_dir_all(&state);
    let doctor = |args: &[&str]| {
        let mut command = pair.client.enter(&throng(&[&["doctor"], args].concat()));
        command.env("XDG_STATE_HOME", &state);
        Program::from(command).end()
    };
    let setting = |name: &str| pair.client.run(&format!("sysctl -n {name}")).trim().to_owned();
    let of_v6 = "net.ipv6.conf.all.forwarding";
    for (host, name) in [("10.77.0.1", "net.ipv4.conf.cable.forwarding"), ("[fd77::1]", of_v6)] {
        let url = format!("http://{host}:{}/", serving.address.port());
        let args = [url.as_str(), "-c", "20", "--io", "tun"];
        let found = doctor(&args);
        assert!(found.stdout.contains(&format!("sysctl -w {name}=1")), "{found:?}");
        assert_eq!(setting(name), "0");
        let fixed = doctor(&[&args[..], &["--fix"]].concat());
        assert_eq!((fixed.status, setting(name).as_str()), (Some(0), "1"), "{fixed:?}");
        let args = ["-c", "20", "-n", "400", "--io", "tun"];
        let (ended, s) = off_loopback::run(&pair, &url, &args);
        ended.assert_status(0);
        assert_eq!((s.count("connections.held"), s.faults()), (20, vec![]), "{ended:?}");
    }
    assert_eq!(doctor(&["--undo"]).status, Some(0));
    assert_eq!((setting("net.ipv4.conf.cable.forwarding"), setting(of_v6)), ("0".to_owned(), "0".to_owned()));
}

#[test]
fn what_cannot_be_is_refused() {
    let Some((here, _)) = served() else { return };
    let check = |args: &[&str], status: i32, why: &str| {
        let ended = Program::from(here.enter(&throng(args))).end();
        assert_eq!(ended.status, Some(status), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(why), "{args:?}: {ended:?}");
    };
    check(&["serve", "--io", "tun"], 2, "--io: tun is for the dialling end");
    check(&["run", "http://[::1]:9/", "--io", "tun"], 3, "another address of this machine");
    check(&["run", "http://10.99.0.1:9/", "--io", "tun"], 3, "no route to 10.99.0.1:9: ");
    // Without the right to make devices.
    let mut command = here.command("setpriv");
    command.args(["--bounding-set=-net_admin", "--"]);
    let run = throng(&["run", "http://127.0.0.1:9/", "--io", "tun"]);
    command.arg(run.get_program()).args(run.get_args());
    let ended = Program::from(command).end();
    assert_eq!(ended.status, Some(3), "{ended:?}");
    assert!(ended.stderr.contains("TUN device: not available"), "{ended:?}");
}
