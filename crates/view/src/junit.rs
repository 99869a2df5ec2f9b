//! A run in JUnit's XML format, which CI systems show as tests. The load is a test case, and so is each threshold.

use std::fmt::Write;

use samples::{RunRecord, Summary, ThresholdResult, Verdict};
use units::{Count, Date};

/// A test suite: a run or a search.
pub(crate) struct Suite {
    /// The target.
    pub(crate) name: String,
    pub(crate) began: Date,
    /// Name and value of each property.
    pub(crate) properties: Vec<(&'static str, String)>,
    pub(crate) cases: Vec<Case>,
    /// The suite's output.
    pub(crate) text: String,
}

/// A test case.
pub(crate) struct Case {
    pub(crate) name: String,
    /// Duration in seconds. The duration of the suite is the sum.
    pub(crate) time_s: f64,
    pub(crate) outcome: Outcome,
}

/// The outcome of a test case. A failure is caused by the target, an error by the test itself.
pub(crate) enum Outcome {
    Passed,
    Failed(String),
    Error(String),
    Skipped(String),
}

/// The document for a run.
pub fn junit(run: &RunRecord, s: &Summary) -> String {
    let name = format!("throng {}", s.target);
    let (began, text) = (run.began_ms, crate::text(s));
    Suite { name, began, properties: Vec::new(), cases: cases(s), text }.document()
}

impl Suite {
    /// The document.
    pub(crate) fn document(&self) -> String {
        let count = |is: fn(&Outcome) -> bool| self.cases.iter().filter(|case| is(&case.outcome)).count();
        let failures = count(|outcome| matches!(outcome, Outcome::Failed(_)));
        let errors = count(|outcome| matches!(outcome, Outcome::Error(_)));
        let skipped = count(|outcome| matches!(outcome, Outcome::Skipped(_)));
        let counts = format!(r#"tests="{}" failures="{failures}" errors="{errors}""#, self.cases.len());
        // The sum of the rounded durations that are written.
        let time = self.cases.iter().map(|case| (case.time_s * 1e3).round()).sum::<f64>() / 1e3;
        let began = self.began.to_string();
        // The schema does not allow a time zone.
        let began = began.trim_end_matches('Z');
        let mut out = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"throng\" {counts} time=\"{time:.3}\">\n  \
            <testsuite name=\"{}\" {counts} skipped=\"{skipped}\" time=\"{time:.3}\" timestamp=\"{began}\">\n",
            escaped(&self.name),
        );
        self.write_properties(&mut out);
        self.cases.iter().for_each(|case| case.write(&mut out));
        let text = escaped(&self.text);
        let _ = write!(out, "    <system-out>{text}</system-out>\n  </testsuite>\n</testsuites>\n");
        out
    }

