//! What workers report, second by second: ticks come in, lines go out, and the record holds all of it.

use std::borrow::Cow;

use engine::Control;
use plan::{ProbeKind, Role};
use samples::{Phase, Tick};
use units::Nanos;

use super::{
    Conductor, Order,
    report::{Report, to_redial},
};
use record::Record;

/// A line sums up this time.
pub(super) const LINE: Nanos = Nanos::from_secs(1);
/// What is ahead of a line by more was read late, after a pause of this process: it is of the present line then.
const AHEAD: u64 = 2;

/// Lines end at whole seconds.
pub(super) fn end_after(now: Nanos) -> Nanos {
    Nanos((now.0 / LINE.0 + 1) * LINE.0)
}

/// The second that a worker's tick is of, from 1: that of its middle, since workers end their ticks a little after the second, or
/// where their load ends. Of a worker that stood still the last second counts.
pub fn second_of(tick: &Tick) -> u64 {
    let until = tick.until.0;
    let from = tick.from.0.clamp(until.saturating_sub(LINE.0), until);
    (from + (until - from) / 2) / LINE.0 + 1
}

/// Adds to a line, or to what comes late, a tick of a population's worker, which had `before` connections open; `period`: the usual
/// length of a tick.
fn add_to(line: &mut Tick, tick: &Tick, before: u64, period: Nanos) {
    line.extend(tick);
    // Who received what is put together in the population's record, and goes no further.
    line.pushes.receipts.clear();
    let took = tick.until.since(tick.from);
    // Of an agent that stood still, only the last second is of the line.
    let in_line = if period >= LINE { took.min(period) } else { took };
    // A worker ends a tick where its ramp ends: between two ends their mean is good enough.
    line.open_ns += u128::from(before + tick.open) * u128::from(in_line.0) / 2;
    // The rate of a short tick is noise.
    if tick.phase == Phase::Hold && took >= Nanos(period.0 / 2) {
        line.shard_rates.record(tick.counts.answered as f64 / took.secs_f64());
    }
}

/// What a worker's tick adds to the run: of the probe's no connection and no request is part of the load.
pub fn filed(role: Role, tick: &Tick) -> Cow<'_, Tick> {
    match role {
        Role::Population(_) => Cow::Borrowed(tick),
        Role::Probe(ProbeKind::Fresh) => Cow::Owned(tick.of_probe(|probe| &mut probe.fresh)),
        Role::Probe(ProbeKind::Kept) => Cow::Owned(tick.of_probe(|probe| &mut probe.kept)),
    }
}

