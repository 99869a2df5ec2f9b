//! The live view as plain lines, one per second.

use std::io::Write;

use samples::{AgentShare, Header, Latency, Phase, Samples, Sink, Tick};
use units::{Bytes, Count, Nanos, Unit, percent};

use crate::{
    agents::{self, Agents},
    summary::{cores, time},
};

/// Minimum length of a tick for which rates are shown, in seconds: those of a fraction of a second at the end would be noise.
pub(crate) const MIN_PERIOD: f64 = 0.5;

/// Indentation of the line about agents, which aligns it with the phase.
const INDENT: usize = 7;

/// The sink that prints a line per second: connections, rates, latency, faults and throng's usage; on a fleet, a second line about
/// its agents.
#[derive(Default)]
pub struct Line<W> {
    out: W,
    agents: Vec<AgentShare>,
    cpu_s: f64,
    start: Option<Nanos>,
}

/// The latency to show: that of full load, or that of the ramp before full load. In a later ramp, requests left over from full load
/// may only be censored, so they are not shown.
pub(crate) fn latency(tick: &Tick) -> &Latency {
    let is_ramp = tick.phase == Phase::Ramp && tick.latency.count() == 0;
    if tick.latency.is_empty() || is_ramp { &tick.ramp_latency } else { &tick.latency }
}

impl<W: Write> Line<W> {
    /// Writes to `out`, which should be unbuffered or line-buffered.
    pub fn new(out: W) -> Line<W> {
        Line { out, agents: Vec::new(), cpu_s: 0.0, start: None }
    }
}

impl Line<Vec<u8>> {
    /// Takes the text that was written since the last call.
    pub(crate) fn take(&mut self) -> String {
        String::from_utf8(std::mem::take(&mut self.out)).expect("it writes text")
    }
}

impl<W: Write> Sink for Line<W> {
    fn begin(&mut self, header: &Header) {
        self.agents.clone_from(&header.agents);
        let Header { target, connections, ramp_deadline_s, threads, seed, io, agents, .. } = header;
        let connections = match connections {
            0 => "arrivals".to_owned(),
            n => Count(*n).of("connection"),
        };
        let threads = Count((*threads).into()).of("thread");
        let agents = match agents.len() {
            0 => String::new(),
            n => format!("{}, ", Count(n as u64).of("agent")),
        };
        let deadline = ramp_deadline_s.map(|time| format!(", adaptive ramp up to {time:.0} s"));
        let ramp = deadline.unwrap_or_default();
        let _ = writeln!(self.out, "{target}: {connections}, {agents}{threads}, {io}, seed {seed}{ramp}");
    }

    fn tick(&mut self, tick: &Tick, samples: &Samples) {
        let period = tick.until.since(tick.from).secs_f64().max(1e-9);
        if period < MIN_PERIOD {
            return;
        }
        let start = *self.start.get_or_insert(tick.from);
        let per_s = |n: u64| Count((n as f64 / period).round() as u64);
        let latency = latency(tick);
        // The share that the percentiles do not cover.
        let without = match latency.censored() {
            0 => String::new(),
            _ => format!("  no response {}", percent(latency.censored_share())),
        };
        // Without responses, there is no time to show.
        let at = |q| match latency.count() {
            0 => "-".to_owned(),
            _ => time(latency.quantile(q).0 as f64 / 1e3, latency.is_at_least(q)),
        };
        let phase = tick.phase.name();
        // The present load, which a command may have changed. A load of connections that arrive without end has no wanted number.
        let of = match tick.wanted {
            0 => String::new(),
            wanted => format!(" of {}", Count(wanted)),
        };
        // On a fleet, the samples are those of the coordinator.
        let whose = if self.agents.is_empty() { "" } else { "coordinator " };
        let (cpu_s, rss_bytes) = samples.own.as_ref().map_or((0.0, 0), |own| (own.cpu_s(), own.rss_bytes));
        let _ = writeln!(
            self.out,
            "{:>5.0}s {phase:<5} open {}{of}  connects {}/s  requests {}/s  {}  p50 {}  p95 {}  p99 {}{without}  faults {}  {whose}cpu {}  memory {}",
            tick.until.since(start).secs_f64(),
            Count(tick.open),
            per_s(tick.counts.opened + tick.counts.redialled),
            per_s(tick.counts.answered),
            Unit::BytesPerSecond.brief(tick.counts.bytes_in as f64 / period),
            at(0.5),
            at(0.95),
            at(0.99),
            Count(tick.faults.total()),
            cores((cpu_s - self.cpu_s) / period),
            Bytes(rss_bytes).brief(),
        );
        self.cpu_s = cpu_s;
        if let Some(agents) = Agents::of(&self.agents, tick) {
            let _ = writeln!(self.out, "{:INDENT$}{}", "", agents.line(agents::COLUMNS - INDENT));
        }
    }
}

/// The sink that prints the lines of the http-kit client, with its spelling: cumulative since the start, M is MiB, heads included.
pub struct Classic<W> {
    out: W,
    start: Option<Nanos>,
    requests: u64,
    bytes: u64,
}

impl<W: Write> Classic<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Classic<W> {
        Classic { out, start: None, requests: 0, bytes: 0 }
    }
}

impl<W: Write> Sink for Classic<W> {
    fn tick(&mut self, tick: &Tick, _samples: &Samples) {
        let start = *self.start.get_or_insert(tick.from);
        let elapsed = tick.until.since(start).secs_f64();
        self.requests += tick.counts.answered;
        self.bytes += tick.counts.bytes_in;
        let per_s = |n: f64| if elapsed > 0.0 { n / elapsed } else { 0.0 };
        let _ = writeln!(
            self.out,
            "time {:.0}s, concurrency: {}, total requests: {}, thoughput: {:.2}M/s, {:.2} requests/seconds",
            elapsed.floor(),
            tick.open,
            self.requests,
            per_s(self.bytes as f64 / (1 << 20) as f64),
            per_s(self.requests as f64),
        );
    }

