//! `throng agent`: takes part in the runs of a coordinator.

mod allow;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use host::Root;
use plan::{Flags, Part, Plan, Role, Share, TupleShare};
use run::{Order, Prepared, Threads, Update, Workers, prepare};
use samples::Tick;
use units::{Clock, Nanos};

pub use allow::Allow;

use crate::{
    link::{Inbox, Link},
    message::{Down, EVERY, HERE, Here, LEASE, News, PROTOCOL, Up, to_agent, to_run},
};

/// How long an agent looks for messages before it does something else.
const LOOKS: Nanos = Nanos::from_millis(50);

/// The plan that flags, and the text of a scenario file, make on this machine; or why there is none. It reads no file and dials
/// nothing.
pub type Planner<'a> = &'a dyn Fn(&Flags, Option<&str>) -> Result<Plan, String>;

/// An agent that has joined.
pub struct Agent<'a> {
    link: Link,
    here: Here,
    allow: Allow,
    planner: Planner<'a>,
    root: Root,
    clock: Clock,
    said: Nanos,
}

/// A share of a run that was accepted.
struct Work {
    run: String,
    plan: Plan,
    prepared: Prepared,
    own: Vec<u32>,
    heard: Nanos,
}

impl<'a> Agent<'a> {
    /// Joins the fleet at this server.
    pub fn new(link: Link, version: &str, cores: u32, allow: Allow, planner: Planner<'a>) -> Agent<'a> {
        let root = Root::real();
        let id = format!("{:08x}", units::system_random() as u32);
        let network = host::network_id(&root);
        let here = Here { id, protocol: PROTOCOL, version: version.to_owned(), network, cores, run: None };
        Agent { link, here, allow, planner, root, clock: Clock::start(), said: Nanos::ZERO }
    }

    /// Its name in the fleet.
    pub fn id(&self) -> &str {
        &self.here.id
    }

    /// Takes part in runs until it is to stop.
    ///
    /// # Errors
    /// NATS does not let it listen.
    pub fn serve(&mut self, stop: &AtomicBool) -> Result<(), String> {
        let inbox = self.link.subscribe(to_agent(&self.here.id))?;
        self.say();
        while !stop.load(Relaxed) {
            self.say_again();
            if let Some(Down::Offer { run, protocol, flags, scenario, share }) = inbox.next(LOOKS) {
                self.here.run = Some(run.clone());
                match self.accept(&run, protocol, &flags, scenario.as_deref(), share) {
                    Ok(work) => self.take_part(work, &inbox, stop),
                    Err(why) => self.report(&run, News::Refused { why }),
                }
                self.here.run = None;
                self.say();
            }
        }
        Ok(())
    }

    fn say(&mut self) {
        self.said = self.clock.now();
        self.link.send(HERE.to_owned(), &self.here);
    }

    fn say_again(&mut self) {
        if self.clock.now().since(self.said) >= EVERY {
            self.say();
        }
    }

    fn report(&self, run: &str, news: News) {
        self.link.send(to_run(run), &Up { id: self.here.id.clone(), news });
    }

    /// Checks that this machine may and can take its share.
    fn accept(
        &self,
        run: &str,
        protocol: u32,
        flags: &[(String, String)],
        scenario: Option<&str>,
        (own, all): (u32, u32),
    ) -> Result<Work, String> {
        if protocol != PROTOCOL {
            return Err(format!(
                "the coordinator's throng is not of this version ({}): it speaks protocol {protocol}, not {PROTOCOL}",
                self.here.version
            ));
        }
        let mut plan = (self.planner)(&Flags::from_pairs(flags)?, scenario)?;
        self.allow.check(&plan)?;
        // It dials to see which family is served: only what is allowed.
        run::settle(&mut plan, &self.root, true, &mut |_| {});
        let share = plan.scaled(Share::ALL.part(own, all));
        let prepared = prepare(&share, &self.root).map_err(|why| why.to_string())?;
        let own = prepared.shards().to_vec();
        Ok(Work { run: run.to_owned(), plan, prepared, own, heard: self.clock.now() })
    }

    fn take_part(&mut self, mut work: Work, inbox: &Inbox<Down>, stop: &AtomicBool) {
        self.report(&work.run, News::Offered { shards: work.own.clone() });
        let mut threads = None;
        while !stop.load(Relaxed) && self.clock.now().since(work.heard) < LEASE {
            self.say_again();
            let Some(message) = inbox.next(LOOKS) else { continue };
            match message {
                Down::Assign { run, shards, probe, tuples, salt } if run == work.run => {
                    work.heard = self.clock.now();
                    work.prepared.begin_sources_at(salt);
                    let parts = parts(&work.plan, &work.own, &shards, probe, tuples);
                    let roles = parts.iter().map(|part| part.role).collect();
                    match Threads::ready(&work.plan, &work.prepared, parts) {
                        Ok(ready) => {
                            let io = ready.io().to_owned();
                            threads = Some(ready);
                            self.report(&work.run, News::Ready { roles, io });
                        }
                        Err(why) => return self.report(&work.run, News::Refused { why: why.to_string() }),
                    }
                }
                Down::Begin { run } if run == work.run => {
                    let Some(threads) = threads.take() else { return };
                    return self.lead(work, threads, inbox, stop);
                }
                Down::Alive { run } if run == work.run => work.heard = self.clock.now(),
                _ => {}
            }
        }
        // The threads still wait for their beginning: they end without one.
        threads.into_iter().for_each(Threads::join);
    }

    /// From the beginning of the run until its shards have ended.
    fn lead(&mut self, mut work: Work, mut threads: Threads, inbox: &Inbox<Down>, stop: &AtomicBool) {
        threads.begin();
        let began = threads.began();
        let shards = threads.role().len();
        let mut counted: Vec<Tick> = vec![Tick::default(); shards];
        let mut sequences = vec![0; shards];
        let mut sent = threads.now();
        let mut is_stopping = false;
        work.heard = self.clock.now();
        loop {
            self.say_again();
            while let Some(message) = inbox.next(Nanos::ZERO) {
                work.heard = self.clock.now();
                if let Down::Order { run, order } = message
                    && run == work.run
                {
                    is_stopping |= order == Order::STOP;
                    threads.order(order.shifted(began));
                }
            }
            let is_orphan = self.clock.now().since(work.heard) >= LEASE || stop.load(Relaxed);
            if is_orphan && !is_stopping {
                is_stopping = true;
                threads.order(Order::STOP);
            }
            let has_ended = match threads.next(threads.now() + LOOKS) {
                Update::Tick(shard, tick) => {
                    counted[shard as usize].extend(tick);
                    false
                }
                Update::Lost(shard) => {
                    self.report(&work.run, News::Lost { shard });
                    false
                }
                Update::Nothing => false,
                Update::Ended => true,
            };
            let now = threads.now();
            if has_ended || is_stopping || now.since(sent) >= EVERY {
                sent = now;
                for (shard, tick) in counted.iter_mut().enumerate().filter(|(_, tick)| tick.until > tick.from)
                {
                    let sequence = sequences[shard];
                    sequences[shard] += 1;
                    let tick = Box::new(std::mem::take(tick).shifted_back(began));
                    self.report(&work.run, News::Tick { shard: shard as u32, sequence, tick });
                }
            }
            if has_ended {
                self.report(&work.run, News::Ended { ticks: sequences });
                self.link.flush();
                return threads.join();
            }
        }
    }
}

/// The parts of the plan that are this agent's, with its share of the tuples of its network.
fn parts(
    plan: &Plan,
    own: &[u32],
    shards: &[(u32, u32)],
    probe: bool,
    (place, all): (u32, u32),
) -> Vec<Part> {
    let alone = plan.parts(|nth| own[usize::from(nth)]);
    let tuples = |nth: usize| {
        let TupleShare { from, width, of } = alone[nth].tuple_share;
        TupleShare { from: place * of + from, width, of: all * of }
    };
    let is_own = |part: &Part| match part.role {
        Role::Population(nth) => {
            let first = shards[usize::from(nth)].0;
            (first..first + own[usize::from(nth)]).contains(&part.shard)
        }
        Role::Probe(_) => probe,
    };
    let whole = plan.parts(|nth| shards[usize::from(nth)].1).into_iter().filter(is_own);
    whole.enumerate().map(|(nth, part)| Part { tuple_share: tuples(nth), ..part }).collect()
}
