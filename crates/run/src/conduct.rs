//! The phases of a run: ramp, hold, drain. Ticks come in, orders go out.

use std::{sync::mpsc::RecvTimeoutError, time::Duration};

use engine::{Control, Job};
use plan::{Hold, Plan};
use samples::{Ask, Header, Phase, Sink, Tick};
use units::Nanos;

use crate::{
    Interrupt,
    observe::{Load, Observed, Observer},
    prepare::Refusal,
    workers::Workers,
};

/// Full load begins this long after the ramp's end was seen, so that every shard has the order by then (a shard
/// looks at its orders every 100 ms at least).
const NOTICE: Nanos = Nanos::from_millis(120);
/// Answers that are under way at the end may come within this, or the request timeout if that is less.
const DRAIN: Nanos = Nanos::from_secs(5);
/// Sinks see a line this often.
const LINE: Nanos = Nanos::from_secs(1);

/// A run, measured.
pub(crate) struct Record {
    pub(crate) totals: Tick,
    pub(crate) io: &'static str,
    pub(crate) threads: u32,
    pub(crate) started: Nanos,
    /// When the outcome of the last dial was known.
    pub(crate) ramped_at: Nanos,
    pub(crate) hold_from: Nanos,
    pub(crate) hold_until: Nanos,
    pub(crate) peak: u64,
    pub(crate) held: u64,
    /// Closed by announcement and not open again, at the time of `held`.
    pub(crate) resting: u64,
    pub(crate) interrupted: bool,
    /// What it cost, and what was seen meanwhile.
    pub(crate) observed: Observed,
}

/// Runs the phases until the end of the last one.
pub(crate) fn conduct(
    plan: &Plan,
    observer: Observer,
    workers: Workers,
    sinks: &mut [&mut dyn Sink],
    interrupt: &Interrupt,
) -> Result<Record, Refusal> {
    let mut conductor = Conductor::new(observer, &workers);
    let header = Header {
        target: plan.target.text.clone(),
        connections: plan.connections.into(),
        seed: plan.seed,
        io: conductor.record.io,
        threads: conductor.record.threads,
    };
    for sink in sinks.iter_mut() {
        sink.begin(&header);
    }
    while !conductor.ended {
        conductor.gather(&workers);
        if conductor.show(&workers, sinks) == Ask::Stop {
            interrupt.set();
        }
        conductor.step(plan, &workers, interrupt);
    }
    let record = conductor.finish(&workers, sinks);
    workers.join();
    Ok(record)
}

/// What one shard said last.
#[derive(Clone, Copy, Default)]
struct State {
    open: u64,
    resolved: u64,
    waiting: u64,
    ramped_at: Nanos,
    until: Nanos,
    phase: Phase,
}

struct Conductor {
    observer: Observer,
    shards: Vec<State>,
    /// What came since the last line.
    line: Tick,
    line_ends: Nanos,
    record: Record,
    draining: Option<Nanos>,
    /// When the hold is over; never, before it has begun.
    acts_at: Nanos,
    ended: bool,
}

impl Conductor {
    fn new(observer: Observer, workers: &Workers) -> Conductor {
        let shards = workers.remotes.len();
        let never = State { ramped_at: Nanos::NEVER, ..State::default() };
        let record = Record {
            totals: Tick::default(),
            io: workers.io,
            threads: shards as u32,
            started: workers.start,
            ramped_at: Nanos::NEVER,
            hold_from: Nanos::NEVER,
            hold_until: Nanos::NEVER,
            peak: 0,
            held: 0,
            resting: 0,
            interrupted: false,
            observed: Observed::default(),
        };
        Conductor {
            observer,
            shards: vec![never; shards],
            line: Tick { from: workers.start, ..Tick::default() },
            line_ends: Nanos((workers.start.0 / LINE.0 + 1) * LINE.0),
            record,
            draining: None,
            acts_at: Nanos::NEVER,
            ended: false,
        }
    }

    fn open(&self) -> u64 {
        self.shards.iter().map(|s| s.open).sum()
    }

    /// Takes ticks for a moment.
    fn gather(&mut self, workers: &Workers) {
        // The end of the ramp is acted upon at once, for it tells itself; a hold is left in peace.
        let holding = self.record.hold_from != Nanos::NEVER && self.draining.is_none();
        let wait = Duration::from_millis(if holding { 100 } else { 20 });
        let wait = wait.min(Duration::from_nanos(self.acts_at.since(workers.clock.now()).0));
        let mut sampled = false;
        loop {
            match workers.arrivals.recv_timeout(if sampled { Duration::ZERO } else { wait }) {
                Ok((shard, tick)) => {
                    self.take(shard, &tick);
                    let _ = workers.remotes[shard as usize].used.try_send(tick);
                    sampled = true;
                }
                Err(RecvTimeoutError::Timeout) => break,
                // All shards have ended.
                Err(RecvTimeoutError::Disconnected) => {
                    self.ended = true;
                    return;
                }
            }
        }
        if sampled && !holding {
            self.sample(workers);
        }
    }

