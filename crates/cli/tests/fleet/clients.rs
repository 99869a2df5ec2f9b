//! The control API of an agent, as curl uses it, against the reference server.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use crate::{
    api::{Api, Response, run},
    fleet::joined,
    namespace::Pair,
    program::{Program, Serving, Signal, throng, throng_under, until},
    server::{folder, program},
};

/// An agent with a control API.
fn controlled(command: Command) -> Api {
    Api::from(command, "control API at ")
}

fn start(args: &[&str]) -> Api {
    controlled(throng(&[&["agent", "--listen", "127.0.0.1:0"], args].concat()))
}

impl Api {
    fn add(&self, form: &str) -> Response {
        self.curl("/clients", &["--data", form])
    }

    /// The value of a series.
    fn metric(&self, series: &str) -> Option<f64> {
        let text = self.curl("/metrics", &[]).body;
        let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.map(|value| value.parse().unwrap())
    }

    fn wait_for_connected(&self, count: usize) {
        let path = "/clients?state=connected";
        until("connected clients", || self.curl(path, &[]).paths().1 == count);
    }
}

fn echo(server: &Serving) -> String {
    format!("ws://{}/ws/echo", server.address)
}

/// Connections of the server, without the one that asks.
fn open(server: &Serving) -> u64 {
    let response = run(program("curl", &[]), &[&server.url("/stats")]);
    response.json()["open"].as_u64().unwrap() - 1
}

#[test]
fn the_source_texts_line_connects_clients() {
    let (server, agent) = (Serving::start(&["--threads", "1"]), start(&[]));
    let added = agent.add(&format!("ws={}&count=5&ping=500ms", echo(&server)));
    let expected: Vec<String> = (1..=5).map(|n| format!("/clients/{n}")).collect();
    assert_eq!((added.status, added.json()), (200, json!(expected)), "{added:?}");
    agent.wait_for_connected(5);
    assert_eq!(open(&server), 5);
    assert_eq!(agent.curl("/clients", &[]).json(), json!(expected));
    let text = ["-H", "content-type: text/plain", "--data", "hello"];
    let sent = agent.curl("/clients/3", &text);
    assert_eq!((sent.status, &sent.json()["sent"][0]), (200, &json!("hello")), "{sent:?}");
    let mut shown = Value::Null;
    until("echoes of the text and of pings", || {
        shown = agent.curl("/clients/3", &[]).json();
        let received = shown["received"].as_array().unwrap();
        received.contains(&json!("hello")) && received.contains(&json!("ping"))
    });
    assert_eq!(
        (&shown["url"], &shown["ws"], &shown["connected"]),
        (&json!("/clients/3"), &json!(echo(&server)), &json!(true))
    );
    let fields: Vec<&String> = shown.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["connected", "received", "sent", "url", "ws"]);
    until("pings of all", || agent.metric("throng_latency_seconds_count").unwrap() >= 10.0);
    for (series, value) in [
        ("throng_connections_open", 5.0),
        ("throng_connections_wanted", 5.0),
        ("throng_connections_opened_total", 5.0),
        ("throng_connect_seconds_count", 5.0),
        ("throng_handshake_seconds_bucket{le=\"+Inf\"}", 5.0),
        ("throng_messages_told_total", 1.0),
    ] {
        assert_eq!(agent.metric(series), Some(value), "{series}");
    }
    let deleted = agent.curl("/clients/3", &["-X", "DELETE"]);
    assert_eq!((deleted.status, &deleted.json()["connected"]), (200, &json!(false)));
    until("it is closed", || open(&server) == 4);
    assert_eq!(agent.curl("/clients/3", &[]).status, 404);
    assert_eq!(agent.curl("/clients", &[]).paths(), ("/clients/1".to_owned(), 4));
    agent.program.signal(Signal::TERM);
    let ended = agent.program.end();
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    until("all are closed", || open(&server) == 0);
}