impl Conductor<'_> {
    /// A tick of a worker came.
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
            // The tick in which its load ended is not among them.
            if is_after {
                self.record.populations[usize::from(nth)].dropped_in_drain += tick.counts.dropped;
            }
        }
        self.file(worker, tick, &before);
        // What it had at once, beside what the others had when they reported last.
        self.record.peak = self.record.peak.max(self.open() + tick.most_open.saturating_sub(tick.open));
        if let Some(probe) = &tick.probe {
            self.record.curve.add(self.open(), probe);
            if !is_after {
                self.record.probe_at_load.take(probe);
            }
        }
    }

    /// What a worker counted is of the present line, of one that follows, or of one that has ended.
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

    /// Adds a tick to the present line.
    fn add(&mut self, role: Role, tick: &Tick, before: u64) {
        match role {
            Role::Population(nth) => {
                add_to(&mut self.record.populations[usize::from(nth)].line, tick, before, self.period);
            }
            Role::Probe(_) => self.probe.extend(tick),
        }
    }

    /// What came ahead of the present line, up to this second, is of that.
    pub(super) fn add_ahead(&mut self, second: u64) {
        let is_due = |(_, tick, _): &(Role, Tick, u64)| second_of(tick) <= second;
        let (due, later): (Vec<_>, Vec<_>) = std::mem::take(&mut self.ahead).into_iter().partition(is_due);
        self.ahead = later;
        due.iter().for_each(|(role, tick, before)| self.add(*role, tick, *before));
    }

    /// What happened before the present line, and comes only now: `own`, of this tick of a worker whose tick before was of the second
    /// `last`. It counts, and is no part of what happens now.
    fn add_late(&mut self, worker: u32, last: u64, tick: &Tick, mut own: Tick) {
        let second = second_of(tick);
        let report = &mut self.reports[worker as usize];
        let role = report.role;
        // A worker ends a further tick in a second in which its load ends; and before it is known to be lost, it is shown as it was.
        if last == second || second <= report.shown {
            (own.open, own.resolved, own.waiting, own.owed, own.unsettled) = Default::default();
        }
        if last == second {
            own.agents.iter_mut().for_each(|agents| agents.open.0.clear());
        }
        report.second = second;
        // Whoever else received what it was is known already.
        own.pushes.receipts.clear();
        own.breakdown = Default::default();
        own.most_open = 0;
        self.record.totals.extend(&own);
        let mut late = own.clone();
        late.until = Nanos(second.saturating_mul(LINE.0));
        if let Role::Population(nth) = role {
            self.record.populations[usize::from(nth)].totals.extend(&own);
            // With only one population its line is the total.
            if self.record.populations.len() > 1 {
                late.populations.resize_with(usize::from(nth), Tick::none);
                late.populations.push(own);
            }
        }
        self.late.entry(second).or_insert_with(Tick::none).merge(&late);
    }

    /// What came too late for its line since the last call, a tick for each second.
    pub fn take_late(&mut self) -> Vec<Tick> {
        std::mem::take(&mut self.late).into_values().collect()
    }

    /// What a population's worker has reported, which had `before` connections open, and how many of them were opened lately, goes into its record.
    fn take_of(&mut self, nth: u16, tick: &Tick, before: (u64, u64)) {
        let complete = self.of(nth).map(|report| report.until).min().unwrap_or_default();
        let hold_from = self.schedule.progress(nth).hold_from;
        self.record.populations[usize::from(nth)].take(tick, before, complete, hold_from);
    }

    /// The line of the second that is over, once all workers have reported it, or as soon as they should have.
    pub fn poll_line(&mut self, now: Nanos) -> Option<Tick> {
        // Workers end their ticks together, and those ticks need a moment to arrive.
        let is_complete = self.reports.iter().all(|report| report.is_lost || report.until >= self.line_ends);
        if !is_complete && now.since(self.line_ends) < self.latency || now < self.line_ends {
            return None;
        }
        let ends = self.line_ends;
        // Each second has its line, unless this process itself stood still.
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

    /// The last second that has had its line.
    pub fn shown(&self) -> u64 {
        self.line_ends.0 / LINE.0 - 1
    }

    /// The last line, and the run as it was measured.
    pub fn finish(mut self) -> (Tick, Record) {
        (self.end(), self.record)
    }

    /// The last line; what was measured is complete.
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

    /// Of a number of requests that was to be sent, in a run whose time was not over, the last line has those that never became due.
    fn count_never_due(&mut self) {
        let is_early = self.draining.is_some_and(|since| since < self.schedule.ends_at());
        let is_through = is_early && self.record.interrupted.is_none();
        if self.schedule.has_end() && is_through {
            for (measured, population) in self.record.populations.iter_mut().zip(&self.plan.populations) {
                population.requests.into_iter().for_each(|number| measured.count_never_due(number));
            }
        }
    }

    /// Not of a step of a search, whose requests go on in the next one.
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

    /// The line ends with what it has, and no sooner than `ends`.
    fn end_line(&mut self, ends: Nanos) -> Tick {
        let populations = self.record.populations.iter().map(|measured| measured.line.until);
        let until = populations.fold(self.probe.until, Nanos::max).max(ends).max(self.line_begins);
        let from = std::mem::replace(&mut self.line_begins, until);
        self.note_shown(until.0 / LINE.0);
        let mut line = std::mem::replace(&mut self.probe, Tick::starting(until));
        let mut populations = Vec::with_capacity(self.record.populations.len());
        for nth in 0..self.record.populations.len() as u16 {
            let mut own = self.record.populations[usize::from(nth)].end_line(until);
            // A tick of a worker that stood still began long before: what it counted is of this line.
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
            // The load of those that are left has ended, and that of the run has not.
            None if self.hands_over => phase.min(Phase::Hold),
            _ => phase,
        };
        (line.from, line.until) = (from, until);
        line.marks = std::mem::take(&mut self.marks);
        self.record.totals.extend(&line);
        // With only one population its line is the total.
        if populations.len() > 1 {
            line.populations = populations;
        }
        line
    }

    /// The line of this second has the connections of all that are not lost, as far as they are known.
    fn note_shown(&mut self, second: u64) {
        let known = |report: &&mut Report| !report.is_lost && report.before.is_none();
        self.reports.iter_mut().filter(known).for_each(|report| report.shown = second);
    }

    /// What the shards of a population met in a second with their first dials binds them all: each alone sees too little of
    /// it, and all together would be too fast. One alone sees enough, and sooner.
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

    /// The state of these workers.
    fn set_state(&self, tick: &mut Tick, is_theirs: impl Fn(Role) -> bool) {
        (tick.open, tick.resolved, tick.waiting, tick.owed) = Default::default();
        (tick.unsettled, tick.ramped_at) = Default::default();
        // Of one of them, it is in the peak, and says nothing of all.
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
