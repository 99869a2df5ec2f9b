//! Carries out the steps of a search. Held connections and request rates change on the same workers, so that connections stay open
//! between steps; arrivals and bursts start with new workers each time. Between steps, the target gets time to close what is no longer
//! needed.

use std::time::Duration;

use host::Root;
use plan::{Plan, Ramp};
use samples::{AgentState, FAILED, IdleTimeout, Limit, Summary, Verdict};
use units::{Failure, Nanos, Rate, failpoint};

use super::{
    By, Find, WorkerSource,
    criteria::Prospects,
    load::{idle_timeout, outlasted},
};
use crate::{
    Interrupt, Refusal,
    conduct::{Early, conduct, conduct_on},
    conductor::Conductor,
    workers::{Ground, Workers, stop, stop_within},
};
use observe::{MAX_COUNTED, Observer};
use record::{Record, losses::Losses};

/// Pause between two steps, and extra time per closed connection: ten times what `throng serve` takes to close one.
const SETTLE: Duration = Duration::from_millis(500);
const SETTLE_EACH: Duration = Duration::from_micros(50);
/// Maximum number of such pauses for a slow target, and the number of checks in each.
const MAX_WAITS: u32 = 20;
const LOOKS: u32 = 5;
/// Surplus connections that are attributed to the probe.
const OF_PROBES: u64 = 16;

/// Maximum number of dials that may be outstanding between steps.
const MANY: u64 = 100;

/// Time for workers to end their load if the search ends early.
const ENDS_WITHIN: Nanos = Nanos::from_secs(1);

/// Wait for responses at the end of a step: this long, or `SLOWER` times the unloaded latency if that is longer. A fleet uses the plan's
/// longest timeout instead, since its reports take time too.
const RESPONDS: Nanos = Nanos::from_secs(1);
const SLOWER: u64 = 4;

/// Number and interval of dials to a target that has ended, in case a supervisor restarts it.
const REDIALS: u32 = 30;
const REDIAL: Duration = Duration::from_millis(100);

/// Carries out the steps of a search.
pub(super) struct Steps<'a, S: WorkerSource> {
    source: &'a mut S,
    find: Find,
    plan: Plan,
    root: &'a Root,
    interrupt: &'a Interrupt,
    say: &'a mut dyn FnMut(&str),
    pub(super) begun: Begun<S::Workers>,
    /// Connections at the target's ports before the search.
    before: u64,
    /// The load of the last step, and its dials without an outcome at its end.
    load: u64,
    undecided: u64,
    /// The server's idle timeout as shown by the last step, and the longest time for which an idle connection stayed open.
    idle_timeout: Option<Nanos>,
    survived: Nanos,
    pub(super) so_far: SoFar,
}

/// What has been seen so far, and is decided for the next step.
#[derive(Default)]
pub(super) struct SoFar {
    /// Why pauses were shortened; `None` if they were not.
    pub(super) idle: Option<IdleTimeout>,
    /// The lost agent, or throng's failure: the remaining workers cannot hold the load, so further steps would show nothing about the
    /// target.
    pub(super) lost: Option<String>,
    /// Whether the target has passed a smaller load, and the lowest median latency among those that passed.
    pub(super) has_passed: bool,
    pub(super) unloaded: Option<Nanos>,
    /// Limits the dial rate, so that the target can do other work besides accepting.
    pub(super) is_gentle: bool,
}

