//! The coordinator's end: agents that joined are the workers of a run.

use std::collections::{HashMap, VecDeque};

use host::Root;
use plan::{Plan, Role};
use run::{Ground, Interrupt, Order, Update, Workers};
use samples::{AgentState, AgentSummary, Phase, Sink, Summary, Tick};
use units::{Clock, Nanos};

use crate::{
    link::{Inbox, Link},
    message::{Down, EVERY, HERE, Here, LEASE, News, PROTOCOL, Up, to_agent, to_run},
    share::{Offered, assign},
};

/// Agents say each second that they are there: who is not heard of in this time is not waited for.
const GATHERS: Nanos = Nanos::from_millis(2_500);
/// An agent checks its machine, and resolves names, within this time.
const PREPARES: Nanos = Nanos::from_secs(30);
/// An order is applied within this time: the way to the agent, and a shard's own notice.
const NOTICE: Nanos = Nanos::from_millis(400);

/// The plan as agents are given it.
pub struct Job<'a> {
    /// The flags that make it, each with its value.
    pub flags: Vec<(String, String)>,
    /// The text of its scenario file, where it has one.
    pub scenario: Option<&'a str>,
}

/// Agents that take part in a run.
pub struct Fleet {
    link: Link,
    run: String,
    news: Inbox<Up>,
    clock: Clock,
    members: Vec<Member>,
    /// What each worker does.
    roles: Vec<Role>,
    /// Lost workers that were not reported yet.
    lost: VecDeque<u32>,
    /// The tick that was read last.
    read: Tick,
    /// When agents were last told that we are there.
    said: Nanos,
}

struct Member {
    here: Here,
    state: AgentState,
    heard: Nanos,
    /// Where its workers begin.
    first: u32,
    /// Ticks taken from each of its shards.
    sequences: Vec<u64>,
    /// Connections that each of its shards holds.
    open: Vec<u64>,
    wanted: u64,
    /// Ticks that it sent and that did not arrive.
    missing: u64,
    io: String,
}

impl Fleet {
    /// Gathers the agents at this server, and splits the plan over those that can take part. All are ready when this returns.
    ///
    /// # Errors
    /// There is none, or one refuses; with the reason.
    pub fn gather(link: Link, plan: &Plan, job: &Job) -> Result<Fleet, String> {
        let run = format!("{:08x}", units::system_random() as u32);
        let clock = Clock::start();
        let heres = free_agents(&link, &clock)?;
        let news = link.subscribe(to_run(&run))?;
        let member = |here: Here| Member {
            here,
            state: AgentState::Ready,
            heard: clock.now(),
            first: 0,
            sequences: Vec::new(),
            open: Vec::new(),
            wanted: 0,
            missing: 0,
            io: String::new(),
        };
        let mut fleet = Fleet {
            link,
            run,
            news,
            clock,
            members: heres.into_iter().map(member).collect(),
            roles: Vec::new(),
            lost: VecDeque::new(),
            read: Tick::default(),
            said: Nanos::ZERO,
        };
        let offered = fleet.offer(job)?;
        fleet.assign(plan, &offered)?;
        Ok(fleet)
    }

    fn tell(&self, member: &Member, message: &Down) {
        self.link.send(to_agent(&member.here.id), message);
    }

    fn offer(&mut self, job: &Job) -> Result<Vec<Offered>, String> {
        let all = self.members.iter().map(|member| member.here.cores).sum();
        for member in &self.members {
            let share = (member.here.cores, all);
            let (run, flags) = (self.run.clone(), job.flags.clone());
            let scenario = job.scenario.map(str::to_owned);
            self.tell(member, &Down::Offer { run, protocol: PROTOCOL, flags, scenario, share });
        }
        let shards = self.wait_for_all(|news| match news {
            News::Offered { shards } => Some(shards),
            _ => None,
        })?;
        let network = |member: &Member| member.here.network.clone();
        Ok(self
            .members
            .iter()
            .zip(shards)
            .map(|(m, shards)| Offered { network: network(m), shards })
            .collect())
    }

