//! `throng run` against nginx with TLS: versions, ciphers, kinds of keys, resumption, client certificates.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use super::certificates::{Authority, ECDSA, Files, RSA, self_signed};
use crate::{
    program::until,
    right::{self, LOOPS},
    server::{Server, fetch, folder, program},
};

pub(super) const HELLO: &str = "keepalive_requests 1000000; location / { return 200 'Hello World!'; }";

pub(super) struct Nginx {
    pub(super) server: Server,
    log: PathBuf,
}

/// A line of its log: of one request.
#[derive(Debug)]
struct Line {
    protocol: String,
    cipher: String,
    reused: bool,
    connection: u64,
}

impl Nginx {
    /// One process with this certificate and these directives in its `server`.
    fn start(folder: &Path, files: &Files, directives: &str) -> Nginx {
        Nginx::with(folder, files, "ssl", directives)
    }

    /// The same with these parameters of its `listen`.
    pub(super) fn with(folder: &Path, files: &Files, listen: &str, directives: &str) -> Nginx {
        let log = folder.join("access.log");
        let server = Server::at(|address| {
            let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
            let temporary = temporary.map(|of| format!("{of}_temp_path temporary;")).concat();
            let text = format!(
                "daemon off; master_process off; pid nginx.pid; error_log stderr warn;
                events {{ worker_connections 512; }}
                http {{ log_format secured '$ssl_protocol $ssl_cipher $ssl_session_reused $connection';
                {temporary} server {{
                    listen {address} {listen} backlog=512; ssl_certificate {}; ssl_certificate_key {};
                    access_log access.log secured; root .;
                    location = /status {{ access_log off; stub_status; }} {directives}
                }} }}",
                files.cert, files.key
            );
            fs::write(folder.join("nginx.conf"), text).unwrap();
            let mut command = program("nginx", &["-c", "nginx.conf", "-e", "stderr", "-p"]);
            command.arg(folder).current_dir(folder);
            command
        });
        Nginx { server, log }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.server.address)
    }

    /// Requests so far by its counter, with the one that reads it.
    pub(super) fn counted(&self) -> u64 {
        let text = fetch(&self.url("/status"));
        let line =
            text.lines().skip_while(|line| !line.starts_with("server accepts")).nth(1).expect("counters");
        line.split_whitespace().nth(2).unwrap().parse().unwrap()
    }

    /// The lines of its log, once there are `count`.
    fn lines(&self, count: u64) -> Vec<Line> {
        let read = || fs::read_to_string(&self.log).unwrap_or_default();
        until(&format!("{count} lines"), || read().lines().count() as u64 >= count);
        let text = read();
        let line = |line: &str| {
            let fields: Vec<&str> = line.split(' ').collect();
            let reused = fields[2] == "r";
            let connection = fields[3].parse().unwrap();
            Line { protocol: fields[0].to_owned(), cipher: fields[1].to_owned(), reused, connection }
        };
        text.lines().map(line).collect()
    }
}

/// Versions and ciphers, one at a time; both ends count the same.
fn check_suites(name: &str, algorithm: &[&str], suites: &[(&str, &str, &str)]) {
    for (protocol, cipher, directives) in suites {
        let folder = folder(&format!("secured-nginx-{name}-{cipher}"));
        let files = self_signed(&folder, algorithm);
        let directives = format!("ssl_protocols {protocol}; {directives} {HELLO}");
        let nginx = Nginx::start(&folder, &files, &directives);
        for args in LOOPS {
            let before = nginx.counted();
            let args = [args, &["--cacert", &files.cert]].concat();
            let s = right::check_kept(&nginx.url("/"), &args, 12);
            assert_eq!(nginx.counted() - before - 1, s.count("requests.sent"), "{cipher}");
            let lines = nginx.lines(s.count("requests.sent"));
            let other = lines.iter().find(|line| line.protocol != *protocol || line.cipher != *cipher);
            assert!(other.is_none(), "{cipher}: {other:?}");
        }
    }
}

#[test]
fn every_cipher_of_tls_1_3_is_spoken() {
    let of = |cipher: &'static str, line: &'static str| ("TLSv1.3", cipher, line);
    check_suites(
        "ecdsa",
        ECDSA,
        &[
            of("TLS_AES_128_GCM_SHA256", "ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;"),
            of("TLS_AES_256_GCM_SHA384", "ssl_conf_command Ciphersuites TLS_AES_256_GCM_SHA384;"),
            of("TLS_CHACHA20_POLY1305_SHA256", "ssl_conf_command Ciphersuites TLS_CHACHA20_POLY1305_SHA256;"),
        ],
    );
    // What both prefer.
    check_suites("rsa", RSA, &[of("TLS_AES_128_GCM_SHA256", "")]);
}

#[test]
fn ciphers_of_tls_1_2_are_spoken() {
    let of = |cipher: &'static str, line: &'static str| ("TLSv1.2", cipher, line);
    check_suites(
        "ecdsa",
        ECDSA,
        &[
            of("ECDHE-ECDSA-AES128-GCM-SHA256", "ssl_ciphers ECDHE-ECDSA-AES128-GCM-SHA256;"),
            of("ECDHE-ECDSA-AES256-GCM-SHA384", "ssl_ciphers ECDHE-ECDSA-AES256-GCM-SHA384;"),
            of("ECDHE-ECDSA-CHACHA20-POLY1305", "ssl_ciphers ECDHE-ECDSA-CHACHA20-POLY1305;"),
        ],
    );
    check_suites(
        "rsa",
        RSA,
        &[of("ECDHE-RSA-AES128-GCM-SHA256", "ssl_ciphers ECDHE-RSA-AES128-GCM-SHA256;")],
    );
}