    fn late(&mut self, tick: &Tick) {
        self.requests += tick.counts.answered;
        self.bytes += tick.counts.bytes_in;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick(second: u64) -> Tick {
        let mut t = Tick {
            from: Nanos::from_secs(second),
            until: Nanos::from_secs(second + 2),
            open: 1500,
            wanted: 3000,
            ..Tick::default()
        };
        (t.counts.opened, t.counts.answered, t.counts.bytes_in) = (1000, 4000, 8 << 20);
        for ms in 1..=100 {
            t.ramp_latency.record(Nanos::from_millis(ms));
        }
        t
    }

    #[test]
    fn a_line_has_rates_per_second_of_its_period() {
        let mut out = Vec::new();
        let mut line = Line::new(&mut out);
        line.begin(&Header {
            target: "http://t/".into(),
            connections: 3000,
            seed: 7,
            ramp_deadline_s: Some(30.0),
            io: "uring".into(),
            threads: 2,
            ..Header::default()
        });
        let own = |seconds: u64| {
            let own = samples::ProcessSample {
                cpu_user_ns: seconds * 1_000_000_000_u64,
                rss_bytes: 5 << 20,
                ..Default::default()
            };
            Samples { own: Some(own), ..Samples::default() }
        };
        line.tick(&tick(10), &own(1));
        line.tick(&tick(12), &own(2));
        let out = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(
            lines[0],
            "http://t/: 3,000 connections, 2 threads, uring, seed 7, adaptive ramp up to 30 s"
        );
        let mut line = Line::new(Vec::new());
        line.begin(&Header { target: "t".to_owned(), threads: 2, io: "uring".into(), ..Header::default() });
        assert_eq!(line.take(), "t: arrivals, 2 threads, uring, seed 0\n");
        assert_eq!(
            lines[2],
            "    4s ramp  open 1,500 of 3,000  connects 500/s  requests 2,000/s  4.0 MiB/s  p50 50 ms  p95 95 ms  p99 99 ms  \
             faults 0  cpu 0.50 cores  memory 5.0 MiB"
        );
    }

    #[test]
    fn a_line_has_the_load_that_is_wanted_now() {
        let mut out = Vec::new();
        let mut line = Line::new(&mut out);
        line.begin(&Header { connections: 3_000, ..Header::default() });
        line.tick(&Tick { wanted: 1_500, ..tick(0) }, &Samples::default());
        line.tick(&Tick { wanted: 0, ..tick(2) }, &Samples::default());
        let out = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = out.lines().collect();
        assert!(lines[1].contains("  open 1,500 of 1,500  connects "), "{out}");
        assert!(lines[2].contains("  open 1,500  connects "), "{out}");
    }

    #[test]
    fn a_fleet_has_a_line_for_its_agents() {
        let mut out = Vec::new();
        let mut line = Line::new(&mut out);
        let agents = ["load-1", "load-2"].map(|id| AgentShare { id: id.into(), wanted: 750, cores: 2 });
        line.begin(&Header { connections: 1_500, threads: 4, agents: agents.into(), ..Header::default() });
        let mut columns = samples::AgentTicks::default();
        for (place, cpu_s) in [1, 3].into_iter().enumerate() {
            let own = Tick { cpu_ns: cpu_s * 1_000_000_000, open: 750, ..Tick::default() };
            own.report(place, &mut columns);
        }
        columns.lose(0);
        line.tick(&Tick { agents: Some(Box::new(columns)), ..tick(0) }, &Samples::default());
        let out = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines.len(), 3, "{out}");
        assert!(lines[0].starts_with(": 1,500 connections, 2 agents, 4 threads"), "{out}");
        assert!(lines[1].ends_with("  faults 0  coordinator cpu 0.00 cores  memory 0 B"), "{out}");
        assert_eq!(lines[2], "       agents 1 of 2 up, 1 lost  max cpu load-2 1.50 cores");
    }

    #[test]
    fn a_second_without_a_response_has_no_times() {
        let mut out = Vec::new();
        let mut line = Line::new(&mut out);
        line.begin(&Header::default());
        let mut silent = Tick { ramp_latency: samples::Latency::default(), ..tick(0) };
        silent.ramp_latency.censor();
        line.tick(&silent, &Samples::default());
        let out = String::from_utf8(out).unwrap();
        assert!(out.contains("  p50 -  p95 -  p99 -  no response 100 %  faults"), "{out}");
    }

    #[test]
    fn the_classic_line_is_cumulative() {
        let mut out = Vec::new();
        let mut classic = Classic::new(&mut out);
        classic.tick(&tick(0), &Samples::default());
        classic.tick(&tick(2), &Samples::default());
        let out = String::from_utf8(out).unwrap();
        assert_eq!(
            out.lines().last().unwrap(),
            "time 4s, concurrency: 1500, total requests: 8000, thoughput: 4.00M/s, 2000.00 requests/seconds"
        );
        let mut out = Vec::new();
        let mut classic = Classic::new(&mut out);
        classic.tick(&tick(0), &Samples::default());
        classic.late(&tick(0));
        classic.tick(&tick(2), &Samples::default());
        let out = String::from_utf8(out).unwrap();
        assert!(
            out.ends_with("total requests: 12000, thoughput: 6.00M/s, 3000.00 requests/seconds\n"),
            "{out}"
        );
    }
}
