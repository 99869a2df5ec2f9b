//! An agent's side of a run. It is pure except for the [`Machine`] that carries the load: messages and the time are inputs; reports and
//! log entries are outputs. An agent may be under load only while its lease lasts, which the coordinator renews; this way a lost agent
//! ends its load even if no message reaches it.

mod allow;
mod caps;
mod counting;
mod machine;
mod notes;
mod ramp_down;
mod service;
mod suspension;

use std::collections::VecDeque;

use run::Order;
use units::Nanos;

pub use allow::Allow;
pub use caps::{Caps, Forbidden, Held};
pub(crate) use machine::Machine;
pub use machine::Planner;
pub use service::Service;

use self::{
    counting::{Counting, gather},
    notes::Notes,
    ramp_down::RampDown,
};
use crate::{
    error::Error,
    message::{
        Assign, Body, Busy, Calibrated, Can, Down, Here, Incarnation, LEASE, Lead, Offer, PROTOCOL, Ready,
        Record, Report, Rows, Running, Seal, TakeOver, TookOver, Up,
    },
};

/// Number of ended runs to remember, so that a late message does not start one again.
const REMEMBERED: usize = 32;

/// The state of an agent.
pub(crate) struct Agent<M> {
    here: Here,
    machine: M,
    work: Option<Work>,
    /// Entries of the current run that the broker has not stored yet.
    unstored: u32,
    /// CPU time used by this process.
    cpu: Nanos,
    ended: VecDeque<String>,
    reports: VecDeque<(String, Up)>,
    records: VecDeque<(String, Record)>,
    notes: Notes,
}

/// The agent's part in a run.
struct Work {
    run: String,
    target: String,
    fingerprint: String,
    term: u32,
    /// When the last message from the coordinator arrived.
    heard: Nanos,
    stage: Stage,
    /// Until when the agent may be under load, unless the lease is renewed.
    lease: Nanos,
    /// Orders received so far.
    orders: Vec<Order>,
    /// Number of other agents' parts that it took over, or failed to.
    taken: u32,
    /// A part that waits for table values.
    filling: Option<Filling>,
    begin: Option<Nanos>,
    /// CPU time of this process up to the last second counted.
    cpu: Nanos,
    is_stopping: bool,
    /// The early end of its load, if in progress.
    ramp_down: Option<RampDown>,
    /// Connections closed since then.
    closed_by_lease: u64,
    /// Why the part ends early, if it does.
    why: Option<String>,
}

/// A part that waits for the table values that it uses.
struct Filling {
    /// For a part that is taken over: its number, and the agent that had it.
    of: Option<(u32, Incarnation)>,
    /// Number of values needed, and those that have arrived.
    needed: u64,
    values: Vec<String>,
}

impl Filling {
    /// Number of values that have arrived.
    fn has(&self) -> u64 {
        self.values.len() as u64
    }

    /// Takes the next values. Ignores duplicates, values that arrive early, and those of another part.
    fn take(&mut self, rows: Rows) {
        let is_own = rows.number == self.of.as_ref().map(|(number, _)| *number);
        let fit = self.has() + rows.values.len() as u64 <= self.needed;
        if is_own && fit && rows.from == self.has() {
            self.values.extend(rows.values);
        }
    }
}

enum Stage {
    Accepted(Can),
    Ready(Ready, Vec<u32>),
    Running(Nanos, Counting),
    Sealed(Nanos),
}

impl<M: Machine> Agent<M> {
    pub(crate) fn new(here: Here, machine: M) -> Agent<M> {
        Agent {
            here,
            machine,
            work: None,
            unstored: 0,
            cpu: Nanos::ZERO,
            ended: VecDeque::new(),
            reports: VecDeque::new(),
            records: VecDeque::new(),
            notes: Notes::default(),
        }
    }

    /// The agent's announcement.
    pub(crate) fn here(&self, now: Nanos) -> Here {
        let busy = |work: &Work| Busy {
            run: work.run.clone(),
            fingerprint: work.fingerprint.clone(),
            term: work.term,
            silent: now.since(work.heard),
        };
        Here { run: self.work.as_ref().map(busy), ..self.here.clone() }
    }

    /// Sets whether the agent refuses new runs.
    pub(crate) fn drain(&mut self, is_draining: bool) {
        self.here.is_draining = is_draining;
    }

