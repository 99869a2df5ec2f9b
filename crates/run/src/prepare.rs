//! Checks before the first dial whether this machine can carry out the plan: source addresses and ports, open files, memory, the I/O
//! backend. The result is either a [`Prepared`] run or a [`Refusal`] with fixes.

mod backend;
pub(crate) mod devices;
mod refusal;

use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
};

use engine::Memory;
use host::{Finding, Layers, Need, Root, Severity};
use net::{Backend, io::uring::Uring};
use observe::{listeners, listeners_at};
use plan::{
    Activity, Dials, IoChoice, Network, Part, Plan, Population, PortFacts, Ports, Ramp, Role, Route,
    SourcePool, Sources, Target, TupleShare, capacity, usable_ports,
};
use units::{Count, Nanos, Rate};

pub use backend::choose_io;
pub(crate) use backend::{Shards, shards};
pub use refusal::Refusal;
pub(crate) use refusal::refused_here;

/// Local 4-tuples requested beyond what is needed, so that tuples in use can be skipped.
const SPARE_TUPLES: u64 = 1000;

/// Printed where the ports of the kernel's choice of a source do not suffice.
const MORE_SOURCES: &str =
    "dialling from many addresses of 127.0.0.0/8: the ports of 127.0.0.1 do not suffice";

/// Assumed maximum duration of a dial, to estimate the outstanding dials at a rate. It matters if both ends are on this machine: there a
/// dial takes microseconds, unless the target pauses accepting.
const CONNECT_TIME: Nanos = Nanos::from_millis(100);

/// Assumed time for accepting a connection, and for each response, to estimate the number of simultaneous connections.
const RESPONSE_TIME: Nanos = Nanos::from_millis(100);

/// Minimum duration of a run with a fixed number of messages for a notice to be printed.
const LONG: Nanos = Nanos::from_secs(10);

/// What a run needs of this machine, checked and available.
#[derive(Debug)]
pub struct Prepared {
    /// Findings that do not prevent the run.
    pub warnings: Vec<Finding>,
    /// The source addresses and their destinations, by role.
    pub(crate) routes: HashMap<Role, Vec<Route>>,
    /// Where in the range of local 4-tuples dials begin. Random rather than derived from the seed, so that a repeated run does not
    /// collide with the TIME_WAIT sockets of the previous one.
    pub(crate) salt: u64,
    pub(crate) backend: Backend,
    /// Why this backend was chosen; `None` if the plan names it.
    pub(crate) because: Option<String>,
    pub(crate) shards: Shards,
    /// Maximum number of files, or direct descriptors, per table.
    pub(crate) slots: u32,
}

impl Prepared {
    /// The number of shards for each population on this machine.
    pub fn shards(&self) -> &[u32] {
        &self.shards.counts
    }

    /// Sets where local 4-tuples begin; the same value for all processes that share them.
    pub fn begin_sources_at(&mut self, salt: u64) {
        self.salt = salt;
    }

    /// The dials of the first population, for a program that dials alone.
    pub fn dials(&self) -> Dials {
        let routes = self.routes[&Role::Population(0)].clone();
        Dials::new(routes, TupleShare::ALL, self.salt)
    }

    /// The kernel interface to use.
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// Maximum number of files or direct descriptors per table, and whether each thread has its own table.
    pub fn tables(&self) -> (u32, bool) {
        (self.slots, self.shards.own_files)
    }

    /// Prints what the user should know before the run starts, one line each.
    pub(crate) fn print_notices(&self, say: &mut dyn FnMut(&str)) {
        self.because.iter().for_each(|because| say(because));
        if self.routes.values().flatten().any(|route| route.pool == SourcePool::Loopback4) {
            say(MORE_SOURCES);
        }
        self.warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
    }
}

/// Checks the plan against this machine.
///
/// # Errors
/// [`Refusal::Findings`] with all refusals, if this machine cannot carry out the plan.
pub fn prepare(plan: &Plan, root: &Root) -> Result<Prepared, Refusal> {
    prepare_part(plan, plan.pairs_needed(), root)
}

