//! A soak: a long trial that prints its status at intervals, and finally reports drifts.

use units::{Bytes, Clock, Count, Nanos};

use crate::{
    case::Case,
    curve::{Interval, Second, intervals},
    drift::{Drift, drift_rows, drifts},
    error::Error,
    figure::{NONE, micros},
    outcome::Outcome,
    report::trial_text,
    table::aligned,
    trial::{Runner, Trial},
};

/// Number of times that the status is printed.
const CHECKPOINTS: u64 = 20;
/// Maximum number of intervals that are tested for drift; each has at least three seconds.
const INTERVALS: usize = 60;

/// The results of a soak.
pub struct Soak {
    /// The outcome, to be stored.
    pub outcome: Outcome,
    /// The text to be printed.
    pub text: String,
    /// Whether any figure drifts.
    pub drifts: bool,
}

impl Soak {
    /// Runs a case for the given time.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn run(runner: Runner, case: &Case, time: Nanos) -> Result<Soak, Error> {
        let runner = Runner { time: Some(time), ..runner };
        let trial = Trial::start(&runner, case, true)?;
        let (clock, interval) = (Clock::start(), time.0 / CHECKPOINTS);
        let (mut next, mut printed) = (interval, 0);
        let (mut outcome, seconds) = trial.end(&mut |clients| {
            if clock.now().0 >= next {
                next += interval;
                // Includes the last second that was printed, from which the increments of counters are computed.
                let seconds = clients.seconds(printed.max(1) - 1);
                let (before, since) = seconds.split_at(usize::from(printed > 0).min(seconds.len()));
                if !since.is_empty() {
                    (runner.progress)(&status(&Interval::of(before.last(), since)));
                }
                printed += since.len();
            }
        })?;
        let held: Vec<Second> = seconds.into_iter().filter(Second::is_at_full_load).collect();
        outcome.drift = drifts(&intervals(&held, INTERVALS.min(held.len() / 3)));
        let mut text = trial_text(case.lab, &outcome);
        text += &aligned(&drift_rows(&outcome.drift));
        let drifting: Vec<&Drift> = outcome.drift.iter().filter(|drift| drift.drifts).collect();
        let drifts = !drifting.is_empty();
        text += &match (outcome.drift.is_empty(), drifts) {
            (true, _) if held.is_empty() => {
                "  full load was never reached, so drift was not tested\n".to_owned()
            }
            (true, _) => "  too short to test for drift; use --for 1m or longer\n".to_owned(),
            (false, false) => format!("  no drift over {time}\n"),
            (false, true) => drifting.iter().map(|drift| format!("  {}\n", drift.line())).collect(),
        };
        text.extend(outcome.pauses.iter().map(|pause| format!("  {}\n", pause.line())));
        Ok(Soak { outcome, text, drifts })
    }
}

/// An interval as one line.
fn status(interval: &Interval) -> String {
    let bytes = |n: Option<f64>| n.map_or(NONE.to_owned(), |n| Bytes(n as u64).brief().to_string());
    let time = |us: Option<f64>| us.map_or(NONE.to_owned(), micros);
    let mut line = format!(
        "{}  {} open  {} lost  {:.0} responses/s  p50 {}  p99 {}  longest {}  server {}  throng {}",
        Nanos::from_secs(interval.at_s as u64).brief(),
        Count(interval.open as u64),
        Count(interval.dropped as u64),
        interval.answers_per_s,
        time(interval.p50_us),
        time(interval.p99_us),
        time(interval.max_us),
        bytes(interval.target_bytes),
        bytes(interval.own_bytes),
    );
    line.extend(interval.gc_pause_ms.map(|ms| format!("  paused {ms:.0} ms")));
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_a_line() {
        let interval = Interval { at_s: 61.0, open: 20_000.0, p50_us: Some(490.0), ..Interval::default() };
        let expected =
            "1m1s  20,000 open  0 lost  0 responses/s  p50 490 µs  p99 –  longest –  server –  throng –";
        assert_eq!(status(&interval), expected);
        let java = Interval { gc_pause_ms: Some(7.4), target_bytes: Some(1048576.0), ..interval };
        assert!(status(&java).ends_with("  server 1.0 MiB  throng –  paused 7 ms"), "{}", status(&java));
    }
}
