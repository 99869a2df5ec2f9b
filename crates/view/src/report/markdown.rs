//! The report of a run in Markdown, for a ticket or a pull request.

use std::fmt::Write;

use samples::{FaultCount, Fit, Quantiles, RunRecord, StepSummary, Summary, ThresholdResult, Tick, Verdict};
use units::{Bytes, Count, percent};

use crate::{
    cost,
    summary::{error_rate, generator, reasons, statuses_text, throughput, time},
};

/// The cell for a figure that was not measured.
const NONE: &str = "–";

/// The report. `total` returns the sum of the ticks, which is used if the run has no summary.
pub(super) fn text(
    id: &str,
    run: &RunRecord,
    summary: Option<&Summary>,
    total: impl FnOnce() -> Tick,
) -> String {
    let mut out = format!("# {}\n\n", title(summary.map(|s| s.verdict), &run.header.target));
    match summary {
        Some(s) => {
            verdict(s, &mut out);
            figures(s, &mut out);
            latencies(s, &mut out);
            populations(s, &mut out);
            faults(&s.faults, &mut out);
            thresholds(s, &mut out);
            costs(s, &mut out);
        }
        None => so_far(&total(), &mut out),
    }
    plan(id, run, &mut out);
    out
}

/// The title: result and target. Without a verdict, the run has not finished.
pub(super) fn title(verdict: Option<Verdict>, target: &str) -> String {
    let how = match verdict {
        Some(Verdict::Pass) => "passed",
        Some(Verdict::Fail) => "failed",
        Some(Verdict::Invalid) => "invalid",
        Some(Verdict::Interrupted) => "interrupted",
        None => "unfinished",
    };
    format!("Load test {how}: {}", code(target))
}

fn verdict(s: &Summary, out: &mut String) {
    line(out, format_args!("**{}**\n", s.headline));
    if let Some(limit) = &s.limit {
        line(out, format_args!("{}\n", limit.detail));
    }
    for reason in reasons(s) {
        line(out, format_args!("- {reason}"));
    }
    out.push('\n');
}

fn figures(s: &Summary, out: &mut String) {
    let count = |n: u64| Count(n).to_string();
    let some = |n: u64| Some(n).filter(|n| *n > 0).map(count);
    let rate = |per_s: f64| count(per_s.round() as u64);
    let bytes = |slope: Option<f64>| slope.filter(|n| *n > 0.0).map(|n| format!("{n:.0} bytes"));
    let target = s.target_cost.as_ref().and_then(|cost| cost.user_bytes_per_connection);
    let kernel = s.kernel_bytes_per_connection.as_ref().map(|cost| cost.value);
    let of_generator = format!("memory of {} per connection", generator(s));
    let held = match s.connections.all_arrive() {
        true => "connections open at the end of the load",
        false => "connections held",
    };
    let sent = Some(&s.requests).filter(|requests| requests.due > 0);
    let figures = [
        ("connections wanted", Some(count(s.connections.wanted))),
        (held, Some(count(s.connections.held))),
        ("peak connections", Some(count(s.connections.peak))),
        ("connects/s", Some(rate(s.connections.open_per_s))),
        ("requests due", sent.map(|requests| count(requests.due))),
        ("responses", Some(count(s.requests.answered))),
        ("requests failed", some(s.requests.failed)),
        ("requests without a response at the end", Some(count(s.requests.unanswered))),
        ("requests never sent", some(s.requests.missed)),
        ("requests lost with their agents", some(s.requests.lost)),
        ("errors", error_rate(s)),
        ("status", Some(statuses_text(s)).filter(|statuses| !statuses.is_empty())),
        ("requests/s", Some(rate(s.requests.per_s))),
        ("throughput", sent.map(throughput)),
        (of_generator.as_str(), bytes(s.generator.user_bytes_per_connection)),
        ("memory of the target per connection", bytes(target)),
        ("memory of the kernel per connection", bytes(kernel)),
    ];
    let rows = figures.into_iter().filter_map(|(name, value)| Some(format!("{name} | {}", value?)));
    table("figure | value", "|---|---:|", rows, out);
}

