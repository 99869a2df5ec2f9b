//! A run, or a step of a search, measured.

use plan::Plan;
use samples::{Asked, Header, Tick};
use units::Nanos;

use crate::{
    curve::Curve, judge, judge::BothSides, losses::Losses, moments::Moments, observe::Observed,
    silences::Silences,
};

/// A run, measured.
pub(crate) struct Record {
    pub(crate) totals: Tick,
    /// Of each population, in the plan's order.
    pub(crate) crowds: Vec<Crowd>,
    pub(crate) io: &'static str,
    pub(crate) threads: u32,
    pub(crate) started: Nanos,
    /// When the load ended.
    pub(crate) ended: Nanos,
    /// How long any population was in its ramp.
    pub(crate) ramp: Nanos,
    pub(crate) peak: u64,
    /// By whom, where it did not go to its end.
    pub(crate) interrupted: Option<&'static str>,
    /// What was asked for by hand, and done.
    pub(crate) asks: Vec<Asked>,
    /// The probe lane against the connections held.
    pub(crate) curve: Curve,
    pub(crate) both_ends_here: bool,
    pub(crate) losses: Losses,
    /// Connections open at the end of the hold, counted at both ends.
    pub(crate) both_sides: Option<BothSides>,
    /// Of those, the ones that the target has not accepted, where that can be seen; they are not among those held.
    pub(crate) unaccepted: Option<u64>,
    /// How long before that nothing had come from the target on any connection, where that can be seen.
    pub(crate) quiet: Option<Nanos>,
    pub(crate) moments: Moments,
    /// What it cost, and what was seen meanwhile; complete once the run is over.
    pub(crate) observed: Observed,
}

impl Record {
    /// What is known of it before the first tick.
    pub(crate) fn header(&self, plan: &Plan) -> Header {
        let name = |population: u16| &plan.populations[usize::from(population)].name;
        let steps = plan.program.steps.iter();
        Header {
            target: plan.text.clone(),
            connections: self.crowds.iter().map(|crowd| crowd.wanted).sum(),
            hold_s: plan.hold().map(Nanos::secs_f64),
            seed: plan.seed,
            io: self.io.into(),
            threads: self.threads,
            populations: plan.populations.iter().map(|population| population.name.clone()).collect(),
            steps: steps.map(|(of, step)| format!("{}.{step}", name(*of))).collect(),
            destinations: judge::destination_names(plan),
        }
    }
}

/// A population, measured.
#[derive(Default)]
pub(crate) struct Crowd {
    pub(crate) totals: Tick,
    pub(crate) silences: Silences,
    /// Connections that were asked for at the most.
    pub(crate) wanted: u64,
    pub(crate) peak: u64,
    /// Open at the end of the last stage that asked for the most, or at the end of the run in its midst.
    pub(crate) held: u64,
    /// Connections not counted there, for only the kernel had accepted them.
    pub(crate) unaccepted: u64,
    /// Whether those were counted.
    pub(crate) is_kept: bool,
    /// Closed by announcement and not open again, at that time.
    pub(crate) resting: u64,
    /// Lost after the end of the load.
    pub(crate) dropped_in_drain: u64,
    /// How long its ramps took, and how long it was at full load.
    pub(crate) ramp: Nanos,
    pub(crate) at_load: Nanos,
    /// From when on it was to dial; none, before it was.
    pub(crate) began: Option<Nanos>,
    /// The end of its last tick in which it did anything or held a connection.
    pub(crate) last_seen: Nanos,
    /// From the one to the other, or to the end of full load.
    pub(crate) elapsed: Nanos,
    /// Time that requests were under way at full load, and that full load lasted, of all shards together.
    pub(crate) waiting_ns: u128,
    pub(crate) loaded_ns: u128,
    pub(crate) shards: u32,
}

impl Crowd {
    /// Mean of the requests under way at full load.
    pub(crate) fn under_way(&self) -> f64 {
        let each_ns = self.loaded_ns as f64 / f64::from(self.shards.max(1));
        if self.loaded_ns == 0 { 0.0 } else { self.waiting_ns as f64 / each_ns }
    }
}

/// An empty line; the populations stand apart where there are several.
pub(crate) fn line(from: Nanos, populations: usize) -> Tick {
    let empty = Tick { from, ..Tick::default() };
    let populations = if populations > 1 { vec![empty.clone(); populations] } else { Vec::new() };
    Tick { populations, ..empty }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Of a run in which nothing happened.
    pub(crate) fn record() -> Record {
        Record {
            totals: Tick::default(),
            crowds: vec![Crowd::default()],
            io: "sim",
            threads: 1,
            started: Nanos::ZERO,
            ramp: Nanos::ZERO,
            ended: Nanos::ZERO,
            peak: 0,
            interrupted: None,
            asks: Vec::new(),
            curve: Curve::new(1),
            both_ends_here: true,
            losses: Losses::default(),
            both_sides: None,
            unaccepted: None,
            quiet: None,
            moments: Moments::default(),
            observed: Observed::default(),
        }
    }
}
