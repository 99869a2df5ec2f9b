//! The summary, for people and for programs.

use std::fmt::Write;

use samples::{Quantiles, Summary, Verdict};
use units::{Bytes, Count, Nanos};

/// The summary as one JSON document with a line end.
pub fn json(summary: &Summary) -> String {
    let mut text = serde_json::to_string_pretty(summary).expect("a summary has only plain fields");
    text.push('\n');
    text
}

/// The summary that a tired person understands.
pub fn text(s: &Summary) -> String {
    let mut out = String::new();
    let mut row =
        |name: &str, value: String| writeln!(out, "  {name:<13} {value}").expect("a String takes it");
    let c = &s.connections;
    let held = format!("{} held of {} wanted", Count(c.held), Count(c.wanted));
    let lost = [
        ("failed", c.failed),
        ("dropped", c.dropped),
        ("closed by announcement", c.closed),
        ("redialled", c.redialled),
    ];
    let lost = lost.iter().filter(|(_, n)| *n > 0).map(|(name, n)| format!(", {} {name}", Count(*n)));
    row("connections", held + &lost.collect::<String>());
    row("ramp", format!("{:.1} s, {} connections/s", s.ramp_s, Count(c.open_per_s.round() as u64)));
    row("connect", quantiles(&s.connect_us));
    if s.requests.sent > 0 {
        let r = &s.requests;
        row(
            "requests",
            format!(
                "{} answered of {} sent, {}/s at full load ({:.1} s), {} received",
                Count(r.answered),
                Count(r.sent),
                Count(r.per_s.round() as u64),
                s.duration_s,
                Bytes(r.bytes_in).brief(),
            ),
        );
        row("latency", quantiles(&s.latency_us));
        row("ramp latency", quantiles(&s.ramp_latency_us));
        row("lag", format!("{} (how late throng was)", quantiles(&s.lag_us)));
    }
    row(
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
            "target",
            format!(
                "{:.1} s of CPU, {} of memory{} (process {})",
                t.cpu_s,
                Bytes(t.rss_bytes).brief(),
                each(t.user_bytes_per_connection),
                t.pid,
            ),
        );
    }
    if let Some(k) = &s.kernel_bytes_per_connection {
        let ends = if k.both_ends { "both ends" } else { "this end" };
        row("kernel", format!("{:.0} bytes a connection, {ends}", k.value));
    }
    if let Some(line) = crate::cost::line(&s.cost) {
        row("cost", line);
    }
    if let Some(o) = &s.observed.observer {
        let failures = match &o.last_failure {
            Some(why) => format!(", {} failures, the last: {why}", Count(o.failures)),
            None => String::new(),
        };
        row("observer", format!("{}: {} answers{failures}", o.address, Count(o.answers)));
    }
    row("repeat with", format!("--seed {}", s.seed));
    out.push_str(&verdict(s));
    out
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

/// The last lines: what it means, and what to do.
fn verdict(s: &Summary) -> String {
    let mut out = String::new();
    for reason in &s.reasons {
        let _ = writeln!(out, "  {reason}");
    }
    let c = &s.connections;
    let _ = match (&s.limit, s.verdict) {
        (Some(l), _) => writeln!(
            out,
            "{}: limited by the {}'s {} at {}: {}; {}",
            s.verdict.name(),
            l.side,
            l.cause,
            Count(l.at_connections),
            l.detail,
            l.cure,
        ),
        (None, Verdict::Pass) if c.closed > 0 => writeln!(
            out,
            "pass: no fault, every answer right; the server closed {} connections by announcement, {} were open at the end",
            Count(c.closed),
            Count(c.held),
        ),
        (None, Verdict::Pass) => {
            writeln!(out, "pass: all {} connections held, no fault, every answer right", Count(c.held))
        }
        (None, verdict) => writeln!(out, "{}", verdict.name()),
    };
    out
}
