//! What a coordinator knows of an agent.

use std::collections::{BTreeMap, VecDeque};

use plan::Role;
use samples::{AgentState, AgentSummary, Latency, Phase, Tick};
use units::Nanos;

use super::{
    Change, Stage,
    handover::Takes,
    seconds::Seconds,
    supply::{Arrived, Supplied},
};
use crate::{
    clock::Way,
    message::{
        Assign, Calibrated, Can, Here, Incarnation, LEASE, LOST_AFTER, Ready, Record, Running, Seal,
        TakeOver, Up,
    },
    seal::Sums,
    split::{Candidate, Heir},
};

/// Entries that came before one that is missing; more of them are not kept.
const HELD_BACK: usize = 100_000;

/// An agent that takes part.
pub(super) struct Member {
    pub(super) who: Incarnation,
    network: String,
    cores: u32,
    calibrated: Option<Calibrated>,
    pub(super) state: AgentState,
    /// What was said of it: its state, and how many have taken over its part.
    said: (AgentState, usize),
    pub(super) answer: Answer,
    /// What it can take; none in a run that was taken up.
    can: Option<Can>,
    /// Its parts: its own, and those that it has taken over.
    pub(super) parts: Vec<Assign>,
    /// Parts of others that it is to take over.
    pub(super) takes: Takes,
    /// The values that it is being sent.
    pub(super) supplied: Option<Supplied>,
    /// Of its own part.
    pub(super) arrived: Arrived,
    /// Its parts are handed to others: that is decided, and stored.
    pub(super) is_decided: bool,
    pub(super) is_replaced: bool,
    /// It had completed them before it was lost.
    pub(super) is_through: bool,
    pub(super) running: Option<Running>,
    /// When it was heard last.
    pub(super) heard: Nanos,
    /// It has not reported since the broker was out of reach, or had entries then that were not stored.
    pub(super) is_behind: bool,
    /// When it is to be sent something, and when it was sent something last.
    pub(super) due: Nanos,
    pub(super) led: Nanos,
    /// When a message that renews its lease was sent last.
    pub(super) leased: Nanos,
    /// How far away it is, and its clock.
    pub(super) way: Way,
    /// By how much what a process of the coordinator before this one knew of its clock was wrong.
    pub(super) error: Option<Nanos>,
    /// The numbers of its workers, and what they do.
    workers: Vec<(u32, Role)>,
    pub(super) log: Log,
    /// How late its shards sent, at full load.
    lag: Latency,
    /// By how much a turn of one of them came too late, the most.
    stalled: Nanos,
    /// CPU time that its process had used at its first report of running, and when that was.
    idle: Option<(Nanos, Nanos)>,
    cpu_share: Option<f64>,
    /// Connections that each of its workers has open, and those that it held when its population was last at its largest load.
    open: Vec<u64>,
    held: Vec<u64>,
    /// Requests of each that were under way.
    under_way: Vec<u64>,
    /// Connections that each has closed before its load had ended, for they had nothing more to send: they were held.
    released: Vec<u64>,
    /// Whether the load of each has ended: what is open then is held, what is open later is not.
    ended: Vec<bool>,
    /// How long it was away, of the times after which it came back.
    away: Nanos,
    lost_at: Option<Nanos>,
    /// How it was lost.
    how: String,
    /// How long no agent had its parts, as far as they were taken over.
    gap: Nanos,
    /// Who has taken over its parts, and why one was not able to.
    taken_over_by: Vec<String>,
    pub(super) not_taken: Option<String>,
}

/// What it answered last, before the run begins.
pub(super) enum Answer {
    None,
    /// It takes part.
    Accepted,
    /// How many of the values that its part uses it has.
    Lacks(u64),
    Ready(Ready),
}

impl Answer {
    /// Whether it is what this stage waits for.
    pub(super) fn is_of(&self, stage: &Stage) -> bool {
        match stage {
            Stage::Offering(_) => matches!(self, Answer::Accepted),
            _ => matches!(self, Answer::Ready(_)),
        }
    }
}

/// Its entries in the log of the run: each is taken once, in their order.
#[derive(Default)]
pub(super) struct Log {
    /// The sequence that follows.
    next: u64,
    /// What came before its turn.
    early: BTreeMap<u64, Record>,
    /// What each worker's ticks add up to.
    sums: Vec<Sums>,
    pub(super) seal: Option<Seal>,
}

