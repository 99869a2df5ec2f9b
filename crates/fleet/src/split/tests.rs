use plan::{Environment, Flag, Flags, Role, flag, scenario};
use proptest::{collection::vec, prelude::*};

use super::*;
use crate::share;

/// One of three agents that share ports.
const THIRD: Slice = Slice { from: 2, width: 1, of: 3 };

/// An agent: cores, capacity of its machine, and its caps.
#[derive(Clone, Debug)]
struct Owned {
    network: String,
    cores: u32,
    calibrated: Option<Calibrated>,
    can: Can,
}

fn agent(cores: u32, cap: Option<u64>) -> Owned {
    let can = Can { fits: u64::MAX, limited_by: "memory".to_owned(), cap, per_s: None };
    Owned { network: String::new(), cores, calibrated: None, can }
}

/// Puts each agent on its own machine.
fn apart(agents: Vec<Owned>) -> Vec<Owned> {
    agents.into_iter().enumerate().map(|(nth, agent)| Owned { network: nth.to_string(), ..agent }).collect()
}

fn candidates(agents: &[Owned]) -> Vec<Candidate<'_>> {
    const IDS: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
    let mut all = Vec::new();
    for (agent, id) in agents.iter().zip(IDS) {
        let Owned { network, cores, calibrated, can } = agent;
        all.push(Candidate { id, network, cores: *cores, calibrated: *calibrated, can });
    }
    all
}

fn plan(args: &[(&Flag, &str)]) -> Plan {
    let flags = Flags::new("http://127.0.0.1:80/");
    let flags = args.iter().fold(flags, |flags, (flag, value)| flags.with(flag, value));
    let resolve = |_: &str| unreachable!("the target is an address");
    plan::from_flags(&flags, &Environment { cores: 1, seed: 1, resolve: &resolve }).unwrap()
}

fn read(text: &str) -> Plan {
    let text = format!("target = \"http://127.0.0.1:80/\"\n{text}");
    let resolve = |_: &str| Err("no names here".to_owned());
    let around = Environment { cores: 1, seed: 1, resolve: &resolve };
    let open = |_: &str| unreachable!("it names no file");
    scenario::read("load.toml", &text, &Flags::default(), &around, &open).unwrap()
}

/// The units of the first population that each agent gets.
fn widths(plan: &Plan, agents: &[Owned], shares: Shares) -> Result<Vec<u32>, String> {
    let assigned = split(&Demand::of(plan), &candidates(agents), shares, 7);
    let assigned = assigned.map_err(|why| why.to_string())?;
    Ok(assigned.iter().map(|assign| assign.slices[0].width).collect())
}

#[test]
fn shares_follow_processors_or_calibrations_or_are_equal() {
    let load = plan(&[(&flag::CONNECTIONS, "1003")]);
    let mut agents = apart(vec![agent(1, None), agent(2, None), agent(4, None)]);
    assert_eq!(widths(&load, &agents, Shares::Capacity), Ok(vec![143, 287, 573]));
    assert_eq!(widths(&load, &agents, Shares::Equal), Ok(vec![335, 334, 334]));
    // If one is not calibrated, they cannot be compared.
    let calibrated = |per_s| Some(Calibrated { open_per_s: 4.0 * per_s, requests_per_s: per_s });
    agents[0].calibrated = calibrated(9_000.0);
    agents[1].calibrated = calibrated(1_000.0);
    assert_eq!(widths(&load, &agents, Shares::Capacity), Ok(vec![143, 287, 573]));
    agents[2].calibrated = Some(Calibrated { open_per_s: 0.0, requests_per_s: 10_000.0 });
    assert_eq!(widths(&load, &agents, Shares::Capacity), Ok(vec![451, 50, 502]));
    // Arrivals are dialled: calibrated connections per second count.
    agents[2].calibrated = Some(Calibrated { open_per_s: 40_000.0, requests_per_s: 1.0 });
    let visits = plan(&[(&flag::ARRIVE, "100/s"), (&flag::TOTAL, "1000")]);
    assert_eq!(widths(&visits, &agents, Shares::Capacity), Ok(vec![450, 50, 500]));
}