    /// Sets the calibration that the agent announces.
    pub(crate) fn calibrate(&mut self, calibrated: Option<Calibrated>) {
        self.here.calibrated = calibrated;
    }

    #[cfg(test)]
    pub(crate) fn machine(&self) -> &M {
        &self.machine
    }

    /// Whether the agent takes part in no run.
    #[cfg(test)]
    pub(crate) fn is_free(&self) -> bool {
        self.work.is_none()
    }

    /// Whether the agent takes part in no run, or has completed its part.
    pub(crate) fn is_done(&self) -> bool {
        self.work.as_ref().is_none_or(|work| matches!(work.stage, Stage::Sealed(_)))
    }

    /// Sets the number of entries not stored yet, and the CPU time used by this process.
    pub(crate) fn set_state(&mut self, unstored: u32, cpu: Nanos) {
        (self.unstored, self.cpu) = (unstored, cpu);
    }

    /// The next report, with the run to whose coordinator it is sent.
    pub(crate) fn poll_report(&mut self) -> Option<(String, Up)> {
        self.reports.pop_front()
    }

    /// The next entry for a run's log.
    pub(crate) fn poll_record(&mut self) -> Option<(String, Record)> {
        self.records.pop_front()
    }

    /// Handles a message. A message with invalid names is ignored: its reply would have no valid subject.
    pub(crate) fn handle(&mut self, now: Nanos, down: Down) {
        if !down.has_names() {
            return;
        }
        let Down { run, term, sent, body } = down;
        let is_own = self.work.as_ref().is_some_and(|work| work.run == run);
        if let (false, Body::Offer(offer)) = (is_own, &body) {
            let report = self.consider(now, &run, term, offer);
            return self.report(now, run, term, Some(sent), report);
        }
        // The coordinator process with the highest term leads. The other one recognises from the reply that it does not.
        if let Some(work) = self.work.as_mut().filter(|work| is_own && term >= work.term) {
            (work.term, work.heard) = (term, now);
            let is_running = matches!(work.stage, Stage::Running(..));
            let lease = match body {
                Body::Lead(Lead { lease: Some(lease), .. }) => lease,
                ref other if is_running && !other.renews() => Nanos::ZERO,
                _ => Nanos::NEVER,
            };
            // A delayed message must not extend the lease beyond its usual length.
            work.lease = work.lease.max(lease.min(now + LEASE));
            match body {
                Body::Offer(_) => {}
                Body::Assign(assign) => self.take_part(now, &assign, None),
                Body::Lead(lead) => self.follow(now, lead),
                Body::TakeOver(part) => {
                    let TakeOver { number, of, assign } = *part;
                    self.take_part(now, &assign, Some((number, of)));
                }
                Body::Rows(rows) => {
                    if let Some(filling) = &mut work.filling {
                        filling.take(rows);
                    }
                    self.fill(now);
                }
                Body::Release => self.end(),
            }
        }
        self.report_state(now, run, term, Some(sent));
    }

    /// Reports the agent's state in this run.
    fn report_state(&mut self, now: Nanos, run: String, term: u32, echo: Option<Nanos>) {
        let (term, report) = match self.work.as_ref().filter(|work| work.run == run) {
            Some(work) => (work.term, self.report_of(work)),
            None => (term, Report::Idle),
        };
        self.report(now, run, term, echo, report);
    }

    fn report(&mut self, at: Nanos, run: String, term: u32, echo: Option<Nanos>, report: Report) {
        let who = self.here.who.clone();
        self.reports.push_back((run, Up { who, term, echo, at, report }));
    }

    fn report_of(&self, work: &Work) -> Report {
        match &work.stage {
            Stage::Accepted(can) => match &work.filling {
                Some(filling) => Report::Lacks { has: filling.has() },
                None => Report::Accepted { can: can.clone() },
            },
            Stage::Ready(ready, _) => Report::Ready(ready.clone()),
            Stage::Running(began, _) | Stage::Sealed(began) => {
                let (began, orders, taken) = (*began, work.orders.len() as u32, work.taken);
                let has = work.filling.as_ref().map(Filling::has);
                let (unstored, cpu, cores) = (self.unstored, self.cpu, self.here.cores);
                Report::Running(Running { began, orders, taken, has, unstored, cpu, cores })
            }
        }
    }