#[test]
fn the_version_can_be_chosen() {
    let folder = folder("secured-nginx-versions");
    let files = self_signed(&folder, ECDSA);
    let nginx = Nginx::start(&folder, &files, &format!("ssl_protocols TLSv1.2 TLSv1.3; {HELLO}"));
    let mut seen = 0;
    for (flags, protocol) in [
        (&[][..], "TLSv1.3"),
        (&["--tls", "1.2"], "TLSv1.2"),
        (&["--tls", "1.3"], "TLSv1.3"),
        (&["-k"], "TLSv1.3"),
    ] {
        let trust = if flags == ["-k"] { &[][..] } else { &["--cacert", &files.cert] };
        let s = right::check_kept(&nginx.url("/"), &[LOOPS[1], flags, trust].concat(), 12);
        let sent = s.count("requests.sent");
        let lines = nginx.lines(seen + sent);
        assert!(lines.iter().skip(seen as usize).all(|line| line.protocol == protocol), "{flags:?}");
        seen += sent;
    }
}

/// How many of its connections were resumed, and all.
fn resumed(lines: &[Line]) -> (usize, usize) {
    let connections: BTreeMap<u64, bool> = lines.iter().map(|line| (line.connection, line.reused)).collect();
    (connections.values().filter(|reused| **reused).count(), connections.len())
}

#[test]
fn sessions_are_resumed_unless_they_are_not_to_be() {
    for (protocol, session) in [
        ("TLSv1.3", "ssl_session_tickets on;"),
        ("TLSv1.2", "ssl_session_tickets on;"),
        ("TLSv1.2", "ssl_session_tickets off; ssl_session_cache shared:c:1m;"),
    ] {
        let folder = folder("secured-nginx-resumed");
        let files = self_signed(&folder, ECDSA);
        // Each connection has one request, and is then closed with an announcement.
        let line = "keepalive_requests 1; location / { return 200 'Hello World!'; }";
        let nginx = Nginx::start(&folder, &files, &format!("ssl_protocols {protocol}; {session} {line}"));
        let args = ["-c", "10", "-n", "120", "--think", "50ms", "--cacert", &files.cert];
        let s = right::check(&nginx.url("/"), &args);
        let sent = s.count("requests.sent") as usize;
        let (reused, connections) = resumed(&nginx.lines(sent as u64));
        assert_eq!(connections, sent, "{protocol}: one each");
        // By throng's figures too; those that were opened last may have been closed before their request.
        let (full, by_ticket) = (s.count("tls_us.count"), s.count("tls_resumed_us.count"));
        let idle = s.count("connections.opened") + s.count("connections.redialled") - sent as u64;
        assert_eq!(full as usize, connections - reused, "{protocol}: {reused} of {connections}");
        assert!(
            (reused as u64..=reused as u64 + idle).contains(&by_ticket),
            "{protocol}: {by_ticket}, {reused}"
        );
        // Those of the ramp may have nothing to resume yet, and with a few threads each has sessions of its own.
        assert!(
            sent == 120 && reused + 20 >= connections && reused < connections,
            "{protocol}: {reused} of {connections}"
        );
        let s = right::check(&nginx.url("/"), &[&args[..], &["--no-resume"]].concat());
        let lines = nginx.lines(sent as u64 + s.count("requests.sent"));
        let (reused, connections) = resumed(&lines[sent..]);
        assert_eq!(
            (reused, connections as u64),
            (0, s.count("requests.sent")),
            "{protocol}: not to be resumed"
        );
        assert_eq!(s.count("tls_resumed_us.count"), 0, "{protocol}");
    }
}

#[test]
fn client_certificates_are_shown() {
    let folder = folder("secured-nginx-clients");
    let files = self_signed(&folder, ECDSA);
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let issuer = ours.file(&folder);
    let client = ours.issue(&folder, "client", |_| {});
    let foreign = other.issue(&folder, "foreign", |_| {});
    for protocol in ["TLSv1.2", "TLSv1.3"] {
        let directives = format!(
            "ssl_protocols {protocol}; ssl_client_certificate {issuer}; ssl_verify_client on; {HELLO}"
        );
        let nginx = Nginx::start(&folder, &files, &directives);
        let trust = ["--cacert", &files.cert];
        let with =
            |files: &Files| ["--cert".to_owned(), files.cert.clone(), "--key".to_owned(), files.key.clone()];
        let shown = with(&client);
        let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
        right::check_kept(&nginx.url("/"), &[LOOPS[1], &trust, &shown].concat(), 12);
        // nginx opens the connection, and says what it wants in its response.
        let args = ["-c", "5", "-d", "300ms", "--think", "50ms"];
        let foreign = with(&foreign);
        let foreign: Vec<&str> = foreign.iter().map(String::as_str).collect();
        for shown in [&[][..], &foreign] {
            let s = right::check_wrong(&nginx.url("/"), &[&args[..], &trust, shown].concat(), "wrong-status");
            assert_eq!(s.count("requests.status.400"), s.count("requests.answered"), "{protocol}");
        }
    }
}

#[test]
fn bytes_over_tls_are_held() {
    let folder = folder("secured-nginx-held");
    let files = self_signed(&folder, ECDSA);
    let nginx = Nginx::start(&folder, &files, HELLO);
    let target = format!("tls://{}", nginx.server.address);
    let s = right::check(&target, &["-c", "50", "-d", "500ms", "--cacert", &files.cert]);
    assert_eq!((s.count("connections.held"), s.count("connections.opened")), (50, 50));
}
