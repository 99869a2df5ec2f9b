//! The handover of a lost agent's part to others, whatever happens to them and to the coordinator.

use std::ops::Range;

use plan::{Hold, Plan};
use samples::Verdict;
use units::{Count, Nanos};

use super::{
    chaos::{Chaos, Event},
    plan, simulate,
};
use crate::coordinator::OnLost;

const S: fn(u64) -> Nanos = Nanos::from_secs;
const CONNECTIONS: u32 = 1_003;

/// Runs two agents with these events. Returns the summary, and when parts of which agents were handed over.
fn run(seed: u64, events: &[(Nanos, Event)]) -> (samples::Summary, Vec<(Nanos, String)>) {
    run_of(&plan(CONNECTIONS, seed), seed, events)
}

fn run_of(plan: &Plan, seed: u64, events: &[(Nanos, Event)]) -> (samples::Summary, Vec<(Nanos, String)>) {
    let chaos = Chaos { on_lost: OnLost::Reassign, events: events.to_vec(), ..Chaos::none() };
    let (summary, world) = simulate(plan, 2, seed, chaos);
    (summary, world.handed_over())
}

/// Whether only the part of agent 0 was handed over, within this time.
fn is_handed(handed: &[(Nanos, String)], within: Range<Nanos>) -> bool {
    matches!(handed, [(at, of)] if of == "0" && within.contains(at))
}

#[test]
fn a_part_for_which_no_agent_is_left_is_handed_over_when_one_is_back() {
    for seed in 0..20 {
        // Agent 1 is suspended when the lease of agent 0 runs out, so that all agents are lost meanwhile.
        let events = [(S(3), Event::Kill(0, S(40))), (S(12), Event::Freeze(1, S(9)))];
        let (summary, handed) = run(seed, &events);
        assert!(is_handed(&handed, S(21)..S(22)), "seed {seed}: {handed:?}");
        assert_eq!(summary.agents[0].taken_over_by, ["1"], "seed {seed}: {}", summary.headline);
        assert!((17.0..21.0).contains(&summary.agents[0].gap_s), "seed {seed}: {:?}", summary.agents[0]);
        assert_eq!(summary.connections.held, u64::from(CONNECTIONS), "seed {seed}: {}", summary.headline);
    }
}

#[test]
fn the_part_of_an_agent_that_its_user_stops_is_handed_over_at_once() {
    for seed in 0..20 {
        let (summary, handed) = run(seed, &[(S(6), Event::Stop(0))]);
        assert!(is_handed(&handed, S(6)..S(8)), "seed {seed}: {handed:?}");
        let agent = &summary.agents[0];
        assert_eq!(agent.taken_over_by, ["1"], "seed {seed}: {}", summary.headline);
        assert!(agent.sealed && agent.why.as_deref() == Some("it was stopped"), "seed {seed}: {agent:?}");
        assert_eq!(summary.connections.held, u64::from(CONNECTIONS), "seed {seed}: {}", summary.headline);
        assert_eq!(summary.verdict, Verdict::Pass, "seed {seed}: {:?}", summary.reasons);
    }
}

#[test]
fn the_connections_of_agents_that_are_all_stopped_are_lost() {
    for seed in 0..20 {
        let (summary, _) = run(seed, &[(S(6), Event::Stop(0)), (S(6), Event::Stop(1))]);
        let (c, all) = (&summary.connections, u64::from(CONNECTIONS));
        assert_eq!((c.held, c.lost), (0, all), "seed {seed}: {}", summary.headline);
        let agents = summary.agents.iter().map(|agent| (agent.held, agent.lost_with));
        assert_eq!(agents.fold((0, 0), |(a, b), (c, d)| (a + c, b + d)), (0, all), "seed {seed}");
    }
}

#[test]
fn an_agent_that_was_cut_off_for_a_moment_keeps_its_part() {
    for seed in 0..20 {
        let (summary, handed) = run(seed, &[(S(6), Event::Cut(0, S(7)))]);
        assert_eq!(handed, [], "seed {seed}");
        assert_eq!(summary.verdict, Verdict::Pass, "seed {seed}: {}", summary.headline);
        assert!((6.0..9.0).contains(&summary.agents[0].away_s), "seed {seed}: {:?}", summary.agents[0]);
        assert_eq!(summary.connections.held, u64::from(CONNECTIONS), "seed {seed}");
    }
}