#[test]
fn what_one_cannot_take_goes_to_the_others() {
    let load = plan(&[(&flag::CONNECTIONS, "1000")]);
    let check = |agents: Vec<Owned>, expected: &[u32]| {
        assert_eq!(widths(&load, &agents, Shares::Capacity).as_deref(), Ok(expected), "{agents:?}");
    };
    check(apart(vec![agent(1, Some(100)), agent(1, None)]), &[100, 900]);
    check(apart(vec![agent(1, Some(0)), agent(1, None), agent(3, None)]), &[0, 250, 750]);
    // The second one exceeds its cap only by what the first one leaves.
    check(apart(vec![agent(2, Some(100)), agent(1, Some(300)), agent(1, None)]), &[100, 300, 600]);
    check(apart(vec![agent(1, Some(500)), agent(1, Some(500))]), &[500, 500]);
    // A machine with two agents has its memory and ports only once.
    let mut same = vec![agent(1, None), agent(1, None), agent(2, None)];
    same.iter_mut().for_each(|agent| agent.can.fits = 700);
    same[2].network = "other".to_owned();
    check(same.clone(), &[250, 250, 500]);
    same[2].can.fits = 400;
    check(same.clone(), &[300, 300, 400]);
    same[2].can.fits = 299;
    assert_eq!(
        widths(&load, &same, Shares::Equal),
        Err("all agents together can take 999 of 1,000 connections: a 350 (memory), b 350 (memory), c 299 (memory); \
             use less load, raise these limits (throng fleet doctor), or start more agents"
            .to_owned())
    );
    same[0].can.cap = Some(1);
    let why = widths(&load, &same, Shares::Capacity).unwrap_err();
    assert!(why.contains("take 999 of 1,000 connections: a 1 (--max-connections), b 699 (memory)"), "{why}");
}

#[test]
fn what_an_agent_may_not_hold_of_its_machine_goes_to_those_beside_it() {
    let check =
        |agents: &[(u64, Option<u64>)], expected: &[u64]| assert_eq!(shared(agents), expected, "{agents:?}");
    check(&[], &[]);
    check(&[(62_000, None); 3], &[20_667, 20_667, 20_666]);
    check(&[(700, None), (700, Some(100)), (700, None)], &[300, 100, 300]);
    check(&[(700, Some(300)), (700, Some(100)), (700, Some(900))], &[300, 100, 300]);
    check(&[(700, Some(0)), (700, None)], &[0, 699]);
    check(&[(u64::MAX, Some(100)), (u64::MAX, Some(200))], &[100, 200]);
    // Each reports the machine's capacity on its own.
    check(&[(700, None), (400, None)], &[500, 200]);
    let check = |rooms: &[u64], expected: &[(u32, u32)]| {
        let all: u32 = expected.iter().map(|(_, width)| width).sum();
        let expected: Vec<Slice> =
            expected.iter().map(|&(from, width)| Slice { from, width, of: all }).collect();
        assert_eq!(tuples(rooms), expected, "{rooms:?}");
    };
    check(&[20_667, 20_667, 20_666], &[(0, 1), (1, 1), (2, 1)]);
    check(&[300, 100, 300], &[(0, 3), (3, 1), (4, 3)]);
    check(&[0, 699], &[(0, 1), (1, 699)]);
    check(&[100, u64::MAX - 100], &[(0, 1), (1, 1)]);
}

