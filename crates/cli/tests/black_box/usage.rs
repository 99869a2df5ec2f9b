//! Usage errors: the exit status, and the messages of each.

use std::{net::TcpListener, os::unix::fs::PermissionsExt};

use crate::program::{Program, Serving, file, throng};

/// Ends with the status, prints every one of `parts` to standard error, and nothing to standard output.
pub(crate) fn check(args: &[&str], status: i32, parts: &[&str]) {
    let ended = Program::start(args).end();
    assert_eq!(ended.status, Some(status), "{args:?}: {ended:?}");
    for part in parts {
        assert!(ended.stderr.contains(part), "{args:?}: no {part:?} in {}", ended.stderr);
    }
    assert!(!ended.stderr.contains("panicked"), "{args:?}: {}", ended.stderr);
    assert_eq!(ended.stdout, "", "{args:?}");
}

const URL: &str = "http://127.0.0.1:9/";

#[test]
fn usage_errors_are_named_with_their_fix() {
    check(&["run"], 2, &["throng: target: ", "http://host:port/"]);
    check(&["run", "gopher://x/"], 2, &["throng: target: ", "\"gopher\"", "http://", "tcp://"]);
    check(&["run", "127.0.0.1:80x"], 2, &["target: ", "\"80x\" is not a port"]);
    check(&["run", "load.toml"], 2, &["target: ", "scenario", "load.toml"]);
    check(&["run", "gopher://127.0.0.1/"], 2, &["target: ", "\"gopher\" is not a scheme", "https://"]);
    let nobody = "https://127.0.0.1:1/";
    check(
        &["run", nobody, "--cacert", "/nowhere.pem"],
        2,
        &["--cacert: ", "\"/nowhere.pem\" cannot be read"],
    );
    check(&["run", nobody, "--cert", "/dev/null"], 2, &["--key"]);
    check(&["run", nobody, "--tls", "1.1"], 2, &["--tls: ", "use 1.2 or 1.3"]);
    check(&["run", URL, "-k"], 2, &["--insecure"]);
    check(&["serve", "--tls-cert", "/nowhere.pem", "--tls-key", "/nowhere.key"], 2, &["--tls-cert"]);
    check(&["run", "tcp://127.0.0.1"], 2, &["target: ", "missing port"]);
    check(&["run", "http://127.0.0.1:99999/"], 2, &["target: ", "\"99999\"", "1 to 65535"]);
    check(&["run", "http://127.0.0.{9..1}/"], 2, &["target: ", "{9..1}", "{1..9}"]);
    check(&["run", "http://127.0.0.1/{rand 5}"], 2, &["target: ", "{rand 1 4096}"]);
    check(&["run", "http://no.such.name.invalid/"], 2, &["target: ", "no.such.name.invalid"]);
    check(&["run", URL, "-c", "many"], 2, &["--connections: \"many\"", "100k or 1m"]);
    check(&["run", URL, "--ramp", "30"], 2, &["--ramp: \"30\"", "30/s"]);
    check(&["run", URL, "-d", "10x"], 2, &["--duration: \"10x\"", "5s"]);
    check(&["run", URL, "-n", "many"], 2, &["--requests: \"many\"", "100k"]);
    check(
        &["run", URL, "-H", "Host: a", "-H", "host: b"],
        2,
        &["--header: host is also given", "remove one"],
    );
    check(&["run", URL, "-H", "X-A"], 2, &["--header: \"X-A\"", "'Name: value'"]);
    check(&["run", URL, "-H", "Content-Length: 5"], 2, &["--header: throng sets this header itself"]);
    check(&["run", URL, "--body-file", "/nowhere"], 2, &["--body-file: \"/nowhere\" cannot be read"]);
    check(&["run", URL, "--think", "9s..2s"], 2, &["--think: \"9s..2s\"", "2s..9s"]);
    check(&["run", URL, "--expect", "length=$1"], 2, &["--expect: ", "{rand 1 4096}"]);
    check(
        &["run", URL, "--expect", "colour=red"],
        2,
        &["--expect: ", "\"colour=red\"", "status=200,length=$1"],
    );
    check(&["run", URL, "--reconnect", "30s..1s"], 2, &["--reconnect: ", "planned, never or 1s..30s"]);
    check(&["run", URL, "--rate", "20q"], 2, &["--rate: \"20q\"", "20k/s"]);
    check(&["run", URL, "--rate", "5/s", "--think", "1s"], 2, &["--think: ", "remove one of the two"]);
    check(&["run", "tcp://127.0.0.1:9", "--rate", "5/s"], 2, &["--rate: ", "--message"]);
    check(&["run", URL, "--arrive", "0/s"], 2, &["--arrive: \"0/s\"", "100/s"]);
    check(&["find", URL, "-c", "5"], 2, &["--connections: ", "--max"]);
    check(&["run", URL, "--arrive", "5/s", "--total", "9", "-c", "5"], 2, &["--connections: ", "--total"]);
    check(&["run", URL, "--probe", "0"], 2, &["--probe: \"0\"", "10/s"]);
    // The flag takes the target for its rate.
    let slow = "--probe: sends no request in some steps of 2.0 s; use a faster one, or a longer -d";
    check(&["find", URL, "--max", "20", "-d", "2s", "--probe", "0.1/s"], 2, &[slow]);
    check(&["run", "--probe", URL], 2, &["target: missing", "--probe: ", "10/s"]);
    check(&["run", URL, "--sources", "10.0.0.5/24"], 2, &["--sources: ", "10.0.0.5 or 10.0.0.0/24"]);
    check(&["run", URL, "--sources", "::1"], 2, &["target: ", "IPv6", "--sources"]);
    check(&["run", URL, "--seed=-1"], 2, &["--seed: \"-1\""]);
    check(&["run", URL, "--live", "tui"], 2, &["--live tui: standard error is not a terminal; use line"]);
    check(
        &["run", URL, "--format", "siege"],
        2,
        &["--format: \"siege\"", "throng, wrk, fortio, ab or httperf"],
    );
    check(
        &["run", URL, "--format", "ab:users"],
        2,
        &["--format: no such population; use ab:main: \"ab:users\""],
    );
}