impl Log {
    /// How many entries did not come, before one that did.
    fn missing(&self) -> u64 {
        self.early.last_key_value().map_or(0, |(last, _)| last + 1 - self.next - self.early.len() as u64)
    }
}

impl Member {
    pub(super) fn new(here: Here) -> Member {
        let Here { who, network, cores, calibrated, .. } = here;
        Member { network, cores, calibrated, ..Member::again(who, Answer::None) }
    }

    /// One that took part before this process of the coordinator began, or is to.
    pub(super) fn again(who: Incarnation, answer: Answer) -> Member {
        Member {
            who,
            network: String::new(),
            cores: 0,
            calibrated: None,
            state: AgentState::Ready,
            said: (AgentState::Ready, 0),
            answer,
            can: None,
            parts: Vec::new(),
            takes: Takes::default(),
            supplied: None,
            arrived: Arrived::default(),
            is_decided: false,
            is_replaced: false,
            is_through: false,
            running: None,
            heard: Nanos::ZERO,
            is_behind: false,
            due: Nanos::ZERO,
            led: Nanos::ZERO,
            leased: Nanos::ZERO,
            way: Way::default(),
            error: None,
            workers: Vec::new(),
            log: Log::default(),
            open: Vec::new(),
            held: Vec::new(),
            under_way: Vec::new(),
            released: Vec::new(),
            ended: Vec::new(),
            lag: Latency::default(),
            stalled: Nanos::ZERO,
            idle: None,
            cpu_share: None,
            away: Nanos::ZERO,
            lost_at: None,
            how: String::new(),
            gap: Nanos::ZERO,
            taken_over_by: Vec::new(),
            not_taken: None,
        }
    }

