//! The simulated fleet, as the workers of a run.

mod head;

use std::rc::Rc;

use plan::{Plan, Role};
use run::{Order, Update, Workers};
use samples::{AgentSummary, AgentTicks, Tick};
use units::{Nanos, nth_seed};

use self::head::Head;
use super::{
    carrier::{Carrier, Logged, Parcel},
    chaos::{Chaos, Event},
    machine::{Seen, SimMachine, calibrated, can, held_twice},
};
use crate::{
    agent::Agent,
    coordinator::{Coordinator, OnLost, Replay, Supply, Terms},
    error::Error,
    message::{Author, Here, Incarnation, LEASE, Offer, PROTOCOL, Record},
    outbox::{Outbox, decode},
    split::{Demand, Shares},
};

/// Time step. Longer with [`MANY`] agents, since the cost of a step grows with them.
pub(super) const STEP: Nanos = Nanos::from_millis(10);
const LONG_STEP: Nanos = Nanos::from_millis(50);
const MANY: u32 = 100;
/// Maximum duration of a run.
const TOO_LONG: Nanos = Nanos::from_secs(150);
const RUN: &str = "run";
/// Maximum length of a message, in bytes: about forty values.
const LONGEST: usize = 1_500;

/// An agent's process.
struct Host {
    who: Incarnation,
    agent: Agent<SimMachine>,
    outbox: Outbox,
    seen: Rc<Seen>,
    /// By how much its clock is ahead of virtual time.
    ahead: Nanos,
    cut_until: Nanos,
    frozen_until: Nanos,
    dead_until: Option<Nanos>,
    /// When a message of its coordinator last arrived.
    led_at: Nanos,
}

/// The whole simulation.
pub(super) struct World {
    plan: Plan,
    agents: u32,
    seed: u64,
    step: Nanos,
    now: Nanos,
    hosts: Vec<Host>,
    head: Option<Head>,
    head_dead_until: Option<Nanos>,
    head_frozen_until: Nanos,
    /// Parcels that arrived for the coordinator while it was suspended.
    waiting: Vec<Parcel>,
    carrier: Carrier,
    events: Vec<(Nanos, Event)>,
    counted: Vec<(Incarnation, u64)>,
    read: Box<Tick>,
    restarted: bool,
    /// Number of rows that had arrived before the beginning, at each change.
    pub(super) arrived: Vec<(u64, u64)>,
    /// Number of restarts of the coordinator.
    term: u32,
    terms: Terms,
}

impl World {
    pub(super) fn new(plan: &Plan, agents: u32, seed: u64, chaos: Chaos) -> World {
        let shares = if seed.is_multiple_of(3) { Shares::Equal } else { Shares::Capacity };
        let mut world = World {
            plan: plan.clone(),
            agents,
            seed,
            step: if agents < MANY { STEP } else { LONG_STEP },
            now: Nanos::from_secs(1),
            hosts: Vec::new(),
            head: None,
            head_dead_until: None,
            head_frozen_until: Nanos::ZERO,
            waiting: Vec::new(),
            carrier: Carrier::new(seed, chaos.clone()),
            events: chaos.events.clone(),
            counted: Vec::new(),
            read: Box::default(),
            restarted: false,
            arrived: Vec::new(),
            term: 0,
            terms: Terms {
                seed,
                demand: Some(Demand::of(plan)),
                shares,
                on_lost: chaos.on_lost,
                ..Terms::default()
            },
        };
        world.hosts = (0..agents as usize).map(|id| world.host(id, 0)).collect();
        world.events.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        world
    }

    fn host(&self, id: usize, nonce: u32) -> Host {
        let who = Incarnation { id: id.to_string(), nonce };
        let cores = 1 + id as u32 % 3;
        let calibrated = calibrated(self.seed, id);
        let here = Here { who: who.clone(), network: id.to_string(), cores, calibrated, ..Here::free("") };
        let seen = Rc::new(Seen::default());
        let share = self.plan.places().div_ceil(self.agents).into();
        let machine = SimMachine::new(
            seen.clone(),
            &self.plan,
            cores,
            can(share, id, self.agents),
            nth_seed(self.seed, id as u32 + 97 * nonce),
        );
        Host {
            who: who.clone(),
            agent: Agent::new(here, machine),
            outbox: Outbox::new(Author::Agent(who)),
            seen,
            ahead: Nanos::from_secs(3_600 * id as u64),
            cut_until: Nanos::ZERO,
            frozen_until: Nanos::ZERO,
            dead_until: None,
            led_at: Nanos::ZERO,
        }
    }

