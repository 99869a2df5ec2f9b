//! The summary, for people and for programs.

use std::fmt::Write;

use samples::{ProcessCost, Quantiles, Summary};
use units::{Bytes, Count, Nanos};

use crate::populations;

/// The summary as one JSON document with a line end.
pub fn json(summary: &Summary) -> String {
    let mut text = serde_json::to_string_pretty(summary).expect("a summary has only plain fields");
    text.push('\n');
    text
}

/// The summary that a tired person understands.
pub fn text(s: &Summary) -> String {
    let mut out = String::new();
    connections(s, &mut out);
    if s.requests.sent > 0 {
        requests(s, &mut out);
    }
    if let Some(p) = &s.probe {
        let failed = if p.failed > 0 { format!(", {} failed", Count(p.failed)) } else { String::new() };
        row(&mut out, "probe", format!("{} of {} answered{failed}", Count(p.answered), Count(p.sent)));
        let lines = [("fresh", &p.fresh_us), ("kept", &p.kept_us), ("connect", &p.connect_us)];
        lines.iter().for_each(|(name, q)| row(&mut out, &format!("probe {name}"), quantiles(q)));
    }
    out.push_str(&populations::table(s));
    costs(s, &mut out);
    if let Some(rig) = &s.rig {
        crate::calibration::share(rig).into_iter().for_each(|share| row(&mut out, "rig", share));
    }
    row(&mut out, "repeat with", format!("--seed {}", s.seed));
    out.push_str(&verdict(s));
    out
}

fn row(out: &mut String, name: &str, value: String) {
    writeln!(out, "  {name:<13} {value}").expect("a String takes it");
}

fn connections(s: &Summary, out: &mut String) {
    let c = &s.connections;
    let held = format!("{} held of {} wanted", Count(c.held), Count(c.wanted));
    let lost = [
        ("failed", c.failed),
        ("dropped", c.dropped),
        ("closed by announcement", c.closed),
        ("redialled", c.redialled),
        ("closed by throng as planned", c.finished),
    ];
    let lost = lost.iter().filter(|(_, n)| *n > 0).map(|(name, n)| format!(", {} {name}", Count(*n)));
    row(out, "connections", held + &lost.collect::<String>());
    row(out, "ramp", format!("{:.1} s, {} connections/s", s.ramp_s, Count(c.open_per_s.round() as u64)));
    row(out, "connect", quantiles(&s.connect_us));
    if s.handshake_us.count > 0 {
        row(out, "handshake", quantiles(&s.handshake_us));
    }
}

fn requests(s: &Summary, out: &mut String) {
    let r = &s.requests;
    row(
        out,
        "requests",
        format!(
            "{} answered of {} sent, {}{}/s at full load ({:.1} s), {} received{}",
            Count(r.answered),
            Count(r.sent),
            if r.lower_bound { "at least " } else { "" },
            Count(r.per_s.round() as u64),
            s.duration_s,
            Bytes(r.bytes_in).brief(),
            if r.lower_bound { " (throng had no CPU left: a lower bound)" } else { "" },
        ),
    );
    if r.missed > 0 {
        row(out, "missed", format!("{} requests due, and no connection free in time", Count(r.missed)));
    }
    row(out, "latency", quantiles(&s.latency_us));
    if s.first_byte_us.count > 0 {
        row(out, "first byte", quantiles(&s.first_byte_us));
    }
    row(out, "ramp latency", quantiles(&s.ramp_latency_us));
    row(out, "lag", format!("{} (how late throng was)", quantiles(&s.lag_us)));
}

fn costs(s: &Summary, out: &mut String) {
    row(
        out,
        "throng",
        format!(
            "{:.1} s of CPU, {} of memory{}",
            s.generator.cpu_s,
            Bytes(s.generator.rss_bytes).brief(),
            each(s.generator.user_bytes_per_connection),
        ),
    );
    if let Some(t) = &s.target_cost {
        row(
            out,
            "target",
            format!(
                "{:.1} s of CPU, {} of memory{} (process {}{})",
                t.cpu_s,
                Bytes(t.rss_bytes).brief(),
                each(t.user_bytes_per_connection),
                t.pid,
                others(t),
            ),
        );
    }
    if let Some(k) = &s.kernel_bytes_per_connection {
        let ends = if k.both_ends { "both ends" } else { "this end" };
        row(out, "kernel", format!("{:.0} bytes a connection, {ends}", k.value));
    }
    if let Some(line) = crate::cost::line(&s.cost) {
        row(out, "cost", line);
    }
    if let Some(o) = &s.observed.observer {
        let failures = match &o.last_failure {
            Some(why) => format!(", {} failures, the last: {why}", Count(o.failures)),
            None => String::new(),
        };
        row(out, "observer", format!("{}: {} answers{failures}", o.address, Count(o.answers)));
    }
}

/// Of several processes, the smallest and the largest.
fn others(t: &ProcessCost) -> String {
    let sizes = || t.processes.iter().map(|own| own.rss_bytes);
    match (sizes().min(), sizes().max()) {
        (Some(least), Some(most)) if t.processes.len() > 1 => {
            format!(" and others: {} to {} each", Bytes(least).brief(), Bytes(most).brief())
        }
        _ => String::new(),
    }
}

/// A slope, where there were enough connections for one.
fn each(bytes: f64) -> String {
    if bytes > 0.0 { format!(", {bytes:.0} bytes a connection") } else { String::new() }
}

fn quantiles(q: &Quantiles) -> String {
    if q.count == 0 {
        return "none".to_owned();
    }
    let t = |us: f64| Nanos((us * 1e3) as u64);
    let (p50, p99, p999, max) = (t(q.p50), t(q.p99), t(q.p999), t(q.max));
    format!("p50 {}  p99 {}  p99.9 {}  max {}", p50.brief(), p99.brief(), p999.brief(), max.brief())
}

/// The last lines: what was judged and how, and in one sentence what it means and what to do.
pub fn verdict(s: &Summary) -> String {
    let mut out = String::new();
    for t in &s.thresholds {
        let mark = if t.pass { "met" } else { "not met" };
        let value =
            t.value.map_or("nothing measured".to_owned(), |value| format!("{}", (value * 1e3).round() / 1e3));
        let _ = writeln!(out, "  {:<13} {}: {mark}, {value}", "threshold", t.expr);
    }
    for reason in s.reasons.iter().filter(|reason| !reason.starts_with("threshold ")) {
        let _ = writeln!(out, "  {reason}");
    }
    if let Some(limit) = &s.limit {
        let _ = writeln!(out, "  {}", limit.detail);
    }
    let _ = writeln!(out, "{}", s.headline);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use samples::ProcessMemory;

    #[test]
    fn several_processes_are_told_by_their_extremes() {
        let check = |mib: &[u64], expected| {
            let processes = (7..).zip(mib).map(|(pid, mib)| ProcessMemory { pid, rss_bytes: mib << 20 });
            let cost = ProcessCost { processes: processes.collect(), ..ProcessCost::default() };
            assert_eq!(others(&cost), expected, "{mib:?}");
        };
        check(&[], "");
        check(&[28], "");
        check(&[28, 60, 41], " and others: 28.0 MiB to 60.0 MiB each");
    }
}
