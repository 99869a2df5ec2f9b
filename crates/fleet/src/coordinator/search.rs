//! A fleet as the workers of a search: each step is a run on the agents.

use plan::{Plan, flag};
use run::{By, Find, Ground, Interrupt, Refusal, WorkerSource};
use samples::Limit;
use units::Nanos;

use super::fleet::{Fleet, Job};
use crate::{
    error::{Error, Waiting},
    link::Link,
    rates::busiest,
};

/// Agents that joined, for the successive steps of a search.
pub struct Agents {
    /// `None` while a step uses it.
    link: Option<Link>,
    job: Job,
    interrupt: Interrupt,
}

impl Agents {
    /// The agents at this server. `job`: common to all steps. `interrupt`: ends waiting for agents.
    pub fn new(link: Link, job: Job, interrupt: Interrupt) -> Agents {
        Agents { link: Some(link), job, interrupt }
    }

    /// The largest load that all agents together can take, by their machines, ports and caps. Dials only to find the address family that
    /// is served.
    ///
    /// # Errors
    /// No agents, a refusal, or Ctrl-C; contains the reason.
    pub fn most(&mut self, by: By, plan: &Plan, say: &mut dyn FnMut(&str)) -> Result<u64, Error> {
        let by_itself = run::most_per_s(by);
        let ask = by_itself.unwrap_or(u32::MAX.into());
        let job = Job { step: Some((by, ask, Nanos::ZERO)), ..self.job.clone() };
        let link = self.take_link()?;
        let mut waiting = Waiting { interrupt: &self.interrupt, say };
        let (link, connections, per_s) = Fleet::ask(link, plan, &job, &mut waiting)?;
        self.link = Some(link);
        let most = match by_itself {
            Some(most) => per_s.map_or(most, |per_s| within(per_s, most, by, plan)),
            None => run::with_some_room(plan, connections).min(u32::MAX.into()),
        };
        if most == 0 { Err(Error::refused("the agents have no free capacity")) } else { Ok(most) }
    }

    fn take_link(&mut self) -> Result<Link, Error> {
        self.link.take().ok_or_else(|| Error::unavailable("the fleet is in use"))
    }
}

/// The job of a step. If a number of the scenario or of a flag is searched, agents get the scenario and flags of the step.
fn of_step(job: &Job, load: (By, u64, Nanos)) -> Result<Job, Error> {
    let mut job = Job { step: Some(load), ..job.clone() };
    if let Some(variant) = load.0.variant(load.1).transpose().map_err(Error::refused)? {
        job.scenario = variant.text.or(job.scenario);
        variant.flag.into_iter().for_each(|flag| set_flag(&mut job.flags, flag));
    }
    Ok(job)
}

/// Sets a flag, replacing a previous value.
fn set_flag(flags: &mut Vec<(String, String)>, flag: (String, String)) {
    flags.retain(|(name, _)| *name != flag.0);
    flags.push(flag);
}

/// The largest load up to `most` with which the whole plan is within the agents' caps on rates, `per_s` together.
fn within(per_s: f64, most: u64, by: By, plan: &Plan) -> u64 {
    let fits = |load: u64| busiest(&by.plan(plan, load, Nanos::ZERO)) <= per_s;
    if !fits(1) {
        // The excess does not depend on the load. Each agent will report it for its part.
        return most.min(per_s as u64);
    }
    let (mut largest, mut over) = (1, most + 1);
    while over - largest > 1 {
        let middle = largest + (over - largest) / 2;
        if fits(middle) { largest = middle } else { over = middle }
    }
    largest
}

impl WorkerSource for Agents {
    type Workers = Fleet;

    fn is_here(&self) -> bool {
        false
    }

    /// Each agent refuses its share if that is too large.
    fn most(&mut self, find: &Find, _: u64, _: &Plan) -> Result<(u64, Option<Limit>), Refusal> {
        Ok((find.most, None))
    }

