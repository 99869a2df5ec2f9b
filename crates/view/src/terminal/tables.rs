//! The tables below the curves that are always shown: latencies, and the resource usage of throng and the target.

use ratatui::text::{Line, Span};
use units::percent as exactly;

use super::{
    figures::{Percentiles, Second},
    scene::Scene,
    text::{BAD, NAME, bytes, of, plain, quiet, time},
};

/// Width of a time in columns.
const TIME: usize = 9;
/// Width of the share of missing responses in columns.
pub(crate) const WITHOUT: usize = 13;
/// The heading for requests without a response, which the percentiles do not cover.
pub(crate) const NO_RESPONSE: &str = "no response";
/// Width of both tables in columns.
pub(crate) const WIDTH: u16 = 71;

/// Number of lines of [`costs`].
pub(crate) const COSTS: u16 = 3;

/// Percentiles of the last second: four lines, and one for TLS handshakes if there were any. If values are missing from the
/// percentiles, their share is shown beside them.
pub(crate) fn latency(second: &Second) -> Vec<Line<'static>> {
    let head: String = ["p50", "p90", "p95", "p99", "max"].map(|name| format!("{name:>TIME$}")).concat();
    let is_any = second.no_response.or(second.no_connection).is_some();
    let without = if is_any { format!("{NO_RESPONSE:>WITHOUT$}") } else { String::new() };
    let line = |name: &str, times: Option<Percentiles>, without: Option<f64>| {
        let times = times.map(|t| [t.p50, t.p90, t.p95, t.p99, t.max].map(Some)).unwrap_or_default();
        let times = times.map(|t| format!("{:>TIME$}", time(t))).concat();
        let without = without.map_or(String::new(), |share| format!("{:>WITHOUT$}", exactly(share)));
        Line::from(vec![quiet(format!("{name:<NAME$}")), plain(times), Span::styled(without, BAD)])
    };
    let mut lines = vec![
        Line::from(quiet(format!("{:NAME$}{head}{without}", ""))),
        line("latency", second.latency, second.no_response),
        line("connect", second.connect, second.no_connection),
    ];
    lines.extend(second.has_tls.then(|| line("TLS", second.tls, None)));
    lines.push(line("lag", second.lag, None));
    lines
}

/// The resource usage of throng (on a fleet, of the coordinator) and the target, in three lines.
pub(crate) fn costs(scene: &Scene) -> Vec<Line<'static>> {
    let second = scene.second;
    let throng = if scene.header.agents.is_empty() { "throng" } else { "coordinator" };
    let columns = |cpu: &str, memory: &str, files: &str, queue: &str| {
        format!("{cpu:>8}{memory:>11}{files:>25}{queue:>18}")
    };
    let line = |name: &str, figures: String| {
        // A long name extends into the padding of the first figure.
        let blanks = figures.len() - figures.trim_start().len();
        let taken = name.len().saturating_sub(NAME).min(blanks);
        Line::from(vec![quiet(format!("{name:<NAME$}")), plain(figures[taken..].to_owned())])
    };
    let target = match &second.target {
        Some(target) => columns(
            &format!("{:.2}", target.process.cores_used),
            &bytes(target.process.rss_bytes),
            &of(target.open_files, target.open_files_limit),
            &of(target.accept_queue, target.accept_backlog),
        ),
        None if is_loopback(&scene.header.target) => {
            "  not seen: its process belongs to another user or container".to_owned()
        }
        None => "  not seen: if it is on another host, run `throng observe` there".to_owned(),
    };
    vec![
        Line::from(quiet(format!(
            "{:NAME$}{}",
            "",
            columns("cores", "memory", "open files", "accept queue")
        ))),
        line(throng, columns(&format!("{:.2}", second.own_cpu), &bytes(second.own_memory), "", "")),
        line("target", target),
    ]
}

/// Whether a target, as typed, is a loopback address of this machine.
fn is_loopback(target: &str) -> bool {
    let host = target.split_once("://").map_or(target, |(_, rest)| rest);
    ["127.", "localhost", "[::1]"].iter().any(|local| host.starts_with(local))
}
