//! Connects a coordinator to NATS, and offers its agents as the workers of a run. Gathers the agents, begins or takes up a run, and
//! releases the agents afterwards.

mod gathering;
mod reach;
mod workers;

use host::Root;
use plan::{Flags, Plan, flag};
use run::{By, Ground, Interrupt};
use samples::{Sink, Summary, Tick};
use units::{Clock, Count, Nanos};

use super::{Coordinator, OnLost, Supply, Terms, pending::Arrived, replay::Replay};
use crate::{
    control::Commands,
    error::{Error, Waiting},
    fingerprint::fingerprint,
    link::{Inbox, Link, LogReader},
    message::{Author, EVERY, Here, Offer, PROTOCOL, Record, Up, to_run},
    outbox::Outbox,
    split::{Demand, Shares},
};

use gathering::{agents, enough, fits, is_usable};
use reach::Reach;

/// Silence after which agents report their coordinator as dead.
const SILENT: Nanos = Nanos::from_millis(2_500);
/// Maximum time to read the log of a run that is taken up.
const READS: Nanos = Nanos::from_secs(30);
/// Interval of progress messages while table rows are sent.
const SAYS_EVERY: Nanos = EVERY;
/// Maximum time until an order is applied: it is stored, sent to the agent, and noticed by a shard.
const NOTICE: Nanos = Nanos::from_millis(400);
/// Maximum wait for one kind of message before the other is checked.
const LOOKS: Nanos = Nanos::from_millis(10);

/// The plan as it is sent to agents.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// The flags of the plan, with their values.
    pub flags: Vec<(String, String)>,
    /// The text of the scenario file, if there is one.
    pub scenario: Option<String>,
    /// Number of agents to wait for; `None`: those that reply.
    pub agents: Option<u32>,
    /// What happens to the run when an agent is lost.
    pub on_lost: OnLost,
    /// How the load is divided.
    pub shares: Shares,
    /// For a step of a search: the quantity, the load, and the time at full load.
    pub step: Option<(By, u64, Nanos)>,
    /// Name for a new run, of digits and small letters, not in use on these agents; `None`: random.
    pub run: Option<String>,
}

/// Agents that take part in a run.
pub struct Fleet {
    link: Link,
    coordinator: Coordinator,
    clock: Clock,
    /// Offset from this clock to the run's times; nonzero after taking up a run.
    ahead: Nanos,
    reports: Inbox<Up>,
    log: LogReader,
    reach: Reach,
    outbox: Outbox,
    /// The replay of the log, after taking up a run.
    replay: Option<Replay>,
    /// The last tick returned.
    read: Box<Tick>,
    /// A signal came before the beginning was stored: the agents have been released.
    is_given_up: bool,
}

impl Fleet {
    /// Gathers the agents at this server, and divides the plan among those that can take part. If a run of this very plan has lost its
    /// coordinator, takes up that run. When this returns, all agents are ready.
    ///
    /// # Errors
    /// No agents, a refusal, or Ctrl-C; contains the reason. All agents are released.
    pub fn gather(link: Link, plan: &Plan, job: &Job, waiting: &mut Waiting) -> Result<Fleet, Error> {
        link.keep_logs()?;
        let clock = Clock::start();
        let fingerprint = fingerprint(link.secret(), &(&job.flags, &job.scenario, &job.step), plan);
        let step = job.step.map(|(by, load, dwell)| by.plan(plan, load, dwell));
        let whole = step.as_ref().unwrap_or(plan);
        let supply = Supply::of(whole, link.longest())?;
        let heres = agents(&link, &clock, job.agents, &fingerprint, waiting)?;
        let (seed, salt, demand) = (plan.seed, units::system_random(), Some(Demand::of(whole)));
        let (shares, on_lost, is_step) = (job.shares, job.on_lost, job.step.is_some());
        let terms = Terms { seed, salt, demand, shares, on_lost, is_step };
        let left = heres.iter().filter_map(|here| here.run.as_ref());
        let left = left.filter(|busy| busy.fingerprint == fingerprint && busy.silent >= SILENT);
        if let (Some(busy), None) = (left.max_by_key(|busy| busy.term), &job.step) {
            return Fleet::take_up(link, clock, (&busy.run, busy.term + 1), terms, supply, waiting);
        }
        let offer = offer(plan, job, fingerprint);
        let mut fleet = Fleet::offer(link, clock, heres, offer, terms, supply, job)?;
        fleet.get_ready(waiting)?;
        Ok(fleet)
    }

    /// The capacity of all agents at this server for this plan, or for a step of a search with it: connections, and dials or requests per
    /// second if all agents have a cap. Releases all agents.
    ///
    /// # Errors
    /// See [`Fleet::gather`].
    pub(super) fn ask(
        link: Link,
        plan: &Plan,
        job: &Job,
        waiting: &mut Waiting,
    ) -> Result<(Link, u64, Option<f64>), Error> {
        link.keep_logs()?;
        let clock = Clock::start();
        let heres = agents(&link, &clock, job.agents, "", waiting)?;
        let offer = offer(plan, job, String::new());
        let terms = Terms { seed: plan.seed, ..Terms::default() };
        let mut fleet = Fleet::offer(link, clock, heres, offer, terms, None, job)?;
        fleet.get_ready(waiting)?;
        let (connections, per_s) = fleet.coordinator.together();
        fleet.release();
        Ok((fleet.link, connections, per_s))
    }