#[test]
fn arrivals_are_handed_over_as_far_as_they_are_left() {
    let visits = plan(&[(&flag::ARRIVE, "100/s"), (&flag::TOTAL, "1000")]);
    let demand = Demand::of(&visits);
    let part = |from, width| Assign { slices: vec![Slice { from, width, of: 1_000 }], ..Assign::default() };
    let left = demand.left_of(&[part(0, 300)], |_, arrives| if arrives { 120 } else { 0 });
    assert_eq!(left[0].left, [Some(180)]);
    let own = [part(300, 350), part(650, 350)];
    let heir = |nth: usize| Heir { can: None, parts: &own[nth..=nth], given: &[] };
    let divided = divide(&demand, &left[0], &[heir(0), heir(1)], 8);
    let arriving = |part: &Assign| {
        assert_eq!(share::check(part, &visits), Ok(()));
        share::parts(&visits, part, |_| 4).iter().map(|part| part.connections).collect::<Vec<_>>()
    };
    assert_eq!(divided.iter().flatten().map(arriving).collect::<Vec<_>>(), [[23, 23, 22, 22]; 2]);
    assert_eq!(arriving(&part(0, 300)), [75; 4]);
    // All have arrived.
    let left = demand.left_of(&[part(0, 300)], |_, _| 300);
    assert_eq!(arriving(&left[0]), [0; 4]);
    assert!(share::check(&Assign { left: vec![Some(1_001)], ..part(0, 300) }, &visits).is_err());
    let endless = plan(&[(&flag::ARRIVE, "100/s"), (&flag::DURATION, "10s")]);
    let left = Demand::of(&endless).left_of(&[part(0, 300)], |_, _| 120);
    assert!(left[0].left.is_empty(), "{left:?}");
}

#[test]
fn rates_stay_below_the_caps_of_agents() {
    let mut agents = apart(vec![agent(1, None), agent(1, None)]);
    agents[0].can.per_s = Some(100.0);
    let ramp = (&flag::RAMP, "100/s");
    let rate = plan(&[(&flag::CONNECTIONS, "999"), ramp, (&flag::RATE, "300/s")]);
    assert_eq!(widths(&rate, &agents, Shares::Capacity), Ok(vec![333, 666]));
    // Dials count too.
    let ramp = plan(&[(&flag::CONNECTIONS, "1000"), (&flag::RAMP, "1k/s"), (&flag::THINK, "1m..2m")]);
    assert_eq!(widths(&ramp, &agents, Shares::Capacity), Ok(vec![100, 900]));
    let endless = read("arrive = \"400/s\"\nduration = \"1s\"\n");
    assert_eq!(widths(&endless, &agents, Shares::Capacity), Ok(vec![1, 3]));
    agents[1].can.per_s = Some(200.0);
    let why = widths(&endless, &agents, Shares::Capacity).unwrap_err();
    let expected =
        "all agents together can take 300/s of 400/s arrivals: a 100/s (--max-rate), b 200/s (--max-rate); ";
    assert!(why.starts_with(expected), "{why}");
}

#[test]
fn the_cap_of_an_agent_is_for_all_populations_together() {
    let load = read(
        "[[population]]\nname = \"users\"\nconnections = 10\nrate = \"100/s\"\n\
        [[population]]\nname = \"guests\"\narrive = \"50/s\"\n[[stage]]\nramp = \"10/s\"\nfor = \"1s\"\n",
    );
    let mut agents = apart(vec![agent(1, None), agent(1, None)]);
    agents[0].can.per_s = Some(60.0);
    let assigned = split(&Demand::of(&load), &candidates(&agents), Shares::Equal, 7).unwrap();
    let width = |nth: usize| assigned.iter().map(|assign| assign.slices[nth].width).collect::<Vec<_>>();
    // Half of the users take 50/s, and leave 10/s.
    assert_eq!((width(0), width(1)), (vec![5, 5], vec![1, 4]));
    agents[1].can.per_s = Some(60.0);
    let why = split(&Demand::of(&load), &candidates(&agents), Shares::Equal, 7).unwrap_err().to_string();
    let expected =
        "all agents together can take 20/s of 50/s arrivals: a 10/s (--max-rate), b 10/s (--max-rate); ";
    assert!(why.starts_with(expected), "{why}");
    // Each arriving connection sends as often.
    let calls = plan(&[(&flag::ARRIVE, "10/s"), (&flag::CALLS, "5"), (&flag::TOTAL, "1000")]);
    agents[0].can.per_s = Some(20.0);
    assert_eq!(widths(&calls, &agents, Shares::Equal), Ok(vec![400, 600]));
    // The first agent has the probe, which counts too: 10/s are left.
    let (rate, ramp) = ((&flag::RATE, "100/s"), (&flag::RAMP, "10/s"));
    let probed = plan(&[(&flag::CONNECTIONS, "100"), rate, ramp, (&flag::PROBE, "10/s")]);
    agents[1].can.per_s = None;
    assert_eq!(widths(&probed, &agents, Shares::Equal), Ok(vec![10, 90]));
}

