//! A run in a few lines of Markdown, for the summary of a CI job.

use samples::{RunRecord, Summary};
use units::Count;

use super::markdown::{command, fenced, line, table, thresholds, title};
use crate::summary::{error_rate, held, quantiles, reasons, statuses_text, throughput};

/// Verdict, thresholds, other reasons, main figures, and the command that repeats the run.
pub fn job_summary(run: &RunRecord, s: &Summary) -> String {
    let mut out = String::new();
    line(&mut out, format_args!("## {}\n", title(Some(s.verdict), &s.target)));
    line(&mut out, format_args!("**{}**\n", s.headline));
    thresholds(s, &mut out);
    let reasons: String = reasons(s).map(|reason| format!("- {reason}\n")).collect();
    if !reasons.is_empty() {
        line(&mut out, format_args!("{reasons}"));
    }
    let mut rows = vec![("connections", held(&s.connections))];
    rows.extend(error_rate(s).map(|rate| ("errors", rate)));
    if s.requests.due > 0 {
        rows.push(("requests/s", Count(s.requests.per_s.round() as u64).to_string()));
        rows.push(("throughput", throughput(&s.requests)));
        rows.push(("latency", quantiles(&s.latency_us, "response")));
        rows.push(("lag (how late throng sent)", quantiles(&s.lag_us, "end")));
    }
    let statuses = statuses_text(s);
    if !statuses.is_empty() {
        rows.push(("status", statuses));
    }
    let rows = rows.into_iter().map(|(name, value)| format!("{name} | {value}"));
    table("figure | value", "|---|---|", rows, &mut out);
    line(&mut out, format_args!("{}\n", fenced("sh", &command(run, s.seed))));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixtures::check_golden;
    use samples::{Connections, Errors, Figures, Quantiles, Requests, ThresholdResult, Verdict};

    #[test]
    fn a_job_summary_has_verdict_thresholds_figures_and_command() {
        let words = ["run", "http://t/?a=1&b=2", "--threshold", "latency.p99 < 200ms"];
        let run = RunRecord { words: words.map(str::to_owned).to_vec(), ..RunRecord::default() };
        let times = |p99: f64| Quantiles {
            count: 900,
            p50: 1_000.0,
            p95: 2_000.0,
            p99,
            p999: p99,
            max: p99,
            ..Quantiles::default()
        };
        let figures = Figures {
            target: "http://t/?a=1&b=2".to_owned(),
            connections: Connections { wanted: 1_000, held: 990, ..Connections::default() },
            requests: Requests {
                due: 900,
                sent: 900,
                per_s: 90.4,
                bytes_in: 3 << 20,
                bytes_in_per_s: 322_600.0,
                bytes_out: 55_800,
                bytes_out_per_s: 5_605.0,
                status: [(200, 880), (503, 20)].into(),
                ..Requests::default()
            },
            errors: Errors { count: 20, of: 900 },
            latency_us: times(340_000.0),
            ..Figures::default()
        };
        let mut s =
            Summary { verdict: Verdict::Fail, figures, seed: 7, lag_us: times(50.0), ..Summary::default() };
        s.headline = "fail: threshold latency.p99 < 200ms: 340 ms".to_owned();
        s.thresholds = vec![ThresholdResult {
            expr: "latency.p99 < 200ms".to_owned(),
            value: Some(340_000.0),
            shown: "340 ms".to_owned(),
            pass: false,
            unreliable: false,
        }];
        check_golden(
            concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/job-summary.md"),
            &job_summary(&run, &s),
        );
    }

    #[test]
    fn the_title_has_the_result_and_the_target() {
        let check = |verdict, expected: &str| {
            let figures = Figures { target: "http://t/".to_owned(), ..Figures::default() };
            let text =
                job_summary(&RunRecord::default(), &Summary { verdict, figures, ..Summary::default() });
            assert_eq!(text.lines().next(), Some(expected));
        };
        check(Verdict::Pass, "## Load test passed: `http://t/`");
        check(Verdict::Fail, "## Load test failed: `http://t/`");
        check(Verdict::Invalid, "## Load test invalid: `http://t/`");
        check(Verdict::Interrupted, "## Load test interrupted: `http://t/`");
    }

    #[test]
    fn no_errors_are_0_percent() {
        let requests = Requests { due: 17_757, sent: 17_757, ..Requests::default() };
        let figures = Figures { requests, errors: Errors { count: 0, of: 17_757 }, ..Figures::default() };
        let text = job_summary(&RunRecord::default(), &Summary { figures, ..Summary::default() });
        assert!(text.contains("| errors | 0 % (0 of 17,757 requests failed) |"), "{text}");
    }

    /// A run that passed may also list such reasons: its time may have ended before all connections had arrived.
    #[test]
    fn reasons_that_are_no_thresholds_are_listed() {
        let reasons = ["threshold errors < 1% failed: 2 %", "ended after 2.0 s with 100 of 500 connections"];
        let reasons = reasons.map(str::to_owned).to_vec();
        let text = job_summary(&RunRecord::default(), &Summary { reasons, ..Summary::default() });
        let listed: Vec<&str> = text.lines().filter(|line| line.starts_with("- ")).collect();
        assert_eq!(listed, ["- ended after 2.0 s with 100 of 500 connections"]);
        assert!(text.contains("connections\n\n| figure | value |"), "{text}");
    }

    #[test]
    fn what_only_holds_connections_has_no_latency() {
        let text = job_summary(&RunRecord::default(), &Summary::default());
        assert!(text.contains("| connections | 0 held of 0 wanted |"), "{text}");
        assert!(!text.contains("latency") && !text.contains("status") && !text.contains("errors"), "{text}");
    }
}
