//! `--expect`: correct responses pass, each wrong one is a fault.

use std::fs;

use crate::{
    program::{Serving, file},
    scripted::{Scripted, ok},
    summary::run,
};

/// All responses are correct, or all have this fault.
fn check(target: &str, expect: &str, fault: Option<&str>) {
    let args = ["-c", "3", "-d", "100ms", "--think", "5ms", "--expect", expect];
    let (ended, s) = run(target, &args[..if expect.is_empty() { 6 } else { 8 }]);
    let answered = s.count("requests.answered");
    assert!(answered >= 3, "{expect}: {}", ended.stderr);
    let faults: Vec<_> = fault.iter().map(|kind| (format!("target·exchange·{kind}"), answered)).collect();
    assert_eq!(s.faults(), faults, "{target} {expect}");
    let (verdict, status) = if fault.is_some() { ("fail", 1) } else { ("pass", 0) };
    ended.assert_status(status);
    let verdict = if ended.status == Some(4) { "invalid" } else { verdict };
    assert_eq!(s.text("verdict"), verdict, "{target} {expect}");
    assert_eq!(s.count("connections.held"), 3, "a wrong answer is no reason to hang up");
    if fault.is_some() {
        assert_eq!((s.text("limit.side"), s.text("limit.cause")), ("target", "wrong-answer"));
    }
}

#[test]
fn status_and_length_are_checked() {
    let server = Scripted::responding(ok("12345"));
    let url = server.url("/");
    check(&url, "", None);
    check(&url, "status=200,length=5", None);
    check(&url, "length=6", Some("wrong-length"));
    check(&url, "status=201", Some("wrong-status"));
    check(&url, "status=204,length=6", Some("wrong-status"));
}

#[test]
fn another_status_may_be_the_right_one() {
    let server = Scripted::responding(ok("gone").replace("200 OK", "404 Not Found"));
    let url = server.url("/");
    check(&url, "", Some("wrong-status"));
    check(&url, "length=4", Some("wrong-status"));
    check(&url, "status=404,length=4", None);
}

#[test]
fn the_length_may_be_the_number_drawn() {
    let server = Serving::start(&["--threads", "1"]);
    check(&server.url("/?length={rand 1 9999}"), "status=200,length=$1", None);
    check(&server.url("/?x={rand 20000 30000}&length={rand 1 999}"), "length=$2", None);
    // The server gives 10,240 at most.
    check(&server.url("/?length={rand 20000 30000}"), "length=$1", Some("wrong-length"));
    check(&server.url("/?length={rand 20000 30000}"), "length=10240", None);
}

#[test]
fn wrong_and_right_responses_are_distinguished() {
    let server = Scripted::start(|peer| {
        while let Some(head) = peer.request() {
            let even = head.split(' ').nth(1).unwrap().ends_with(['0', '2', '4', '6', '8']);
            peer.send(&ok(if even { "even" } else { "uneven" }));
        }
    });
    let args = ["-c", "4", "-n", "200", "--expect", "length=4"];
    let (ended, s) = run(&server.url("/{rand 1 1000}"), &args);
    let uneven = server.log.targets().iter().filter(|t| t.ends_with(['1', '3', '5', '7', '9'])).count();
    assert_eq!(s.count("requests.answered"), 200, "{}", ended.stderr);
    assert!((50..150).contains(&uneven), "{uneven} of 200 numbers");
    assert_eq!((ended.status, s.text("verdict")), (Some(1), "fail"));
    assert_eq!(s.faults(), [("target·exchange·wrong-length".to_owned(), uneven as u64)]);
}

/// gzip of `{"hello":"world"}` without a name or a time (RFC 1952).
fn compressed() -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut out, br#"{"hello":"world"}"#).unwrap();
    out.finish().unwrap()
}

#[test]
fn expectations_see_decoded_content_and_lengths_are_those_received() {
    let server = Scripted::start(|peer| {
        while let Some(head) = peer.request() {
            let asks = head.contains("Accept-Encoding: gzip, deflate, br, zstd\r\n");
            let content = if asks { compressed() } else { br#"{"hello":"world"}"#.to_vec() };
            let coding = if asks { "Content-Encoding: gzip\r\n" } else { "" };
            peer.send(&format!("HTTP/1.1 200 OK\r\n{coding}Content-Length: {}\r\n\r\n", content.len()));
            peer.send_bytes(&content);
        }
    });
    let file = file("compressed.toml");
    let length = compressed().len();
    for (keys, length, fault) in
        [("compressed = true", length, None), ("", 17, None), ("compressed = true", 17, Some("wrong-length"))]
    {
        let text = format!(
            "target = {:?}\nconnections = 2\nduration = \"200ms\"\nthink = \"5ms\"\n{keys}\n\
            expect = {{ json = {{ \"/hello\" = \"world\" }}, body = \"\\\"hello\\\":\", length = {length} }}\n",
            server.url("/")
        );
        fs::write(&file, text).unwrap();
        let (ended, summary) = run(file.to_str().unwrap(), &[]);
        let answered = summary.count("requests.answered");
        assert!(answered > 3, "{}", ended.stderr);
        let faults: Vec<_> = fault.iter().map(|kind| (format!("target·exchange·{kind}"), answered)).collect();
        assert_eq!(summary.faults(), faults, "{keys} {length}: {}", ended.stderr);
    }
}
