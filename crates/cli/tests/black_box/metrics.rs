//! The metrics of a run: what is written each second, compared with the summary.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
};

use serde_json::Value;

use crate::{
    program::{Ended, Program, Serving, file, until},
    summary::{Summary, run},
};

/// The last line of a CSV file, by column.
fn last_line(csv: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(csv).unwrap();
    // No cell has a single quote mark: outside of quoted cells, an even number of them precedes a comma.
    let cells = |line: &str| -> Vec<String> {
        let mut quotes = 0;
        let is_end = |c: char| {
            quotes += usize::from(c == '"');
            c == ',' && quotes % 2 == 0
        };
        let cells = line.split(is_end);
        cells.map(|cell| cell.trim_matches('"').replace("\"\"", "\"")).collect()
    };
    let lines: Vec<&str> = text.split_terminator("\r\n").collect();
    assert!(lines.len() > 2, "{text}");
    cells(lines[0]).into_iter().zip(cells(lines.last().unwrap())).collect()
}

#[test]
fn files_have_a_line_a_second_and_end_with_the_summarys_figures() {
    let server = Serving::start(&["--threads", "1"]);
    let (csv, jsonl) = (file("metrics.csv"), file("metrics.jsonl"));
    let args = ["-c", "20", "--think", "10ms", "-d", "2s", "--csv", csv.to_str().unwrap()];
    let (_, s) = run(&server.url("/"), &[&args[..], &["--jsonl", jsonl.to_str().unwrap()]].concat());
    let text = fs::read_to_string(&jsonl).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.len() >= 3, "{text}");
    let most = |name: &str| lines.iter().filter_map(|line| line[name].as_f64()).fold(0.0, f64::max);
    assert_eq!((most("throng_connections_open"), most("throng_connections_wanted")), (20.0, 20.0));
    let last = lines.last().unwrap();
    let figures = [
        ("throng_connections_opened_total", "connections.opened"),
        ("throng_requests_total", "requests.sent"),
        ("throng_answers_total", "requests.answered"),
        ("throng_received_bytes_total", "requests.bytes_in"),
        ("throng_received_body_bytes_total", "requests.body_bytes_in"),
        ("throng_sent_bytes_total", "requests.bytes_out"),
        ("throng_statuses_total{status=\"200\"}", "requests.status.200"),
        ("throng_latency_seconds_count", "latency_us.count"),
        ("throng_connect_seconds_count", "connect_us.count"),
        ("throng_lag_seconds_count", "lag_us.count"),
    ];
    let seed = s.count("seed");
    let columns = last_line(&csv);
    for (name, path) in figures {
        assert_eq!(last[name].as_u64(), Some(s.count(path)), "{name}: {text}");
        if !name.contains('{') {
            assert_eq!(columns[name], s.count(path).to_string(), "{name}");
        }
    }
    assert_eq!(columns["throng_statuses_total"], s.count("requests.answered").to_string());
    let mean = last["throng_latency_seconds_sum"].as_f64().unwrap() / s.number("latency_us.count") * 1e6;
    assert!((mean / s.number("latency_us.mean") - 1.0).abs() < 1e-6, "{mean}");
    assert!(text.contains(&format!("seed=\\\"{seed}\\\"")), "{text}");
}

#[test]
fn a_file_that_cannot_be_made_stops_the_run_before_it_starts() {
    let server = Serving::start(&["--threads", "1"]);
    for flag in ["--csv", "--jsonl"] {
        let ended = Program::start(&["run", &server.url("/"), flag, "/no/such/folder/m"]).end();
        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(&format!("throng: {flag} /no/such/folder/m: ")), "{ended:?}");
        assert!(!ended.stderr.contains("connections"), "nothing was dialled: {ended:?}");
    }
}

#[test]
fn a_full_file_affects_nothing_else() {
    let server = Serving::start(&["--threads", "1"]);
    let jsonl = file("beside-a-full-one.jsonl");
    let Ended { status, stdout, stderr, .. } = Program::start(&[
        "run",
        &server.url("/"),
        "-c",
        "3",
        "-d",
        "1s",
        "--think",
        "20ms",
        "--csv",
        "/dev/full",
        "--jsonl",
        jsonl.to_str().unwrap(),
    ])
    .end();
    assert_eq!(status, Some(3), "{stderr}");
    assert!(
        stderr.contains("throng: --csv /dev/full: ") && stdout.contains("3 held of 3 wanted"),
        "{stdout}{stderr}"
    );
    assert!(fs::read_to_string(&jsonl).unwrap().lines().count() >= 2);
}

#[test]
fn a_search_has_no_metrics() {
    let ended =
        Program::start(&["find", "http://127.0.0.1:9/", "--csv", "a", "--jsonl", "b", "--tag", "t"]).end();
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(
        ["--csv: not supported by `throng find`", "--jsonl: ", "--tag: a search is not stored"]
            .iter()
            .all(|line| ended.stderr.contains(line)),
        "{ended:?}"
    );
}

/// The value of each series.
type Scrape = BTreeMap<String, f64>;

fn scrape(at: SocketAddr) -> io::Result<Scrape> {
    let (mut stream, mut text) = (TcpStream::connect(at)?, String::new());
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: throng\r\nConnection: close\r\n\r\n")?;
    stream.read_to_string(&mut text)?;
    let (_, body) = text.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    let values =
        body.lines().filter(|line| !line.starts_with('#')).map(|line| line.rsplit_once(' ').unwrap());
    Ok(values.map(|(series, value)| (series.to_owned(), value.parse().unwrap())).collect())
}

