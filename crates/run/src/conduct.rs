//! The phases of a run: ramp, hold, drain. Ticks come in, orders go out.

use std::{sync::mpsc::RecvTimeoutError, time::Duration};

use engine::{Control, Job};
use host::Root;
use plan::{Hold, Load, Plan};
use samples::{Ask, Header, Phase, Sink, Tick};
use units::Nanos;

use crate::{
    Interrupt,
    curve::Curve,
    gauges::Gauges,
    judge::{BothSides, Evidence},
    losses::Losses,
    observe::{self, Observed, Observer},
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
/// The rate of a shorter tick would be noise.
const LEAST_PERIOD: Nanos = Nanos(Job::PERIOD.0 / 2);
/// The kernel tells of so many connections in some hundred milliseconds.
const MOST_TOLD: u64 = 200_000;
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
    /// The probe lane against the connections held.
    pub(crate) curve: Curve,
    pub(crate) both_ends_here: bool,
    pub(crate) losses: Losses,
    /// Time that requests were under way at full load, and that full load lasted, of all shards together.
    pub(crate) waiting_ns: u128,
    pub(crate) loaded_ns: u128,
    /// Connections open at the end of the hold, counted at both ends.
    pub(crate) both_sides: Option<BothSides>,
    /// What it cost, and what was seen meanwhile; complete once the run is over.
    pub(crate) observed: Observed,
    /// What the hosts showed; complete once the run is over.
    pub(crate) evidence: Evidence,
}

