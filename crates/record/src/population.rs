//! The record of one population: its totals, and what the run needs to know to compute its figures when the load ends.

use std::collections::BTreeSet;

use plan::{Plan, Population};
use samples::{Counts, Latency, Phase, Tick};
use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::{backlog::Backlog, broadcasts::Broadcasts, silences::Silences};

/// How the load of a population ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// When its last initial dial was decided.
    pub ramped_at: Nanos,
    /// When the load ended in its shards.
    pub own: Nanos,
    /// Time at full load until the load was last changed.
    pub holding: Nanos,
    /// When full load began after that change.
    pub hold_from: Nanos,
    /// Total duration of its ramps.
    pub ramping: Nanos,
}

/// The record of one population.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PopulationRecord {
    /// Ticks up to the last line.
    pub totals: Tick,
    /// Ticks since the last line.
    pub line: Tick,
    /// Times without responses.
    pub silences: Silences,
    /// Waiting arrivals, or waiting requests at a rate.
    pub backlog: Backlog,
    /// Not stored: without use once the load has ended.
    #[serde(skip)]
    pub broadcasts: Broadcasts,
    /// Open connections that were opened too recently to count as receivers of a broadcast.
    pub fresh: u64,
    /// Maximum of the planned number of connections.
    pub wanted: u64,
    /// Connections open now.
    pub open: u64,
    /// Maximum of open connections.
    pub peak: u64,
    /// Connections open at the end of the last stage with the maximum, or at the end of a run that ended during it.
    pub held: u64,
    /// Connections not counted as held because only the kernel had accepted them.
    pub unaccepted: u64,
    /// Connections not counted as held because they existed only at throng's end.
    pub missing: u64,
    /// Whether `held` has been recorded.
    pub is_kept: bool,
    /// Connections closed by announcement and not open again when `held` was recorded.
    pub disconnected: u64,
    /// In a search: such connections left by earlier steps.
    pub to_redial_before: i64,
    /// Connections lost after the end of the load.
    pub dropped_in_drain: u64,
    /// Connections of lost workers, according to the workers' last reports.
    pub lost: u64,
    /// Due requests of lost workers whose outcome was not reported.
    pub lost_requests: u64,
    /// Connections that the adaptive ramp opened in whole seconds in which SYNs were lost, and the duration of these seconds.
    pub accepted: (u64, Nanos),
    /// Duration of its ramps.
    pub ramp: Nanos,
    /// Duration of full load.
    pub at_load: Nanos,
    /// When it started to dial; `None` before.
    pub began: Option<Nanos>,
    /// End of its last tick with any activity or open connection.
    pub last_seen: Nanos,
    /// Time from `began` to `last_seen`, at most to the end of the load.
    pub elapsed: Nanos,
    /// Integral of outstanding requests over time at full load, in request nanoseconds, summed over shards.
    pub waiting_ns: u128,
    /// Duration of full load, summed over shards.
    pub loaded_ns: u128,
    /// Number of workers; a worker on an agent has several threads.
    pub shards: u32,
    /// Threads of these workers.
    pub threads: u32,
}

impl PopulationRecord {
    /// The record of a population that has not started; `shards`: number of workers; `period`: length of their ticks.
    pub fn of(plan: &Plan, nth: u16, shards: u32, period: Nanos) -> PopulationRecord {
        let population = &plan.populations[usize::from(nth)];
        // Without a total: the number that will have arrived.
        let wanted = plan.connections(nth);
        let broadcasts = Broadcasts::of(population);
        let silences = Silences::new(period);
        let backlog = Backlog::of(population.load, period);
        PopulationRecord { wanted, shards, silences, backlog, broadcasts, ..PopulationRecord::default() }
    }

    /// Takes a tick of one shard, whose previous tick had `before` connections open and `fresh` of them opened recently. All shards have
    /// reported up to `complete`, and full load began at `hold_from`. The caller adds the counts to `line`.
    pub fn take(&mut self, tick: &Tick, (before, fresh): (u64, u64), complete: Nanos, hold_from: Nanos) {
        self.silences.take(tick, complete);
        self.backlog.take(tick);
        self.open = self.open + tick.open - before;
        self.fresh = self.fresh + tick.pushes.fresh - fresh;
        self.broadcasts.take(tick, self.open.saturating_sub(self.fresh));
        self.peak = self.peak.max(self.open + tick.most_open.saturating_sub(tick.open));
        if !tick.is_idle() {
            self.last_seen = self.last_seen.max(tick.until);
        }
        if tick.phase == Phase::Hold {
            let at_load = tick.until.since(tick.from.max(hold_from));
            self.waiting_ns += u128::from(tick.waiting) * u128::from(at_load.0);
            self.loaded_ns += u128::from(at_load.0);
        }
    }

