//! gRPC: `throng run` against grpcio's server, and `throng serve` as grpcurl sees it.

use std::fs;

use serde_json::Value;

use crate::{
    go,
    http2::nginx,
    program::{Program, Serving, Signal, throng, until},
    right,
    secured::certificates::{ECDSA, self_signed},
    server::{PYTHON, Server, folder, program, source},
    summary::run,
};

/// A server, and the arguments that a client needs to trust it.
struct Grpcio {
    server: Server,
    scheme: &'static str,
    trust: Vec<String>,
}

impl Grpcio {
    fn plain() -> Grpcio {
        Grpcio { server: start(&[]), scheme: "grpc", trust: Vec::new() }
    }

    fn secured(name: &str) -> Grpcio {
        let files = self_signed(&folder(&format!("grpc-{name}")), ECDSA);
        let server = start(&[&files.cert, &files.key]);
        Grpcio { server, scheme: "grpcs", trust: vec!["--cacert".to_owned(), files.cert] }
    }

    fn url(&self, method: &str) -> String {
        format!("{}://{}/test.Test/{method}", self.scheme, self.server.address)
    }

    /// Arguments, with those that make it trusted.
    fn args<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        args.iter().copied().chain(self.trust.iter().map(String::as_str)).collect()
    }

    /// The calls that it took, and the messages that it sent.
    fn end(self) -> (u64, u64) {
        self.server.program.signal(Signal::TERM);
        let ended = self.server.program.end();
        let line = ended.stdout.lines().last().unwrap_or_else(|| panic!("{ended:?}"));
        let numbers: Vec<u64> = line.split(' ').map(|n| n.parse().unwrap()).collect();
        (numbers[0], numbers[1])
    }
}

fn start(args: &[&str]) -> Server {
    let file = source("python/grpc_server.py");
    Server::announcing("listening on ", program(PYTHON, &[&["-B", "-u", &file], args].concat()))
}