    /// Offers the plan to all free agents.
    fn offer(
        link: Link,
        clock: Clock,
        heres: Vec<Here>,
        offer: Offer,
        terms: Terms,
        supply: Option<Supply>,
        job: &Job,
    ) -> Result<Fleet, Error> {
        enough(&heres, job.agents)?;
        let free: Vec<Here> = heres.into_iter().filter(is_usable).collect();
        fits(&link, &offer)?;
        let run = job.run.clone().unwrap_or_else(|| format!("{:08x}", units::system_random() as u32));
        let log = link.read_log(&run);
        let coordinator = Coordinator::new(run, free, offer, terms, clock.now()).with_supply(supply);
        Fleet::with(link, log, clock, coordinator)
    }

    fn with(link: Link, log: LogReader, clock: Clock, coordinator: Coordinator) -> Result<Fleet, Error> {
        let reports = link.subscribe(to_run(&coordinator.run))?;
        let outbox = Outbox::new(Author::Coordinator { term: coordinator.term });
        Ok(Fleet {
            link,
            coordinator,
            clock,
            ahead: Nanos::ZERO,
            reports,
            log,
            reach: Reach::default(),
            outbox,
            replay: None,
            read: Box::default(),
            is_given_up: false,
        })
    }

    /// Takes up a run that another process has begun.
    fn take_up(
        link: Link,
        clock: Clock,
        (run, term): (&str, u32),
        terms: Terms,
        supply: Option<Supply>,
        waiting: &mut Waiting,
    ) -> Result<Fleet, Error> {
        let log = link.read_log(run);
        let until = clock.now() + READS;
        let reads = || format!("the log of run {run} is being read");
        let unread = || Error::Unavailable(format!("the log of run {run} cannot be read"));
        let (began_at, began) = loop {
            // On an error, the agents' leases expire and they end their load.
            waiting.go_on(reads)?;
            match log.next(LOOKS) {
                Some((at, entry)) => {
                    if let Record::Began(began) = entry.record {
                        break (at, *began);
                    }
                }
                None if clock.now() >= until => return Err(unread()),
                None => {}
            }
        };
        let (after, terms) = (began.after, Terms { seed: began.seed, ..terms });
        let coordinator = Coordinator::taking_up(run.to_owned(), term, began, terms).with_supply(supply);
        let mut fleet = Fleet::with(link, log, clock, coordinator)?;
        let mut replay = Replay::since(began_at + after);
        loop {
            fleet.carry();
            if fleet.outbox.unstored() == 0 {
                replay.note_stored(fleet.clock());
            }
            fleet.go_on(waiting, reads)?;
            let Some((at, entry)) = fleet.log.next(LOOKS) else {
                if fleet.clock() >= until {
                    return Err(unread());
                }
                continue;
            };
            if let Some(time) = replay.add(at, entry, term) {
                let now = fleet.clock();
                // The clock of this process started after the run began.
                fleet.ahead = time;
                fleet.coordinator.lead_from(now + time, replay.resumed_at(now));
                (waiting.say)(&taking_up(run, time));
                break;
            }
        }
        fleet.replay = Some(replay);
        Ok(fleet)
    }

    /// Returns the connection, after the run.
    pub fn into_link(self) -> Link {
        self.link
    }

    /// The name of the run.
    pub fn id(&self) -> &str {
        &self.coordinator.run
    }

    /// How many times another coordinator process has taken up the run.
    pub fn term(&self) -> u32 {
        self.coordinator.term
    }

    /// The seed of the run.
    pub fn seed(&self) -> u64 {
        self.coordinator.terms.seed
    }

    /// Subscribes to the commands of operators for this run.
    ///
    /// # Errors
    /// NATS refuses the subscription.
    pub fn commands(&self) -> Result<Commands, Error> {
        Commands::new(&self.link, self.id())
    }

    /// # Errors
    /// Ctrl-C; the agents have been released.
    fn go_on(&mut self, waiting: &Waiting, state: impl FnOnce() -> String) -> Result<(), Error> {
        waiting.go_on(state).inspect_err(|_| self.release())
    }

    fn get_ready(&mut self, waiting: &mut Waiting) -> Result<(), Error> {
        let mut next = self.clock() + SAYS_EVERY;
        loop {
            if let Some(Arrived { values, of }) = self.coordinator.arrived()
                && values < of
                && self.clock() >= next
            {
                next = self.clock() + SAYS_EVERY;
                (waiting.say)(&format!(
                    "sending rows of CSV tables: {} of {} {} arrived",
                    Count(values),
                    Count(of).of("value"),
                    Count(of).one_or("has", "have")
                ));
            }
            match self.coordinator.is_ready() {
                Ok(true) => return Ok(()),
                Ok(false) => {
                    self.go_on(waiting, || "not all agents are ready".to_owned())?;
                    self.turn(LOOKS);
                }
                Err(why) => {
                    let why = why.clone();
                    self.release();
                    return Err(why);
                }
            }
        }
    }

