//! A run pushed to Debian's InfluxDB: queries return the summary's figures.

use std::fs;

use serde_json::Value;

use crate::{
    program::{Ended, Program, Serving, file},
    server::{Server, folder, program},
    summary::{Summary, run},
};

/// InfluxDB 1, with a database of ours.
pub(crate) fn influxdb(name: &str) -> Server {
    let folder = folder(&format!("influxdb-{name}"));
    let server = Server::at(|address| {
        let (config, folder) = (folder.join("influxdb.conf"), folder.display());
        let text = format!(
            "reporting-disabled = true\nbind-address = \"{}:0\"\n[meta]\n dir = \"{folder}/meta\"\n\
             [data]\n dir = \"{folder}/data\"\n wal-dir = \"{folder}/wal\"\n\
             [http]\n bind-address = \"{address}\"\n log-enabled = false\n[monitor]\n store-enabled = false\n",
            address.ip()
        );
        fs::write(&config, text).unwrap();
        program("influxd", &["-config", config.to_str().unwrap()])
    });
    assert_eq!(run_query(&server, "CREATE DATABASE throng")["results"][0].get("error"), None);
    server
}

pub(crate) fn run_query(server: &Server, query: &str) -> Value {
    let (url, query) = (server.url("/query?db=throng"), format!("q={query}"));
    let command = program("curl", &["-sS", "--max-time", "10", "-XPOST", &url, "--data-urlencode", &query]);
    let Ended { stdout, stderr, .. } = Program::from(command).end();
    serde_json::from_str(&stdout).unwrap_or_else(|e| panic!("{e}: {stdout}{stderr}"))
}

/// The one value that a query has.
fn value(server: &Server, query: &str) -> f64 {
    let response = run_query(server, query);
    response["results"][0]["series"][0]["values"][0][1]
        .as_f64()
        .unwrap_or_else(|| panic!("{query}: {response}"))
}

#[test]
fn queries_return_the_summarys_figures() {
    let (server, influxdb) = (Serving::start(&["--threads", "1"]), influxdb("figures"));
    let (url, rows) = (influxdb.url("/write?db=throng"), file("influxdb.jsonl"));
    let args =
        ["-c", "40", "--think", "20ms", "-d", "3s", "--jsonl", rows.to_str().unwrap(), "--influx", &url];
    let (ended, s) = run(&server.url("/"), &args);
    assert!(!ended.stderr.contains("--influx"), "{}", ended.stderr);
    check(&influxdb, &s);
    let seconds = fs::read_to_string(&rows).unwrap().lines().count();
    assert_eq!(value(&influxdb, "SELECT count(value) FROM throng_connections_open"), seconds as f64);
}

fn check(influxdb: &Server, s: &Summary) {
    let check = |query: &str, path: &str| assert_eq!(value(influxdb, query), s.number(path), "{query}");
    check("SELECT max(value) FROM throng_connections_open", "connections.peak");
    check("SELECT max(value) FROM throng_connections_wanted", "connections.wanted");
    check("SELECT last(value) FROM throng_connections_opened_total", "connections.opened");
    check("SELECT last(value) FROM throng_requests_total", "requests.sent");
    check("SELECT last(value) FROM throng_received_bytes_total", "requests.bytes_in");
    check("SELECT last(value) FROM throng_statuses_total WHERE status = '200'", "requests.answered");
    check("SELECT last(count) FROM throng_latency_seconds", "latency_us.count");
    let most = value(influxdb, "SELECT max(max) FROM throng_latency_seconds");
    assert!((most * 1e6 / s.number("latency_us.max") - 1.0).abs() < 1e-6, "{most}");
    let seed = format!("SELECT last(value) FROM throng_requests_total WHERE seed = '{}'", s.count("seed"));
    assert_eq!(value(influxdb, &seed), s.number("requests.sent"));
}

/// Without the database of the URL nothing is stored, and the run is unaffected.
#[test]
fn a_database_that_is_not_there_costs_the_run_nothing() {
    let (server, influxdb) = (Serving::start(&["--threads", "1"]), influxdb("none"));
    let url = influxdb.url("/write?db=other");
    let (ended, s) = run(&server.url("/"), &["-c", "5", "--think", "20ms", "-d", "2s", "--influx", &url]);
    ended.assert_status(0);
    assert_eq!(s.count("connections.held"), 5);
    let host = url.split('/').nth(2).unwrap();
    let message = format!("throng: --influx {host}: retrying, the run continues: rejected: 404 ");
    assert_eq!(ended.stderr.matches(&message).count(), 1, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("database not found")
            && ended.stderr.contains("seconds of the run are missing")
    );
    // Once it exists, the stored run is written to it.
    run_query(&influxdb, "CREATE DATABASE other");
    let id =
        ended.stderr.split("stored as run ").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap();
    let replayed = Program::start(&["replay", id, "--live", "off", "--influx", &url]).end();
    assert_eq!((replayed.status, replayed.stdout.as_str()), (Some(0), ""), "{replayed:?}");
    let last = value(&influxdb, "SELECT last(value) FROM other..throng_requests_total");
    assert_eq!(last, s.number("requests.sent"));
}