/// The target's, each once.
fn ports(plan: &Plan) -> Vec<u16> {
    let mut ports: Vec<u16> = plan.target.destinations.iter().map(|d| d.port()).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// Runs the phases until the end of the last one.
pub(crate) fn conduct(
    plan: &Plan,
    root: &Root,
    observer: Observer,
    workers: Workers,
    sinks: &mut [&mut dyn Sink],
    interrupt: &Interrupt,
) -> Result<Record, Refusal> {
    let mut conductor = Conductor::new(plan, root, observer, &workers);
    let header = Header {
        target: plan.target.text.clone(),
        connections: plan.connections.into(),
        seed: plan.seed,
        io: conductor.record.io.into(),
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
    /// When its full load ended; never, before it has.
    drained_at: Nanos,
}

struct Conductor<'a> {
    root: &'a Root,
    observer: Observer,
    shards: Vec<State>,
    /// What came since the last line.
    line: Tick,
    line_ends: Nanos,
    record: Record,
    gauges: Gauges,
    draining: Option<Nanos>,
    /// When the hold is over; never, before it has begun.
    acts_at: Nanos,
    ended: bool,
}

impl Conductor<'_> {
    fn new<'a>(plan: &Plan, root: &'a Root, observer: Observer, workers: &Workers) -> Conductor<'a> {
        let shards = workers.remotes.len();
        let destinations = &plan.target.destinations;
        let both_ends_here = destinations.iter().all(|d| host::is_local(root, d.ip()));
        let never = State { ramped_at: Nanos::NEVER, drained_at: Nanos::NEVER, ..State::default() };
        // Connections that come and go are full load from the first one on.
        let comes_and_goes = matches!(plan.load, Load::Visits(_));
        let record = Record {
            totals: Tick::default(),
            io: workers.io,
            threads: shards as u32,
            started: workers.start,
            ramped_at: Nanos::NEVER,
            hold_from: if comes_and_goes { workers.start } else { Nanos::NEVER },
            hold_until: Nanos::NEVER,
            peak: 0,
            held: 0,
            resting: 0,
            interrupted: false,
            curve: Curve::new(plan.most_open().into()),
            both_ends_here,
            losses: Losses::default(),
            waiting_ns: 0,
            loaded_ns: 0,
            both_sides: None,
            observed: Observed::default(),
            evidence: Evidence::default(),
        };
        Conductor {
            root,
            shards: vec![never; shards],
            line: Tick { from: workers.start, ..Tick::default() },
            line_ends: Nanos((workers.start.0 / LINE.0 + 1) * LINE.0),
            record,
            gauges: Gauges::start(root, observer.target_pid(), ports(plan), both_ends_here),
            observer,
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
        if sampled && (!holding || self.gauges.is_queueing()) {
            self.sample(workers.clock.now());
        }
    }

    fn take(&mut self, shard: u32, tick: &Tick) {
        let period = tick.until.since(tick.from);
        // A shard ends a tick where its ramp ends: between two ends their mean is good enough.
        let open = self.shards[shard as usize].open + tick.open;
        self.line.open_ns += u128::from(open) * u128::from(period.0) / 2;
        let state = &mut self.shards[shard as usize];
        let ended = tick.phase == Phase::Drain && state.drained_at == Nanos::NEVER;
        *state = State {
            drained_at: if ended { tick.until } else { state.drained_at },
            open: tick.open,
            resolved: tick.resolved,
            waiting: tick.waiting,
            ramped_at: tick.ramped_at,
            until: tick.until,
            phase: tick.phase,
        };
        self.line.extend(tick);
        if tick.phase == Phase::Hold && period >= LEAST_PERIOD {
            self.line.shard_rates.record(tick.counts.answered as f64 / period.secs_f64());
        }
        self.record.losses.take(tick);
        if tick.phase == Phase::Hold {
            let at_load = tick.until.since(tick.from.max(self.record.hold_from));
            self.record.waiting_ns += u128::from(tick.waiting) * u128::from(at_load.0);
            self.record.loaded_ns += u128::from(at_load.0);
        }
        self.record.peak = self.record.peak.max(self.open());
        if let Some(probe) = &tick.probe {
            self.record.curve.add(self.open(), probe);
        }
    }

    fn sample(&mut self, now: Nanos) {
        let opened = self.record.totals.counts.opened + self.line.counts.opened;
        self.gauges.look(self.root, now, self.phase(now), opened);
        let (seen, line) = (&self.record.totals.counts, &self.line.counts);
        let load = observe::Load {
            open: self.open(),
            opened: opened + seen.redialled + line.redialled,
            answered: seen.answered + line.answered,
        };
        self.observer.sample(now, self.phase(now), load);
    }

    fn phase(&self, now: Nanos) -> Phase {
        match (self.draining, now >= self.record.hold_from) {
            (Some(_), _) => Phase::Drain,
            (None, true) => Phase::Hold,
            (None, false) => Phase::Ramp,
        }
    }

    /// Asks the kernel for the target's ends, where they are on this host and not too many to be told. Nothing is sent
    /// to the target for it.
    fn both_sides(&self, plan: &Plan) -> Option<BothSides> {
        let here = self.open();
        if !self.record.both_ends_here || here > MOST_TOLD {
            return None;
        }
        let there = ports(plan).into_iter().map(net::established_at).sum::<Result<u64, _>>().ok()?;
        // A target behind address translation has none of them in this network namespace.
        (there > 0).then_some(BothSides { here, there })
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
        self.sample(now);
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
        let looks = self.observer.latest();
        let mut ask = Ask::CarryOn;
        for sink in sinks.iter_mut() {
            sink.look(&looks);
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
        if self.record.ramped_at == Nanos::NEVER && ramped_at != Nanos::NEVER {
            self.record.ramped_at = ramped_at;
            if self.record.hold_from == Nanos::NEVER {
                self.record.hold_from = now + NOTICE;
                workers.order(Control::Hold(self.record.hold_from));
            }
        }
        if self.phase(now) == Phase::Hold {
            self.gauges.begin_hold(self.root, now);
        }
        if let Hold::For(time) = plan.hold {
            self.acts_at = self.record.hold_from + time;
        }
        // Shards end the load by themselves at its time, or when all connections have come and gone.
        let told = self.shards.iter().all(|s| s.phase == Phase::Drain);
        if self.draining.is_none() && (told || now >= self.acts_at || interrupt.is_set()) {
            self.record.interrupted = interrupt.is_set();
            self.gauges.look_at_ourselves(self.root, now);
            self.observer.look(now, self.phase(now));
            self.draining = Some(now);
            workers.order(Control::Drain);
        }
        let Some(since) = self.draining else { return };
        self.acts_at = Nanos::NEVER;
        if told && self.record.hold_until == Nanos::NEVER {
            self.record.hold_until = self.shards.iter().map(|s| s.drained_at).max().unwrap_or_default();
            self.record.held = self.open();
            self.record.both_sides = self.both_sides(plan);
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
        self.sample(workers.clock.now());
        self.hand_over(sinks);
        self.record.evidence = self.gauges.evidence(self.root, self.record.threads);
        self.record.observed = self.observer.finish();
        self.record
    }
}