    /// Whether nothing more can arrive from any agent, or another process leads the run.
    fn is_over(&self) -> bool {
        let now = self.clock();
        let is_read = self.log.is_current() || !self.coordinator.has_just_woken(now);
        self.coordinator.is_deposed() || is_read && self.coordinator.is_over(now)
    }

    fn clock(&self) -> Nanos {
        self.clock.now() + self.ahead
    }

    /// Handles what has arrived, waiting for a report for at most `wait`, and sends what is due.
    fn turn(&mut self, mut wait: Nanos) {
        while let Some(up) = self.reports.next(wait) {
            wait = Nanos::ZERO;
            self.reach.hear(self.clock());
            self.coordinator.handle(self.clock(), up);
        }
        while let Some((_, entry)) = self.log.next(Nanos::ZERO) {
            self.reach.hear(self.clock());
            self.coordinator.take(self.clock(), entry);
        }
        self.look_for_broker();
        if !self.is_reached() {
            self.coordinator.handle_disconnected(self.clock());
        }
        self.coordinator.poll(self.clock());
        while let Some(line) = self.coordinator.poll_notice() {
            self.link.say(&line);
        }
        self.carry();
    }

    /// Probes the broker if nothing arrives. The link reports lost connections itself.
    fn look_for_broker(&mut self) {
        let now = self.clock();
        if !self.link.is_connected() {
            return self.reach.hear(now);
        }
        if self.reach.poll(now, || self.link.ask_broker()) {
            let replies = if self.reach.is_silent(now) { "does not reply" } else { "replies again" };
            self.link.say(&format!("{} {replies}", self.link.server()));
        }
    }

    /// Whether messages arrive, as far as known.
    fn is_reached(&self) -> bool {
        self.link.is_connected() && !self.reach.is_silent(self.clock())
    }

    fn carry(&mut self) {
        while let Some((subject, down)) = self.coordinator.poll_message() {
            self.link.send(subject, &down);
        }
        while let Some(record) = self.coordinator.poll_record() {
            self.outbox.push(&self.coordinator.run, record);
        }
        self.link.deliver(self.clock(), &mut self.outbox);
    }

    /// Waits until all agents begin. After a signal before that is stored, releases the agents instead.
    pub fn begin(&mut self, interrupt: &Interrupt) -> Ground {
        // A run that is taken up starts with its replay.
        while self.replay.is_none() && self.coordinator.start().is_none_or(|start| self.clock() < start) {
            if interrupt.is_set() && self.coordinator.start().is_none() {
                self.release();
                self.is_given_up = true;
                break;
            }
            self.turn(LOOKS);
        }
        Ground::elsewhere(Nanos::ZERO, self.coordinator.io(), self.coordinator.threads().iter().sum())
    }

    /// Runs the plan that the agents were [gathered](Fleet::gather) for. The sinks receive the run while it happens.
    pub fn run(
        &mut self,
        plan: &Plan,
        root: &Root,
        sinks: &mut [&mut dyn Sink],
        interrupt: &Interrupt,
    ) -> Summary {
        let summary = run::run_on(plan, root, self, |fleet| fleet.begin(interrupt), sinks, interrupt);
        self.release();
        summary
    }

    /// Releases the agents, and deletes the log.
    pub fn release(&mut self) {
        self.coordinator.release();
        self.turn(Nanos::ZERO);
        // Without a connection, the agents' leases expire, and the log is deleted after its retention time.
        if self.is_reached() {
            self.link.flush();
            self.link.forget_log(self.id());
        }
    }
}

/// The plan as it is sent to agents, with its seed.
fn offer(plan: &Plan, job: &Job, fingerprint: String) -> Offer {
    let drawn = Flags::default().with(&flag::SEED, plan.seed).pairs();
    let is_given = job.flags.iter().any(|(name, _)| *name == drawn[0].0);
    let flags = job.flags.iter().cloned().chain(drawn.into_iter().filter(|_| !is_given)).collect();
    let tables = plan.tables.iter().map(|table| (table.file.clone(), table.head())).collect();
    let (scenario, step) = (job.scenario.clone(), job.step);
    let sent = plan.clone().sent();
    Offer { protocol: PROTOCOL, fingerprint, flags, scenario, tables, sent, step }
}

/// The notice that a run is taken up; `time`: how long it has lasted.
fn taking_up(run: &str, time: Nanos) -> String {
    format!("resuming run {run}, {} after it began", time.brief())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_run_is_readable() {
        let line = "resuming run d5312c6c, 8.4 s after it began";
        assert_eq!(taking_up("d5312c6c", Nanos(8_384_352_087)), line);
        assert_eq!(taking_up("r1", Nanos::from_secs(90)), "resuming run r1, 1m30s after it began");
    }
}
