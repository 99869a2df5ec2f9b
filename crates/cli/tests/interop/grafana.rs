//! Grafana's dashboards, without Grafana: every query of both, with the variables inserted as Grafana does it, is run against
//! Debian's InfluxDB and Prometheus, filled by real runs.

mod board;
mod made_up;

use std::{
    collections::BTreeMap,
    fs,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::Value;

use crate::{
    influxdb::influxdb,
    program::{Program, Serving, file, until},
    prometheus::prometheus,
    scripted::Scripted,
    server::{Server, free_place},
    summary::Summary,
};
use board::{Board, Chosen, Line};

/// A run in progress, scraped and pushing.
struct Run {
    program: Program,
    rows: std::path::PathBuf,
}

/// A run that has ended.
struct Done {
    summary: Summary,
    /// `--jsonl`: what the exporters got, second by second.
    rows: Vec<Value>,
}

impl Run {
    fn start(name: &str, target: &str, args: &[&str], scraped: &str, influx: &str) -> Run {
        let rows = file(&format!("grafana-{name}.jsonl"));
        let ours = ["--jsonl", rows.to_str().unwrap(), "--prometheus", scraped, "--influx", influx];
        let args = [&["run", target, "--json", "-"], args, &ours].concat();
        Run { program: Program::start(&args), rows }
    }

    fn end(self) -> Done {
        let ended = self.program.end();
        assert!(!ended.stderr.contains("--influx"), "{}", ended.stderr);
        let summary = serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}"));
        let text = fs::read_to_string(&self.rows).unwrap();
        let rows = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Done { summary: Summary(summary), rows }
    }
}

impl Done {
    /// A number of each second, where it exists.
    fn each(&self, key: &str) -> Vec<f64> {
        self.rows.iter().filter_map(|row| row[key].as_f64()).collect()
    }

