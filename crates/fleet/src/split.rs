//! Divides a plan among agents: in proportion to their capacity, or equally, without exceeding any agent's limits. The parts add up
//! exactly to the plan. Also divides the part of a lost agent among others.

use std::{cmp::Reverse, collections::BTreeMap};

use plan::{Plan, Population, Probe, Quota, Slice};
use units::{Count, ParseError, Rate};

use crate::{
    error::Error,
    message::{Assign, Calibrated, Can},
    rates::{Left, Rates},
};

/// Units of a population of unlimited arrivals, whose connections are not counted.
const UNITS: u32 = 1_000_000;
/// Maximum number of agents to name in a message.
const NAMED: usize = 8;

/// How shares are determined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shares {
    /// By calibration, if all agents are calibrated; otherwise by their number of processors.
    #[default]
    Capacity,
    /// Equal shares.
    Equal,
}

impl Shares {
    /// Parses `capacity` or `equal`.
    ///
    /// # Errors
    /// Any other text.
    pub fn parse(text: &str) -> Result<Shares, ParseError> {
        match text {
            "capacity" => Ok(Shares::Capacity),
            "equal" => Ok(Shares::Equal),
            _ => Err(ParseError::new(text, "known", "capacity or equal")),
        }
    }
}

/// What a plan needs of all agents together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Demand {
    populations: Vec<Wanted>,
    /// The probe's connections and rates.
    probe: Option<(u64, Rates)>,
}

#[derive(Clone, Debug)]
struct Wanted {
    /// The number of units into which it is divided: its connections, if they are counted.
    units: u32,
    /// Units of its peak load.
    peak: u64,
    is_counted: bool,
    /// Maximum number of concurrent connections.
    places: u64,
    rates: Rates,
    /// Arrivals per second.
    arrivals: Option<f64>,
    /// Its fixed number of requests, if it has one.
    quota: Option<Quota>,
}

/// An agent that is to get a part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a> {
    pub(crate) id: &'a str,
    /// Agents with the same value share ports.
    pub(crate) network: &'a str,
    pub(crate) cores: u32,
    pub(crate) calibrated: Option<Calibrated>,
    pub(crate) can: &'a Can,
}

/// Remaining capacity of an agent, and what limits it.
struct Room<'a> {
    connections: u64,
    by: &'a str,
    rates: Left,
}

impl Room<'_> {
    /// Subtracts a slice of a population.
    fn take(&mut self, wanted: &Wanted, slice: Slice) {
        self.connections = self.connections.saturating_sub(wanted.places_of(slice.width, slice.of));
        self.rates.take(&wanted.rates, slice.share());
    }
}

impl Demand {
    pub(crate) fn of(plan: &Plan) -> Demand {
        let wanted = |(nth, population): (u16, &Population)| Wanted {
            units: population.load.wanted().unwrap_or(UNITS),
            peak: plan.peak(nth).of(population.load.wanted().unwrap_or(UNITS).into()),
            is_counted: population.load.wanted().is_some(),
            places: population.most_open().into(),
            rates: Rates::of(plan, nth),
            arrivals: population.load.arrival_rate().map(Rate::per_s_f64),
            quota: population.quota(),
        };
        let probe = |probe: &Probe| (probe.places().into(), Rates::of_probe(plan, probe.rate));
        Demand {
            populations: (0..).zip(&plan.populations).map(wanted).collect(),
            probe: plan.probe.as_ref().map(probe),
        }
    }

    /// Whether this number of ordered connections is the population's peak load.
    pub(crate) fn is_peak(&self, population: u16, connections: u32) -> bool {
        let wanted = self.populations.get(usize::from(population));
        wanted.is_none_or(|wanted| u64::from(connections) >= wanted.peak)
    }

