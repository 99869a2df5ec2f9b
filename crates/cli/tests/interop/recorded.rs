//! The same request over HTTP/1.1 and HTTP/2, with TLS and without: what a server has received of each form is compared.

use std::{fs, process::Command};

use serde_json::Value;

use crate::{
    program::Program,
    secured::certificates::{ECDSA, self_signed},
    server::{Server, folder, program, source},
    summary::run,
};

/// One form of requests: options, the steps of a scenario where it needs them.
struct Form {
    name: &'static str,
    path: &'static str,
    args: &'static [&'static str],
}

const fn form(name: &'static str, path: &'static str, args: &'static [&'static str]) -> Form {
    Form { name, path, args }
}

const FORMS: [Form; 10] = [
    form("a GET", "/?a=1", &[]),
    form("a HEAD with fields", "/", &["-X", "HEAD", "-H", "X-A: 1", "-H", "x-b: two words"]),
    form("a DELETE", "/", &["-X", "DELETE"]),
    form("an empty POST", "/", &["-X", "POST"]),
    form("an empty PUT", "/", &["-X", "PUT", "-H", "Content-Type: text/plain"]),
    form("an empty PATCH", "/", &["-X", "PATCH"]),
    form("a text", "/", &["-X", "PUT", "--body", "{\"a\": [1, 2]}", "-H", "Content-Type: application/json"]),
    form(
        "variables",
        "/{seq}?r={rand 1 9999}",
        &["--body", "n={seq}&r={rand 1 9999}", "-H", "X-N: {rand 1 9}{seq}"],
    ),
    form("an expectation", "/{rand 1 9}", &["--body", "x", "--expect", "status=200,length=2"]),
    form("a body of 3 MiB", "/?n={seq}", &["-X", "POST", "--body-file", "BODY"]),
];

