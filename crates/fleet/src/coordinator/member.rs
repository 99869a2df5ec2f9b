//! The coordinator's state of an agent: its parts, its lease and clock, its entries in the log, and what they add up to.

use std::collections::{BTreeMap, VecDeque};

use plan::Role;
use run::Update;
use samples::{AgentState, AgentSummary, Latency, Phase, Tick};
use units::Nanos;

use super::{
    Stage,
    pending::{Arrived, Supplied, Takes},
    seconds::Seconds,
};
use crate::{
    clock::Way,
    message::{
        Assign, Calibrated, Can, Here, Incarnation, LEASE, LOST_AFTER, Ready, Record, Running, Seal, Sums,
        TakeOver, Up,
    },
    split::{Candidate, Heir},
};

/// Maximum number of entries to keep that arrived before a missing one.
const HELD_BACK: usize = 100_000;

/// An update for the conductor of the run.
#[derive(Debug)]
pub(crate) enum Change {
    /// The counts of a worker.
    Tick(u32, Box<Tick>),
    /// A worker is lost; its later ticks are late.
    Lost(u32),
    /// A lost worker was only disconnected.
    Back(u32),
    /// A worker with this role was added.
    Joined(Role),
}

impl Change {
    /// Converts it for the conductor. A tick is stored in `read`.
    pub(crate) fn read(self, read: &mut Box<Tick>) -> Update<'_> {
        match self {
            Change::Tick(worker, tick) => {
                *read = tick;
                Update::Tick(worker, read)
            }
            Change::Lost(worker) => Update::Lost(worker),
            Change::Back(worker) => Update::Back(worker),
            Change::Joined(role) => Update::Joined(role),
        }
    }
}

/// An agent that takes part in the run.
#[derive(Default)]
pub(super) struct Member {
    pub(super) who: Incarnation,
    network: String,
    cores: u32,
    calibrated: Option<Calibrated>,
    pub(super) state: AgentState,
    /// The state last reported to the user, and the number of agents reported as having taken over its part.
    said: (AgentState, usize),
    pub(super) answer: Answer,
    /// Its capacity; `None` in a run that was taken up.
    can: Option<Can>,
    /// Its parts: the original one, and those it has taken over.
    pub(super) parts: Vec<Assign>,
    /// Parts of other agents that it is to take over.
    pub(super) takes: Takes,
    /// The table values being sent to it.
    pub(super) supplied: Option<Supplied>,
    /// Table values that have arrived for its original part.
    pub(super) arrived: Arrived,
    /// The handover of its parts to others has been decided, and (`is_replaced`) stored.
    pub(super) is_decided: bool,
    pub(super) is_replaced: bool,
    /// It had completed its parts before it was lost.
    pub(super) is_through: bool,
    pub(super) running: Option<Running>,
    /// When it last gave a sign of life.
    pub(super) heard: Nanos,
    /// The broker was unreachable, and since then it has not reported, or had entries that were not stored.
    pub(super) is_behind: bool,
    /// When the next message is due, and when the last one was sent.
    pub(super) due: Nanos,
    pub(super) led: Nanos,
    /// When the last message that renews its lease was sent.
    pub(super) leased: Nanos,
    /// The offset of its clock, and the network delay.
    pub(super) way: Way,
    /// Clock error of the previous coordinator's estimate for this agent.
    pub(super) error: Option<Nanos>,
    workers: Vec<Worker>,
    pub(super) log: Log,
    /// How late its shards sent at full load.
    lag: Latency,
    /// Maximum delay of a turn of its event loops.
    stalled: Nanos,
    /// CPU time of its process at its first report of running, and the time of that report.
    idle: Option<(Nanos, Nanos)>,
    cpu_share: Option<f64>,
    /// Total time of disconnections from which it came back.
    away: Nanos,
    lost_at: Option<Nanos>,
    /// Why it was lost.
    how: String,
    /// Time during which no agent had its parts, once they were taken over.
    gap: Nanos,
    /// The agents that took over its parts, and why one failed to.
    taken_over_by: Vec<String>,
    pub(super) not_taken: Option<String>,
}

/// A worker of an agent: what its ticks add up to.
struct Worker {
    number: u32,
    role: Role,
    sums: Sums,
    /// Open connections, and those held when the worker's population was last at its peak load.
    open: u64,
    held: u64,
    /// Outstanding requests.
    under_way: u64,
    /// Connections that were closed before the end of its load because they had nothing more to send. They count as held.
    released: u64,
    /// Its load has ended. Connections opened later are not held.
    has_ended: bool,
}

/// The agent's last reply before the run begins.
#[derive(Default)]
pub(super) enum Answer {
    #[default]
    None,
    /// It takes part.
    Accepted,
    /// It has this many of the table values that its part uses.
    Lacks(u64),
    Ready(Ready),
}