    fn assign(&mut self, plan: &Plan, offered: &[Offered]) -> Result<(), String> {
        let salt = units::system_random();
        let assigned = assign(offered);
        for (nth, (member, assigned)) in self.members.iter().zip(&assigned).enumerate() {
            let (run, probe) = (self.run.clone(), nth == 0 && plan.probe.is_some());
            let (shards, tuples) = (assigned.shards.clone(), assigned.tuples);
            self.tell(member, &Down::Assign { run, shards, probe, tuples, salt });
        }
        let ready = self.wait_for_all(|news| match news {
            News::Ready { roles, io } => Some((roles, io)),
            _ => None,
        })?;
        for (nth, (roles, io)) in ready.into_iter().enumerate() {
            let member = &mut self.members[nth];
            (member.first, member.io) = (self.roles.len() as u32, io);
            (member.sequences, member.open) = (vec![0; roles.len()], vec![0; roles.len()]);
            self.roles.extend(roles);
        }
        let parts = plan.parts(|nth| assigned[0].shards[usize::from(nth)].1);
        for (member, agent) in self.members.iter_mut().zip(assigned) {
            let own = |part: &&plan::Part| match part.role {
                Role::Population(nth) => {
                    let (first, _) = agent.shards[usize::from(nth)];
                    (first..first + agent.own[usize::from(nth)]).contains(&part.shard)
                }
                Role::Probe(_) => false,
            };
            member.wanted = parts.iter().filter(own).map(|part| u64::from(part.connections)).sum();
        }
        Ok(())
    }

    /// What each agent replies, in the order of the agents.
    fn wait_for_all<T>(&self, wanted: impl Fn(News) -> Option<T>) -> Result<Vec<T>, String> {
        let until = self.clock.now() + PREPARES;
        let mut replies: HashMap<String, T> = HashMap::new();
        while replies.len() < self.members.len() {
            let now = self.clock.now();
            if now >= until {
                let silent = self.members.iter().find(|member| !replies.contains_key(&member.here.id));
                let silent = silent.map(|member| member.here.id.as_str()).unwrap_or_default();
                return Err(format!("agent {silent} did not reply within {PREPARES}"));
            }
            self.members.iter().for_each(|member| self.tell(member, &Down::Alive { run: self.run.clone() }));
            match self.news.next(EVERY) {
                Some(Up { id, news: News::Refused { why } }) => {
                    return Err(format!("agent {id} refuses: {why}"));
                }
                Some(Up { id, news }) => {
                    if let Some(reply) = wanted(news) {
                        replies.insert(id, reply);
                    }
                }
                None => {}
            }
        }
        let reply = |member: &Member| replies.remove(&member.here.id).expect("each has replied");
        Ok(self.members.iter().map(reply).collect())
    }

    /// All agents begin.
    fn begin(&mut self) -> Ground {
        self.clock = Clock::start();
        for member in &mut self.members {
            member.heard = self.clock.now();
        }
        self.members.iter().for_each(|member| self.tell(member, &Down::Begin { run: self.run.clone() }));
        self.link.flush();
        let same = self.members.iter().all(|member| member.io == self.members[0].io);
        let io = if same && self.members[0].io == "uring" {
            "uring"
        } else if same {
            "epoll"
        } else {
            "mixed"
        };
        Ground::elsewhere(self.clock.now(), io)
    }

    /// Runs the plan that it was [gathered](Fleet::gather) for; the sinks see it as it happens.
    pub fn run(
        &mut self,
        plan: &Plan,
        root: &Root,
        sinks: &mut [&mut dyn Sink],
        interrupt: &Interrupt,
    ) -> Summary {
        run::run_on(plan, root, self, Fleet::begin, sinks, interrupt)
    }

