//! The coordinator's side of a run. It is pure: reports of agents, log entries and the time are inputs; messages, log entries, and
//! updates for the run's conductor are outputs. Orders and handovers take effect only after they are stored in the log, so that another
//! coordinator process can take the run up.

mod fleet;
mod handover;
mod member;
mod pending;
mod replay;
mod search;
mod seconds;
mod sending;
mod stall;
mod supply;
mod terms;

use std::collections::{BTreeMap, VecDeque};

use plan::Role;
use run::Order;
use samples::{AgentState, AgentSummary, AgentTicks};
use units::Nanos;

pub use fleet::{Fleet, Job};
pub(crate) use member::Change;
#[cfg(test)]
pub(crate) use replay::Replay;
pub use search::Agents;
pub(crate) use supply::Supply;
pub use terms::OnLost;
pub(crate) use terms::Terms;

use self::{
    member::{Answer, Member},
    seconds::Seconds,
    stall::Stall,
};
use crate::{
    error::Error,
    message::{AGAIN, Author, Began, Down, Entry, Here, LOST_AFTER, Offer, Record, Report, Up},
    split::{self, Candidate},
};

/// Maximum time for an agent to resolve names and check its machine.
const PREPARES: Nanos = Nanos::from_secs(30);
/// Delay between storing that a run begins and its beginning, for the messages about it to arrive.
const BEGINS_IN: Nanos = Nanos::from_millis(500);
/// Number of clock samples per agent, and the interval between them.
const SAMPLES: u32 = 8;
const SAMPLES_EVERY: Nanos = Nanos::from_millis(30);
/// Maximum time for these samples, in case replies are lost.
const MEASURES: Nanos = Nanos::from_secs(3);
/// Reported if the part of a lost agent was not taken over, because the run ended before or there was no other agent.
const NOT_TAKEN_OVER: &str = "no agent took over its part before the run ended";

/// Leads agents through a run.
#[derive(Default)]
pub(crate) struct Coordinator {
    run: String,
    term: u32,
    stage: Stage,
    members: Vec<Member>,
    offer: Offer,
    terms: Terms,
    /// Table values to send, if the plan uses any.
    supply: Option<Supply>,
    /// Number of workers so far; the next worker's number.
    workers: u32,
    /// When the run began, by the coordinator's clock.
    start: Option<Nanos>,
    /// The stored orders of the run (`orders`), stored orders that follow a missing one (`early`), and the number of orders given by this
    /// process (`given`).
    orders: Vec<Order>,
    early: BTreeMap<u32, Order>,
    given: u32,
    /// Populations that have been ordered to their peak load, and whether they are below it now.
    peaked: BTreeMap<u16, bool>,
    /// A later process leads the run.
    is_deposed: bool,
    stall: Stall,
    messages: VecDeque<(String, Down)>,
    records: VecDeque<Record>,
    changes: VecDeque<Change>,
    /// What each member did in the seconds not taken yet, by its index.
    seconds: Seconds,
}

#[derive(Default)]
enum Stage {
    /// The plan is offered to the agents; fails at this time.
    Offering(Nanos),
    /// All agents have reported their capacity, which is all that was asked.
    Asked,
    Assigning(Nanos),
    /// Measures the agents' clocks, until this time at the latest.
    Measuring(Nanos),
    /// The beginning of the run is being stored.
    Storing,
    Begun,
    #[default]
    Over,
    Failed(Error),
}

impl Coordinator {
    /// Coordinates a new run with these agents.
    pub(crate) fn new(run: String, agents: Vec<Here>, offer: Offer, terms: Terms, now: Nanos) -> Coordinator {
        let (stage, members) =
            (Stage::Offering(now + PREPARES), agents.into_iter().map(Member::new).collect());
        Coordinator { run, stage, members, offer, terms, ..Coordinator::default() }
    }

    /// Takes up a run that another process has begun. Its log must be [passed in](Coordinator::take) up to the entry [`Record::Resumed`]
    /// of this process; afterwards it [leads](Coordinator::lead_from) the run.
    pub(crate) fn taking_up(run: String, term: u32, began: Began, terms: Terms) -> Coordinator {
        let mut coordinator = Coordinator::new(run, Vec::new(), Offer::default(), terms, Nanos::ZERO);
        let members = began.members.into_iter().map(|(who, ready, part, error)| {
            let mut member = Member::again(who, Answer::Ready(ready));
            (member.parts, member.error) = (vec![part], error);
            member
        });
        (coordinator.term, coordinator.members) = (term, members.collect());
        coordinator.stage = Stage::Begun;
        coordinator.number_workers();
        coordinator.records.push_back(Record::Resumed);
        coordinator
    }