impl<'a, S: WorkerSource> Steps<'a, S> {
    /// Prepares steps with loads from `least` on.
    ///
    /// # Errors
    /// This machine cannot carry out even the least load.
    pub(super) fn new(
        source: &'a mut S,
        find: Find,
        least: u64,
        plan: &Plan,
        root: &'a Root,
        interrupt: &'a Interrupt,
        say: &'a mut dyn FnMut(&str),
    ) -> Result<Steps<'a, S>, Refusal> {
        Ok(Steps {
            begun: begin(source, &find, least, plan, say)?,
            before: standing(plan),
            source,
            find,
            plan: plan.clone(),
            root,
            interrupt,
            say,
            load: 0,
            undecided: 0,
            idle_timeout: None,
            survived: Nanos::ZERO,
            so_far: SoFar::default(),
        })
    }

    /// Carries out a step. It is repeated once if throng itself was late, which shows nothing about the target and may be temporary.
    ///
    /// # Errors
    /// This machine cannot carry out the step.
    pub(super) fn step(&mut self, load: u64, dwell: Nanos) -> Result<Summary, Refusal> {
        let summary = self.once(load, dwell)?;
        if summary.verdict != Verdict::Invalid || self.so_far.lost.is_some() {
            return Ok(summary);
        }
        self.settle(load);
        if self.so_far.lost.is_some() {
            return Ok(summary);
        }
        self.once(load, dwell)
    }

    fn once(&mut self, load: u64, dwell: Nanos) -> Result<Summary, Refusal> {
        failpoint("find");
        if let Some(Err(why)) = self.find.by.variant(load) {
            return Err(why);
        }
        let mut plan = self.find.by.plan(&self.plan, load, dwell);
        if self.so_far.is_gentle && plan.stages[0].ramp == Ramp::Adaptive {
            plan.stages[0].ramp = gentle(load);
        }
        self.load = load;
        let mut prospects = Prospects::of(self.find.by, &plan, self.so_far.unloaded);
        let is_enough = &mut |conductor: &Conductor, now| prospects.are_bad(conductor, now);
        let patience = self.so_far.unloaded.filter(|_| self.source.is_here());
        let patience = patience.map(|time| RESPONDS.max(Nanos(SLOWER * time.0)).min(plan.longest_timeout()));
        let early: Early<'_> = (patience, is_enough);
        let mut record = match &mut self.begun.load_steps {
            Some(load_steps) => load_steps.go_to(&plan, self.root, self.interrupt, early),
            None => {
                let load = (self.find.by, load, dwell);
                let (mut workers, ground) = self.source.workers(load, &self.plan, self.say)?;
                let observer = Observer::start(&plan, self.root);
                let record =
                    conduct(&plan, observer, &mut workers, &ground, &mut [], self.interrupt, Some(early));
                self.source.end(workers);
                record
            }
        };
        self.note_lost(&record);
        let counts = &record.totals.counts;
        self.undecided = counts.dialled.saturating_sub(counts.opened + counts.redialled + counts.failed);
        // A connection that stayed open while idle for longer, in an earlier step, counts as well.
        self.survived = self.survived.max(record.totals.longest_silence);
        record.totals.longest_silence = self.survived;
        self.idle_timeout = idle_timeout(&record);
        if self.so_far.lost.is_some() {
            // The step is not judged. If all workers are lost, it has no end.
            return Ok(Summary::default());
        }
        Ok(judge::judge_step(
            &plan,
            &record,
            self.find.by.judged(),
            self.so_far.has_passed,
            self.so_far.unloaded,
        ))
    }

    /// Notes a lost agent. Only the step in which it is lost sees the loss; later ones would wait for the agent.
    fn note_lost(&mut self, record: &Record) {
        self.note_failure();
        let lost = record.agents.iter().find(|agent| agent.state == AgentState::Lost);
        if let Some(agent) = lost.filter(|_| self.so_far.lost.is_none()) {
            self.so_far.lost = Some(format!("agent {} was lost", agent.id));
        }
    }

    /// Notes a failure of throng, which ends the search too.
    pub(super) fn note_failure(&mut self) {
        if let Some(failure) = Failure::first() {
            self.so_far.lost.get_or_insert_with(|| format!("{FAILED}: {failure}"));
        }
    }

    /// Shortens default pauses if the server closes connections that are idle for less; all connections are then redialled. Returns
    /// whether it did: the last step showed nothing but this timeout.
    ///
    /// # Errors
    /// No workers are available.
    pub(super) fn thinks_less(&mut self) -> Result<bool, Refusal> {
        let timeout = self.idle_timeout.filter(|_| self.find.may_think_less);
        let Some((plan, idle)) = timeout.and_then(|time| outlasted(&self.plan, time)) else {
            return Ok(false);
        };
        let [least, most] = idle.think_s;
        self.source.set_think(&format!("{least}s..{most}s"));
        (self.say)(&idle.to_string());
        (self.plan, self.so_far.idle) = (plan, Some(idle));
        if let Some(load_steps) = self.begun.load_steps.take() {
            let is_here = self.source.is_here();
            self.source.end(load_steps.end(is_here));
            let find = Find { most: self.begun.most, ..self.find };
            let refused = self.begun.refused.take();
            self.begun = Begun { refused, ..begin(self.source, &find, 1, &self.plan, self.say)? };
        }
        Ok(true)
    }

    /// Before a step: closes the connections beyond `stays`, and waits until the target and this kernel have released them. Otherwise the
    /// next step would run on top of this work: the kernel closes the sockets of a ring asynchronously.
    pub(super) fn settle(&mut self, stays: u64) {
        let load = self.load;
        // Outstanding dials would take the places of the closed connections.
        let stays = if self.undecided > MANY { stays.min(load / 5) } else { stays.min(load) };
        let gone = if self.begun.load_steps.is_some() { load - stays } else { load };
        if gone == 0 || self.interrupt.is_set() {
            return;
        }
        // These loads are not numbers of connections.
        let each =
            if matches!(self.find.by, By::Rate | By::Number(_)) { Duration::ZERO } else { SETTLE_EACH };
        let time = SETTLE + each * u32::try_from(gone).unwrap_or(u32::MAX);
        self.stay_at(stays, time);
        if self.find.by == By::Rate {
            return;
        }
        let allowed = if self.begun.load_steps.is_some() { stays + OF_PROBES } else { 0 };
        let is_large = load > MAX_COUNTED && !matches!(self.find.by, By::Number(_));
        // On agents, each wait takes as long as a short step.
        let is_here = self.source.is_here();
        let waits = if is_here { LOOKS * MAX_WAITS } else { MAX_WAITS / 4 };
        let (mut fewest, mut looks) = (u64::MAX, 0);
        for _ in 0..waits {
            if is_large || self.so_far.lost.is_some() || self.interrupt.is_set() {
                return;
            }
            let standing = standing(&self.plan);
            looks = if standing < fewest { 0 } else { looks + 1 };
            fewest = fewest.min(standing);
            // A number that does not decrease consists of dials that the target accepts only now.
            if standing <= self.before + allowed || is_here && looks >= 2 * LOOKS {
                return;
            }
            // Agents need messages meanwhile, to renew their leases.
            match is_here {
                true => std::thread::sleep(SETTLE / LOOKS),
                false => self.stay_at(stays, SETTLE),
            }
        }
    }

    /// Holds this load for `time`, whether it is reached or not. Only waits if each step starts with new workers.
    fn stay_at(&mut self, load: u64, time: Duration) {
        let Some(load_steps) = &mut self.begun.load_steps else { return std::thread::sleep(time) };
        let time = Nanos(time.as_nanos() as u64);
        let plan = self.find.by.plan(&self.plan, load, time);
        self.load = load;
        let patience = self.source.is_here().then_some(RESPONDS);
        let mut began = None;
        let is_over = &mut |_: &Conductor, now: Nanos| now.since(*began.get_or_insert(now)) >= time;
        let record = load_steps.go_to(&plan, self.root, self.interrupt, (patience, is_over));
        self.note_lost(&record);
    }

    /// Whether the target has no listener any more: smaller loads would show nothing about it, and thousands of refused dials take time.
    /// For a fleet, which may reach what this machine cannot, the dials of the next step show it.
    pub(super) fn is_target_gone(&self) -> bool {
        if !self.source.is_here() {
            return false;
        }
        let Some(to) = self.plan.destinations().into_iter().next() else { return false };
        for _ in 0..REDIALS {
            if self.interrupt.is_set() || !net::refuses(to) {
                return false;
            }
            std::thread::sleep(REDIAL);
        }
        true
    }

    /// Ends the load. Returns the requested load and the limit that prevents it, if this machine cannot reach it.
    pub(super) fn end(self) -> Option<(u64, Limit)> {
        if let Some(load_steps) = self.begun.load_steps {
            self.source.end(load_steps.end(self.so_far.lost.is_some() || self.interrupt.is_set()));
        }
        self.begun.refused.map(|limit| (self.find.most, limit))
    }
}

