//! Which parts of a plan are an agent's: said by the coordinator, and followed by the agent, with one and the same function.

use std::collections::{HashMap, VecDeque};

use plan::{Part, Plan, Role, Rows, Share, TupleShare, split};
use units::Count;

use crate::message::{Assign, Range, Ready};

/// Shards of a population on all agents: far more than any fleet has, and a list of them still fits into memory.
const MOST_SHARDS: u32 = 1 << 20;

/// What an agent was offered to take part with.
pub(crate) struct Offered<'a> {
    /// Agents with the same value share ports.
    pub(crate) network: &'a str,
    /// Shards of each population.
    pub(crate) shards: &'a [u32],
}

/// The shards of all agents, one after the other. The probe's are the first agent's.
pub(crate) fn assign(offered: &[Offered], has_probe: bool, salt: u64) -> Vec<Assign> {
    let populations = offered.first().map_or(0, |agent| agent.shards.len());
    let all: Vec<u32> =
        (0..populations).map(|nth| offered.iter().map(|agent| agent.shards[nth]).sum()).collect();
    let mut neighbours: HashMap<&str, u32> = HashMap::new();
    let (mut next, mut assigned) = (vec![0; populations], Vec::new());
    for agent in offered {
        let shards = agent.shards.iter().zip(&all).zip(&mut next).map(|((&own, &all), next)| {
            let first = *next;
            *next += own;
            Range { first, own, all }
        });
        let place = neighbours.entry(agent.network).or_default();
        let probe = has_probe && assigned.is_empty();
        assigned.push(Assign { shards: shards.collect(), probe, tuples: (*place, 0), salt });
        *place += 1;
    }
    for (agent, assigned) in offered.iter().zip(&mut assigned) {
        assigned.tuples.1 = neighbours[agent.network];
    }
    assigned
}

/// How many values of tables a part uses; or why it can be no part of this plan at all.
pub(crate) fn values(assign: &Assign, plan: &Plan) -> Result<u64, String> {
    check_form(assign, plan)?;
    Ok(Rows::of(plan, &parts(plan, assign)).count())
}

/// Whether what is assigned can be a part of this plan at all; or why it cannot.
fn check_form(assign: &Assign, plan: &Plan) -> Result<(), String> {
    let is_range = |range: &Range| {
        let end = range.first.checked_add(range.own);
        range.all <= MOST_SHARDS && end.is_some_and(|end| end <= range.all)
    };
    match assign.shards.len() == plan.populations.len() && assign.shards.iter().all(is_range) {
        true => Ok(()),
        false => Err("the coordinator assigned what is no part of the plan".to_owned()),
    }
}

/// Whether what is assigned to an agent is what it accepted, with `own` shards of each population; or why it is not.
pub(crate) fn check(assign: &Assign, own: &[u32]) -> Result<(), String> {
    let is_own = assign.shards.len() == own.len()
        && assign.shards.iter().zip(own).all(|(range, own)| {
            range.own == *own && range.first.checked_add(range.own).is_some_and(|end| end <= range.all)
        });
    let (place, of) = assign.tuples;
    if !is_own || place >= of {
        return Err("the coordinator assigned another part than was accepted".to_owned());
    }
    Ok(())
}

/// Whether the parts are no more than the share that was accepted, of this many connections at one time, but for rounding: what the
/// coordinator says of the sum of all shards may be wrong.
pub(crate) fn check_size(parts: &[Part], accepted: u64) -> Result<(), String> {
    let places: u64 = parts.iter().map(|part| u64::from(part.places)).sum();
    if places > accepted + parts.len() as u64 {
        return Err(format!(
            "the coordinator assigned {} connections, of {} that were accepted",
            Count(places),
            Count(accepted)
        ));
    }
    Ok(())
}

/// The parts of the plan that are an agent's, with its share of the tuples of its network.
pub(crate) fn parts(plan: &Plan, assign: &Assign) -> Vec<Part> {
    let (place, all) = assign.tuples;
    let mut alone: HashMap<Role, VecDeque<TupleShare>> = HashMap::new();
    for part in plan.parts(|nth| assign.shards[usize::from(nth)].own.max(1)) {
        alone.entry(part.role).or_default().push_back(part.tuple_share);
    }
    let mut tuples = |part: &Part| {
        let TupleShare { from, width, of } = alone.get_mut(&part.role)?.pop_front()?;
        Some(TupleShare { from: place * of + from, width, of: all * of })
    };
    let is_own = |part: &Part| match part.role {
        Role::Population(nth) => {
            let Range { first, own, .. } = assign.shards[usize::from(nth)];
            (first..first + own).contains(&part.shard)
        }
        Role::Probe(_) => assign.probe,
    };
    let whole = plan.parts(|nth| assign.shards[usize::from(nth)].all).into_iter().filter(is_own);
    whole.map(|part| Part { tuple_share: tuples(&part).unwrap_or(part.tuple_share), ..part }).collect()
}