#[test]
fn clients_of_wss_are_secured_and_verify_the_server() {
    let (server, agent) = (Serving::start(&["--threads", "1", "--tls"]), start(&[]));
    let target = format!("ws=wss://{}/ws/echo", server.address);
    let open = || {
        let response = run(program("curl", &["-k"]), &[&format!("https://{}/stats", server.address)]);
        response.json()["open"].as_u64().unwrap() - 1
    };
    let added = agent.add(&format!("{target}&count=5&ping=200ms&insecure=true"));
    assert_eq!(added.status, 200, "{added:?}");
    agent.wait_for_connected(5);
    assert_eq!(open(), 5);
    // Longer than a record of TLS.
    let text = "x".repeat(20_000);
    let sent = agent.curl("/clients/3", &["-H", "content-type: text/plain", "--data", &text]);
    assert_eq!(sent.status, 200, "{sent:?}");
    until("pings of all", || agent.metric("throng_latency_seconds_count").unwrap() >= 10.0);
    until("an echo of the text", || {
        let shown = agent.curl("/clients/3", &[]).json();
        shown["received"].as_array().unwrap().iter().any(|text| text.as_str().unwrap().starts_with("xxxx"))
    });
    let [full, resumed] = ["throng_tls_seconds_count", "throng_tls_resumed_seconds_count"]
        .map(|name| agent.metric(name).unwrap_or(0.0));
    assert_eq!(full + resumed, 5.0);
    let deleted = agent.curl("/clients/3", &["-X", "DELETE"]);
    assert_eq!((deleted.status, &deleted.json()["connected"]), (200, &json!(false)));
    until("it is closed", || open() == 4);
    // Nobody has issued its certificate.
    agent.add(&format!("{target}&count=2"));
    until("two are lost", || agent.curl("/clients?state=lost", &[]).paths().1 == 2);
    let lost = agent.curl("/clients/6", &[]).json()["lost"].as_str().unwrap().to_owned();
    assert!(lost.contains("tls") && lost.contains("unknown-issuer"), "{lost}");
    assert_eq!((agent.curl("/clients?state=connected", &[]).paths().1, open()), (4, 4));
}

#[test]
fn clients_that_are_lost_count_no_more_and_say_why() {
    let (server, agent) = (Serving::start(&["--threads", "1"]), start(&[]));
    let form = format!("ws={}&count=3", echo(&server));
    agent.add(&form);
    agent.wait_for_connected(3);
    server.program.signal(Signal::KILL);
    until("none is left", || agent.curl("/clients", &[]).paths().1 == 0);
    assert_eq!(agent.curl("/clients?state=lost", &[]).paths(), ("/clients/1".to_owned(), 3));
    let lost = agent.curl("/clients/2", &[]).json();
    assert_eq!((&lost["connected"], &lost["lost"]), (&json!(false), &json!("target hold closed")));
    assert_eq!(agent.curl("/clients/2", &["--data", "hello"]).status, 409);
    let faults = "throng_faults_total{side=\"target\",stage=\"hold\",kind=\"closed\"}";
    for (series, value) in [
        ("throng_connections_open", 0.0),
        ("throng_connections_wanted", 3.0),
        ("throng_connections_dropped_total", 3.0),
        (faults, 3.0),
    ] {
        assert_eq!(agent.metric(series), Some(value), "{series}");
    }
    // Nothing listens there any more.
    agent.add(&form);
    until("the new ones are lost too", || agent.curl("/clients?state=lost", &[]).paths().1 == 6);
    assert_eq!(agent.curl("/clients/4", &[]).json()["lost"], "target dial refused");
    assert_eq!(agent.curl("/clients/2", &["-X", "DELETE"]).status, 200);
    assert_eq!(agent.metric("throng_connections_wanted"), Some(5.0));
}

