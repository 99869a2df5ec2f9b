//! `throng run` against other servers with TLS: HAProxy, Node, Python, Java, OpenSSL.

use std::{fs, process::Stdio};

use super::certificates::{ECDSA, Files, RSA, key_store, self_signed};
use crate::{
    jvm::CHEAP,
    program::{Program, Signal, until},
    right::{self, LOOPS},
    server::{PYTHON, Server, fetch, folder, program, source},
};

fn url(scheme: &str, server: &Server, path: &str) -> String {
    format!("{scheme}://{}{path}", server.address)
}

/// A closed loop, and one with think time, on kept connections.
fn check_kept(target: &str, files: &Files) {
    for args in LOOPS {
        right::check_kept(target, &[args, &["--cacert", &files.cert]].concat(), 12);
    }
}

/// Echoes of these messages on kept connections.
fn check_echoes(target: &str, files: &Files) {
    let long = "x".repeat(65_536);
    for message in ["hello", &long] {
        let args = ["-c", "20", "-d", "1s", "--ping", "150ms", "--message", message, "--cacert", &files.cert];
        let s = right::check(target, &args);
        let (sent, answered) = (s.count("requests.sent"), s.count("requests.answered"));
        assert_eq!((answered, s.count("connections.held")), (sent, 20), "{target}");
        assert!(sent >= 40, "{sent}");
    }
}

#[test]
fn haproxy_ends_tls_for_another() {
    let behind = crate::nginx::nginx(
        "behind-secured-haproxy",
        "keepalive_requests 1000000; location / { return 200 'Hello World!'; }",
    );
    let folder = folder("secured-haproxy");
    let files = self_signed(&folder, ECDSA);
    let both = folder.join("both.pem");
    fs::write(&both, fs::read_to_string(&files.cert).unwrap() + &fs::read_to_string(&files.key).unwrap())
        .unwrap();
    let path = folder.join("haproxy.cfg");
    for versions in ["ssl-min-ver TLSv1.3", "ssl-max-ver TLSv1.2"] {
        let server = Server::at(|address| {
            let text = format!(
                "global\n maxconn 1000\n\
                 defaults\n mode http\n timeout connect 2s\n timeout client 20s\n timeout server 20s\n\
                 frontend front\n bind {address} ssl crt {} {versions}\n default_backend back\n\
                 backend back\n server one {}\n",
                both.display(),
                behind.address
            );
            fs::write(&path, text).unwrap();
            program("haproxy", &["-db", "-f", path.to_str().unwrap()])
        });
        check_kept(&url("https", &server, "/"), &files);
    }
}

#[test]
fn node_https_and_ws() {
    let folder = folder("secured-node");
    let files = self_signed(&folder, RSA);
    let start = |name: &str| {
        Server::announcing("listening on ", program("node", &[&source(name), &files.cert, &files.key]))
    };
    let server = start("node/http_server.js");
    check_kept(&url("https", &server, "/"), &files);
    let s = right::check(
        &url("https", &server, "/close"),
        &["-c", "10", "-n", "60", "--think", "50ms", "--cacert", &files.cert],
    );
    assert_eq!(s.count("connections.closed"), s.count("requests.sent"));
    let body = fetch(&url("https", &server, "/counts"));
    assert!(body.contains("\"requests\":"), "{body}");
    let server = start("node/ws_server.js");
    check_echoes(&url("wss", &server, "/echo"), &files);
}

#[test]
fn python_uvicorn_and_websockets() {
    let folder = folder("secured-python");
    let files = self_signed(&folder, ECDSA);
    let server = crate::python::uvicorn(&["--ssl-certfile", &files.cert, "--ssl-keyfile", &files.key]);
    check_kept(&url("https", &server, "/"), &files);
    check_echoes(&url("wss", &server, "/"), &files);
    let args = [&source("python/echo.py"), "5", &files.cert, &files.key];
    let server = Server::announcing("listening on ", program(PYTHON, &args));
    check_echoes(&url("wss", &server, "/"), &files);
}

