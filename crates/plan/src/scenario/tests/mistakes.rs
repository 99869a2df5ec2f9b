//! All mistakes of a file, each with its place and fix.

use super::*;
use crate::flag;
use proptest::prelude::*;

/// Text of the file, and each mistake without the file's name.
pub(super) fn check(text: &str, expected: &[&str]) {
    let found = scenario(text).err().map(|mistakes| listed(&mistakes)).unwrap_or_default();
    let expected: Vec<String> = expected.iter().map(|mistake| format!("load.toml:{mistake}")).collect();
    assert_eq!(found, expected, "{text}");
}

/// A file with an HTTP target followed by these lines, from line 2 on.
pub(super) fn check_http(lines: &str, expected: &[&str]) {
    check(&format!("target = \"http://127.0.0.1:1/\"\n{lines}"), expected);
}

/// A file with one population, called a: its keys from line 3 on.
pub(super) fn check_population(target: &str, lines: &str, expected: &[&str]) {
    check(&format!("[[population]]\nname = \"a\"\n{lines}\ntarget = \"{target}\""), expected);
}

pub(super) const HTTP: &str = "http://127.0.0.1:1/";
pub(super) const WS: &str = "ws://127.0.0.1:1/";
pub(super) const TCP: &str = "tcp://127.0.0.1:1";

#[test]
fn all_mistakes_come_at_once_in_the_order_of_the_file() {
    check(
        "seed = \"x\"\nthink = \"5x\"\n\n[[population]]\nname = \"users\"\nthnik = \"1s\"\nconnections = \
            true\ntarget = \"gopher://x\"\n\n\
         [[population]]\ntarget = \"http://127.0.0.1:1/{csv goods.id}\"\nping = \"30\"\n[[stage]]\nof = \
         [\"user\"]\n",
        &[
            "1:8: seed: \"x\" is not a seed; use a whole number, as 42",
            "2:9: think: \"5x\" is not a time; use 5s, 1500ms or 1m30s",
            "6:1: population.users: \"thnik\" is not a key of [[population]]; use think",
            "7:15: population.users.connections: true or false is not allowed here; use connections = \"500k\"",
            "8:10: population.users.target: \"gopher\" is not a scheme; use http://, https://, ws://, wss://, tcp://, tls://, grpc:// or grpcs://",
            "10:1: population[2]: missing name; use name = \"users\"",
            "11:10: population[2].target: \"{csv goods.id}\": no such table; add [csv.goods] with \
                file = \
             \"goods.csv\": \"goods\"",
            "12:8: population[2].ping: HTTP/1.1 has no PING; add http2 = true, or use think for the time between requests",
            "14:7: stage[1].of: no such population; use users: \"user\"",
        ],
    );
}

#[test]
fn invalid_toml_is_reported_and_the_rest_is_read() {
    let text = "target = \"http://127.0.0.1:1/\nseed = 1\nthreads = 0\n";
    let found = listed(&scenario(text).unwrap_err());
    assert!(found[0].starts_with("load.toml:1:") && found[0].contains(": not valid TOML: "), "{found:?}");
    assert!(found.iter().any(|mistake| mistake.starts_with("load.toml:3:11: threads: \"0\"")), "{found:?}");
    check(&"#".repeat(1_048_577), &["1:1: a scenario file may have at most 1 MiB: 1.0 MiB"]);
    let twice = listed(&scenario("target = \"http://127.0.0.1:1/\"\nthink = 1..5").unwrap_err());
    let [think, toml] = &twice[..] else { panic!("one mistake of TOML at one place: {twice:?}") };
    assert!(think.contains(": think: a floating-point number") && toml.contains(":2:11: not valid TOML"));
    check("", &["1:1: target: missing; use target = \"http://host:port/\""]);
}