    /// Advances until all agents are ready.
    pub(super) fn gather(&mut self) -> Result<(), Error> {
        let heres = self.hosts.iter().map(|host| host.agent.here(self.now)).collect();
        let offer = Offer { protocol: PROTOCOL, ..Offer::default() };
        let coordinator = Coordinator::new(RUN.to_owned(), heres, offer, self.terms.clone(), self.now);
        let coordinator = coordinator.with_supply(self.supply());
        self.head = Some(Head::new(coordinator, 0));
        loop {
            self.step();
            let Some(head) = &self.head else {
                return Err(Error::Missing("the coordinator died".to_owned()));
            };
            self.arrived.extend(head.coordinator.arrived().map(|arrived| (arrived.values, arrived.of)));
            self.arrived.dedup();
            match head.coordinator.is_ready() {
                Ok(true) if head.coordinator.start().is_some_and(|start| self.now >= start) => return Ok(()),
                Ok(_) => assert!(self.now < TOO_LONG, "seed {}: it never begins", self.seed),
                Err(why) => return Err(why.clone()),
            }
        }
    }

    /// Whether a restarted coordinator has begun to lead since the last call.
    pub(super) fn has_restarted(&mut self) -> bool {
        std::mem::take(&mut self.restarted)
    }

    /// Requests taken from each agent's log entries.
    pub(super) fn taken(&self) -> Vec<(Incarnation, u64)> {
        self.head.as_ref().map(|head| head.coordinator.taken()).unwrap_or_default()
    }

    /// The agents whose parts were handed over, and when that was stored.
    pub(super) fn handed_over(&self) -> Vec<(Nanos, String)> {
        let of = |Logged { at, entry, .. }: &Logged| match &entry.record {
            Record::Reassigned(of, _) => Some((*at, of.id.clone())),
            _ => None,
        };
        self.carrier.log.iter().filter_map(of).collect()
    }

    /// Requests that an agent has counted.
    pub(super) fn counted(&self, who: &Incarnation) -> u64 {
        let dead = self.counted.iter().find(|(dead, _)| dead == who).map(|(_, sent)| *sent);
        let alive = || self.hosts.iter().find(|host| host.who == *who);
        dead.or_else(|| alive().map(|host| host.seen.sent.get())).unwrap_or(0)
    }

    /// Ends the run: agents are released, or their leases expire. Continues until all of them must be free.
    pub(super) fn end(&mut self) {
        self.events.clear();
        if let Some(head) = &mut self.head {
            head.coordinator.release();
        }
        let until = self.now + Nanos(3 * LEASE.0) + Nanos::from_secs(15);
        while self.now < until && !(self.all_are_free() && self.carrier.is_empty()) {
            self.step();
            if self.now + LEASE >= until {
                self.head = None;
            }
        }
    }

    pub(super) fn all_are_free(&self) -> bool {
        self.hosts.iter().all(|host| host.agent.is_free())
    }

    /// Advances by one time step.
    fn step(&mut self) {
        self.now = self.now + self.step;
        while self.events.last().is_some_and(|(at, _)| *at <= self.now) {
            let (_, event) = self.events.pop().expect("it is there");
            self.happen(event);
        }
        self.rise_again();
        while let Some(parcel) = self.carrier.poll(self.now) {
            self.deliver(parcel);
        }
        (0..self.hosts.len()).for_each(|nth| self.turn(nth));
        self.lead();
        self.hold_nothing_twice();
    }

    /// Checks that no part of the plan is under load on two agents, whichever counted as lost.
    fn hold_nothing_twice(&self) {
        if self.terms.on_lost != OnLost::Reassign {
            return;
        }
        // A suspended process has connections, but no load.
        let alive =
            self.hosts.iter().filter(|host| host.dead_until.is_none() && self.now >= host.frozen_until);
        let twice = held_twice(alive.map(|host| host.agent.machine().holds().collect()));
        assert_eq!(twice, None, "seed {}: a part of the plan is under load twice", self.seed);
    }