/// A file with this message.
fn message(name: &str, text: &str) -> String {
    let path = folder(&format!("grpc-message-{name}")).join("message");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn both_ends_count_the_same_unary_calls() {
    let file = message("unary", "Hello World!");
    for (server, args) in [
        (Grpcio::plain(), &["-c", "10", "-n", "500"][..]),
        (Grpcio::plain(), &["-c", "4", "-n", "500", "--streams", "5"]),
        (Grpcio::plain(), &["-c", "10", "-n", "100", "--think", "20ms..60ms"]),
        (Grpcio::secured("unary"), &["-c", "4", "-n", "500", "--streams", "3"]),
    ] {
        let args = [args, &["--body-file", &file, "--expect", "length=12"]].concat();
        let s = right::check_kept(&server.url("Say"), &server.args(&args), 12);
        let answered = s.count("requests.answered");
        assert_eq!(s.count("requests.status.OK"), answered, "{args:?}");
        assert_eq!((s.count("requests.messages"), s.count("gap_us.count")), (answered, 0), "{args:?}");
        assert_eq!(server.end(), (answered, answered), "{args:?}");
    }
}

/// Longer than any window, and than what is sent at once.
#[test]
fn a_long_message_comes_back_whole() {
    const LENGTH: u64 = 3 << 20;
    let file = message("long", &"0123456789abcdef".repeat(LENGTH as usize / 16));
    for server in [Grpcio::plain(), Grpcio::secured("long")] {
        let length = format!("length={LENGTH}");
        let args = ["-c", "2", "-n", "20", "--streams", "2", "--body-file", &file, "--expect", &length];
        right::check_kept(&server.url("Say"), &server.args(&args), LENGTH);
        assert_eq!(server.end(), (20, 20));
    }
}

/// Each connection makes a call, and then none for longer than the run lasts.
#[test]
fn pings_keep_connections_alive_beside_calls() {
    let file = message("alive", "Hello World!");
    let idle = ["-c", "10", "--think", "1m", "--body-file", &file, "--ping", "100ms"];
    let server = Grpcio { server: start(&["--pings"]), scheme: "grpc", trust: Vec::new() };
    let s = right::check(&server.url("Say"), &[&idle[..], &["-d", "1500ms"]].concat());
    assert_eq!((s.count("connections.held"), s.count("requests.status.OK")), (10, 10));
    let acknowledged = s.count("ping_rtt_us.count");
    assert!(acknowledged >= 10 * 5 && s.number("ping_rtt_us.p50") > 0.0, "{:#}", s.at("ping_rtt_us"));
    assert_eq!(server.end(), (10, 10));
    // By its defaults they are too many (`too_many_pings`): it ends each connection with a GOAWAY.
    let strict = Grpcio::plain();
    let args = [&idle[..], &["-d", "10s"]].concat();
    let s = right::check_lost(&strict.url("Say"), &args, "target·hold·closed", "closed", 10);
    let sentence = "the target ended 10 connections with an error (GOAWAY, ENHANCE_YOUR_CALM)";
    assert_eq!(s.text("limit.sentence"), sentence);
    assert!(s.text("limit.cure").contains("ping less often than the server allows"), "{}", s.at("limit"));
    assert_eq!(strict.end(), (10, 10));
}

/// A scenario in which each connection makes one call.
fn one_call_each(name: &str, url: &str, body: &str, further: &str) -> String {
    let folder = folder(&format!("grpc-scenario-{name}"));
    fs::write(folder.join("message.bin"), body).unwrap();
    let path = folder.join("calls.toml");
    let text = format!(
        "target = {url:?}\nduration = \"1500ms\"\nserver-streaming = true\n{further}\n\
        [[population]]\nname = \"one\"\nconnections = 20\nloop = false\n\
        [[population.step]]\nrequest = \"/test.Test/Watch\"\nbody-file = \"message.bin\"\n"
    );
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn messages_of_streams_are_counted_and_timed() {
    for server in [Grpcio::plain(), Grpcio::secured("streams")] {
        let trust = server.trust.get(1).map_or(String::new(), |file| format!("cacert = {file:?}"));
        let scenario = one_call_each(server.scheme, &server.url("Watch"), "5 50", &trust);
        let s = right::check(&scenario, &[]);
        assert_eq!((s.count("requests.answered"), s.count("requests.status.OK")), (20, 20));
        // `message 1` has nine bytes.
        assert_eq!((s.count("requests.messages"), s.count("requests.body_bytes_in")), (100, 900));
        assert_eq!((s.count("gap_us.count"), s.count("first_byte_us.count")), (80, 20));
        // The server waits for at least so long; what came late and together is shorter.
        assert!(s.number("gap_us.mean") > 10_000.0, "{:#}", s.at("gap_us"));
        assert!(s.number("gap_us.mean") < s.number("ramp_latency_us.max"), "{:#}", s.at("gap_us"));
        assert_eq!(server.end(), (20, 100));
    }
}

#[test]
fn streams_are_held_for_the_whole_run() {
    for server in [Grpcio::plain(), Grpcio::secured("held")] {
        let file = message(&format!("held-{}", server.scheme), "0 50");
        let args = ["-c", "10", "--streams", "3", "-d", "1500ms", "--server-streaming", "--body-file", &file];
        let s = right::check(&server.url("Watch"), &server.args(&args));
        let messages = s.count("requests.messages");
        assert_eq!((s.count("connections.held"), s.count("connections.peak")), (10, 10));
        // They end with the load: no call has a result.
        assert_eq!((s.count("requests.sent"), s.count("requests.answered")), (0, 0));
        assert_eq!(s.count("first_byte_us.count"), 30);
        // A silence at the end that is longer than any before counts as well.
        let gaps = s.count("gap_us.count");
        assert!((messages - 30..=messages).contains(&gaps), "{gaps} of {messages}");
        let (calls, sent) = server.end();
        assert_eq!(calls, 30);
        // The server counts what it has sent: of each stream one may be on its way.
        assert!(messages > 60 && sent + 30 >= messages, "{messages} of {sent}");
    }
}

#[test]
fn statuses_are_counted_by_their_names() {
    let server = Grpcio::plain();
    let file = message("fail", "14");
    let args = ["-c", "5", "-d", "300ms", "--think", "20ms", "--body-file", &file];
    let s = right::check_wrong(&server.url("Fail"), &args, "wrong-status");
    assert_eq!(s.count("requests.status.UNAVAILABLE"), s.count("requests.answered"));
    let expected = [&args[..], &["--expect", "status=UNAVAILABLE"]].concat();
    let again = right::check(&server.url("Fail"), &expected);
    assert_eq!(again.count("requests.status.UNAVAILABLE"), again.count("requests.answered"));
    let none = right::check_wrong(&server.url("Nothing"), &args, "wrong-status");
    assert_eq!(none.count("requests.status.UNIMPLEMENTED"), none.count("requests.answered"));
    let (calls, messages) = server.end();
    assert_eq!((calls, messages), (s.count("requests.answered") + again.count("requests.answered"), 0));
}

#[test]
fn a_server_that_ends_takes_its_streams_with_it() {
    let server = Grpcio::plain();
    let file = message("ends", "0 10");
    let args = ["run", &server.url("Watch"), "-c", "4", "--streams", "2", "-d", "1m"];
    let further = ["--server-streaming", "--body-file", &file, "--json", "-", "--live", "line"];
    let mut client = Program::from(throng(&[&args[..], &further].concat()));
    client.wait_for("open 4 of 4");
    server.server.program.signal(Signal::KILL);
    // With nothing left to do, it ends before its time.
    let ended = client.end();
    let s: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}"));
    assert_eq!((&s["connections"]["dropped"], &s["verdict"]), (&4.into(), &"fail".into()), "{ended:?}");
    // Each call that was open is a request that failed.
    let faults = s["faults"].as_array().unwrap();
    let lost: u64 = faults.iter().filter_map(|fault| fault["count"].as_u64()).sum();
    assert_eq!((lost, &s["requests"]["sent"]), (8, &8.into()), "{ended:?}");
    assert!(
        faults.iter().all(|fault| fault["side"] == "target" && fault["stage"] == "exchange"),
        "{ended:?}"
    );
    assert!(s["requests"]["messages"].as_u64().unwrap() >= 8, "{ended:?}");
}

#[test]
fn grpcurl_calls_serve() {
    let grpcurl = go::program("grpcurl");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../serve");
    for (serve, kind) in [(&[][..], "-plaintext"), (&["--tls"], "-insecure")] {
        let server = Serving::start(serve);
        let call = |method: &str, message: &str| {
            let address = server.address.to_string();
            let args = [
                kind,
                "-max-time",
                "20",
                "-import-path",
                folder,
                "-proto",
                "echo.proto",
                "-format",
                "text",
                "-d",
                message,
                &address,
                method,
            ];
            Program::from(program(&grpcurl, &args)).end()
        };
        let said = call("throng.Echo/Say", "text: \"über\"");
        assert_eq!((said.status, said.stdout.trim()), (Some(0), "text: \"\\303\\274ber\""), "{said:?}");
        let watched = call("throng.Echo/Watch", "count: 3 interval_ms: 1 text: \"x\"");
        assert_eq!(
            (watched.status, watched.stdout.matches("text: \"x\"").count()),
            (Some(0), 3),
            "{watched:?}"
        );
        let failed = call("throng.Echo/Fail", "code: 5 message: \"100 % gone\"");
        // grpcurl's status is 64 and the code.
        assert_eq!(failed.status, Some(64 + 5), "{failed:?}");
        assert!(failed.stderr.contains("NotFound") && failed.stderr.contains("100 % gone"), "{failed:?}");
    }
}

#[test]
fn serve_ends_the_streams_when_it_stops() {
    let grpcurl = go::program("grpcurl");
    let server = Serving::start(&[]);
    let address = server.address.to_string();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../serve");
    let file = ["-plaintext", "-max-time", "60", "-import-path", folder, "-proto", "echo.proto"];
    let what = ["-d", r#"{"interval_ms": 5, "text": "x"}"#, &address, "throng.Echo/Watch"];
    let watching = Program::from(program(&grpcurl, &[&file[..], &what].concat()));
    until("a message has come", || watching.stdout().contains("x"));
    server.program.signal(Signal::TERM);
    let watched = watching.end();
    assert_eq!(watched.status, Some(64 + 14), "UNAVAILABLE: {watched:?}");
    server.program.end().assert_status(0);
}

/// The descriptors that grpcurl makes of the service of `serve`.
#[test]
fn messages_are_json_for_a_protoset() {
    let grpcurl = go::program("grpcurl");
    let folder = folder("grpc-protoset");
    let protoset = folder.join("echo.protoset").to_str().unwrap().to_owned();
    let proto = concat!(env!("CARGO_MANIFEST_DIR"), "/../serve");
    let args = ["-import-path", proto, "-proto", "echo.proto", "-protoset-out", &protoset, "describe"];
    Program::from(program(&grpcurl, &args)).end().assert_status(0);
    let server = Serving::start(&[]);
    let url = |method: &str| format!("grpc://{}/throng.Echo/{method}", server.address);
    let with = |args: &[&str], message: &str| {
        let own = ["-c", "5", "-n", "100", "--protoset", &protoset, "--body", message];
        [args, &own].concat().iter().map(|arg| (*arg).to_owned()).collect::<Vec<String>>()
    };
    let check = |method: &str, args: &[&str], message: &str| {
        let args = with(args, message);
        right::check(&url(method), &args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    // A tag, a length and the text.
    let s = check("Say", &["--expect", "length=7"], r#"{"text": "hello"}"#);
    assert_eq!(s.count("requests.messages"), s.count("requests.answered"));
    // It is known to stream.
    let s = check("Watch", &[], r#"{"count": 3, "intervalMs": 1}"#);
    assert_eq!((s.count("requests.answered"), s.count("gap_us.count")), (100, 200));
    let s = check("Fail", &["--expect", "status=7"], r#"{"code": 7}"#);
    assert_eq!(s.count("requests.status.PERMISSION_DENIED"), s.count("requests.answered"));
    for (method, message, why) in [
        ("Nothing", "{}", "throng.Echo has no such method; it has Say, Watch, Fail"),
        ("Say", r#"{"code": 7}"#, "not a valid throng.Message message: "),
    ] {
        let args = with(&["run", &url(method)], message);
        let ended = Program::from(throng(&args.iter().map(String::as_str).collect::<Vec<_>>())).end();
        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(why), "{ended:?}");
    }
}

/// nginx knows nothing of gRPC here.
#[test]
fn statuses_of_http_are_shown_as_what_they_are() {
    let server = nginx("grpc", "location = /busy/Service { return 503; }");
    let url = |path: &str| format!("grpc://{}{path}", server.address);
    let args = ["-c", "3", "-d", "200ms", "--think", "20ms"];
    let s = right::check_wrong(&url("/busy/Service"), &args, "wrong-status");
    assert_eq!(s.count("requests.status.503"), s.count("requests.answered"));
    // What gRPC makes of it can be expected.
    let s = right::check(&url("/busy/Service"), &[&args[..], &["--expect", "status=UNAVAILABLE"]].concat());
    assert_eq!(s.count("requests.status.503"), s.count("requests.answered"));
    // A response of 200 needs a status of gRPC, and messages where it has a body.
    let (ended, s) = run(&url("/any/thing"), &args);
    let [(fault, count)] = &s.faults()[..] else { panic!("{ended:?}") };
    assert_eq!(
        (fault.as_str(), *count),
        ("target·exchange·bad-answer", s.count("requests.sent")),
        "{ended:?}"
    );
    assert_eq!((s.count("requests.answered"), s.count("connections.dropped")), (0, 0), "{ended:?}");
}
