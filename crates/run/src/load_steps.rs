//! Loads of different size on the same shards, one after the other: what is held stays held in between.

use host::Root;
use plan::Plan;

use crate::{
    Interrupt,
    conduct::conduct_on,
    losses::Losses,
    prepare::prepare,
    record::Record,
    refusal::Refusal,
    workers::{Threads, stop},
};

/// Shards that hold a load, and wait for the next one.
pub(crate) struct LoadSteps {
    workers: Threads,
    /// Connections of each population, as last ordered.
    held: Vec<u32>,
    losses: Losses,
}

impl LoadSteps {
    /// Shards with room for the largest load: that of `plan`. Nothing is dialled yet.
    ///
    /// # Errors
    /// This machine cannot do it.
    pub(crate) fn set_up(plan: &Plan, root: &Root, say: &mut dyn FnMut(&str)) -> Result<LoadSteps, Refusal> {
        let prepared = prepare(plan, root)?;
        prepared.print_notices(say);
        let workers = Threads::start(plan, &prepared)?;
        Ok(LoadSteps { workers, held: vec![0; plan.populations.len()], losses: Losses::default() })
    }

    /// Goes to the load of `plan`, up or down, and through its stages; how that went.
    pub(crate) fn go_to(&mut self, plan: &Plan, root: &Root, interrupt: &Interrupt) -> Record {
        let losses = std::mem::take(&mut self.losses).forget();
        let ground = self.workers.ground();
        let record = conduct_on(plan, root, &mut self.workers, &ground, &self.held, losses, interrupt);
        let connections = plan.populations.iter().map(|population| population.load.connections());
        self.held = connections.collect();
        self.losses = record.losses.clone();
        record
    }

    /// Ends the load.
    pub(crate) fn take_down(mut self) {
        stop(&mut self.workers, |_, _| {});
        self.workers.join();
    }
}
