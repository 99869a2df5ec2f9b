//! Where a search gets its workers: threads of this machine, or a fleet of agents.

use host::Root;
use plan::Plan;
use samples::Limit;
use units::Nanos;

use super::{By, Find};
use crate::{
    prepare::{Refusal, fitting, prepare, refused_here},
    workers::{Ground, Threads, Workers},
};

/// A source of workers for the steps of a search.
pub trait WorkerSource {
    /// The kind of workers.
    type Workers: Workers;

    /// Whether the workers dial from this machine, and so can reach what it can.
    fn is_here(&self) -> bool;

    /// The largest possible load between `least` and that of the search; and what limits it, if it is smaller than the latter.
    ///
    /// # Errors
    /// Not even `least` is possible.
    fn most(&mut self, find: &Find, least: u64, plan: &Plan) -> Result<(u64, Option<Limit>), Refusal>;

    /// Starts workers for [this](By::plan) load.
    ///
    /// # Errors
    /// No workers are available; contains the reason.
    fn workers(
        &mut self,
        load: (By, u64, Nanos),
        plan: &Plan,
        say: &mut dyn FnMut(&str),
    ) -> Result<(Self::Workers, Ground), Refusal>;

    /// Takes back workers that have ended.
    fn end(&mut self, workers: Self::Workers);

    /// Sets the think time (`1.5s..3s`) of later workers; for sources that create the plan themselves.
    fn set_think(&mut self, _think: &str) {}
}

/// Threads of this machine.
pub struct Here<'a> {
    root: &'a Root,
    /// The notices about this machine have been printed.
    is_said: bool,
}

impl<'a> Here<'a> {
    /// A source for one search.
    pub fn new(root: &'a Root) -> Here<'a> {
        Here { root, is_said: false }
    }

    /// Prints the notices for the first load, once. The search may end long before the largest load, so warnings that concern only that
    /// are left out.
    fn say_first(&mut self, by: By, plan: &Plan, load: u64, dwell: Nanos, say: &mut dyn FnMut(&str)) {
        if !std::mem::replace(&mut self.is_said, true) {
            let first = by.plan(plan, load.min(by.first()), dwell);
            prepare(&first, self.root).iter().for_each(|first| first.print_notices(say));
        }
    }
}

impl WorkerSource for Here<'_> {
    type Workers = Threads;

    fn is_here(&self) -> bool {
        true
    }

    fn most(&mut self, find: &Find, least: u64, plan: &Plan) -> Result<(u64, Option<Limit>), Refusal> {
        let full = find.by.plan(plan, find.most, find.dwell);
        let Err(Refusal::Findings(findings)) = prepare(&full, self.root) else {
            return Ok((find.most, None));
        };
        let most = with_some_room(&full, fitting(&full, self.root)?);
        if most < least {
            return Err(Refusal::Findings(findings));
        }
        Ok((most, refused_here(&findings, most)))
    }

    fn workers(
        &mut self,
        (by, load, dwell): (By, u64, Nanos),
        of_flags: &Plan,
        say: &mut dyn FnMut(&str),
    ) -> Result<(Threads, Ground), Refusal> {
        let plan = by.plan(of_flags, load, dwell);
        let prepared = prepare(&plan, self.root)?;
        self.say_first(by, of_flags, load, dwell, say);
        let threads = Threads::start(&plan, &prepared)?;
        let ground = threads.ground();
        Ok((threads, ground))
    }

    fn end(&mut self, workers: Threads) {
        workers.join();
    }
}

/// The number of connections that this machine can safely hold for a load: without the probe's, and with a reserve, since available
/// memory varies.
pub fn with_some_room(plan: &Plan, fits: u64) -> u64 {
    let load = fits.saturating_sub(plan.probe.as_ref().map_or(0, |probe| probe.places().into()));
    load - load / 100
}
