//! The phases of a run: ramp, hold, drain. Ticks come in, orders go out.

mod asks;
mod closer;

use std::{
    sync::{Arc, mpsc::RecvTimeoutError},
    time::Duration,
};

use engine::{Control, Job};
use host::Root;
use plan::{Plan, Reconnect, Whose};
use samples::{Phase, Sink, Tick};
use units::Nanos;

use crate::{
    Interrupt,
    both_sides::Sources,
    course::{Course, NOTICE, Order},
    losses::Losses,
    observe::{self, Observer},
    record::{Crowd, Record, line},
    rejections::Rejections,
    workers::Workers,
};

/// Responses that are under way at the end may come within their timeout; shards report what becomes of them a little later.
const DRAIN_MORE: Nanos = Nanos(3 * Job::PERIOD.0);
/// Sinks see a line this often.
const LINE: Nanos = Nanos::from_secs(1);
/// The rate of a shorter tick is noise.
const LEAST_PERIOD: Nanos = Nanos(Job::PERIOD.0 / 2);
/// Runs the stages until the end of the last one, and ends the load.
pub(crate) fn conduct(
    plan: &Plan,
    root: &Root,
    observer: Observer,
    workers: Workers,
    sinks: &mut [&mut dyn Sink],
    interrupt: &Interrupt,
) -> Record {
    let first_dial = workers.clock.now() + NOTICE;
    let course = Course::new(plan, first_dial);
    let mut conductor = Conductor::new(plan, root, observer, &workers, course, workers.start);
    conductor.record.started = first_dial;
    conductor.play(plan, &workers, sinks, interrupt);
    workers.order(Order::All(Control::Stop));
    // Each shard hands over what it still has, and then hangs up.
    while let Ok((shard, tick)) = workers.arrivals.recv_timeout(Duration::from_secs(10)) {
        conductor.take(shard, &tick);
        let _ = workers.remotes[shard as usize].used.try_send(tick);
    }
    let record = conductor.finish(plan, &workers, sinks);
    workers.join();
    record
}

/// Runs the stages from where so many connections of each population are held, and leaves the load as it is at the end
/// of the last one. `losses`: of the connections that there are.
pub(crate) fn conduct_on(
    plan: &Plan,
    root: &Root,
    workers: &Workers,
    held: &[u32],
    losses: Losses,
    interrupt: &Interrupt,
) -> Record {
    let observer = Observer::start(plan, root);
    let start = workers.clock.now();
    let mut conductor =
        Conductor::new(plan, root, observer, workers, Course::going_on(plan, start, held), start);
    conductor.record.losses = losses;
    conductor.goes_on = true;
    conductor.play(plan, workers, &mut [], interrupt);
    conductor.finish(plan, workers, &mut [])
}

/// What one shard said last.
#[derive(Clone, Copy)]
struct State {
    whose: Whose,
    open: u64,
    resolved: u64,
    waiting: u64,
    owed: u64,
    ramped_at: Nanos,
    until: Nanos,
    phase: Phase,
    /// When its full load ended; never, before it has.
    drained_at: Nanos,
}

struct Conductor<'a> {
    course: Course<'a>,
    observer: Observer,
    /// Where connections are dialled from.
    sources: Arc<Sources>,
    rejections: Rejections,
    shards: Vec<State>,
    /// What came since the last line.
    line: Tick,
    line_ends: Nanos,
    record: Record,
    draining: Option<Nanos>,
    /// Who ends it, before its time.
    ends_by: Option<&'static str>,
    /// Answers may come for so long when the load has ended.
    patience: Nanos,
    /// The load is left as it is in the end.
    goes_on: bool,
    ended: bool,
}

