//! A run's coordinator with its connection: agents that joined are the workers of the run.

mod gathering;
mod reach;
mod workers;

use std::sync::mpsc::{self, Receiver, Sender};

use host::Root;
use plan::{Flags, Plan, flag};
use run::{By, Ground, Interrupt};
use samples::{Sink, Summary, Tick};
use units::{Clock, Count, Nanos};

use super::{Coordinator, OnLost, Supply, Terms, replay::Replay, supply::Arrived};
use crate::{
    control::Commands,
    fingerprint::fingerprint,
    link::{Inbox, Link, LogReader, Stored},
    message::{Author, EVERY, Here, Offer, PROTOCOL, Record, Up, to_run},
    outbox::Outbox,
    split::{Demand, Shares},
    waiting::Waiting,
};

use gathering::{agents, enough, fits, is_usable};
use reach::Reach;

/// A coordinator that its agents have not heard from for this long is dead.
const SILENT: Nanos = Nanos::from_millis(2_500);
/// The log of a run that is taken up is read within this time.
const READS: Nanos = Nanos::from_secs(30);
/// How often it says how far it is, while rows of tables are sent.
const SAYS_EVERY: Nanos = EVERY;
/// An order is applied within this time: it is stored, goes to the agent, and a shard notices it.
const NOTICE: Nanos = Nanos::from_millis(400);
/// How long it looks for one kind of message before it looks for the other.
const LOOKS: Nanos = Nanos::from_millis(10);

/// The plan as agents are given it.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// The flags that make it, each with its value.
    pub flags: Vec<(String, String)>,
    /// The text of its scenario file, where it has one.
    pub scenario: Option<String>,
    /// How many agents to wait for; `None`: those that reply.
    pub agents: Option<u32>,
    /// What becomes of the run when an agent is lost.
    pub on_lost: OnLost,
    /// What the agents' shares follow.
    pub shares: Shares,
    /// The step of a search, where it is one: what is made larger, how much it is, and for how long.
    pub step: Option<(By, u64, Nanos)>,
    /// What a new run is called, of digits and small letters: no other run on these agents; `None`: by chance.
    pub run: Option<String>,
}

/// Agents that take part in a run.
pub struct Fleet {
    link: Link,
    run: String,
    seed: u64,
    coordinator: Coordinator,
    clock: Clock,
    /// What our times are more than this clock.
    ahead: Nanos,
    reports: Inbox<Up>,
    log: LogReader,
    reach: Reach,
    outbox: Outbox,
    stored: (Sender<Stored>, Receiver<Stored>),
    /// While what was in the log happens again, after the run was taken up.
    replay: Option<Replay>,
    /// The tick that was read last.
    read: Box<Tick>,
    /// A signal came before its beginning was stored: the agents are free.
    is_given_up: bool,
}

impl Fleet {
    /// Gathers the agents at this server, and splits the plan over those that can take part; or takes up a run of this very
    /// plan whose coordinator is no more. All are ready when this returns.
    ///
    /// # Errors
    /// There are no agents, one refuses, or Ctrl-C; with the reason. All are free again.
    pub fn gather(link: Link, plan: &Plan, job: &Job, waiting: &mut Waiting) -> Result<Fleet, String> {
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
        let mut fleet = Fleet::offer(link, clock, heres, (plan.seed, offer), terms, supply, job)?;
        fleet.get_ready(waiting)?;
        Ok(fleet)
    }

    /// What the agents at this server can take together of this plan, or of a step of a search with it: connections, and dials or
    /// requests a second, where all have a cap. All are free again when this returns.
    ///
    /// # Errors
    /// As [`Fleet::gather`].
    pub(super) fn ask(
        link: Link,
        plan: &Plan,
        job: &Job,
        waiting: &mut Waiting,
    ) -> Result<(Link, u64, Option<f64>), String> {
        link.keep_logs()?;
        let clock = Clock::start();
        let heres = agents(&link, &clock, job.agents, "", waiting)?;
        let offer = offer(plan, job, String::new());
        let terms = Terms { seed: plan.seed, ..Terms::default() };
        let mut fleet = Fleet::offer(link, clock, heres, (plan.seed, offer), terms, None, job)?;
        fleet.get_ready(waiting)?;
        let (connections, per_s) = fleet.coordinator.together();
        fleet.release();
        Ok((fleet.link, connections, per_s))
    }

    /// Those that are free take part.
    fn offer(
        link: Link,
        clock: Clock,
        heres: Vec<Here>,
        (seed, offer): (u64, Offer),
        terms: Terms,
        supply: Option<Supply>,
        job: &Job,
    ) -> Result<Fleet, String> {
        enough(&heres, job.agents)?;
        let free: Vec<Here> = heres.into_iter().filter(is_usable).collect();
        fits(&link, &offer)?;
        let run = job.run.clone().unwrap_or_else(|| format!("{:08x}", units::system_random() as u32));
        let coordinator = Coordinator::new(run.clone(), free, offer, terms, clock.now()).with_supply(supply);
        let log = link.read_log(&run);
        Fleet::with(link, log, clock, &run, 0, seed, coordinator)
    }

