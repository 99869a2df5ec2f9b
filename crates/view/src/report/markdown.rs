//! A run as Markdown: what a colleague reads in a ticket.

use std::fmt::Write;

use samples::{RunRecord, Stalled};
use serde_json::Value;
use units::{Bytes, Count, percent};

use crate::summary::time;

/// What stands in a table's cell where nothing was measured.
const NONE: &str = "–";

/// Of a run without a summary: what is known of it before its first tick.
pub(super) fn text(id: &str, run: &RunRecord, summary: Option<&Value>) -> String {
    let mut out = format!("# {} of {}\n\n", title(summary), code(&run.header.target));
    if let Some(s) = summary {
        verdict(s, &mut out);
        figures(s, &mut out);
        latencies(s, &mut out);
        populations(s, &mut out);
        faults(s, &mut out);
        thresholds(s, &mut out);
        costs(s, &mut out);
    }
    plan(id, run, &mut out);
    out
}

fn title(summary: Option<&Value>) -> String {
    summary
        .and_then(|s| s["verdict"].as_str())
        .map_or("unfinished run".to_owned(), |word| format!("{word}: run"))
}

fn verdict(s: &Value, out: &mut String) {
    line(out, format_args!("**{}**\n", s["headline"].as_str().unwrap_or_default()));
    if let Some(detail) = s.pointer("/limit/detail").and_then(Value::as_str) {
        line(out, format_args!("{detail}\n"));
    }
    for reason in s["reasons"].as_array().into_iter().flatten() {
        line(out, format_args!("- {}", reason.as_str().unwrap_or_default()));
    }
    out.push('\n');
}

fn figures(s: &Value, out: &mut String) {
    line(out, format_args!("| figure | value |\n|---|---:|"));
    let count =
        |path: &str| s.pointer(path).and_then(Value::as_f64).map(|n| Count(n.round() as u64).to_string());
    let slope = |path: &str| s.pointer(path).and_then(Value::as_f64).filter(|n| *n > 0.0);
    let bytes = |path: &str| slope(path).map(|n| format!("{n:.0} bytes"));
    let unanswered = count("/requests/unanswered");
    let rows = [
        ("connections wanted", count("/connections/wanted")),
        ("connections held", count("/connections/held")),
        ("peak connections", count("/connections/peak")),
        ("connection rate", count("/connections/open_per_s")),
        ("responses", count("/requests/answered")),
        ("requests unanswered at the end", unanswered),
        ("requests/s", count("/requests/per_s")),
        ("memory of throng per connection", bytes("/generator/user_bytes_per_connection")),
        ("memory of the target per connection", bytes("/target_cost/user_bytes_per_connection")),
        ("memory of the kernel per connection", bytes("/kernel_bytes_per_connection/value")),
    ];
    for (name, value) in rows {
        line(out, format_args!("| {name} | {} |", value.as_deref().unwrap_or(NONE)));
    }
    out.push('\n');
}

fn latencies(s: &Value, out: &mut String) {
    line(
        out,
        format_args!(
            "| time | count | p50 | p90 | p99 | p99.9 | max | no response |\n|---|---:|---:|---:|---:|---:|---:|---:|"
        ),
    );
    let rows = [
        ("latency", "/latency_us"),
        ("latency during the ramp", "/ramp_latency_us"),
        ("time to first byte", "/first_byte_us"),
        ("connect", "/connect_us"),
        ("handshake", "/handshake_us"),
        ("probe", "/probe/latency_us"),
        ("lag (how late throng sent)", "/lag_us"),
    ];
    for (name, path) in rows {
        if let Some(times) = s.pointer(path).filter(|times| is_there(times)) {
            line(out, format_args!("| {name} {}", times_row(times)));
        }
    }
    out.push('\n');
}

/// Whether anything had a time, or should have had one.
fn is_there(times: &Value) -> bool {
    times["count"].as_u64().is_some_and(|n| n > 0) || times["censored"].is_object()
}

/// The cells of a distribution: how many, the percentiles, and the share that these say nothing of.
fn times_row(times: &Value) -> String {
    let count = times["count"].as_u64().unwrap_or_default();
    let stalled = times["stalled"]["count"].as_u64().unwrap_or_default();
    let at = |(key, share): (&str, f64)| match count {
        0 => NONE.to_owned(),
        _ => time(times[key].as_f64().unwrap_or_default(), Stalled::reaches(stalled, count, share)),
    };
    let [p50, p90, p99, p999, max] =
        [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)].map(at);
    let without = times["censored"]["share"].as_f64().map_or(NONE.to_owned(), percent);
    format!("| {} | {p50} | {p90} | {p99} | {p999} | {max} | {without} |", Count(count))
}