    fn take(&mut self, shard: u32, tick: &Tick) {
        self.shards[shard as usize] = State {
            open: tick.open,
            resolved: tick.resolved,
            waiting: tick.waiting,
            ramped_at: tick.ramped_at,
            until: tick.until,
            phase: tick.phase,
        };
        self.line.extend(tick);
        self.record.peak = self.record.peak.max(self.open());
    }

    fn sample(&mut self, workers: &Workers) {
        let (seen, line) = (&self.record.totals.counts, &self.line.counts);
        let load = Load {
            open: self.open(),
            opened: seen.opened + line.opened + seen.redialled + line.redialled,
            answered: seen.answered + line.answered,
        };
        let now = workers.clock.now();
        self.observer.sample(now, self.phase(now), load);
    }

    fn phase(&self, now: Nanos) -> Phase {
        match self.draining {
            Some(_) => Phase::Drain,
            None if now < self.record.hold_from => Phase::Ramp,
            None => Phase::Hold,
        }
    }

    /// A line for the sinks, once a second.
    fn show(&mut self, workers: &Workers, sinks: &mut [&mut dyn Sink]) -> Ask {
        // Shards end their ticks together, and those ticks need a moment to arrive.
        let here = self.shards.iter().all(|s| s.until >= self.line_ends);
        let now = workers.clock.now();
        if !here && now.since(self.line_ends) < Job::PERIOD || now < self.line_ends {
            return Ask::CarryOn;
        }
        self.line_ends = Nanos((now.0 / LINE.0 + 1) * LINE.0);
        self.sample(workers);
        self.hand_over(sinks)
    }

    fn hand_over(&mut self, sinks: &mut [&mut dyn Sink]) -> Ask {
        let until = self.shards.iter().map(|s| s.until).max().unwrap_or_default();
        self.line.open = self.open();
        self.line.resolved = self.shards.iter().map(|s| s.resolved).sum();
        self.line.waiting = self.shards.iter().map(|s| s.waiting).sum();
        self.line.phase = self.shards.iter().map(|s| s.phase).min().unwrap_or_default();
        self.line.until = until;
        let own = self.observer.generator();
        let mut ask = Ask::CarryOn;
        for sink in sinks.iter_mut() {
            if sink.tick(&self.line, &own) == Ask::Stop {
                ask = Ask::Stop;
            }
        }
        self.record.totals.extend(&self.line);
        let index = self.line.index + 1;
        self.line.clear();
        (self.line.index, self.line.from) = (index, until);
        ask
    }

    /// From phase to phase.
    fn step(&mut self, plan: &Plan, workers: &Workers, interrupt: &Interrupt) {
        let now = workers.clock.now();
        let ramped_at = self.shards.iter().map(|s| s.ramped_at).max().unwrap_or_default();
        if self.record.hold_from == Nanos::NEVER && ramped_at != Nanos::NEVER {
            self.record.ramped_at = ramped_at;
            self.record.hold_from = now + NOTICE;
            workers.order(Control::Hold(self.record.hold_from));
        }
        if let Hold::For(time) = plan.hold {
            self.acts_at = self.record.hold_from + time;
        }
        if self.draining.is_none() && (now >= self.acts_at || interrupt.is_set()) {
            self.record.interrupted = interrupt.is_set();
            workers.order(Control::Drain);
            self.observer.look(now, self.phase(now));
            self.draining = Some(now);
        }
        let Some(since) = self.draining else { return };
        self.acts_at = Nanos::NEVER;
        let told = self.shards.iter().all(|s| s.phase == Phase::Drain);
        if told && self.record.hold_until == Nanos::NEVER {
            self.record.hold_until = self.shards.iter().map(|s| s.until).max().unwrap_or_default();
            self.record.held = self.open();
            let (seen, line) = (&self.record.totals.counts, &self.line.counts);
            self.record.resting = (seen.closed + line.closed).saturating_sub(seen.redialled + line.redialled);
        }
        let waiting: u64 = self.shards.iter().map(|s| s.waiting).sum();
        if told && waiting == 0 || now.since(since) >= plan.timeout.min(DRAIN) {
            self.ended = true;
        }
    }

    fn finish(mut self, workers: &Workers, sinks: &mut [&mut dyn Sink]) -> Record {
        workers.order(Control::Stop);
        // Each shard hands over what it still has, and then hangs up.
        while let Ok((shard, tick)) = workers.arrivals.recv_timeout(Duration::from_secs(10)) {
            self.take(shard, &tick);
            let _ = workers.remotes[shard as usize].used.try_send(tick);
        }
        self.hand_over(sinks);
        self.record.observed = self.observer.finish();
        self.record
    }
}