#[test]
fn the_probe_goes_where_it_fits() {
    let load = plan(&[(&flag::CONNECTIONS, "100"), (&flag::PROBE, "10/s"), (&flag::TIMEOUT, "3s")]);
    let probe = u64::from(load.probe.as_ref().unwrap().places());
    let agents = apart(vec![agent(1, Some(50)), agent(1, Some(50 + probe))]);
    let assigned = split(&Demand::of(&load), &candidates(&agents), Shares::Equal, 7).unwrap();
    assert_eq!(assigned.iter().map(|assign| assign.probe).collect::<Vec<_>>(), [false, true]);
    assert_eq!(widths(&load, &agents, Shares::Equal), Ok(vec![50, 50]));
    assert_eq!(together(&candidates(&agents)), 100 + probe);
}

#[test]
fn agents_of_one_network_divide_its_ports() {
    let mut agents = vec![agent(1, None), agent(1, None), agent(1, None)];
    agents[1].network = "other".to_owned();
    let load = plan(&[(&flag::CONNECTIONS, "9")]);
    let assigned = split(&Demand::of(&load), &candidates(&agents), Shares::Equal, 7).unwrap();
    let half = |from| Slice { from, width: 1, of: 2 };
    let tuples = |assigned: &[Assign]| assigned.iter().map(|assign| assign.tuples).collect::<Vec<_>>();
    assert_eq!(tuples(&assigned), [half(0), Slice::WHOLE, half(1)]);
    assert!(assigned.iter().all(|assign| assign.salt == 7));
    // What exceeds one agent's cap goes to the other.
    (agents[0].can.cap, agents[0].can.fits, agents[2].can.fits) = (Some(100), 62_000, 62_000);
    assert_eq!(shared(&[(62_000, Some(100)), (62_000, None)]), [100, 61_900]);
    let assigned = split(&Demand::of(&load), &candidates(&agents), Shares::Equal, 7).unwrap();
    let of_machine = |from, width| Slice { from, width, of: 620 };
    assert_eq!(tuples(&assigned), [of_machine(0, 1), Slice::WHOLE, of_machine(1, 619)]);
    // Also when it is to take over the other one's part.
    let heir = |nth: usize| Heir { can: Some(&agents[nth].can), parts: &assigned[nth..=nth], given: &[] };
    assert_eq!([0, 2].map(|nth| heir(nth).room(&Demand::of(&load))), [97, 61_897]);
}

#[test]
fn what_is_handed_over_goes_to_those_that_may_send_more() {
    let load = plan(&[(&flag::CONNECTIONS, "300"), (&flag::RATE, "300/s"), (&flag::RAMP, "300/s")]);
    let slice = |from| vec![Slice { from, width: 100, of: 300 }];
    let part = |from| Assign { slices: slice(from), tuples: Slice::WHOLE, ..Assign::default() };
    let widths = |per_s: [f64; 2]| -> Vec<u32> {
        let can = per_s.map(|per_s| Can { per_s: Some(per_s), ..agent(1, None).can });
        let own = [[part(100)], [part(200)]];
        let heirs = [0, 1].map(|nth| Heir { can: Some(&can[nth]), parts: &own[nth], given: &[] });
        let divided = divide(&Demand::of(&load), &part(0), &heirs, 7);
        divided.iter().map(|part| part.as_ref().map_or(0, |part| part.slices[0].width)).collect()
    };
    assert_eq!(widths([200.0, 100.0]), [100, 0]);
    assert_eq!(widths([130.0, 170.0]), [30, 70]);
    assert_eq!(widths([1_000.0, 1_000.0]), [50, 50]);
    // Each of them will refuse it.
    assert_eq!(widths([100.0, 100.0]), [50, 50]);
}

