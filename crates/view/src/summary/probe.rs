//! The rows of the probe.

use samples::Summary;
use units::Count;

use super::{quantiles, row, unanswered};

/// The end of the probe's times. A wrong response counts as a failure and is not included in them.
const END: &str = "correct response";

pub(super) fn rows(s: &Summary, out: &mut String) {
    let Some(p) = &s.probe else { return };
    let responses = format!("{} to {}", Count(p.answered).of(END), Count(p.sent).of("request"));
    let failed = match p.failed {
        0 => String::new(),
        n => format!(", {} failed{}", Count(n), p.failed_by()),
    };
    row(out, "probe", format!("{responses}{failed}{}", unanswered(p.unanswered)));
    row(out, "probe fresh", quantiles(&p.fresh_us, END));
    row(out, "probe kept", quantiles(&p.kept_us, END));
    row(out, "probe connect", quantiles(&p.connect_us, "connection"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_response_is_one_that_was_not_correct() {
        let mut kept = samples::Latency::default();
        kept.record_n(units::Nanos::from_millis(2), 17);
        (0..14).for_each(|_| kept.censor());
        let probe = samples::ProbeSummary {
            sent: 32,
            answered: 17,
            failed: 14,
            unanswered: 1,
            failures: vec![samples::ProbeFailure { what: "status 503".to_owned(), count: 14 }],
            kept_us: kept.quantiles(),
            ..Default::default()
        };
        let mut out = String::new();
        rows(&Summary { probe: Some(probe), ..Summary::default() }, &mut out);
        let lines: Vec<&str> = out.lines().collect();
        let counts =
            "17 correct responses to 32 requests, 14 failed (status 503), 1 without a response at the end";
        assert_eq!(lines[0], format!("  probe         {counts}"));
        assert!(lines[2].ends_with("  14 (45 %) without a correct response"), "{out}");
    }
}