#[test]
fn all_figures_are_listed_once() {
    let file = r#"thresholds = ["helds > 1", "quite something > 1", "latncy.p99 < 1s"]"#;
    let found = listed(&scenario(&format!("target = \"{HTTP}\"\n{file}")).unwrap_err());
    let [near, none, last] = &found[..] else { panic!("{found:?}") };
    assert_eq!(near, "load.toml:2:15: thresholds: \"helds\" is not a figure of the summary; use held");
    assert!(
        none.ends_with("\"quite something\" is not a figure of the summary; use one of those below"),
        "{none}"
    );
    assert!(last.contains("; use latency.p99; all figures:\n  times: "), "{last}");

    let resolve = |_: &str| unreachable!("the target is an address");
    let around = Environment { cores: 1, seed: 1, resolve: &resolve };
    let flags =
        Flags::new(HTTP).with(&flag::THRESHOLD, "helds > 1").with(&flag::THRESHOLD, "latncy.p99 < 1s");
    let found = listed(&crate::from_flags(&flags, &around).unwrap_err());
    let [near, last] = &found[..] else { panic!("{found:?}") };
    assert_eq!(near, "--threshold: \"helds\" is not a figure of the summary; use held");
    assert!(last.contains("; use latency.p99; all figures:\n  times: "), "{last}");
}

#[test]
fn keys_and_kinds() {
    check_http(
        "colour = 1",
        &[
            "2:1: \"colour\" is not a key of the top level; use target, connections, ramp, duration, requests, rate, \
                arrive, total, calls, \
           think, ping, message, expect, timeout, reconnect, cookies, http2, streams, headers, user, compressed, host, connect-to, method, body, body-file, protoset, server-streaming, insecure, cacert, cert, key, sni, tls, no-resume, thresholds, max-lag, no-experiments, probe, sources, seed, threads, io, \
             stage, population or csv",
        ],
    );
    check_http(
        "\"a\\nb\".c = 1\nthink = 1.5",
        &[
            "2:1: \"a\\nb\" is not a key of the top level; use target, connections, ramp, duration, requests, rate, \
                arrive, total, calls, \
           think, ping, message, expect, timeout, reconnect, cookies, http2, streams, headers, user, compressed, host, connect-to, method, body, body-file, protoset, server-streaming, insecure, cacert, cert, key, sni, tls, no-resume, thresholds, max-lag, no-experiments, probe, sources, seed, threads, io, \
             stage, population or csv",
            "3:9: think: a floating-point number is not allowed here; use think = \"5s..45s\"",
        ],
    );
    let fix = "a number of connections; use 1 to 4,294,967,295, as 100k or 1m";
    check_http("connections = 1.5e0", &[&format!("2:15: connections: \"1.5e0\" is not {fix}")]);
    check_http("stage = 5", &["2:9: stage: a number is not allowed here; use [[stage]]"]);
    check_http("stage = []", &["1:1: stage: empty; remove it, or use [[stage]]"]);
    check_http("population = []", &["1:1: population: empty; remove it, or use [[population]]"]);
    check_http("csv = { users = 1 }", &["2:7: csv: a table is not allowed here; use [csv.users]"]);
    check_http("io = [1]", &["2:6: io: a list is not allowed here; use io = \"auto\""]);
    check_http(
        "io = \"kqueue\"",
        &["2:6: io: \"kqueue\" is not an I/O backend; use auto, uring, epoll or tun"],
    );
    check_http(
        "thresholds = \"held > 1\"",
        &["2:14: thresholds: a text is not allowed here; use thresholds = [\"held >= 99.9%\", \
                \"users.latency.p99 < 50ms\"]"],
    );
    check_http(
        "thresholds = [\"held > 1\", \"fast\"]",
        &["2:27: thresholds: \"fast\" is not a threshold; use latency.p99 < 200ms"],
    );
    check_http("seed = 2024-01-01", &["2:8: seed: a date is not allowed here; use seed = 42"]);
    check_http("threads = 0x10", &["2:11: threads: a number is not allowed here; use threads = 2"]);
    check_http(
        "sources = \"here\"",
        &["2:11: sources: \"here\" is not an address; use 127.0.0.2 or 127.1.0.0/16"],
    );
    check_http(
        "sources = \"::1\"",
        &[
            "1:10: target: no IPv6 address, but --sources are all IPv6; use sources of the target's family: \"127.0.0.1\"",
        ],
    );
    // A column is a character, not an octet.
    check_http(
        "message = \"\\u00e9\" # é\n[[population]]\nname = \"é\" # é\n",
        &["4:8: population.é.name: \"é\" is not a name; use letters, digits, - and _, a letter first, \
                at most 64"],
    );
    check_http(
        "[[population]]\n 'name' =   \"é\" \n\"é\\u001b\" = 2\n",
        &[
            "3:13: population.é.name: \"é\" is not a name; use letters, digits, - and _, a letter first, \
                at most 64",
            "4:1: population.é: \"é\\u{1b}\" is not a key of [[population]]; use name, target, connections, \
                requests, rate, arrive, total, \
           calls, think, ping, message, expect, timeout, reconnect, cookies, http2, streams, headers, user, compressed, host, connect-to, method, body, body-file, protoset, server-streaming, insecure, cacert, cert, key, sni, tls, no-resume, loop, step or on",
        ],
    );
}