#[test]
fn all_mistakes_are_named_at_once() {
    #[rustfmt::skip]
    let args = [
        "run", "gopher://x/", "-c", "0", "--ramp", "fast", "-d", "long", "--think", "2x", "--timeout", "0", "--expect", "colour=red",
        "--reconnect", "always", "--sources", "here", "--threads", "0", "--seed", "x", "--io", "magic", "--live", "loud",
        "--format", "gold",
    ];
    let parts = [
        "target: \"gopher\"",
        "--connections: \"0\"",
        "--ramp: \"fast\"",
        "--duration: \"long\"",
        "--think: \"2x\"",
        "--timeout: \"0\"",
        "--expect: unknown check \"colour=red\"",
        "--reconnect: \"always\"",
        "--sources: \"here\"",
        "--threads: \"0\"",
        "--seed: \"x\"",
        "--io: \"magic\"",
        "--live: \"loud\"",
        "--format: \"gold\"",
    ];
    check(&args, 2, &parts);
    let ended = Program::start(&args).end();
    assert_eq!(ended.stderr.lines().count(), parts.len(), "a line for each: {}", ended.stderr);
    check(
        &["serve", "ftp", "--listen", "nowhere", "--threads", "0", "--io", "magic"],
        2,
        &[
            "--io: \"magic\"",
            "\"ftp\"",
            "use http",
            "--listen: \"nowhere\"",
            "127.0.0.1:8000",
            "--threads: \"0\"",
            "1 to 1024",
        ],
    );
}

#[test]
fn unknown_flags_and_verbs_are_usage_errors_too() {
    check(&[], 2, &["Usage: throng"]);
    check(&["walk"], 2, &["throng: walk: unknown command", "throng: `throng --help` lists"]);
    check(&["run", URL, "-c"], 2, &["throng: --connections: requires a value; use --connections 500k"]);
    check(&["run", URL, "-c", "-5"], 2, &["throng: --connections: \"-5\" is not a number"]);
    check(&["run", URL, "http://127.0.0.2/"], 2, &["unexpected argument \"http://127.0.0.2/\""]);
    check(
        &["serve", "--thread", "2", "--io", "magic"],
        2,
        &["--thread: unknown option; use --threads", "--io: \"magic\""],
    );
    // With all that is wrong with the others.
    let args = ["run", URL, "--conections", "many", "--colour=red", "--ramp", "fast", "--live", "loud"];
    let lines = [
        "throng: --conections: unknown option; use --connections",
        "throng: --colour: unknown option",
        "throng: --connections: \"many\"",
        "throng: --ramp: \"fast\"",
        "throng: --live: \"loud\"",
        "throng: `throng run --help` lists all options",
    ];
    check(&args, 2, &lines);
    assert_eq!(Program::start(&args).end().stderr.lines().count(), lines.len());
}