    /// Maximum number of concurrent connections of a part.
    pub(crate) fn places_of(&self, part: &Assign) -> u64 {
        let probe = self.probe.as_ref().filter(|_| part.probe).map_or(0, |(places, _)| *places);
        let own = part.slices.iter().zip(&self.populations);
        own.map(|(slice, wanted)| wanted.places_of(slice.width, slice.of)).fold(probe, u64::saturating_add)
    }

    /// Subtracts the rates of a part from an agent's remaining cap.
    fn take(&self, part: &Assign, left: &mut Left) {
        for (slice, wanted) in part.slices.iter().zip(&self.populations) {
            left.take(&wanted.rates, slice.share());
        }
        self.probe.iter().filter(|_| part.probe).for_each(|(_, rates)| left.take(rates, 1.0));
    }

    /// The parts of an agent with the remaining requests or arrivals. `begun` returns the number that it has begun of a population's
    /// requests, or (true) of its arrivals.
    pub(crate) fn left_of(&self, parts: &[Assign], begun: impl Fn(u16, bool) -> u64) -> Vec<Assign> {
        let mut parts = parts.to_vec();
        for (nth, wanted) in self.populations.iter().enumerate() {
            if wanted.number_of(Slice::WHOLE).is_none() {
                continue;
            }
            let mut begun = begun(nth as u16, wanted.arrivals.is_some());
            for part in &mut parts {
                part.left.resize(self.populations.len(), None);
                let own = || part.slices.get(nth).and_then(|slice| wanted.number_of(*slice));
                let all = part.left[nth].or_else(own).unwrap_or(0);
                let left = all.saturating_sub(begun);
                part.left[nth] = Some(left);
                begun -= all - left;
            }
        }
        parts
    }
}

/// Connections that all agents together can hold.
pub(crate) fn together(agents: &[Candidate]) -> u64 {
    rooms(agents).iter().fold(0, |sum, (room, _)| sum.saturating_add(room.connections))
}

/// Divides the demand into one part for each agent.
///
/// # Errors
/// It exceeds the capacity of all agents; contains the numbers and the fix.
pub(crate) fn split(
    demand: &Demand,
    agents: &[Candidate],
    shares: Shares,
    salt: u64,
) -> Result<Vec<Assign>, Error> {
    let (mut rooms, tuples): (Vec<Room>, Vec<Slice>) = rooms(agents).into_iter().unzip();
    let mut assigned: Vec<Assign> =
        tuples.into_iter().map(|tuples| Assign { tuples, salt, ..Assign::default() }).collect();
    if let Some(probe) = &demand.probe {
        give_probe(probe, &mut rooms, &mut assigned);
    }
    for wanted in &demand.populations {
        let weights = weights(agents, shares, wanted.arrivals.is_some());
        let limits: Vec<(u64, &str)> = rooms.iter().map(|room| wanted.limit(room, wanted.units)).collect();
        let most: Vec<u64> = limits.iter().map(|(most, _)| *most).collect();
        let Some(widths) = fill(wanted.units, &weights, &most) else {
            return Err(too_much(wanted, agents, &limits));
        };
        let widths = if wanted.is_counted { widths } else { in_lowest_terms(widths) };
        let (of, mut from) = (widths.iter().sum(), 0);
        for ((width, room), assign) in widths.into_iter().zip(&mut rooms).zip(&mut assigned) {
            let slice = Slice { from, width, of };
            assign.slices.push(slice);
            from += width;
            room.take(wanted, slice);
        }
    }
    Ok(assigned)
}

/// Gives the probe to the first agent with enough capacity. If it fits nowhere, the first agent will refuse with the reason.
fn give_probe((places, rates): &(u64, Rates), rooms: &mut [Room], parts: &mut [Assign]) {
    let fits = |room: &Room| room.connections >= *places && room.rates.units(rates, 1) > 0;
    let nth = rooms.iter().position(fits).unwrap_or(0);
    rooms[nth].connections = rooms[nth].connections.saturating_sub(*places);
    rooms[nth].rates.take(rates, 1.0);
    parts[nth].probe = true;
}