    fn write_properties(&self, out: &mut String) {
        if self.properties.is_empty() {
            return;
        }
        out.push_str("    <properties>\n");
        for (name, value) in &self.properties {
            let _ = writeln!(out, r#"      <property name="{name}" value="{}"/>"#, escaped(value));
        }
        out.push_str("    </properties>\n");
    }
}

/// The load, then the thresholds. If the run is invalid or was interrupted, its thresholds are skipped.
fn cases(s: &Summary) -> Vec<Case> {
    let threshold_failed = s.thresholds.iter().any(ThresholdResult::fails);
    let load = match s.verdict {
        Verdict::Invalid | Verdict::Interrupted => Outcome::Error(s.headline.clone()),
        Verdict::Fail if !threshold_failed => Outcome::Failed(s.headline.clone()),
        Verdict::Fail => shortfall(s).map_or(Outcome::Passed, Outcome::Failed),
        // If the thresholds are met, they allow a shortfall.
        Verdict::Pass => Outcome::Passed,
    };
    let is_void = matches!(load, Outcome::Error(_));
    // All cases refer to the same run, so its duration is counted once.
    let threshold = |threshold: &ThresholdResult| Case {
        name: threshold.expr.clone(),
        time_s: 0.0,
        outcome: match threshold.pass {
            _ if is_void => Outcome::Skipped(format!("the run is {}", s.verdict.name())),
            _ if threshold.unreliable => Outcome::Skipped(s.unreliable.clone().unwrap_or_default()),
            true => Outcome::Passed,
            false => Outcome::Failed(format!("{}: {}", threshold.expr, threshold.measured())),
        },
    };
    let load = Case { name: "load".to_owned(), time_s: s.elapsed_s, outcome: load };
    std::iter::once(load).chain(s.thresholds.iter().map(threshold)).collect()
}

/// The part of the load that was not achieved: connections neither held nor closed as planned or announced, or requests that were not
/// sent.
fn shortfall(s: &Summary) -> Option<String> {
    let (c, missed) = (&s.connections, s.requests.missed);
    let closed = s.closed_as_planned() + c.closed;
    // Connections that arrive are not held, and the time may end before all have arrived.
    let (is_short, there, wanted, how) = match c.all_arrive() {
        true => (closed < c.dialled(), closed, c.dialled(), "completed"),
        false => (c.held + closed < c.wanted, c.held, c.wanted, "held"),
    };
    let short = || format!("{} of {} {how}", Count(there), Count(wanted).of("connection"));
    let unsent = || format!("{} due but not sent", Count(missed).were("request"));
    is_short.then(short).or_else(|| (missed > 0).then(unsent))
}

impl Case {
    fn write(&self, out: &mut String) {
        let (name, time) = (escaped(&self.name), self.time_s);
        let _ = write!(out, r#"    <testcase classname="throng" name="{name}" time="{time:.3}""#);
        let (element, message) = match &self.outcome {
            Outcome::Passed => {
                out.push_str("/>\n");
                return;
            }
            Outcome::Failed(message) => ("failure", message),
            Outcome::Error(message) => ("error", message),
            Outcome::Skipped(message) => ("skipped", message),
        };
        let _ = writeln!(out, r#"><{element} message="{}"/></testcase>"#, escaped(message));
    }
}

/// Escapes a text for XML 1.0, also for attributes; characters that XML does not allow are replaced.
fn escaped(text: &str) -> String {
    let is_allowed = |c: char| !c.is_control() || "\n\t".contains(c);
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
            c if is_allowed(c) => out.push(c),
            _ => out.push(char::REPLACEMENT_CHARACTER),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixtures::check_golden;
    use samples::Figures;

    fn run() -> RunRecord {
        RunRecord { began_ms: Date(1_700_000_000_250), ..RunRecord::default() }
    }

    fn threshold(expr: &str, shown: &str, pass: bool) -> ThresholdResult {
        ThresholdResult {
            expr: expr.to_owned(),
            value: Some(1.0),
            shown: shown.to_owned(),
            pass,
            unreliable: false,
        }
    }

    fn summary(verdict: Verdict, headline: &str) -> Summary {
        let figures =
            Figures { target: "http://t/?a=<b>&c=\"d\"".to_owned(), elapsed_s: 28.25, ..Figures::default() };
        Summary { verdict, headline: headline.to_owned(), figures, ..Summary::default() }
    }

    #[test]
    fn a_failed_threshold_is_a_failed_test_and_the_load_is_not() {
        let mut s = summary(Verdict::Fail, "fail: threshold latency.p99 < 200ms: 340 ms");
        s.thresholds =
            vec![threshold("latency.p99 < 200ms", "340 ms", false), threshold("held >= 99%", "100 %", true)];
        check_golden(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/junit.xml"), &junit(&run(), &s));
    }

    #[test]
    fn each_verdict_is_one_outcome_of_the_load() {
        let check = |verdict: Verdict, thresholds: &[bool], expected: &str| {
            let mut s = summary(verdict, "why");
            s.thresholds = thresholds.iter().map(|pass| threshold("held >= 1", "1", *pass)).collect();
            let text = junit(&run(), &s);
            let suite = text.lines().find(|line| line.contains("<testsuite ")).expect("a suite");
            assert!(suite.contains(expected), "{verdict:?} {thresholds:?}: {suite}");
        };
        check(Verdict::Pass, &[], r#"tests="1" failures="0" errors="0" skipped="0""#);
        check(Verdict::Pass, &[true, true], r#"tests="3" failures="0" errors="0" skipped="0""#);
        check(Verdict::Fail, &[], r#"tests="1" failures="1" errors="0" skipped="0""#);
        check(Verdict::Fail, &[false, true, false], r#"tests="4" failures="2" errors="0" skipped="0""#);
        // For example, all connections are lost: the thresholds on the remaining figures are met, but the run has failed.
        check(Verdict::Fail, &[true], r#"tests="2" failures="1" errors="0" skipped="0""#);
        check(Verdict::Invalid, &[false, true], r#"tests="3" failures="0" errors="1" skipped="2""#);
        check(Verdict::Interrupted, &[], r#"tests="1" failures="0" errors="1" skipped="0""#);
    }

    #[test]
    fn a_threshold_that_is_not_judged_is_skipped_and_the_others_are_not() {
        let mut s = summary(Verdict::Fail, "why");
        s.unreliable = Some("throng was late".to_owned());
        let unjudged = ThresholdResult { unreliable: true, ..threshold("latency.p99 < 5ms", "20 ms", false) };
        s.thresholds = vec![threshold("errors < 1%", "4.8 %", false), unjudged];
        let text = junit(&run(), &s);
        assert!(text.contains(r#"tests="3" failures="1" errors="0" skipped="1""#), "{text}");
        assert!(text.contains(r#"<skipped message="throng was late"/>"#), "{text}");
        assert!(text.contains(r#"<failure message="errors &lt; 1%: 4.8 %"/>"#), "{text}");
    }

    #[test]
    fn a_load_that_did_not_come_about_fails_beside_its_thresholds() {
        let check = |verdict, [wanted, held, finished, missed]: [u64; 4], expected: &str| {
            let mut s = summary(verdict, "why");
            s.thresholds = vec![threshold("latency.p99 < 200ms", "", verdict == Verdict::Pass)];
            let c = &mut s.figures.connections;
            (c.wanted, c.held, c.finished) = (wanted, held, finished);
            s.figures.requests.missed = missed;
            let text = junit(&run(), &s);
            let load = text.lines().find(|line| line.contains("name=\"load\"")).expect("a load");
            assert!(load.ends_with(expected), "{verdict:?} {wanted} {held} {finished} {missed}: {load}");
        };
        let failed = |why: &str| format!("><failure message=\"{why}\"/></testcase>");
        let passed = "time=\"28.250\"/>";
        check(Verdict::Fail, [5, 0, 0, 0], &failed("0 of 5 connections held"));
        check(Verdict::Fail, [5, 4, 0, 0], &failed("4 of 5 connections held"));
        check(Verdict::Fail, [5, 5, 0, 0], passed);
        check(Verdict::Fail, [5, 0, 5, 0], passed);
        check(Verdict::Fail, [5, 5, 0, 72], &failed("72 requests were due but not sent"));
        check(Verdict::Pass, [5, 4, 0, 0], passed);
    }

    /// Connections that are open at the end of the load are closed after it.
    #[test]
    fn of_connections_that_arrive_those_that_came_are_to_be_completed() {
        let check = |finished: u64, expected: &str| {
            let mut s = summary(Verdict::Fail, "why");
            s.thresholds = vec![threshold("latency.p99 < 200ms", "", false)];
            let c = &mut s.figures.connections;
            (c.wanted, c.arriving, c.opened, c.held, c.finished) = (9, 9, 5, 2, finished);
            assert!(junit(&run(), &s).contains(expected), "{}", junit(&run(), &s));
        };
        check(4, "name=\"load\" time=\"28.250\"><failure message=\"4 of 5 connections completed\"/>");
        check(5, "name=\"load\" time=\"28.250\"/>");
    }

    #[test]
    fn nothing_in_a_text_ends_its_element() {
        let check = |text: &str, expected: &str| assert_eq!(escaped(text), expected);
        check("a < b & \"c\" ]]>", "a &lt; b &amp; &quot;c&quot; ]]&gt;");
        check("\u{1b}[31m\u{0}\u{ffff}\n\tü", "\u{fffd}[31m\u{fffd}\u{fffd}\n\tü");
    }
}
