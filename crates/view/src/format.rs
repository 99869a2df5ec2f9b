//! Summaries in the formats of other tools, for users and scripts that expect these.
//!
//! As in those tools, each format covers the whole run, from the first dial to the end of full load, whereas throng's summary reports
//! latency and rate at full load. A format can also cover a single population as if it were alone. `docs/reference/formats.md`
//! describes fields that have another meaning than in those tools.

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

use samples::{
    Fault, Figures, Generator, Header, Latency, Moments, Phase, Samples, Sink, Stage, Summary, Tick,
};
use units::Nanos;

/// The period over which httperf samples the rate of replies.
const REPLY_PERIOD: Nanos = Nanos::from_secs(5);

/// The totals of a run that these formats need in addition to the summary. Constant memory for any duration.
#[derive(Clone, Debug, Default)]
pub struct Whole {
    totals: Tick,
    replies: Replies,
    /// The replies of each population, if the plan has several; and the names of all populations.
    replies_of: Vec<Replies>,
    names: Vec<String>,
}

impl Sink for Whole {
    fn begin(&mut self, header: &Header) {
        self.names.clone_from(&header.populations);
    }

    fn tick(&mut self, tick: &Tick, _samples: &Samples) {
        self.replies.sample(tick);
        self.replies_of.resize_with(tick.populations.len(), Replies::default);
        for (replies, own) in self.replies_of.iter_mut().zip(&tick.populations) {
            // The time before a population begins and after it is done does not count.
            if own.is_idle() { replies.leave_out() } else { replies.sample(own) }
        }
        self.totals.extend(tick);
    }

    fn late(&mut self, tick: &Tick) {
        self.totals.amend(tick);
    }
}

/// The rate of replies, sampled per [`REPLY_PERIOD`].
#[derive(Clone, Debug, Default)]
struct Replies {
    /// The completed samples, in thousandths of responses per second.
    rates: Moments,
    /// The incomplete sample: its start, and the number of responses.
    from: Option<Nanos>,
    seen: u64,
}

impl Replies {
    /// Adds a tick. Ticks are a second long, except for the last, so a sample ends with the tick that completes it.
    fn sample(&mut self, tick: &Tick) {
        let from = *self.from.get_or_insert(tick.from);
        self.seen += tick.counts.answered;
        let time = tick.until.since(from);
        // The first tick may begin up to a second late.
        if time + Nanos::from_secs(1) > REPLY_PERIOD && tick.phase != Phase::Drain {
            let per_s = self.seen as f64 / time.secs_f64();
            self.rates.record((per_s * 1e3).round() as u64);
            (self.from, self.seen) = (Some(tick.until), 0);
        }
    }

    fn leave_out(&mut self) {
        (self.from, self.seen) = (None, 0);
    }
}

impl Whole {
    /// What a format covers: one population, by its index in the plan, or else the whole run, whose target is then that of the first
    /// population.
    pub fn of(self, summary: &Summary, population: Option<u16>) -> (Summary, Whole) {
        let nth = usize::from(population.unwrap_or(0));
        let Some(own) = self.names.get(nth).and_then(|name| summary.populations.get(name)) else {
            return (summary.clone(), self);
        };
        let target = own.target.clone();
        let (Some(_), Some(totals)) = (population, self.totals.populations.get(nth)) else {
            let figures = Figures { target, ..summary.figures.clone() };
            return (Summary { figures, ..summary.clone() }, self);
        };
        let alone = Summary {
            figures: own.figures.clone(),
            // throng's resource usage is not known per population.
            generator: Generator::default(),
            ..summary.clone()
        };
        (alone, Whole { totals: totals.clone(), replies: self.replies_of[nth].clone(), ..Whole::default() })
    }

    /// Time from due to the complete response, of all requests.
    fn latency(&self) -> Latency {
        together(&self.totals.ramp_latency, &self.totals.latency)
    }

    /// Time from due to the first byte of the response, of all requests.
    fn first_byte(&self) -> Latency {
        together(&self.totals.ramp_first_byte, &self.totals.first_byte)
    }

    /// Number of opened connections, including redialled ones.
    fn opened(&self) -> u64 {
        self.totals.counts.opened + self.totals.counts.redialled
    }

    /// Number of requests that had neither a response nor a fault when the run ended. They count as requests without a response, like
    /// those that timed out.
    fn unanswered(&self) -> u64 {
        self.totals.counts.unanswered
    }

    /// Number of faults that `is` selects.
    fn faults(&self, is: impl Fn(Fault) -> bool) -> u64 {
        self.totals.faults.iter().filter(|(fault, _)| is(*fault)).map(|(_, n)| n).sum()
    }
}

fn together(a: &Latency, b: &Latency) -> Latency {
    let mut both = a.clone();
    both.merge(b);
    both
}