    fn keep_alive(&mut self) {
        let now = self.clock.now();
        if now.since(self.said) >= EVERY {
            self.said = now;
            self.members.iter().for_each(|member| self.tell(member, &Down::Alive { run: self.run.clone() }));
        }
        for member in &mut self.members {
            if member.state == AgentState::Ready && now.since(member.heard) >= LEASE {
                member.state = AgentState::Lost;
                self.lost.extend(member.first..member.first + member.sequences.len() as u32);
            }
        }
    }

    fn handle(&mut self, Up { id, news }: Up) -> Option<u32> {
        let now = self.clock.now();
        let member = self.members.iter_mut().find(|member| member.here.id == id)?;
        if member.state == AgentState::Lost {
            return None;
        }
        member.heard = now;
        match news {
            News::Tick { shard, sequence, tick } => {
                let next = member.sequences.get_mut(shard as usize)?;
                // What came twice counts once.
                if sequence < *next {
                    return None;
                }
                member.missing += sequence - *next;
                *next = sequence + 1;
                if tick.phase != Phase::Drain {
                    member.open[shard as usize] = tick.open;
                }
                self.read = *tick;
                Some(member.first + shard)
            }
            News::Lost { shard } => {
                self.lost.push_back(member.first + shard);
                None
            }
            News::Ended { ticks } => {
                member.state = AgentState::Done;
                let taken = member.sequences.iter().sum::<u64>();
                member.missing += ticks.iter().sum::<u64>().saturating_sub(taken);
                None
            }
            _ => None,
        }
    }
}

impl Workers for Fleet {
    fn role(&self) -> Vec<Role> {
        self.roles.clone()
    }

    fn notice(&self) -> Nanos {
        NOTICE
    }

    fn period(&self) -> Nanos {
        EVERY
    }

    fn agents(&self) -> Vec<AgentSummary> {
        let summary = |member: &Member| AgentSummary {
            id: member.here.id.clone(),
            state: member.state,
            wanted: member.wanted,
            held: member.open.iter().sum(),
            missing_ticks: member.missing,
        };
        self.members.iter().map(summary).collect()
    }

    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn order(&mut self, order: Order) {
        for member in &self.members {
            self.tell(member, &Down::Order { run: self.run.clone(), order });
        }
        self.link.flush();
    }

    fn next(&mut self, until: Nanos) -> Update<'_> {
        loop {
            self.keep_alive();
            if let Some(worker) = self.lost.pop_front() {
                return Update::Lost(worker);
            }
            if self.members.iter().all(|member| member.state != AgentState::Ready) {
                return Update::Ended;
            }
            let wait = until.since(self.clock.now());
            let Some(up) = self.news.next(wait.min(EVERY)) else {
                if self.clock.now() >= until {
                    return Update::Nothing;
                }
                continue;
            };
            if let Some(worker) = self.handle(up) {
                return Update::Tick(worker, &self.read);
            }
        }
    }
}

/// Agents of this protocol that take part in no run.
fn free_agents(link: &Link, clock: &Clock) -> Result<Vec<Here>, String> {
    let inbox: Inbox<Here> = link.subscribe(HERE.to_owned())?;
    let until = clock.now() + GATHERS;
    let mut found: HashMap<String, Here> = HashMap::new();
    while clock.now() < until {
        if let Some(here) = inbox.next(until.since(clock.now())) {
            found.insert(here.id.clone(), here);
        }
    }
    let mut agents: Vec<Here> = found.into_values().filter(|here| here.run.is_none()).collect();
    agents.sort_by(|a, b| a.id.cmp(&b.id));
    if let Some(other) = agents.iter().find(|here| here.protocol != PROTOCOL) {
        return Err(format!("agent {} is throng {}; use one version for all", other.id, other.version));
    }
    if agents.is_empty() {
        return Err("no agent is there; start some with throng agent --nats URL".to_owned());
    }
    Ok(agents)
}
