use crate::{Act, Activity, Environment, Flag, Flags, Hold, Mistake, Plan, from_flags};
use units::Nanos;

fn plan(line: &[&str]) -> Result<Plan, Vec<String>> {
    let named = |name: &str| Flag::named(name).unwrap_or_else(|| panic!("no flag {name}"));
    let flags =
        line[1..].chunks(2).fold(Flags::new(line[0]), |flags, pair| flags.with(named(pair[0]), pair[1]));
    let resolve = |_: &str| Err("no such host".to_owned());
    let read = from_flags(&flags, &Environment { cores: 2, seed: 1, resolve: &resolve });
    read.map_err(|mistakes| mistakes.iter().map(Mistake::to_string).collect())
}

/// The one request of a command line, as it is sent.
fn sent(line: &[&str]) -> String {
    let plan = plan(line).unwrap();
    let population = &plan.populations[0];
    let Activity::Steps { steps, .. } = &population.activity else { panic!("no request: {line:?}") };
    let Act::Request { request, .. } = &steps[0].act else { panic!("no request: {line:?}") };
    let host = population.target.host_header(0);
    let mut random = units::Random::new(1);
    let mut out = vec![0; request.max_len(host.len())];
    let length = request.write(&host, &mut crate::Values::new(&mut random, 7, 0), &mut out);
    String::from_utf8(out[..length].to_vec()).unwrap()
}

const AT: &str = "127.0.0.1:81/a";

#[test]
fn a_request_is_sent_as_curl_sends_it() {
    let check = |line: &[&str], expected: &str| {
        assert_eq!(sent(line), expected.replace('|', "\r\n"), "{line:?}");
    };
    check(&[AT], "GET /a HTTP/1.1|Host: 127.0.0.1:81||");
    check(
        &[AT, "-H", "X-A: b", "-H", "X-Seq:{seq}", "-X", "DELETE"],
        "DELETE /a HTTP/1.1|Host: 127.0.0.1:81|X-A: b|X-Seq: 7||",
    );
    check(&[AT, "--body", "{\"a\": 1}"], "POST /a HTTP/1.1|Host: 127.0.0.1:81|Content-Length: 8||{\"a\": 1}");
    // The same as `curl -X GET --data`.
    check(&[AT, "-X", "GET", "--body", "x"], "GET /a HTTP/1.1|Host: 127.0.0.1:81|Content-Length: 1||x");
    check(&[AT, "--host", "a.b:5"], "GET /a HTTP/1.1|Host: a.b:5||");
    check(&[AT, "-H", "host: a.b"], "GET /a HTTP/1.1|Host: a.b||");
    check(&["me:pw@127.0.0.1:81/"], "GET / HTTP/1.1|Host: 127.0.0.1:81|Authorization: Basic bWU6cHc=||");
    let with_user = "GET /a HTTP/1.1|Host: 127.0.0.1:81|Authorization: Basic bWU6NTAl||";
    check(&[AT, "-u", "me:50%"], with_user);
    check(&["x.example", "--connect-to", "127.0.0.1:81"], "GET / HTTP/1.1|Host: x.example||");
}

#[test]
fn an_upgrade_and_a_call_have_them_too() {
    let fields = |line: &[&str]| {
        let mut plan = plan(line).unwrap();
        let main = &mut plan.populations[0];
        let of_requests = main.requests().next().map(|request| request.headers.clone());
        let fields = of_requests.unwrap_or_else(|| main.headers.clone());
        fields.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join("|")
    };
    let ws = ["ws://me@127.0.0.1:81/", "-H", "Origin: http://a", "-H", "Sec-WebSocket-Protocol: a, b"];
    assert_eq!(fields(&ws), "Authorization: Basic bWU6|Origin: http://a|Sec-WebSocket-Protocol: a, b");
    assert_eq!(fields(&["grpc://127.0.0.1:81/a.B/C", "-H", "x-a: b"]), "x-a: b");
    // The probe's requests have the load's header fields.
    let plan = plan(&[&ws[..], &["--probe", "5"]].concat()).unwrap();
    assert!(plan.probe.unwrap().populations.iter().all(|own| own.headers == plan.populations[0].headers));
}

#[test]
fn numbers_without_a_unit_mean_what_they_mean_elsewhere() {
    let read = plan(&[AT, "-d", "10", "--timeout", "2.5", "--rate", "1000", "--probe", "5"]).unwrap();
    assert_eq!(read.stages[0].hold, Hold::For(Nanos::from_secs(10)));
    let thinks = |text: &str| plan(&[AT, "--think", text]).map(|plan| plan.populations);
    assert_eq!(thinks("5..10"), thinks("5s..10s"));
    assert_eq!(thinks("5"), thinks("5s"));
    assert_eq!(read.populations[0].timeout, Nanos::from_millis(2_500));
    assert_eq!(read.populations[0].load.rate(), Some(units::Rate::per_s(1_000)));
    assert_eq!(read.probe.unwrap().rate, units::Rate::per_s(5));
    let counted = plan(&[AT, "-n", "100k"]).unwrap();
    assert_eq!((counted.populations[0].requests, counted.stages[0].hold), (Some(100_000), Hold::Forever));
    let both = plan(&[AT, "-n", "7", "-d", "2s"]).unwrap();
    assert_eq!(both.stages[0].hold, Hold::For(Nanos::from_secs(2)));
    assert_eq!(both.populations[0].load.connections(), 7);
}