/// Whether a connection could not be established.
fn is_of_connect(fault: Fault) -> bool {
    matches!(fault.stage, Stage::Dial | Stage::Tls | Stage::Handshake)
}

/// A rate; 0 if no time has elapsed.
fn per_s(n: f64, s: &Summary) -> f64 {
    if s.elapsed_s > 0.0 { n / s.elapsed_s } else { 0.0 }
}

/// A percentage; 0 if the whole is 0.
fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole * 100.0 } else { 0.0 }
}

/// The parts of the target as the user typed it, including patterns.
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
        // The colons of an IPv6 address are inside brackets.
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port),
            _ => (authority, known),
        };
        Place { host, port, path: if path.is_empty() { "/" } else { path } }
    }
}

#[cfg(test)]
mod tests {
    use samples::PopulationSummary;

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
            // The second sample has twice the rate.
            (5000, 6000, 2000, 20),
            (6000, 7000, 2000, 20),
            (7000, 8000, 2000, 20),
            (8000, 9000, 2000, 20),
            (9000, 10_000, 2000, 20),
            (10_000, 10_200, 100, 20),
        ] {
            whole.tick(&tick(from, until, answered, open), &Samples::default());
        }
        let rates = whole.replies.rates;
        assert_eq!((rates.count(), rates.min(), rates.max()), (2, 1_000_000, 2_000_000));
        assert_eq!((whole.opened(), whole.latency().count(), whole.first_byte().count()), (181, 22, 11));
        assert!((whole.latency().mean_s() - 0.020).abs() < 1e-12);
    }

    /// A run of nine seconds: users throughout, and another population from the third to the eighth second.
    fn two() -> (Summary, Whole) {
        let mut whole = Whole::default();
        let names = ["users", "calls"].map(str::to_owned);
        whole.begin(&Header { populations: names.to_vec(), ..Header::default() });
        for second in 0..9 {
            let span = |answered, open| tick(second * 1000, second * 1000 + 1000, answered, open);
            let mut calls = Tick { from: Nanos::from_secs(second), ..Tick::default() };
            if (3..8).contains(&second) {
                calls = span(500, u64::from(second < 7));
            }
            let populations = vec![span(10, 10), calls.clone()];
            let answered = 10 + calls.counts.answered;
            whole.tick(&Tick { populations, ..span(answered, 10 + calls.open) }, &Samples::default());
        }
        let figures = |target: &str, threads, elapsed_s| Figures {
            target: target.to_owned(),
            threads,
            elapsed_s,
            ..Figures::default()
        };
        let of = |target: &str, threads, elapsed_s| PopulationSummary {
            figures: figures(target, threads, elapsed_s),
            ..PopulationSummary::default()
        };
        let populations = [of("http://127.0.0.1:8/u", 2, 9.0), of("http://127.0.0.1:9/c", 1, 4.5)];
        let generator = Generator { cpu_s: 7.0, ..Generator::default() };
        let populations = names.into_iter().zip(populations).collect();
        let connections = made_up::nothing().figures.connections;
        let figures = Figures { connections, ..figures("x.toml", 3, 9.0) };
        (Summary { figures, generator, populations, ..made_up::nothing() }, whole)
    }

    #[test]
    fn the_whole_run_goes_where_its_first_population_does() {
        let (summary, whole) = two();
        let (s, whole) = whole.of(&summary, None);
        assert_eq!((s.target.as_str(), s.threads, s.elapsed_s), ("http://127.0.0.1:8/u", 3, 9.0));
        assert_eq!((whole.totals.counts.answered, whole.replies.rates.count()), (2590, 1));
    }

    #[test]
    fn the_format_of_a_population_covers_only_that() {
        let (summary, whole) = two();
        let (s, own) = whole.clone().of(&summary, Some(1));
        assert_eq!((s.target.as_str(), s.threads, s.elapsed_s), ("http://127.0.0.1:9/c", 1, 4.5));
        assert_eq!((own.totals.counts.answered, own.latency().count(), s.generator.cpu_s), (2500, 10, 0.0));
        // No sample includes the time before it began and after it was done.
        let rates = own.replies.rates;
        assert_eq!((rates.count(), rates.min(), rates.max()), (1, 500_000, 500_000));
        let (s, own) = whole.of(&summary, Some(0));
        assert_eq!((s.target.as_str(), own.totals.counts.answered), ("http://127.0.0.1:8/u", 90));
        assert!(httperf(&s, &own).contains("--server=127.0.0.1 --port=8 --uri=/u"), "{s:?}");
    }

    #[test]
    fn a_drain_is_no_sample_of_the_rate() {
        let mut whole = Whole::default();
        let drain = Tick { phase: Phase::Drain, ..tick(0, 9000, 1, 0) };
        whole.tick(&drain, &Samples::default());
        assert_eq!(whole.replies.rates.count(), 0);
    }
}
