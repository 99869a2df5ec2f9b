//! The report of wrk 4.1 with `--latency`.

use std::fmt::Write;

use samples::{Kind, Latency, Rates, Summary};

use super::{Whole, is_of_connect, per_s, percent};

/// Formats wrk's report. A shard counts as a thread, and a tick of 200 ms as a sample of its rate.
pub fn wrk(s: &Summary, whole: &Whole) -> String {
    let mut out = format!(
        "Running {} test @ {}\n  {} threads and {} connections\n  Thread Stats   Avg      Stdev     Max   +/- Stdev\n",
        span(s.duration_s, 0),
        s.target,
        s.threads,
        s.connections.wanted,
    );
    let latency = whole.latency();
    out.push_str(&row("Latency", time, &Spread::of_times(&latency)));
    out.push_str(&row("Req/Sec", metric, &Spread::of_rates(&whole.totals.shard_rates)));
    out.push_str("  Latency Distribution\n");
    for part in [50, 75, 90, 99] {
        let us = latency.quantile(f64::from(part) / 100.0).0 as f64 / 1e3;
        let _ = writeln!(out, "{part:7}%{}", column(&time(us), 10));
    }
    let counts = &whole.totals.counts;
    let _ = writeln!(
        out,
        "  {} requests in {}, {}B read",
        counts.answered,
        time(s.elapsed_s * 1e6),
        binary(counts.bytes_in as f64),
    );
    out.push_str(&errors(s, whole));
    let _ = writeln!(out, "Requests/sec: {:9.2}", per_s(counts.answered as f64, s));
    let _ = writeln!(out, "Transfer/sec: {:>10}B", binary(per_s(counts.bytes_in as f64, s)));
    out
}

/// The lines that are present only if there were errors.
fn errors(s: &Summary, whole: &Whole) -> String {
    let timeout = whole.faults(|f| f.kind == Kind::Timeout) + whole.unanswered();
    let connect = whole.faults(|f| is_of_connect(f) && f.kind != Kind::Timeout);
    let read = whole.faults(|f| !is_of_connect(f) && !f.kind.is_wrong_response() && f.kind != Kind::Timeout);
    let mut out = String::new();
    if connect + read + timeout > 0 {
        // A failed send is noticed as the loss of its connection, which is a read error.
        let _ = writeln!(out, "  Socket errors: connect {connect}, read {read}, write 0, timeout {timeout}");
    }
    let refused: u64 = s.requests.status.range(400..).map(|(_, n)| n).sum();
    if refused > 0 {
        let _ = writeln!(out, "  Non-2xx or 3xx responses: {refused}");
    }
    out
}

/// Mean, standard deviation, maximum, and the percentage within one standard deviation of the mean.
struct Spread {
    mean: f64,
    stdev: f64,
    max: f64,
    within: f64,
}

impl Spread {
    /// In microseconds.
    fn of_times(times: &Latency) -> Spread {
        let (mean, stdev) = (times.mean_s(), times.stdev_s());
        let ns = |s: f64| units::Nanos((s.max(0.0) * 1e9).round() as u64);
        let within = times.count_within(ns(mean - stdev), ns(mean + stdev));
        Spread {
            mean: mean * 1e6,
            stdev: stdev * 1e6,
            max: times.max().0 as f64 / 1e3,
            within: percent(within as f64, times.count() as f64),
        }
    }

    /// Per second.
    fn of_rates(rates: &Rates) -> Spread {
        let (mean, stdev) = (rates.mean(), rates.stdev());
        let within = rates.count_within(mean - stdev, mean + stdev);
        Spread { mean, stdev, max: rates.max(), within: percent(within as f64, rates.count() as f64) }
    }
}

fn row(name: &str, unit: fn(f64) -> String, spread: &Spread) -> String {
    let Spread { mean, stdev, max, within } = spread;
    let [mean, stdev, max] =
        [(mean, 8), (stdev, 10), (max, 9)].map(|(value, width)| column(&unit(*value), width));
    format!("    {name:<10}{mean}{stdev}{max}{within:8.2}%\n")
}