    /// Whether all agents are ready, or why the run cannot start.
    pub(crate) fn is_ready(&self) -> Result<bool, &Error> {
        match &self.stage {
            Stage::Failed(why) => Err(why),
            Stage::Asked | Stage::Storing | Stage::Begun => Ok(true),
            _ => Ok(false),
        }
    }

    /// When the run began, by the clock of this process.
    pub(crate) fn start(&self) -> Option<Nanos> {
        self.start
    }

    /// Whether a later process leads the run: then this one does nothing more.
    pub(crate) fn is_deposed(&self) -> bool {
        self.is_deposed
    }

    /// The roles of all workers, agent by agent.
    pub(crate) fn roles(&self) -> Vec<Role> {
        self.members.iter().flat_map(|member| member.ready().roles.clone()).collect()
    }

    /// The number of threads of each worker.
    pub(crate) fn threads(&self) -> Vec<u32> {
        self.members.iter().flat_map(|member| member.ready().threads.clone()).collect()
    }

    /// The agents' I/O: `uring`, `epoll`, `tun` or `mixed`.
    pub(crate) fn io(&self) -> &'static str {
        let mut ios = self.members.iter().map(|member| member.ready().io.as_str());
        match ios.next() {
            Some(first) if ios.any(|io| io != first) => "mixed",
            Some("uring") => "uring",
            Some("tun") => "tun",
            _ => "epoll",
        }
    }

    pub(crate) fn agents(&self) -> Vec<AgentSummary> {
        let is_reassigned = self.terms.on_lost == OnLost::Reassign;
        let of = |member: &Member| {
            let mut agent = member.summary(self.start);
            if is_reassigned && member.is_left_alone() {
                let own = agent.why.map(|why| format!("{why}; ")).unwrap_or_default();
                agent.why = Some(own + NOT_TAKEN_OVER);
            }
            agent
        };
        self.members.iter().map(of).collect()
    }

    /// What each agent did since the last call, up to this second.
    pub(crate) fn take_seconds(&mut self, until: u64) -> Box<AgentTicks> {
        let mut seconds = self.seconds.take(until);
        let lost = |(place, member): (usize, &Member)| (member.state == AgentState::Lost).then_some(place);
        self.members.iter().enumerate().filter_map(lost).for_each(|place| seconds.lose(place));
        Box::new(seconds)
    }

    /// Requests sent by each agent, as taken from the log.
    #[cfg(test)]
    pub(crate) fn taken(&self) -> Vec<(crate::message::Incarnation, u64)> {
        self.members.iter().map(|member| (member.who.clone(), member.sent())).collect()
    }

    /// Whether nothing more can arrive from any agent, including lost ones.
    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        // A search ends with a lost agent, whether it comes back or not.
        let is_given_up = |member: &Member| self.terms.is_step && member.state == AgentState::Lost;
        let is_gone = |member: &Member| member.is_gone(now) || is_given_up(member);
        !self.stall.hides(now) && self.members.iter().all(is_gone)
    }

    /// Notes that the broker is unreachable: the silence of agents says nothing about them.
    pub(crate) fn handle_disconnected(&mut self, now: Nanos) {
        let there = self.members.iter_mut().filter(|member| member.state == AgentState::Ready);
        there.for_each(|member| member.be_unheard(now));
    }

    /// Whether the broker was unreachable, and an agent may not have stored its counts yet.
    pub(crate) fn is_behind(&self) -> bool {
        self.members.iter().any(|member| member.is_behind)
    }

    /// The next message, with the subject of its agent.
    pub(crate) fn poll_message(&mut self) -> Option<(String, Down)> {
        self.messages.pop_front()
    }

    /// The next notice for the user about agents or the coordinator, one line.
    pub(crate) fn poll_notice(&mut self) -> Option<String> {
        self.stall.poll_notice().or_else(|| self.members.iter_mut().find_map(Member::poll_notice))
    }

    /// The next log entry. It takes effect when it is read back from the log.
    pub(crate) fn poll_record(&mut self) -> Option<Record> {
        self.records.pop_front()
    }

    pub(crate) fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Ends the run: all agents are released.
    pub(crate) fn release(&mut self) {
        self.stage = Stage::Over;
        self.members.iter_mut().for_each(|member| member.due = Nanos::ZERO);
    }

    pub(crate) fn poll_change(&mut self) -> Option<Change> {
        self.changes.pop_front()
    }

    /// Takes an order of the conductor. Agents receive it after it is stored.
    pub(crate) fn order(&mut self, order: Order) {
        let number = self.given;
        self.given += 1;
        if let (Order::Load(nth, connections, ..), Some(demand)) = (order, &self.terms.demand) {
            if demand.is_peak(nth, connections) {
                self.peaked.insert(nth, false);
            } else if let Some(is_below) = self.peaked.get_mut(&nth) {
                *is_below = true;
            }
        }
        // In a run that was taken up, an earlier process may have given this order.
        if number as usize >= self.orders.len() {
            self.records.push_back(Record::Ordered(number, order));
        }
    }

    /// Handles an agent's report.
    pub(crate) fn handle(&mut self, now: Nanos, up: Up) {
        if up.term > self.term {
            self.is_deposed = true;
            return;
        }
        let has_begun = matches!(self.stage, Stage::Begun);
        let Some(member) = self.members.iter_mut().find(|member| member.who.id == up.who.id) else { return };
        if member.who != up.who {
            // Another process of the same agent: the one that took part has ended.
            if has_begun {
                member.lose("it was started again", &mut self.changes);
            }
            return;
        }
        member.hear(now, &up, &mut self.changes);
        let id = up.who.id;
        match up.report {
            Report::Refused { why } if !has_begun => {
                self.stage = Stage::Failed(Error::Refused(format!("agent {id} refuses: {why}")))
            }
            Report::Accepted { can } if matches!(self.stage, Stage::Offering(_)) => member.accept(can),
            Report::Lacks { has } => supply::note_lack(&mut self.stage, member, now, has),
            Report::Ready(ready) if matches!(self.stage, Stage::Assigning(_)) => {
                member.answer = Answer::Ready(ready)
            }
            Report::Running(running) => member.run(now, up.at, running),
            Report::Idle if has_begun => member.idle(&mut self.changes),
            _ => {}
        }
    }

    /// Whether the run continues without a lost agent.
    pub(crate) fn carries_on(&self) -> bool {
        self.terms.on_lost != OnLost::Abort
    }

    /// Takes an entry of the run's log.
    pub(crate) fn take(&mut self, now: Nanos, entry: Entry) {
        match entry.author {
            Author::Coordinator { term } if term > self.term => self.is_deposed = true,
            Author::Coordinator { .. } => self.take_own(now, entry.record),
            Author::Agent(who) => {
                let Some(nth) = self.members.iter().position(|member| member.who == who) else { return };
                self.members[nth].take(entry.sequence, entry.record);
                while let Some(record) = self.members[nth].poll_record() {
                    self.take_of(nth, record);
                }
            }
        }
    }

    fn take_of(&mut self, nth: usize, record: Record) {
        let member = &mut self.members[nth];
        match record {
            Record::Ticks(ticks) => {
                let is_below =
                    |role| matches!(role, Role::Population(of) if self.peaked.get(&of) == Some(&true));
                member.count(ticks, is_below, (nth, &mut self.seconds), &mut self.changes);
            }
            Record::Sealed(seal) => member.seal(seal, &mut self.changes),
            Record::TookOver(took) => {
                member.takes.settle();
                // The time of the takeover: agents report every second, and in a run taken up each entry counts as a sign of life.
                let (by, ready, at) = (member.who.id.clone(), took.ready, member.heard);
                let (first, is_lost) = (self.workers, member.state == AgentState::Lost);
                member.add_workers(first, &ready.roles);
                self.workers += ready.roles.len() as u32;
                self.changes.extend(ready.roles.into_iter().map(Change::Joined));
                // The agent was lost before its entry arrived.
                self.changes.extend((first..self.workers).filter(|_| is_lost).map(Change::Lost));
                if let Some(of) = self.members.iter_mut().find(|member| member.who.id == took.of) {
                    match took.why {
                        None => of.be_taken_over(by, at),
                        Some(why) => {
                            of.not_taken = Some(format!("agent {by} did not take over its part: {why}"))
                        }
                    }
                }
            }
            Record::Began(_) | Record::Resumed | Record::Ordered(..) | Record::Reassigned(..) => {}
        }
    }

    fn take_own(&mut self, now: Nanos, record: Record) {
        match record {
            Record::Ordered(number, order) if number as usize >= self.orders.len() => {
                self.early.entry(number).or_insert(order);
                while let Some(order) = self.early.remove(&(self.orders.len() as u32)) {
                    self.orders.push(order);
                    self.members.iter_mut().for_each(|member| member.due = Nanos::ZERO);
                }
            }
            Record::Began(began) if matches!(self.stage, Stage::Storing) => {
                self.lead_from(now, now + began.after)
            }
            Record::Reassigned(of, parts) => self.reassign(now, &of, parts),
            _ => {}
        }
    }

    /// Leads from now on a run that begins, or began, at `start`.
    pub(crate) fn lead_from(&mut self, now: Nanos, start: Nanos) {
        (self.stage, self.start) = (Stage::Begun, Some(start));
        self.stall.begin(now);
        for member in &mut self.members {
            // In a run that was taken up, the log has shown when each agent was last alive.
            member.heard = now.min(start);
            (member.due, member.led, member.leased) = (Nanos::ZERO, now, now);
        }
    }

    /// Advances the run: repeats unanswered messages, and detects silent agents.
    pub(crate) fn poll(&mut self, now: Nanos) {
        if self.is_deposed {
            return;
        }
        self.step(now);
        let stood_still = self.stall.poll(now);
        if let Stage::Begun = self.stage {
            if let Some(lasted) = stood_still {
                self.wake(now, lasted);
            }
            for member in &mut self.members {
                if member.state == AgentState::Ready && now.since(member.heard) >= LOST_AFTER {
                    member.lose_unheard(&mut self.changes);
                }
            }
            if self.terms.on_lost == OnLost::Reassign {
                self.hand_over(now);
            }
        }
        for nth in 0..self.members.len() {
            self.send(now, nth);
        }
    }

    /// Advances through the stages until the run begins.
    fn step(&mut self, now: Nanos) {
        let silent = self.members.iter().find(|member| !member.answer.is_of(&self.stage));
        match self.stage {
            Stage::Offering(_) if silent.is_none() => self.assign(now),
            Stage::Assigning(_) if silent.is_none() => {
                self.stage = Stage::Measuring(now + MEASURES);
                self.number_workers();
            }
            Stage::Measuring(until) => {
                let is_known = |member: &Member| member.way.samples() >= SAMPLES;
                if now >= until || self.members.iter().all(is_known) {
                    self.stage = Stage::Storing;
                    let began = self.began();
                    self.records.push_back(Record::Began(Box::new(began)));
                }
            }
            Stage::Offering(until) | Stage::Assigning(until) if now >= until => {
                let id = silent.map(|member| member.who.id.as_str()).unwrap_or_default();
                let why = format!("agent {id} did not reply within {PREPARES}");
                self.stage = Stage::Failed(Error::Missing(why));
            }
            _ => {}
        }
    }

    fn assign(&mut self, now: Nanos) {
        let Terms { demand, shares, salt, .. } = &self.terms;
        let Some(demand) = demand else {
            self.stage = Stage::Asked;
            return;
        };
        match split::split(demand, &self.candidates(), *shares, *salt) {
            Ok(assigned) => {
                for (member, assign) in self.members.iter_mut().zip(assigned) {
                    (member.parts, member.due) = (vec![assign], Nanos::ZERO);
                }
                self.stage = Stage::Assigning(now + PREPARES);
            }
            Err(why) => self.stage = Stage::Failed(why),
        }
    }

    /// Agents that have accepted the offer.
    fn candidates(&self) -> Vec<Candidate<'_>> {
        self.members.iter().filter_map(Member::candidate).collect()
    }

    /// The connections that the asked agents can hold together, and their dials or requests per second (`None`: no limit).
    pub(crate) fn together(&self) -> (u64, Option<f64>) {
        let candidates = self.candidates();
        let per_s = candidates.iter().map(|agent| agent.can.per_s);
        (split::together(&candidates), per_s.sum())
    }

    fn number_workers(&mut self) {
        for member in &mut self.members {
            let roles = member.ready().roles.clone();
            member.add_workers(self.workers, &roles);
            self.workers += roles.len() as u32;
        }
    }

    fn began(&self) -> Began {
        let part = |member: &Member| member.parts.first().cloned().unwrap_or_default();
        let members = self
            .members
            .iter()
            .map(|member| (member.who.clone(), member.ready().clone(), part(member), member.way.error()));
        Began { seed: self.terms.seed, after: BEGINS_IN, members: members.collect() }
    }
}
