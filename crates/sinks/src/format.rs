//! The summary in the form of the tools that throng descends from, for people and scripts that know theirs.
//!
//! Each form speaks of the whole run, from the first dial to the end of full load, as those tools do; our own
//! summary's latency and rate are those of full load. What a field means where it means something else than there is in
//! `docs/reference/formats.md`.

mod ab;
mod fortio;
mod httperf;
#[cfg(test)]
pub(crate) mod made_up;
mod wrk;

pub use ab::ab;
pub use fortio::fortio;
pub use httperf::httperf;
pub use wrk::wrk;

use samples::{Fault, Generator, Latency, Moments, Phase, Sink, Stage, Summary, Tick};
use units::Nanos;

/// httperf samples the rate of replies over this time.
const REPLY_PERIOD: Nanos = Nanos::from_secs(5);

/// The whole of a run: what these forms tell beyond the summary. Constant memory, however long it lasts.
#[derive(Clone, Debug, Default)]
pub struct Whole {
    totals: Tick,
    /// Answers per second over [`REPLY_PERIOD`] each, in thousandths.
    reply_rates: Moments,
    /// The sample that is not complete yet: since when, and how many answers.
    sampled_from: Option<Nanos>,
    sampled: u64,
}

impl Sink for Whole {
    fn tick(&mut self, tick: &Tick, _own: &Generator) {
        self.sample_replies(tick);
        self.totals.extend(tick);
    }
}

impl Whole {
    /// Ticks are a second long, the last one apart: a sample ends with the tick that completes it.
    fn sample_replies(&mut self, tick: &Tick) {
        let from = *self.sampled_from.get_or_insert(tick.from);
        self.sampled += tick.counts.answered;
        let time = tick.until.since(from);
        // The first tick began within a second of the clock.
        if time + Nanos::from_secs(1) > REPLY_PERIOD && tick.phase != Phase::Drain {
            let per_s = self.sampled as f64 / time.secs_f64();
            self.reply_rates.record((per_s * 1e3).round() as u64);
            (self.sampled_from, self.sampled) = (Some(tick.until), 0);
        }
    }

    /// From due to the whole answer, of every request.
    fn latency(&self) -> Latency {
        together(&self.totals.ramp_latency, &self.totals.latency)
    }

    /// From due to the first byte of the answer, of every request.
    fn first_byte(&self) -> Latency {
        together(&self.totals.ramp_first_byte, &self.totals.first_byte)
    }

    /// Connections that were opened, again and again included.
    fn opened(&self) -> u64 {
        self.totals.counts.opened + self.totals.counts.redialled
    }

    /// How many faults are of this sort.
    fn faults(&self, is: impl Fn(Fault) -> bool) -> u64 {
        self.totals.faults.iter().filter(|(fault, _)| is(*fault)).map(|(_, n)| n).sum()
    }
}

fn together(a: &Latency, b: &Latency) -> Latency {
    let mut both = a.clone();
    both.merge(b);
    both
}

/// Whether an answer came, though not the right one.
fn is_wrong_answer(fault: Fault) -> bool {
    fault.kind.is_wrong_answer()
}

/// Whether there was to be a connection, and there was none.
fn is_of_connect(fault: Fault) -> bool {
    matches!(fault.stage, Stage::Dial | Stage::Tls | Stage::Handshake)
}

/// Per second; nothing in no time.
fn per_s(n: f64, s: &Summary) -> f64 {
    if s.elapsed_s > 0.0 { n / s.elapsed_s } else { 0.0 }
}

/// A share of the whole in hundredths; nothing of nothing.
fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole * 100.0 } else { 0.0 }
}

/// Where the load goes, as the user wrote it: patterns stay patterns.
struct Place<'a> {
    host: &'a str,
    port: &'a str,
    path: &'a str,
}

impl<'a> Place<'a> {
    fn of(target: &'a str) -> Place<'a> {
        let (scheme, rest) = target.split_once("://").unwrap_or(("http", target));
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let known = if matches!(scheme, "https" | "wss") { "443" } else { "80" };
        // An address of IPv6 has colons of its own, in brackets.
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port),
            _ => (authority, known),
        };
        Place { host, port, path: if path.is_empty() { "/" } else { path } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(target: &str, expected: (&str, &str, &str)) {
        let Place { host, port, path } = Place::of(target);
        assert_eq!((host, port, path), expected, "{target}");
    }

    #[test]
    fn a_place_is_read_as_it_was_written() {
        check("http://localhost:8000/a?b=c:d", ("localhost", "8000", "/a?b=c:d"));
        check("http://127.0.0.{1..30}:{9000..9010}/", ("127.0.0.{1..30}", "{9000..9010}", "/"));
        check("ws://example.org", ("example.org", "80", "/"));
        check("https://[::1]/x", ("[::1]", "443", "/x"));
        check("http://[::1]:81/", ("[::1]", "81", "/"));
    }

    fn tick(from_ms: u64, until_ms: u64, answered: u64, open: u64) -> Tick {
        let (from, until) = (Nanos::from_millis(from_ms), Nanos::from_millis(until_ms));
        let mut tick = Tick { from, until, open, phase: Phase::Hold, ..Tick::default() };
        (tick.counts.answered, tick.counts.opened, tick.counts.redialled) = (answered, open, 1);
        tick.latency.record(Nanos::from_millis(10));
        tick.ramp_latency.record(Nanos::from_millis(30));
        tick.first_byte.record(Nanos::from_millis(5));
        tick
    }

    #[test]
    fn the_whole_is_the_sum_of_its_ticks() {
        let mut whole = Whole::default();
        for (from, until, answered, open) in [
            (300, 1000, 700, 10),
            (1000, 2000, 1000, 10),
            (2000, 3000, 1000, 10),
            (3000, 4000, 1000, 10),
            (4000, 5000, 1000, 10),
            // The second sample, twice as fast.
            (5000, 6000, 2000, 20),
            (6000, 7000, 2000, 20),
            (7000, 8000, 2000, 20),
            (8000, 9000, 2000, 20),
            (9000, 10_000, 2000, 20),
            (10_000, 10_200, 100, 20),
        ] {
            whole.tick(&tick(from, until, answered, open), &Generator::default());
        }
        let rates = whole.reply_rates;
        assert_eq!((rates.count(), rates.min(), rates.max()), (2, 1_000_000, 2_000_000));
        assert_eq!((whole.opened(), whole.latency().count(), whole.first_byte().count()), (181, 22, 11));
        assert!((whole.latency().mean_s() - 0.020).abs() < 1e-12);
    }

    #[test]
    fn a_drain_is_no_sample_of_the_rate() {
        let mut whole = Whole::default();
        let drain = Tick { phase: Phase::Drain, ..tick(0, 9000, 1, 0) };
        whole.tick(&drain, &Generator::default());
        assert_eq!(whole.reply_rates.count(), 0);
    }
}
