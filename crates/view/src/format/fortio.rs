//! The report of `fortio load` (1.60).

use std::fmt::Write;

use samples::{Latency, Moments, Summary};
use units::Nanos;

use super::{Place, Whole, is_of_connect, per_s, percent};

mod number;

use number::{general, shortest, span};

/// Upper ends of fortio's ranges in milliseconds, except for the last range, which has no end.
const RANGES_MS: &[u64] = &[
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 18, 20, 25, 30, 35, 40, 45, 50, 60, 70, 80, 90, 100, 200,
    300, 400, 500, 750, 1_000, 2_000, 3_000, 4_000, 5_000, 7_500, 10_000, 20_000, 30_000, 40_000, 50_000,
    75_000, 100_000,
];

/// Formats fortio's report. A connection counts as a thread. Percentiles are those of throng's histogram, not interpolated within a
/// range.
pub fn fortio(s: &Summary, whole: &Whole) -> String {
    let (connections, threads) = (s.connections.wanted, s.threads);
    // The requested duration; the next line contains the actual one, which is slightly longer.
    let wanted = span((s.duration_s * 10.0).floor() / 10.0);
    let counts = &whole.totals.counts;
    let lost = whole.faults(is_of_connect) + counts.failed_requests + counts.unanswered;
    let answered = counts.answered;
    let calls = answered + lost;
    let qps = per_s(calls as f64, s);
    let mut out = format!(
        "throng {} running at 0 queries per second, {threads}->{threads} procs, for {wanted}: {}\n\
         Starting at max qps with {connections} thread(s) [gomax {threads}] for {wanted}\n\
         Ended after {} : {calls} calls. qps={}\n",
        env!("CARGO_PKG_VERSION"),
        s.target,
        span(s.elapsed_s),
        general(qps, 5),
    );
    let latency = whole.latency();
    let _ = writeln!(out, "Aggregated Function Time : {}", times(&latency));
    out.push_str(&ranges(&latency));
    out.push_str(&errors(lost + counts.wrong));
    out.push_str(&connects(s, whole));
    out.push_str(&codes(s, lost, calls));
    let _ = writeln!(out, "Response Header Sizes : {}", sizes(&whole.totals.head_sizes));
    let _ = writeln!(out, "Response Body/Total Sizes : {}", sizes(&whole.totals.answer_sizes));
    let _ = writeln!(
        out,
        "All done {calls} calls (plus 0 warmup) {:.3} ms avg, {:.1} qps",
        latency.mean_s() * 1e3,
        qps
    );
    out
}

/// The number of errors; their times are not known separately.
fn errors(n: u64) -> String {
    if n == 0 {
        return "Error cases : no data\n".to_owned();
    }
    format!("Error cases : count {n} avg 0 +/- 0 min 0 max 0 sum 0\n")
}

fn connects(s: &Summary, whole: &Whole) -> String {
    let (opened, wanted) = (whole.opened(), s.connections.wanted);
    let Place { host, port, .. } = Place::of(&s.target);
    format!(
        "Connection time (s) : {}\n\
         Sockets used: {opened} (for perfect keepalive, would be {wanted})\n\
         Uniform: false, Jitter: false, Catchup allowed: false\n\
         IP addresses distribution:\n{host}:{port}: {opened}\n",
        times(&whole.totals.connect),
    )
}

/// Responses by status, with −1 for requests without a response.
fn codes(s: &Summary, lost: u64, calls: u64) -> String {
    let lost = (lost > 0).then_some((-1, lost));
    let responses = s.requests.status.iter().map(|(code, n)| (i32::from(*code), *n));
    let lines = lost
        .into_iter()
        .chain(responses)
        .map(|(code, n)| format!("Code {code:3} : {n} ({:.1} %)\n", percent(n as f64, calls as f64)));
    lines.collect()
}

/// The figures of a line about times, in seconds.
fn times(times: &Latency) -> String {
    let second = |t: Nanos| shortest(t.secs_f64());
    figures(
        times.count(),
        times.mean_s(),
        times.stdev_s(),
        (second(times.min()), second(times.max())),
        times.sum_s(),
    )
}

/// The figures of a line about sizes, in bytes.
fn sizes(sizes: &Moments) -> String {
    let extremes = (sizes.min().to_string(), sizes.max().to_string());
    figures(sizes.count(), sizes.mean(), sizes.stdev(), extremes, sizes.sum() as f64)
}