/// An agent that may take over parts of a lost one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heir<'a> {
    /// Its capacity before it had any part; `None`: unknown.
    pub(crate) can: Option<&'a Can>,
    /// The parts that it has, and those that it is to get in addition.
    pub(crate) parts: &'a [Assign],
    pub(crate) given: &'a [Assign],
}

impl Heir<'_> {
    /// Its share of its machine's ports.
    fn tuples(&self) -> Slice {
        self.parts.first().map_or(Slice::WHOLE, |part| part.tuples)
    }

    /// Connections that it can hold besides those of its parts.
    pub(crate) fn room(&self, demand: &Demand) -> u64 {
        let Some(can) = self.can else { return u64::MAX };
        let Slice { width, of, .. } = self.tuples();
        let fits = (u128::from(can.fits) * u128::from(width) / u128::from(of.max(1))) as u64;
        let most = fits.min(can.cap.unwrap_or(u64::MAX));
        self.parts
            .iter()
            .chain(self.given)
            .fold(most, |room, part| room.saturating_sub(demand.places_of(part)))
    }

    /// Its remaining cap on rates.
    fn rates(&self, demand: &Demand) -> Left {
        let mut left = Left::of(self.can.and_then(|can| can.per_s));
        self.parts.iter().chain(self.given).for_each(|part| demand.take(part, &mut left));
        left
    }
}

/// Divides a lost agent's part equally among heirs, within their limits; if these do not suffice, without them: agents for which it is
/// too much will refuse. Each heir gets adjacent units of each slice; the first with enough capacity gets the probe. `None` for an heir
/// that gets nothing.
pub(crate) fn divide(demand: &Demand, lost: &Assign, heirs: &[Heir], salt: u64) -> Vec<Option<Assign>> {
    let room = |heir: &Heir| Room { connections: heir.room(demand), by: "", rates: heir.rates(demand) };
    let mut rooms: Vec<Room> = heirs.iter().map(room).collect();
    let mut divided: Vec<Assign> =
        heirs.iter().map(|heir| Assign { tuples: heir.tuples(), salt, ..Assign::default() }).collect();
    if lost.probe {
        give_probe(&demand.probe.clone().unwrap_or_default(), &mut rooms, &mut divided);
    }
    let equal = vec![1; heirs.len()];
    for (nth, (slice, wanted)) in lost.slices.iter().zip(&demand.populations).enumerate() {
        let left = lost.left.get(nth).copied();
        let limits: Vec<u64> = rooms.iter().map(|room| wanted.limit(room, slice.of).0).collect();
        let widths = fill(slice.width, &equal, &limits)
            .or_else(|| fill(slice.width, &equal, &vec![u64::MAX; heirs.len()]))
            .unwrap_or_default();
        let mut from = slice.from;
        for ((width, room), part) in widths.into_iter().zip(&mut rooms).zip(&mut divided) {
            let taken = Slice { from, width, of: slice.of };
            part.slices.push(taken);
            room.take(wanted, taken);
            let own = Slice { from: from - slice.from, width, of: slice.width.max(1) };
            part.left.extend(left.map(|left| left.map(|left| own.of_long(left))));
            from += width;
        }
    }
    let has_any = |part: &Assign| part.probe || part.slices.iter().any(|slice| slice.width > 0);
    divided.into_iter().map(|part| has_any(&part).then_some(part)).collect()
}

impl Wanted {
    /// The number of requests or arrivals of a slice, if it is fixed; see [`Population::number`].
    fn number_of(&self, slice: Slice) -> Option<u64> {
        let arriving = || self.arrivals.filter(|_| self.is_counted).map(|_| u64::from(slice.of(self.units)));
        self.quota.map(|quota| quota.of(slice)).or_else(arriving)
    }

    /// Maximum number of concurrent connections for `width` of `of` units.
    fn places_of(&self, width: u32, of: u32) -> u64 {
        (u128::from(self.places) * u128::from(width)).div_ceil(u128::from(of)) as u64
    }

