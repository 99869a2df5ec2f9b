use crate::{Environment, Flag, Flags, Mistake, from_flags};

/// The mistakes of a command line: the target, then pairs of flag and value.
fn check(line: &[&str], expected: &[&str]) {
    let named = |name: &str| Flag::named(name).unwrap_or_else(|| panic!("no flag {name}"));
    let flags =
        line[1..].chunks(2).fold(Flags::new(line[0]), |flags, pair| flags.with(named(pair[0]), pair[1]));
    let resolve = |_: &str| Err("no such host".to_owned());
    let read = from_flags(&flags, &Environment { cores: 2, seed: 1, resolve: &resolve });
    let found = read.err().unwrap_or_default();
    assert_eq!(found.iter().map(Mistake::to_string).collect::<Vec<_>>(), expected, "{line:?}");
}

const URL: &str = "http://127.0.0.1:1/";

#[test]
fn pings_take_nothing_of_a_request() {
    let alone = "--ping alone sends no requests; add --think or --rate for requests beside it, or remove one of the two";
    check(
        &[URL, "--http2", "", "--ping", "5s", "-X", "PUT", "--body", "a", "-H", "X-A: b", "--host", "h"],
        &[
            &format!("--method: {alone}: \"PUT\""),
            &format!("--body: {alone}: \"a\""),
            &format!("--header: {alone}: \"X-A: b\""),
            &format!("--host: {alone}: \"h\""),
        ],
    );
}

#[test]
fn pings_beside_requests_take_all_of_a_request() {
    let request = ["-X", "PUT", "--body", "a", "-H", "X-A: b", "--host", "h", "--expect", "status=200"];
    for when in [["--think", "1s"], ["--rate", "9/s"], ["--think", "0"]] {
        check(&[&[URL, "--http2", "", "--ping", "5s"][..], &when, &request].concat(), &[]);
    }
    check(&["grpc://127.0.0.1:1/a.B/C", "--ping", "5s", "-H", "x-a: b", "--server-streaming", ""], &[]);
    let short = "--ping: \"9ms\" is not a time between PINGs of at least 10ms; use 30s";
    check(&[URL, "--http2", "", "--ping", "9ms", "--think", "1s"], &[short]);
    check(&["grpc://127.0.0.1:1/a.B/C", "--ping", "9ms"], &[short]);
    let no_ping =
        "--ping: HTTP/1.1 has no PING; add --http2, or use --think for the time between requests: \"5s\"";
    check(&[URL, "--ping", "5s", "--think", "1s"], &[no_ping]);
}

#[test]
fn several_requests_at_once_have_no_pauses_between_them() {
    let one = "--streams: with a pause between requests a connection has one request at a time; \
        use more connections instead, or no pauses: \"2\"";
    check(&[URL, "--http2", "", "--streams", "2", "--think", "1s"], &[one]);
    check(&["grpc://127.0.0.1:1/a.B/C", "--streams", "2", "--think", "1s..2s"], &[one]);
    check(&[URL, "--http2", "", "--ping", "5s", "--streams", "2", "--think", "1s"], &[one]);
    check(&[URL, "--http2", "", "--streams", "2", "--think", "0"], &[]);
    check(&[URL, "--http2", "", "--ping", "5s", "--streams", "2", "--think", "0"], &[]);
    check(&[URL, "--http2", "", "--streams", "1", "--think", "1s"], &[]);
}
