//! What a run prints while it runs: on standard error, a line a second.

use crate::{
    program::{Ended, Program, Serving, file},
    summary::Summary,
};

/// Whether a line matches a pattern, word by word: in it `#` stands for a number, `@` for a unit.
fn fits(line: &str, pattern: &str) -> bool {
    let fits = |(word, pattern): (&str, &str)| match pattern.split_once('#') {
        _ if pattern.starts_with('@') => {
            word.strip_suffix(&pattern[1..]).is_some_and(|unit| unit.chars().all(char::is_alphabetic))
        }
        Some((before, after)) => {
            let number = word.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            number.is_some_and(|n| n.replace(',', "").parse::<f64>().is_ok_and(|n| n >= 0.0))
        }
        None => word == pattern,
    };
    let (words, patterns) = (line.split_whitespace(), pattern.split_whitespace());
    words.clone().count() == patterns.clone().count() && words.zip(patterns).all(fits)
}

#[test]
fn patterns_fit_what_they_should() {
    for (line, pattern, fit) in [
        ("  12s", "#s", true),
        ("  -1s", "#s", false),
        ("p50 1,350.5 µs", "p50 # @", true),
        ("p50 µs", "p50 # @", false),
        ("1.2 KiB/s", "# @/s", true),
        ("1.2 KiB", "# @/s", false),
        ("open 5 of", "open # of #", false),
        ("open 5 of 5 x", "open # of #", false),
    ] {
        assert_eq!(fits(line, pattern), fit, "{line:?} {pattern:?}");
    }
}

/// Two and a half seconds with a live view; its output, apart from warnings about this machine, and the summary.
fn watch(live: &[&str], name: &str) -> (Ended, Vec<String>, Summary) {
    let (server, json) = (Serving::start(&["--threads", "1"]), file(name));
    let (url, path) = (server.url("/?length=500"), json.to_str().unwrap());
    let args = ["run", &url, "-c", "10", "-d", "2300ms", "--think", "20ms", "--seed", "9", "--json", path];
    let ended = Program::start(&[&args, live].concat()).end();
    ended.assert_status(0);
    let lines = ended.stderr.lines().filter(|line| !line.starts_with("throng: "));
    let lines = lines.map(str::to_owned).collect();
    let summary = Summary(serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap());
    (ended, lines, summary)
}

#[test]
fn line_is_one_a_second_with_everything() {
    let (ended, lines, s) = watch(&["--live", "line"], "line.json");
    let head =
        format!("{}: 10 connections, 2 threads, uring, seed 9, adaptive ramp up to 30 s", s.text("target"));
    let threads = format!("{} threads", s.count("threads"));
    assert_eq!(lines[0], head.replace("2 threads", &threads));
    let pattern = "#s hold open # of # connects #/s requests #/s # @/s p50 # @ p95 # @ p99 # @ faults # cpu # cores memory # @";
    assert!((2..=1 + ended.took_s as usize).contains(&(lines.len() - 1)), "{lines:#?}");
    for line in &lines[1..] {
        // The last may be of the drain, and a busy machine makes a percentile a lower bound.
        let plain = line.replace(" drain ", " hold ").replace("≥ ", "");
        assert!(fits(&plain, pattern), "{line}");
        assert!(line.contains("open 10 of 10 "), "{line}");
        assert!(line.contains("faults 0 "), "{line}");
    }
    let seconds = |line: &String| line.trim_start().split('s').next().unwrap().parse::<u64>().unwrap();
    let seconds: Vec<u64> = lines[1..].iter().map(seconds).collect();
    assert!(seconds.is_sorted_by(|a, b| a < b) && seconds[0] <= 1, "{seconds:?}");
    // Ten connections, each with a response per 20 ms: hundreds a second, as in the summary.
    let rate = |line: &String| {
        let word = line.split("requests ").nth(1).unwrap().split('/').next().unwrap();
        word.replace(',', "").parse::<f64>().unwrap()
    };
    let (seen, summed_up) = (rate(&lines[2]), s.number("requests.per_s"));
    // A busy machine has slow seconds; a count or a sum in its place would be further off.
    assert!((0.3..3.0).contains(&(seen / summed_up)), "{seen}/s in a line, {summed_up}/s in all");
}

#[test]
fn line_is_what_auto_means_without_a_terminal() {
    let (_, lines, _) = watch(&[], "auto.json");
    assert!(lines[0].contains(": 10 connections") && lines[1].contains(" hold  open 10 of 10"), "{lines:?}");
}

#[test]
fn classic_is_the_http_kit_clients_line() {
    let (ended, lines, s) = watch(&["--live", "classic"], "classic.json");
    let pattern = "time #s, concurrency: #, total requests: #, thoughput: #M/s, # requests/seconds";
    assert!((3..=2 + ended.took_s as usize).contains(&lines.len()), "{lines:#?}");
    for line in &lines {
        assert!(fits(line, pattern), "{line}");
        assert!(line.contains("concurrency: 10,") || line == lines.last().unwrap(), "{line}");
    }
    let field = |line: &String, name: &str, end: &str| {
        let value = line.split(name).nth(1).unwrap().split(end).next().unwrap();
        value.parse::<f64>().unwrap()
    };
    let totals: Vec<f64> = lines.iter().map(|line| field(line, "total requests: ", ",")).collect();
    assert!(totals.is_sorted(), "cumulative: {totals:?}");
    assert_eq!(totals.last(), Some(&(s.count("requests.answered") as f64)));
    // Two means since the start: bytes over time, and requests over the same time.
    let last = lines.last().unwrap();
    let (mib, rate) = (field(last, "thoughput: ", "M/s"), field(last, "M/s, ", " requests"));
    let seconds = s.count("requests.answered") as f64 / rate;
    let expected = s.count("requests.bytes_in") as f64 / seconds / (1 << 20) as f64;
    assert!((mib - expected).abs() < 0.006, "{mib} MiB/s, {expected} by the summary");
    let whole = s.number("ramp_s") + s.number("duration_s");
    let took_s = ended.took_s;
    assert!((whole - 0.1..took_s).contains(&seconds), "{seconds} s by the line, {whole} by the summary");
}

#[test]
fn off_is_silent() {
    let (ended, lines, _) = watch(&["--live", "off"], "off.json");
    assert_eq!(lines, Vec::<String>::new());
    assert!(ended.stdout.contains("10 held of 10 wanted"), "the summary is the result: {}", ended.stdout);
}
