//! The scenario files of sub-protocols over WebSocket, each against a real server of it, with its load and times made smaller.

use std::{fs, net::SocketAddr, path::Path};

use crate::{
    program::{skip, until},
    right::check,
    server::{Server, fetch, folder, program, source},
    summary::Summary,
};

/// Runs a file of `scenarios/` against this address, with parts of it replaced; no fault, and every request has its response.
fn run(name: &str, address: SocketAddr, changes: &[(&str, &str)], args: &[&str]) -> Summary {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name);
    let mut text = fs::read_to_string(path).unwrap();
    let given = text.split("ws://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    text = text.replace(&given, &address.to_string()).replace("1s..3s", "100ms..300ms");
    for (from, to) in changes {
        assert!(text.contains(from), "{name}: {from}");
        text = text.replace(from, to);
    }
    let file = folder(&format!("sub-{}", name.replace('.', "-"))).join(name);
    fs::write(&file, text).unwrap();
    let s = check(file.to_str().unwrap(), &[&["-c", "20"], args].concat());
    assert_eq!(s.count("requests.sent"), s.count("requests.answered"), "{:#}", s.0);
    assert_eq!((s.count("connections.held"), s.count("connections.redialled")), (20, 0));
    s
}

fn node(name: &str) -> Server {
    Server::announcing("listening on ", program("node", &[&source(&format!("node/{name}"))]))
}

fn counts(server: &Server) -> serde_json::Value {
    let text = fetch(&server.url("/counts"));
    serde_json::from_str(text.rsplit("\r\n\r\n").next().unwrap()).unwrap()
}

/// Messages have dates of this host's clock, which servers round down to a millisecond, and numbers of which none is missing. How many
/// there are in the time depends on the processors that the server gets: each of the twenty users has some.
fn check_pushes(s: &Summary) {
    let count = |name: &str| s.count(&format!("pushes.{name}"));
    assert!(count("numbered") >= 20 * 3, "{:#}", s.at("pushes"));
    assert_eq!((count("lost"), count("duplicates"), count("out_of_order"), count("restarts")), (0, 0, 0, 0));
    assert_eq!(
        (s.count("delay_us.count"), s.at("pushes.clock_offset_us").as_f64()),
        (count("numbered"), Some(0.0))
    );
    // A date that was read in other units, or as another's, would be years away.
    assert!(s.number("delay_us.p50") < 60e6, "{:#}", s.at("delay_us"));
}

#[test]
fn socket_io() {
    let server = node("socketio_server.js");
    // The server sends a ping 200 ms after the answer to the one before, and none to a user who does not answer.
    let s = run("socket-io.toml", server.address, &[], &["-d", "3s"]);
    check_pushes(&s);
    assert!(s.count("pushes.complete") >= 3, "of 30 broadcasts in 3 s: {:#}", s.at("pushes"));
    // Each has answered a second one.
    assert!(s.count("requests.told") >= 20 * 2, "{:#}", s.at("requests"));
    let counts = counts(&server);
    assert_eq!(counts["connections"], 20);
    // Of those who said something, each has joined before.
    assert_eq!(counts["said"].as_u64().unwrap() + 2 * 20, s.count("requests.sent"), "{counts}");
    assert!(counts["disconnects"].get("ping timeout").is_none(), "{counts}");
}

#[test]
fn graphql_over_websocket() {
    let server = node("graphql_server.js");
    let s = run("graphql-ws.toml", server.address, &[], &["-d", "3s"]);
    // Each has a subscription of its own, with a message each 50 ms.
    check_pushes(&s);
    let steps = s.at("populations.users.steps");
    assert!(steps["query"]["latency_us"]["count"].as_u64().unwrap() >= 20 * 2, "{steps:#}");
}