#[test]
fn keys_of_other_tools_and_other_tables() {
    check_http(
        "vus = 5\nof = 1\n[[stage]]\nduration = \"5s\"\ntarget = \"50%\"\nsources = \"::1\"\nfro = \"1s\"",
        &[
            "2:1: \"vus\" is not a key of the top level; use connections",
            "3:1: \"of\" is not a key of the top level; use it in [[stage]]",
            "5:1: stage[1]: \"duration\" is not a key of [[stage]]; use for",
            "6:1: stage[1]: \"target\" is not a key of [[stage]]; use to",
            "7:1: stage[1]: \"sources\" is not a key of [[stage]]; use it in the top level",
            "8:1: stage[1]: \"fro\" is not a key of [[stage]]; use for",
        ],
    );
}

#[test]
fn targets() {
    check(
        "target = \"tcp://127.0.0.1:1/x\"",
        &["1:10: target: tcp:// has no path; use tcp://host:port: \"/x\""],
    );
    check("target = \"TCP://127.0.0.1\"", &["1:10: target: missing port; use tcp://host:port"]);
    check("target = \"127.0.0.1:x\"", &["1:10: target: \"x\" is not a port; use 1 to 65535"]);
    check("target = \"http://no.such/\"", &["1:10: target: \"no.such\" has no address: no such host"]);
    check("target = \"http://127.0.0.1/a b\"", &["1:10: target: ' ' is not allowed in a path; use %20"]);
    let long = format!("target = \"http://127.0.0.1/{}\"", "a".repeat(8_000));
    check(&long, &["1:10: target: path and query may have at most 8000 octets: 8001"]);
    check_population(
        "tls://127.0.0.1:9/path",
        "",
        &["4:10: population.a.target: tls:// has no path; use tls://host:port: \"/path\""],
    );
}