    fn consider(&mut self, now: Nanos, run: &str, term: u32, offer: &Offer) -> Report {
        if self.ended.iter().any(|ended| ended == run) {
            return Report::Idle;
        }
        let why = if offer.protocol != PROTOCOL {
            let (theirs, version) = (offer.protocol, &self.here.version);
            Some(format!(
                "this agent is throng {version} with protocol {PROTOCOL}, the coordinator has protocol {theirs}; use one version for all"
            ))
        } else if let Some(work) = &self.work {
            Some(format!("it takes part in run {}", work.run))
        } else {
            self.here.is_draining.then(|| "it is draining".to_owned())
        };
        let accepted = match why {
            Some(why) => Err(why),
            None => self.machine.accept(offer).map_err(|why| why.to_string()),
        };
        match accepted {
            Err(why) => {
                self.notes.refused(run, &why);
                Report::Refused { why }
            }
            Ok(can) => {
                self.work = Some(Work {
                    run: run.to_owned(),
                    target: notes::target_of(offer),
                    fingerprint: offer.fingerprint.clone(),
                    term,
                    heard: now,
                    stage: Stage::Accepted(can.clone()),
                    lease: now + LEASE,
                    orders: Vec::new(),
                    taken: 0,
                    filling: None,
                    begin: None,
                    cpu: Nanos::ZERO,
                    is_stopping: false,
                    ramp_down: None,
                    closed_by_lease: 0,
                    why: None,
                });
                Report::Accepted { can }
            }
        }
    }

    /// Takes the original part, or the part `of` a lost agent with its number, as soon as its table values have arrived.
    fn take_part(&mut self, now: Nanos, assign: &Assign, of: Option<(u32, Incarnation)>) {
        let Some(work) = self.work.as_mut().filter(|work| work.filling.is_none()) else { return };
        let is_next = match (&work.stage, &of) {
            (Stage::Accepted(_), None) => true,
            (Stage::Running(..), Some((number, _))) => !work.is_stopping && *number == work.taken,
            _ => false,
        };
        if !is_next {
            return;
        }
        match (self.machine.rows(assign), of) {
            (Ok(needed), of) => {
                work.filling = Some(Filling { of, needed, values: Vec::new() });
                self.fill(now);
            }
            (Err(why), None) => self.refuse(now, &why),
            (Err(why), Some((_, of))) => self.took_over(of.id, Err(why)),
        }
    }

    /// Sets up, or takes over, the part whose values are complete.
    fn fill(&mut self, now: Nanos) {
        let Some(work) = &mut self.work else { return };
        let Some(Filling { of, values, .. }) =
            work.filling.take_if(|filling| filling.has() == filling.needed)
        else {
            return;
        };
        match (of, &mut work.stage) {
            (None, Stage::Accepted(_)) => match self.machine.set_up(values) {
                Ok((ready, shards)) => {
                    work.stage = Stage::Ready(Ready { cores: self.here.cores, ..ready }, shards)
                }
                Err(why) => self.refuse(now, &why),
            },
            (Some((_, of)), Stage::Running(_, counting)) if !work.is_stopping => {
                let taken = self.machine.set_up(values).map(|(ready, shards)| {
                    self.machine.begin(&work.orders);
                    counting.add(ready.roles.len(), &shards);
                    ready
                });
                self.took_over(of.id, taken);
            }
            _ => {}
        }
    }

    fn took_over(&mut self, of: String, taken: Result<Ready, Error>) {
        let Some(work) = &mut self.work else { return };
        work.taken += 1;
        let record = match taken {
            Ok(ready) => TookOver { of, ready, why: None },
            Err(why) => TookOver { of, why: Some(why.to_string()), ..TookOver::default() },
        };
        self.records.push_back((work.run.clone(), Record::TookOver(Box::new(record))));
    }

    /// Refuses a part that was accepted.
    fn refuse(&mut self, now: Nanos, why: &Error) {
        let Some(work) = &self.work else { return };
        let (run, term, why) = (work.run.clone(), work.term, why.to_string());
        self.notes.refused(&run, &why);
        self.report(now, run, term, None, Report::Refused { why });
        self.end();
    }