/// Attempts to start the workers: what fits on this machine varies, since a server on it takes memory too.
const ATTEMPTS: u32 = 3;

/// What the steps of a search share.
pub(super) struct Begun<W> {
    /// The largest possible load, and (`refused`) what limits it.
    pub(super) most: u64,
    refused: Option<Limit>,
    /// Workers for the largest load, if they are kept for the whole search.
    load_steps: Option<LoadSteps<W>>,
}

/// Determines the largest possible load, and starts the workers.
///
/// # Errors
/// This machine cannot carry out the least load.
fn begin<S: WorkerSource>(
    source: &mut S,
    find: &Find,
    least: u64,
    plan: &Plan,
    say: &mut dyn FnMut(&str),
) -> Result<Begun<S::Workers>, Refusal> {
    let mut attempts = 1..ATTEMPTS;
    loop {
        let (most, refused) = match find.by {
            By::Connections => source.most(find, least, plan)?,
            _ => (find.most, None),
        };
        if !matches!(find.by, By::Connections | By::Rate) {
            return Ok(Begun { most, refused, load_steps: None });
        }
        match source.workers((find.by, most, find.dwell), plan, say) {
            Err(Refusal::Findings(_)) if find.by == By::Connections && attempts.next().is_some() => {}
            workers => {
                let (workers, ground) = workers?;
                let load_steps = Some(LoadSteps::on(workers, ground, plan));
                return Ok(Begun { most, refused, load_steps });
            }
        }
    }
}