/// Writes a table; heading and rows are given without the bars at their ends.
pub(super) fn table(head: &str, rule: &str, rows: impl IntoIterator<Item = String>, out: &mut String) {
    line(out, format_args!("| {head} |\n{rule}"));
    rows.into_iter().for_each(|row| line(out, format_args!("| {row} |")));
    out.push('\n');
}

/// The columns of a distribution.
const TIMES: &str = "count | p50 | p90 | p95 | p99 | p99.9 | max | no response";
/// The alignment of a name and the columns of a distribution.
const TIMES_RULE: &str = "|---|---:|---:|---:|---:|---:|---:|---:|---:|";

/// The figures of a run that has not finished; nothing if it has no tick.
fn so_far(total: &Tick, out: &mut String) {
    if total.until <= total.from {
        return;
    }
    let c = &total.counts;
    line(out, format_args!("No summary: the figures are as far as the run is stored.\n"));
    let figures = [
        ("seconds", format!("{:.0}", total.until.since(total.from).secs_f64())),
        ("connections open at the end", Count(total.open).to_string()),
        ("connections opened", Count(c.opened).to_string()),
        ("connections redialled", Count(c.redialled).to_string()),
        ("responses", Count(c.answered).to_string()),
    ];
    let rows = figures.into_iter().map(|(name, value)| format!("{name} | {value}"));
    table("figure | value", "|---|---:|", rows, out);
    let times = [
        ("latency", total.latency.quantiles()),
        ("latency during the ramp", total.ramp_latency.quantiles()),
        ("connect", total.connect.quantiles()),
        ("lag (how late throng sent)", total.lag.quantiles()),
    ];
    distributions(&times, out);
    let counts = total.faults.iter().map(|(fault, n)| FaultCount::new(fault, n));
    faults(&counts.collect::<Vec<_>>(), out);
}

fn latencies(s: &Summary, out: &mut String) {
    let probe = s.probe.as_ref().map(|probe| probe.latency_us).unwrap_or_default();
    let times = [
        ("latency", s.latency_us),
        ("latency during the ramp", s.ramp_latency_us),
        ("time to first byte", s.first_byte_us),
        ("gap between messages", s.gap_us),
        ("delay of messages", s.delay_us),
        ("spread of broadcasts", s.spread_us),
        ("round trip of PINGs", s.ping_rtt_us),
        ("connect", s.connect_us),
        ("TLS, full handshake", s.tls_us),
        ("TLS, resumed", s.tls_resumed_us),
        ("handshake", s.handshake_us),
        ("probe", probe),
        ("lag (how late throng sent)", s.lag_us),
    ];
    distributions(&times, out);
}

/// The distributions that have values, or that lack some.
fn distributions(times: &[(&str, Quantiles)], out: &mut String) {
    let seen = times.iter().filter(|(_, times)| times.count > 0 || times.censored.is_some());
    table(&format!("time | {TIMES}"), TIMES_RULE, seen.map(|(name, times)| times_row(name, times)), out);
}

/// The row of a distribution: name, number of values, percentiles, and the share that these do not cover.
fn times_row(name: &str, times: &Quantiles) -> String {
    let at = |(us, share): (f64, f64)| match times.count {
        0 => NONE.to_owned(),
        _ => time(us, times.is_at_least(share)),
    };
    let shares = [
        (times.p50, 0.5),
        (times.p90, 0.9),
        (times.p95, 0.95),
        (times.p99, 0.99),
        (times.p999, 0.999),
        (times.max, 1.0),
    ];
    let [p50, p90, p95, p99, p999, max] = shares.map(at);
    let without = times.censored.map_or(NONE.to_owned(), |censored| percent(censored.share));
    format!("{name} | {} | {p50} | {p90} | {p95} | {p99} | {p999} | {max} | {without}", Count(times.count))
}

