use super::*;
use crate::{Load, Tool};
use proptest::prelude::*;

const URL: &str = "http://127.0.0.1:1/";

fn plan(flags: &Flags) -> Result<Plan, Vec<Mistake>> {
    let resolve = |name: &str| match name {
        "localhost" => Ok(["::1", "127.0.0.1"].map(|text| text.parse().unwrap()).to_vec()),
        _ => Err("no such host".to_owned()),
    };
    from_flags(flags, &Surroundings { cores: 2, seed: 77, resolve: &resolve })
}

/// The flags of a command line: the target, then pairs of flag and value.
fn flags(line: &[&str]) -> Flags {
    let mut flags = Flags { target: line.first().map(|text| (*text).to_owned()), ..Flags::default() };
    for pair in line.get(1..).unwrap_or_default().chunks(2) {
        if pair[0] == "--threshold" {
            flags.thresholds.push(pair[1].to_owned());
            continue;
        }
        if pair[0] == "--tag" {
            flags.tags.push(pair[1].to_owned());
            continue;
        }
        let slot = match pair[0] {
            "-c" => &mut flags.connections,
            "--ramp" => &mut flags.ramp,
            "-d" => &mut flags.duration,
            "--rate" => &mut flags.rate,
            "--arrive" => &mut flags.arrive,
            "--total" => &mut flags.total,
            "--calls" => &mut flags.calls,
            "--probe" => &mut flags.probe,
            "--think" => &mut flags.think,
            "--ping" => &mut flags.ping,
            "--message" => &mut flags.message,
            "--timeout" => &mut flags.timeout,
            "--expect" => &mut flags.expect,
            "--reconnect" => &mut flags.reconnect,
            "--sources" => &mut flags.sources,
            "--threads" => &mut flags.threads,
            "--seed" => &mut flags.seed,
            "--io" => &mut flags.io,
            "--live" => &mut flags.live,
            "--format" => &mut flags.format,
            "--observe" => &mut flags.observe,
            "--observe-token-file" => &mut flags.observe_token_file,
            "--prometheus" => &mut flags.prometheus,
            "--dashboard" => &mut flags.dashboard,
            "--dashboard-token-file" => &mut flags.dashboard_token_file,
            "--influx" => &mut flags.influx,
            "--otlp" => &mut flags.otlp,
            "--influx-token-file" => &mut flags.influx_token_file,
            flag => panic!("no flag {flag}"),
        };
        *slot = Some(pair[1].to_owned());
    }
    flags
}

/// The one population of a command line.
fn main(line: &[&str]) -> Population {
    let plan = plan(&flags(line)).unwrap();
    let [main] = <[Population; 1]>::try_from(plan.populations).expect("there is one");
    main
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
    assert_eq!((plan.probe, plan.live, plan.format, plan.observe), (None, Live::Auto, Format::OWN, None));
    assert_eq!((plan.text.as_str(), plan.thresholds, plan.prometheus), (URL, Vec::new(), None));
}

#[test]
fn every_flag_arrives() {
    #[rustfmt::skip]
    let line = [
        "http://127.0.0.{1..2}:80/?length={rand 1 4096}", "-c", "1m", "--ramp", "20k/s", "-d", "forever", "--think", "5s..45s",
        "--timeout", "3s", "--expect", "status=200,length=$1", "--reconnect", "never", "--sources", "127.1.0.0/16",
        "--threads", "8", "--seed", "42", "--io", "epoll", "--live", "classic", "--probe", "10/s",
        "--format", "httperf",
        "--observe", "http://127.0.0.1:9100", "--observe-token-file", "secret",
        "--prometheus", "9464", "--influx", "http://127.0.0.1:8086/write?db=t", "--influx-token-file", "other",
        "--tag", "before", "--tag", "v1.2", "--tag", "before",
    ];
    let plan = plan(&flags(&line)).unwrap();
    let text = "\
seed = \"42\"
threads = 8
io = \"epoll\"
sources = \"127.1.0.0/16\"

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
    assert_eq!((plan.live, plan.format), (Live::Classic, Format { tool: Tool::Httperf, of: None }));
    assert_eq!(plan.tags, ["before", "v1.2"], "each once");
    let observe = Observe { at: "127.0.0.1:9100".parse().unwrap(), token_file: Some("secret".to_owned()) };
    let influx = plan.influx.expect("it was asked for");
    assert_eq!((influx.host.as_str(), influx.token_file.as_deref()), ("127.0.0.1:8086", Some("other")));
    assert_eq!((plan.observe, plan.prometheus), (Some(observe), "127.0.0.1:9464".parse().ok()));
    assert_eq!(plan.probe.map(|probe| probe.does), plan.populations.first().cloned());
    assert_eq!(plan.populations[0].target.destinations.len(), 2);
}

