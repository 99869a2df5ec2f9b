//! Aggregates worker reports second by second: ticks come in, one line per second goes out, and the record holds the totals. Every tick
//! is counted exactly once: in the current line, in a later one (`ahead`), or as a late tick of a line that has already been emitted.

use std::borrow::Cow;

use engine::Control;
use plan::{ProbeKind, Role};
use samples::{Phase, Tick};
use units::Nanos;

use super::{
    Conductor, LINE, Order,
    report::{Report, second_of, to_redial},
};
use record::Record;

/// Maximum lead of a tick, in lines. A tick further ahead was read late, after this process was suspended, and goes into the current
/// line.
const AHEAD: u64 = 2;

/// End of the line that contains `now`: the next whole second.
pub(super) fn end_after(now: Nanos) -> Nanos {
    Nanos((now.0 / LINE.0 + 1) * LINE.0)
}

/// Adds a tick of a population's worker to a line or to a late tick. `before`: its open connections before this tick; `period`: the usual
/// length of a tick.
fn add_to(line: &mut Tick, tick: &Tick, before: u64, period: Nanos) {
    line.extend(tick);
    // The population's record collects the receipts of pushes; lines do not carry them.
    line.pushes.receipts.clear();
    let took = tick.until.since(tick.from);
    // If an agent was suspended, only the last second of its tick belongs to the line.
    let in_line = if period >= LINE { took.min(period) } else { took };
    // The mean of both ends is precise enough: a worker ends a tick where its ramp ends.
    line.open_ns += u128::from(before + tick.open) * u128::from(in_line.0) / 2;
    // The rate of a short tick is noise.
    if tick.phase == Phase::Hold && took >= Nanos(period.0 / 2) {
        line.shard_rates.record(tick.counts.answered as f64 / took.secs_f64());
    }
}

/// A worker's tick as it is counted. The probe's connections and requests are moved to the probe's counts: they are not part of the load.
pub fn filed(role: Role, tick: &Tick) -> Cow<'_, Tick> {
    match role {
        Role::Population(_) => Cow::Borrowed(tick),
        Role::Probe(ProbeKind::Fresh) => Cow::Owned(tick.of_probe(|probe| &mut probe.fresh)),
        Role::Probe(ProbeKind::Kept) => Cow::Owned(tick.of_probe(|probe| &mut probe.kept)),
    }
}