impl<'a> Conductor<'a> {
    fn new(
        plan: &'a Plan,
        root: &Root,
        observer: Observer,
        workers: &Workers,
        course: Course<'a>,
        start: Nanos,
    ) -> Conductor<'a> {
        let both_ends_here = plan.destinations().iter().all(|d| host::is_local(root, d.ip()));
        let said_nothing = |whose| State {
            whose,
            open: 0,
            resolved: 0,
            waiting: 0,
            owed: 0,
            ramped_at: Nanos::NEVER,
            until: Nanos::ZERO,
            phase: Phase::Ramp,
            drained_at: Nanos::NEVER,
        };
        let shards =
            |nth| workers.parts.iter().filter(|part| part.whose == Whose::Population(nth)).count() as u32;
        let populations = 0..plan.populations.len() as u16;
        let crowds: Vec<Crowd> = populations.map(|nth| Crowd::of(plan, nth, shards(nth))).collect();
        let record = Record {
            io: workers.io,
            threads: crowds.iter().map(|crowd| crowd.shards).sum(),
            crowds,
            started: start,
            both_ends_here,
            ..Record::empty(plan)
        };
        Conductor {
            course,
            sources: workers.sources.clone(),
            rejections: Rejections::default(),
            shards: workers.parts.iter().map(|part| said_nothing(part.whose)).collect(),
            line: line(start, plan.populations.len()),
            line_ends: Nanos((start.0 / LINE.0 + 1) * LINE.0),
            record,
            observer,
            draining: None,
            ends_by: None,
            patience: plan.longest_timeout() + DRAIN_MORE,
            goes_on: false,
            ended: false,
        }
    }

    /// From the first stage to the end of the last.
    fn play(&mut self, plan: &Plan, workers: &Workers, sinks: &mut [&mut dyn Sink], interrupt: &Interrupt) {
        let header = self.record.header(plan);
        for sink in sinks.iter_mut() {
            sink.begin(&header);
        }
        self.give_orders(workers);
        while !self.ended {
            self.gather(workers);
            self.heed(workers, sinks);
            self.show(workers, sinks);
            self.step(plan, workers, interrupt);
        }
    }

    fn give_orders(&mut self, workers: &Workers) {
        for order in self.course.orders() {
            if let Order::Load(nth, _, _, from) = order {
                self.record.crowds[usize::from(nth)].began.get_or_insert(from);
            }
            workers.order(order);
        }
    }

    /// The shards that hold the load: all but the probe lane's.
    fn of_load(&self) -> impl Iterator<Item = &State> {
        self.shards.iter().filter(|shard| shard.whose != Whose::Probe)
    }

    fn of(&self, population: u16) -> impl Iterator<Item = &State> {
        self.shards.iter().filter(move |shard| shard.whose == Whose::Population(population))
    }

    fn open(&self) -> u64 {
        self.shards.iter().map(|s| s.open).sum()
    }

    /// Takes ticks for a moment.
    fn gather(&mut self, workers: &Workers) {
        // The end of the ramp is acted upon at once, for it tells itself; a hold is left in peace.
        let holding = !self.course.is_moving() && self.draining.is_none();
        let wait = Duration::from_millis(if holding { 100 } else { 20 });
        let wait = match self.course.acts_at().since(workers.clock.now()) {
            soon if soon > Nanos::ZERO && self.draining.is_none() => wait.min(Duration::from_nanos(soon.0)),
            _ => wait,
        };
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
        self.mind_silence();
        if sampled && (!holding || self.observer.is_curious()) {
            self.sample(workers.clock.now());
        }
    }

    fn take(&mut self, shard: u32, tick: &Tick) {
        let period = tick.until.since(tick.from);
        let state = &mut self.shards[shard as usize];
        // A shard ends a tick where its ramp ends: between two ends their mean is good enough.
        let open = state.open + tick.open;
        let is_after = state.drained_at != Nanos::NEVER;
        let ended = tick.phase == Phase::Drain && !is_after;
        *state = State {
            whose: state.whose,
            drained_at: if ended { tick.until } else { state.drained_at },
            open: tick.open,
            resolved: tick.resolved,
            waiting: tick.waiting,
            owed: tick.owed,
            ramped_at: tick.ramped_at,
            until: tick.until,
            phase: tick.phase,
        };
        let whose = state.whose;
        let open_ns = u128::from(open) * u128::from(period.0) / 2;
        self.line.open_ns += open_ns;
        self.line.extend(tick);
        self.record.losses.take(tick);
        if let Whose::Population(nth) = whose {
            self.take_of(nth, tick, open_ns);
            // The tick in which its load ended is not among them.
            if is_after {
                self.record.crowds[usize::from(nth)].dropped_in_drain += tick.counts.dropped;
            }
        }
        self.record.peak = self.record.peak.max(self.open());
        if let Some(probe) = &tick.probe {
            self.record.curve.add(self.open(), probe);
        }
    }

    /// What a population's shard has said.
    fn take_of(&mut self, nth: u16, tick: &Tick, open_ns: u128) {
        let period = tick.until.since(tick.from);
        let has_rate = tick.phase == Phase::Hold && period >= LEAST_PERIOD;
        let rate = has_rate.then(|| tick.counts.answered as f64 / period.secs_f64());
        rate.into_iter().for_each(|rate| self.line.shard_rates.record(rate));
        let (open, waiting) = (self.of(nth).map(|s| s.open).sum(), self.of(nth).map(|s| s.waiting).sum());
        let (resolved, owed) = (self.of(nth).map(|s| s.resolved).sum(), self.of(nth).map(|s| s.owed).sum());
        let ramped_at = self.of(nth).map(|s| s.ramped_at).max().unwrap_or_default();
        let hold_from = self.course.progress(nth).hold_from;
        let complete = self.of(nth).map(|s| s.until).min().unwrap_or_default();
        self.record.crowds[usize::from(nth)].take(tick, open, complete, hold_from);
        if let Some(own) = self.line.populations.get_mut(usize::from(nth)) {
            own.extend(tick);
            own.open_ns += open_ns;
            rate.into_iter().for_each(|rate| own.shard_rates.record(rate));
            (own.open, own.wanted, own.waiting) = (open, self.course.wanted(nth), waiting);
            (own.resolved, own.owed, own.ramped_at) = (resolved, owed, ramped_at);
        }
    }

    fn sample(&mut self, now: Nanos) {
        let opened = self.record.totals.counts.opened + self.line.counts.opened;
        let (seen, line) = (&self.record.totals.counts, &self.line.counts);
        let load = observe::Load {
            open: self.open(),
            opened: opened + seen.redialled + line.redialled,
            answered: seen.answered + line.answered,
            probed: self.record.totals.dials_of_probe() + self.line.dials_of_probe(),
        };
        self.observer.sample(now, self.phase(now), load);
    }

    fn phase(&self, now: Nanos) -> Phase {
        let holds = |nth: u16| now >= self.course.progress(nth).hold_from;
        let populations = self.record.crowds.len() as u16;
        match (self.draining, !self.course.is_moving() && (0..populations).any(holds)) {
            (Some(_), _) => Phase::Drain,
            _ if self.course.is_paused() => Phase::Pause,
            (None, true) => Phase::Hold,
            (None, false) => Phase::Ramp,
        }
    }

    /// A line for the sinks, once a second.
    fn show(&mut self, workers: &Workers, sinks: &mut [&mut dyn Sink]) {
        // Shards end their ticks together, and those ticks need a moment to arrive.
        let here = self.shards.iter().all(|s| s.until >= self.line_ends);
        let now = workers.clock.now();
        if !here && now.since(self.line_ends) < Job::PERIOD || now < self.line_ends {
            return;
        }
        self.line_ends = Nanos((now.0 / LINE.0 + 1) * LINE.0);
        self.sample(now);
        self.look_closer();
        self.hand_over(sinks);
    }

    fn hand_over(&mut self, sinks: &mut [&mut dyn Sink]) {
        let until = self.shards.iter().map(|s| s.until).max().unwrap_or_default();
        self.line.open = self.open();
        self.line.resolved = self.shards.iter().map(|s| s.resolved).sum();
        self.line.waiting = self.of_load().map(|s| s.waiting).sum();
        self.line.owed = self.of_load().map(|s| s.owed).sum();
        self.line.ramped_at = self.of_load().map(|s| s.ramped_at).max().unwrap_or_default();
        self.line.phase = match self.course.is_paused() && self.draining.is_none() {
            true => Phase::Pause,
            false => self.of_load().map(|s| s.phase).min().unwrap_or_default(),
        };
        self.line.until = until;
        self.line.wanted = (0..self.record.crowds.len() as u16).map(|nth| self.course.wanted(nth)).sum();
        let own = self.observer.generator();
        let looks = self.observer.latest();
        for sink in sinks.iter_mut() {
            sink.look(&looks);
            sink.tick(&self.line, &own);
        }
        self.record.totals.extend(&self.line);
        self.record.moments.take(&self.line, self.observer.take_doing());
        let index = self.line.index + 1;
        self.line.clear();
        (self.line.index, self.line.from) = (index, until);
        self.line.populations = line(until, self.record.crowds.len()).populations;
    }

    /// From stage to stage.
    fn step(&mut self, plan: &Plan, workers: &Workers, interrupt: &Interrupt) {
        let now = workers.clock.now();
        if self.draining.is_none() {
            let shards = &self.shards;
            let ramped = |nth: u16| {
                let own = shards.iter().filter(|shard| shard.whose == Whose::Population(nth));
                own.map(|shard| shard.ramped_at).max().filter(|at| *at != Nanos::NEVER)
            };
            // Those held are counted before a stage moves them.
            let held = self.held();
            if self.course.step(now, ramped) {
                self.keep_held(&held);
            }
            self.give_orders(workers);
        }
        if self.phase(now) == Phase::Hold {
            self.observer.begin_hold(now);
            self.look_for_the_other_ends(plan);
        }
        // Shards end the load by themselves at its time, or when all connections have come and gone.
        let told = match (self.goes_on, self.draining) {
            (false, _) => self.of_load().all(|s| s.phase == Phase::Drain),
            (true, None) => false,
            // All that was before the end has been said, by shards that know of it.
            (true, Some(since)) => self.shards.iter().all(|s| s.until >= since + NOTICE),
        };
        let is_over = told || now >= self.course.ends_at() || self.is_void(plan);
        let ends_by = if interrupt.is_set() { Some("a signal") } else { self.ends_by };
        if self.draining.is_none() && (is_over || ends_by.is_some()) {
            self.record.interrupted = ends_by;
            self.observer.look(now, self.phase(now));
            self.draining = Some(now);
            // Where the load goes on, what was due so far is still waited for.
            let end = if self.goes_on { Control::Hold(Nanos::NEVER) } else { Control::Drain };
            workers.order(Order::All(end));
        }
        let Some(since) = self.draining else { return };
        if told && self.record.ended == Nanos::NEVER {
            self.end_load(plan);
        }
        let open_requests = |s: &State| if self.goes_on { s.owed } else { s.waiting };
        let waiting: u64 = self.shards.iter().map(open_requests).sum();
        // The probe's shard too, which hears of an end by itself from the order only: what it last said may be older.
        let all_know = self.goes_on || self.shards.iter().all(|s| s.phase == Phase::Drain);
        if told && all_know && waiting == 0 || now.since(since) >= self.patience {
            self.ended = !self.rejections.is_pending(now);
        }
    }

    /// Whether all connections are gone, for good: there is nothing to wait for.
    fn is_void(&self, plan: &Plan) -> bool {
        let mut crowds = plan.populations.iter().zip(&self.record.crowds);
        let gone = |(population, crowd): (&plan::Population, &Crowd)| {
            let comes_back =
                population.comes_and_goes() || matches!(population.reconnect, Reconnect::Backoff(_));
            // What the server closed by announcement is dialled again.
            !comes_back && crowd.totals.counts.closed == crowd.totals.counts.redialled
        };
        self.course.is_last() && !self.course.is_moving() && self.open() == 0 && crowds.all(gone)
    }

    /// Connections open now, of the populations that are at their largest load.
    fn held(&self) -> Vec<Option<u64>> {
        let open = |nth| self.of(nth).map(|shard| shard.open).sum();
        let populations = 0..self.record.crowds.len() as u16;
        populations.map(|nth| self.course.is_at_peak(nth).then(|| open(nth))).collect()
    }

    fn keep_held(&mut self, held: &[Option<u64>]) {
        for (crowd, held) in self.record.crowds.iter_mut().zip(held) {
            held.iter().for_each(|held| crowd.keep_held(*held));
        }
    }

    /// The load has ended in all shards.
    fn end_load(&mut self, plan: &Plan) {
        self.keep_held(&self.held());
        // One that never came to its largest load has held what it has now.
        let left = (0..)
            .zip(&self.record.crowds)
            .map(|(nth, crowd)| (!crowd.is_kept).then(|| self.of(nth).map(|shard| shard.open).sum()));
        self.keep_held(&left.collect::<Vec<_>>());
        self.look_at_the_end(plan);
        let ended = match self.draining {
            Some(since) if self.goes_on => since.min(self.course.ends_at()),
            _ => self.of_load().map(|s| s.drained_at).max().unwrap_or_default(),
        };
        (self.record.ended, self.record.ramp) = (ended, self.course.ramping_any(ended));
        for (nth, population) in (0..).zip(&plan.populations) {
            let ramped_at = self.of(nth).map(|shard| shard.ramped_at).max().unwrap_or_default();
            // Connections that come and go may all have gone before.
            let own = self.of(nth).map(|shard| shard.drained_at).max().unwrap_or_default();
            let crowd = &mut self.record.crowds[usize::from(nth)];
            crowd.end(population, &self.course, nth, (ramped_at, own.min(ended), ended));
            if population.comes_and_goes() {
                self.record.ramp = self.record.ramp.max(crowd.ramp);
            }
        }
    }

    fn finish(mut self, plan: &Plan, workers: &Workers, sinks: &mut [&mut dyn Sink]) -> Record {
        self.sample(workers.clock.now());
        self.hand_over(sinks);
        self.take_back_accepted();
        self.ask_for_tls(plan);
        self.record.rejection = self.rejections.finish(|ip| self.observer.is_here(ip));
        self.record.observed = self.observer.finish();
        self.record
    }
}
