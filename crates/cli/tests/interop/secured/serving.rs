//! `throng serve --tls` as other programs see it: curl, openssl, wrk, Python, Chromium.

use std::{path::Path, process::Stdio};

use super::certificates::{ECDSA, Files, RSA, self_signed};
use crate::{
    curl::{curl, stats_at, stats_once_alone},
    program::{Program, Serving, until},
    server::{PYTHON, folder, program, source},
    websocket_clients::check_chromium,
    wrk::check_kept,
};

fn url(server: &Serving, path: &str) -> String {
    format!("https://{}{path}", server.address)
}

fn stats(server: &Serving) -> impl Fn(&str) -> u64 {
    stats_at(&url(server, "/stats"))
}

/// A server with a certificate of this kind.
fn with_certificate(folder: &Path, algorithm: &[&str]) -> (Serving, Files) {
    let files = self_signed(folder, algorithm);
    (Serving::start(&["--tls-cert", &files.cert, "--tls-key", &files.key]), files)
}

#[test]
fn curl_keeps_its_connection_in_both_versions() {
    for algorithm in [ECDSA, RSA] {
        let (server, files) = with_certificate(&folder("secured-curl"), algorithm);
        let urls =
            ["/", "/?length=10240", "/delay?for=50ms&length=5", "/nothing"].map(|path| url(&server, path));
        let urls = urls.each_ref().map(String::as_str);
        for (version, said) in [("1.2", "TLSv1.2"), ("1.3", "TLSv1.3")] {
            let trust = ["--http1.1", "--cacert", &files.cert, "--tlsv1.2", "--tls-max", version];
            let (transfers, output) = curl(&[&trust[..], &urls].concat());
            let seen: Vec<_> = transfers.iter().map(|t| (t.status, t.bytes, t.dials)).collect();
            assert_eq!(seen, [(200, 12, 1), (200, 10_240, 0), (200, 5, 0), (404, 0, 0)], "{output}");
            assert!(output.contains(&format!("SSL connection using {said}")), "{output}");
            assert!(output.contains("SSL certificate verify ok"), "{output}");
        }
        // Each of the eight, and the one that asks; curl's close is no error.
        let stats = stats(&server);
        assert_eq!((stats("requests"), stats("accepted"), stats("errors")), (9, 3, 0));
    }
}

#[test]
fn a_certificate_made_at_start_is_for_loopback() {
    let server = Serving::start(&["--tls"]);
    let (transfers, output) = curl(&["-k", &url(&server, "/")]);
    assert_eq!((transfers[0].status, transfers[0].bytes), (200, 12), "{output}");
    // The fingerprint is the one of the certificate that is shown.
    let ended =
        Program::from(program("openssl", &["s_client", "-connect", &server.address.to_string()])).end();
    let at = ended.stdout.find("-----BEGIN").expect("a certificate");
    let mut command = program("openssl", &["x509", "-noout", "-fingerprint", "-sha256"]);
    command.stdin(Stdio::piped());
    let mut shown = Program::from(command);
    shown.types(&ended.stdout[at..]);
    shown.close_stdin();
    let shown = shown.end().stdout;
    let fingerprint = shown.trim().split_once('=').expect("a fingerprint").1.to_owned();
    assert!(server.program.stdout().contains(&fingerprint), "{fingerprint}: {}", server.program.stdout());
}

/// openssl's own client, whose input is typed.
struct Client(Program);

impl Client {
    fn start(server: &Serving, args: &[&str]) -> Client {
        let address = server.address.to_string();
        let mut command = program("openssl", &[&["s_client", "-crlf", "-connect", &address], args].concat());
        command.stdin(Stdio::piped());
        Client(Program::from(command))
    }

    /// Sends a request, and waits until there are this many responses.
    fn ask(&mut self, responses: usize) {
        self.0.types("GET / HTTP/1.1\nHost: x\n\n");
        until(&format!("{responses} responses: {}", self.0.stdout()), || {
            self.0.stdout().matches("Hello World!").count() >= responses
        });
    }

    fn end(mut self) -> String {
        self.0.close_stdin();
        self.0.end().stdout
    }
}

#[test]
fn openssl_resumes_its_session() {
    let server = Serving::start(&["--tls"]);
    let file = folder("secured-session").join("session");
    let file = file.to_str().unwrap();
    for version in ["-tls1_2", "-tls1_3"] {
        let mut client = Client::start(&server, &[version, "-sess_out", file]);
        client.ask(1);
        assert!(client.end().contains("New, TLSv1."), "{version}");
        for _ in 0..2 {
            let mut client = Client::start(&server, &[version, "-sess_in", file]);
            client.ask(1);
            let output = client.end();
            assert!(output.contains("Reused, TLSv1."), "{version}: {output}");
        }
    }
    assert_eq!(stats(&server)("errors"), 0);
}

