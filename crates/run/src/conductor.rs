//! The conductor: leads a run from its first order to its last. It is pure: worker reports, commands and the time are inputs; orders and
//! one line per second are outputs. [`crate::conduct`] connects it to real workers, sinks, signals and the observation of the target. The
//! simulation uses the same code with simulated workers.

mod end;
mod lines;
mod lost;
mod patience;
mod report;
#[cfg(test)]
mod tests;

pub use lines::filed;
pub(crate) use patience::Awaited;
pub use report::second_of;

use std::{collections::BTreeMap, ops::Range};

use engine::{Control, DialRate};
use plan::{Plan, Role};
use samples::{Command, Mark, MarkKind, Marks, Phase, Tick, UserCommand};
use units::Nanos;

use patience::Patience;
use report::Report;

/// Time covered by a line.
const LINE: Nanos = Nanos::from_secs(1);

use crate::{
    schedule::{Order, Schedule},
    workers::{Update, Workers},
};
use record::{PopulationRecord, Record};

/// Interval between steps. It is longer at full load, so as not to disturb the load. The end of a ramp is reported at once.
const ACTS_EVERY: Nanos = Nanos::from_millis(20);
const ACTS_EVERY_AT_LOAD: Nanos = Nanos::from_millis(100);

/// Recorded as the reason of an early end that a user or an API client requested.
const COMMAND: &str = "a command";
/// Maximum number of stored commands.
const MAX_COMMANDS: usize = 1_000;

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The phase of the run at the step, before a possible end of the load by this step.
    pub phase: Phase,
    /// This step orders the end of the load.
    pub drains: bool,
    /// Every worker has reported the end of its load; set in one step only.
    pub has_ended: bool,
    /// The run is over: all responses and reports have arrived, or the time to wait for them is up.
    pub is_over: bool,
}

/// Leads a run through its stages to its end.
pub struct Conductor<'a> {
    plan: &'a Plan,
    schedule: Schedule<'a>,
    reports: Vec<Report>,
    /// Reports of the probe's workers since the last line. Reports of the load's workers are in their population's record.
    probe: Tick,
    line_begins: Nanos,
    line_ends: Nanos,
    /// Ticks of seconds after the current line, which still waits for other workers: role, tick, and the worker's open connections before
    /// it.
    ahead: Vec<(Role, Tick, u64)>,
    /// Ticks cover whole seconds (agents): each belongs to exactly one line, whenever it arrives.
    has_seconds: bool,
    /// Late counts by second, for seconds whose lines have already been emitted. Used only with workers that may be disconnected.
    late: BTreeMap<u64, Tick>,
    pub(crate) record: Record,
    /// Stages and commands since the last line.
    marks: Marks,
    /// Maximum dial rate of each population, learned from the target's congestion; used where the plan gives no rate.
    dial_rates: Vec<DialRate>,
    orders: Vec<Order>,
    draining: Option<Nanos>,
    /// The load ends before the end of the last stage.
    ends_early: bool,
    /// What ends the load early: a user's command, a lost worker or a failure. A signal is in `has_signal`.
    ends_by: Option<&'static str>,
    has_signal: bool,
    /// Usual length of a worker's tick.
    period: Nanos,
    /// Maximum time until an order is applied or a report arrives.
    latency: Nanos,
    patience: Patience,
    /// The run continues without a lost worker.
    carries_on: bool,
    /// Other workers may still take over the load of a lost worker.
    hands_over: bool,
    /// A lost worker may still come back.
    may_come_back: bool,
    /// All workers have ended: no lost worker comes back.
    none_is_left: bool,
}

