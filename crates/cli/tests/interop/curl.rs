//! `throng serve` as curl sees it.

use std::fs;

use serde_json::Value;

use crate::{
    program::{Program, Serving, until},
    server::{folder, program},
};

/// What `-w` prints for each transfer: status, bytes of content, new connections, seconds.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) status: u16,
    pub(crate) bytes: usize,
    pub(crate) dials: u32,
    seconds: f64,
}

/// The format of a [`Transfer`] for curl; once more after `--next`.
const TELL: [&str; 4] =
    ["-sSv", "-m20", "-w", "\n@%{http_code} %{size_download} %{num_connects} %{time_total}\n"];

/// Runs curl with these arguments; returns its transfers, and what it printed (`-v`).
pub(crate) fn curl(args: &[&str]) -> (Vec<Transfer>, String) {
    let args = [&TELL, args].concat();
    let ended = Program::from(program("curl", &args)).end();
    assert_eq!(ended.status, Some(0), "{ended:#?}");
    let transfers = ended.stdout.lines().filter_map(|line| line.strip_prefix('@')).map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        Transfer {
            status: fields[0].parse().unwrap(),
            bytes: fields[1].parse().unwrap(),
            dials: fields[2].parse().unwrap(),
            seconds: fields[3].parse().unwrap(),
        }
    });
    (transfers.collect(), ended.stderr)
}

/// The server's own counters, this request included.
pub(crate) fn stats(server: &Serving) -> impl Fn(&str) -> u64 {
    stats_at(&server.url("/stats"))
}

/// The same by its URL; of any certificate.
pub(crate) fn stats_at(url: &str) -> impl Fn(&str) -> u64 + use<> {
    let ended = Program::from(program("curl", &["-sS", "-k", url])).end();
    let stats: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}"));
    move |name| stats[name].as_u64().unwrap_or_else(|| panic!("{name}: {stats}"))
}

/// The counters once the connection that reads them is the only one, and how often they were read until then: each time is a
/// request on a connection of its own.
pub(crate) fn stats_once_alone(url: &str) -> (impl Fn(&str) -> u64 + use<>, u64) {
    let mut asked = 0;
    let mut last = None;
    until("no other connection is open", || {
        asked += 1;
        last.insert(stats_at(url))("open") == 1
    });
    (last.expect("they were read"), asked)
}

#[test]
fn routes_are_served_on_one_connection() {
    let server = Serving::start(&[]);
    let routes = [
        ("/", 200, 12),
        ("/?length=1", 200, 1),
        ("/?length=10240", 200, 10_240),
        ("/?length=99999", 200, 10_240),
        ("/delay?for=300ms&length=5", 200, 5),
        ("/?length=many", 400, 0),
        ("/nothing", 404, 0),
        ("/", 200, 12),
    ];
    let urls = routes.map(|(path, ..)| server.url(path));
    let (transfers, output) = curl(&urls.each_ref().map(String::as_str));
    for (at, ((path, status, bytes), transfer)) in routes.iter().zip(&transfers).enumerate() {
        assert_eq!((transfer.status, transfer.bytes), (*status, *bytes), "{path}: {output}");
        assert_eq!(transfer.dials, u32::from(at == 0), "a connection for {path}: {output}");
    }
    assert_eq!(transfers.len(), routes.len());
    assert!((0.299..3.0).contains(&transfers[4].seconds), "{:?}", transfers[4]);
    let stats = stats(&server);
    assert_eq!((stats("requests"), stats("accepted"), stats("errors")), (9, 2, 0));
}

#[test]
fn head_has_no_body() {
    let server = Serving::start(&[]);
    let (transfers, output) = curl(&["--head", &server.url("/?length=77"), &server.url("/")]);
    assert!(output.to_lowercase().contains("< content-length: 77"), "{output}");
    let seen: Vec<_> = transfers.iter().map(|t| (t.status, t.bytes, t.dials)).collect();
    assert_eq!(seen, [(200, 0, 1), (200, 0, 0)], "{output}");
    assert!(transfers.iter().all(|t| t.seconds < 15.0), "it waits for no body: {transfers:?}");
}