#[test]
fn keys_are_updated_as_openssl_asks() {
    let server = Serving::start(&["--tls"]);
    let mut client = Client::start(&server, &["-tls1_3", "-msg"]);
    client.ask(1);
    let updates = |client: &Client, way: &str| {
        client.0.stdout().lines().filter(|line| line.starts_with(way) && line.contains("KeyUpdate")).count()
    };
    // K asks for one of the server's, which comes with its next data; k does not.
    for (n, (command, of_server)) in [("K\n", 1), ("k\n", 1), ("K\n", 2), ("K\n", 3)].into_iter().enumerate()
    {
        client.0.types(command);
        until("it is sent", || updates(&client, ">>>") == n + 1);
        client.ask(n + 2);
        assert_eq!(updates(&client, "<<<"), of_server, "{}", client.0.stdout());
    }
    client.end();
    assert_eq!(stats(&server)("errors"), 0);
}

#[test]
fn openssl_is_refused_another_handshake() {
    let server = Serving::start(&["--tls"]);
    let mut client = Client::start(&server, &["-tls1_2", "-msg"]);
    client.ask(1);
    client.0.types("R\n");
    // rustls has announced that it knows no renegotiation, or our layer refuses it.
    until("the end", || client.0.is_ended());
    let output = client.0.stdout() + &client.0.stderr();
    assert!(output.to_lowercase().contains("renegotiation"), "{output}");
    assert_eq!(stats(&server)("requests"), 2, "others are unharmed");
}

#[test]
fn wrk_keeps_its_connections() {
    let server = Serving::start(&["--tls"]);
    for path in ["/", "/?length=10240"] {
        check_kept(&url(&server, path), &url(&server, "/stats"));
    }
}

#[test]
fn python_websockets_has_its_echoes() {
    let (server, files) = with_certificate(&folder("secured-caller"), ECDSA);
    let echo = format!("wss://{}/ws/echo", server.address);
    let ended = Program::from(program(PYTHON, &[&source("python/caller.py"), &echo, &files.cert])).end();
    assert_eq!(ended.stdout, "10 of 10, closed with 1000\n", "{ended:?}");
}

#[test]
fn chromium_has_its_echoes() {
    let server = Serving::start(&["--tls"]);
    check_chromium(&[&format!("wss://{}/ws/echo", server.address)], &["--ignore-certificate-errors"]);
    until("the connection is closed here too", || stats(&server)("open") == 1);
}

/// Its fingerprint of a certificate's key: SHA-256, in base64.
fn fingerprint(files: &Files) -> String {
    let script = "openssl x509 -pubkey -noout -in \"$1\" | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64";
    let ended = Program::from(program("sh", &["-c", script, "sh", &files.cert])).end();
    assert_eq!(ended.status, Some(0), "{ended:?}");
    ended.stdout.trim().to_owned()
}

#[test]
fn chromium_has_pages_and_echoes_on_one_connection() {
    const PAGES: u64 = 20;
    let (server, files) = with_certificate(&folder("secured-chromium"), ECDSA);
    // The WebSocket is a stream of the same connection (RFC 8441).
    let pages = (1..=PAGES).map(|n| url(&server, &format!("/?length={n}")));
    let urls: Vec<String> = pages.chain([format!("wss://{}/ws/echo", server.address)]).collect();
    let trust = format!("--ignore-certificate-errors-spki-list={}", fingerprint(&files));
    check_chromium(&urls.iter().map(String::as_str).collect::<Vec<_>>(), &[&trust]);
    let (stats, asked) = stats_once_alone(&url(&server, "/stats"));
    // Pages, the WebSocket and its seven messages, on one connection.
    let counted = ["requests", "accepted"].map(|of| stats(of) - asked);
    assert_eq!((counted, stats("errors")), ([PAGES + 1 + 7, 1], 0));
}

#[test]
fn throng_holds_connections_on_it() {
    let (server, files) = with_certificate(&folder("secured-throng"), ECDSA);
    let trust = ["--cacert", &files.cert];
    for args in crate::right::LOOPS {
        let before = stats(&server);
        let s = crate::right::check_kept(&url(&server, "/"), &[args, &trust].concat(), 12);
        let after = stats(&server);
        let counted = |name: &str| after(name) - before(name);
        assert_eq!((counted("requests") - 1, after("errors")), (s.count("requests.sent"), 0));
        assert_eq!(counted("accepted") - 1, s.count("connections.opened"));
    }
}