/// Checks the part of a plan that this process carries out, where several processes share a plan. Processes on the same machine share its
/// ports: `pairs` is the number of address and port pairs that all of them together need between two hosts.
///
/// # Errors
/// See [`prepare`].
pub fn prepare_part(plan: &Plan, pairs: u64, root: &Root) -> Result<Prepared, Refusal> {
    let (backend, because) = choose_io(plan.io, root)?;
    let (routes, need) = demand(plan, pairs, root)?;
    let slots = net::raise_open_files().unwrap_or(1024);
    // `choose_io` and `shards` check io_uring and epoll's file tables.
    let need = Need { uring: Ok(()), ..need };
    let (mut refusals, warnings): (Vec<_>, Vec<_>) =
        host::preflight(root, &need).into_iter().partition(|f| f.severity == Severity::Refuse);
    let shards = shards(plan, backend, slots, net::probe_own_open_files);
    refusals.extend(shards.as_ref().err().cloned());
    match shards {
        Ok(shards) if refusals.is_empty() => {
            Ok(Prepared { warnings, routes, salt: units::system_random(), backend, because, shards, slots })
        }
        _ => Err(Refusal::Findings(refusals)),
    }
}

/// Checks the TLS settings of these parts: certificates, keys and names.
///
/// # Errors
/// The first unusable setting, with its flag and the reason.
pub fn check_tls(plan: &Plan, parts: &[Part]) -> Result<(), Refusal> {
    for part in parts {
        if let Some(tls) = engine::secured(plan.population(part.role)) {
            tls.check().map_err(|(flag, why)| format!("{flag}: {why}"))?;
        }
    }
    Ok(())
}

/// The notice that a run with a fixed number of messages will take long because of their interval: 100 messages on 10 connections take
/// ten intervals.
pub(crate) fn notice_long(plan: &Plan) -> Option<String> {
    let [only] = &plan.populations[..] else { return None };
    let Activity::Ping { every, .. } = &only.activity else { return None };
    let (all, connections) = (only.requests?, u64::from(only.load.connections()).max(1));
    // The first message of each connection comes after a random part of the interval.
    let rounds = all.div_ceil(connections).saturating_sub(1);
    let least = Nanos(every.0.saturating_mul(rounds));
    let ends_before = plan.hold().is_some_and(|hold| hold <= least);
    if only.load.rate().is_some() || least < LONG || ends_before {
        return None;
    }
    let [messages, on] = [Count(all).of("message"), Count(connections).of("connection")];
    Some(format!(
        "{messages} on {on}, {every} apart, take at least {least}; use a shorter --ping, or more connections"
    ))
}

/// The number of the plan's connections that this machine can hold.
///
/// # Errors
/// See [`prepare`].
pub fn fitting(plan: &Plan, root: &Root) -> Result<u64, Refusal> {
    Ok(host::capacity(root, &need(plan, root)?).connections.min(u64::from(plan.places())))
}

/// What the plan needs of this machine, unchecked; used by doctor.
///
/// # Errors
/// There is no route to the target.
pub fn need(plan: &Plan, root: &Root) -> Result<Need, Refusal> {
    demand(plan, plan.pairs_needed(), root).map(|(_, need)| need)
}

type Routes = HashMap<Role, Vec<Route>>;

fn demand(plan: &Plan, pairs: u64, root: &Root) -> Result<(Routes, Need), Refusal> {
    let destinations = plan.destinations();
    let listeners = listeners(root);
    let facts = host::port_facts(root, &listeners).avoiding(&destinations);
    let routes = routes(plan, &facts, pairs.saturating_add(SPARE_TUPLES))?;
    let tuples = match plan.io {
        IoChoice::Tun => devices::tuples(plan, &routes),
        _ => routes.values().map(|own| tuples(own, &facts)).min().unwrap_or_default(),
    };
    let target = &plan.populations[0].target;
    let need = Need {
        target: Some(plan.text.clone()),
        connections: plan.places().into(),
        expected: plan.usually_open(RESPONSE_TIME).into(),
        dials: (0..).zip(&plan.populations).map(|(nth, own)| dials(plan, nth, own)).sum(),
        threads: plan.threads.into(),
        sources: routes.values().flatten().map(|route| route.pool.count()).min().unwrap_or_default(),
        networks: match &plan.sources {
            Sources::Automatic => Vec::new(),
            Sources::Listed(networks) => networks.clone(),
        },
        device: host::route_device(root, destinations[0].ip()).unwrap_or_else(|| "lo".to_owned()),
        destinations: destinations.len() as u64,
        addresses: destinations.iter().map(SocketAddr::ip).collect(),
        is_v4: target.is_v4(),
        listeners: listeners_at(listeners, &destinations),
        both_ends_here: destinations.iter().all(|d| host::is_local(root, d.ip())),
        tuples,
        uring: Uring::probe().map_err(|e| e.to_string()),
        layers: layers(plan),
        is_tun: plan.io == IoChoice::Tun,
    };
    Ok((routes, need))
}