/// (line, what is sent and how often)
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
fn websocket_sends_by_itself_and_tcp_what_it_is_told() {
    check_message(&["ws://127.0.0.1:9/ws/echo"], Some(("ping", 30)));
    check_message(&["ws://127.0.0.1:9", "--message", "", "--ping", "5s"], Some(("", 5)));
    check_message(&["ws://127.0.0.1:9", "--message", "hä", "--ping", "0"], Some(("hä", 0)));
    check_message(&["tcp://127.0.0.1:9"], None);
    check_message(&["tcp://127.0.0.1:9", "--message", "x"], Some(("x", 30)));
    check_message(&[URL], None);
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
    check(&[URL, "--io", "uring", "--live", "line"], &[]);
    check(&[URL, "--live", "off", "--io", "auto", "--reconnect", "planned"], &[]);
    check(&["tcp://127.0.0.1:9", "--live", "auto"], &[]);
    check(&["http://localhost/", "--sources", "::1"], &[]);
}

#[test]
fn an_endpoint_is_an_address_and_a_port() {
    for (text, at) in [("0", "127.0.0.1:0"), ("0.0.0.0:1", "0.0.0.0:1"), ("[::1]:65535", "[::1]:65535")] {
        assert_eq!(plan(&flags(&[URL, "--prometheus", text])).unwrap().prometheus, at.parse().ok());
    }
    for text in ["", "65536", "127.0.0.1", "http://127.0.0.1:1", "localhost:1"] {
        let cure = "is not an address and port; use 127.0.0.1:9464, or 9464 for the same";
        check(&[URL, "--prometheus", text], &[&format!("--prometheus: {text:?} {cure}")]);
    }
}

#[test]
fn a_dashboard_that_others_reach_has_a_token() {
    let at = |words: &[&str]| plan(&flags(&[&[URL], words].concat())).unwrap().dashboard;
    assert_eq!(at(&["--dashboard", "9909"]), "127.0.0.1:9909".parse().ok());
    assert_eq!(at(&["--dashboard", "0.0.0.0:1", "--dashboard-token-file", "t"]), "0.0.0.0:1".parse().ok());
    let open =
        "--dashboard: without --dashboard-token-file only loopback is allowed; use 127.0.0.1:1: 0.0.0.0:1";
    check(&[URL, "--dashboard", "0.0.0.0:1"], &[open]);
    let idle = "--dashboard-token-file: requires --dashboard";
    check(&[URL, "--dashboard-token-file", "t"], &[idle]);
}