    fn follow(&mut self, now: Nanos, lead: Lead) {
        let Some(work) = &mut self.work else { return };
        work.begin = work.begin.or(lead.begin);
        // Skips orders that have already arrived, and all orders if an earlier one is missing.
        let has = work.orders.len() as u32;
        for order in lead.orders.into_iter().skip(has.saturating_sub(lead.from) as usize) {
            if lead.from > has {
                break;
            }
            work.orders.push(order);
            if let Stage::Running(..) = work.stage {
                self.machine.order(order);
            }
            work.is_stopping |= order == Order::STOP;
        }
        self.begin(now);
    }

    /// Starts the shards when their time has come.
    fn begin(&mut self, now: Nanos) {
        let Some(work) = self.work.as_mut().filter(|work| work.begin.is_some_and(|at| at <= now)) else {
            return;
        };
        let Stage::Ready(ready, shards) = &work.stage else { return };
        self.notes.begins(&work.run, ready.wanted, &work.target);
        self.machine.begin(&work.orders);
        work.cpu = self.cpu;
        work.stage = Stage::Running(now, Counting::new(ready.roles.len(), shards));
        let (run, term) = (work.run.clone(), work.term);
        self.report_state(now, run, term, None);
    }

    /// When the agent must act next, even without a message.
    pub(crate) fn acts_at(&self) -> Nanos {
        match &self.work {
            Some(work) if matches!(work.stage, Stage::Ready(..)) => work.begin.unwrap_or(Nanos::NEVER),
            _ => Nanos::NEVER,
        }
    }

    /// Advances the agent: starts in time, hands over counts, and ends a part whose lease has expired.
    pub(crate) fn poll(&mut self, now: Nanos) {
        self.begin(now);
        let Some(work) = &mut self.work else { return };
        let is_orphan = now >= work.lease;
        match &mut work.stage {
            Stage::Running(_, counting) => {
                let is_early = !counting.has_ended();
                if is_orphan && !work.is_stopping {
                    work.why.get_or_insert_with(notes::expired);
                    work.is_stopping = true;
                    work.ramp_down = Some(RampDown::new(&work.orders, now, is_early));
                }
                if work.why.is_some() && !work.is_stopping {
                    work.is_stopping = true;
                    work.ramp_down = Some(RampDown::leaving(now, is_early));
                }
                let ramp_down = work.ramp_down.as_mut();
                let due = ramp_down.map(|it| it.poll(now, counting.awaits())).unwrap_or_default();
                due.into_iter().for_each(|order| self.machine.order(order));
                let has_ended = gather(&mut self.machine, counting, &mut work.why);
                while let Some(mut ticks) = counting.poll(has_ended) {
                    // CPU time belongs to the process, not to a worker: it is counted in the first one.
                    let used = self.cpu.since(std::mem::replace(&mut work.cpu, self.cpu));
                    ticks.iter_mut().take(1).for_each(|first| first.cpu_ns = used.0);
                    if let Some(ramp_down) = &work.ramp_down {
                        if ramp_down.is_of_lease() {
                            work.closed_by_lease +=
                                ticks.iter().map(|tick| tick.counts.finished).sum::<u64>();
                        }
                        ticks.iter_mut().for_each(|tick| ramp_down.hide_end(tick));
                    }
                    self.records.push_back((work.run.clone(), Record::Ticks(ticks)));
                }
                if has_ended {
                    self.seal();
                }
            }
            stage if is_orphan => {
                if !matches!(stage, Stage::Sealed(_)) {
                    self.notes.ended(&work.run, Some(&notes::expired()));
                }
                self.end();
            }
            _ => {}
        }
    }

    fn seal(&mut self) {
        let Some(work) = &mut self.work else { return };
        let Stage::Running(began, counting) = &mut work.stage else { return };
        let (sums, closed_by_lease) = (counting.take_sums(), work.closed_by_lease);
        let seal = Seal { sums, why: work.why.take(), closed_by_lease };
        work.stage = Stage::Sealed(*began);
        self.notes.ended(&work.run, seal.why.as_deref());
        self.records.push_back((work.run.clone(), Record::Sealed(seal)));
    }

    fn end(&mut self) {
        self.machine.end();
        let Some(work) = self.work.take() else { return };
        if let Stage::Running(..) = work.stage {
            self.notes.ended(&work.run, Some("its coordinator no longer needs it"));
        }
        if self.ended.len() == REMEMBERED {
            self.ended.pop_front();
        }
        self.ended.push_back(work.run);
    }
}