/// The routes of each role: source addresses with their destinations, chosen to provide `wanted` pairs of address and port.
fn routes(plan: &Plan, facts: &PortFacts, wanted: u64) -> Result<Routes, Refusal> {
    let roles: HashSet<Role> = plan.parts(|_| 1).into_iter().map(|part| part.role).collect();
    let mut pools = HashMap::new();
    for role in roles {
        pools.insert(role, source_pools(plan, &plan.population(role).target)?);
    }
    // Parts that share a pool must use the same ports, or their tuple shares would overlap.
    let least = |pool: &SourcePool| {
        let sharing = pools.values().flatten().filter(|(other, _)| other == pool);
        sharing.map(|(_, at)| cursors(pool, at)).min().unwrap_or(1)
    };
    let ports = |pool: &SourcePool| match plan.io {
        IoChoice::Tun => Ports::unshared(),
        _ => usable_ports(facts, pool.count(), least(pool), wanted),
    };
    let numbers: HashMap<SocketAddr, u32> = plan.destinations().into_iter().zip(0..).collect();
    let route = |target: &Target, (first, at): &(SourcePool, Vec<u32>)| {
        let suffices = capacity(first.count(), least(first), facts) >= wanted;
        let (pool, further) = match further(plan, first) {
            Some(further) if !suffices => (further, None),
            further => (first.clone(), further),
        };
        Route {
            ports: ports(&pool),
            pool,
            numbers: at.iter().map(|at| numbers[&target.destinations[*at as usize]]).collect(),
            destinations: at.clone(),
            further: further.map(|pool| (pool.clone(), ports(&pool))),
        }
    };
    let of = |(role, own): (&Role, &Vec<_>)| {
        let target = &plan.population(*role).target;
        (*role, own.iter().map(|pool| route(target, pool)).collect())
    };
    Ok(pools.iter().map(of).collect())
}

/// Maximum number of 4-tuples on these routes.
fn tuples(routes: &[Route], facts: &PortFacts) -> u64 {
    let of = |route: &Route| {
        let pools = [Some(&route.pool), route.further.as_ref().map(|(pool, _)| pool)];
        let of = |pool: &SourcePool| capacity(pool.count(), cursors(pool, &route.destinations), facts);
        pools.into_iter().flatten().map(of).fold(0, u64::saturating_add)
    };
    routes.iter().map(of).fold(0, u64::saturating_add)
}

/// The factor by which destinations multiply the pairs of a pool. It is 1 for 127.0.0.0/8, where each pair of address and port is used
/// only once.
fn cursors(pool: &SourcePool, destinations: &[u32]) -> u64 {
    match pool {
        SourcePool::Loopback4 => 1,
        SourcePool::Listed(_) => destinations.len() as u64,
    }
}

/// Maximum number of outstanding dials of a population: at a rate, those of [`CONNECT_TIME`]; otherwise all of its connections.
fn dials(plan: &Plan, nth: u16, population: &Population) -> u64 {
    let all = u64::from(population.most_open());
    let at = |rate: Rate| rate.due(CONNECT_TIME).saturating_add(1).min(all);
    if let Some(rate) = population.load.arrival_rate() {
        return at(rate);
    }
    let by = |ramp: Ramp| match ramp {
        Ramp::Adaptive => all,
        Ramp::Rate(rate) => at(rate),
        Ramp::Within(time) => at(Rate::from_per_s_f64(all as f64 / time.secs_f64())),
    };
    let stages = plan.stages.iter().filter(|stage| stage.of.contains(&nth));
    stages.map(|stage| by(stage.ramp)).max().unwrap_or(all)
}

