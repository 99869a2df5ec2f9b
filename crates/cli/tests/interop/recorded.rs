//! The same request over HTTP/1.1 and HTTP/2, with TLS and without: what a server has received of each form is compared.

use std::fs;

use crate::{
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

#[test]
fn a_request_is_the_same_over_every_version() {
    let folder = folder("recorded");
    let tls = self_signed(&folder, ECDSA);
    let (log, body) = (folder.join("log"), folder.join("body"));
    fs::write(
        &body,
        (0..3 << 20).map(|at: u32| (at.wrapping_mul(0x9e37_79b1) >> 24) as u8).collect::<Vec<_>>(),
    )
    .unwrap();
    let [log_text, body] = [&log, &body].map(|path| path.to_str().unwrap());
    let args = [&source("node/recorder.js"), log_text, &tls.cert, &tls.key];
    let server = Server::announcing("http1 on ", program("node", &args));
    let output = server.program.stdout();
    let port = |before: &str| {
        output.split_once(before).and_then(|(_, rest)| rest.lines().next()).unwrap().to_owned()
    };
    let (plain, http2, secure) = (port("http1 on "), port("http2 on "), port("secure on "));
    for Form { name, path, args } in FORMS {
        let args: Vec<&str> = args.iter().map(|arg| if *arg == "BODY" { body } else { arg }).collect();
        let received = |scheme: &str, port: &str, version: &[&str]| {
            fs::write(&log, "").unwrap();
            let url = format!("{scheme}://127.0.0.1:{port}{path}");
            let args = [&["-c", "1", "-n", "2", "--seed", "7"], version, &args[..]].concat();
            let (ended, s) = run(&url, &args);
            ended.assert_status(0);
            assert_eq!(s.count("requests.answered"), 2, "{name}: {}", ended.stderr);
            fs::read_to_string(&log).unwrap()
        };
        let expected = received("http", &plain, &[]);
        assert_eq!(expected.lines().count(), 2, "{name}: {expected}");
        assert_eq!(received("https", &secure, &["-k"]), expected, "{name}: HTTP/1.1 over TLS");
        assert_eq!(received("http", &http2, &["--http2"]), expected, "{name}: HTTP/2");
        assert_eq!(received("https", &secure, &["-k", "--http2"]), expected, "{name}: HTTP/2 over TLS");
        let says_length = !matches!(name, "a GET" | "a HEAD with fields" | "a DELETE");
        assert_eq!(expected.contains("content-length"), says_length, "{name}: {expected}");
    }
}