#[test]
fn what_is_wrong_is_refused_with_the_fix() {
    let agent = start(&[]);
    let long = format!("@{}", written("long", &"x".repeat(70_000)).display());
    let check = |path: &str, args: &[&str], status: u16, text: &str| {
        let response = agent.curl(path, args);
        assert!(response.status == status && response.body.contains(text), "{path} {args:?}: {response:?}");
    };
    let add = |form: &str, status: u16, text: &str| check("/clients", &["--data", form], status, text);
    add(
        "ws=ws://192.0.2.1:80/&count=1",
        403,
        "192.0.2.1:80 is not allowed here; start the agent with --allow",
    );
    add("count=5", 400, "ws: missing; use ws=ws://HOST:PORT/PATH&count=5");
    add("ws=ws://127.0.0.1:9/&count=0", 400, "count: must be 1 to 4,294,967,295: 0");
    add("ws=ws://127.0.0.1:9/&count=many", 400, "count: \"many\" is not a count");
    add("ws=ws://127.0.0.1:9/&colour=red", 400, "\"colour\" is not a field; use ws, count, rate, ping");
    add("ws=http://127.0.0.1:9/", 400, "ws: use ws://HOST:PORT/PATH");
    add("ws=wss://127.0.0.1:9/&insecure=yes", 400, "insecure: must be true or false");
    add("ws=load.toml", 400, "only throng run takes a scenario file");
    add("ws=ws://127.0.0.1:99999/", 400, "is not a port");
    add("ws=ws://no-such-host.invalid/", 400, "has no address");
    add(&long, 413, "a body has at most 65536 bytes");
    check("/clients/1", &["--data", &long], 413, "a body has at most 65536 bytes");
    check("/clients/1", &[], 404, "/clients/1: no such client; GET /clients?state=all lists them");
    check("/clients/x", &["-X", "DELETE"], 404, "no such client");
    check("/clients/99999999999", &["--data", "a"], 404, "no such client");
    check("/clients?state=open", &[], 400, "use state=live, connected, lost or all");
    check("/nothing", &[], 404, "curl ADDR/clients");
    check("/clients", &["-X", "DELETE"], 405, "curl ADDR/clients");
    check("/clients/1", &["-X", "PUT"], 405, "curl ADDR/clients");
    check("/metrics", &["--data", "x"], 405, "curl ADDR/clients");
    check("/clients", &["-H", "Host: evil.example"], 403, "use 127.0.0.1 or localhost as the host");
    check("/clients", &["-H", "Origin: http://evil.example"], 403, "not from a web page");
    check("/", &[], 200, "curl ADDR/metrics");
    assert_eq!(agent.metric("throng_connections_wanted"), Some(0.0), "none was dialled");
}

/// A file with this text, which only its owner may read.
pub(crate) fn written(name: &str, text: &str) -> PathBuf {
    let file = folder(&format!("clients-{name}")).join("file");
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    file
}

#[test]
fn with_a_token_every_request_needs_it() {
    let file = written("token", "s3cret\n");
    let args = ["agent", "--listen", "0.0.0.0:0", "--token-file", file.to_str().unwrap()];
    let mut agent = controlled(throng(&args));
    agent.url = agent.url.replace("0.0.0.0", "127.0.0.1");
    for path in ["/clients", "/clients/1", "/metrics", "/", "/nothing"] {
        for shown in ["", "Authorization: Bearer wrong", "Authorization: Basic s3cret"] {
            let args: &[&str] = if shown.is_empty() { &[] } else { &["-H", shown] };
            let response = agent.curl(path, args);
            assert!(
                response.status == 401 && response.head.contains("www-authenticate: bearer"),
                "{response:?}"
            );
            assert!(response.body.starts_with("missing or wrong token; use -H"), "{response:?}");
        }
    }
    let right = ["-H", "Authorization: Bearer s3cret"];
    assert_eq!(agent.curl("/clients", &right).json(), json!([]));
    // A page that has the token may use it.
    let page = ["-H", "Authorization: Bearer s3cret", "-H", "Origin: http://ui.example", "-H", "Host: agent"];
    assert_eq!(agent.curl("/clients", &page).status, 200);
}