#[test]
fn mistakes_name_the_place_and_the_fix() {
    let check = |line: &[&str], expected: &[&str]| assert_eq!(plan(line).unwrap_err(), expected, "{line:?}");
    check(
        &[AT, "-H", "X A: b", "-H", "X-A", "-H", "Content-Length: 5", "-H", "X-B: a\nb"],
        &[
            "--header: \"X A\" is not a header name; use Content-Type",
            "--header: \"X-A\" is not a header; use 'Name: value'",
            "--header: throng sets this header itself; remove it: Content-Length",
            "--header: '\\n' is not allowed in a header; remove it: \"a\\nb\"",
        ],
    );
    check(
        &[
            AT,
            "-H",
            "Host: a",
            "--host",
            "b",
            "-H",
            "X: 1",
            "-H",
            "x: 2",
            "-H",
            "Cookie: a",
            "-H",
            "Cookie: b",
        ],
        &[
            "--header: Host is also given by --host; remove one of the two",
            "--header: x is given twice; use one, with `, ` between its values",
            "--header: Cookie is given twice; use one, with `; ` between its parts",
        ],
    );
    check(
        &["me@127.0.0.1/", "-H", "Authorization: x"],
        &["--header: Authorization is also given by the user; remove one of the two"],
    );
    check(
        &[AT, "-u", "me:s", "-H", "Authorization: x"],
        &["--header: Authorization is also given by the user; remove one of the two"],
    );
    check(&["me@127.0.0.1/", "-u", "me:s"], &["--user: the target has a user, too; remove one of the two"]);
    check(&[AT, "-u", "me:a\nb"], &["--user: the user or the password has a control character; remove it"]);
    check(&["tcp://127.0.0.1:1", "-u", "me:s"], &["--user: tcp:// and tls:// have no headers; remove it"]);
    check(
        &["me:%zz@127.0.0.1/"],
        &["target: the user or the password has a % without two hexadecimal digits; use %25"],
    );
}

#[test]
fn what_cannot_be_sent_is_a_mistake() {
    let check = |line: &[&str], expected: &[&str]| assert_eq!(plan(line).unwrap_err(), expected, "{line:?}");
    check(&[AT, "-X", "post"], &["--method: \"post\" is not a method; use POST"]);
    check(&[AT, "--body", "{chioce a}"], &["--body: unknown variable \"{chioce a}\"; use {choice a b c}"]);
    let of_a_file =
        "{env} and {var} are for scenario files; write \"…$NAME\" for a variable of the environment";
    check(&[AT, "--body", "{env HOME}"], &[&format!("--body: {of_a_file}")]);
    check(&[AT, "-H", "X: {var a}"], &[&format!("--header: {of_a_file}")]);
    check(
        &[AT, "--body", "a", "--body-file", "b"],
        &["--body-file: cannot be used with --body; remove one of the two: \"b\""],
    );
    check(
        &[AT, "--connect-to", "x:1:127.0.0.1:2"],
        &["--connect-to: none is for 127.0.0.1:81; use 127.0.0.1:81:HOST2:PORT2: \"x:1:127.0.0.1:2\""],
    );
    check(
        &["127.0.0.{1..2}", "--connect-to", "127.0.0.1:2"],
        &[
            "--connect-to: cannot be used with several destinations; use one host and one port in the target: \"127.0.0.1:2\"",
        ],
    );
    check(
        &["ws://127.0.0.1/", "-X", "PUT", "--body", "x", "-H", "Sec-WebSocket-Key: x"],
        &[
            "--method: ws:// sends messages; use --message ping: \"PUT\"",
            "--body: ws:// sends messages; use --message ping: \"x\"",
            "--header: throng sets this header itself; remove it: Sec-WebSocket-Key",
        ],
    );
    check(
        &["ws://127.0.0.1/", "-H", "Sec-WebSocket-Protocol: v{seq}"],
        &[
            "--header: Sec-WebSocket-Protocol has no variables, because the server's choice is checked: \"v{seq}\"",
        ],
    );
    check(
        &["tcp://127.0.0.1:9", "-H", "A: b", "--host", "x", "-n", "5"],
        &[
            "--header: tcp:// and tls:// have no headers; remove it: \"A: b\"",
            "--host: tcp:// and tls:// have no headers; remove it: \"x\"",
            "--requests: tcp:// sends nothing without a message; add --message ping: \"5\"",
        ],
    );
    check(&[AT, "-n", "0"], &["--requests: \"0\" is not a number of requests; use 1 or more, as 100k"]);
    check(
        &[AT, "--arrive", "5/s", "--total", "9", "-n", "5"],
        &["--requests: with --arrive, --total and --calls set the number of requests; remove it: \"5\""],
    );
    let long = format!("x: {}", "y".repeat(70_000));
    let size = "a request may have at most 64 KiB in total: 68.4 KiB";
    check(&[AT, "-H", &long], &[&format!("--header: {size}")]);
    check(&["ws://127.0.0.1/", "-H", &long], &[&format!("--header: {size}")]);
}