    fn happen(&mut self, event: Event) {
        let now = self.now;
        let hosts = self.hosts.len();
        let nth = |agent: usize| agent % hosts;
        match event {
            Event::Cut(agent, span) => self.hosts[nth(agent)].cut_until = now + span,
            Event::Freeze(agent, span) => self.hosts[nth(agent)].frozen_until = now + span,
            Event::Kill(agent, span) => {
                let host = &mut self.hosts[nth(agent)];
                if host.dead_until.is_none() {
                    self.counted.push((host.who.clone(), host.seen.sent.get()));
                    host.dead_until = Some(now + span);
                }
            }
            Event::Stop(agent) => {
                let host = &mut self.hosts[nth(agent)];
                host.agent.stop(now + host.ahead);
            }
            Event::Full(agent) => self.hosts[nth(agent)].seen.is_full.set(true),
            Event::Reset => self.hosts.iter().for_each(|host| host.seen.is_reset.set(true)),
            Event::Outage(span) => self.carrier.away_until = now + span,
            Event::Set(ahead) => self.carrier.ahead = ahead,
            Event::Pause(span) => self.head_frozen_until = now + span,
            // Before the run has begun, there is nothing to take up.
            Event::Restart(span) => {
                let has_begun = self.head.as_ref().is_some_and(|head| head.coordinator.start().is_some());
                if has_begun {
                    (self.head, self.head_dead_until) = (None, Some(now + span));
                    self.head_frozen_until = Nanos::ZERO;
                    self.waiting.clear();
                }
            }
        }
    }

    fn rise_again(&mut self) {
        for nth in 0..self.hosts.len() {
            if self.hosts[nth].dead_until.is_some_and(|until| self.now >= until) {
                self.hosts[nth] = self.host(nth, self.hosts[nth].who.nonce + 1);
            }
        }
        if self.head_dead_until.is_some_and(|until| self.now >= until) && self.now >= self.carrier.away_until
        {
            self.head_dead_until = None;
            self.take_up();
        }
    }

    fn take_up(&mut self) {
        let began = self.carrier.log.iter().find_map(|logged| match &logged.entry.record {
            Record::Began(began) => Some((logged.stamp + began.after, (**began).clone())),
            _ => None,
        });
        let (start, began) = began.expect("it has begun");
        self.term += 1;
        let coordinator = Coordinator::taking_up(RUN.to_owned(), self.term, began, self.terms.clone());
        let coordinator = coordinator.with_supply(self.supply());
        self.head = Some(Head { replay: Some(Replay::since(start)), ..Head::new(coordinator, self.term) });
    }

    /// The values of the plan's table, a few per message.
    fn supply(&self) -> Option<Supply> {
        Supply::of(&self.plan, LONGEST).expect("they fit")
    }

    fn is_cut(&self, nth: usize) -> bool {
        let host = &self.hosts[nth];
        self.now < host.cut_until || host.dead_until.is_some()
    }

    fn deliver(&mut self, parcel: Parcel) {
        let is_for_head = matches!(parcel, Parcel::Up(..) | Parcel::Stored(None, ..));
        if is_for_head && self.now < self.head_frozen_until {
            return self.waiting.push(parcel);
        }
        match parcel {
            Parcel::Down(nth, down) if !self.is_cut(nth) => {
                let host = &mut self.hosts[nth];
                host.led_at = self.now;
                host.seen.now.set(self.now + host.ahead);
                host.agent.handle(self.now + host.ahead, *down);
            }
            Parcel::Up(nth, up) if !self.is_cut(nth) => {
                if let Some(head) = &mut self.head {
                    head.coordinator.handle(self.now, *up);
                }
            }
            Parcel::Stored(Some(nth), ticket, is_stored) => {
                let is_heard = is_stored && !self.is_cut(nth);
                let host = &mut self.hosts[nth];
                host.outbox.handle(self.now, &ticket, is_heard);
            }
            Parcel::Stored(None, ticket, is_stored) => {
                if let Some(head) = &mut self.head {
                    head.outbox.handle(self.now, &ticket, is_stored);
                }
            }
            _ => {}
        }
    }

    /// Runs an agent's process.
    fn turn(&mut self, nth: usize) {
        let (now, is_cut) = (self.now, self.is_cut(nth));
        let host = &mut self.hosts[nth];
        if now < host.frozen_until || host.dead_until.is_some() {
            return;
        }
        host.seen.now.set(now + host.ahead);
        host.agent.poll(now + host.ahead);
        assert!(
            !host.seen.is_under_load.get() || now.since(host.led_at) <= LEASE + self.step,
            "seed {}: agent {nth} is under load without a lease",
            self.seed
        );
        while let Some((_, up)) = host.agent.poll_report() {
            if !is_cut {
                self.carrier.send(now, Parcel::Up(nth, Box::new(up)));
            }
        }
        while let Some((run, record)) = host.agent.poll_record() {
            host.outbox.push(&run, record);
        }
        while let Some(parcel) = host.outbox.poll(now) {
            let entry = decode(&parcel.bytes).expect("it reads what it wrote");
            if is_cut {
                host.outbox.handle(now, &parcel.ticket, false);
            } else {
                self.carrier.store(now, Some(nth), parcel.ticket, entry);
            }
        }
        host.agent.set_state(host.outbox.unstored(), Nanos::ZERO);
    }

