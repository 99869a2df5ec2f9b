//! All clients of an agent, over its shards: what may be dialled, how many, and at which rate.

use std::{
    net::IpAddr,
    sync::{Arc, mpsc::Sender},
};

use fleet::{Allow, Caps, Forbidden, Held};
use host::Root;
use parking_lot::Mutex;
use plan::{Environment, Flags, Load, Plan, flag};
use run::Prepared;
use samples::{Header, Tick};
use tokio::sync::oneshot;
use units::{Clock, Count, Nanos, Rate};

use crate::{
    form::Wanted,
    order::{Dial, Filter, NotSent, Order, View},
    place::Place,
    target::Target,
    threads::ShardThread,
};

/// Maximum number of clients of an agent without a cap.
const MOST: u32 = 1 << 20;
/// Maximum number of shards: over epoll, each takes as many clients as its file table.
const MAX_SHARDS: usize = 256;
/// Requests for clients are refused while earlier dials will take longer than this.
const PATIENCE: Nanos = Nanos::from_secs(60);

/// Resolves a name to addresses.
pub type Resolve = fn(&str) -> Result<Vec<IpAddr>, String>;

/// The limits of an agent's clients.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Targets that may be dialled.
    pub allow: Allow,
    /// Maximum number and rate.
    pub caps: Caps,
}

/// The clients of an agent.
pub struct Clients {
    limits: Limits,
    resolve: Resolve,
    root: Root,
    clock: Clock,
    crew: Mutex<Crew>,
}

/// The part that changes with each request for clients.
#[derive(Default)]
struct Crew {
    shards: Vec<ShardThread>,
    targets: Vec<((plan::Target, plan::Tls), Arc<Target>)>,
    /// The last number given out; the first is 1.
    last: u32,
    /// With a cap on the rate: when the dials of earlier requests will be done.
    busy_until: Nanos,
    io: &'static str,
}

/// Why a request for clients is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Mistakes in the request, a line each.
    Wrong(Vec<String>),
    /// Not allowed on this agent.
    Forbidden(Forbidden),
    /// Possible after this time.
    Later(String, Nanos),
    /// This machine cannot hold them.
    Machine(String),
}

impl Clients {
    /// Without clients so far.
    pub fn new(limits: Limits, resolve: Resolve) -> Clients {
        let (root, clock) = (Root::real(), Clock::start());
        Clients { limits, resolve, root, clock, crew: Mutex::default() }
    }

    /// Adds clients and returns their numbers. Names are resolved now and the addresses checked, so that nothing else is dialled.
    /// Blocks until the shards have started.
    pub(crate) fn add(&self, wanted: &Wanted) -> Result<Vec<u32>, Refused> {
        let plan = self.plan(wanted)?;
        self.limits.allow.check(&plan).map_err(Refused::Forbidden)?;
        let rate = self.rate(wanted)?;
        // Pings of all new clients once connected: each sends one per interval.
        let pings = Rate::from_per_s_f64(f64::from(wanted.count) / wanted.ping.secs_f64());
        let held = self.limits.caps.hold(wanted.count.into(), pings).map_err(Refused::Forbidden)?;
        let plan = self.settled(plan);
        let prepared = self.prepare(&plan)?;
        let mut crew = self.crew.lock();
        let starts = self.starts(&crew, rate)?;
        let target = self.target(&mut crew, &plan, &prepared)?;
        crew.make_room(wanted.count, &prepared, self.most(), self.clock)?;
        Ok(self.place(&mut crew, wanted, &target, held, (starts, rate)))
    }

    fn plan(&self, wanted: &Wanted) -> Result<Plan, Refused> {
        let ws = &wanted.ws;
        let flags = Flags::new(ws).with(&flag::CONNECTIONS, wanted.count);
        let flags = if wanted.insecure { flags.with(&flag::INSECURE, "") } else { flags };
        let environment = Environment { cores: 1, seed: 0, resolve: &self.resolve };
        let wrong =
            |mistakes: Vec<plan::Mistake>| mistakes.iter().map(|m| format!("ws: {}", m.text)).collect();
        let plan =
            plan::from_flags(&flags, &environment).map_err(|mistakes| Refused::Wrong(wrong(mistakes)))?;
        if !plan.populations[0].target.scheme.has_frames() {
            return Err(Refused::Wrong(vec![format!("ws: use ws://HOST:PORT/PATH, or wss://: {ws:?}")]));
        }
        run::check_tls(&plan, &plan.parts(|_| 1))
            .map_err(|why| Refused::Wrong(vec![format!("ws: {why}")]))?;
        Ok(plan)
    }

