use super::*;
use crate::flag::FLAGS;

/// The outputs of pairs of flag and value.
fn outputs(flags: &[(&str, &str)]) -> Result<Outputs, Vec<String>> {
    let resolve = |_: &str| Err("no such host".to_owned());
    let named = |name: &str| Flag::named(name).unwrap_or_else(|| panic!("no flag {name}"));
    let parsed = flags.iter().fold(Flags::default(), |parsed, (name, value)| parsed.with(named(name), value));
    let printed = |mistakes: Vec<Mistake>| mistakes.iter().map(Mistake::to_string).collect();
    Outputs::from_flags(&parsed, &[], &resolve).map_err(printed)
}

fn check(flags: &[(&str, &str)], mistakes: &[&str]) {
    assert_eq!(outputs(flags).unwrap_err(), mistakes, "{flags:?}");
}

#[test]
fn without_flags_there_is_a_live_view_and_a_summary() {
    let none = outputs(&[]).unwrap();
    assert_eq!((none.live, none.format, none.tags), (Live::Auto, Format::OWN, Vec::new()));
    assert_eq!((none.json, none.prometheus, none.dashboard), (None, None, None));
}

#[test]
fn every_output_arrives() {
    let influx = "http://127.0.0.1:8086/write?db=t";
    let all = outputs(&[
        ("--live", "classic"),
        ("--format", "httperf"),
        ("--influx", influx),
        ("--influx-token-file", "other"),
        ("--tag", "before"),
        ("--tag", "v1.2"),
        ("--tag", "before"),
        ("--hlog", "a"),
        ("--csv", "b"),
        ("--jsonl", "c"),
        ("--parquet", "d"),
        ("--json", "-"),
        ("--out", "e"),
        ("--report", "f.md"),
    ]);
    let all = all.unwrap();
    assert_eq!((all.live, all.format), (Live::Classic, Format { tool: Tool::Httperf, of: None }));
    let influx = all.influx.expect("it was given");
    assert_eq!((influx.url.host.as_str(), influx.token_file.as_deref()), ("127.0.0.1:8086", Some("other")));
    assert_eq!(all.tags, ["before", "v1.2"], "each once");
    let files = [all.hlog, all.csv, all.jsonl, all.parquet, all.json, all.out, all.report];
    assert_eq!(files.map(Option::unwrap), ["a", "b", "c", "d", "-", "e", "f.md"]);
}

/// Each output flag is reported with the value "?", or changes the outputs.
#[test]
fn every_flag_of_outputs_is_read_and_no_other() {
    for flag in FLAGS {
        let with = outputs(&[(&flag.place(), "?")]);
        let is_read = match &with {
            Ok(_) => with != outputs(&[]),
            Err(mistakes) => mistakes[0].starts_with(&format!("{}: ", flag.place())),
        };
        assert_eq!(is_read, flag.role.is_output(), "{}: {with:?}", flag.place());
    }
}

#[test]
fn an_endpoint_is_an_address_and_a_port() {
    for (text, at) in [("0", "127.0.0.1:0"), ("0.0.0.0:1", "0.0.0.0:1"), ("[::1]:65535", "[::1]:65535")] {
        assert_eq!(outputs(&[("--prometheus", text)]).unwrap().prometheus, at.parse().ok());
    }
    for text in ["", "65536", "127.0.0.1", "http://127.0.0.1:1", "localhost:1"] {
        let fix = "is not an address and port; use 127.0.0.1:9464, or 9464 for the same";
        check(&[("--prometheus", text)], &[&format!("--prometheus: {text:?} {fix}")]);
    }
}

#[test]
fn a_dashboard_that_others_reach_has_a_token() {
    let at = |flags: &[(&str, &str)]| outputs(flags).unwrap().dashboard.map(|dashboard| dashboard.at);
    assert_eq!(at(&[("--dashboard", "9909")]), "127.0.0.1:9909".parse().ok());
    let with_token = [("--dashboard", "0.0.0.0:1"), ("--dashboard-token-file", "t")];
    assert_eq!(at(&with_token), "0.0.0.0:1".parse().ok());
    let open =
        "--dashboard: without --dashboard-token-file only loopback is allowed; use 127.0.0.1:1: 0.0.0.0:1";
    check(&with_token[..1], &[open]);
    check(&with_token[1..], &["--dashboard-token-file: requires --dashboard"]);
}

#[test]
fn all_mistakes_come_at_once() {
    let fix =
        "use http://HOST:8086/write?db=throng, or for version 2 http://HOST:8086/api/v2/write?org=O&bucket=B";
    check(
        &[("--influx", "http://127.0.0.1:1"), ("--live", "on"), ("--tag", "a b")],
        &[
            "--live: \"on\" is not a live view; use auto, tui, line, classic or off",
            &format!("--influx: not a write endpoint; {fix}: \"http://127.0.0.1:1\""),
            "--tag: may have letters, digits, -, _ and . only: \"a b\"",
        ],
    );
    let alone = "requires --influx http://HOST:8086/api/v2/write?org=O&bucket=B";
    check(&[("--influx-token-file", "t")], &[&format!("--influx-token-file: {alone}: \"t\"")]);
}