/// Scrapes again and again until the run is over: the maximum of each series, which for a counter is its last value,
/// and the summary.
fn scraped(target: &str, args: &[&str]) -> (Scrape, Summary) {
    let mut run = Program::start(&[&["run", target, "--json", "-", "--prometheus", "0"], args].concat());
    run.wait_for("/metrics\n");
    let output = run.stderr();
    let at = output.split("metrics at http://").nth(1).and_then(|rest| rest.split('/').next()).unwrap();
    let (at, mut most) = (at.parse().unwrap(), Scrape::new());
    until("the end of the run", || {
        for (series, value) in scrape(at).into_iter().flatten() {
            let known = most.entry(series).or_insert(value);
            *known = value.max(*known);
        }
        run.is_ended()
    });
    let ended = run.end();
    (most, Summary(serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}"))))
}

#[test]
fn scrapes_come_to_the_summarys_figures() {
    let server = Serving::start(&["--threads", "1"]);
    // One request a connection, at once: at the end nothing grows any more, whenever the last scrape was.
    let (most, s) = scraped(&server.url("/"), &["-c", "25", "--think", "1h", "-d", "3s"]);
    let check = |series: &str, path: &str| assert_eq!(most.get(series), Some(&s.number(path)), "{series}");
    check("throng_connections_open", "connections.peak");
    check("throng_connections_wanted", "connections.wanted");
    check("throng_connections_opened_total", "connections.opened");
    check("throng_requests_total", "requests.sent");
    check("throng_answers_total", "requests.answered");
    check("throng_sent_bytes_total", "requests.bytes_out");
    check("throng_received_bytes_total", "requests.bytes_in");
    check("throng_statuses_total{status=\"200\"}", "requests.status.200");
    check("throng_connect_seconds_count", "connect_us.count");
    check("throng_connect_seconds_bucket{le=\"+Inf\"}", "connect_us.count");
    check("throng_ramp_latency_seconds_count", "ramp_latency_us.count");
    check("throng_latency_seconds_count", "latency_us.count");
    check("throng_lag_seconds_count", "lag_us.count");
    assert_eq!(most["throng_phase{phase=\"hold\"}"], 1.0);
    let sum = s.number("connect_us.mean") * s.number("connect_us.count") / 1e6;
    assert!((most["throng_connect_seconds_sum"] / sum - 1.0).abs() < 1e-6, "{sum}");
    assert!(most["throng_target_resident_bytes"] > 1e5 && most["throng_generator_resident_bytes"] > 1e5);
}

#[test]
fn populations_are_distinguished() {
    let server = Serving::start(&["--threads", "1"]);
    let path = file("two-populations.toml");
    let text = format!(
        "target = \"{}\"\n[[population]]\nname = \"few\"\nconnections = 3\nthink = \"1h\"\n\
         [[population]]\nname = \"many\"\nconnections = 17\nthink = \"1h\"\n[[stage]]\nfor = \"3s\"\n",
        server.url("/")
    );
    fs::write(&path, text).unwrap();
    let (most, s) = scraped(path.to_str().unwrap(), &[]);
    for name in ["few", "many"] {
        let check = |metric: &str, path: &str| {
            let expected = s.number(&format!("populations.{name}.{path}"));
            let series = format!("{metric}{{population=\"{name}\"}}");
            assert_eq!(most.get(&series), Some(&expected), "{series}: {most:?}");
        };
        check("throng_connections_open", "connections.held");
        check("throng_connections_wanted", "connections.wanted");
        check("throng_requests_total", "requests.sent");
        check("throng_connect_seconds_count", "connect_us.count");
    }
    assert_eq!(s.count("connections.held"), 20);
}

#[test]
fn a_port_in_use_stops_the_run_before_it_starts() {
    let (server, taken) = (Serving::start(&["--threads", "1"]), TcpListener::bind("127.0.0.1:0").unwrap());
    let at = taken.local_addr().unwrap().to_string();
    for flag in ["--prometheus", "--dashboard"] {
        let ended = Program::start(&["run", &server.url("/"), "-d", "1s", flag, &at]).end();
        assert_eq!(ended.status, Some(3), "{ended:?}");
        let why = "address in use: another process listens there; use another port, or port 0 for a free one";
        assert!(ended.stderr.contains(&format!("throng: {flag} {at}: {why}\n")), "{ended:?}");
    }
}

#[test]
fn an_unreachable_influxdb_costs_two_lines() {
    let server = Serving::start(&["--threads", "1"]);
    // The discard port: nothing listens there.
    let influx = "http://127.0.0.1:9/write?db=throng";
    let (ended, s) = run(&server.url("/"), &["-c", "5", "--think", "20ms", "-d", "2s", "--influx", influx]);
    ended.assert_status(0);
    let lines: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("--influx")).collect();
    let begin = "throng: --influx 127.0.0.1:9: ";
    assert_eq!(lines.len(), 2, "{}", ended.stderr);
    assert!(lines[0].starts_with(&format!("{begin}retrying, the run continues: ")), "{lines:?}");
    assert!(
        lines[1].starts_with(begin)
            && lines[1].contains("seconds of the run are missing; send them with `throng replay "),
        "{lines:?}"
    );
    assert!(s.number("elapsed_s") < 20.0, "{}", s.number("elapsed_s"));
}

#[test]
fn a_wrong_token_file_is_reported_before_the_run() {
    let (token, url) = (file("influx-token"), "http://127.0.0.1:9/api/v2/write?org=o&bucket=b");
    fs::write(&token, "secret").unwrap();
    fs::set_permissions(&token, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let token = token.to_str().unwrap();
    let args = ["run", "http://127.0.0.1:9/", "--influx", url, "--influx-token-file", token];
    let ended = Program::start(&args).end();
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(
        ended.stderr.starts_with("throng: --influx-token-file: other users can access this file"),
        "{ended:?}"
    );
}
