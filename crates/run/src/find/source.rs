//! Where a search has its workers from.

use host::Root;
use plan::Plan;
use samples::Limit;
use units::Nanos;

use super::{By, Find, steps::with_some_room};
use crate::{
    Refusal, fitting, judge, prepare,
    workers::{Ground, Threads, Workers},
};

/// Where a search has its workers from: this machine, or a fleet.
pub trait WorkerSource {
    /// What it has.
    type Workers: Workers;

    /// Whether they dial from this machine: then they reach what it reaches.
    fn is_here(&self) -> bool;

    /// The largest load that there can be, from `least` to the search's; and what limits it, if that is less.
    ///
    /// # Errors
    /// Not even the least can be.
    fn most(&mut self, find: &Find, least: u64, plan: &Plan) -> Result<(u64, Option<Limit>), Refusal>;

    /// Workers for [this](By::plan) load, that have begun.
    ///
    /// # Errors
    /// There are none, with the reason.
    fn workers(
        &mut self,
        load: (By, u64, Nanos),
        plan: &Plan,
        say: &mut dyn FnMut(&str),
    ) -> Result<(Self::Workers, Ground), Refusal>;

    /// Takes them back: they have ended.
    fn end(&mut self, workers: Self::Workers);
}

/// Threads of this machine.
pub struct Here<'a>(pub &'a Root);

impl WorkerSource for Here<'_> {
    type Workers = Threads;

    fn is_here(&self) -> bool {
        true
    }

    fn most(&mut self, find: &Find, least: u64, plan: &Plan) -> Result<(u64, Option<Limit>), Refusal> {
        let full = find.by.plan(plan, find.most, find.dwell);
        let Err(Refusal::Findings(findings)) = prepare(&full, self.0) else { return Ok((find.most, None)) };
        let most = with_some_room(&full, fitting(&full, self.0)?);
        if most < least {
            return Err(Refusal::Findings(findings));
        }
        Ok((most, judge::refused_here(&findings, most)))
    }

    fn workers(
        &mut self,
        (by, load, dwell): (By, u64, Nanos),
        of_flags: &Plan,
        say: &mut dyn FnMut(&str),
    ) -> Result<(Threads, Ground), Refusal> {
        let plan = by.plan(of_flags, load, dwell);
        let prepared = prepare(&plan, self.0)?;
        match by {
            // The search goes up from its first load, and may end long before the largest: what only that needs is no warning.
            By::Connections | By::Rate => {
                let first = by.plan(of_flags, load.min(by.first()), dwell);
                prepare(&first, self.0).iter().for_each(|first| first.print_notices(say));
            }
            By::Arrival | By::Burst => prepared.print_notices(say),
        }
        let threads = Threads::start(&plan, &prepared)?;
        let ground = threads.ground();
        Ok((threads, ground))
    }

    fn end(&mut self, workers: Threads) {
        workers.join();
    }
}
