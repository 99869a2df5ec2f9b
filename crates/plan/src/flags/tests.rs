use super::*;
use crate::{Activity, Hold, Load, Observe, Plan, Population, Ramp, Reconnect, a_rate, from_flags};
use proptest::prelude::*;
use units::{Nanos, Rate, Spans};

mod grpc;
mod request;
mod schedule;
mod transport;

const URL: &str = "http://127.0.0.1:1/";

fn plan(flags: &Flags) -> Result<Plan, Vec<Mistake>> {
    let resolve = |name: &str| match name {
        "localhost" => Ok(["::1", "127.0.0.1"].map(|text| text.parse().unwrap()).to_vec()),
        _ => Err("no such host".to_owned()),
    };
    from_flags(flags, &Environment { cores: 2, seed: 77, resolve: &resolve })
}

/// The flags of a command line: the target, then pairs of flag and value.
fn flags(line: &[&str]) -> Flags {
    let target = line.first().map(Flags::new).unwrap_or_default();
    let named = |name: &str| Flag::named(name).unwrap_or_else(|| panic!("no flag {name}"));
    let pairs = line.get(1..).unwrap_or_default().chunks(2);
    pairs.fold(target, |flags, pair| flags.with(named(pair[0]), pair[1]))
}

/// The one population of a command line.
fn main(line: &[&str]) -> Population {
    plan(&flags(line)).unwrap().populations.remove(0)
}

#[test]
fn variables_of_scenario_files_are_no_part_of_a_command_line() {
    for target in ["http://127.0.0.1:1/{env TOKEN}", "ws://127.0.0.1:1/{var token}"] {
        let mistakes = plan(&Flags::new(target)).unwrap_err();
        assert!(mistakes.len() == 1 && mistakes[0].text.contains("are for scenario files"), "{mistakes:?}");
    }
}