#[test]
fn loads() {
    check_http(
        "connections = 0",
        &["2:15: connections: \"0\" is not a number of connections; use 1 to 4,294,967,295, as 100k or 1m"],
    );
    check_http(
        "connections = -5",
        &["2:15: connections: \"-5\" is not a number of connections; use 1 to 4,294,967,295, as 100k or \
                1m"],
    );
    check_http(
        "ramp = 30\nduration = \"10x\"",
        &[
            "2:8: ramp: \"30\" is not a rate or a time; use 30/s or 30s",
            "3:12: duration: \"10x\" is not a time; use 5s, 1500ms or 1m30s",
        ],
    );
    check_http("rate = \"0/s\"", &["2:8: rate: \"0/s\" is not a rate greater than 0; use 20k/s"]);
    check_http(
        "rate = \"5/s\"\nthink = \"1s\"",
        &["3:9: think: cannot be used with rate, which sets when requests are due; remove one of the two"],
    );
    check_http(
        "arrive = \"5/s\"\nrate = \"5/s\"\nconnections = 5",
        &[
            "3:8: rate: with arrive, calls sets the requests per connection; remove it",
            "4:15: connections: with arrive, total sets the number of connections; remove it",
        ],
    );
    check_http("total = \"40k\"", &["2:9: total: requires arrive = \"100/s\"; add it, or remove this"]);
    check_http("calls = 0", &["2:9: calls: \"0\" is not a number of at least 1; use 10 or 40k"]);
    check_http("timeout = \"0s\"", &["2:11: timeout: \"0s\" is not a timeout greater than 0; use 10s"]);
    check_http(
        "reconnect = \"always\"",
        &["2:13: reconnect: \"always\" is not a way to reconnect; use planned, never or 1s..30s"],
    );
    check_http(
        "connections = 5\n[[population]]\nname = \"a\"",
        &["2:15: connections: set per population; move it to a [[population]]"],
    );
    check_http(
        "ping = \"5s\"\nmessage = \"x\"",
        &[
            "2:8: ping: HTTP/1.1 has no PING; add http2 = true, or use think for the time between requests",
            "3:11: message: not for http:// and grpc://; use body for the content of requests",
        ],
    );
    check_http("loop = true", &["2:1: \"loop\" is not a key of the top level; use it in [[population]]"]);
}

#[test]
fn differences_between_protocols() {
    check_population(
        WS,
        "think = \"1s\"",
        &["3:9: population.a.think: not for ws://, which sends a message per ping; use ping = \"30s\""],
    );
    check_population(
        WS,
        "expect = { echo = true }",
        &[
            "3:19: population.a.expect.echo: for ws:// it is set per step; use a [[population.step]] of a scenario file",
        ],
    );
    check_population(
        TCP,
        "ping = \"1s\"",
        &["3:8: population.a.ping: tcp:// sends nothing without a message; add message = \"ping\""],
    );
    check_population(
        TCP,
        "message = \"\"",
        &["3:11: population.a.message: an empty message has no echo; use a non-empty text: \"\""],
    );
    check_population(
        WS,
        "calls = 5\nmessage = \"\"\nping = 0",
        &[
            "4:11: population.a.message: an empty message has no echo; use a non-empty text: \"\"",
            "5:8: population.a.ping: cannot be used with calls, which sends messages one after the other; remove one of the two",
        ],
    );
    check_population(
        HTTP,
        "http2 = true\nping = \"5s\"\nstreams = 2",
        &[
            "5:11: population.a.streams: ping alone sends no requests; add think or rate for requests beside it, or remove one of the two",
        ],
    );
    check_population(
        HTTP,
        "http2 = true\nping = \"1ms\"",
        &["4:8: population.a.ping: \"1ms\" is not a time between PINGs of at least 10ms; use 30s"],
    );
    check_population(
        WS,
        "http2 = true\nstreams = 2\nstep = [{ wait = \"1s\" }]",
        &["4:11: population.a.streams: steps are those of one WebSocket on each connection; remove it"],
    );
    check_population(
        TCP,
        "http2 = true",
        &["3:9: population.a.http2: requires a target with http://, https://, ws:// or wss://"],
    );
    check_population(
        WS,
        "on = [{ is = \"2\", send = \"\" }]",
        &["3:26: population.a.on[1].send: an empty message has no echo; use a non-empty text: \"\""],
    );
    let long = format!("message = \"{}\"", "x".repeat(65_537));
    check_population(WS, &long, &["3:11: population.a.message: a message may have at most 64 KiB: 64.0 KiB"]);
    check_population(
        HTTP,
        "loop = false",
        &["3:8: population.a.loop: no steps; remove it, or use [[population.step]]"],
    );
}