/// By the log, whether the absence was over before the restart, began before it, or no coordinator led meanwhile.
#[test]
fn a_coordinator_that_starts_again_knows_how_long_an_agent_was_away() {
    for seed in 0..20 {
        for (cut, restart) in [(S(5), (S(14), S(2))), (S(8), (S(10), S(2))), (S(8), (S(9), S(6)))] {
            let events = [(cut, Event::Cut(0, S(6))), (restart.0, Event::Restart(restart.1))];
            let (summary, handed) = run(seed, &events);
            assert_eq!(handed, [], "seed {seed}: {events:?}");
            let away = summary.agents.iter().map(|agent| agent.away_s).collect::<Vec<f64>>();
            assert!((5.0..8.5).contains(&away[0]) && away[1] == 0.0, "seed {seed}: {events:?}: {away:?}");
            assert_eq!(summary.connections.held, u64::from(CONNECTIONS), "seed {seed}: {events:?}");
        }
        // Both agents are silent: the broker was unreachable.
        let (summary, _) = run(seed, &[(S(6), Event::Outage(S(5))), (S(12), Event::Restart(S(2)))]);
        assert!(summary.agents.iter().all(|agent| agent.away_s == 0.0), "seed {seed}: {:?}", summary.agents);
    }
}

/// The log is stamped by the broker's wall clock.
#[test]
fn a_wall_clock_that_is_set_by_an_hour_changes_nothing() {
    const HOURS: fn(u64) -> Nanos = |hours| Nanos::from_secs(3_600 * hours);
    for seed in 0..20 {
        let restart = (S(11), Event::Restart(S(3)));
        let cut = (S(5), Event::Cut(0, S(5)));
        let (expected, _) = run(seed, &[cut, restart]);
        for (first, then) in [(0, 1), (2, 1)] {
            // Before the restart, and while no coordinator leads.
            for at in [S(8), S(12)] {
                let set = [(Nanos::ZERO, Event::Set(HOURS(first))), (at, Event::Set(HOURS(then)))];
                let (summary, handed) = run(seed, &[&[cut, restart][..], &set].concat());
                let about = || format!("seed {seed}: {set:?}: {}", summary.headline);
                assert_eq!(handed, [], "{}", about());
                assert_eq!(summary.verdict, expected.verdict, "{}", about());
                assert_eq!(summary.connections.held, u64::from(CONNECTIONS), "{}", about());
                let more = [
                    summary.duration_s - expected.duration_s,
                    summary.agents[0].away_s - expected.agents[0].away_s,
                    summary.agents[1].away_s - expected.agents[1].away_s,
                ];
                assert!(more.iter().all(|more| more.abs() < 1.5), "{}: {more:?}", about());
            }
        }
    }
}

#[test]
fn a_run_whose_agents_are_all_lost_for_good_ends() {
    for seed in 0..20 {
        let events = [(S(3), Event::Kill(0, S(40))), (S(12), Event::Kill(1, S(40)))];
        let (summary, handed) = run(seed, &events);
        assert_eq!(handed, [], "seed {seed}");
        assert_ne!(summary.verdict, Verdict::Pass, "seed {seed}: {}", summary.headline);
        // The last report of agent 1 is the end of its load.
        assert!((8.0..12.0).contains(&summary.duration_s), "seed {seed}: {}", summary.duration_s);
    }
}

#[test]
fn a_coordinator_that_starts_again_hands_over_what_was_lost_just_before() {
    for seed in 0..20 {
        let events = [(S(6), Event::Kill(0, S(40))), (S(7), Event::Restart(S(3)))];
        let (summary, handed) = run(seed, &events);
        // The lease granted by the previous process, and the load, end 14 s after this process leads, soon after its start.
        assert!(is_handed(&handed, S(21)..S(25)), "seed {seed}: {handed:?}");
        assert_eq!(summary.connections.held, u64::from(CONNECTIONS), "seed {seed}: {}", summary.headline);
    }
}

/// The number of requests of a run, and when agent 0 is lost.
const FEW: u64 = 240;
const EARLY: Nanos = Nanos::from_millis(3_500);

/// Each agent completes its requests within a few seconds, long before the lease of a lost agent runs out.
fn few(seed: u64) -> Plan {
    let mut plan = plan(CONNECTIONS, seed);
    plan.populations[0].requests = Some(FEW);
    plan.stages[0].hold = Hold::Forever;
    plan
}

/// Also if the coordinator restarts while it waits.
#[test]
fn a_run_does_not_end_before_others_have_sent_what_a_lost_agent_had_not() {
    for seed in 0..20 {
        let killed = (EARLY, Event::Kill(0, S(40)));
        for restart in [None, Some((S(9), S(2))), Some((S(16), S(3)))] {
            let restarts = restart.map(|(at, span)| (at, Event::Restart(span)));
            let events: Vec<_> = [killed].into_iter().chain(restarts).collect();
            let (summary, handed) = run_of(&few(seed), seed, &events);
            // The lease and the load end 14 s after the last message, or after another process leads.
            let lost = restart.map_or(S(7), |(at, span)| at + span);
            let about = || format!("seed {seed}: {restart:?}: {handed:?}: {}", summary.headline);
            assert!(is_handed(&handed, lost + S(13)..lost + S(17)), "{}", about());
            assert_eq!(summary.agents[0].taken_over_by, ["1"], "{}", about());
            assert_eq!(summary.requests.sent, FEW, "{}", about());
        }
    }
}