#[test]
fn what_is_handed_over_of_several_populations_is_one_sum() {
    let load = read(
        "[[population]]\nname = \"a\"\nconnections = 300\nrate = \"300/s\"\n\
        [[population]]\nname = \"b\"\nconnections = 300\nrate = \"300/s\"\n\
        [[stage]]\nramp = \"600/s\"\nfor = \"1s\"\n",
    );
    let slice = |from| Slice { from, width: 100, of: 300 };
    let part = |from| Assign { slices: vec![slice(from); 2], tuples: Slice::WHOLE, ..Assign::default() };
    let widths = |per_s: [f64; 2]| -> Vec<Vec<u32>> {
        let can = per_s.map(|per_s| Can { per_s: Some(per_s), ..agent(1, None).can });
        let own = [[part(100)], [part(200)]];
        let heirs = [0, 1].map(|nth| Heir { can: Some(&can[nth]), parts: &own[nth], given: &[] });
        let divided = divide(&Demand::of(&load), &part(0), &heirs, 7);
        let of = |part: Assign| part.slices.iter().map(|slice| slice.width).collect();
        divided.into_iter().map(|part| part.map_or(Vec::new(), of)).collect()
    };
    // Each already has 200/s.
    assert_eq!(widths([400.0, 200.0]), [vec![100, 100], vec![]]);
    assert_eq!(widths([350.0, 250.0]), [vec![50, 100], vec![50, 0]]);
    assert_eq!(widths([300.0, 300.0]), [[50, 50], [50, 50]]);
}

fn agents() -> impl Strategy<Value = Vec<Owned>> {
    let one = (1u32..65, proptest::option::of(0u64..30_000_000), proptest::option::of(1.0..5e6f64));
    let agent = one.prop_map(|(cores, cap, requests_per_s)| {
        let calibrated = |requests_per_s| Calibrated { open_per_s: requests_per_s / 3.0, requests_per_s };
        Owned { calibrated: requests_per_s.map(calibrated), ..agent(cores, cap) }
    });
    vec(agent, 1..12).prop_map(apart)
}