#[test]
fn http2_sends_pings_or_requests_at_once_without_pauses() {
    let alone =
        "ping alone sends no requests; add think or rate for requests beside it, or remove one of the two";
    check_population(
        HTTP,
        "http2 = true\nping = \"5s\"\nmethod = \"PUT\"\nhost = \"h\"",
        &[&format!("5:10: population.a.method: {alone}"), &format!("6:8: population.a.host: {alone}")],
    );
    let one = "with a pause between requests a connection has one request at a time; use more connections instead, \
        or no pauses";
    // Additional PINGs do not change that.
    for pause in
        ["think = \"1s\"", "think = \"1s\"\nping = \"5s\"", "step = [{ request = \"/\" }, { wait = \"1s\" }]"]
    {
        check_population(
            HTTP,
            &format!("http2 = true\nstreams = 2\n{pause}"),
            &[&format!("4:11: population.a.streams: {one}")],
        );
    }
}

#[test]
fn populations_and_stages() {
    check_http(
        "[[population]]\nname = \"latency\"\n[[population]]\nname = \"b\"\n[[population]]\nname = \"b\"",
        &[
            "3:8: population.latency.name: reserved as the name of a figure; use another, as latency-users",
            "7:8: population: duplicate population name: \"b\"",
        ],
    );
    check_http(
        "ramp = \"1s\"\nduration = \"1s\"\n[[stage]]\n",
        &[
            "2:8: ramp: cannot be used with stages; use ramp in a [[stage]]",
            "3:12: duration: cannot be used with stages; use for in a [[stage]]",
        ],
    );
    check_http(
        "[[stage]]\nto = \"50\"\n[[stage]]\nfor = \"forever\"\n[[stage]]\nramp = \"5s\"",
        &[
            "3:6: stage[1].to: \"50\" is not a share of the load; use 100% or 12.5%",
            "5:7: stage[2].for: later stages would never start; use a time, as 5m",
            "7:8: stage[3].ramp: the load is already at 100%; use to = \"50%\", or remove it",
        ],
    );
    check_http(
        "[[stage]]\nname = \"\"\nof = []\n[[stage]]\nof = [\"main\", \"main\"]",
        &[
            "2:1: stage[1].of: empty; remove it to apply the stage to all populations",
            "3:8: stage[1].name: empty name; use up",
            "6:15: stage[2].of: given twice: \"main\"",
        ],
    );
    check_http(
        "[[population]]\nname = \"a\"\n[[population]]\nname = \"b\"\n[[stage]]\nof = [\"a\"]\n[[stage]]\nof \
            = [\"b\"]\nto = \"0%\"",
        &["4:1: population.b: no stage starts it; add \"b\" to the `of` of a stage"],
    );
}

#[test]
fn probes_and_tables() {
    check_http("probe = 10", &["2:9: probe: a number is not allowed here; use probe = \"10/s\""]);
    check_http("probe = \"10q\"", &["2:9: probe: \"10q\" is not a rate; use 20k/s or 600/m"]);
    check_http("[probe]\n", &["2:1: probe.rate: missing; use rate = \"10/s\""]);
    check_http(
        "[probe]\nrate = \"1/s\"\ntarget = \"ws://127.0.0.1/\"",
        &["4:10: probe.target: the probe sends HTTP requests; use http://host:port/: \"ws://127.0.0.1/\""],
    );
    check(
        "target = \"ws://127.0.0.1/\"\nprobe = \"1/s\"\n[[population]]\nname = \"a\"",
        &["2:9: probe: the probe needs an http:// target; use [probe] with target = \
                \"http://host:port/\""],
    );
    check(
        "target = \"tcp://127.0.0.1:1\"\nprobe = \"1/s\"",
        &["2:9: probe: tcp:// sends nothing without a message; add message = \"ping\""],
    );
    check("target = \"ws://127.0.0.1/\"\nprobe = \"1/s\"", &[]);
    check_http("[csv.users]\n", &["2:6: csv.users: missing file; use file = \"users.csv\""]);
    check_http(
        "[csv.a]\nfile = \"none.csv\"\n[csv.\"b.c\"]\nfile = \"empty.csv\"",
        &[
            "3:8: csv.a.file: \"none.csv\" cannot be read: no such file",
            "4:6: csv: \"b.c\" is not a name; use letters, digits, - and _, a letter first, at most 64",
            "5:8: csv.b.c.file: \"empty.csv\": no rows after the header line",
        ],
    );
    // The file is reported as unreadable, and nothing else is.
    check(
        "target = \"http://127.0.0.1/{csv a.id}\"\n[csv.a]\nfile = \"none.csv\"",
        &["3:8: csv.a.file: \"none.csv\" cannot be read: no such file"],
    );
}

