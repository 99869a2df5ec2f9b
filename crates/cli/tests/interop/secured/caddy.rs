//! `throng run` against Caddy: HTTP/1.1 and HTTP/2 as negotiated by ALPN, and WebSockets through it to npm's `ws`. throng's counts
//! are compared with those of Caddy's log.

use std::fs;

use super::certificates::{ECDSA, Files, self_signed};
use crate::{
    python::check_log,
    right,
    server::{Server, folder, program},
    websocket_servers::{counted, ws},
};

/// Closed loops: each request is a line of its log.
const SHORT: [&str; 4] = ["-c", "10", "-n", "300"];

fn caddy(files: &Files, behind: &Server) -> Server {
    let folder = folder("secured-caddy");
    let path = folder.join("Caddyfile");
    Server::at(|address| {
        let text = format!(
            "{{\n admin off\n auto_https off\n servers {{\n  protocols h1 h2\n }}\n}}\n\
             https://{address} {{\n tls {} {}\n log {{\n  output stdout\n  format json\n }}\n\
             handle /echo {{\n  reverse_proxy {}\n }}\n respond \"Hello World!\"\n}}\n",
            files.cert, files.key, behind.address
        );
        fs::write(&path, text).unwrap();
        let mut command =
            program("caddy", &["run", "--adapter", "caddyfile", "--config", path.to_str().unwrap()]);
        // Where it keeps what it has made, and what it was told last.
        command.env("HOME", &folder).env_remove("XDG_CONFIG_HOME").env_remove("XDG_DATA_HOME");
        command
    })
}

#[test]
fn its_log_counts_the_same() {
    let files = self_signed(&folder("secured-caddy-files"), ECDSA);
    let behind = ws();
    let server = caddy(&files, &behind);
    let target = format!("https://{}/", server.address);
    let with = |args: &[&str]| {
        let args = [&SHORT[..], &["--cacert", &files.cert], args].concat();
        right::check_kept(&target, &args, 12).count("requests.sent")
    };
    let of = |version: &str, sent: u64| {
        check_log(&server, || server.program.stdout(), &format!("\"proto\":\"{version}\""), sent);
    };
    let mut second = 0;
    for case in [["1.3", "1"], ["1.3", "10"], ["1.2", "10"]] {
        second += with(&["--tls", case[0], "--http2", "--streams", case[1]]);
        of("HTTP/2.0", second);
    }
    let first = with(&[]) + with(&["--tls", "1.2"]);
    of("HTTP/1.1", first);
    check_log(&server, || server.program.stdout(), "\"status\":200", first + second);

    let echo = ["-c", "10", "-d", "1s", "--cacert", &files.cert, "--ping", "150ms", "--message", "hello"];
    let s = right::check(&format!("wss://{}/echo", server.address), &echo);
    assert_eq!((s.count("requests.answered"), s.count("connections.held")), (s.count("requests.sent"), 10));
    assert_eq!(counted(&behind, "messages"), s.count("requests.sent"));
    check_log(&server, || server.program.stdout(), "\"uri\":\"/echo\"", 10);
}
