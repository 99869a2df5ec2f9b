//! The record of one population.

use std::collections::BTreeSet;

use plan::{Plan, Population};
use samples::{Counts, Latency, Phase, Tick};
use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::{backlog::Backlog, broadcasts::Broadcasts, silences::Silences};

/// How the load of a population ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// When its last first dial was decided.
    pub ramped_at: Nanos,
    /// When it ended in its shards.
    pub own: Nanos,
    /// The time at full load until it was last moved, and when its full load began after that.
    pub holding: Nanos,
    /// As above.
    pub hold_from: Nanos,
    /// How long its ramps took.
    pub ramping: Nanos,
}

/// The record of one population.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PopulationRecord {
    /// Up to the last line.
    pub totals: Tick,
    /// Since then.
    pub line: Tick,
    /// Times without responses.
    pub silences: Silences,
    /// Of those that come and go, and of requests by a rate.
    pub backlog: Backlog,
    /// Of no use once the load has ended.
    #[serde(skip)]
    pub broadcasts: Broadcasts,
    /// Of those that are open, the ones that were opened so lately that no broadcast counts for them.
    pub fresh: u64,
    /// The maximum of planned connections.
    pub wanted: u64,
    /// Connections open now, and the most that ever were.
    pub open: u64,
    /// As above: the most.
    pub peak: u64,
    /// Open at the end of the last stage with that maximum, or at the end of a run in its middle.
    pub held: u64,
    /// Connections not counted there, because only the kernel had accepted them.
    pub unaccepted: u64,
    /// The same, because they existed at throng's end only.
    pub missing: u64,
    /// Whether those were counted.
    pub is_kept: bool,
    /// Closed with an announcement and not open again, at that time.
    pub disconnected: u64,
    /// Of a step of a search, those that the steps before have left so.
    pub to_redial_before: i64,
    /// Lost after the end of the load.
    pub dropped_in_drain: u64,
    /// Of workers that were lost, those that they had by their last reports.
    pub lost: u64,
    /// Requests due on such workers, of which no outcome was reported.
    pub lost_requests: u64,
    /// What its adaptive ramp opened in whole seconds in which SYNs were lost, and their time.
    pub accepted: (u64, Nanos),
    /// How long its ramps took, and how long it was at full load.
    pub ramp: Nanos,
    /// As above: at full load.
    pub at_load: Nanos,
    /// When it started to dial; none before.
    pub began: Option<Nanos>,
    /// The end of its last tick in which it did anything or held a connection.
    pub last_seen: Nanos,
    /// The time between the two, or to the end of full load.
    pub elapsed: Nanos,
    /// Time that requests were under way at full load, and that full load lasted, of all shards together.
    pub waiting_ns: u128,
    /// As above: the time that full load lasted.
    pub loaded_ns: u128,
    /// Workers: those on agents are more than one thread each.
    pub shards: u32,
    /// Threads of those workers.
    pub threads: u32,
}

impl PopulationRecord {
    /// For a population that has not started, in this many shards with ticks of this length.
    pub fn of(plan: &Plan, nth: u16, shards: u32, period: Nanos) -> PopulationRecord {
        let population = &plan.populations[usize::from(nth)];
        // Without a total: those that will have come.
        let wanted = plan.connections(nth);
        let broadcasts = Broadcasts::of(population);
        let silences = Silences::new(period);
        let backlog = Backlog::of(population.load, period);
        PopulationRecord { wanted, shards, silences, backlog, broadcasts, ..PopulationRecord::default() }
    }

    /// Takes a tick of one of its shards, which had `before` connections open, of which `fresh` were opened lately; all have reported until
    /// `complete`, and full load began at `hold_from`. What it counts is not in the line yet.
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

    /// Ends a line; the next one begins then.
    pub fn end_line(&mut self, until: Nanos) -> Tick {
        self.broadcasts.settle(until, &mut self.line);
        let mut line = std::mem::replace(&mut self.line, Tick::starting(until));
        // The run's record has it: nothing of it is shown.
        line.breakdown = Default::default();
        self.totals.extend(&line);
        line
    }

    /// The load has ended in all of its shards: what is known of broadcasts by then.
    pub fn end_broadcasts(&mut self, ended: Nanos) {
        self.broadcasts.end(ended, &mut self.line);
    }

    /// Of all that came so far.
    pub fn sum(&self, of: impl Fn(&Counts) -> u64) -> u64 {
        of(&self.totals.counts) + of(&self.line.counts)
    }

    /// Closed with an announcement, or after their calls, and not open again so far.
    pub fn to_redial(&self) -> u64 {
        let closed = self.to_redial_before + self.sum(|counts| counts.closed + counts.left) as i64;
        (closed - self.sum(|counts| counts.redialled) as i64).max(0).unsigned_abs()
    }

    /// Records how many are held and how many are to be dialled again, at a time that counts.
    pub fn keep_held(&mut self, held: u64, disconnected: u64) {
        (self.held, self.disconnected) = (held, disconnected);
        self.is_kept = true;
    }

    /// Its load has ended.
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

    /// Of connections that arrive without a number, those that were due were wanted. Dials may be decided after the end of the load.
    pub fn count_arrivals(&mut self, population: &Population) {
        if population.load.wanted().is_none() {
            self.wanted = self.arrivals_due();
        }
    }

    /// Of a number that was to be sent, what never became due is due now, and missed.
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

    /// The run is over: each request that was due has an account. What was due on workers that were `lost`, and has none, is lost.
    pub fn close_books(&mut self, lost: bool) {
        let Tick { counts, imbalance, .. } = &mut self.totals;
        let unknown = counts.due.abs_diff(counts.settled());
        *if lost { &mut self.lost_requests } else { &mut imbalance.due } += unknown;
    }

    /// Connections that arrived, successfully or not, and those that throng should have dialled.
    pub fn arrivals_due(&self) -> u64 {
        self.sum(|counts| counts.opened + counts.failed + counts.given_up + counts.undialled)
    }

    /// Connections opened so far that had no response.
    pub fn unserved(&self) -> u64 {
        self.sum(|counts| counts.opened).saturating_sub(self.totals.served + self.line.served)
    }

    /// All of its requests had a response, and those for which connections were closed at the end had one before.
    pub(crate) fn is_all_served(&self) -> bool {
        let (counts, served) = (&self.totals.counts, self.totals.served);
        let is_own = counts.ended_after == 0 || served >= counts.opened;
        is_own && counts.sent > 0 && counts.answered == counts.sent()
    }

    /// Mean of the requests under way at full load.
    pub fn under_way(&self) -> f64 {
        let each_ns = self.loaded_ns as f64 / f64::from(self.shards.max(1));
        if self.loaded_ns == 0 { 0.0 } else { self.waiting_ns as f64 / each_ns }
    }
}