fn figures(count: u64, mean: f64, stdev: f64, (min, max): (String, String), sum: f64) -> String {
    if count == 0 {
        return "no data".to_owned();
    }
    let (mean, stdev, sum) = (general(mean, 8), general(stdev, 4), general(sum, 9));
    format!("count {count} avg {mean} +/- {stdev} min {min} max {max} sum {sum}")
}

/// The ranges that contain values, and the percentiles.
fn ranges(times: &Latency) -> String {
    if times.count() == 0 {
        return String::new();
    }
    let mut out = String::from("# range, mid point, percentile, count\n");
    let (first, last) = (times.min(), times.max());
    let ends = RANGES_MS.iter().map(|ms| Nanos::from_millis(*ms)).chain([last.max(Nanos::from_secs(101))]);
    let (mut from, mut seen) = (Nanos::ZERO, 0);
    for end in ends {
        let up_to = times.count_within(Nanos::ZERO, end);
        if up_to > seen {
            let sign = if seen == 0 { ">=" } else { ">" };
            let (low, high) = (from.max(first).secs_f64(), end.min(last).secs_f64());
            let _ = writeln!(
                out,
                "{sign} {} <= {} , {} , {:.2}, {}",
                general(low, 6),
                general(high, 6),
                general((low + high) / 2.0, 6),
                percent(up_to as f64, times.count() as f64),
                up_to - seen,
            );
            seen = up_to;
        }
        from = end;
    }
    for target in [50.0, 75.0, 90.0, 99.0, 99.9] {
        let at = times.quantile(target / 100.0).secs_f64();
        let _ = writeln!(out, "# target {target}% {}", general(at, 6));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::made_up;
    use super::*;

    #[test]
    fn the_report_is_as_it_was() {
        let (summary, whole) = made_up::right();
        made_up::check_golden("fortio", &fortio(&summary, &whole));
    }

    #[test]
    fn ranges_count_everything_once() {
        let mut times = Latency::default();
        for ms in [3, 3, 15, 150, 250_000] {
            times.record(Nanos::from_millis(ms));
        }
        let out = ranges(&times);
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(
            lines[..6],
            [
                "# range, mid point, percentile, count",
                ">= 0.003 <= 0.003 , 0.003 , 40.00, 2",
                "> 0.014 <= 0.016 , 0.015 , 60.00, 1",
                "> 0.1 <= 0.2 , 0.15 , 80.00, 1",
                "> 100 <= 250 , 175 , 100.00, 1",
                "# target 50% 0.0150077",
            ][..],
            "{out}"
        );
        assert_eq!(ranges(&Latency::default()), "");
    }

    #[test]
    fn a_request_without_a_response_is_a_call_too() {
        let (summary, whole) = made_up::wrong();
        let out = fortio(&summary, &whole);
        // 960 responses with status 200, 40 with 500, and 45 requests without a response.
        for line in [
            "Code  -1 : 45 (4.3 %)",
            "Code 200 : 960 (91.9 %)",
            "Code 500 : 40 (3.8 %)",
            "Error cases : count 94 avg 0 +/- 0 min 0 max 0 sum 0",
        ] {
            assert!(out.lines().any(|l| l == line), "{line}: {out}");
        }
        assert!(out.contains(" : 1045 calls. qps=104.5\n"), "{out}");
    }

    #[test]
    fn requests_unanswered_at_the_end_are_errors() {
        let (summary, whole) = made_up::unanswered();
        let out = fortio(&summary, &whole);
        for line in ["Code  -1 : 3 (25.0 %)", "Error cases : count 3 avg 0 +/- 0 min 0 max 0 sum 0"] {
            assert!(out.lines().any(|l| l == line), "{line}: {out}");
        }
        assert!(out.contains(" : 12 calls. "), "{out}");
    }

    #[test]
    fn nothing_at_all_has_a_report_too() {
        let out = fortio(&made_up::nothing(), &Whole::default());
        assert!(out.contains("\nAggregated Function Time : no data\nError cases : no data\n"), "{out}");
        assert!(out.ends_with("All done 0 calls (plus 0 warmup) 0.000 ms avg, 0.0 qps\n"), "{out}");
    }
}