#[test]
fn a_database_has_its_place() {
    let cure =
        "use http://HOST:8086/write?db=throng, or for version 2 http://HOST:8086/api/v2/write?org=O&bucket=B";
    check(
        &[URL, "--influx", "http://127.0.0.1:1"],
        &[&format!("--influx: not a write endpoint; {cure}: \"http://127.0.0.1:1\"")],
    );
    let nobody = "requires --influx http://HOST:8086/api/v2/write?org=O&bucket=B";
    check(&[URL, "--influx-token-file", "t"], &[&format!("--influx-token-file: {nobody}: \"t\"")]);
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
fn mistakes_are_named_with_their_cure() {
    check(&[], &["target: missing; use http://host:port/"]);
    check(&["gopher://x/"], &["target: \"gopher\" is not a scheme; use http://, ws:// or tcp://"]);
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
    check(&[URL, "--ramp", "30"], &["--ramp: \"30\" is not a rate; use 30/s"]);
    check(&[URL, "--ramp", "20k"], &["--ramp: \"20k\" is not a rate; use 20k/s"]);
    check(&[URL, "--ramp", "fast"], &["--ramp: \"fast\" is not a rate or a time; use 20k/s or 30s"]);
    check(&[URL, "--ramp", "0/s"], &["--ramp: \"0/s\" is not a rate greater than 0; use 20k/s"]);
    check(&[URL, "-d", "10"], &["--duration: \"10\" is not a time; use 10s"]);
    check(&[URL, "--think", "9s..2s"], &["--think: \"9s..2s\" is not a range of times; use 2s..9s"]);
    check(&[URL, "--timeout", "0"], &["--timeout: \"0\" is not a timeout greater than 0; use 10s"]);
    check(
        &[URL, "--expect", "length=$1"],
        &["--expect: the target has no random number; add {rand 1 4096} to it: \"$1\""],
    );
    check(
        &["tcp://127.0.0.1:9", "--expect", "status=200"],
        &["--expect: tcp:// has no status or length; remove it: \"status=200\""],
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
    check(&[URL, "--sources", "::1"], &["target: no IPv6 address, the family of --sources: \"127.0.0.1\""]);
    for text in ["0", "1025", "few"] {
        let wrong = format!("--threads: {text:?} is not a number of threads; use 1 to 1024");
        check(&[URL, "--threads", text], &[&wrong]);
    }
    check(&[URL, "--seed", "-1"], &["--seed: \"-1\" is not a seed; use a whole number, as 42"]);
    check(&[URL, "--io", "kqueue"], &["--io: \"kqueue\" is not an I/O backend; use auto, uring or epoll"]);
    check(
        &[URL, "--live", "on"],
        &["--live: \"on\" is not a live view; use auto, tui, line, classic or off"],
    );
}

#[test]
fn what_one_protocol_has_and_another_has_not() {
    for target in ["ws://127.0.0.1:9/", "tcp://127.0.0.1:9"] {
        let scheme = target.split_inclusive("//").next().unwrap();
        check(
            &[target, "--think", "5s", "--message", "x"],
            &[&format!(
                "--think: not for {scheme}, which sends a message per --ping; use --ping 30s: \"5s\""
            )],
        );
    }
    let http = "not for http://; remove it, or use --think for the time between requests";
    check(
        &[URL, "--ping", "5s", "--message", ""],
        &[&format!("--ping: {http}"), &format!("--message: {http}")],
    );
    check(
        &["tcp://127.0.0.1:9", "--ping", "5s"],
        &["--ping: tcp:// sends nothing without a message; add --message ping: \"5s\""],
    );
    check(
        &["tcp://127.0.0.1:9", "--message", ""],
        &["--message: an empty message has no echo; use a non-empty text: \"\""],
    );
    let long = "x".repeat(65_537);
    check(&["ws://127.0.0.1:9", "--message", &long], &["--message: at most 65,536 octets: 65,537"]);
    check(&["ws://127.0.0.1:9", "--ping", "30"], &["--ping: \"30\" is not a time; use 30s"]);
}

#[test]
fn all_mistakes_come_at_once() {
    #[rustfmt::skip]
    check(
        &["gopher://x/", "-c", "many", "--think", "9s..2s", "--expect", "length=$1"],
        &[
            "target: \"gopher\" is not a scheme; use http://, ws:// or tcp://",
            "--connections: \"many\" is not a number of connections; use 1 to 4,294,967,295, as 100k or 1m",
            "--think: \"9s..2s\" is not a range of times; use 2s..9s",
        ],
    );
}

proptest! {
    #[test]
    fn any_words_give_a_plan_or_printable_mistakes(
        target in "(http|tcp|x)?(://)?[a-z0-9{}\\[\\]:./?$ \\-]{0,20}(\\{rand [0-9]{1,20} [0-9]{1,20}\\})?\\PC{0,3}",
        words in proptest::collection::vec("[0-9a-z.,:/$=µ \u{1b}\n-]{0,12}|\\PC{0,6}", 17),
    ) {
        let names = ["-c", "--ramp", "-d", "--think", "--timeout", "--expect", "--reconnect", "--sources", "--threads"];
        let names = names.iter().chain(&["--seed", "--io", "--live", "--rate", "--arrive", "--total", "--calls", "--probe"]);
        let mut line = vec![target.as_str()];
        line.extend(names.zip(&words).flat_map(|(name, word)| [*name, word.as_str()]));
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

#[test]
fn a_schedule_of_the_whole_run() {
    let load = |line: &[&str]| {
        let plan = plan(&flags(line)).unwrap();
        (plan.populations[0].load, plan.populations[0].calls, plan.stages[0].ramp, plan.stages[0].hold)
    };
    let ten = Hold::For(Nanos::from_secs(10));
    let rate = |connections| Load::Rate { connections, rate: Rate::per_s(20_000) };
    assert_eq!(load(&[URL, "-c", "1k", "--rate", "20k/s"]), (rate(1_000), None, Ramp::Adaptive, ten));
    for target in ["ws://127.0.0.1:9", "tcp://127.0.0.1:9"] {
        assert_eq!(
            load(&[target, "--message", "x", "--rate", "20k/s"]),
            (rate(50), None, Ramp::Adaptive, ten)
        );
    }
    let arrive = [URL, "--arrive", "6k/s", "--total", "40k", "--calls", "10"];
    let six = Load::Arrivals { rate: Rate::per_s(6_000), total: Some(40_000) };
    assert_eq!(load(&arrive), (six, Some(10), Ramp::Adaptive, Hold::Forever));
    assert_eq!(load(&[&arrive[..5], &["-d", "10s"]].concat()), (six, Some(1), Ramp::Adaptive, ten));
    let span = Spans { min: Nanos::from_secs(1), max: Nanos::from_secs(30) };
    assert_eq!(main(&[URL, "--reconnect", "1s..30s"]).reconnect, Reconnect::Backoff(span));
}

#[test]
fn schedules_that_contradict_each_other() {
    check(&[URL, "--rate", "20k"], &["--rate: \"20k\" is not a rate; use 20k/s"]);
    check(&[URL, "--rate", "0/s"], &["--rate: \"0/s\" is not a rate greater than 0; use 20k/s"]);
    let due = "cannot be used with --rate, which sets when requests are due; remove it";
    check(&[URL, "--rate", "5/s", "--think", "1s"], &[&format!("--think: {due}: \"1s\"")]);
    check(&["ws://127.0.0.1:9", "--rate", "5/s", "--ping", "1s"], &[&format!("--ping: {due}: \"1s\"")]);
    let tcp = "tcp:// sends nothing without a message; add --message ping";
    check(
        &["tcp://127.0.0.1:9", "--rate", "5/s", "--probe", "1/s"],
        &[&format!("--rate: {tcp}: \"5/s\""), &format!("--probe: {tcp}: \"1/s\"")],
    );
    check(&[URL, "--probe", "0/s"], &["--probe: \"0/s\" is not a rate greater than 0; use 10/s"]);
    let eaten = format!("--probe: the target was read as the value of --probe; use --probe 10/s: {URL:?}");
    check(&[URL, "--probe", URL], &[&eaten]);
    check(&[URL, "--probe", "many"], &["--probe: \"many\" is not a rate; use 20k/s or 600/m"]);
    let alone = "requires --arrive; add it, or remove this";
    check(
        &[URL, "--calls", "5", "--total", "9"],
        &[&format!("--total: {alone}: \"9\""), &format!("--calls: {alone}: \"5\"")],
    );
    check(
        &[URL, "--arrive", "0/s", "--calls", "0"],
        &[
            "--total: missing; use the total number of connections, as 40k",
            "--arrive: \"0/s\" is not a rate greater than 0; use 100/s",
            "--calls: \"0\" is not a number of requests; use 1 or more, as 10",
        ],
    );
    let line = [
        "-c",
        "5",
        "--ramp",
        "1s",
        "--rate",
        "5/s",
        "--reconnect",
        "never",
        "--total",
        "9",
        "--arrive",
        "1/s",
    ];
    check(
        &[&["tcp://127.0.0.1:9"], &line[..]].concat(),
        &[
            "--connections: with --arrive, --total sets the number of connections; remove it: \"5\"",
            "--ramp: with --arrive, --arrive sets the connection rate; remove it: \"1s\"",
            "--rate: with --arrive, --calls sets the requests per connection; remove it: \"5/s\"",
            "--reconnect: with --arrive, no connection is dialled again; remove it: \"never\"",
            "--arrive: only for http:// in this version: \"tcp://\"",
        ],
    );
}

fn check(line: &[&str], mistakes: &[&str]) {
    let found = plan(&flags(line)).err().unwrap_or_default();
    assert_eq!(found.iter().map(Mistake::to_string).collect::<Vec<_>>(), mistakes, "{line:?}");
}

#[test]
fn thresholds_keep_their_order_and_all_their_mistakes_are_told() {
    let texts = |plan: Plan| plan.thresholds.into_iter().map(|t| t.text).collect::<Vec<_>>();
    let read = plan(&flags(&[URL, "--threshold", "faults == 0", "--threshold", "held >= 99%"]));
    assert_eq!(read.map(texts), Ok(vec!["faults == 0".to_owned(), "held >= 99%".to_owned()]));
    let line =
        [URL, "--threshold", "fault == 0", "-c", "0", "--threshold", "faults == 0", "--threshold", "held"];
    let mistakes: Vec<String> = plan(&flags(&line)).unwrap_err().iter().map(Mistake::to_string).collect();
    let words =
        ["--connections: ", "--threshold: \"fault\" is not", "--threshold: \"held\" is not a threshold"];
    assert_eq!(mistakes.len(), words.len(), "{mistakes:?}");
    assert!(mistakes.iter().zip(words).all(|(mistake, word)| mistake.contains(word)), "{mistakes:?}");
}
