//! The sums of what the shards of a simulated run handed over, checked against the laws of counting at every tick.

use plan::{Part, Plan, Role};
use samples::{Destination, Phase, Tick};
use units::Nanos;

use crate::laws::{obey_the_laws, obey_the_laws_of_steps};

/// The last report of a shard.
#[derive(Clone, Copy)]
struct Report {
    role: Role,
    open: u64,
    resolved: u64,
    unsettled: u64,
    ramped_at: Nanos,
    phase: Phase,
}

pub(crate) struct Sums<'a> {
    plan: &'a Plan,
    reports: Vec<Report>,
    /// The sum of all shards, and of each population.
    pub(crate) whole: Tick,
    pub(crate) populations: Vec<Tick>,
    /// The sum of the conductor's lines.
    lines: Tick,
    /// Connections open when the load had ended in all shards, when that was, and the most open at the end of any tick.
    pub(crate) held: u64,
    pub(crate) hold_until: Nanos,
    pub(crate) peak: u64,
    /// When the last first dial was decided.
    pub(crate) ramped_at: Nanos,
}

impl<'a> Sums<'a> {
    pub(crate) fn new(plan: &'a Plan, parts: &[Part]) -> Sums<'a> {
        let none = |part: &Part| Report {
            role: part.role,
            open: 0,
            resolved: 0,
            unsettled: 0,
            ramped_at: Nanos::NEVER,
            phase: Phase::Ramp,
        };
        Sums {
            plan,
            reports: parts.iter().map(none).collect(),
            whole: Tick::default(),
            populations: vec![Tick::default(); plan.populations.len()],
            lines: Tick::default(),
            held: 0,
            hold_until: Nanos::NEVER,
            peak: 0,
            ramped_at: Nanos::NEVER,
        }
    }

    /// The shards that carry the load: all but the probe's.
    fn of_load(&self) -> impl Iterator<Item = &Report> {
        self.reports.iter().filter(|report| matches!(report.role, Role::Population(_)))
    }

    pub(crate) fn take(&mut self, shard: u32, tick: &Tick) {
        let tick = &*run::filed(self.reports[shard as usize].role, tick);
        let report = &mut self.reports[shard as usize];
        let &Tick { open, resolved, unsettled, ramped_at, phase, .. } = tick;
        *report = Report { role: report.role, open, resolved, unsettled, ramped_at, phase };
        self.whole.extend(tick);
        if let Role::Population(nth) = report.role {
            self.populations[usize::from(nth)].extend(tick);
        }
        let sum = |field: fn(&Report) -> u64| self.reports.iter().map(field).sum::<u64>();
        let (open, resolved, unsettled) = (sum(|r| r.open), sum(|r| r.resolved), sum(|r| r.unsettled));
        (self.whole.open, self.whole.resolved, self.whole.unsettled) = (open, resolved, unsettled);
        self.peak = self.peak.max(open);
        self.ramped_at = self.of_load().map(|r| r.ramped_at).max().expect("there is a shard");
        if self.hold_until == Nanos::NEVER && self.of_load().all(|r| r.phase == Phase::Drain) {
            (self.hold_until, self.held) = (tick.until, open);
        }
        self.obey_the_laws_of_populations();
        self.obey_the_law_of_the_whole();
        self.obey_the_law_of_destinations();
    }

    /// Checks each population separately, since their protocols may differ.
    fn obey_the_laws_of_populations(&mut self) {
        for (nth, population) in (0..).zip(&self.plan.populations) {
            let own = self.reports.iter().filter(|report| report.role == Role::Population(nth));
            let (open, resolved, unsettled) =
                own.fold((0, 0, 0), |(o, r, u), own| (o + own.open, r + own.resolved, u + own.unsettled));
            let whole = &mut self.populations[usize::from(nth)];
            (whole.open, whole.resolved, whole.unsettled) = (open, resolved, unsettled);
            obey_the_laws(self.plan, population, whole);
            obey_the_laws_of_steps(self.plan, nth, whole);
        }
    }

    /// Destinations, if counted separately, add up to the total.
    fn obey_the_law_of_destinations(&self) {
        let t = &self.whole;
        if t.destinations.is_empty() {
            return;
        }
        let mut sum = Destination::default();
        t.destinations.iter().for_each(|own| sum.merge(own));
        let c = &t.counts;
        let of_sum = [sum.opened, sum.failed, sum.dropped, sum.closed, sum.redialled, sum.finished];
        assert_eq!(of_sum, [c.opened, c.failed, c.dropped, c.closed, c.redialled, c.finished]);
        assert_eq!((sum.sent, sum.answered, &sum.faults), (c.sent, c.answered, &t.faults));
        assert_eq!((sum.latency.count(), sum.open()), (t.latency.count(), t.open + c.ended_after));
    }

    /// The populations add up to the total; the probe has separate counts.
    fn obey_the_law_of_the_whole(&self) {
        let Sums { whole, populations, .. } = self;
        if populations.len() < 2 {
            return;
        }
        let mut sum = Tick::default();
        populations.iter().for_each(|population| sum.merge(population));
        assert_eq!(essence(&sum), essence(whole), "the sum, seed {}", self.plan.seed);
    }

    /// Takes a line of the conductor: there is no gap between it and the previous one.
    pub(crate) fn take_line(&mut self, line: &Tick) {
        assert!(line.from <= self.lines.until, "seed {}", self.plan.seed);
        self.lines.extend(line);
    }

    /// The lines add up to the total; with a fixed number of requests, the last line also has those that no worker came to.
    pub(crate) fn obey_the_law_of_lines(&self) {
        let mut whole = self.whole.clone();
        if self.plan.populations.iter().any(|own| own.requests.is_some()) {
            let never_due = self.lines.counts.due.saturating_sub(whole.counts.due);
            whole.never_due(never_due, false, &[]);
        }
        assert_eq!(essence(&self.lines), essence(&whole), "the lines, seed {}", self.plan.seed);
        assert_eq!(self.lines.open, self.whole.open, "seed {}", self.plan.seed);
    }
}

/// The part of a tick that is equal for all ways to sum.
fn essence(t: &Tick) -> impl PartialEq + std::fmt::Debug + use<> {
    let latencies = [&t.latency, &t.ramp_latency, &t.connect].map(|latency| (latency.count(), latency.max()));
    let counts = samples::Counts { addresses_skipped: 0, ..t.counts.clone() };
    (counts, t.faults.clone(), t.status.clone(), latencies)
}