/// The fractions of the load's connections with TLS and with HTTP/2, and the memory that captures, messages and heartbeats need.
fn layers(plan: &Plan) -> Layers {
    let sum = |of_each: fn(&Population) -> u64| -> f64 {
        let of = |population: &Population| f64::from(population.most_open()) * of_each(population) as f64;
        plan.populations.iter().map(of).sum()
    };
    let all = sum(|_| 1).max(1.0);
    Layers {
        tls: sum(|population| population.target.secure.into()) / all,
        http2: sum(|population| population.streams.is_some().into()) / all,
        captures: sum(|population| Memory::of(population).captures) / all,
        messages: sum(|population| Memory::of(population).messages) / all,
        beats: sum(|population| Memory::of(population).beats) / all,
        handshakes: plan.handshakes(),
        http2_requests: plan.http2_requests(),
    }
}

/// The source pools, each with the destinations dialled from it, as indices into the target. 127.0.0.0/8 and ::1 can reach only loopback.
fn source_pools(plan: &Plan, target: &Target) -> Result<Vec<(SourcePool, Vec<u32>)>, Refusal> {
    let mut pools: Vec<(SourcePool, Vec<u32>)> = Vec::new();
    for (nth, to) in (0..).zip(&target.destinations) {
        let pool = source_pool(plan, *to)?;
        match pools.iter_mut().find(|(other, _)| *other == pool) {
            Some((_, destinations)) => destinations.push(nth),
            None => pools.push((pool, vec![nth])),
        }
    }
    Ok(pools)
}

fn source_pool(plan: &Plan, to: SocketAddr) -> Result<SourcePool, Refusal> {
    let route = || net::route_source(to).map_err(|e| Refusal::Failed(format!("no route to {to}: {e}")));
    if plan.io == IoChoice::Tun {
        return route().and_then(|_| devices::block(&plan.sources, to));
    }
    match &plan.sources {
        Sources::Listed(networks) => {
            let leads = |network: &&Network| to.ip().is_loopback() || !network.nth(0).is_loopback();
            let leading: Vec<Network> = networks.iter().filter(leads).cloned().collect();
            let why = "loopback addresses can reach only loopback; use other --sources of this machine";
            if leading.is_empty() {
                return Err(Refusal::Failed(format!("no route to {to}: {why}")));
            }
            Ok(SourcePool::Listed(leading))
        }
        Sources::Automatic => Ok([route()?].into_iter().collect()),
    }
}

