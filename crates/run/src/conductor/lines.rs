//! What workers report, second by second: ticks come in, lines go out, and the record holds all of it.

use std::borrow::Cow;

use engine::Control;
use plan::{ProbeKind, Role};
use samples::{Phase, Tick};
use units::Nanos;

use super::{Conductor, Order, Report, to_redial};

/// No more shards than these need to share what they meet.
const FEW_SHARDS: u32 = 2;
/// A line sums up this time.
const LINE: Nanos = Nanos::from_secs(1);

/// Lines end at whole seconds.
pub(super) fn end_after(now: Nanos) -> Nanos {
    Nanos((now.0 / LINE.0 + 1) * LINE.0)
}

/// The second that a worker's tick is of: workers end their ticks a little after it.
fn second_of(until: Nanos) -> u64 {
    (until.0 + LINE.0 / 2) / LINE.0
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
        if before.is_lost {
            return self.add_late(worker, before.role, tick);
        }
        let is_after = before.drained_at != Nanos::NEVER;
        let ended = tick.phase == Phase::Drain && !is_after;
        let drained_at = if ended { tick.until } else { before.drained_at };
        let released = before.released + if is_after { 0 } else { tick.counts.ended_after };
        self.reports[worker as usize] = Report {
            held: before.held.after(tick, released),
            released,
            to_redial: before.to_redial + to_redial(tick),
            ..Report::of(before.role, tick, drained_at)
        };
        self.record.losses.take(tick);
        match before.role {
            Role::Population(nth) => {
                self.take_of(nth, tick, before.open);
                // The tick in which its load ended is not among them.
                if is_after {
                    self.record.populations[usize::from(nth)].dropped_in_drain += tick.counts.dropped;
                }
            }
            Role::Probe(_) => self.probe.extend(tick),
        }
        // What it had at once, beside what the others had when they reported last.
        self.record.peak = self.record.peak.max(self.open() + tick.most_open.saturating_sub(tick.open));
        if let Some(probe) = &tick.probe {
            self.record.curve.add(self.open(), probe);
        }
    }

    /// What happened before the present line, and comes only now: it counts, and is no part of what happens now.
    fn add_late(&mut self, worker: u32, role: Role, tick: &Tick) {
        self.record.losses.take(tick);
        let second = second_of(tick.until);
        let mut own = tick.clone();
        let report = &mut self.reports[worker as usize];
        (report.held, report.left) = (report.held.after_late(tick), tick.open);
        report.to_redial += to_redial(tick);
        let last = report.late.replace(second).unwrap_or(second_of(report.until));
        // A worker ends a further tick in a second in which its load ends: its connections are among those of that second already.
        if last == second {
            (own.open, own.resolved, own.waiting, own.owed) = Default::default();
            own.agents.iter_mut().for_each(|agents| agents.open.0.clear());
        }
        // Whoever else received what it was is known already.
        own.pushes.receipts.clear();
        own.most_open = 0;
        self.record.totals.extend(&own);
        let mut late = own.clone();
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

    /// What a population's worker has reported, which had `before` connections open. Its histograms are added up here, once;
    /// what follows adds up lines.
    fn take_of(&mut self, nth: u16, tick: &Tick, before: u64) {
        let complete = self.of(nth).map(|report| report.until).min().unwrap_or_default();
        let hold_from = self.schedule.progress(nth).hold_from;
        let measured = &mut self.record.populations[usize::from(nth)];
        measured.take(tick, before, complete, hold_from);
        let period = tick.until.since(tick.from);
        // The rate of a short tick is noise.
        if tick.phase == Phase::Hold && period >= Nanos(self.period.0 / 2) {
            measured.line.shard_rates.record(tick.counts.answered as f64 / period.secs_f64());
        }
    }

    /// The line of the second that is over, once all workers have reported it, or as soon as they should have.
    pub fn poll_line(&mut self, now: Nanos) -> Option<Tick> {
        // Workers end their ticks together, and those ticks need a moment to arrive.
        let is_complete = self.reports.iter().all(|report| report.is_lost || report.until >= self.line_ends);
        if !is_complete && now.since(self.line_ends) < self.latency || now < self.line_ends {
            return None;
        }
        (self.line_begins, self.line_ends) = (self.line_ends, end_after(now));
        Some(self.end_line())
    }

    pub(super) fn end_line(&mut self) -> Tick {
        let until = self.reports.iter().map(|report| report.until).max().unwrap_or_default();
        let mut line = std::mem::replace(&mut self.probe, Tick::starting(until));
        let mut populations = Vec::with_capacity(self.record.populations.len());
        for nth in 0..self.record.populations.len() as u16 {
            let mut own = self.record.populations[usize::from(nth)].end_line(until);
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
        line.until = until;
        line.marks = std::mem::take(&mut self.marks);
        self.record.totals.extend(&line);
        // With only one population its line is the total.
        if populations.len() > 1 {
            line.populations = populations;
        }
        line
    }

    /// What the shards of a population met in a second with their first dials binds them all: each alone sees too little of
    /// it, and all together would be too fast. Two see enough by themselves, and sooner.
    fn share_experience(&mut self, nth: u16, line: &Tick) {
        let are_few = self.record.populations[usize::from(nth)].threads <= FEW_SHARDS;
        if are_few || !self.schedule.is_moving() || self.draining.is_some() {
            return;
        }
        let over = line.until.since(line.from);
        let most = self.dial_rates[usize::from(nth)].learn(&line.congestion, over, line.until);
        self.orders.extend(most.map(|most| Order::Population(nth, Control::DialAtMost(most))));
    }

    /// The state of these workers.
    fn set_state(&self, tick: &mut Tick, is_theirs: impl Fn(Role) -> bool) {
        (tick.open, tick.resolved, tick.waiting, tick.owed, tick.ramped_at) = Default::default();
        // Of one of them, it is in the peak, and says nothing of all.
        tick.most_open = 0;
        for report in self.reports.iter().filter(|report| is_theirs(report.role)) {
            tick.open += report.open;
            tick.resolved += report.resolved;
            tick.waiting += report.waiting;
            tick.owed += report.owed;
            tick.ramped_at = tick.ramped_at.max(report.ramped_at);
        }
    }
}