/// The distributions of each population and each step, if there are several of either.
fn populations(s: &Summary, out: &mut String) {
    if s.populations.len() < 2 && s.populations.values().all(|own| own.steps.is_empty()) {
        return;
    }
    let mut rows = Vec::new();
    for (name, own) in &s.populations {
        rows.push(times_row(&code(name), &own.latency_us));
        let step = |(step, own): (&String, &StepSummary)| {
            let (of, times) = own.shown();
            times_row(&format!("{}{of}", code(&format!("{name}.{step}"))), times)
        };
        rows.extend(own.steps.iter().map(step));
    }
    table(&format!("latency of | {TIMES}"), TIMES_RULE, rows, out);
}

fn faults(faults: &[FaultCount], out: &mut String) {
    if faults.is_empty() {
        return;
    }
    let row = |fault: &FaultCount| {
        let [side, stage, kind] = [fault.side.name(), fault.stage.name(), fault.kind.name()];
        format!("{side} | {stage} | {kind}{} | {}", fault.detail.suffix(), Count(fault.count))
    };
    table("side | stage | fault | count", "|---|---|---|---:|", faults.iter().map(row), out);
}

pub(super) fn thresholds(s: &Summary, out: &mut String) {
    if s.thresholds.is_empty() {
        return;
    }
    let row = |threshold: &ThresholdResult| {
        let value = threshold.measured();
        let outcome = threshold.outcome();
        let met = if threshold.fails() { format!("**{outcome}**") } else { outcome.to_owned() };
        format!("{} | {value} | {met}", code(&threshold.expr).replace('|', "\\|"))
    };
    table("threshold | measured |", "|---|---:|---|", s.thresholds.iter().map(row), out);
}

fn costs(s: &Summary, out: &mut String) {
    let row = |(figure, fit): (&str, Fit)| {
        let (name, value) = cost::row(figure, fit, generator(s));
        format!("{name} | {value} | {:.3}", fit.r2)
    };
    let rows: Vec<String> = s.cost.fits().map(row).collect();
    if rows.is_empty() {
        return;
    }
    table("cost, by regression | value | R²", "|---|---:|---:|", rows, out);
    if let Some(ceiling) = s.cost.ceiling_connections {
        let what = "At these costs, the memory of the target's host is exhausted at";
        line(out, format_args!("{what} {}.\n", Count(ceiling).of("connection")));
    }
}

fn plan(id: &str, run: &RunRecord, out: &mut String) {
    let RunRecord { version, host, header, began_ms, .. } = run;
    let run_id = if id.is_empty() { String::new() } else { format!("Run {id}. ") };
    let memory = Bytes(host.memory_bytes).brief();
    line(
        out,
        format_args!(
            "{run_id}throng {version}, {}, {}, on Linux {} with {} and {memory} of memory.\n",
            header.io,
            began_ms,
            host.kernel,
            Count(host.cores).of("processor")
        ),
    );
    line(out, format_args!("{}", fenced("sh", &command(run, header.seed))));
    if let Some(scenario) = &run.scenario {
        line(out, format_args!("\n{}", fenced("toml", scenario.trim_end())));
    }
}

/// The command that repeats the run with the same seed.
pub(super) fn command(run: &RunRecord, seed: u64) -> String {
    let args: Vec<String> = run.words.iter().map(|arg| units::shell_word(arg)).collect();
    let has_seed = run.words.iter().any(|arg| arg == "--seed" || arg.starts_with("--seed="));
    let seed = if has_seed { String::new() } else { format!(" --seed {seed}") };
    format!("throng {}{seed}", args.join(" "))
}

/// Inline code; line breaks are replaced.
pub(super) fn code(text: &str) -> String {
    format!("`{}`", text.replace('`', "'").replace('\n', " "))
}

/// A fenced code block whose fence is longer than any in the text (CommonMark, 4.5).
pub(super) fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}")
}

pub(super) fn line(out: &mut String, text: std::fmt::Arguments) {
    writeln!(out, "{text}").expect("a String takes it");
}