    fn seed(&self) -> String {
        self.summary.count("seed").to_string()
    }
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

/// Both databases, with all that the dashboards query.
struct Filled {
    influxdb: Server,
    prometheus: Server,
    /// Milliseconds since 1970: everything happened between these.
    time: (u64, u64),
    target: String,
    /// Requests with a probe; its target's name contains everything that has a meaning in a regular expression.
    http: Done,
    /// WebSockets with pings.
    pings: Done,
    /// Every response is a fault.
    wrong: Done,
}

/// Prometheus is started first: it takes seconds, and sees nothing of what happens before.
fn fill() -> Filled {
    let began = now_ms();
    let (server, influxdb, by_hand) =
        (Serving::start(&["--threads", "1"]), influxdb("grafana"), made_up::endpoint());
    let places = [free_place(), free_place(), free_place()].map(|place| place.to_string());
    let [first, second, third] = places.each_ref().map(String::as_str);
    let prometheus = prometheus("grafana", &[first, second, third, &by_hand.address.to_string()]);
    until("Prometheus has seen the figures made by hand twice", || by_hand.log.requests() > 1);
    let url = influxdb.url("/write?db=throng");
    let target = server.url("/?length={rand 1 4096}");
    let held = ["-c", "40", "--ramp", "20/s", "--think", "50ms", "-d", "4s", "--probe", "20/s"];
    // Prometheus sees growth only between two scrapes: opening connections takes several seconds.
    let pings = ["-c", "10", "--ramp", "4/s", "--ping", "200ms", "-d", "4s"];
    let wrong = ["-c", "5", "--think", "100ms", "-d", "5s", "--expect", "status=404"];
    let http = Run::start("http", &target, &held, first, &url);
    let echo = server.url("/ws/echo").replace("http", "ws");
    let pings = Run::start("pings", &echo, &pings, second, &url);
    let wrong = Run::start("wrong", &server.url("/"), &wrong, third, &url);
    let (http, pings, wrong) = (http.end(), pings.end(), wrong.end());
    made_up::write(&influxdb, now_ms());
    drop::<Scripted>(by_hand);
    Filled { influxdb, prometheus, time: (began, now_ms() + 1000), target, http, pings, wrong }
}

/// The distance of two scrapes at the end of a run: the last second may be missing.
fn is_among_the_last(n: f64, seconds: &[f64]) {
    let last = &seconds[seconds.len().saturating_sub(3)..];
    assert!(last.contains(&n), "{n}: {seconds:?}");
}

#[test]
fn every_query_has_a_response_and_the_summarys_figures() {
    let filled = fill();
    influxdb_answers(&filled);
    prometheus_answers(&filled);
}

fn influxdb_answers(filled: &Filled) {
    let board = Board::read("throng-influxdb");
    let all = Chosen::all(filled.time);
    for query in board.queries() {
        board::influx(&filled.influxdb, query, &all).assert_some(query);
    }
    let Filled { http, pings, wrong, .. } = filled;
    let runs = [http, pings, wrong];
    let mut seeds: Vec<String> =
        runs.iter().map(|run| run.seed()).chain([made_up::SEED.to_owned()]).collect();
    seeds.sort();
    assert_eq!(board::influx_variable(&filled.influxdb, board.variable("seed"), &all), seeds);
    assert_eq!(board::influx_variable(&filled.influxdb, board.variable("host"), &all), [made_up::HOST]);
    // One run, chosen by both variables.
    let one = all.run(&filled.target, &http.seed());
    let seed = board::influx_variable(&filled.influxdb, board.variable("seed"), &one);
    assert_eq!(seed, [http.seed()]);
    let number = |title: &str| {
        let line = board.query(title, 0);
        board::influx(&filled.influxdb, line, &one).shown(line)
    };
    let s = &http.summary;
    assert_eq!(number("Most connections open"), s.number("connections.peak"));
    assert_eq!(number("Requests"), s.number("requests.sent"));
    assert_eq!(number("Connections lost"), 0.0);
    let p99 = http.each("throng_latency_seconds_p99");
    let [best, worst] = [f64::min, f64::max].map(|of| p99.iter().copied().reduce(of).expect("seconds"));
    assert_eq!(number("p99 latency at full load"), worst);
    let whole = s.number("latency_us.p99") / 1e6;
    assert!((best * 0.99..=worst * 1.01).contains(&whole), "{best} {whole} {worst}");
    check_faults(wrong, &board::influx(&filled.influxdb, board.query("Faults by kind", 0), &all));
    check_made_up(&board, |query| {
        board::influx(&filled.influxdb, query, &all.run(made_up::TARGET, made_up::SEED))
    });
}

fn prometheus_answers(filled: &Filled) {
    let board = Board::read("throng-prometheus");
    let all = Chosen::all(filled.time);
    for query in board.queries() {
        board::prometheus(&filled.prometheus, query, &all).assert_some(query);
    }
    let Filled { http, wrong, .. } = filled;
    let one = all.run(&filled.target, &http.seed());
    let seed = board::prometheus_variable(&filled.prometheus, board.variable("seed"), &one);
    assert_eq!(seed, [http.seed()]);
    let targets = board::prometheus_variable(&filled.prometheus, board.variable("target"), &all);
    assert!(targets.len() == 4 && targets.contains(&filled.target), "{targets:?}");
    let number = |title: &str| {
        let line = board.query(title, 0);
        board::prometheus(&filled.prometheus, line, &one).shown(line)
    };
    let s = &http.summary;
    assert_eq!(number("Most connections open"), s.number("connections.peak"));
    is_among_the_last(number("Requests"), &http.each("throng_requests_total"));
    // Within the bounds of a bucket, at most two and a half times apart; the run's last second may be missing.
    let (p99, seconds) = (number("p99 latency at full load"), http.each("throng_latency_seconds_p99"));
    let [best, worst] = [f64::min, f64::max].map(|of| seconds.iter().copied().reduce(of).expect("seconds"));
    assert!((best * 0.4..worst * 2.5).contains(&p99), "{p99} {seconds:?}");
    check_faults(wrong, &board::prometheus(&filled.prometheus, board.query("Faults by kind", 0), &all));
    check_made_up(&board, |query| {
        board::prometheus(&filled.prometheus, query, &all.run(made_up::TARGET, made_up::SEED))
    });
}

/// One kind, of one run, named as in the summary.
fn check_faults(wrong: &Done, found: &board::Found) {
    let [(labels, _)] = &found.0[..] else { panic!("{found:?}") };
    let name = ["side", "stage", "kind"].map(|label| labels[label].as_str()).join("·");
    assert_eq!((name.as_str(), &*labels["seed"]), ("target·exchange·wrong-status", &*wrong.seed()));
    let seconds: Vec<f64> = wrong
        .rows
        .iter()
        .filter_map(|row| {
            let counts = row.as_object()?.iter().filter(|(key, _)| key.starts_with("throng_faults_total"));
            Some(counts.filter_map(|(_, n)| n.as_f64()).sum())
        })
        .collect();
    is_among_the_last(found.last(), &seconds);
}

/// A line for each agent, with its own figures; counters grow evenly only in what InfluxDB is given.
fn check_agents(board: &Board, find: &impl Fn(&Line) -> board::Found) {
    let each = |title: &str, label: &str| -> BTreeMap<String, f64> {
        let found = find(board.query(title, 0)).0.into_iter();
        found.map(|(labels, points)| (labels[label].clone(), *points.last().expect("points"))).collect()
    };
    let expected = |of: fn(&(&'static str, f64, f64, f64)) -> f64| -> BTreeMap<String, f64> {
        made_up::AGENTS.iter().map(|agent| (agent.0.to_owned(), of(agent))).collect()
    };
    assert_eq!(each("Connections of each agent", "agent"), expected(|agent| agent.1));
    assert_eq!(each("Lag p99 of each agent", "agent"), expected(|agent| agent.2));
    assert_eq!(each("Latency p99 of each agent", "agent"), expected(|agent| 2.0 * agent.2));
    assert_eq!(each("Faults of each agent", "agent"), expected(|_| 3.0));
    let states = made_up::STATES.map(|(state, n)| (state.to_owned(), n));
    assert_eq!(each("Agents by state", "state"), BTreeMap::from(states));
    if board.is_influx {
        for (title, of) in [
            ("CPU of each agent", (|agent| agent.3) as fn(&(&'static str, f64, f64, f64)) -> f64),
            ("Requests a second of each agent", |agent| agent.1),
            ("Connects a second of each agent", |_| 1.0),
        ] {
            let (found, expected) = (each(title, "agent"), expected(of));
            let close = |(agent, n): (&String, &f64)| (n - expected[agent]).abs() < 1e-6;
            assert!(found.len() == 2 && found.iter().all(close), "{title}: {found:?} {expected:?}");
        }
    }
}

/// Sums over populations, and growth per second of what is counted at uneven times.
fn check_made_up(board: &Board, find: impl Fn(&Line) -> board::Found) {
    assert_eq!(find(board.query("Most connections on the target's side", 0)).most(), made_up::CONNECTIONS);
    assert_eq!(find(board.query("JVM heap", 0)).most(), made_up::HEAP);
    check_agents(board, &find);
    let open = find(board.query("Connections, client and server", 1));
    assert!(open.0.len() == 1 && open.most() == made_up::OPEN, "{open:?}");
    if board.is_influx {
        for (labels, points) in find(board.query("Requests a second", 0)).0 {
            let uneven: Vec<_> =
                points.iter().filter(|n| (*n - made_up::REQUESTS_A_SECOND).abs() > 0.01).collect();
            assert!(points.len() >= 5 && uneven.is_empty(), "{labels:?} {points:?}");
        }
        let paused = find(board.query("JVM garbage collection, time", 0));
        assert!((paused.most() - made_up::PAUSED).abs() < 1e-3, "{paused:?}");
    }
    // Prometheus' quantiles are those of its buckets, of the whole run and of a period.
    for (panel, n, expected) in [
        ("p99 latency at full load", 0, made_up::P99),
        ("Request or ping latency, at full load", 0, made_up::P50),
        ("Request or ping latency, at full load", 1, made_up::P99),
        ("Request or ping latency, at full load", 2, made_up::MAX),
    ] {
        let found = find(board.query(panel, n));
        assert!((found.last() - expected).abs() < 1e-9, "{panel} {n} {expected}: {found:?}");
    }
}