impl Conductor<'_> {
    /// Handles a tick of a worker.
    pub fn handle_tick(&mut self, worker: u32, tick: &Tick) {
        let before = self.reports[worker as usize];
        let tick = &*filed(before.role, tick);
        self.record.losses.take(tick);
        if let Role::Population(_) = before.role {
            self.record.shares.take(tick);
        }
        if before.is_lost {
            let report = &mut self.reports[worker as usize];
            (report.held, report.left) = (report.held.after_late(tick), tick.open);
            report.to_redial += to_redial(tick);
            self.extend_load(tick);
            return self.add_late(worker, before.second, tick, tick.clone());
        }
        let is_after = before.drained_at != Nanos::NEVER;
        let ended = tick.phase == Phase::Drain && !is_after;
        let drained_at = if ended { tick.until } else { before.drained_at };
        let released = before.released + if is_after { 0 } else { tick.counts.ended_after };
        let to_redial = before.to_redial + to_redial(tick);
        self.reports[worker as usize] = Report {
            held: before.held.after(tick, released),
            released,
            to_redial,
            disconnected: if is_after { before.disconnected } else { to_redial },
            shown: before.shown,
            ..Report::of(before.role, tick, drained_at)
        };
        if let Role::Population(nth) = before.role {
            self.take_of(nth, tick, (before.open, before.fresh));
            // The tick in which the load ended does not count as drain.
            if is_after {
                self.record.populations[usize::from(nth)].dropped_in_drain += tick.counts.dropped;
            }
        }
        self.file(worker, tick, &before);
        // The worker's peak within the tick, plus the last reported connections of the others.
        self.record.peak = self.record.peak.max(self.open() + tick.most_open.saturating_sub(tick.open));
        if let Some(probe) = &tick.probe {
            self.record.curve.add(self.open(), probe);
            if !is_after {
                self.record.probe_at_load.take(probe);
            }
        }
    }

    /// Files a tick under the current line, a later one, or one that has already been emitted.
    fn file(&mut self, worker: u32, tick: &Tick, before: &Report) {
        let (second, line) = (second_of(tick), self.line_ends.0 / LINE.0);
        if !self.has_seconds || second == line || second > line + AHEAD {
            return self.add(before.role, tick, before.open);
        }
        if second > line {
            return self.ahead.push((before.role, tick.clone(), before.open));
        }
        let mut own = Tick::none();
        match before.role {
            Role::Population(_) => add_to(&mut own, tick, before.open, self.period),
            Role::Probe(_) => own.extend(tick),
        }
        self.add_late(worker, before.second, tick, own);
    }

    /// Adds a tick to the current line.
    fn add(&mut self, role: Role, tick: &Tick, before: u64) {
        match role {
            Role::Population(nth) => {
                add_to(&mut self.record.populations[usize::from(nth)].line, tick, before, self.period);
            }
            Role::Probe(_) => self.probe.extend(tick),
        }
    }

    /// Moves the ticks up to `second` from `ahead` to the current line.
    pub(super) fn add_ahead(&mut self, second: u64) {
        let is_due = |(_, tick, _): &(Role, Tick, u64)| second_of(tick) <= second;
        let (due, later): (Vec<_>, Vec<_>) = std::mem::take(&mut self.ahead).into_iter().partition(is_due);
        self.ahead = later;
        due.iter().for_each(|(role, tick, before)| self.add(*role, tick, *before));
    }

    /// Counts `own`, the content of a late tick, in the totals but not in the current line. `last`: the second of the worker's previous
    /// tick.
    fn add_late(&mut self, worker: u32, last: u64, tick: &Tick, mut own: Tick) {
        let second = second_of(tick);
        let report = &mut self.reports[worker as usize];
        let role = report.role;
        // No second contribution to the state: a worker may end two ticks in the second in which its load ends, and the emitted line may
        // already contain it.
        if last == second || second <= report.shown {
            (own.open, own.resolved, own.waiting, own.owed, own.unsettled) = Default::default();
        }
        if last == second {
            own.agents.iter_mut().for_each(|agents| agents.open.0.clear());
        }
        report.second = second;
        // The receipts were already matched in the population's record.
        own.pushes.receipts.clear();
        own.breakdown = Default::default();
        own.most_open = 0;
        self.record.totals.extend(&own);
        let mut late = own.clone();
        late.until = Nanos(second.saturating_mul(LINE.0));
        if let Role::Population(nth) = role {
            self.record.populations[usize::from(nth)].totals.extend(&own);
            // With a single population its line equals the total.
            if self.record.populations.len() > 1 {
                late.populations.resize_with(usize::from(nth), Tick::none);
                late.populations.push(own);
            }
        }
        self.late.entry(second).or_insert_with(Tick::none).merge(&late);
    }

    /// Returns the late ticks since the last call, one per second.
    pub fn take_late(&mut self) -> Vec<Tick> {
        std::mem::take(&mut self.late).into_values().collect()
    }

    /// Adds a tick to its population's record. `before`: the worker's open connections before it, and how many of them were opened
    /// recently.
    fn take_of(&mut self, nth: u16, tick: &Tick, before: (u64, u64)) {
        let complete = self.of(nth).map(|report| report.until).min().unwrap_or_default();
        let hold_from = self.schedule.progress(nth).hold_from;
        self.record.populations[usize::from(nth)].take(tick, before, complete, hold_from);
    }

    /// Returns the line of the past second once all workers have reported it, or once the time for their reports is up.
    pub fn poll_line(&mut self, now: Nanos) -> Option<Tick> {
        // Workers end their ticks simultaneously, but the ticks take a moment to arrive.
        let is_complete = self.reports.iter().all(|report| report.is_lost || report.until >= self.line_ends);
        if !is_complete && now.since(self.line_ends) < self.latency || now < self.line_ends {
            return None;
        }
        let ends = self.line_ends;
        // Every second gets a line, unless this process was suspended.
        let next =
            if self.has_seconds && now < ends + Nanos(AHEAD * LINE.0) { ends + LINE } else { end_after(now) };
        if next > ends + LINE {
            self.add_ahead(u64::MAX);
        }
        let line = self.end_line(ends);
        self.line_ends = next;
        self.add_ahead(next.0 / LINE.0);
        Some(line)
    }

    /// The last second whose line has been emitted.
    pub fn shown(&self) -> u64 {
        self.line_ends.0 / LINE.0 - 1
    }

    /// Ends the run; returns the last line and the record.
    pub fn finish(mut self) -> (Tick, Record) {
        (self.end(), self.record)
    }

    /// Ends the run; returns the last line. Afterwards the record is complete.
    pub(crate) fn end(&mut self) -> Tick {
        self.add_ahead(u64::MAX);
        self.count_never_due();
        let line = self.end_line(Nanos::ZERO);
        self.count_lost();
        for (measured, population) in self.record.populations.iter_mut().zip(&self.plan.populations) {
            measured.count_arrivals(population);
        }
        self.close_books();
        self.record.take_back_accepted();
        line
    }

    /// With a fixed number of requests, counts those that never became due. Applies to runs that ended before their time without an
    /// interruption.
    fn count_never_due(&mut self) {
        let is_early = self.draining.is_some_and(|since| since < self.schedule.ends_at());
        let is_through = is_early && self.record.interrupted.is_none();
        if self.schedule.has_end() && is_through {
            for (measured, population) in self.record.populations.iter_mut().zip(&self.plan.populations) {
                population.requests.into_iter().for_each(|number| measured.count_never_due(number));
            }
        }
    }

    /// Balances the accounts of each population. Not for a step of a search, whose requests continue in the next one.
    fn close_books(&mut self) {
        if !self.schedule.has_end() {
            return;
        }
        for (nth, _) in (0..).zip(&self.plan.populations) {
            let own = |report: &Report| report.role == Role::Population(nth) && report.is_lost;
            let lost = self.reports.iter().any(own);
            let measured = &mut self.record.populations[usize::from(nth)];
            measured.close_books(lost);
            let imbalance = measured.totals.imbalance;
            self.record.totals.imbalance.due = self.record.totals.imbalance.due.max(imbalance.due);
        }
    }

    /// Ends the current line, at `ends` or at the latest report, whichever is later.
    fn end_line(&mut self, ends: Nanos) -> Tick {
        let populations = self.record.populations.iter().map(|measured| measured.line.until);
        let until = populations.fold(self.probe.until, Nanos::max).max(ends).max(self.line_begins);
        let from = std::mem::replace(&mut self.line_begins, until);
        self.note_shown(until.0 / LINE.0);
        let mut line = std::mem::replace(&mut self.probe, Tick::starting(until));
        let mut populations = Vec::with_capacity(self.record.populations.len());
        for nth in self.populations() {
            let mut own = self.record.populations[usize::from(nth)].end_line(until);
            // The tick of a suspended worker began long before, but its counts belong to this line.
            own.from = from;
            self.set_state(&mut own, |role| role == Role::Population(nth));
            own.wanted = self.schedule.wanted(nth);
            self.share_experience(nth, &own);
            line.merge(&own);
            populations.push(own);
        }
        self.set_state(&mut line, |role| matches!(role, Role::Population(_)));
        let phase = self.of_load().map(|report| report.phase).min().unwrap_or_default();
        line.phase = match self.draining {
            None if self.schedule.is_paused() => Phase::Pause,
            // The load of the remaining workers has ended, but the run's has not: others take over.
            None if self.hands_over => phase.min(Phase::Hold),
            _ => phase,
        };
        (line.from, line.until) = (from, until);
        line.marks = std::mem::take(&mut self.marks);
        self.record.totals.extend(&line);
        // With a single population its line equals the total.
        if populations.len() > 1 {
            line.populations = populations;
        }
        line
    }

    /// Notes for each worker, unless it is lost or has just come back, that this second's line contains its connections.
    fn note_shown(&mut self, second: u64) {
        let known = |report: &&mut Report| !report.is_lost && report.before.is_none();
        self.reports.iter_mut().filter(known).for_each(|report| report.shown = second);
    }

    /// Limits the dial rate of all shards of a population by what they experienced together in this second of the ramp: a single shard
    /// sees too little of the congestion, and all shards together would dial too fast. A population with a single thread learns faster
    /// alone.
    fn share_experience(&mut self, nth: u16, line: &Tick) {
        if !self.schedule.is_moving() || self.draining.is_some() {
            return;
        }
        let over = line.until.since(line.from);
        let measured = &mut self.record.populations[usize::from(nth)];
        if line.congestion.paced > 0 {
            measured.accepted.0 += line.counts.opened;
            measured.accepted.1 = measured.accepted.1 + over;
        }
        if measured.threads == 1 {
            return;
        }
        let most = self.dial_rates[usize::from(nth)].learn(&line.congestion, over, line.until);
        self.orders.extend(most.map(|most| Order::Population(nth, Control::DialAtMost(most))));
    }

    /// Sets the state of a line to the sum of the reports of the selected workers.
    fn set_state(&self, tick: &mut Tick, is_theirs: impl Fn(Role) -> bool) {
        (tick.open, tick.resolved, tick.waiting, tick.owed) = Default::default();
        (tick.unsettled, tick.ramped_at) = Default::default();
        // A single worker's peak is already in the record's peak, and says nothing about the sum.
        tick.most_open = 0;
        for report in self.reports.iter().filter(|report| is_theirs(report.role)) {
            tick.open += report.open;
            tick.resolved += report.resolved;
            tick.waiting += report.waiting;
            tick.owed += report.owed;
            tick.unsettled += report.unsettled;
            tick.ramped_at = tick.ramped_at.max(report.ramped_at);
        }
    }
}
