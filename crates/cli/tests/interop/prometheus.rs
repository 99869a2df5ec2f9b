//! A run scraped by Debian's Prometheus: queries return the summary's figures.

use std::fs;

use serde_json::Value;

use crate::{
    program::{Program, Serving, Signal, until},
    server::{Server, folder, program},
    summary::Summary,
};

/// Prometheus, scraping each of `targets` five times a second.
pub(crate) fn prometheus(name: &str, targets: &[&str]) -> Server {
    let folder = folder(&format!("prometheus-{name}"));
    let (file, data) = (folder.join("prometheus.yml"), folder.join("data"));
    let scrape = format!("- job_name: throng\n  static_configs: [{{targets: {targets:?}}}]\n");
    fs::write(&file, format!("global: {{scrape_interval: 200ms}}\nscrape_configs:\n{scrape}")).unwrap();
    Server::at(|address| {
        let (file, data) =
            (format!("--config.file={}", file.display()), format!("--storage.tsdb.path={}", data.display()));
        program("prometheus", &[&file, &data, &format!("--web.listen-address={address}")])
    })
}

/// The one value that a query has, if it has one.
fn query(server: &Server, query: &str) -> Option<f64> {
    let (url, query) = (server.url("/api/v1/query"), format!("query={query}"));
    let command = program("curl", &["-sS", "--max-time", "10", "-G", &url, "--data-urlencode", &query]);
    let response: Value = serde_json::from_str(&Program::from(command).end().stdout).ok()?;
    let series = response["data"]["result"].as_array()?;
    assert!(series.len() < 2, "{query}: {response}");
    series.first()?["value"][1].as_str()?.parse().ok()
}

#[test]
fn queries_return_the_summarys_figures() {
    let server = Serving::start(&["--threads", "1"]);
    let args = ["-c", "40", "--think", "1h", "-d", "forever", "--prometheus", "127.0.0.1:0", "--json", "-"];
    let mut run = Program::start(&[&["run", &server.url("/")], &args[..]].concat());
    run.wait_for("/metrics\n");
    let output = run.stderr();
    let at = output.split("metrics at http://").nth(1).and_then(|rest| rest.split('/').next()).unwrap();
    let prometheus = prometheus("figures", &[at]);
    until("all connections are open and answered", || {
        let answered = query(&prometheus, "throng_answers_total") == Some(40.0);
        answered && query(&prometheus, "throng_connections_open") == Some(40.0)
    });
    let resident = query(&prometheus, "throng_target_resident_bytes").unwrap();
    run.signal(Signal::INT);
    let ended = run.end();
    let s = Summary(serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}")));
    let check = |of: &str, path: &str| {
        let last = query(&prometheus, &format!("last_over_time({of}[5m])"));
        assert_eq!(last, Some(s.number(path)), "{of}");
    };
    let most = query(&prometheus, "max_over_time(throng_connections_open[5m])");
    assert_eq!(most, Some(s.number("connections.peak")));
    check("throng_connections_opened_total", "connections.opened");
    check("throng_requests_total", "requests.sent");
    check("throng_received_bytes_total", "requests.bytes_in");
    check("throng_statuses_total{status=\"200\"}", "requests.answered");
    check("throng_connect_seconds_count", "connect_us.count");
    // The bounds of the bucket with the quantile: at most two and a half times apart.
    let median = "histogram_quantile(0.5, last_over_time(throng_connect_seconds_bucket[5m]))";
    let (median, p50) = (query(&prometheus, median).unwrap(), s.number("connect_us.p50") / 1e6);
    assert!(median <= 1e-4 && p50 <= 1e-4 || (0.4..2.5).contains(&(median / p50)), "{median} {p50}");
    assert!(resident > 1e5, "{resident}");
}