impl<'a> Conductor<'a> {
    /// A conductor for a whole run. The workers' ticks begin at `start`, the dials at `first_dial`.
    pub fn new(plan: &'a Plan, workers: &dyn Workers, start: Nanos, first_dial: Nanos) -> Conductor<'a> {
        let schedule = Schedule::new(plan, first_dial, workers.notice());
        Conductor::with(plan, workers, schedule, start, first_dial)
    }

    /// A conductor for a step of a search: `held` connections of each population exist already, and all connections stay open at the end.
    pub fn going_on(plan: &'a Plan, workers: &dyn Workers, held: &[u32]) -> Conductor<'a> {
        let now = workers.now();
        Conductor::with(plan, workers, Schedule::going_on(plan, now, held, workers.notice()), now, now)
    }

    fn with(
        plan: &'a Plan,
        workers: &dyn Workers,
        schedule: Schedule<'a>,
        start: Nanos,
        started: Nanos,
    ) -> Conductor<'a> {
        let (role, threads) = (workers.role(), workers.threads());
        let threads_of = |nth| {
            let own = role.iter().zip(&threads).filter(|(role, _)| **role == Role::Population(nth));
            own.map(|(_, threads)| *threads).collect::<Vec<u32>>()
        };
        let period = workers.period();
        let latency = period.max(workers.notice());
        let measured = |nth| {
            let threads = threads_of(nth);
            let mut measured = PopulationRecord::of(plan, nth, threads.len() as u32, period);
            (measured.line, measured.threads) = (Tick::starting(start), threads.iter().sum());
            measured
        };
        let populations: Vec<PopulationRecord> = (0..plan.populations.len() as u16).map(measured).collect();
        let threads = populations.iter().map(|measured| measured.threads).sum();
        let mut conductor = Conductor {
            plan,
            schedule,
            reports: role.into_iter().map(Report::none).collect(),
            probe: Tick::starting(start),
            line_begins: start,
            line_ends: lines::end_after(start),
            ahead: Vec::new(),
            has_seconds: period >= LINE,
            late: BTreeMap::new(),
            record: Record { threads, populations, started, ..Record::empty(plan) },
            marks: Marks::default(),
            dial_rates: vec![DialRate::default(); plan.populations.len()],
            orders: Vec::new(),
            draining: None,
            ends_early: false,
            ends_by: None,
            has_signal: false,
            period,
            latency,
            // Responses outstanding at the end may arrive within their timeout; their reports arrive a little later.
            patience: Patience::of(plan.longest_timeout() + Nanos(3 * latency.0)),
            carries_on: workers.carries_on(),
            hands_over: false,
            may_come_back: true,
            none_is_left: false,
        };
        conductor.mark_stage(started);
        conductor
    }

    /// Limits the wait for responses at the end to `patience`; `None` leaves the default, the plan's longest timeout.
    pub fn with_patience(self, patience: Option<Nanos>) -> Conductor<'a> {
        Conductor { patience: patience.map_or(self.patience, Patience::of), ..self }
    }