#[test]
fn bodies_are_read_in_all_framings() {
    let server = Serving::start(&[]);
    let file = folder("curl").join("two-megabytes");
    fs::write(&file, vec![b'x'; 2 << 20]).unwrap();
    let file = format!("@{}", file.display());
    let url = server.url("/?length=9");
    for (fields, mark) in [
        (&[][..], "> Content-Length: 2097152"),
        (&["-H", "Expect: 100-continue"][..], "< HTTP/1.1 100 Continue"),
        (&["-H", "Transfer-Encoding: chunked"][..], "> Transfer-Encoding: chunked"),
        (&["-H", "Transfer-Encoding: chunked", "-H", "Expect: 100-continue"][..], "< HTTP/1.1 100 Continue"),
    ] {
        let post = ["--expect100-timeout", "15", "--data-binary", &file, "-H", "Content-Type: text/plain"];
        let post = [fields, &post].concat();
        // What follows on the connection is the next request, not a remainder of the body.
        let (transfers, output) = curl(&[&post[..], &[&url, "--next"], &TELL, &[&url]].concat());
        assert!(output.contains(mark), "{mark}: {output}");
        let seen: Vec<_> = transfers.iter().map(|t| (t.status, t.bytes, t.dials)).collect();
        assert_eq!(seen, [(200, 9, 1), (200, 9, 0)], "{mark}: {output}");
        // It has not waited for a 100 that does not come.
        assert!(transfers[0].seconds < 15.0, "{mark}: {transfers:?}");
    }
    assert_eq!(stats(&server)("errors"), 0);
}

#[test]
fn http_1_0_is_closed_after_its_response() {
    let server = Serving::start(&[]);
    let url = server.url("/?length=5");
    let (transfers, output) = curl(&["--http1.0", &url, &url]);
    assert_eq!(
        transfers.iter().map(|t| (t.bytes, t.dials)).collect::<Vec<_>>(),
        [(5, 1), (5, 1)],
        "{output}"
    );
    let keep = ["--http1.0", "-H", "Connection: keep-alive", &url, &url];
    let (transfers, output) = curl(&keep);
    assert_eq!(
        transfers.iter().map(|t| (t.bytes, t.dials)).collect::<Vec<_>>(),
        [(5, 1), (5, 0)],
        "{output}"
    );
}

#[test]
fn an_upgrade_that_it_does_not_know_is_left() {
    let server = Serving::start(&[]);
    let (transfers, output) = curl(&["--http2", &server.url("/"), &server.url("/")]);
    assert!(output.contains("> Upgrade: h2c"), "{output}");
    assert_eq!(transfers.iter().map(|t| (t.status, t.bytes)).collect::<Vec<_>>(), [(200, 12); 2], "{output}");
    let known = Program::from(program("curl", &["-sS", "--http2-prior-knowledge", &server.url("/")])).end();
    assert_eq!(known.stdout, "Hello World!", "with prior knowledge it is HTTP/2: {known:?}");
    until("it is hung up on, and only the one that asks is left", || stats(&server)("open") == 1);
}

#[test]
fn many_at_once_each_get_a_response() {
    let server = Serving::start(&[]);
    let urls = server.url("/delay?for=20ms&length=[1-300]");
    let (transfers, output) = curl(&["--parallel", "--parallel-max", "50", &urls]);
    let mut bytes: Vec<usize> = transfers.iter().map(|t| t.bytes).collect();
    bytes.sort_unstable();
    assert!(bytes.iter().copied().eq(1..=300), "{bytes:?} {output:.2000}");
    assert!(transfers.iter().all(|t| t.status == 200));
    let stats = stats(&server);
    let dials: u32 = transfers.iter().map(|t| t.dials).sum();
    assert_eq!((stats("requests"), stats("accepted")), (301, u64::from(dials) + 1));
    assert!((2..=50 + 1).contains(&stats("peak")), "one after the other, or too many: {}", stats("peak"));
}
