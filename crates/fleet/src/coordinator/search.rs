//! A fleet as the workers of a search.

use plan::Plan;
use run::{By, Find, Ground, Interrupt, Refusal, WorkerSource};
use samples::Limit;
use units::Nanos;

use super::fleet::{Fleet, Job};
use crate::{link::Link, waiting::Waiting};

/// Agents that joined, for one step of a search after the other.
pub struct Agents {
    /// None, while a step has it.
    link: Option<Link>,
    job: Job,
    interrupt: Interrupt,
}

impl Agents {
    /// Those at this server; `job`: what the steps have in common. `interrupt`: ends the wait for them.
    pub fn new(link: Link, job: Job, interrupt: Interrupt) -> Agents {
        Agents { link: Some(link), job, interrupt }
    }

    /// The largest load that the agents may take together: what their machines, ports and caps let them. Nothing is dialled but to
    /// see which family is served.
    ///
    /// # Errors
    /// There are no agents, one refuses, or Ctrl-C; with the reason.
    pub fn most(&mut self, by: By, plan: &Plan, say: &mut dyn FnMut(&str)) -> Result<u64, String> {
        let by_itself = run::most_per_s(by);
        let ask = by_itself.unwrap_or(u32::MAX.into());
        let job = Job { step: Some((by, ask, Nanos::ZERO)), ..self.job.clone() };
        let link = self.link.take().ok_or("the fleet is in use")?;
        let mut waiting = Waiting { interrupt: &self.interrupt, say };
        let (link, connections, per_s) = Fleet::ask(link, plan, &job, &mut waiting)?;
        self.link = Some(link);
        let most = match by_itself {
            Some(most) => per_s.map_or(most, |per_s| most.min(per_s as u64)),
            None => run::with_some_room(plan, connections).min(u32::MAX.into()),
        };
        if most == 0 { Err("the agents can take nothing".to_owned()) } else { Ok(most) }
    }
}

impl WorkerSource for Agents {
    type Workers = Fleet;

    fn is_here(&self) -> bool {
        false
    }

    /// Each agent refuses its share where that is too much.
    fn most(&mut self, find: &Find, _: u64, _: &Plan) -> Result<(u64, Option<Limit>), Refusal> {
        Ok((find.most, None))
    }

    fn workers(
        &mut self,
        load: (By, u64, Nanos),
        plan: &Plan,
        say: &mut dyn FnMut(&str),
    ) -> Result<(Fleet, Ground), Refusal> {
        let job = Job { step: Some(load), ..self.job.clone() };
        let link = self.link.take().ok_or_else(|| Refusal::Failed("the fleet is in use".to_owned()))?;
        let mut waiting = Waiting { interrupt: &self.interrupt, say };
        let mut fleet = Fleet::gather(link, plan, &job, &mut waiting).map_err(Refusal::Failed)?;
        let ground = fleet.begin(&self.interrupt);
        Ok((fleet, ground))
    }

    fn end(&mut self, mut workers: Fleet) {
        workers.release();
        self.link = Some(workers.into_link());
    }
}