proptest! {
    /// Also beyond ten million connections.
    #[test]
    fn parts_sum_to_the_plan_and_no_agent_is_over_its_cap(
        agents in agents(), n in 1u32..100_000_000, total in 1u32..50_000_000, equal: bool
    ) {
        let plan = read(&format!(
            "[[population]]\nname = \"users\"\nconnections = {n}\nrate = \"77k/s\"\n\
            [[population]]\nname = \"guests\"\narrive = \"1k/s\"\ntotal = {total}\n\
            [[population]]\nname = \"more\"\narrive = \"10/s\"\n[[stage]]\nfor = \"10s\"\n"
        ));
        let shares = if equal { Shares::Equal } else { Shares::Capacity };
        let candidates = candidates(&agents);
        let all = candidates.iter().map(|agent| agent.can.cap.unwrap_or(1 << 40)).sum::<u64>();
        let assigned = match split(&Demand::of(&plan), &candidates, shares, 7) {
            Ok(assigned) => assigned,
            Err(why) => {
                // Connections of arrivals are rounded up for each agent and population.
                prop_assert!(all < u64::from(plan.places()) + 4 * agents.len() as u64, "{}", why);
                return Ok(());
            }
        };
        prop_assert!(all >= u64::from(plan.places()));
        for (nth, population) in plan.populations.iter().enumerate() {
            let slices: Vec<Slice> = assigned.iter().map(|assign| assign.slices[nth]).collect();
            let mut next = 0;
            for slice in &slices {
                prop_assert!(slice.is_valid() && slice.from == next && slice.of == slices[0].of);
                next += slice.width;
            }
            // Neither a connection nor a part of the rate is missing.
            prop_assert_eq!(next, slices[0].of);
            let whole = population.load.keys();
            let parts = assigned.iter().map(|assign| plan.sliced(&assign.slices, false).populations[nth].load.keys());
            let parts: Vec<_> = parts.collect();
            let count = |of: fn(&plan::LoadKeys) -> Option<u32>| (
                parts.iter().filter_map(of).map(u64::from).sum::<u64>(), of(&whole).map_or(0, u64::from)
            );
            let (connections, total) = (count(|keys| keys.connections), count(|keys| keys.total));
            prop_assert_eq!(connections.0, connections.1);
            prop_assert_eq!(total.0, total.1);
            let rates: f64 = parts.iter().filter_map(|keys| keys.rate.or(keys.arrive)).map(|rate| rate.per_s_f64()).sum();
            let rate = whole.rate.or(whole.arrive).unwrap().per_s_f64();
            // Each is rounded to a thousandth per minute for display.
            prop_assert!((rates - rate).abs() < 1e-4 * agents.len() as f64, "{} of {}", rates, rate);
        }
        for (agent, assign) in agents.iter().zip(&assigned) {
            let parts = share::parts(&plan, assign, |_| agent.cores.min(3));
            let of = |nth| parts.iter().filter(move |part| part.role == Role::Population(nth));
            let connections: u64 = of(0).map(|part| u64::from(part.connections)).sum();
            prop_assert_eq!(connections, u64::from(assign.slices[0].of(n)));
            let places = u64::from(plan.sliced(&assign.slices, false).places());
            prop_assert!(places <= agent.can.cap.unwrap_or(u64::MAX), "{:?}", agent);
        }
    }

    #[test]
    fn equal_shares_differ_by_at_most_one(
        agents in vec((1u32..65).prop_map(|cores| agent(cores, None)), 1..12), n in 1u32..100_000_000
    ) {
        let widths = widths(&plan(&[(&flag::CONNECTIONS, &n.to_string())]), &apart(agents), Shares::Equal).unwrap();
        prop_assert!(widths.iter().max().unwrap() - widths.iter().min().unwrap() <= 1);
        prop_assert_eq!(widths.iter().map(|width| u64::from(*width)).sum::<u64>(), u64::from(n));
    }

    #[test]
    fn what_a_lost_agent_did_goes_to_the_others_once_and_to_none_more_than_it_can_hold(
        n in 1u32..2_000_000, from in 0u32..1_000_000, width in 0u32..1_000_000,
        caps in vec(proptest::option::of(0u64..1_000_000), 1..9)
    ) {
        let (from, width) = (from % n, width.min(n - from % n));
        let plan = plan(&[(&flag::CONNECTIONS, &n.to_string()), (&flag::PROBE, "10/s"), (&flag::TIMEOUT, "3s")]);
        let demand = Demand::of(&plan);
        let probe = u64::from(plan.probe.as_ref().unwrap().places());
        let lost = Assign { slices: vec![Slice { from, width, of: n }], probe: true, tuples: Slice::WHOLE, salt: 7, left: Vec::new() };
        let agents: Vec<Owned> = caps.iter().map(|cap| agent(1, *cap)).collect();
        // Each already has one unit.
        let own = [Assign { slices: vec![Slice { from: 0, width: 1, of: n }], probe: false, tuples: THIRD, salt: 7, left: Vec::new() }];
        let heir = |agent: &'_ Owned| agent.can.cap.map_or(u64::MAX, |cap| cap.saturating_sub(1));
        let rooms: Vec<u64> = agents.iter().map(heir).collect();
        let heirs: Vec<Heir> =
            agents.iter().map(|agent| Heir { can: Some(&agent.can), parts: &own, given: &[] }).collect();
        prop_assert_eq!(heirs.iter().map(|heir| heir.room(&demand)).collect::<Vec<_>>(), rooms.iter().map(|room| (*room).min((u64::MAX / 3) - 1)).collect::<Vec<_>>());
        let divided = divide(&demand, &lost, &heirs, 8);
        prop_assert_eq!(divided.len(), agents.len());
        let mut next = from;
        for part in divided.iter().flatten() {
            let slice = part.slices[0];
            prop_assert_eq!((slice.from, slice.of, part.tuples, part.salt), (next, n, THIRD, 8));
            next += slice.width;
        }
        prop_assert_eq!(next, from + width);
        prop_assert_eq!(divided.iter().flatten().filter(|part| part.probe).count(), 1);
        let without_probe = rooms.iter().position(|room| *room >= probe);
        let sum = rooms.iter().fold(0, |sum: u64, room| sum.saturating_add(*room));
        if without_probe.is_some() && sum >= u64::from(width) + probe {
            for (part, room) in divided.iter().zip(&rooms) {
                prop_assert!(part.as_ref().is_none_or(|part| demand.places_of(part) <= *room), "{:?} of {}", part, room);
            }
        }
    }

    /// What a lost agent had sent is done, in whichever of its parts; the others send the rest, whichever agent is lost afterwards.
    #[test]
    fn a_number_of_requests_is_handed_over_as_far_as_it_is_left(
        n in 1u64..1 << 40, widths in vec(1u32..5_000, 2..6), sent in vec(0.0f64..1.2, 2), has_rate: bool
    ) {
        let of: u32 = widths.iter().sum();
        let (connections, requests) = (of.to_string(), n.to_string());
        let mut flags = vec![(&flag::CONNECTIONS, &*connections), (&flag::REQUESTS, &*requests)];
        flags.extend(has_rate.then_some((&flag::RATE, "7/s")));
        let plan = plan(&flags);
        let (demand, quota) = (Demand::of(&plan), plan.populations[0].quota().unwrap());
        let mut from = 0;
        let mut parts: Vec<Vec<Assign>> = Vec::new();
        for width in &widths {
            let slices = vec![Slice { from, width: *width, of }];
            parts.push(vec![Assign { slices, tuples: Slice::WHOLE, ..Assign::default() }]);
            from += width;
        }
        let left_in = |parts: &[Assign]| {
            let of = |part: &Assign| part.left.first().copied().flatten().unwrap_or_else(|| quota.of(part.slices[0]));
            parts.iter().map(of).sum::<u64>()
        };
        prop_assert_eq!(parts.iter().map(|own| left_in(own)).sum::<u64>(), n);
        let mut done = 0;
        // All but the last are lost, one after the other.
        for sent in sent.into_iter().take(widths.len() - 1) {
            let lost = parts.remove(0);
            let (all, begun) = (left_in(&lost), (left_in(&lost) as f64 * sent) as u64);
            let left = demand.left_of(&lost, |_, arrives| if arrives { 0 } else { begun });
            prop_assert_eq!(left_in(&left), all.saturating_sub(begun));
            done += begun.min(all);
            for part in &left {
                let heirs: Vec<Heir> = parts.iter().map(|own| Heir { can: None, parts: own, given: &[] }).collect();
                let divided = divide(&demand, part, &heirs, 8);
                parts.iter_mut().zip(divided).for_each(|(own, part)| own.extend(part));
            }
            prop_assert_eq!(done + parts.iter().map(|own| left_in(own)).sum::<u64>(), n);
        }
    }

    /// Agents below their limits get what their weights say, to within one unit.
    #[test]
    fn what_is_filled_is_in_proportion(n: u32, agents in vec((1u64..1_000, 0u64..2_000_000_000), 1..20)) {
        let (weights, limits): (Vec<u64>, Vec<u64>) = agents.into_iter().unzip();
        let Some(parts) = fill(n, &weights, &limits) else {
            prop_assert!(limits.iter().sum::<u64>() < n.into());
            return Ok(());
        };
        prop_assert_eq!(parts.iter().map(|part| u64::from(*part)).sum::<u64>(), u64::from(n));
        let per_weight = |nth: usize| f64::from(parts[nth]) / weights[nth] as f64;
        for (nth, part) in parts.iter().enumerate() {
            prop_assert!(u64::from(*part) <= limits[nth]);
            // No agent gets clearly more per weight than one that could take more.
            if u64::from(*part) < limits[nth] {
                let most = (0..parts.len()).map(|other| (f64::from(parts[other]) - 1.0) / weights[other] as f64);
                prop_assert!(most.fold(0.0, f64::max) <= per_weight(nth) + 1.0 / weights[nth] as f64 + 1e-9);
            }
        }
    }
}