    /// Selects the address family that the target serves, if a name has both and both are allowed.
    fn settled(&self, mut plan: Plan) -> Plan {
        run::settle(&mut plan, &self.root, true, &mut |_| {});
        plan
    }

    fn prepare(&self, plan: &Plan) -> Result<Prepared, Refused> {
        run::prepare(plan, &self.root).map_err(|why| Refused::Machine(why.to_string()))
    }

    /// The rate at which to dial beside a running test; `None`: all at once.
    fn rate(&self, wanted: &Wanted) -> Result<Option<Rate>, Refused> {
        let caps = &self.limits.caps;
        let free = caps.free_rate();
        // With no free rate left, no rate is slow enough: the check refuses it.
        let asked = wanted.rate.or(caps.rate().filter(|_| free.is_some_and(Rate::is_zero)));
        if let Some(rate) = asked {
            caps.check_rate("rate", rate).map_err(Refused::Forbidden)?;
        }
        Ok(asked.or(free))
    }

    /// When the dials of a request begin: with a cap on their rate, after those of earlier requests.
    fn starts(&self, crew: &Crew, rate: Option<Rate>) -> Result<Nanos, Refused> {
        let now = self.clock.now();
        let (Some(most), Some(_)) = (self.limits.caps.rate(), rate) else { return Ok(now) };
        let wait = crew.busy_until.since(now);
        if wait > PATIENCE {
            let why = format!(
                "the clients of earlier requests are still being dialled, at --max-rate {most}; try again in {}",
                Nanos(wait.0 / 1_000_000_000 * 1_000_000_000).brief()
            );
            return Err(Refused::Later(why, wait));
        }
        Ok(crew.busy_until.max(now))
    }

    /// Number of clients for which the tables of a shard are sized.
    fn most(&self) -> u32 {
        self.limits.caps.connections().map_or(MOST, |most| most.min(MOST.into()) as u32).max(1)
    }

    /// The target, with enough local addresses for its present clients and the new ones; each address is used once, as long as
    /// they last.
    fn target(&self, crew: &mut Crew, plan: &Plan, prepared: &Prepared) -> Result<Arc<Target>, Refused> {
        // Targets without clients are dropped.
        crew.targets.retain(|(_, own)| Arc::strong_count(own) > 1);
        let population = &plan.populations[0];
        let own = (population.target.clone(), population.tls.clone());
        let same = |(known, _): &&((plan::Target, plan::Tls), Arc<Target>)| *known == own;
        let clients = |own: &Arc<Target>| Arc::strong_count(own) as u64 - 1;
        let held: u64 = crew.targets.iter().filter(same).map(|(_, own)| clients(own)).sum();
        let wanted = held + u64::from(plan.places());
        let with_room = crew.targets.iter().filter(same).find(|(_, own)| own.tuples >= wanted);
        if let Some((_, known)) = with_room {
            return Ok(known.clone());
        }
        let dials = match u32::try_from(wanted) {
            // The same destinations, which have been checked, for more clients.
            Ok(connections) if held > 0 => {
                let mut larger = plan.clone();
                larger.populations[0].load = Load::Held { connections };
                self.prepare(&larger)?.dials()
            }
            _ => prepared.dials(),
        };
        let new = Arc::new(Target::new(population, dials));
        crew.targets.push((own, new.clone()));
        Ok(new)
    }