#[test]
fn an_agent_holds_no_more_than_its_caps() {
    let server = Serving::start(&["--threads", "1"]);
    let agent = start(&["--max-connections", "10", "--max-rate", "20/s"]);
    let ws = echo(&server);
    let over = agent.add(&format!("ws={ws}&count=11"));
    assert_eq!(
        (over.status, over.body.as_str()),
        (403, "11 connections are more than allowed here (10); start the agent with --max-connections 11\n")
    );
    let fast = agent.add(&format!("ws={ws}&count=1&rate=21/s"));
    assert!(
        fast.status == 403 && fast.body.contains("rate: 21/s is more than the 20/s allowed here"),
        "{fast:?}"
    );
    let pings = agent.add(&format!("ws={ws}&count=3&ping=100ms"));
    assert!(pings.status == 403 && pings.body.contains("ping: 30/s is more than the 20/s"), "{pings:?}");
    // Paced: the last dial is due after 7/20 s.
    assert_eq!(agent.add(&format!("ws={ws}&count=8")).status, 200);
    agent.wait_for_connected(8);
    let over = agent.add(&format!("ws={ws}&count=3"));
    assert!(over.status == 403 && over.body.contains("(10, of which 8 are held)"), "{over:?}");
    agent.curl("/clients/1", &["-X", "DELETE"]);
    assert_eq!(agent.add(&format!("ws={ws}&count=3&rate=1/m")).status, 200);
    agent.curl("/clients/2", &["-X", "DELETE"]);
    let later = agent.add(&format!("ws={ws}&count=1"));
    assert!(later.status == 429 && later.head.contains("retry-after: 1"), "{later:?}");
    assert!(
        later.body.starts_with("the clients of earlier requests are still being dialled, at --max-rate 20/s")
    );
}

#[test]
fn an_agent_holds_more_clients_than_it_may_open_files() {
    const N: usize = 1_000;
    let server = Serving::start(&["--threads", "1"]);
    let limited = ["prlimit", "--nofile=256:256"];
    let agent = controlled(throng_under(&limited, &["agent", "--listen", "127.0.0.1:0"]));
    assert_eq!(agent.add(&format!("ws={}&count={}", echo(&server), N - 300)).paths().1, N - 300);
    assert_eq!(
        agent.add(&format!("ws={}&count=300", echo(&server))).paths(),
        (format!("/clients/{}", N - 299), 300)
    );
    agent.wait_for_connected(N);
    assert_eq!(open(&server), N as u64);
}

#[test]
fn ports_are_counted_over_all_clients_of_a_target() {
    let Some(pair) = Pair::new() else { return };
    let server = pair.serve("10.77.0.1");
    // 1,100 outside the kernel's port range, which is left to other programs.
    pair.client.set("net.ipv4.ip_local_reserved_ports", "1024-60899,62100-65535");
    let command = pair.client.enter(&throng(&["agent", "--listen", "127.0.0.1:0", "--allow", "10.77.0.1"]));
    let agent = controlled(command);
    let url = format!("{}/clients", agent.url);
    let add = |count: usize| {
        let form = format!("ws=ws://{}/ws/echo&count={count}", server.address);
        run(pair.client.command("curl"), &[&url, "--data", &form])
    };
    assert_eq!((add(60).status, add(1_000).status), (200, 200));
    let connected = format!("{url}?state=connected");
    until("all are connected", || run(pair.client.command("curl"), &[&connected]).paths().1 == 1_060);
    let refused = add(100);
    assert!(refused.status == 503 && refused.body.contains("ports: 1,100 free 4-tuples"), "{refused:?}");
    // Those of a client that is closed are free again.
    let deleted = run(pair.client.command("curl"), &[&format!("{url}/[1-100]"), "-X", "DELETE"]);
    assert_eq!((deleted.status, deleted.body.matches("HTTP/1.1 200 ").count()), (200, 99), "{deleted:?}");
    assert_eq!(add(30).status, 200);
    until("the new ones are connected", || run(pair.client.command("curl"), &[&connected]).paths().1 == 990);
}