#[test]
fn java_https_server() {
    let folder = folder("secured-java");
    let files = self_signed(&folder, RSA);
    let store = key_store(&folder, &files);
    let file = source("java/Hello.java");
    let args = [&CHEAP[..], &["-Xmx128m", &file, &store]].concat();
    let server = Server::announcing("listening on 127.0.0.1:", program("java", &args));
    for versions in ["1.3", "1.2"] {
        // Each of its few threads waits for the first request of a connection: none may wait for the others.
        let load = ["-c", "20", "-d", "1s", "--think", "20ms..60ms"];
        let args = [&load[..], &["--cacert", &files.cert, "--tls", versions]].concat();
        right::check_kept(&url("https", &server, "/"), &args, 12);
    }
}

/// OpenSSL's own server, which serves one connection at a time and closes it after its response.
fn s_server(files: &Files, args: &[&str]) -> Server {
    Server::at(|address| {
        let begin = ["s_server", "-accept", &address.to_string(), "-key", &files.key, "-cert", &files.cert];
        program("openssl", &[&begin, args].concat())
    })
}

#[test]
fn openssl_closes_after_each_response() {
    let folder = folder("secured-openssl");
    let files = self_signed(&folder, ECDSA);
    for version in ["-tls1_2", "-tls1_3"] {
        let server = s_server(&files, &["-www", version]);
        let args = ["-c", "1", "-n", "5", "--think", "50ms", "--cacert", &files.cert];
        let s = right::check(&url("https", &server, "/"), &args);
        assert_eq!(s.count("requests.answered"), 5, "{version}");
    }
}

#[test]
fn a_key_update_of_openssl_is_followed() {
    let folder = folder("secured-openssl-keys");
    let files = self_signed(&folder, ECDSA);
    let address = crate::server::free_place();
    // Into a pipe it prints line by line only if it is told to.
    let begin = ["-oL", "openssl", "s_server", "-accept", &address.to_string(), "-msg", "-tls1_3"];
    let mut command = program("stdbuf", &[&begin[..], &["-key", &files.key, "-cert", &files.cert]].concat());
    command.stdin(Stdio::piped());
    let mut server = Program::from(command);
    until("it listens", || server.stdout().contains("ACCEPT"));
    let target = format!("tls://{address}");
    let args = ["run", &target, "-c", "1", "-d", "1m", "--cacert", &files.cert, "--json", "-"];
    let running = Program::start(&args);
    until("it is open", || server.stdout().contains("CIPHER is"));
    // With the request for one of ours, then without; each with data under the new key.
    for (n, command) in ["K\n", "k\n", "K\n"].into_iter().enumerate() {
        server.types(command);
        until(&format!("a KeyUpdate: {}", server.stdout()), || {
            server.stdout().matches(", KeyUpdate").count() > n
        });
        let records = |server: &Program| server.stdout().matches(">>> TLS 1.2, RecordHeader").count();
        let before = records(&server);
        server.types("hello\n");
        until("data", || records(&server) > before);
    }
    running.signal(Signal::INT);
    let ended = running.end();
    let s = crate::summary::Summary(serde_json::from_str(&ended.stdout).unwrap());
    assert_eq!((s.faults(), s.count("connections.held")), (Vec::new(), 1), "{}", ended.stderr);
}

/// A response that lasts until the connection ends.
#[test]
fn an_end_without_a_close_notify_is_no_end_of_a_response() {
    let folder = folder("secured-truncated");
    let files = self_signed(&folder, ECDSA);
    for version in ["TLSv1.2", "TLSv1.3"] {
        let args = [&source("python/until_close.py"), &files.cert, &files.key, version];
        let server = Server::announcing("listening on ", program(PYTHON, &args));
        let args = ["-c", "3", "-d", "300ms", "--think", "1m", "--cacert", &files.cert];
        let s = right::check(&url("https", &server, "/announced"), &args);
        assert_eq!((s.count("requests.answered"), s.count("requests.body_bytes_in")), (3, 36), "{version}");
        let (ended, s) = crate::summary::run(&url("https", &server, "/cut"), &args);
        ended.assert_status(1);
        assert_eq!(s.faults(), [("target·exchange·truncated".to_owned(), 3)], "{version}: {}", ended.stderr);
        assert_eq!(s.count("requests.answered"), 0, "{version}");
    }
}
