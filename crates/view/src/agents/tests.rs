use super::*;
use units::Nanos;

fn share(id: &str, cores: u32) -> AgentShare {
    AgentShare { id: id.to_owned(), wanted: 9, cores }
}

/// Two seconds of agents with these reports, CPU times in milliseconds and lags in microseconds.
fn tick(agents: &[(u64, u64, u64)]) -> Tick {
    let mut columns = AgentTicks::default();
    for (reports, cpu_ms, lag_us) in agents {
        columns.reports.push(*reports);
        columns.cpu_ms.push(*cpu_ms);
        columns.lag_p99_us.0.push(*lag_us);
    }
    let (from, until) = (Nanos::from_secs(3), Nanos::from_secs(5));
    Tick { from, until, agents: Some(Box::new(columns)), ..Tick::default() }
}

fn line(agents: &[AgentShare], tick: &Tick, width: usize) -> String {
    Agents::of(agents, tick).expect("a fleet").line(width)
}

#[test]
fn the_agent_with_the_most_cpu_is_by_the_share_of_its_processors() {
    let agents = [share("load-1", 8), share("load-2", 2), share("load-3", 4)];
    let tick = tick(&[(2, 8_000, 1_500), (2, 3_000, 90), (2, 400, 12_000)]);
    assert_eq!(line(&agents, &tick, 80), "agents 3 of 3 up  max cpu load-2 1.50 cores, lag load-3 12 ms");
}

#[test]
fn lost_agents_and_those_without_a_report_are_not_up() {
    let agents = [share("a", 2), share("b", 2), share("c", 2), share("d", 2)];
    let mut tick = tick(&[(2, 1_000, 0), (1, 900, 0), (0, 0, 0), (2, 100, 0)]);
    tick.agents.as_mut().unwrap().lose(1);
    assert_eq!(line(&agents, &tick, 80), "agents 2 of 4 up, 1 lost  max cpu a 0.50 cores", "nothing was due");
}

#[test]
fn late_reports_are_of_other_seconds() {
    assert_eq!(line(&[share("a", 1)], &tick(&[(4, 3_000, 0)]), 80), "agents 1 of 1 up  max cpu a 0.75 cores");
}

#[test]
fn a_second_without_a_report_has_no_figures() {
    assert_eq!(line(&[share("a", 2)], &Tick::default(), 80), "agents 0 of 1 up");
    assert_eq!(Agents::of(&[], &tick(&[(1, 1, 1)])), None, "on one machine");
    let unknown = line(&[share("a", 0)], &tick(&[(2, 500, 7)]), 80);
    assert_eq!(unknown, "agents 1 of 1 up  max lag a 7.0 µs", "of unknown processors there is no share");
}

#[test]
fn long_names_are_shortened_so_that_no_line_wraps() {
    let check = |names: [&str; 2], expected: &str| {
        let line = line(&names.map(|name| share(name, 2)), &tick(&[(2, 4_000, 7), (2, 1, 1_250)]), 80);
        assert_eq!(line, expected);
        assert!(columns(&line) <= 80, "{}", columns(&line));
    };
    check(["load-1", "load-2"], "agents 2 of 2 up  max cpu load-1 2.00 cores, lag load-2 1.3 ms");
    check(
        ["throng-agents-eu-west-17", "throng-agents-eu-west-18"],
        "agents 2 of 2 up  max cpu …nts-eu-west-17 2.00 cores, lag …nts-eu-west-18 1.3 ms",
    );
    check(
        ["a", "throng-agents-eu-west-18"],
        "agents 2 of 2 up  max cpu a 2.00 cores, lag throng-agents-eu-west-18 1.3 ms",
    );
    let many: Vec<_> = (0..1_000).map(|n| share(&format!("throng-agents-of-a-large-fleet-{n}"), 2)).collect();
    let mut tick = tick(&vec![(2, 4_000, 999_999); 1_000]);
    (0..500).for_each(|place| tick.agents.as_mut().unwrap().lose(place));
    for width in [72, 80, 200] {
        let line = line(&many, &tick, width);
        assert!(columns(&line) <= width && line.contains("eet-0 2.00 cores") || width == 72, "{line}");
    }
}