#[test]
fn limits_of_this_machine_are_reported_before_the_run() {
    // 192.0.2.0/24 is reserved for documentation: RFC 5737.
    check(&["run", URL, "--sources", "192.0.2.1"], 3, &["sources", "192.0.2.1", "ip addr add 192.0.2.1/32"]);
    check(&["run", URL, "-c", "4000m"], 3, &["memory: ", "TiB needed", "-c "]);
    let one = ["run", URL, "-c", "100k", "--sources", "127.9.9.9"];
    check(&one, 3, &["ports: ", "100,000 needed", "--sources with ", "destinations (now 1)"]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    check(&["serve", "--listen", &address], 3, &["--listen", &address, "address in use", "another port"]);
    // Of throng itself too, whose shards share their port.
    let server = Serving::start(&[]);
    let address = server.address.to_string();
    check(&["serve", "--listen", &address], 3, &["--listen", &address, "address in use", "another port"]);
}

#[test]
fn a_file_without_a_certificate_is_named() {
    let nobody = "https://127.0.0.1:1/";
    check(
        &["run", nobody, "--cacert", "/etc/passwd"],
        2,
        &["--cacert: \"/etc/passwd\" has no certificate in PEM form"],
    );
    check(
        &["serve", "--tls-cert", "/etc/passwd", "--tls-key", "/etc/passwd"],
        2,
        &["--tls-cert: \"/etc/passwd\" has no certificate in PEM form"],
    );
}

/// This build has no client of Kubernetes; what is wrong with the settings is said all the same.
#[test]
fn a_cluster_is_named_with_its_settings() {
    let run = |fleet| ["run", URL, "-c", "1", "--fleet", fleet];
    check(&run("k8s"), 2, &["--fleet: this build of throng has no Kubernetes client", "--features k8s"]);
    let both = ["--fleet: \"no_name\" is not a namespace", "--fleet: cpu: \"0.5\" is not a whole number"];
    check(&run("k8s://no_name?cpu=0.5"), 2, &both);
    check(
        &["run", URL, "--fleet", "k8s", "--agents", "0"],
        2,
        &["--agents: \"0\" is not a number of agents"],
    );
    let alone = ["--agents: requires --fleet", "--on-lost: requires --fleet"];
    check(&["run", URL, "--agents", "3", "--on-lost", "abort"], 2, &alone);
    check(&["run", "--agents", "3"], 2, &["target: missing", "--agents: requires --fleet"]);
    check(&["find", URL, "--share", "equal"], 2, &["--share: requires --fleet"]);
    check(&["agent", "--nats", "nats://127.0.0.1:9", "--idle-exit", "9"], 2, &["--idle-exit: \"9\"", "9s"]);
}

/// As with git and cargo. `throng lab` is one of these.
#[test]
fn another_name_is_another_program() {
    let folder = file("extension");
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join("throng-hello");
    std::fs::write(&program, "#!/bin/sh\necho \"$# $1 $THRONG\"\nexit 7\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let started = |name: &str| {
        let mut command = throng(&[name, "--fast"]);
        command.env("PATH", format!("{}:/bin:/usr/bin", folder.display())).current_dir(&folder);
        Program::from(command).end()
    };
    let ended = started("hello");
    let own = std::path::PathBuf::from(throng(&[]).get_program());
    assert_eq!(ended.status, Some(7), "{ended:?}");
    assert_eq!(ended.stdout, format!("1 --fast {}\n", own.canonicalize().unwrap().display()));
    let ended = started("goodbye");
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("goodbye: unknown command"), "{ended:?}");
}
