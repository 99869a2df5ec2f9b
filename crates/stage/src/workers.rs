//! The workers of a simulated run: client shards on a simulated network, in virtual time instead of in threads.

use engine::{Arrivals, Control, Job, RateProfile, Remote};
use net::io::sim::{self, Net, Turn};
use plan::{Part, Plan, Ramp, Role};
use run::{Order, Update, Workers};
use samples::{Command, Tick};
use units::Nanos;

use crate::{Level, sums::Sums};

/// Time within which every shard applies an order: it checks several times a second.
const NOTICE: Nanos = Nanos::from_millis(120);
/// This long after the last order, every shard has handed over its last tick.
const STOPPED: Nanos = Nanos::from_millis(250);
/// A run that takes longer will never end.
const TOO_LONG: Nanos = Nanos::from_secs(2 * 3600);

pub(crate) struct Shards<'a> {
    pub(crate) net: &'a Net,
    pub(crate) plan: &'a Plan,
    pub(crate) parts: &'a [Part],
    /// All shards: clients and servers.
    pub(crate) turns: Vec<&'a mut dyn Turn>,
    pub(crate) arrivals: Arrivals,
    pub(crate) remotes: Vec<Remote>,
    /// The last tick that was read, with its shard.
    pub(crate) read: Option<(u32, Box<Tick>)>,
    pub(crate) sums: Sums<'a>,
    pub(crate) see: &'a mut dyn FnMut(u32, &Tick),
    /// Levels that are not ordered yet.
    pub(crate) levels: &'a [(Nanos, Level)],
    /// Commands to be passed to the conductor.
    pub(crate) commands: Vec<Command>,
    /// When the stop was ordered; never, before that.
    pub(crate) stopped: Nanos,
    /// From this time on no client shard is frozen.
    pub(crate) moves_from: Nanos,
}

impl Workers for Shards<'_> {
    fn role(&self) -> Vec<Role> {
        self.parts.iter().map(|part| part.role).collect()
    }

    fn notice(&self) -> Nanos {
        NOTICE
    }

    fn period(&self) -> Nanos {
        Job::PERIOD
    }

    fn now(&self) -> Nanos {
        self.net.now()
    }

    fn order(&mut self, order: Order) {
        if order == Order::All(Control::Stop) {
            self.stopped = self.now();
        }
        for (part, remote) in self.parts.iter().zip(&self.remotes) {
            if let Some(control) = order.to(part) {
                remote.control.try_send(control).expect("a shard obeys within a few ticks");
            }
        }
    }

    fn next(&mut self, until: Nanos) -> Update<'_> {
        if let Some((shard, tick)) = self.read.take() {
            self.remotes[shard as usize].used.try_send(tick).expect("two ticks go back and forth");
        }
        let Some(read) = self.arrivals.try_recv().ok().or_else(|| self.run(until)) else {
            self.order_level();
            return if self.now() >= self.ends_at() { Update::Ended } else { Update::Nothing };
        };
        let (shard, tick) = &*self.read.insert(read);
        (self.see)(*shard, tick);
        self.sums.take(*shard, tick);
        Update::Tick(*shard, tick)
    }
}

impl Shards<'_> {
    /// Runs until the next tick arrives, or an order is due.
    fn run(&mut self, until: Nanos) -> Option<(u32, Box<Tick>)> {
        assert!(self.now() < TOO_LONG, "the run comes to its end, seed {}", self.plan.seed);
        let level_at = self.levels.first().map_or(Nanos::NEVER, |(at, _)| *at);
        let until = until.min(self.ends_at()).min(level_at);
        let mut read = None;
        sim::run(self.net, &mut self.turns, until, || {
            read = self.arrivals.try_recv().ok();
            read.is_some()
        });
        read
    }

    fn ends_at(&self) -> Nanos {
        if self.stopped == Nanos::NEVER { Nanos::NEVER } else { self.stopped.max(self.moves_from) + STOPPED }
    }

    /// Orders the next level when it is due; each shard gets its share.
    fn order_level(&mut self) {
        let Some((&(at, level), rest)) = self.levels.split_first() else { return };
        let now = self.now();
        if now < at {
            return;
        }
        self.levels = rest;
        let profile = match self.plan.stages[0].ramp {
            Ramp::Rate(rate) => Some(RateProfile::Steady(rate)),
            _ => None,
        };
        self.order(match level {
            Level::UserCommand(command) => return self.commands.push(command),
            Level::Connections(n) => Order::Load(0, n, profile, now),
            Level::Rate(rate) => {
                Order::Population(0, Control::RateProfile(RateProfile::Steady(rate), at + NOTICE))
            }
        });
    }
}