#[test]
fn a_run_ends_where_nobody_sends_what_a_lost_agent_had_not() {
    let killed = (EARLY, Event::Kill(0, S(40)));
    for seed in 0..20 {
        // The other agent has no capacity; or it is lost too, after it has completed its requests and before it can take over.
        let full = run_of(&few(seed), seed, &[(S(3), Event::Full(1)), killed]);
        let lost = run_of(&few(seed), seed, &[killed, (S(14), Event::Kill(1, S(40)))]);
        assert_eq!((full.1.len(), lost.1.len()), (1, 0), "seed {seed}: {:?} {:?}", full.1, lost.1);
        let why = full.0.agents[0].why.as_deref();
        let refused =
            "no heartbeat for 4s; agent 1 did not take over its part: it is more than is allowed here";
        assert_eq!(why, Some(refused), "seed {seed}: {}", full.0.headline);
        let why = lost.0.agents[0].why.as_deref();
        let not_taken = "no heartbeat for 4s; no agent took over its part before the run ended";
        assert_eq!(why, Some(not_taken), "seed {seed}: {}", lost.0.headline);
        for (summary, _) in [full, lost] {
            let sent = summary.requests.sent;
            assert!(sent < FEW && summary.agents[0].taken_over_by.is_empty(), "seed {seed}: {sent}");
            let reason = format!("{} of {FEW} requests sent", Count(sent));
            assert!(summary.reasons.contains(&reason), "seed {seed}: {reason}: {:?}", summary.reasons);
        }
    }
}

/// Without a duration and a number of requests, a run ends on its own when all connections are gone. With a lost agent, that is when it
/// certainly has none, and its part has been handed over.
#[test]
fn a_run_whose_connections_are_all_gone_ends_also_after_an_agent_was_lost() {
    let events = [(EARLY, Event::Kill(0, S(60))), (S(6), Event::Reset)];
    for seed in 0..20 {
        let mut plan = plan(CONNECTIONS, seed);
        plan.stages[0].hold = Hold::Forever;
        let (summary, handed) = run_of(&plan, seed, &events);
        assert_eq!(handed.len(), 1, "seed {seed}: {handed:?}");
        assert_eq!(summary.agents[0].taken_over_by, ["1"], "seed {seed}: {}", summary.headline);
        // Also if no agent takes it over.
        let chaos = Chaos { events: events.to_vec(), ..Chaos::none() };
        let (summary, _) = simulate(&plan, 2, seed, chaos);
        assert_ne!(summary.verdict, Verdict::Pass, "seed {seed}: {}", summary.headline);
        // The lease is no longer renewed after 10 s of silence, and the load ends 14 s after that.
        assert!((20.0..30.0).contains(&summary.duration_s), "seed {seed}: {}", summary.duration_s);
    }
}

/// Requests that a lost agent has sent are not repeated, the others are sent.
#[test]
fn a_number_of_requests_is_sent_by_those_that_are_left() {
    const REQUESTS: u64 = 400;
    for seed in 0..20 {
        let mut plan = plan(CONNECTIONS, seed);
        plan.populations[0].requests = Some(REQUESTS);
        let (summary, handed) = run_of(&plan, seed, &[(S(3), Event::Kill(0, S(40)))]);
        assert_eq!((handed.len(), summary.agents[0].taken_over_by.len()), (1, 1), "seed {seed}: {handed:?}");
        assert_eq!(summary.requests.sent, REQUESTS, "seed {seed}: {}", summary.headline);
        // If no agent takes over, this reports the number of missing requests.
        plan.populations[0].requests = Some(20 * REQUESTS);
        let (summary, _) =
            run_of(&plan, seed, &[(S(3), Event::Kill(0, S(40))), (S(12), Event::Kill(1, S(40)))]);
        let sent = summary.requests.sent;
        assert!(sent < 20 * REQUESTS, "seed {seed}: {sent}");
        let missing = format!(" s with {} of 8,000 requests", Count(sent));
        assert!(
            summary.reasons.iter().any(|reason| reason.ends_with(&missing)),
            "seed {seed}: {missing}: {:?}",
            summary.reasons
        );
    }
}