#[test]
fn nothing_moves_the_cursor_of_a_terminal() {
    check_http(
        "[[population]]\nname = \"\\u001b[2J\"\n[[stage]]\nof = [\"x\"]",
        &[
            "3:8: population.\\u{1b}[2J.name: \"\\u{1b}[2J\" is not a name; use letters, digits, - and _, \
                a letter first, at \
         most 64",
            "5:7: stage[1].of: no such population; use \\u{1b}[2J: \"x\"",
        ],
    );
}

#[test]
fn an_inherited_mistake_is_reported_once() {
    check_http(
        "think = \"5x\"\nexpect = \"length=$1\"\n[[population]]\nname = \"a\"\n[[population]]\nname = \"b\"\n",
        &[
            "2:9: think: \"5x\" is not a time; use 5s, 1500ms or 1m30s",
            "3:10: expect: the target has no random number; add {rand 1 4096} to it: \"$1\"",
        ],
    );
}

proptest! {
    #[test]
    fn any_text_is_a_scenario_or_mistakes(
        text in "([a-z\"'=\\[\\]{}#., \n]|\\PC|[\u{0}-\u{1f}]){0,80}",
        lines in proptest::collection::vec(
            "(target|name|think|expect|step|loop|rate|of|to|send|request|\\[\\[population\\]\\]|\
             \\[\\[stage\\]\\]|\\[probe\\]|\
             \\[csv.a\\]|\\[\\[population.step\\]\\])( = (\"[a-z0-9/:.{}% \
             $]{0,12}\"|[0-9]{1,3}|true|\\[\\]|\\{\\}))?",
            0..12,
        ),
        cut: prop::sample::Index,
    ) {
        let lines = lines.join("\n");
        let mut mangled = EVERYTHING.to_owned();
        let at = mangled.floor_char_boundary(cut.index(mangled.len()));
        mangled.insert_str(at, &text);
        for text in [&text, &lines, &mangled, &format!("{EVERYTHING}\n{lines}")] {
            if let Err(mistakes) = scenario(text) {
                prop_assert!(!mistakes.is_empty());
                let printed: String = mistakes.iter().map(Mistake::to_string).collect();
                // A list of figures has several lines.
                let is_harmful = |c: char| c.is_control() && c != '\n';
                prop_assert!(!printed.contains(is_harmful), "{:?}", printed);
                prop_assert!(mistakes.iter().all(|mistake| mistake.place.starts_with("load.toml:")));
            }
        }
    }
}

/// The run would wait forever for the missing requests.
#[test]
fn no_more_requests_are_wanted_than_the_steps_send() {
    let check_number = |requests: u32, steps: &str, expected: &[&str]| {
        let own = format!("name = \"a\"\nconnections = 3\nrequests = {requests}\nloop = false\n{steps}");
        check(&format!("target = \"http://127.0.0.1:1/\"\n[[population]]\n{own}"), expected);
    };
    let (one, wait) = ("[[population.step]]\nrequest = \"/\"\n", "[[population.step]]\nwait = \"1s\"\n");
    let chosen = "[[population.step]]\nrequest = \"/\"\nweight = 1\n";
    let why = "3 connections can send only 6, each 2: its steps end; use fewer, or loop = true";
    let mistake = format!("5:12: population.a.requests: {why}");
    check_number(7, &format!("{one}{wait}{one}"), &[&mistake]);
    check_number(7, &format!("{one}{chosen}{chosen}"), &[&mistake]);
    check_number(6, &format!("{one}{chosen}{chosen}"), &[]);
    let why =
        "5:12: population.a.requests: no step sends something and expects a response; use duration = \"10s\"";
    check_number(1, wait, &[why]);
}