    /// Ends the current line and returns it; the next one begins at `until`.
    pub fn end_line(&mut self, until: Nanos) -> Tick {
        self.broadcasts.settle(until, &mut self.line);
        let mut line = std::mem::replace(&mut self.line, Tick::starting(until));
        // The breakdown is kept in the run's record, and lines do not show it.
        line.breakdown = Default::default();
        self.totals.extend(&line);
        line
    }

    /// Settles the broadcasts when the load has ended in all shards.
    pub fn end_broadcasts(&mut self, ended: Nanos) {
        self.broadcasts.end(ended, &mut self.line);
    }

    /// Sum of a count over totals and the current line.
    pub fn sum(&self, of: impl Fn(&Counts) -> u64) -> u64 {
        of(&self.totals.counts) + of(&self.line.counts)
    }

    /// Connections closed by announcement, or after their calls, and not open again.
    pub fn to_redial(&self) -> u64 {
        let closed = self.to_redial_before + self.sum(|counts| counts.closed + counts.left) as i64;
        (closed - self.sum(|counts| counts.redialled) as i64).max(0).unsigned_abs()
    }

    /// Records the connections held, and those waiting to be redialled.
    pub fn keep_held(&mut self, held: u64, disconnected: u64) {
        (self.held, self.disconnected) = (held, disconnected);
        self.is_kept = true;
    }

    /// Ends the population's load and computes its durations.
    pub fn end(&mut self, population: &Population, ended: Ended) {
        let Ended { ramped_at, own, holding, hold_from, ramping } = ended;
        self.at_load = holding + own.since(hold_from);
        self.ramp = match population.comes_and_goes() {
            true => holding + ramped_at.min(own).since(hold_from),
            false => ramping,
        };
        self.elapsed = self.last_seen.min(own).since(self.began.unwrap_or(Nanos::NEVER));
        self.count_arrivals(population);
    }

    /// For arrivals without a total: the arrivals that were due count as wanted. Dials may still be decided after the end of the load.
    pub fn count_arrivals(&mut self, population: &Population) {
        if population.load.wanted().is_none() {
            self.wanted = self.arrivals_due();
        }
    }

    /// For a planned number of requests: those that never became due count as due and missed.
    pub fn count_never_due(&mut self, number: u64) {
        let never_due = number.saturating_sub(self.sum(|counts| counts.due()));
        let ticks = [&self.totals, &self.line];
        let is_seen = |times: [&Latency; 2]| times.iter().any(|times| !times.is_empty());
        let has_first_bytes = ticks.iter().any(|tick| is_seen([&tick.first_byte, &tick.ramp_first_byte]));
        let all = ticks.iter().flat_map(|tick| [&tick.steps, &tick.ramp_steps]);
        let seen = all.flat_map(|steps| steps.iter().enumerate().filter(|(_, times)| !times.is_empty()));
        let steps: BTreeSet<usize> = seen.map(|(step, _)| step).collect();
        self.line.never_due(never_due, has_first_bytes, &Vec::from_iter(steps));
    }

    /// Closes the books at the end of the run. Due requests without an account are lost requests if a worker was `lost`, and otherwise an
    /// imbalance.
    pub fn close_books(&mut self, lost: bool) {
        let Tick { counts, imbalance, .. } = &mut self.totals;
        let unknown = counts.due.abs_diff(counts.settled());
        *if lost { &mut self.lost_requests } else { &mut imbalance.due } += unknown;
    }

    /// Arrivals that succeeded, failed, or should have been dialled by throng and were not.
    pub fn arrivals_due(&self) -> u64 {
        self.sum(|counts| counts.opened + counts.failed + counts.given_up + counts.undialled)
    }

    /// Opened connections that had no response.
    pub fn unserved(&self) -> u64 {
        self.sum(|counts| counts.opened).saturating_sub(self.totals.served + self.line.served)
    }

    /// Whether all requests were answered, and every connection had been served if connections were closed at the end to make room.
    pub(crate) fn is_all_served(&self) -> bool {
        let (counts, served) = (&self.totals.counts, self.totals.served);
        let is_own = counts.ended_after == 0 || served >= counts.opened;
        is_own && counts.sent > 0 && counts.answered == counts.sent()
    }

    /// Mean number of outstanding requests at full load.
    pub fn under_way(&self) -> f64 {
        let each_ns = self.loaded_ns as f64 / f64::from(self.shards.max(1));
        if self.loaded_ns == 0 { 0.0 } else { self.waiting_ns as f64 / each_ns }
    }
}