    /// It can take a part, once it has accepted.
    pub(super) fn candidate(&self) -> Option<Candidate<'_>> {
        let Member { network, cores, calibrated, can, .. } = self;
        let can = can.as_ref()?;
        Some(Candidate { id: &self.who.id, network, cores: *cores, calibrated: *calibrated, can })
    }

    /// It can take this much.
    pub(super) fn accept(&mut self, can: Can) {
        self.can = Some(can);
        self.answer = Answer::Accepted;
    }

    /// For what another did; `given`: what it is to have of that already.
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

    /// It has further workers, which do this, with the numbers from `first` on.
    pub(super) fn add_workers(&mut self, first: u32, roles: &[Role]) {
        self.workers.extend((first..).zip(roles.iter().copied()));
        self.open.resize(self.workers.len(), 0);
        self.held.resize(self.workers.len(), 0);
        self.under_way.resize(self.workers.len(), 0);
        self.released.resize(self.workers.len(), 0);
        self.ended.resize(self.workers.len(), false);
        self.log.sums.resize(self.workers.len(), Sums::default());
    }

    pub(super) fn hear(&mut self, now: Nanos, up: &Up, changes: &mut VecDeque<Change>) {
        self.be_heard(now, changes);
        if let Some(sent) = up.echo {
            self.way.learn(sent, up.at, now);
        }
    }

    /// Something came from it.
    pub(super) fn be_heard(&mut self, now: Nanos, changes: &mut VecDeque<Change>) {
        if let (Some(lost_at), AgentState::Lost) = (self.lost_at, self.state)
            && self.log.seal.is_none()
            && !self.is_replaced
        {
            // It holds its part still: its lease is longer than we wait before we call it lost.
            self.away = self.away + now.since(lost_at);
            (self.state, self.lost_at) = (AgentState::Ready, None);
            // Its lease was running out.
            self.due = Nanos::ZERO;
            changes.extend(self.workers.iter().map(|(worker, _)| Change::Back(*worker)));
        }
        self.heard = now;
    }

    /// Requests of a population that it has begun, or connections that have arrived, as far as its ticks have come.
    pub(super) fn begun(&self, population: u16, arrives: bool) -> u64 {
        let own = self.workers.iter().zip(&self.log.sums);
        let own = own.filter(|((_, role), _)| *role == Role::Population(population));
        own.map(|(_, sums)| if arrives { sums.arrived() } else { sums.begun() }).sum()
    }

    /// What it is to take over next.
    pub(super) fn next_take(&self) -> Option<&TakeOver> {
        self.takes.get(self.running?.taken)
    }

    /// It waits for values, and has this many; whether they are more than before.
    pub(super) fn lack(&mut self, has: u64) -> bool {
        let has_more = !matches!(self.answer, Answer::Lacks(before) if before >= has);
        if has_more {
            (self.answer, self.due) = (Answer::Lacks(has), Nanos::ZERO);
        }
        has_more
    }

    /// The part for which it waits for values, its own or one that it is to take over, and how many it has.
    pub(super) fn lacks(&self) -> Option<(Option<u32>, u64)> {
        match (&self.answer, self.running) {
            (Answer::Lacks(has), _) => Some((None, *has)),
            (_, Some(Running { has: Some(has), taken, .. })) => Some((Some(taken), has)),
            _ => None,
        }
    }

    /// It runs.
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

    /// It is lost, and its part is still its own, as far as is known.
    pub(super) fn may_come_back(&self) -> bool {
        self.log.seal.is_none() && self.lost_at.is_some() && !self.is_replaced
    }

    /// Its part is over: it has ended it, or its lease has run out.
    pub(super) fn is_gone(&self, now: Nanos) -> bool {
        match self.state {
            AgentState::Ready => false,
            AgentState::Lost => !self.may_come_back() || now.since(self.heard) >= LEASE,
            AgentState::Done | AgentState::Refused => true,
        }
    }

    /// That it is not heard now says nothing about it.
    pub(super) fn be_unheard(&mut self, now: Nanos) {
        (self.heard, self.is_behind) = (now, self.log.seal.is_none());
    }

    /// It was silent for too long.
    pub(super) fn lose_unheard(&mut self, changes: &mut VecDeque<Change>) {
        self.lose(&format!("no heartbeat for {LOST_AFTER}"), changes);
    }

    /// It takes part no longer, or nothing is known of it.
    pub(super) fn lose(&mut self, how: &str, changes: &mut VecDeque<Change>) {
        if self.state == AgentState::Ready {
            how.clone_into(&mut self.how);
            (self.state, self.lost_at, self.is_behind) = (AgentState::Lost, Some(self.heard), false);
            self.is_through = self.has_completed();
            changes.extend(self.workers.iter().map(|(worker, _)| Change::Lost(*worker)));
        }
    }

    /// The load of all its parts has ended.
    fn has_completed(&self) -> bool {
        let mut own = self.workers.iter().zip(&self.ended);
        let have_ended = own.all(|((_, role), ended)| *ended || matches!(role, Role::Probe(_)));
        have_ended && self.takes.are_settled()
    }

    /// Another one has taken over a part of it, at about this time.
    pub(super) fn be_taken_over(&mut self, by: String, at: Nanos) {
        if !self.taken_over_by.contains(&by) {
            self.taken_over_by.push(by);
        }
        self.gap = self.gap.max(at.since(self.lost_at.unwrap_or(self.heard)));
    }

    /// It was lost before the end of its load, no agent has taken over its parts, and none has said why not.
    pub(super) fn is_left_alone(&self) -> bool {
        let is_taken = !self.taken_over_by.is_empty() || self.not_taken.is_some();
        self.state == AgentState::Lost && !self.is_through && !is_taken
    }

    /// It takes part no longer: what it has to say is in the log.
    pub(super) fn idle(&mut self, changes: &mut VecDeque<Change>) {
        if self.log.seal.is_none() {
            self.lose("it no longer takes part in the run", changes);
            self.lost_at = None;
        }
    }

    /// An entry of its own: those whose turn it is.
    pub(super) fn take(&mut self, sequence: u64, record: Record) {
        // What came twice counts once.
        if sequence >= self.log.next && self.log.early.len() < HELD_BACK {
            self.log.early.insert(sequence, record);
        }
    }

    /// The entry whose turn it is.
    pub(super) fn poll_record(&mut self) -> Option<Record> {
        let record = self.log.early.remove(&self.log.next)?;
        self.log.next += 1;
        Some(record)
    }

    /// What its workers counted in a second goes to the conductor, and to what is shown of each agent; populations that are below their
    /// largest load were held before.
    pub(super) fn count(
        &mut self,
        mut ticks: Vec<Tick>,
        is_below: impl Fn(Role) -> bool,
        (place, seconds): (usize, &mut Seconds),
        changes: &mut VecDeque<Change>,
    ) {
        ticks.truncate(self.workers.len());
        let mut filed = ticks.iter().zip(&self.workers).map(|(tick, (_, role))| run::filed(*role, tick));
        let late = filed.next().and_then(|mut all| {
            // As the conductor finds that of the first.
            let second = run::second_of(&all);
            filed.for_each(|other| all.to_mut().merge(&other));
            seconds.add(place, second, &all, self.state == AgentState::Lost)
        });
        if let Some(first) = ticks.first_mut() {
            // What comes late is of a second that was shown: the conductor adds it there.
            first.agents = late;
        }
        for (nth, tick) in ticks.into_iter().enumerate() {
            self.log.sums[nth].add(&tick);
            // Those of the last tick that have no response have their end there.
            self.under_way[nth] = tick.unsettled;
            self.lag.merge(&tick.lag);
            self.stalled = self.stalled.max(tick.stalled);
            let has_ended = tick.phase == Phase::Drain;
            if !std::mem::replace(&mut self.ended[nth], has_ended) || !has_ended {
                self.open[nth] = tick.open;
                self.released[nth] += tick.counts.ended_after;
                if !is_below(self.workers[nth].1) {
                    self.held[nth] = tick.open + self.released[nth];
                }
            }
            changes.push_back(Change::Tick(self.workers[nth].0, Box::new(tick)));
        }
    }

    pub(super) fn seal(&mut self, seal: Seal, changes: &mut VecDeque<Change>) {
        self.is_behind = false;
        if let Some(why) = &seal.why {
            let is_lost = self.state == AgentState::Lost;
            self.lose(why, changes);
            // That is why its load has ended.
            self.is_through &= is_lost;
        } else if self.state == AgentState::Ready {
            self.state = AgentState::Done;
        }
        self.log.seal = Some(seal);
    }

    /// What the user is to know of it since the last call.
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

    /// Why its part ended before its time, or was left undone.
    fn why(&self) -> Option<String> {
        let own = self.log.seal.as_ref().and_then(|seal| seal.why.clone());
        let own = own.or_else(|| (self.state == AgentState::Lost).then(|| self.how.clone()));
        own.into_iter().chain(self.not_taken.clone()).reduce(|own, other| format!("{own}; {other}"))
    }

    /// Requests that its ticks have.
    #[cfg(test)]
    pub(super) fn sent(&self) -> u64 {
        self.log.sums.iter().map(Sums::sent).sum()
    }

    /// `start`: when the run began.
    pub(super) fn summary(&self, start: Option<Nanos>) -> AgentSummary {
        let began = self.running.map(|running| self.way.back(running.began));
        let late = began.zip(start).map(|(began, start)| (began - start.0 as i128) as f64 / 1e6);
        let seal = self.log.seal.as_ref();
        let is_lost = self.state == AgentState::Lost;
        // The probe's connections are no part of the load.
        let is_load = |role: &Role| matches!(role, Role::Population(_));
        let of_load = |each: &[u64]| -> u64 {
            let own = self.workers.iter().zip(each).filter(|((_, role), _)| is_load(role));
            own.map(|(_, connections)| connections).sum()
        };
        AgentSummary {
            id: self.who.id.clone(),
            state: self.state,
            wanted: self.ready().wanted,
            cores: self.ready().cores,
            held: if is_lost && !self.is_through { 0 } else { of_load(&self.held) },
            lost_with: if is_lost { of_load(&self.open) } else { 0 },
            requests_lost: if is_lost { of_load(&self.under_way) } else { 0 },
            began_late_ms: late,
            clock_error_ms: self.way.error().map(|error| error.0 as f64 / 1e6),
            lag_p99_us: (self.lag.count() > 0).then(|| self.lag.quantile(0.99).0 as f64 / 1e3),
            cpu_share: self.cpu_share,
            stall_us: self.stalled.0 as f64 / 1e3,
            away_s: self.away.secs_f64(),
            gap_s: self.gap.secs_f64(),
            closed_by_lease: seal.map_or(0, |seal| seal.closed_by_lease),
            missing_ticks: self.log.missing(),
            sealed: seal.is_some_and(|seal| seal.sums == self.log.sums),
            why: self.why(),
            taken_over_by: self.taken_over_by.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
