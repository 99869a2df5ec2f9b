//! Loads of different size on the same workers, one after the other: what is held stays held in between.

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
    /// Of those, the ones that were closed with an announcement and are to be dialled again.
    to_redial: Vec<i64>,
    losses: Losses,
    /// Connections open at the end of the last one.
    open: u64,
}

impl<W: Workers> LoadSteps<W> {
    /// Workers with room for the largest load: that of `plan`. Nothing is dialled yet.
    pub(crate) fn on(workers: W, ground: Ground, plan: &Plan) -> LoadSteps<W> {
        let held = vec![0; plan.populations.len()];
        let to_redial = vec![0; held.len()];
        LoadSteps { workers, ground, held, to_redial, losses: Losses::default(), open: 0 }
    }

    /// Goes to the load of `plan`, up or down, and through its stages, to their end or until that is [`Early`]; how that went.
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
        // Open at its beginning, all at once; its shards report one after the other, and then some may be lost.
        record.peak = record.peak.max(self.open);
        self.open = record.populations.iter().map(|measured| measured.held).sum();
        let connections = plan.populations.iter().map(|population| population.load.connections());
        self.held = connections.collect();
        self.losses = record.losses.clone();
        record
    }

    /// Ends the load.
    pub(crate) fn end(mut self) -> W {
        stop(&mut self.workers, |_| {});
        self.workers
    }

    /// The same, whether all have ended by then or not.
    pub(crate) fn end_within(mut self, within: Nanos) -> W {
        stop_within(&mut self.workers, within);
        self.workers
    }
}