    fn with(
        link: Link,
        log: LogReader,
        clock: Clock,
        run: &str,
        term: u32,
        seed: u64,
        coordinator: Coordinator,
    ) -> Result<Fleet, String> {
        let reports = link.subscribe(to_run(run))?;
        let outbox = Outbox::new(Author::Coordinator { term });
        let run = run.to_owned();
        Ok(Fleet {
            link,
            run,
            seed,
            coordinator,
            clock,
            ahead: Nanos::ZERO,
            reports,
            log,
            reach: Reach::default(),
            outbox,
            stored: mpsc::channel(),
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
    ) -> Result<Fleet, String> {
        let log = link.read_log(run);
        let until = clock.now() + READS;
        let reads = || format!("the log of run {run} is being read");
        let (began_at, began) = loop {
            // Its agents end their load as their leases expire.
            waiting.go_on(reads)?;
            match log.next(LOOKS) {
                Some((at, entry)) => {
                    if let Record::Began(began) = entry.record {
                        break (at, *began);
                    }
                }
                None if clock.now() >= until => return Err(format!("the log of run {run} cannot be read")),
                None => {}
            }
        };
        let (seed, after) = (began.seed, began.after);
        let terms = Terms { seed, ..terms };
        let coordinator = Coordinator::taking_up(run.to_owned(), term, began, terms).with_supply(supply);
        let mut fleet = Fleet::with(link, log, clock, run, term, seed, coordinator)?;
        let mut replay = Replay::since(began_at + after);
        loop {
            fleet.carry();
            if fleet.outbox.unstored() == 0 {
                replay.note_stored(fleet.clock());
            }
            fleet.go_on(waiting, reads)?;
            let Some((at, entry)) = fleet.log.next(LOOKS) else {
                if fleet.clock() >= until {
                    return Err(format!("the log of run {run} cannot be read"));
                }
                continue;
            };
            if let Some(time) = replay.add(at, entry, term) {
                let now = fleet.clock();
                // The clock of this process began after the run.
                fleet.ahead = time;
                fleet.coordinator.lead_from(now + time, replay.resumed_at(now));
                (waiting.say)(&taking_up(run, time));
                break;
            }
        }
        fleet.replay = Some(replay);
        Ok(fleet)
    }

    /// The connection, after the run.
    pub fn into_link(self) -> Link {
        self.link
    }

    /// The run's name.
    pub fn id(&self) -> &str {
        &self.run
    }

    /// How often another process of the coordinator has taken it up.
    pub fn term(&self) -> u32 {
        self.coordinator.term
    }

    /// The seed of the run.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Takes commands of this run from operators.
    ///
    /// # Errors
    /// NATS does not let it listen.
    pub fn commands(&self) -> Result<Commands, String> {
        Commands::new(&self.link, &self.run)
    }

    /// # Errors
    /// Ctrl-C: the agents are free.
    fn go_on(&mut self, waiting: &Waiting, state: impl FnOnce() -> String) -> Result<(), String> {
        waiting.go_on(state).inspect_err(|_| self.release())
    }

    fn get_ready(&mut self, waiting: &mut Waiting) -> Result<(), String> {
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
                    let why = why.to_owned();
                    self.release();
                    return Err(why);
                }
            }
        }
    }

    /// Nothing will come any more from any agent, or what comes is for another process.
    fn is_over(&self) -> bool {
        let now = self.clock();
        let is_read = self.log.is_current() || !self.coordinator.has_just_woken(now);
        self.coordinator.is_deposed() || is_read && self.coordinator.is_over(now)
    }

    fn clock(&self) -> Nanos {
        self.clock.now() + self.ahead
    }

    /// Takes what arrived, waiting for a report for at most this long, and sends what is due.
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

    /// Asks the broker whether it is there, where nothing comes. That a connection is lost is reported by the link.
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

    /// Messages arrive, as far as is known.
    fn is_reached(&self) -> bool {
        self.link.is_connected() && !self.reach.is_silent(self.clock())
    }

    fn carry(&mut self) {
        let now = self.clock();
        while let Some((subject, down)) = self.coordinator.poll_message() {
            self.link.send(subject, &down);
        }
        while let Some(record) = self.coordinator.poll_record() {
            self.outbox.push(&self.run, record);
        }
        while let Ok((ticket, is_stored)) = self.stored.1.try_recv() {
            self.outbox.handle(now, &ticket, is_stored);
        }
        while let Some(parcel) = self.outbox.poll(now) {
            self.link.store(parcel, self.stored.0.clone());
        }
    }

    /// All agents begin. On a signal before it is stored that they do, they are free, and have ended.
    pub fn begin(&mut self, interrupt: &Interrupt) -> Ground {
        // Of a run that is taken up the beginning is what is read first.
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

    /// Runs the plan that it was [gathered](Fleet::gather) for; the sinks see it as it happens.
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

    /// The agents are free, and the log is forgotten.
    pub fn release(&mut self) {
        self.coordinator.release();
        self.turn(Nanos::ZERO);
        // The leases of the agents run out otherwise, and the log is forgotten after its time.
        if self.is_reached() {
            self.link.flush();
            self.link.forget_log(&self.run);
        }
    }

    /// What happened before the run was taken up, until then at most; whether that lasts.
    fn replay(&mut self, until: Nanos) -> bool {
        let clock = self.clock();
        if let Some(replay) = &mut self.replay
            && replay.step(until, &mut self.coordinator, clock).is_none()
        {
            self.coordinator.catch_up(clock, replay);
            self.replay = None;
        }
        self.replay.is_some()
    }
}

/// The plan for its agents, with its seed.
fn offer(plan: &Plan, job: &Job, fingerprint: String) -> Offer {
    let drawn = Flags::default().with(&flag::SEED, plan.seed).pairs();
    let is_given = job.flags.iter().any(|(name, _)| *name == drawn[0].0);
    let flags = job.flags.iter().cloned().chain(drawn.into_iter().filter(|_| !is_given)).collect();
    let tables = plan.tables.iter().map(|table| (table.file.clone(), table.head())).collect();
    let (scenario, step) = (job.scenario.clone(), job.step);
    let sent = plan.clone().sent();
    Offer { protocol: PROTOCOL, fingerprint, flags, scenario, tables, sent, step }
}

/// The line for the user when a run is taken up that has lasted this long.
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