/// A server that records what it receives, and how each version reaches it: its name, the origin, arguments.
struct Recorder {
    _server: Server,
    log: String,
    versions: [(&'static str, String, &'static [&'static str]); 4],
    /// A file of 3 MiB.
    body: String,
}

impl Recorder {
    fn start(name: &str) -> Recorder {
        let folder = folder(name);
        let tls = self_signed(&folder, ECDSA);
        let [log, body] = ["log", "body"].map(|name| folder.join(name).to_str().unwrap().to_owned());
        let octet = |at: u32| (at.wrapping_mul(0x9e37_79b1) >> 24) as u8;
        fs::write(&body, (0..3 << 20).map(octet).collect::<Vec<_>>()).unwrap();
        let args = [&source("node/recorder.js"), &log[..], &tls.cert, &tls.key];
        let server = Server::announcing("http1 on ", program("node", &args));
        let output = server.program.stdout();
        let origin = |scheme: &str, before: &str| {
            let port = output.split_once(before).and_then(|(_, rest)| rest.lines().next()).unwrap();
            format!("{scheme}://127.0.0.1:{port}")
        };
        let secure = origin("https", "secure on ");
        let versions = [
            ("HTTP/1.1", origin("http", "http1 on "), &[][..]),
            ("HTTP/1.1 over TLS", secure.clone(), &["-k"]),
            ("HTTP/2", origin("http", "http2 on "), &["--http2"]),
            ("HTTP/2 over TLS", secure, &["-k", "--http2"]),
        ];
        Recorder { _server: server, log, versions, body }
    }

    /// What the server receives of a run that has two responses, which is the same over each version. `load`: what is run against an
    /// origin, and with which arguments.
    fn received(&self, name: &str, load: impl Fn(&str, &[&str]) -> (String, Vec<String>)) -> String {
        let mut expected = None;
        for (version, origin, own) in &self.versions {
            fs::write(&self.log, "").unwrap();
            let (what, args) = load(origin, own);
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let (ended, s) = run(&what, &[&["--seed", "7"], &args[..]].concat());
            ended.assert_status(0);
            assert_eq!(s.count("requests.answered"), 2, "{name}: {}", ended.stderr);
            let received = fs::read_to_string(&self.log).unwrap();
            assert_eq!(&received, expected.get_or_insert_with(|| received.clone()), "{name}: {version}");
        }
        expected.expect("there are versions")
    }
}

#[test]
fn a_request_is_the_same_over_every_version() {
    let recorder = Recorder::start("recorded");
    for Form { name, path, args } in FORMS {
        let received = recorder.received(name, |origin, own| {
            let args = args.iter().map(|arg| if *arg == "BODY" { &recorder.body } else { *arg });
            let all = ["-c", "1", "-n", "2"].into_iter().chain(own.iter().copied()).chain(args);
            (format!("{origin}{path}"), all.map(str::to_owned).collect())
        });
        assert_eq!(received.lines().count(), 2, "{name}: {received}");
        let says_length = !matches!(name, "a GET" | "a HEAD with fields" | "a DELETE");
        assert_eq!(received.contains("content-length"), says_length, "{name}: {received}");
    }
}

/// A redirect with status 307 keeps the method and the body (RFC 9110, section 15.4.8).
#[test]
fn a_redirect_takes_the_body_with_it() {
    let recorder = Recorder::start("redirected");
    let file = folder("redirects").join("scenario.toml");
    let received = recorder.received("a redirect", |origin, own| {
        let (body, is_http2) = (&recorder.body, own.contains(&"--http2"));
        let insecure = if own.contains(&"-k") { "insecure = true" } else { "" };
        let text = format!(
            "target = \"{origin}/\"\n{insecure}\n[[population]]\nname = \"a\"\nconnections = 1\nrequests = 2\nhttp2 = {is_http2}\n\
             [[population.step]]\nrequest = \"POST /from\"\nbody-file = \"{body}\"\nredirects = 1\n"
        );
        fs::write(&file, text).unwrap();
        (file.to_str().unwrap().to_owned(), Vec::new())
    });
    let lines: Vec<Value> = received.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let urls: Vec<&str> = lines.iter().map(|line| line["url"].as_str().unwrap()).collect();
    assert_eq!(urls, ["/from", "/to", "/from", "/to"]);
    for line in &lines {
        assert_eq!((&line["method"], &line["body"]), (&lines[0]["method"], &lines[0]["body"]), "{line}");
        assert_eq!((&line["method"], &line["body"]["length"]), (&"POST".into(), &(3 << 20).into()), "{line}");
    }
}

/// The last line's command sends what throng has sent: run by a shell.
#[test]
fn the_command_that_is_offered_speaks_the_same_version() {
    let recorder = Recorder::start("offered");
    let forms: [(&str, &[&str]); 3] = [
        ("/?a=[1]", &["-H", "X-A: it's \"$5\""]),
        ("/", &["-X", "PUT"]),
        ("/", &["--body-file", &recorder.body, "-H", "Content-Type: text/plain"]),
    ];
    for (version, origin, own) in &recorder.versions {
        for (path, args) in forms {
            fs::write(&recorder.log, "").unwrap();
            let wrong = ["-c", "1", "-n", "1", "--expect", "status=404"];
            let (ended, s) = run(&format!("{origin}{path}"), &[&wrong, *own, args].concat());
            ended.assert_status(1);
            let fix = s.text("limit.cure");
            let (_, command) =
                fix.split_once("reproduce it with: ").unwrap_or_else(|| panic!("{version}: {fix}"));
            let mut shell = Command::new("sh");
            shell.args(["-c", command]).env("HOME", "/nonexistent").env("X_A", "it's \"$5\"");
            Program::from(shell).end().assert_status(0);
            let received = fs::read_to_string(&recorder.log).unwrap();
            let lines: Vec<&str> = received.lines().collect();
            assert_eq!(lines.len(), 2, "{version}: {command}: {received}");
            assert_eq!(lines[0], lines[1], "{version}: {command}");
        }
    }
}