    /// Runs the coordinator's process.
    fn lead(&mut self) {
        let now = self.now;
        let Some(head) = self.head.as_mut().filter(|_| now >= self.head_frozen_until) else { return };
        // After a suspension, it sees the time before any message that arrived meanwhile.
        let waiting = std::mem::take(&mut self.waiting);
        if now >= self.carrier.away_until {
            if waiting.is_empty() {
                head.read_log(now, &self.carrier.log, self.term, &mut self.restarted);
            }
        } else {
            head.coordinator.handle_disconnected(now);
        }
        if head.replay.is_none() {
            head.coordinator.poll(now);
        }
        while let Some((subject, down)) = head.coordinator.poll_message() {
            let id = subject.rsplit('.').next().expect("it ends with the agent");
            let nth = id.parse().expect("a number");
            self.carrier.send(now, Parcel::Down(nth, Box::new(down)));
        }
        while let Some(record) = head.coordinator.poll_record() {
            head.outbox.push(RUN, record);
        }
        while let Some(parcel) = head.outbox.poll(now) {
            let entry = decode(&parcel.bytes).expect("it reads what it wrote");
            self.carrier.store(now, None, parcel.ticket, entry);
        }
        waiting.into_iter().for_each(|parcel| self.deliver(parcel));
    }
}

impl Workers for World {
    fn role(&self) -> Vec<Role> {
        self.head.as_ref().map(|head| head.coordinator.roles()).unwrap_or_default()
    }

    fn notice(&self) -> Nanos {
        Nanos::from_millis(400)
    }

    fn period(&self) -> Nanos {
        Nanos::from_secs(1)
    }

    fn carries_on(&self) -> bool {
        self.head.as_ref().is_none_or(|head| head.coordinator.carries_on())
    }

    fn hands_over(&self) -> bool {
        self.head.as_ref().is_some_and(|head| head.coordinator.hands_over(self.now))
    }

    fn may_come_back(&self) -> bool {
        self.head.as_ref().is_some_and(|head| head.coordinator.may_come_back(self.now))
    }

    fn is_connected(&self) -> bool {
        let is_behind = |head: &Head| head.coordinator.is_behind();
        self.now >= self.carrier.away_until && !self.head.as_ref().is_some_and(is_behind)
    }

    fn agents(&self) -> Vec<AgentSummary> {
        self.head.as_ref().map(|head| head.coordinator.agents()).unwrap_or_default()
    }

    fn take_seconds(&mut self, until: u64) -> Option<Box<AgentTicks>> {
        self.head.as_mut().map(|head| head.coordinator.take_seconds(until))
    }

    fn now(&self) -> Nanos {
        let Some(head) = &self.head else { return Nanos::ZERO };
        match &head.replay {
            Some(replay) => replay.now(),
            None => self.now.since(head.coordinator.start().unwrap_or(self.now)),
        }
    }

    fn order(&mut self, order: Order) {
        if let Some(head) = &mut self.head {
            head.coordinator.order(order);
        }
    }

    fn next(&mut self, until: Nanos) -> Update<'_> {
        assert!(self.now < TOO_LONG, "seed {}: it never ends", self.seed);
        loop {
            // While the coordinator is dead, starting or suspended, the conductor makes no progress.
            while self.restarts() || self.now < self.head_frozen_until {
                self.step();
            }
            if self.restarted {
                return Update::Nothing;
            }
            let (clock, now) = (self.now, self.now());
            let head = self.head.as_mut().expect("one leads");
            if let Some(change) = head.coordinator.poll_change() {
                return change.read(&mut self.read);
            }
            if let Some(replay) = &mut head.replay {
                if !replay.step(until, &mut head.coordinator, clock) {
                    head.coordinator.catch_up(clock, replay);
                    head.replay = None;
                } else if replay.is_quiet_until(until) {
                    return Update::Nothing;
                }
                continue;
            }
            if head.coordinator.is_over(clock) {
                return Update::Ended;
            }
            if now >= until {
                return Update::Nothing;
            }
            self.step();
        }
    }
}

impl World {
    /// Whether the coordinator is dead, or still reads the log.
    fn restarts(&self) -> bool {
        self.head.as_ref().is_none_or(|head| head.coordinator.start().is_none())
    }
}