/// Each population and each step by itself, where there are several of either.
fn populations(s: &Value, out: &mut String) {
    let none = serde_json::Map::new();
    let all = s["populations"].as_object().unwrap_or(&none);
    let steps = |own: &Value| own["steps"].as_object().cloned().unwrap_or_default();
    if all.len() < 2 && all.values().all(|own| steps(own).is_empty()) {
        return;
    }
    line(
        out,
        format_args!(
            "| latency of | count | p50 | p90 | p99 | p99.9 | max | no response |\n|---|---:|---:|---:|---:|---:|---:|---:|"
        ),
    );
    for (name, own) in all {
        line(out, format_args!("| {} {}", code(name), times_row(&own["latency_us"])));
        for (step, figures) in steps(own) {
            let name = code(&format!("{name}.{step}"));
            line(out, format_args!("| {name} {}", times_row(&figures["latency_us"])));
        }
    }
    out.push('\n');
}

fn faults(s: &Value, out: &mut String) {
    let faults = s["faults"].as_array().filter(|faults| !faults.is_empty());
    let Some(faults) = faults else { return };
    line(out, format_args!("| side | stage | fault | count |\n|---|---|---|---:|"));
    for fault in faults {
        let [side, stage, kind] =
            ["side", "stage", "kind"].map(|key| fault[key].as_str().unwrap_or_default());
        let count = Count(fault["count"].as_u64().unwrap_or_default());
        line(out, format_args!("| {side} | {stage} | {kind} | {count} |"));
    }
    out.push('\n');
}

fn thresholds(s: &Value, out: &mut String) {
    let thresholds = s["thresholds"].as_array().filter(|thresholds| !thresholds.is_empty());
    let Some(thresholds) = thresholds else { return };
    line(out, format_args!("| threshold | measured | |\n|---|---:|---|"));
    for threshold in thresholds {
        let value =
            threshold["value"].as_f64().map_or(NONE.to_owned(), |n| ((n * 1e3).round() / 1e3).to_string());
        let met = if threshold["pass"] == true { "met" } else { "**failed**" };
        line(
            out,
            format_args!(
                "| {} | {value} | {met} |",
                code(threshold["expr"].as_str().unwrap_or_default()).replace('|', "\\|")
            ),
        );
    }
    out.push('\n');
}

fn costs(s: &Value, out: &mut String) {
    let fits = s["cost"].as_object().into_iter().flatten().filter(|(_, fit)| fit.is_object());
    let mut rows = fits.map(|(name, fit)| {
        let number = |key: &str| fit[key].as_f64().unwrap_or_default();
        let name = name.replace('_', " ");
        format!("| {name} | {:.1} ± {:.1} | {:.3} |", number("value"), number("error"), number("r2"))
    });
    let Some(first) = rows.next() else { return };
    line(out, format_args!("| cost, by regression | value | R² |\n|---|---:|---:|\n{first}"));
    rows.for_each(|row| line(out, format_args!("{row}")));
    if let Some(ceiling) = s.pointer("/cost/ceiling_connections").and_then(Value::as_u64) {
        line(
            out,
            format_args!(
                "\nAt these costs, the memory of the target's host is exhausted at {} connections.",
                Count(ceiling)
            ),
        );
    }
    out.push('\n');
}

fn plan(id: &str, run: &RunRecord, out: &mut String) {
    let RunRecord { version, host, header, began_ms, .. } = run;
    let run_id = if id.is_empty() { String::new() } else { format!("Run {id}. ") };
    let memory = Bytes(host.memory_bytes).brief();
    line(
        out,
        format_args!(
            "{run_id}throng {version}, {}, {}, on Linux {} with {} processors and {memory} of memory.\n",
            header.io, began_ms, host.kernel, host.cores
        ),
    );
    line(out, format_args!("{}", fenced("sh", &command(run))));
    if let Some(scenario) = &run.scenario {
        line(out, format_args!("\n{}", fenced("toml", scenario.trim_end())));
    }
}

/// The command that repeats the run, its seed included.
fn command(run: &RunRecord) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    let quoted = |word: &String| match !word.is_empty() && word.chars().all(is_plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    let words: Vec<String> = run.words.iter().map(quoted).collect();
    let says_seed = run.words.iter().any(|word| word == "--seed" || word.starts_with("--seed="));
    let seed = if says_seed { String::new() } else { format!(" --seed {}", run.header.seed) };
    format!("throng {}{seed}", words.join(" "))
}

/// As code, on one line.
fn code(text: &str) -> String {
    format!("`{}`", text.replace('`', "'").replace('\n', " "))
}

/// In a fence that nothing in it can end (CommonMark, 4.5).
fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}")
}

fn line(out: &mut String, text: std::fmt::Arguments) {
    writeln!(out, "{text}").expect("a String takes it");
}
