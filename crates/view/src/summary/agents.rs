//! The table of a fleet's agents.

use samples::{AgentState, AgentSummary, Summary};
use units::{Count, signed};

use crate::table::aligned;

/// Maximum number of agents shown. Of a larger fleet, the agents with problems and the busiest are shown.
const MOST: usize = 12;

/// The name of the process whose CPU and memory the summary contains: throng, or on a fleet the coordinator.
pub(crate) fn generator(s: &Summary) -> &'static str {
    if s.agents.is_empty() { "throng" } else { "coordinator" }
}

/// A line for each agent; empty without a fleet.
pub(super) fn table(s: &Summary) -> String {
    if s.agents.is_empty() {
        return String::new();
    }
    let mut agents: Vec<&AgentSummary> = s.agents.iter().collect();
    if agents.len() > MOST {
        let busy = |agent: &AgentSummary| (agent.cpu_share.unwrap_or(0.0) * 1e6) as u64;
        agents.sort_by_key(|agent| (agent.state == AgentState::Done, std::cmp::Reverse(busy(agent))));
    }
    let head = ["agent", "state", "held", "wanted", "began", "lag p99", "cpu", "away"];
    let mut rows = vec![head.map(str::to_owned)];
    let time = |us: Option<f64>| us.map_or("-".to_owned(), |us| super::time(us, false));
    for agent in agents.iter().take(MOST) {
        rows.push([
            agent.id.clone(),
            agent.state.name().to_owned(),
            Count(agent.held).to_string(),
            Count(agent.wanted).to_string(),
            agent.began_late_ms.map_or("-".to_owned(), |ms| format!("{} ms", signed(ms, 1))),
            time(agent.lag_p99_us),
            cpu(agent),
            if agent.away_s > 0.0 { format!("{:.0} s", agent.away_s) } else { "-".to_owned() },
        ]);
    }
    let mut text: String = aligned(&rows, &[0, 1]).iter().map(|line| format!("  {line}\n")).collect();
    if s.agents.len() > MOST {
        text += &format!("  and {} more\n", Count((s.agents.len() - MOST) as u64).of("agent"));
    }
    text
}

/// CPU usage of an agent in cores.
fn cpu(agent: &AgentSummary) -> String {
    let used = agent.cpu_share.map(|share| share * f64::from(agent.cores));
    used.filter(|_| agent.cores > 0).map_or("-".to_owned(), super::cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_lines_those_to_look_at_first() {
        let agent = |n: u64| AgentSummary {
            id: format!("a{n}"),
            state: if n == 3 { AgentState::Lost } else { AgentState::Done },
            wanted: 1_000 + n,
            held: 1_000,
            began_late_ms: Some(if n == 2 { -0.04 } else { 0.26 }),
            lag_p99_us: (n != 3).then_some(170.0),
            cores: 2,
            cpu_share: Some(n as f64 / 100.0),
            away_s: if n == 2 { 5.4 } else { 0.0 },
            ..AgentSummary::default()
        };
        let small = Summary { agents: (1..4).map(agent).collect(), ..Summary::default() };
        let expected = "  agent  state   held  wanted    began  lag p99         cpu  away\n\
            \x20 a1     done   1,000   1,001  +0.3 ms   170 µs  0.02 cores     -\n\
            \x20 a2     done   1,000   1,002   0.0 ms   170 µs  0.04 cores   5 s\n\
            \x20 a3     lost   1,000   1,003  +0.3 ms        -  0.06 cores     -\n";
        assert_eq!(table(&small), expected);
        let large = Summary { agents: (1..31).map(agent).collect(), ..Summary::default() };
        let table = table(&large);
        let first: Vec<&str> =
            table.lines().skip(1).map(|line| line.split_whitespace().next().unwrap()).collect();
        assert_eq!((&first[..3], table.lines().count()), (&["a3", "a30", "a29"][..], 14), "{table}");
        assert!(table.ends_with("  and 18 agents more\n"), "{table}");
        assert_eq!(super::table(&Summary::default()), "");
        assert_eq!((generator(&large), generator(&Summary::default())), ("coordinator", "throng"));
        let text = crate::summary::text(&large);
        assert!(text.contains("\n  coordinator   ") && !text.contains("\n  throng  "), "{text}");
    }
}
