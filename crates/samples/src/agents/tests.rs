use super::*;
use crate::{
    fault::{Fault, Kind, Stage},
    tick::Tick,
};
use units::Nanos;

/// A second with `open` connections at its end, a response after each of `ms` milliseconds, and a lag of `open` microseconds.
fn second(open: u64, ms: &[u64]) -> Tick {
    let mut tick = Tick { open, cpu_ns: 250_900_000, ..Tick::default() };
    (tick.counts.opened, tick.counts.redialled, tick.counts.told) = (3, 1, 5);
    tick.counts.answered = ms.len() as u64;
    tick.faults.count(Fault::target(Stage::Exchange, Kind::Reset));
    ms.iter().for_each(|ms| tick.latency.record(Nanos::from_millis(*ms)));
    tick.lag.record(Nanos::from_micros(open));
    tick
}

#[test]
fn a_report_is_at_the_place_of_its_agent() {
    let mut agents = AgentTicks::default();
    second(640, &[2, 4]).report(1, &mut agents);
    let column = |value| vec![0, value];
    assert_eq!((&agents.reports, &agents.open.0), (&column(1), &column(640)));
    assert_eq!((&agents.connects, &agents.requests), (&column(4), &column(7)));
    assert_eq!((&agents.faults, &agents.cpu_ms), (&column(1), &column(250)));
    let [latency, lag] = [&agents.latency_p99_us, &agents.lag_p99_us].map(|column| column.0[1]);
    assert!((3_996..=4_004).contains(&latency) && (639..=641).contains(&lag), "{agents:?}");
    assert_eq!(AgentTicks::value(&agents.open.0, 2), 0, "of an agent beyond the end of a column");
    agents.lose(1);
    assert_eq!((agents.lost.0, agents.open.0), (column(1), column(0)));
}

#[test]
fn latency_is_of_all_responses_whenever_they_were_due() {
    let (mut ramp, mut both) = (second(0, &[]), second(0, &[1; 99]));
    ramp.ramp_latency.record(Nanos::from_millis(7));
    (0..2).for_each(|_| both.ramp_latency.record(Nanos::from_millis(9)));
    let p99 = |tick: &Tick| {
        let mut agents = AgentTicks::default();
        tick.report(0, &mut agents);
        agents.latency_p99_us.0[0] / 1_000
    };
    assert_eq!((p99(&ramp), p99(&both), p99(&second(0, &[]))), (7, 9, 0));
}

/// Zero means not measured, so a lag below a microsecond counts as one.
#[test]
fn a_second_in_which_nothing_was_due_has_no_lag() {
    let lag = |tick: &Tick| {
        let mut agents = AgentTicks::default();
        tick.report(0, &mut agents);
        agents.lag_p99_us.0[0]
    };
    let mut prompt = Tick::default();
    prompt.lag.record(Nanos(300));
    assert_eq!((lag(&Tick::default()), lag(&prompt)), (0, 1));
}

/// Two reports of one agent, and one of another.
#[test]
fn counts_add_up_and_the_worst_is_kept() {
    let [mut first, mut later] = [AgentTicks::default(), AgentTicks::default()];
    second(900, &[8]).report(0, &mut first);
    second(20, &[3]).report(0, &mut later);
    second(7, &[1]).report(1, &mut later);
    let mut both = first.clone();
    both.extend(&later);
    assert_eq!((&both.reports, &both.cpu_ms, &both.connects), (&vec![2, 1], &vec![500, 250], &vec![8, 4]));
    assert_eq!(both.open.0, [20, 7], "what is open at the end");
    assert_eq!((both.latency_p99_us.0[0] / 1_000, both.lag_p99_us.0[0] / 100), (8, 9), "{both:?}");
    // What comes late of the same second is of another agent, or of one that was away.
    let mut late = first;
    late.merge(&later);
    assert_eq!(late.open.0, [920, 7]);
}

#[test]
fn a_record_of_a_thousand_agents_is_small() {
    let mut agents = AgentTicks::default();
    let mut tick = second(100_000, &[2; 500]);
    tick.counts.answered = 20_000;
    (0..1_000).for_each(|place| tick.report(place, &mut agents));
    let json = serde_json::to_string(&agents).expect("columns");
    assert!(json.len() < 40_000, "{}", json.len());
}