    /// The schedule of the stages.
    pub fn schedule(&self) -> &Schedule<'a> {
        &self.schedule
    }

    /// Handles updates until the next step is due. Returns whether any arrived, or `None` if all workers have ended.
    pub fn gather(&mut self, workers: &mut dyn Workers) -> Option<bool> {
        let mut until = self.acts_at(workers.now());
        if !workers.is_connected() {
            self.patience.handle_disconnected(workers.now());
        }
        let mut has_news = false;
        loop {
            match workers.next(until) {
                Update::Nothing => {
                    self.hands_over = workers.hands_over();
                    self.may_come_back = workers.may_come_back();
                    return Some(has_news);
                }
                Update::Ended => {
                    self.none_is_left = true;
                    return None;
                }
                update => self.handle(update),
            }
            // After the first update, take those that have already arrived, without waiting.
            (has_news, until) = (true, Nanos::ZERO);
        }
    }

    /// Handles an update from the workers.
    pub fn handle(&mut self, update: Update) {
        match update {
            Update::Tick(worker, tick) => self.handle_tick(worker, tick),
            Update::Lost(worker) => self.handle_lost(worker),
            Update::Back(worker) => self.handle_back(worker),
            Update::Joined(role) => self.handle_joined(role),
            Update::Nothing | Update::Ended => {}
        }
    }

    /// Passes the pending orders to the workers.
    pub fn give_orders(&mut self, workers: &mut dyn Workers) {
        self.poll_orders().into_iter().for_each(|order| workers.order(order));
    }

    /// When the next step is due, even if no update arrives.
    pub fn acts_at(&self, now: Nanos) -> Nanos {
        let soon = now + if self.is_holding() { ACTS_EVERY_AT_LOAD } else { ACTS_EVERY };
        match self.schedule.acts_at() {
            at if at > now && self.draining.is_none() => at.min(soon),
            _ => soon,
        }
    }

    /// Returns the orders since the last call.
    pub fn poll_orders(&mut self) -> Vec<Order> {
        self.take_scheduled_orders();
        std::mem::take(&mut self.orders)
    }

    fn take_scheduled_orders(&mut self) {
        for order in self.schedule.orders() {
            if let Order::Load(nth, _, _, from) = order {
                self.record.populations[usize::from(nth)].began.get_or_insert(from);
            }
            self.orders.push(order);
        }
    }

    /// Reports of the load's workers, that is, all except the probe's.
    fn of_load(&self) -> impl Iterator<Item = &Report> {
        self.reports.iter().filter(|report| matches!(report.role, Role::Population(_)))
    }

    fn of(&self, population: u16) -> impl Iterator<Item = &Report> {
        self.of_load().filter(move |report| report.role == Role::Population(population) && !report.is_lost)
    }

    /// When the last first dial of a population had an outcome; [`Nanos::NEVER`] before, `None` without workers.
    fn ramped_at(&self, population: u16) -> Option<Nanos> {
        self.of(population).map(|report| report.ramped_at).max()
    }

    fn populations(&self) -> Range<u16> {
        0..self.plan.populations.len() as u16
    }

    /// Connections open now, without the probe's.
    pub fn open(&self) -> u64 {
        self.record.populations.iter().map(|measured| measured.open).sum()
    }

    /// Requests waiting for a response: of all workers, and of the probe's workers.
    pub(crate) fn waiting(&self) -> (u64, u64) {
        let probes = self.reports.iter().filter(|report| matches!(report.role, Role::Probe(_)));
        (self.reports.iter().map(|report| report.waiting).sum(), probes.map(|report| report.waiting).sum())
    }

    /// Dials with a known outcome.
    pub(crate) fn resolved(&self) -> u64 {
        self.reports.iter().map(|report| report.resolved).sum()
    }

    /// Sum of a count over the whole run so far.
    pub(crate) fn sum(&self, of: impl Fn(&Tick) -> u64) -> u64 {
        let lines = self.record.populations.iter().map(|measured| &measured.line).chain([&self.probe]);
        let ahead = self.ahead.iter().map(|(_, tick, _)| tick);
        of(&self.record.totals) + lines.chain(ahead).map(of).sum::<u64>()
    }

    /// Whether the load is constant until the stage ends.
    pub(crate) fn is_holding(&self) -> bool {
        !self.schedule.is_moving() && self.draining.is_none()
    }

    /// When the load ends; [`Nanos::NEVER`] if that is not known yet.
    pub(crate) fn ends_at(&self) -> Nanos {
        self.schedule.ends_at()
    }

    /// Handles a signal: the run ends early.
    pub(crate) fn handle_signal(&mut self) {
        self.has_signal = true;
        // The result of an interrupted search step is discarded, so there is no reason to wait for it.
        if self.goes_on() {
            self.patience.shorten(self.latency + self.schedule.notice());
        }
    }

    /// The phase under which samples are filed. Closing connections counts as a pause, not as a ramp: its costs are not those of opening
    /// connections.
    pub(crate) fn phase(&self, now: Nanos) -> Phase {
        let holds = |nth: u16| now >= self.schedule.progress(nth).hold_from;
        match (self.draining, !self.schedule.is_moving() && self.populations().any(holds)) {
            (Some(_), _) => Phase::Drain,
            _ if self.schedule.is_paused() || self.schedule.is_closing() => Phase::Pause,
            (None, true) => Phase::Hold,
            (None, false) => Phase::Ramp,
        }
    }

    /// Ends the load with the next step, as at the end of the last stage.
    pub(crate) fn end_early(&mut self) {
        self.ends_early = true;
    }

    /// Advances through the stages to the end of the run. The resulting orders are returned by [`Conductor::poll_orders`].
    pub fn step(&mut self, now: Nanos) -> Step {
        if self.draining.is_none() {
            let ramped: Vec<Option<Nanos>> = self.populations().map(|nth| self.ramped_at(nth)).collect();
            let ramped = |nth: u16| ramped[usize::from(nth)].filter(|at| *at != Nanos::NEVER);
            // Count the held connections before a new stage changes the load.
            let held = self.held(|_| true);
            let was_moving = self.schedule.is_moving();
            if self.schedule.step(now, ramped) {
                self.keep_held(&held);
                self.mark_stage(now);
            }
            if was_moving && !self.schedule.is_moving() {
                self.note_short_load();
            }
            self.take_scheduled_orders();
        }
        let phase = self.phase(now);
        self.release_idle(now);
        if self.draining.is_some_and(|since| self.patience.ends(since, now)) {
            self.lose_silent_workers();
        }
        let is_reported = self.end_is_reported();
        let is_due =
            is_reported && !self.waits_for_the_lost() || now >= self.schedule.ends_at() || self.ends_early;
        let is_void = !is_due && self.is_void();
        let ends_by = self.ends_by();
        let drains = self.draining.is_none() && (is_due || is_void || ends_by.is_some());
        if drains {
            self.record.interrupted = ends_by.map(Into::into);
            self.record.is_deserted = is_void && ends_by.is_none() && self.has_lost();
            self.draining = Some(now);
            // If the load continues, requests that are already due are still waited for.
            let end = if self.goes_on() { Control::Hold(Nanos::NEVER) } else { Control::Drain };
            self.orders.push(Order::All(end));
        }
        let has_ended = self.draining.is_some() && is_reported && self.record.ended == Nanos::NEVER;
        if has_ended {
            self.end_load();
        }
        let is_over = self
            .draining
            .is_some_and(|since| is_reported && self.nothing_is_awaited() || self.patience.ends(since, now));
        if let Some(since) = self.draining.filter(|_| is_over) {
            self.record.is_cut_short = self.patience.waited(since, now) < self.plan.longest_timeout();
            if self.patience.is_short() && self.awaited() > 0 {
                // The user gave up waiting for outstanding responses.
                self.record.interrupt(ends_by);
            }
        }
        Step { phase, drains, has_ended, is_over }
    }

    /// What ends the run early; `None` if nothing does.
    fn ends_by(&self) -> Option<&'static str> {
        if self.has_signal { Some("a signal") } else { self.ends_by }
    }

    /// Notes that full load begins with too few connections because a worker is lost. The run does not wait for it: it may come back.
    fn note_short_load(&mut self) {
        let wanted = self.populations().map(|nth| self.schedule.wanted(nth)).sum();
        let is_short = self.of_load().any(|report| report.is_lost) && self.open() < wanted;
        if is_short && self.record.began_short.is_none() {
            self.record.began_short = Some((self.open(), wanted));
        }
    }

    /// Whether the load continues after the end, as in a step of a search.
    fn goes_on(&self) -> bool {
        !self.schedule.has_end()
    }

    /// Whether all workers have reported the end of the load. Workers end it on their own at the ordered time, or when all arrivals have
    /// left. If the load continues, it means that they have reported everything up to the end.
    fn end_is_reported(&self) -> bool {
        match self.goes_on() {
            false => self.of_load().all(|report| self.has_reported_end(report)),
            true => self.reports.iter().all(|report| self.has_reported_end(report)),
        }
    }

    fn has_reported_end(&self, report: &Report) -> bool {
        match (self.goes_on(), self.draining) {
            (false, _) => report.phase == Phase::Drain,
            (true, None) => false,
            (true, Some(since)) => report.is_lost || report.until >= since + self.schedule.notice(),
        }
    }

    fn nothing_is_awaited(&self) -> bool {
        // Includes the probe's workers: their last report may predate the end.
        let all_know = self.goes_on() || self.reports.iter().all(|report| report.phase == Phase::Drain);
        all_know && self.awaited() == 0
    }

    /// Requests whose responses are waited for at the end.
    pub fn awaited(&self) -> u64 {
        let open = |report: &Report| if self.goes_on() { report.owed } else { report.waiting };
        self.reports.iter().map(open).sum()
    }

    /// Applies a command; returns whether it changes anything.
    pub fn handle_command(&mut self, command: Command, now: Nanos) -> bool {
        // Enough time for every worker to receive the end and to report its last counts.
        let short = Nanos(2 * self.latency.0);
        let done = match command {
            Command::Drain if self.ends_by.is_none() => {
                self.ends_by = Some(COMMAND);
                Some("drained".to_owned())
            }
            // A stop may follow a drain that takes too long.
            Command::Stop if self.patience.shorten(short) || self.ends_by.is_none() => {
                self.ends_by = Some(COMMAND);
                Some("stopped".to_owned())
            }
            command if self.ends_by.is_none() && self.draining.is_none() => {
                // Count the held connections before the command changes the load, for populations that have reached it.
                let held = self.held(|nth| self.schedule.has_arrived(nth));
                let open: Vec<u64> = self.record.populations.iter().map(|measured| measured.open).collect();
                self.schedule.apply(command, now, &open).inspect(|_| self.keep_held(&held))
            }
            _ => None,
        };
        let Some(what) = done else { return false };
        self.mark(now, MarkKind::Command, what.clone());
        if self.record.commands.len() < MAX_COMMANDS {
            let at_s = now.since(self.record.started).secs_f64();
            self.record.commands.push(UserCommand { at_s, what });
        }
        true
    }

    /// Adds a mark to the next line.
    fn mark(&mut self, at: Nanos, kind: MarkKind, what: String) {
        self.marks.add(Mark { at, kind, what });
    }

    /// Marks the beginning of the current stage, if the plan has more than one.
    fn mark_stage(&mut self, at: Nanos) {
        if let [_, _, ..] = self.plan.stages.as_slice() {
            self.mark(at, MarkKind::Stage, self.plan.stages[self.schedule.stage()].name.clone());
        }
    }
}