    /// The number of `of` units that an agent can take, and what limits it.
    fn limit<'a>(&self, room: &Room<'a>, of: u32) -> (u64, &'a str) {
        let by_room = match self.places {
            0 => of.into(),
            places => u128::from(room.connections) * u128::from(of) / u128::from(places),
        };
        let by_room = u64::try_from(by_room).unwrap_or(u64::MAX);
        let by_rate = room.rates.units(&self.rates, of);
        if by_rate < by_room.min(of.into()) { (by_rate, "--max-rate") } else { (by_room, room.by) }
    }
}

/// The capacity of each agent, and its share of the ports. Agents on the same machine share its capacity.
fn rooms<'a>(agents: &[Candidate<'a>]) -> Vec<(Room<'a>, Slice)> {
    let mut machines: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (nth, agent) in agents.iter().enumerate() {
        machines.entry(agent.network).or_default().push(nth);
    }
    let mut all = vec![(0, Slice::WHOLE); agents.len()];
    for own in machines.into_values() {
        let can: Vec<_> = own.iter().map(|nth| (agents[*nth].can.fits, agents[*nth].can.cap)).collect();
        let rooms = shared(&can);
        for (nth, of) in own.into_iter().zip(rooms.iter().copied().zip(tuples(&rooms))) {
            all[nth] = of;
        }
    }
    let room = |(agent, (connections, tuples)): (&Candidate<'a>, (u64, Slice))| {
        let can = agent.can;
        let by: &'a str = if can.cap == Some(connections) { "--max-connections" } else { &can.limited_by };
        (Room { connections, by, rates: Left::of(can.per_s) }, tuples)
    };
    agents.iter().zip(all).map(room).collect()
}

/// Divides a machine's capacity among its agents equally; what one agent may not hold goes to the others. `agents`: the machine's
/// capacity as each agent knows it, and the agent's cap.
pub fn shared(agents: &[(u64, Option<u64>)]) -> Vec<u64> {
    let most = |(fits, cap): (u64, Option<u64>)| fits.min(cap.unwrap_or(u64::MAX));
    let mut order: Vec<usize> = (0..agents.len()).collect();
    order.sort_by_key(|nth| most(agents[*nth]));
    let mut rooms = vec![0; agents.len()];
    let mut taken: u64 = 0;
    for (nth, left) in order.into_iter().zip((1..=agents.len() as u64).rev()) {
        let (fits, cap) = agents[nth];
        rooms[nth] = fits.saturating_sub(taken).div_ceil(left).min(cap.unwrap_or(u64::MAX));
        // Each agent gets at least one port.
        taken = taken.saturating_add(rooms[nth].max(1));
    }
    rooms
}

/// Divides the ports of a machine among agents with these capacities.
fn tuples(rooms: &[u64]) -> Vec<Slice> {
    let (least, most) = (rooms.iter().min().copied(), rooms.iter().max().copied());
    let are_equal = most.unwrap_or_default() - least.unwrap_or_default() <= 1;
    let widths: Option<Vec<u32>> = rooms.iter().map(|room| u32::try_from((*room).max(1)).ok()).collect();
    let widths = widths.filter(|widths| {
        !are_equal && widths.iter().map(|width| u64::from(*width)).sum::<u64>() <= u32::MAX.into()
    });
    // Fine-grained enough that no agent is limited by its ports.
    let widths = in_lowest_terms(widths.unwrap_or_else(|| vec![1; rooms.len()]));
    let (of, mut from) = (widths.iter().sum(), 0);
    let slice = |width| {
        let slice = Slice { from, width, of };
        from += width;
        slice
    };
    widths.into_iter().map(slice).collect()
}