impl Answer {
    /// Whether this is the reply for which the stage waits.
    pub(super) fn is_of(&self, stage: &Stage) -> bool {
        match stage {
            Stage::Offering(_) => matches!(self, Answer::Accepted),
            _ => matches!(self, Answer::Ready(_)),
        }
    }
}

/// An agent's entries in the log of the run: each is taken once, in order.
#[derive(Default)]
pub(super) struct Log {
    /// The next sequence number.
    next: u64,
    /// Entries that arrived early.
    early: BTreeMap<u64, Record>,
    pub(super) seal: Option<Seal>,
}

impl Log {
    /// Number of entries missing before the last one that arrived.
    fn missing(&self) -> u64 {
        self.early.last_key_value().map_or(0, |(last, _)| last + 1 - self.next - self.early.len() as u64)
    }
}

impl Member {
    pub(super) fn new(here: Here) -> Member {
        let Here { who, network, cores, calibrated, .. } = here;
        Member { network, cores, calibrated, ..Member::again(who, Answer::None) }
    }

    /// A member that took part before this coordinator process began, or a new one.
    pub(super) fn again(who: Incarnation, answer: Answer) -> Member {
        Member { who, answer, ..Member::default() }
    }

    /// The agent as a candidate for a part; `None` before it has accepted.
    pub(super) fn candidate(&self) -> Option<Candidate<'_>> {
        let Member { network, cores, calibrated, can, .. } = self;
        let can = can.as_ref()?;
        Some(Candidate { id: &self.who.id, network, cores: *cores, calibrated: *calibrated, can })
    }

    /// Notes that it has accepted, with this capacity.
    pub(super) fn accept(&mut self, can: Can) {
        self.can = Some(can);
        self.answer = Answer::Accepted;
    }

    /// The agent as a candidate for parts of a lost one. `given`: the parts that it is already to get in this handover.
    pub(super) fn heir<'a>(&'a self, given: &'a [Assign]) -> Heir<'a> {
        Heir { can: self.can.as_ref(), parts: &self.parts, given }
    }

    pub(super) fn ready(&self) -> &Ready {
        static NOT_YET: Ready =
            Ready { roles: Vec::new(), wanted: 0, threads: Vec::new(), cores: 0, io: String::new() };
        match &self.answer {
            Answer::Ready(ready) => ready,
            _ => &NOT_YET,
        }
    }

    /// Adds workers with these roles, numbered from `first`.
    pub(super) fn add_workers(&mut self, first: u32, roles: &[Role]) {
        let worker = |(number, role): (u32, &Role)| {
            let (sums, role) = (Sums::default(), *role);
            Worker { number, role, sums, open: 0, held: 0, under_way: 0, released: 0, has_ended: false }
        };
        self.workers.extend((first..).zip(roles).map(worker));
    }

    pub(super) fn hear(&mut self, now: Nanos, up: &Up, changes: &mut VecDeque<Change>) {
        self.be_heard(now, changes);
        if let Some(sent) = up.echo {
            self.way.learn(sent, up.at, now);
        }
    }

    /// Notes a sign of life.
    pub(super) fn be_heard(&mut self, now: Nanos, changes: &mut VecDeque<Change>) {
        if let (Some(lost_at), AgentState::Lost) = (self.lost_at, self.state)
            && self.log.seal.is_none()
            && !self.is_replaced
        {
            // It still has its part: its lease is longer than the silence after which it counts as lost.
            self.away = self.away + now.since(lost_at);
            (self.state, self.lost_at) = (AgentState::Ready, None);
            // Renew its lease at once: it was running out.
            self.due = Nanos::ZERO;
            changes.extend(self.workers.iter().map(|worker| Change::Back(worker.number)));
        }
        self.heard = now;
    }

    /// Requests of a population that it has sent, or (`arrives`) arrivals, according to the ticks received.
    pub(super) fn begun(&self, population: u16, arrives: bool) -> u64 {
        let own = self.workers.iter().filter(|worker| worker.role == Role::Population(population));
        own.map(|worker| if arrives { worker.sums.arrived() } else { worker.sums.begun() }).sum()
    }

    /// The part that it is to take over next.
    pub(super) fn next_take(&self) -> Option<&TakeOver> {
        self.takes.get(self.running?.taken)
    }

    /// Notes that it waits for table values, and has this many. Returns whether that is progress.
    pub(super) fn lack(&mut self, has: u64) -> bool {
        let has_more = !matches!(self.answer, Answer::Lacks(before) if before >= has);
        if has_more {
            (self.answer, self.due) = (Answer::Lacks(has), Nanos::ZERO);
        }
        has_more
    }

    /// The part for which it waits for table values (`None`: its original one, else the number of a takeover), and how many it has.
    pub(super) fn lacks(&self) -> Option<(Option<u32>, u64)> {
        match (&self.answer, self.running) {
            (Answer::Lacks(has), _) => Some((None, *has)),
            (_, Some(Running { has: Some(has), taken, .. })) => Some((Some(taken), has)),
            _ => None,
        }
    }

    /// Handles a report of running, sent at `at` by the agent's clock.
    pub(super) fn run(&mut self, now: Nanos, at: Nanos, running: Running) {
        if self.running.is_none_or(|before| (before.taken, before.has) < (running.taken, running.has)) {
            self.takes.go_on(now);
        }
        if self.running.is_some_and(|before| before.has != running.has) {
            self.due = Nanos::ZERO;
        }
        let (cpu, from) = *self.idle.get_or_insert((running.cpu, at));
        let all = at.since(from).secs_f64() * f64::from(running.cores);
        if all > 0.0 {
            self.cpu_share = Some(running.cpu.since(cpu).secs_f64() / all);
        }
        self.running = Some(running);
        self.is_behind &= running.unstored > 0;
    }

    /// Whether it is lost and, as far as known, still has its part.
    pub(super) fn may_come_back(&self) -> bool {
        self.log.seal.is_none() && self.lost_at.is_some() && !self.is_replaced
    }

    /// Whether its part is over: it has ended, or its lease has run out.
    pub(super) fn is_gone(&self, now: Nanos) -> bool {
        match self.state {
            AgentState::Ready => false,
            AgentState::Lost => !self.may_come_back() || now.since(self.heard) >= LEASE,
            AgentState::Done | AgentState::Refused => true,
        }
    }

    /// Resets its silence: the connection to it is interrupted.
    pub(super) fn be_unheard(&mut self, now: Nanos) {
        (self.heard, self.is_behind) = (now, self.log.seal.is_none());
    }

    /// Marks it as lost because of its silence.
    pub(super) fn lose_unheard(&mut self, changes: &mut VecDeque<Change>) {
        self.lose(&format!("no heartbeat for {LOST_AFTER}"), changes);
    }

    /// Marks it as lost.
    pub(super) fn lose(&mut self, how: &str, changes: &mut VecDeque<Change>) {
        if self.state == AgentState::Ready {
            how.clone_into(&mut self.how);
            (self.state, self.lost_at, self.is_behind) = (AgentState::Lost, Some(self.heard), false);
            self.is_through = self.has_completed();
            changes.extend(self.workers.iter().map(|worker| Change::Lost(worker.number)));
        }
    }

    /// Whether the load of all its parts has ended.
    fn has_completed(&self) -> bool {
        let has_ended = |worker: &Worker| worker.has_ended || matches!(worker.role, Role::Probe(_));
        self.workers.iter().all(has_ended) && self.takes.are_settled()
    }

    /// Notes that another agent took over one of its parts, at about this time.
    pub(super) fn be_taken_over(&mut self, by: String, at: Nanos) {
        if !self.taken_over_by.contains(&by) {
            self.taken_over_by.push(by);
        }
        self.gap = self.gap.max(at.since(self.lost_at.unwrap_or(self.heard)));
    }

    /// Whether it was lost before the end of its load, and its parts were neither taken over nor refused.
    pub(super) fn is_left_alone(&self) -> bool {
        let is_taken = !self.taken_over_by.is_empty() || self.not_taken.is_some();
        self.state == AgentState::Lost && !self.is_through && !is_taken
    }

    /// It no longer takes part. Remaining counts are in the log.
    pub(super) fn idle(&mut self, changes: &mut VecDeque<Change>) {
        if self.log.seal.is_none() {
            self.lose("it no longer takes part in the run", changes);
            self.lost_at = None;
        }
    }

    /// Takes an entry from the log.
    pub(super) fn take(&mut self, sequence: u64, record: Record) {
        // Ignores duplicates.
        if sequence >= self.log.next && self.log.early.len() < HELD_BACK {
            self.log.early.insert(sequence, record);
        }
    }

    /// The next entry in sequence.
    pub(super) fn poll_record(&mut self) -> Option<Record> {
        let record = self.log.early.remove(&self.log.next)?;
        self.log.next += 1;
        Some(record)
    }

    /// Passes the ticks of a second to the conductor, and adds them to what is shown of each agent. `is_below`: whether a role's
    /// population is below its peak load, so that its held connections are already known.
    pub(super) fn count(
        &mut self,
        mut ticks: Vec<Tick>,
        is_below: impl Fn(Role) -> bool,
        (place, seconds): (usize, &mut Seconds),
        changes: &mut VecDeque<Change>,
    ) {
        ticks.truncate(self.workers.len());
        let mut filed = ticks.iter().zip(&self.workers).map(|(tick, worker)| run::filed(worker.role, tick));
        let late = filed.next().and_then(|mut all| {
            // The second that the conductor derives from the first tick.
            let second = run::second_of(&all);
            filed.for_each(|other| all.to_mut().merge(&other));
            seconds.add(place, second, &all, self.state == AgentState::Lost)
        });
        if let Some(first) = ticks.first_mut() {
            // A late tick belongs to a second already shown; the conductor adds it there.
            first.agents = late;
        }
        for (worker, tick) in self.workers.iter_mut().zip(ticks) {
            worker.sums.add(&tick);
            // Requests outstanding in the last tick stay without a response.
            worker.under_way = tick.unsettled;
            self.lag.merge(&tick.lag);
            self.stalled = self.stalled.max(tick.stalled);
            let has_ended = tick.phase == Phase::Drain;
            if !std::mem::replace(&mut worker.has_ended, has_ended) || !has_ended {
                worker.open = tick.open;
                worker.released += tick.counts.ended_after;
                if !is_below(worker.role) {
                    worker.held = tick.open + worker.released;
                }
            }
            changes.push_back(Change::Tick(worker.number, Box::new(tick)));
        }
    }

    pub(super) fn seal(&mut self, seal: Seal, changes: &mut VecDeque<Change>) {
        self.is_behind = false;
        if let Some(why) = &seal.why {
            let is_lost = self.state == AgentState::Lost;
            self.lose(why, changes);
            // Its load has ended only because of the early end.
            self.is_through &= is_lost;
        } else if self.state == AgentState::Ready {
            self.state = AgentState::Done;
        }
        self.log.seal = Some(seal);
    }

    /// The next notice for the user about this agent.
    pub(super) fn poll_notice(&mut self) -> Option<String> {
        let (id, before) = (&self.who.id, self.said);
        self.said = (self.state, self.taken_over_by.len());
        match (before.0, self.state) {
            (AgentState::Ready, AgentState::Lost) => Some(format!("agent {id} was lost: {}", self.how)),
            (AgentState::Lost, AgentState::Ready) => {
                Some(format!("agent {id} is back; it was away for {}", self.away.brief()))
            }
            _ => {
                let by = self.taken_over_by.get(before.1..).filter(|by| !by.is_empty())?;
                Some(format!("agent {} took over the part of {id}", by.join(", ")))
            }
        }
    }

    /// Why its part ended early, or was left undone.
    fn why(&self) -> Option<String> {
        let own = self.log.seal.as_ref().and_then(|seal| seal.why.clone());
        let own = own.or_else(|| (self.state == AgentState::Lost).then(|| self.how.clone()));
        own.into_iter().chain(self.not_taken.clone()).reduce(|own, other| format!("{own}; {other}"))
    }

    /// Requests sent, by its ticks.
    #[cfg(test)]
    pub(super) fn sent(&self) -> u64 {
        self.workers.iter().map(|worker| worker.sums.sent()).sum()
    }

    /// The agent's summary; `start`: when the run began.
    pub(super) fn summary(&self, start: Option<Nanos>) -> AgentSummary {
        let began = self.running.map(|running| self.way.back(running.began));
        let late = began.zip(start).map(|(began, start)| (began - start.0 as i128) as f64 / 1e6);
        let seal = self.log.seal.as_ref();
        let is_lost = self.state == AgentState::Lost;
        // The probe's connections are not part of the load.
        let is_load = |worker: &&Worker| matches!(worker.role, Role::Population(_));
        let of_load =
            |count: fn(&Worker) -> u64| -> u64 { self.workers.iter().filter(is_load).map(count).sum() };
        let is_whole = |seal: &Seal| seal.sums.iter().eq(self.workers.iter().map(|worker| &worker.sums));
        AgentSummary {
            id: self.who.id.clone(),
            state: self.state,
            wanted: self.ready().wanted,
            cores: self.ready().cores,
            held: if is_lost && !self.is_through { 0 } else { of_load(|worker| worker.held) },
            lost_with: if is_lost { of_load(|worker| worker.open) } else { 0 },
            requests_lost: if is_lost { of_load(|worker| worker.under_way) } else { 0 },
            began_late_ms: late,
            clock_error_ms: self.way.error().map(|error| error.0 as f64 / 1e6),
            lag_p99_us: (self.lag.count() > 0).then(|| self.lag.quantile(0.99).0 as f64 / 1e3),
            cpu_share: self.cpu_share,
            stall_us: self.stalled.0 as f64 / 1e3,
            away_s: self.away.secs_f64(),
            gap_s: self.gap.secs_f64(),
            closed_by_lease: seal.map_or(0, |seal| seal.closed_by_lease),
            missing_ticks: self.log.missing(),
            sealed: seal.is_some_and(is_whole),
            why: self.why(),
            taken_over_by: self.taken_over_by.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
