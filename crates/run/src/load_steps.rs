//! Successive loads on the same workers. Held connections stay open between the steps of a search.

use host::Root;
use plan::Plan;
use units::Nanos;

use crate::{
    Interrupt,
    conduct::{Early, conduct_on},
    workers::{Ground, Workers, stop, stop_within},
};
use record::{Record, losses::Losses};

/// Workers that hold a load, and wait for the next one.
pub(crate) struct LoadSteps<W> {
    workers: W,
    ground: Ground,
    /// Connections of each population, as last ordered.
    held: Vec<u32>,
    /// Held connections that closed as announced and are to be redialled, by population.
    to_redial: Vec<i64>,
    losses: Losses,
    /// Connections open at the end of the last step.
    open: u64,
}

impl<W: Workers> LoadSteps<W> {
    /// Uses workers with room for the load of `plan`, the largest one. Nothing is dialled yet.
    pub(crate) fn on(workers: W, ground: Ground, plan: &Plan) -> LoadSteps<W> {
        let held = vec![0; plan.populations.len()];
        let to_redial = vec![0; held.len()];
        LoadSteps { workers, ground, held, to_redial, losses: Losses::default(), open: 0 }
    }

    /// Moves up or down to the load of `plan`, and runs its stages to the end or to an [`Early`] one. Returns the record.
    pub(crate) fn go_to(
        &mut self,
        plan: &Plan,
        root: &Root,
        interrupt: &Interrupt,
        early: Early<'_>,
    ) -> Record {
        let losses = std::mem::take(&mut self.losses).forget();
        let before = (&*self.held, &*self.to_redial, losses);
        let mut record = conduct_on(plan, root, &mut self.workers, &self.ground, before, interrupt, early);
        self.to_redial = record.populations.iter().map(|measured| measured.to_redial() as i64).collect();
        // These were open simultaneously at the beginning. Shards report one after the other, when some may already be lost.
        record.peak = record.peak.max(self.open);
        self.open = record.populations.iter().map(|measured| measured.held).sum();
        let connections = plan.populations.iter().map(|population| population.load.connections());
        self.held = connections.collect();
        self.losses = record.losses.clone();
        record
    }

    /// Ends the load, and returns the workers.
    pub(crate) fn end(mut self) -> W {
        stop(&mut self.workers, |_| {});
        self.workers
    }

    /// Ends the load, and waits for the workers for at most `within`.
    pub(crate) fn end_within(mut self, within: Nanos) -> W {
        stop_within(&mut self.workers, within);
        self.workers
    }
}