/// Time in which a gentle ramp dials a whole load; a smaller difference takes less. If several processes share a listener, a burst of
/// connections goes to the first process, which closes some when it is full while the others have room.
const GENTLE_S: u64 = 2;

fn gentle(load: u64) -> Ramp {
    Ramp::Rate(Rate::per_s(u32::try_from(load / GENTLE_S).unwrap_or(u32::MAX).max(1)))
}

/// Connections to the target's ports whose other end is on this machine.
fn standing(plan: &Plan) -> u64 {
    plan.ports().into_iter().filter_map(|port| net::established_at(port).ok()).sum()
}

/// Workers that hold a load, and wait for the next one.
struct LoadSteps<W> {
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
    fn on(workers: W, ground: Ground, plan: &Plan) -> LoadSteps<W> {
        let held = vec![0; plan.populations.len()];
        let to_redial = vec![0; held.len()];
        LoadSteps { workers, ground, held, to_redial, losses: Losses::default(), open: 0 }
    }

    /// Moves up or down to the load of `plan`, and runs its stages to the end or to an [`Early`] one. Returns the record.
    fn go_to(&mut self, plan: &Plan, root: &Root, interrupt: &Interrupt, early: Early<'_>) -> Record {
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

    /// Ends the load, and returns the workers; `is_early`: without waiting for them longer than [`ENDS_WITHIN`].
    fn end(mut self, is_early: bool) -> W {
        match is_early {
            true => stop_within(&mut self.workers, ENDS_WITHIN),
            false => stop(&mut self.workers, |_| {}),
        }
        self.workers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gentle_step_dials_its_load_in_two_seconds() {
        let rates = [1, 3, 1_000, u64::MAX].map(gentle);
        assert_eq!(rates, [1, 1, 500, u32::MAX].map(|per_s| Ramp::Rate(Rate::per_s(per_s))));
    }
}