/// What an agent did, divided among the others: neighbouring shards, and the probe's for the first. `place`: of each of these among
/// agents with the same ports. Of one that is to do nothing there is none.
pub(crate) fn divide(assign: &Assign, places: &[(u32, u32)], salt: u64) -> Vec<Option<Assign>> {
    let mut next: Vec<u32> = assign.shards.iter().map(|range| range.first).collect();
    let of = |nth: usize, range: &Range| {
        split(range.own, places.len() as u32).nth(nth).expect("there is a part for each")
    };
    let mut divided = Vec::new();
    for (nth, tuples) in places.iter().enumerate() {
        let shards = assign.shards.iter().zip(&mut next).map(|(range, next)| {
            let own = of(nth, range);
            *next += own;
            Range { first: *next - own, own, all: range.all }
        });
        let shards: Vec<Range> = shards.collect();
        let probe = assign.probe && nth == 0;
        let is_idle = !probe && shards.iter().all(|range| range.own == 0);
        divided.push((!is_idle).then_some(Assign { shards, probe, tuples: *tuples, salt }));
    }
    divided
}

/// The share of the load that a part is, at least.
pub(crate) fn of(assign: &Assign) -> Share {
    let shares = assign.shards.iter().map(|range| Share::ALL.part(range.own, range.all.max(1)));
    shares.max().filter(|share| *share > Share::NONE).unwrap_or_else(|| Share::ALL.part(1, 1_000_000))
}

/// What these parts are to the coordinator, and which worker each of them belongs to: all with the same role to one.
pub(crate) fn workers(parts: &[Part]) -> (Ready, Vec<u32>) {
    let (mut roles, mut threads): (Vec<Role>, Vec<u32>) = (Vec::new(), Vec::new());
    let mut of = |role: Role| {
        let known = roles.iter().position(|known| *known == role);
        let nth = known.unwrap_or_else(|| {
            roles.push(role);
            threads.push(0);
            roles.len() - 1
        });
        threads[nth] += 1;
        nth as u32
    };
    let workers = parts.iter().map(|part| of(part.role)).collect();
    let is_load = |part: &&Part| matches!(part.role, Role::Population(_));
    let wanted = parts.iter().filter(is_load).map(|part| u64::from(part.connections)).sum();
    (Ready { roles, wanted, threads, ..Ready::default() }, workers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered<'a>(network: &'a str, shards: &'a [u32]) -> Offered<'a> {
        Offered { network, shards }
    }

    #[test]
    fn shards_follow_each_other_and_hosts_share_their_ports() {
        let agents = [offered("a", &[2, 1]), offered("b", &[3, 1]), offered("a", &[1, 1])];
        let assigned = assign(&agents, true, 7);
        let ranges = |agent: &Assign| -> Vec<_> {
            agent.shards.iter().map(|range| (range.first, range.own, range.all)).collect()
        };
        let shards: Vec<_> = assigned.iter().map(ranges).collect();
        assert_eq!(shards, [[(0, 2, 6), (0, 1, 3)], [(2, 3, 6), (1, 1, 3)], [(5, 1, 6), (2, 1, 3)]]);
        let tuples: Vec<_> = assigned.iter().map(|agent| agent.tuples).collect();
        assert_eq!(tuples, [(0, 2), (0, 1), (1, 2)]);
        assert_eq!(assigned.iter().map(|agent| agent.probe).collect::<Vec<_>>(), [true, false, false]);
        for (agent, assigned) in agents.iter().zip(&assigned) {
            assert_eq!(check(assigned, agent.shards), Ok(()));
        }
    }

    #[test]
    fn an_agent_takes_only_what_it_accepted() {
        let good = assign(&[offered("a", &[2]), offered("b", &[2])], false, 7).remove(1);
        let range = good.shards[0];
        for bad in [
            // The whole load for its two shards.
            Assign { shards: vec![Range { first: 0, own: 2, all: 1 }], ..good.clone() },
            Assign { shards: vec![Range { own: 4, ..range }], ..good.clone() },
            Assign { shards: vec![Range { first: u32::MAX, ..range }], ..good.clone() },
            Assign { shards: Vec::new(), ..good.clone() },
            Assign { tuples: (1, 1), ..good.clone() },
        ] {
            assert!(check(&bad, &[2]).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_coordinator_cannot_assign_more_than_was_accepted() {
        let flags = plan::Flags::new("http://127.0.0.1:80/").with(&plan::flag::CONNECTIONS, 1_000);
        let resolve = |_: &str| Err("no names here".to_owned());
        let plan =
            plan::from_flags(&flags, &plan::Environment { cores: 1, seed: 1, resolve: &resolve }).unwrap();
        let assigned = |all| {
            let assign =
                Assign { shards: vec![Range { first: 0, own: 2, all }], tuples: (0, 1), ..Assign::default() };
            check_size(&parts(&plan, &assign), 250)
        };
        // Two shards of eight are a quarter; said to be all there are, they would be everything.
        assert_eq!(assigned(8), Ok(()));
        assert_eq!(
            assigned(2),
            Err("the coordinator assigned 1,000 connections, of 250 that were accepted".to_owned())
        );
        assert!(assigned(7).is_err());
    }
}