    fn workers(
        &mut self,
        load: (By, u64, Nanos),
        plan: &Plan,
        say: &mut dyn FnMut(&str),
    ) -> Result<(Fleet, Ground), Refusal> {
        let failed = |why: Error| Refusal::Failed(why.to_string());
        let job = of_step(&self.job, load).map_err(failed)?;
        let link = self.take_link().map_err(failed)?;
        let mut waiting = Waiting { interrupt: &self.interrupt, say };
        let mut fleet = Fleet::gather(link, plan, &job, &mut waiting).map_err(failed)?;
        let ground = fleet.begin(&self.interrupt);
        Ok((fleet, ground))
    }

    fn end(&mut self, mut workers: Fleet) {
        workers.release();
        self.link = Some(workers.into_link());
    }

    fn set_think(&mut self, think: &str) {
        set_flag(&mut self.job.flags, (flag::THINK.name.to_owned(), think.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use plan::{Environment, Flag, Flags};

    use super::*;

    #[test]
    fn agents_get_the_file_and_the_flags_of_a_step() {
        let resolve = |_: &str| unreachable!("the target is an address");
        let around = Environment { cores: 1, seed: 1, resolve: &resolve };
        let plan = plan::from_flags(&Flags::new("http://127.0.0.1:80/"), &around).unwrap();
        let pair = |name: &str, value: u64| (name.to_owned(), value.to_string());
        let job = Job { flags: vec![pair("streams", 4), pair("threads", 1)], ..Job::default() };
        let job = Job { scenario: Some("rate = 1".to_owned()), ..job };
        let check = |by: By, flags: &[(String, String)], scenario: &str| {
            let job = of_step(&job, (by, 9, Nanos::ZERO)).unwrap();
            assert_eq!((&job.flags[..], job.scenario.as_deref()), (flags, Some(scenario)), "{by:?}");
            assert_eq!(job.step, Some((by, 9, Nanos::ZERO)));
        };
        let in_file = {
            let plan = plan.clone();
            move |n| Ok(run::Variant { plan: plan.clone(), text: Some(format!("rate = {n}")), flag: None })
        };
        check(By::number("rate", (1, ""), in_file), &job.flags, "rate = 9");
        let in_flag =
            move |n| Ok(run::Variant { plan: plan.clone(), text: None, flag: Some(pair("streams", n)) });
        check(By::number("streams", (4, ""), in_flag), &[pair("threads", 1), pair("streams", 9)], "rate = 1");
        check(By::Rate, &job.flags, "rate = 1");
    }

    #[test]
    fn a_search_goes_up_to_what_all_of_its_plan_may_send_together() {
        let check = |by: By, args: &[(&Flag, &str)], expected: u64| {
            let flags = Flags::new("http://127.0.0.1:80/");
            let flags = args.iter().fold(flags, |flags, (flag, value)| flags.with(flag, value));
            let resolve = |_: &str| unreachable!("the target is an address");
            let around = Environment { cores: 1, seed: 1, resolve: &resolve };
            let plan = plan::from_flags(&flags, &around).unwrap();
            assert_eq!(within(1_000.0, 50_000, by, &plan), expected, "{by:?}");
        };
        check(By::Rate, &[(&flag::RAMP, "100/s"), (&flag::RATE, "1/s")], 1_000);
        check(By::Rate, &[(&flag::RATE, "1/s")], 1_000);
        let arrivals = [(&flag::ARRIVE, "1/s"), (&flag::TOTAL, "9")];
        check(By::Arrival, &arrivals, 1_000);
        let [arrive, total] = arrivals;
        check(By::Arrival, &[arrive, total, (&flag::CALLS, "4")], 250);
        check(By::Arrival, &[arrive, total, (&flag::CALLS, "4"), (&flag::PROBE, "200/s")], 200);
        // Lower rates would exceed the allowed dials.
        check(By::Rate, &[(&flag::RAMP, "1200/s"), (&flag::RATE, "1/s")], 1_000);
    }
}