#[test]
fn a_name_that_changes_its_address_is_checked_again() {
    let Some(pair) = Pair::new() else { return };
    let hosts = written("hosts", "10.77.0.1 target\n");
    pair.client.run(&format!("mount --bind {} /etc/hosts", hosts.display()));
    let server = pair.serve("0.0.0.0");
    let port = server.address.port();
    let command = pair.client.enter(&throng(&["agent", "--listen", "127.0.0.1:0", "--allow", "target"]));
    let agent = controlled(command);
    let url = format!("{}/clients", agent.url);
    let form = format!("ws=ws://target:{port}/ws/echo&count=2");
    let add = || run(pair.client.command("curl"), &[&url, "--data", &form]);
    assert_eq!(add().paths(), ("/clients/1".to_owned(), 2));
    let connected = format!("{url}?state=connected");
    until("both are connected", || run(pair.client.command("curl"), &[&connected]).paths().1 == 2);
    fs::write(Path::new(&hosts), "10.77.0.2 target\n").unwrap();
    let refused = add();
    let why =
        format!("10.77.0.2:{port} is not allowed here; start the agent with --allow 10.77.0.2:{port}\n");
    assert_eq!((refused.status, refused.body), (403, why));
}

#[test]
fn an_agent_that_would_be_open_to_all_or_has_nothing_to_do_does_not_start() {
    let check = |args: &[&str], expected: &[&str]| {
        let ended = Program::start(&[&["agent"], args].concat()).end();
        assert_eq!((ended.status, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        for text in expected {
            assert!(ended.stderr.contains(text), "{text}: {}", ended.stderr);
        }
    };
    check(
        &[],
        &["nothing to do: use --nats URL to join a fleet, --listen ADDR to be controlled by curl, or both"],
    );
    let fix = "--listen: without --token-file only loopback is allowed; use 127.0.0.1:9001: 0.0.0.0:9001";
    check(&["--listen", "0.0.0.0:9001"], &[fix]);
    check(
        &[
            "--listen",
            "here",
            "--token-file",
            "/no/such/file",
            "--max-connections",
            "0",
            "--max-rate",
            "0",
            "--allow",
            "a:b",
            "--allow",
            "10.0.0.0/33",
            "--nats-creds",
            "/nope",
            "--nats-ca",
            "/nope",
        ],
        &[
            "--listen: \"here\" is not an address; use 127.0.0.1:9001",
            "--token-file: /no/such/file: ",
            "--max-connections: \"0\" allows nothing; use 20k",
            "--max-rate: \"0\" is not a rate greater than 0; use 1k/s",
            "--allow: \"a:b\" is not a host, host:port or network",
            "--allow: \"10.0.0.0/33\" is not a network: the prefix is at most 32",
            "--nats-creds: requires --nats",
            "--nats-ca: requires --nats",
        ],
    );
    let agent = start(&[]);
    let taken = agent.url.trim_start_matches("http://");
    let ended = Program::start(&["agent", "--listen", taken]).end();
    assert_eq!(ended.status, Some(3), "{ended:?}");
    assert!(
        ended.stderr.contains(&format!("--listen {taken}: address in use: another process")),
        "{ended:?}"
    );
}

#[test]
fn runs_of_a_fleet_and_clients_share_the_caps() {
    let (fleet, server) = (joined("clients-caps", 0), Serving::start(&["--threads", "1"]));
    let agent = start(&["--nats", &fleet.url(), "--max-connections", "100"]);
    until("it has joined", || agent.program.stdout().contains("agent "));
    let run = |connections: &str| {
        let args = [
            "run",
            &server.url("/"),
            "--fleet",
            &fleet.url(),
            "-c",
            connections,
            "--think",
            "50ms",
            "-d",
            "1s",
        ];
        Program::start(&args).end()
    };
    let refused = |connections: &str, why: &str| {
        let ended = run(connections);
        assert_eq!(ended.status, Some(3), "{ended:?}");
        assert!(ended.stderr.contains(why), "{ended:?}");
    };
    refused("101", "all agents together can take 100 of 101 connections: ");
    assert_eq!(agent.add(&format!("ws={}&count=60", echo(&server))).status, 200);
    agent.wait_for_connected(60);
    refused("50", "all agents together can take 40 of 50 connections: ");
    run("40").assert_status(0);
    // What the run held is free again.
    assert_eq!(agent.add(&format!("ws={}&count=40", echo(&server))).status, 200);
}