#[test]
fn phoenix_channels() {
    let server = node("phoenix_server.js");
    // What stands in for Phoenix speaks as Phoenix does, as far as its own client knows.
    let port = server.address.port().to_string();
    let client =
        crate::program::Program::from(program("node", &[&source("node/phoenix_client.js"), &port])).end();
    assert_eq!((client.status, client.stdout.as_str()), (Some(0), "done hello true\n"), "{client:?}");
    let before = counts(&server);
    // The server closes a connection without a heartbeat after two seconds.
    let s = run("phoenix.toml", server.address, &[("\"30s\"\nsend", "\"200ms\"\nsend")], &["-d", "3s"]);
    check_pushes(&s);
    let grown = |name: &str| counts(&server)[name].as_u64().unwrap() - before[name].as_u64().unwrap();
    // The server may still have to read the last ones.
    until("all heartbeats are read", || grown("heartbeats") >= s.count("requests.told"));
    assert_eq!(grown("heartbeats"), s.count("requests.told"));
    assert_eq!((grown("connections"), grown("joins"), grown("timeouts")), (20, 20, 0));
    assert_eq!(grown("messages") + 20, s.count("requests.sent"));
    // One for each 200 ms of the 3 s at full load, which throng sends in time; fewer where the server does not read.
    assert!(grown("heartbeats") >= 20 * 5, "{}", counts(&server));
}

#[test]
fn action_cable() {
    let (rackup, bind) = (source("ruby/cable.ru"), |at: SocketAddr| format!("tcp://{at}"));
    let server = Server::at(|at| {
        program("/usr/bin/puma", &["-e", "production", "-t", "4:16", "-b", &bind(at), &rackup])
    });
    let s = run("action-cable.toml", server.address, &[], &["-d", "5s"]);
    check_pushes(&s);
    assert!(s.count("pushes.complete") >= 3, "{:#}", s.at("pushes"));
    // A ping each 3 s, which is neither a response nor lacks what is looked for.
    assert!(s.count("pushes.count") > s.count("pushes.numbered"), "{:#}", s.at("pushes"));
    assert_eq!(s.count("pushes.unread"), 0);
}

/// RabbitMQ with its plugin for STOMP over WebSocket at this address. Erlang's port mapper outlives whoever starts it: a PID namespace ends
/// with the server.
fn rabbitmq(at: SocketAddr) -> std::process::Command {
    let home = folder(&format!("rabbitmq-{}", at.port()));
    let path = |name: &str| home.join(name).to_str().unwrap().to_owned();
    fs::write(path("plugins"), "[rabbitmq_web_stomp].").unwrap();
    let port = at.port();
    let config = format!("web_stomp.tcp.ip = {}\nweb_stomp.tcp.port = {port}\n", at.ip());
    fs::write(path("rabbitmq.conf"), config).unwrap();
    // No other protocol: AMQP's listener and plain STOMP's would need ports of their own.
    fs::write(
        path("advanced.config"),
        "[{rabbit, [{tcp_listeners, []}]}, {rabbitmq_stomp, [{tcp_listeners, []}]}].",
    )
    .unwrap();
    let own = ["--pid", "--fork", "--kill-child", "--mount-proc", "/usr/lib/rabbitmq/bin/rabbitmq-server"];
    let mut command = program("unshare", &own);
    let mapper = crate::server::free_place().port();
    command.env("HOME", &home).env("ERL_EPMD_PORT", mapper.to_string()).env("ERL_EPMD_ADDRESS", "127.0.0.1");
    command
        .env("RABBITMQ_NODENAME", format!("throng{port}@localhost"))
        .env("RABBITMQ_MNESIA_BASE", path("data"));
    command.env("RABBITMQ_LOG_BASE", path("log")).env("RABBITMQ_ENABLED_PLUGINS_FILE", path("plugins"));
    command
        .env("RABBITMQ_CONFIG_FILE", path("rabbitmq"))
        .env("RABBITMQ_ADVANCED_CONFIG_FILE", path("advanced.config"));
    command.env("RABBITMQ_DIST_PORT", crate::server::free_place().port().to_string());
    command
}

#[test]
fn stomp() {
    if !rustix::process::geteuid().is_root() {
        return skip("a PID namespace needs root");
    }
    let server = Server::at(rabbitmq);
    let faster =
        [("5s..10s", "100ms..300ms"), ("5000,5000", "2000,2000"), ("every = \"5s\"", "every = \"200ms\"")];
    let s = run("stomp.toml", server.address, &faster, &["-d", "4s"]);
    // Each message reaches all twenty, and none but the last ones is on its way at the end; the server closes a connection without a
    // heartbeat.
    let sent = s.count("requests.sent") - 2 * 20;
    assert!(sent >= 20, "{sent}");
    assert!(s.count("pushes.count") >= 5 * sent, "{sent} sent: {:#}", s.at("pushes"));
    assert!(s.count("requests.told") >= 20 * 5, "{:#}", s.at("requests"));
}
