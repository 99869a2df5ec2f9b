//! Where a search has its workers from.

use host::Root;
use plan::Plan;
use samples::Limit;
use units::Nanos;

use super::{By, Find, steps::with_some_room};
use crate::{
    Refusal, fitting, prepare,
    refusal::refused_here,
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

    /// Further workers pause for this long (`1.5s..3s`), as the plan says from now on: those that make it themselves are to know.
    fn set_think(&mut self, _think: &str) {}
}

/// Threads of this machine.
pub struct Here<'a> {
    root: &'a Root,
    /// What the user should know of this machine was said, before the first step.
    is_said: bool,
}

impl<'a> Here<'a> {
    /// For one search.
    pub fn new(root: &'a Root) -> Here<'a> {
        Here { root, is_said: false }
    }

    /// Says what the user should know before the search, once. It goes up from its first load, and may end long before the largest: what
    /// only that needs is no warning.
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
