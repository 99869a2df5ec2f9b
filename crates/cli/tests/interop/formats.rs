//! `--format` beside the tools themselves: both against one nginx, with the same fields in the same order.

use crate::{
    nginx::nginx,
    program::{Program, throng},
    server::{Server, program},
};

/// The shape of a text: each number, with the unit after it, becomes N, and runs of spaces become one.
fn shape(line: &str) -> String {
    let mut shape = String::new();
    let mut number = false;
    for c in line.chars() {
        let within = number && (c.is_ascii_alphanumeric() || c == '.' || c == '+');
        number = within || c.is_ascii_digit();
        match c {
            _ if within => {}
            _ if number => shape.push('N'),
            c if c.is_whitespace() && shape.ends_with(' ') => {}
            c if c.is_whitespace() => shape.push(' '),
            c => shape.push(c),
        }
    }
    shape.trim().to_owned()
}

/// The shape of a report from the first line that begins with `from`, which comes after names and versions.
fn shapes(out: &str, from: &str) -> Vec<String> {
    let lines: Vec<String> = out.lines().skip_while(|line| !line.starts_with(from)).map(shape).collect();
    assert!(!lines.is_empty(), "no line begins with {from:?}: {out}");
    lines
}

/// What ab prints for a median that is far from its mean.
fn is_left_out(line: &str) -> bool {
    ["WARNING: The median", "ERROR: The median", "These results are"]
        .iter()
        .any(|prefix| line.starts_with(prefix))
}

/// `own`: the tool's arguments for about the same load.
fn check(tool: &str, own: &[&str], from: &str, server: &Server, args: &[&str], path: &str) {
    let theirs = Program::from(program(tool, own)).end();
    assert_eq!(theirs.status, Some(0), "{theirs:#?}");
    let url = server.url(path);
    let ours = throng(&[&["run", &url, "--format", tool, "--live", "off"], args].concat());
    let ours = Program::from(ours).end();
    let of = |out: &str| -> Vec<String> {
        let lines = shapes(out, from).into_iter().filter(|line| !is_left_out(line));
        // throng does not read the server's name.
        let name = "Server Software:";
        lines.map(|line| if line.starts_with(name) { name.to_owned() } else { line }).collect()
    };
    assert_eq!(of(&ours.stdout), of(&theirs.stdout), "ours:\n{}\ntheirs:\n{}", ours.stdout, theirs.stdout);
}

const BUSY: &str = "keepalive_requests 1000000; location /busy { return 503; }";
const LOAD: [&str; 6] = ["-c", "4", "-d", "300ms", "--think", "2ms"];

#[test]
fn wrk_has_these_fields() {
    let server = nginx("form-wrk", BUSY);
    for path in ["/big", "/busy"] {
        let url = server.url(path);
        let own = ["--latency", "-t2", "-c4", "-d1s", &url];
        check("wrk", &own, "Running ", &server, &[&LOAD[..], &["--threads", "2"]].concat(), path);
    }
}

#[test]
fn ab_has_these_fields() {
    let server = nginx("form-ab", BUSY);
    for path in ["/big", "/busy"] {
        let url = server.url(path);
        check("ab", &["-q", "-k", "-c", "4", "-n", "2000", &url], "Server Software:", &server, &LOAD, path);
    }
}

#[test]
fn httperf_has_these_fields() {
    let server = nginx("form-httperf", BUSY);
    let (host, port) = (server.address.ip().to_string(), server.address.port().to_string());
    for path in ["/big", "/busy"] {
        #[rustfmt::skip]
        let own = [
            "--server", &host, "--port", &port, "--uri", path, "--num-conns", "20", "--num-calls", "50", "--rate", "100",
        ];
        check("httperf", &own, "Maximum connect burst length:", &server, &LOAD, path);
    }
}

#[test]
fn a_shape_is_what_is_left_without_numbers() {
    for (line, expected) in [
        ("    Latency   635.91us    0.89ms  12.92ms   93.69%", "Latency N N N N%"),
        ("Reply status: 1xx=0 2xx=10", "Reply status: N=N N=N"),
        ("Net I/O: 755.2 KB/s (6.2*10^6 bps)", "Net I/O: N KB/s (N*N^N bps)"),
        ("<=1 concurrent connections)", "<=N concurrent connections)"),
        ("Server Hostname:        127.0.0.1", "Server Hostname: N"),
        ("", ""),
    ] {
        assert_eq!(shape(line), expected);
    }
}