#[test]
fn defaults_are_those_of_the_contract() {
    let plan = plan(&flags(&[URL])).unwrap();
    let text = "\
seed = \"77\"
threads = 2
io = \"auto\"

[[stage]]
name = \"up\"
of = [\"main\"]
to = \"100%\"
# adaptive ramp: what is not open after 30s is dialled at a fixed rate
for = \"10s\"

[[population]]
name = \"main\"
target = \"http://127.0.0.1:1/\"
connections = 50
timeout = \"10s\"
reconnect = \"planned\"
loop = true

[[population.step]]
name = \"get\"
request = \"GET /\"
expect = {  }
";
    assert_eq!(plan.to_string(), text);
    assert_eq!((plan.probe, plan.observe, plan.target_gc), (None, None, false));
    assert_eq!((plan.text.as_str(), plan.thresholds), (URL, Vec::new()));
}

#[test]
fn every_flag_arrives() {
    #[rustfmt::skip]
    let line = [
        "http://127.0.0.{1..2}:80/?length={rand 1 4096}", "-c", "1m", "--ramp", "20k/s", "-d", "forever", "--think", "5s..45s",
        "--timeout", "3s", "--expect", "status=200,length=$1", "--reconnect", "never", "--sources", "127.1.0.0/16",
        "--threads", "8", "--seed", "42", "--io", "epoll", "--probe", "10/s",
        "--observe", "http://127.0.0.1:9100", "--observe-token-file", "secret",
    ];
    let plan = plan(&flags(&line)).unwrap();
    let text = "\
seed = \"42\"
threads = 8
io = \"epoll\"
sources = \"127.1.0.0/16\"
timeout = \"3s\"

[[stage]]
name = \"up\"
of = [\"main\"]
to = \"100%\"
ramp = \"20000/s\"
for = \"forever\"

[[population]]
name = \"main\"
target = \"http://127.0.0.{1..2}:80/?length={rand 1 4096}\"
connections = 1000000
timeout = \"3s\"
reconnect = \"never\"
loop = true

[[population.step]]
name = \"get\"
request = \"GET /?length={rand 1 4096}\"
expect = { status = 200, length = \"$1\" }
think = \"5s..45s\"

[probe]
rate = \"10/s\"
target = \"http://127.0.0.{1..2}:80/?length={rand 1 4096}\"
";
    assert_eq!(plan.to_string(), text);
    let observe = Observe { at: "127.0.0.1:9100".parse().unwrap(), token_file: Some("secret".to_owned()) };
    assert_eq!(plan.observe, Some(observe));
    let probe = plan.probe.expect("--probe was given");
    assert_eq!((probe.rate, probe.target()), (Rate::per_s(10), &plan.populations[0].target));
    assert_eq!(plan.populations[0].target.destinations.len(), 2);
}

/// `expected`: the message, and how often it is sent.
fn check_message(line: &[&str], expected: Option<(&str, u64)>) {
    let sent = match main(line).activity {
        Activity::Ping { every, text } => {
            Some((text.fixed_text().unwrap().to_owned(), every.0 / 1_000_000_000))
        }
        _ => None,
    };
    assert_eq!(sent.as_ref().map(|(text, every)| (text.as_str(), *every)), expected, "{line:?}");
}

#[test]
fn websocket_sends_pings_and_tcp_its_message() {
    check_message(&["ws://127.0.0.1:9/ws/echo"], Some(("ping", 30)));
    check_message(&["ws://127.0.0.1:9", "--message", "", "--ping", "5s"], Some(("", 5)));
    check_message(&["ws://127.0.0.1:9", "--ping", "7"], Some(("ping", 7)));
    check_message(&["ws://127.0.0.1:9", "--message", "hä", "--ping", "0"], Some(("hä", 0)));
    check_message(&["tcp://127.0.0.1:9"], None);
    check_message(&["tcp://127.0.0.1:9", "--message", "x"], Some(("x", 30)));
    check_message(&[URL], None);
}

#[test]
fn http2_sends_pings_or_requests_or_both_and_carries_websockets() {
    check_message(&[URL, "--http2", "", "--ping", "5s"], Some(("", 5)));
    check_message(&[URL, "--http2", ""], None);
    check_message(&["ws://127.0.0.1:9", "--http2", "", "--streams", "7"], Some(("ping", 30)));
    let streams = |line: &[&str]| main(line).streams;
    assert_eq!(streams(&["wss://127.0.0.1:9", "--http2", "", "--streams", "7"]), Some(7));
    assert_eq!(streams(&["wss://127.0.0.1:9", "--http2", ""]), Some(1));
    assert_eq!(streams(&["wss://127.0.0.1:9"]), None);
    let alone = "--ping alone sends no requests; add --think or --rate for requests beside it, or remove one of the two";
    check(
        &[URL, "--http2", "", "--ping", "5s", "--streams", "2", "--expect", "status=200"],
        &[&format!("--streams: {alone}: \"2\""), &format!("--expect: {alone}: \"status=200\"")],
    );
    // In addition to requests, PINGs keep connections alive.
    for when in [["--think", "1s"], ["--rate", "9/s"]] {
        let main = main(&[&[URL, "--http2", "", "--ping", "5s"][..], &when].concat());
        assert_eq!(
            (main.keep_alive, main.step_names()),
            (Some(Nanos::from_secs(5)), vec!["get"]),
            "{when:?}"
        );
    }
    assert_eq!(main(&[URL, "--http2", "", "--ping", "5s"]).keep_alive, None);
    for text in ["0", "9ms"] {
        let wrong = format!("--ping: {text:?} is not a time between PINGs of at least 10ms; use 30s");
        check(&[URL, "--http2", "", "--ping", text], &[&wrong]);
    }
    let target = "requires a target with http://, https://, ws:// or wss://";
    check(
        &["tcp://127.0.0.1:9", "--http2", "", "--streams", "2"],
        &[&format!("--http2: {target}"), &format!("--streams: {target}: \"2\"")],
    );
}

#[test]
fn edges_are_accepted() {
    check(&[URL, "-c", "400m"], &[]);
    check(&[URL, "-c", "4294967295"], &[]);
    check(&[URL, "--ramp", "30s"], &[]);
    check(&[URL, "--ramp", "0s"], &[]);
    check(&[URL, "-d", "0"], &[]);
    check(&[URL, "--think", "1s"], &[]);
    check(&[URL, "--threads", "1024"], &[]);
    check(&[URL, "--seed", "18446744073709551615"], &[]);
    check(&[URL, "--io", "uring"], &[]);
    check(&[URL, "--io", "auto", "--reconnect", "planned"], &[]);
    check(&["tcp://127.0.0.1:9"], &[]);
    check(&["http://localhost/", "--sources", "::1"], &[]);
}

#[test]
fn an_observer_has_its_place() {
    check(
        &[URL, "--observe", "tcp://127.0.0.1:1"],
        &["--observe: not a host and port; use http://HOST:PORT: \"tcp://127.0.0.1:1\""],
    );
    check(
        &[URL, "--observe-token-file", "secret"],
        &["--observe-token-file: requires --observe http://HOST:PORT: \"secret\""],
    );
}

#[test]
fn mistakes_are_named_with_their_fix() {
    check(&[], &["target: missing; use http://host:port/"]);
    check(
        &["gopher://x/"],
        &[
            "target: \"gopher\" is not a scheme; use http://, https://, ws://, wss://, tcp://, tls://, grpc:// or grpcs://",
        ],
    );
    check(
        &[URL, "-c", "many"],
        &["--connections: \"many\" is not a number of connections; use 1 to 4,294,967,295, as 100k or 1m"],
    );
    for text in ["0", "4294967296", "5g"] {
        let wrong = format!(
            "--connections: {text:?} is not a number of connections; use 1 to 4,294,967,295, as 100k or 1m"
        );
        check(&[URL, "-c", text], &[&wrong]);
    }
    check(&[URL, "--ramp", "30"], &["--ramp: \"30\" is not a rate or a time; use 30/s or 30s"]);
    check(&[URL, "--ramp", "20k"], &["--ramp: \"20k\" is not a rate; use 20k/s"]);
    check(&[URL, "--ramp", "fast"], &["--ramp: \"fast\" is not a rate or a time; use 20k/s or 30s"]);
    check(&[URL, "--ramp", "0/s"], &["--ramp: \"0/s\" is not a rate greater than 0; use 20k/s"]);
    check(&[URL, "-d", "10x"], &["--duration: \"10x\" is not a time; use 5s, 1500ms or 1m30s"]);
    check(&[URL, "--think", "10x"], &["--think: \"10x\" is not a time; use 5s, 1500ms or 1m30s"]);
    check(&[URL, "--max-lag", "50"], &["--max-lag: \"50\" is not a time with its unit; use 50ms or 50s"]);
    check(&[URL, "--max-lag", "0"], &["--max-lag: \"0\" is not a time greater than 0; use 50ms"]);
    check(&[URL, "--think", "9s..2s"], &["--think: \"9s..2s\" is not a range of times; use 2s..9s"]);
    check(&[URL, "--timeout", "0"], &["--timeout: \"0\" is not a timeout greater than 0; use 10s"]);
    check(
        &[URL, "--expect", "length=$1"],
        &["--expect: the target has no random number; add {rand 1 4096} to it: \"$1\""],
    );
    check(
        &["tcp://127.0.0.1:9", "--expect", "status=200"],
        &[
            "--expect: for tcp:// it is set per step; use a [[population.step]] of a scenario file: \"status=200\"",
        ],
    );
    check(
        &[URL, "--reconnect", "always"],
        &["--reconnect: \"always\" is not a way to reconnect; use planned, never or 1s..30s"],
    );
    check(
        &[URL, "--reconnect", "0s..30s"],
        &["--reconnect: \"0s..30s\" is not a back-off greater than 0; use 1s..30s"],
    );
    check(
        &[URL, "--sources", "here"],
        &["--sources: \"here\" is not an address; use 127.0.0.2 or 127.1.0.0/16"],
    );
    check(
        &[URL, "--sources", "::1"],
        &[
            "target: no IPv6 address, but --sources are all IPv6; use sources of the target's family: \"127.0.0.1\"",
        ],
    );
    for text in ["0", "1025", "few"] {
        let wrong = format!("--threads: {text:?} is not a number of threads; use 1 to 1024");
        check(&[URL, "--threads", text], &[&wrong]);
    }
    check(&[URL, "--seed", "-1"], &["--seed: \"-1\" is not a seed; use a whole number, as 42"]);
    check(
        &[URL, "--io", "kqueue"],
        &["--io: \"kqueue\" is not an I/O backend; use auto, uring, epoll or tun"],
    );
}

#[test]
fn differences_between_protocols() {
    for target in ["ws://127.0.0.1:9/", "tcp://127.0.0.1:9"] {
        let scheme = target.split_inclusive("//").next().unwrap();
        check(
            &[target, "--think", "5s", "--message", "x"],
            &[&format!(
                "--think: not for {scheme}, which sends a message per --ping; use --ping 30s: \"5s\""
            )],
        );
    }
    check(
        &[URL, "--ping", "5s", "--message", ""],
        &[
            "--ping: HTTP/1.1 has no PING; add --http2, or use --think for the time between requests: \"5s\"",
            "--message: not for http:// and grpc://; use --body for the content of requests: \"\"",
        ],
    );
    check(
        &["TLS://127.0.0.1:9", "--ping", "5s"],
        &["--ping: tls:// sends nothing without a message; add --message ping: \"5s\""],
    );
    check(
        &["tcp://127.0.0.1:9", "--message", ""],
        &["--message: an empty message has no echo; use a non-empty text: \"\""],
    );
    let long = "x".repeat(65_537);
    check(
        &["ws://127.0.0.1:9", "--message", &long],
        &["--message: a message may have at most 64 KiB: 64.0 KiB"],
    );
    check(
        &["ws://127.0.0.1:9", "--ping", "30x"],
        &["--ping: \"30x\" is not a time; use 5s, 1500ms or 1m30s"],
    );
}

#[test]
fn all_mistakes_come_at_once() {
    #[rustfmt::skip]
    check(
        &["gopher://x/", "-c", "many", "--think", "9s..2s", "--expect", "length=$1"],
        &[
            "target: \"gopher\" is not a scheme; use http://, https://, ws://, wss://, tcp://, tls://, grpc:// or grpcs://",
            "--connections: \"many\" is not a number of connections; use 1 to 4,294,967,295, as 100k or 1m",
            "--think: \"9s..2s\" is not a range of times; use 2s..9s",
        ],
    );
}

proptest! {
    #[test]
    fn any_arguments_give_a_plan_or_printable_mistakes(
        target in "(http|tcp|x)?(://)?[a-z0-9{}\\[\\]:./?$ \\-]{0,20}(\\{rand [0-9]{1,20} [0-9]{1,20}\\})?\\PC{0,3}",
        values in proptest::collection::vec("[0-9a-z.,:/$=µ \u{1b}\n-]{0,12}|\\PC{0,6}", 16),
    ) {
        let names = ["-c", "--ramp", "-d", "--think", "--timeout", "--expect", "--reconnect", "--sources", "--threads"];
        let names = names.iter().chain(&["--seed", "--io", "--rate", "--arrive", "--total", "--calls", "--probe"]);
        let mut line = vec![target.as_str()];
        line.extend(names.zip(&values).flat_map(|(name, value)| [*name, value.as_str()]));
        match plan(&flags(&line)) {
            Ok(plan) => prop_assert!(!plan.populations[0].target.destinations.is_empty()),
            Err(mistakes) => {
                prop_assert!(!mistakes.is_empty());
                let printed: String = mistakes.iter().map(Mistake::to_string).collect();
                prop_assert!(!printed.contains(char::is_control), "{:?}", printed);
            }
        }
    }
}

fn check(line: &[&str], mistakes: &[&str]) {
    let found = plan(&flags(line)).err().unwrap_or_default();
    assert_eq!(found.iter().map(Mistake::to_string).collect::<Vec<_>>(), mistakes, "{line:?}");
}

#[test]
fn thresholds_keep_their_order_and_all_their_mistakes_are_reported() {
    let texts = |plan: Plan| plan.thresholds.into_iter().map(|t| t.text).collect::<Vec<_>>();
    let read = plan(&flags(&[URL, "--threshold", "faults == 0", "--threshold", "held >= 99%"]));
    assert_eq!(read.map(texts), Ok(vec!["faults == 0".to_owned(), "held >= 99%".to_owned()]));
    let line =
        [URL, "--threshold", "fault == 0", "-c", "0", "--threshold", "faults == 0", "--threshold", "held"];
    let mistakes: Vec<String> = plan(&flags(&line)).unwrap_err().iter().map(Mistake::to_string).collect();
    let beginnings =
        ["--threshold: \"fault\" is not", "--connections: ", "--threshold: \"held\" is not a threshold"];
    assert_eq!(mistakes.len(), beginnings.len(), "{mistakes:?}");
    assert!(mistakes.iter().zip(beginnings).all(|(mistake, part)| mistake.contains(part)), "{mistakes:?}");
}

/// With the value "?" each flag of the plan is reported, or changes the plan.
#[test]
fn every_flag_of_a_plan_is_read_and_no_other() {
    let without = flags(&[URL]);
    for flag in FLAGS {
        let with = plan(&without.clone().without(flag).with(flag, "?"));
        let is_read = match &with {
            Ok(_) => with != plan(&without),
            Err(mistakes) => mistakes.iter().any(|mistake| mistake.place == flag.place()),
        };
        assert_eq!(is_read, flag.role.is_of_plan(), "{}: {with:?}", flag.place());
    }
}

#[test]
fn a_flag_is_known_by_its_name_and_its_letter() {
    for (arg, name) in [("--duration", "duration"), ("-d", "duration"), ("target", "target")] {
        assert_eq!(Flag::named(arg).map(|flag| flag.name), Some(name), "{arg}");
    }
    for arg in ["duration", "-duration", "--d", "--target", "-", "--", ""] {
        assert!(Flag::named(arg).is_none(), "{arg}");
    }
    let mut names: Vec<&str> = FLAGS.iter().map(|flag| flag.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), FLAGS.len());
}

#[test]
fn refused_flags_are_named_with_their_values() {
    let flags = flags(&[URL, "--csv", "a", "--csv", "b", "-c", "5"]).with(&flag::TARGET_GC, "");
    let refused = flags.refused(|flag, _| {
        (flag.role.is_output() || flag.name == "target-gc").then(|| "remove it".to_owned())
    });
    let refused: Vec<String> = refused.iter().map(Mistake::to_string).collect();
    assert_eq!(refused, ["--csv: remove it: \"a\"", "--target-gc: remove it"]);
}

#[test]
fn a_load_is_the_same_whatever_is_written_where() {
    let args = |line: &str| load_args(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
    let check = |one, other, expected| assert_eq!(args(one) == args(other), expected, "{one} | {other}");
    let run = "run http://t/ -c 200 -d 2s";
    check(run, "run http://t/ -d 2s --connections=200", true);
    check(run, "run -c 200 -d 2s http://t/ --seed 7 --json - --tag a --tag b --live off", true);
    check(run, "run http://t/ -c 200 -d 2s --csv=m.csv --threshold faults<1 --parquet m.parquet", true);
    check(run, "run http://t/ -c 300 -d 2s", false);
    check(run, "run http://u/ -c 200 -d 2s", false);
    check(run, "run http://t/ -c 200 -d 2s --think 1s", false);
    check(run, "run http://t/ -c 200 -d 2s --target-gc", false);
    check("run t --total 5 --calls 3", "run t --total 3 --calls 5", false);
    check("run t --probe --think 1s", "run t --think 1s --probe", true);
}

#[test]
fn flags_are_read_back_from_their_pairs() {
    let flags = Flags::new("http://h/").with(&flag::CONNECTIONS, "5k");
    let flags = flags.with(&flag::TAG, "a").with(&flag::TAG, "b");
    assert_eq!(Flags::from_pairs(&flags.pairs()), Ok(flags));
    let unknown = Flags::from_pairs(&[("warp".to_owned(), "9".to_owned())]);
    assert_eq!(unknown, Err("no such flag: warp".to_owned()));
}