fn weights(agents: &[Candidate], shares: Shares, arrives: bool) -> Vec<u64> {
    let measured = |agent: &Candidate| {
        let Calibrated { open_per_s, requests_per_s } = agent.calibrated?;
        let per_s = if arrives { open_per_s } else { requests_per_s };
        (per_s >= 1.0).then_some(per_s as u64)
    };
    match (shares, agents.iter().map(measured).collect::<Option<Vec<u64>>>()) {
        (Shares::Equal, _) => vec![1; agents.len()],
        (Shares::Capacity, Some(measured)) => measured,
        (Shares::Capacity, None) => agents.iter().map(|agent| agent.cores.max(1).into()).collect(),
    }
}

/// Divides `n` in proportion to the weights, within the limits: what exceeds one goes to the others. By the largest-remainder method, so
/// that the sum is exact. `None` if `n` exceeds the sum of the limits.
fn fill(n: u32, weights: &[u64], limits: &[u64]) -> Option<Vec<u32>> {
    let limits: Vec<u64> = limits.iter().map(|limit| (*limit).min(n.into())).collect();
    let mut full = vec![false; weights.len()];
    let (left, all) = loop {
        let taken: u64 = limits.iter().zip(&full).filter(|(_, full)| **full).map(|(limit, _)| limit).sum();
        let left = u128::from(u64::from(n).checked_sub(taken)?);
        let all: u128 = weights
            .iter()
            .zip(&full)
            .filter(|(_, full)| !**full)
            .map(|(weight, _)| u128::from(*weight))
            .sum();
        let is_over =
            |nth: &usize| !full[*nth] && left * u128::from(weights[*nth]) > u128::from(limits[*nth]) * all;
        let over: Vec<usize> = (0..weights.len()).filter(is_over).collect();
        if over.is_empty() {
            break (left, all);
        }
        over.into_iter().for_each(|nth| full[nth] = true);
    };
    if all == 0 {
        return (left == 0).then(|| limits.iter().map(|limit| *limit as u32).collect());
    }
    let share = |nth: usize| left * u128::from(weights[nth]);
    let whole = |nth: usize| if full[nth] { limits[nth] } else { (share(nth) / all) as u64 };
    let mut parts: Vec<u64> = (0..weights.len()).map(whole).collect();
    let missing = u64::from(n) - parts.iter().sum::<u64>();
    let mut open: Vec<usize> = (0..weights.len()).filter(|nth| !full[*nth]).collect();
    open.sort_by_key(|nth| Reverse(share(*nth) % all));
    open.into_iter().take(missing as usize).for_each(|nth| parts[nth] += 1);
    Some(parts.into_iter().map(|part| part as u32).collect())
}

/// Divides by the greatest common divisor.
fn in_lowest_terms(widths: Vec<u32>) -> Vec<u32> {
    let divisor = widths.iter().fold(0, |all: u32, width| {
        let (mut a, mut b) = (all, *width);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    });
    widths.into_iter().map(|width| width / divisor.max(1)).collect()
}

fn too_much(wanted: &Wanted, agents: &[Candidate], limits: &[(u64, &str)]) -> Error {
    let arrivals = wanted.arrivals.unwrap_or_default();
    let per_s = |units: u64| format!("{:.0}/s", arrivals * units as f64 / f64::from(wanted.units));
    let load = |units: u64| if wanted.is_counted { Count(units).to_string() } else { per_s(units) };
    let what = if wanted.is_counted { "connections" } else { "arrivals" };
    let sum = limits.iter().fold(0, |sum: u64, (limit, _)| sum.saturating_add(*limit));
    let named = agents.iter().zip(limits).take(NAMED);
    let mut each: Vec<String> =
        named.map(|(agent, (limit, by))| format!("{} {} ({by})", agent.id, load(*limit))).collect();
    if agents.len() > NAMED {
        each.push("…".to_owned());
    }
    Error::TooLarge(format!(
        "all agents together can take {} of {} {what}: {}; use less load, raise these limits (throng fleet doctor), or start more agents",
        load(sum),
        load(wanted.units.into()),
        each.join(", ")
    ))
}

#[cfg(test)]
mod tests;