/// Additional source addresses if the kernel's choice has too few ports: on loopback, any of 127.0.0.0/8; otherwise none.
fn further(plan: &Plan, pool: &SourcePool) -> Option<SourcePool> {
    let SourcePool::Listed(networks) = pool else { return None };
    let is_loopback = networks.iter().all(|network| network.is_v4() && network.nth(0).is_loopback());
    let is_free = plan.sources == Sources::Automatic && plan.io != IoChoice::Tun;
    (is_free && is_loopback).then_some(SourcePool::Loopback4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{Environment, Flags, flag};

    fn plan(flags: &[(&str, &str)]) -> Plan {
        let defaults = [("target", "http://127.0.0.1:1/"), ("duration", "1s")];
        let is_given = |(name, _): &(&str, &str)| flags.iter().any(|(given, _)| given == name);
        let all = [&defaults.into_iter().filter(|it| !is_given(it)).collect::<Vec<_>>(), flags].concat();
        let pairs: Vec<(String, String)> =
            all.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let resolve = |_: &str| Err("no names here".to_owned());
        let around = Environment { cores: 1, seed: 1, resolve: &resolve };
        plan::from_flags(&Flags::from_pairs(&pairs).unwrap(), &around).unwrap()
    }

    #[test]
    fn loopback_is_dialled_from_where_the_kernel_would_dial_it_from() {
        let facts = PortFacts { local_range: (32_768, 60_999), ..PortFacts::default() };
        let first: SourcePool = [[127, 0, 0, 1].into()].into_iter().collect();
        let check = |flags: &[(&str, &str)], expected: &SourcePool, is_automatic: bool, inside: usize| {
            let plan = plan(flags);
            let routes = routes(&plan, &facts, plan.pairs_needed() + SPARE_TUPLES).unwrap();
            let [route] = &routes[&Role::Population(0)][..] else { panic!("{flags:?}: {routes:?}") };
            assert_eq!((&route.pool, route.ports.inside), (expected, inside), "{flags:?}");
            let further = (is_automatic && route.pool == first).then_some(SourcePool::Loopback4);
            assert_eq!(route.further.as_ref().map(|(pool, _)| pool.clone()), further, "{flags:?}");
            let all: u64 = tuples(&routes[&Role::Population(0)], &facts);
            assert!(all >= plan.pairs_needed() || !is_automatic, "{flags:?}: {all}");
        };
        check(&[], &first, true, 0);
        check(&[("target", "http://127.0.0.5:1/")], &first, true, 0);
        check(&[("connections", "35000")], &first, true, 0);
        check(&[("connections", "61000")], &first, true, 61_000 + 1_000 - 36_280);
        check(&[("connections", "62000")], &SourcePool::Loopback4, true, 0);
        // Each destination has all pairs.
        check(&[("connections", "62000"), ("target", "http://127.0.0.{1..2}:1/")], &first, true, 0);
        // Closed connections stay in TIME_WAIT for a minute.
        let arrivals = [("arrive", "300/s"), ("duration", "50s")];
        check(&arrivals, &first, true, 0);
        check(&[("arrive", "2000/s"), ("duration", "50s")], &SourcePool::Loopback4, true, 0);
        let listed = [[127, 0, 0, 9].into()].into_iter().collect();
        check(&[("sources", "127.0.0.9"), ("connections", "62000")], &listed, false, 26_232);
    }

    #[test]
    fn dials_at_a_rate_are_outstanding_for_a_moment() {
        let check = |flags: &[(&str, &str)], expected: u64| {
            let plan = plan(flags);
            let all: u64 = (0..).zip(&plan.populations).map(|(nth, own)| dials(&plan, nth, own)).sum();
            assert_eq!(all, expected, "{flags:?}");
        };
        check(&[("connections", "600")], 600);
        check(&[("connections", "600"), ("ramp", "50/s")], 6);
        check(&[("connections", "600"), ("ramp", "3s")], 21);
        check(&[("connections", "600"), ("ramp", "0s")], 600);
        check(&[("connections", "5"), ("ramp", "20k/s")], 5);
        // Connections reserved for slow responses, or for the probe, are not dialled at once.
        check(&[("arrive", "50/s"), ("total", "100")], 6);
        check(&[("connections", "20"), ("probe", "50/s")], 20);
    }

    #[test]
    fn a_long_run_of_a_number_is_announced() {
        let check = |target: &str, flags: &[(&'static flag::Flag, &str)], expected: Option<&str>| {
            let flags =
                flags.iter().fold(Flags::new(target), |flags, (flag, value)| flags.with(flag, *value));
            let resolve = |_: &str| Err("no names here".to_owned());
            let environment = Environment { cores: 1, seed: 1, resolve: &resolve };
            let plan = plan::from_flags(&flags, &environment).expect("it is right");
            assert_eq!(notice_long(&plan).as_deref(), expected, "{target} {flags:?}");
        };
        let ws = "ws://127.0.0.1:81/";
        let [n, c] = [(&flag::REQUESTS, "100"), (&flag::CONNECTIONS, "10")];
        let said = "100 messages on 10 connections, 30s apart, take at least 4m30s; use a shorter --ping, or more connections";
        check(ws, &[n, c], Some(said));
        check(ws, &[n, c, (&flag::PING, "1s")], None);
        check(ws, &[n, (&flag::CONNECTIONS, "100")], None);
        check(ws, &[c], None);
        check("http://127.0.0.1:81/", &[n, c], None);
    }
}
