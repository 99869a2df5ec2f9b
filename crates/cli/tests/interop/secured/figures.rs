//! TLS handshakes in the summary of a run, and in the result of a search.

use std::time::Duration;

use serde_json::Value;

use super::certificates::{ECDSA, self_signed};
use crate::{
    program::{Program, Serving},
    server::{PYTHON, Server, folder, program},
    summary::run,
};

/// A row of the summary by its name; the first two blanks and the column of names are taken off.
fn row<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(&format!("  {name:<13} ")))
}

#[test]
fn handshakes_are_counted_by_kind_in_text_and_json() {
    let server = Serving::start(&["--tls"]);
    let url = format!("https://{}/", server.address);
    let args = ["-c", "60", "--ramp", "1s", "-d", "200ms", "--think", "100ms", "-k"];
    for (more, all_are_full) in [(&[][..], false), (&["--no-resume"], true)] {
        let (ended, s) = run(&url, &[&args[..], more].concat());
        ended.assert_status(0);
        let [full, resumed] = ["tls_us", "tls_resumed_us"].map(|name| s.count(&format!("{name}.count")));
        assert_eq!((full + resumed, resumed == 0), (60, all_are_full), "{}", ended.stderr);
        // The server gave each its tickets: the first ones of a shard have none.
        assert!(full >= 1 && (all_are_full || resumed >= 30), "{full}, {resumed}");
        assert!(
            row(&ended.stderr, "tls").unwrap().starts_with(&format!("{full} full: p50 ")),
            "{}",
            ended.stderr
        );
        let said = row(&ended.stderr, "tls resumed").unwrap();
        let expected = if all_are_full { "none".to_owned() } else { format!("{resumed} resumed: p50 ") };
        assert!(said.starts_with(&expected), "{}", ended.stderr);
    }
    let plain = Serving::start(&["--threads", "1"]);
    let (ended, s) = run(&plain.url("/"), &["-c", "5", "-d", "200ms", "--think", "100ms"]);
    assert_eq!(
        (row(&ended.stderr, "tls"), row(&ended.stderr, "tls resumed")),
        (None, None),
        "{}",
        ended.stderr
    );
    assert_eq!((s.count("tls_us.count"), s.at("cost.target_cpu_us_per_handshake")), (0, &Value::Null));
}

/// A server that takes one connection at a time, and 40 ms for its handshake: 25 a second. What was given up meanwhile takes no time, so
/// that a step of a search begins without the queue of the one before.
const SLOW: &str = r#"
import select, socket, ssl, sys, threading, time
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
listener = socket.create_server(("127.0.0.1", 0), backlog=512)
print("port", listener.getsockname()[1], flush=True)
def respond(one):
    try:
        while one.recv(4096):
            one.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    except OSError:
        pass
while True:
    one, _ = listener.accept()
    gone = select.poll()
    gone.register(one, select.POLLRDHUP)
    if gone.poll(0):
        one.close()
        continue
    try:
        time.sleep(0.04)
        one = context.wrap_socket(one, server_side=True)
    except OSError:
        continue
    threading.Thread(target=respond, args=(one,), daemon=True).start()
"#;

#[test]
fn the_rate_of_handshakes_that_a_target_takes_is_found() {
    let files = self_signed(&folder("secured-find"), ECDSA);
    // It must not wait for a processor where others use them: that would be another rate.
    let first = ["-n", "-10", PYTHON, "-c", SLOW, &files.cert, &files.key];
    let server = Server::announcing("port ", program("nice", &first));
    let url = format!("https://{}/", server.address);
    let args = ["--by", "arrival", "--max", "40", "-k", "-d", "2s", "--timeout", "600ms", "--probe", "1/s"];
    // How late throng is on a busy machine does not matter here.
    let args = [&args[..], &["--threshold", "faults == 0"]].concat();
    let ended = Program::start(&[&["find", &url, "--json", "-"][..], &args].concat())
        .end_within(Duration::from_secs(300));
    let found: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}"));
    // Beside others the rate is another one in each step: then there is no single one to be found.
    let status = if found["outcome"] == "unsettled" { 1 } else { 0 };
    assert!(found["outcome"] == "found" || status == 1, "{found:#}");
    assert_eq!(ended.status, Some(status), "{found:#}");
    let (max, failed) = (found["max"].as_u64().unwrap(), found["failed"].as_u64().unwrap());
    // 25 a second, of which two are the probe's; fewer on a busy machine.
    assert!((5..=27).contains(&max) && max < failed, "{found:#}");
    assert_eq!(found["limit"]["side"], "target", "{found:#}");
}