    fn place(
        &self,
        crew: &mut Crew,
        wanted: &Wanted,
        target: &Arc<Target>,
        mut held: Held,
        (starts, rate): (Nanos, Option<Rate>),
    ) -> Vec<u32> {
        let Crew { shards, last, busy_until, .. } = crew;
        let mut nth = 0;
        let mut numbers = Vec::new();
        for shard in shards.iter() {
            let count = shard.free().min(wanted.count - nth);
            let dials = (0..count).map(|_| {
                *last += 1;
                let after = rate.map_or(Nanos::ZERO, |rate| rate.time_of(nth.into()));
                nth += 1;
                let place = Place::new(shard.taken.clone(), held.split(1));
                Dial { number: *last, target: target.clone(), due: starts + after, ping: wanted.ping, place }
            });
            let dials: Vec<Dial> = dials.collect();
            numbers.extend(dials.iter().map(|dial| dial.number));
            // A shard that has panicked takes no orders, and its clients are gone.
            let _ = shard.orders.send(Order::Add(dials));
        }
        if let Some(rate) = rate {
            *busy_until = starts + rate.time_of(wanted.count.into());
        }
        numbers
    }

    fn shards(&self) -> Vec<Sender<Order>> {
        self.crew.lock().shards.iter().map(|shard| shard.orders.clone()).collect()
    }

    /// Sends an order to all shards; returns their replies.
    async fn ask<T>(&self, order: impl Fn(oneshot::Sender<T>) -> Order) -> Vec<T> {
        let ask = |shard: Sender<Order>| {
            let (reply, replied) = oneshot::channel();
            let _ = shard.send(order(reply));
            replied
        };
        let asked: Vec<_> = self.shards().into_iter().map(ask).collect();
        let mut replies = Vec::new();
        for reply in asked {
            replies.extend(reply.await);
        }
        replies
    }

    /// A client.
    pub(crate) async fn get(&self, number: u32) -> Option<View> {
        self.ask(|reply| Order::Get(number, reply)).await.into_iter().flatten().next()
    }

    /// Sends a text on a client.
    pub(crate) async fn send(&self, number: u32, text: &str) -> Option<Result<View, NotSent>> {
        let text: Arc<str> = text.into();
        self.ask(|reply| Order::Send(number, text.clone(), reply)).await.into_iter().flatten().next()
    }

    /// Closes and removes a client; returns its last state.
    pub(crate) async fn delete(&self, number: u32) -> Option<View> {
        self.ask(|reply| Order::Delete(number, reply)).await.into_iter().flatten().next()
    }

    /// The numbers of clients, ascending.
    pub(crate) async fn list(&self, filter: Filter) -> Vec<u32> {
        let mut all: Vec<u32> =
            self.ask(|reply| Order::List(filter, reply)).await.into_iter().flatten().collect();
        all.sort_unstable();
        all
    }

    /// The counts since the start, and the header that describes them.
    pub(crate) async fn counted(&self) -> (Header, Tick) {
        let mut total = Tick::default();
        let reports = self.ask(Order::Report).await;
        reports.iter().for_each(|tick| total.merge(tick));
        let crew = self.crew.lock();
        let header = Header {
            target: "clients".to_owned(),
            connections: total.wanted,
            io: crew.io.into(),
            threads: crew.shards.len() as u32,
            ..Header::default()
        };
        (header, total)
    }

    /// Closes all clients.
    pub fn stop(&self) {
        let shards = std::mem::take(&mut self.crew.lock().shards);
        shards.into_iter().for_each(ShardThread::stop);
    }
}

impl Crew {
    /// Starts shards until there is room for `count` more clients.
    fn make_room(&mut self, count: u32, prepared: &Prepared, most: u32, clock: Clock) -> Result<(), Refused> {
        self.io = prepared.backend().name();
        loop {
            let free: u64 = self.shards.iter().map(|shard| u64::from(shard.free())).sum();
            if free >= count.into() {
                return Ok(());
            }
            if self.shards.len() == MAX_SHARDS {
                let why = format!("{} clients fit into {MAX_SHARDS} threads, no more", Count(free));
                return Err(Refused::Machine(why));
            }
            let shard = ShardThread::start(self.shards.len(), prepared, most, clock);
            self.shards
                .push(shard.map_err(|e| Refused::Machine(format!("cannot start another shard: {e}")))?);
        }
    }
}