/// Aligns to the right, with two columns for the unit whether it has two letters, one or none.
fn column(text: &str, width: usize) -> String {
    let letters = text.chars().rev().take_while(char::is_ascii_alphabetic).count().min(2);
    let behind = 2 - letters;
    format!("{text:>0$}{1:2$}", width - behind, "", behind)
}

/// Share of the next larger unit from which wrk uses that unit.
const ENOUGH: f64 = 0.85;

fn scaled(value: f64, step: f64, units: &[&str], digits: usize) -> String {
    let (mut value, mut at) = (value, 0);
    while at + 1 < units.len() && value >= step * ENOUGH {
        value /= step;
        at += 1;
    }
    format!("{value:.digits$}{}", units[at])
}

fn time(us: f64) -> String {
    if us >= 1e6 { span(us / 1e6, 2) } else { scaled(us, 1000.0, &["us", "ms"], 2) }
}

fn span(s: f64, digits: usize) -> String {
    scaled(s, 60.0, &["s", "m"], digits)
}

fn metric(n: f64) -> String {
    scaled(n, 1000.0, &["", "k", "M", "G", "T"], 2)
}

fn binary(bytes: f64) -> String {
    scaled(bytes, 1024.0, &["", "K", "M", "G", "T"], 2)
}

#[cfg(test)]
mod tests {
    use super::super::made_up;
    use super::*;

    #[test]
    fn units_change_where_wrk_changes_them() {
        let all = [
            (time(0.0), "0.00us"),
            (time(635.914), "635.91us"),
            (time(849.0), "849.00us"),
            (time(850.0), "0.85ms"),
            (time(12_920.0), "12.92ms"),
            (time(999_990.0), "999.99ms"),
            (time(1_500_000.0), "1.50s"),
            (time(30.1e6), "30.10s"),
            (time(51e6), "0.85m"),
            (span(10.02, 0), "10s"),
            (span(50.0, 0), "50s"),
            (span(51.0, 0), "1m"),
            (span(90.0, 0), "2m"),
            (span(150.0, 0), "2m"),
            (metric(56_200.0), "56.20k"),
            (metric(17.5), "17.50"),
            (binary(815.53 * 1048576.0), "815.53M"),
            (binary(900.0), "0.88K"),
        ];
        for (got, expected) in all {
            assert_eq!(got, expected);
        }
    }

    #[test]
    fn units_stand_below_each_other() {
        for (text, expected) in [("635.91us", "635.91us"), ("56.20k", " 56.20k "), ("17.50", " 17.50  ")] {
            assert_eq!(column(text, 8), expected);
        }
    }

    #[test]
    fn the_report_is_as_it_was() {
        let (summary, whole) = made_up::right();
        made_up::check_golden("wrk", &wrk(&summary, &whole));
    }

    #[test]
    fn errors_are_reported_by_their_kind() {
        let (summary, whole) = made_up::wrong();
        let out = wrk(&summary, &whole);
        assert!(out.contains("\n  Socket errors: connect 3, read 22, write 0, timeout 24\n"), "{out}");
        assert!(out.contains("\n  Non-2xx or 3xx responses: 40\n"), "{out}");
    }

    #[test]
    fn requests_unanswered_at_the_end_are_errors() {
        let (summary, whole) = made_up::unanswered();
        let out = wrk(&summary, &whole);
        assert!(out.contains("\n  Socket errors: connect 0, read 0, write 0, timeout 3\n"), "{out}");
    }

    #[test]
    fn nothing_at_all_has_a_report_too() {
        let out = wrk(&made_up::nothing(), &Whole::default());
        assert!(out.contains("    Latency     0.00us    0.00us   0.00us    0.00%\n"), "{out}");
        assert!(out.ends_with("Requests/sec:      0.00\nTransfer/sec:       0.00B\n"), "{out}");
    }
}
