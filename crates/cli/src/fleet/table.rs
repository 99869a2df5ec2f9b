//! Formats the agents of a fleet as a table and as JSON.

use std::collections::{BTreeMap, BTreeSet};

use fleet::{AgentFinding, AgentStatus, Identity};
use samples::Calibration;
use serde_json::json;
use units::{Bytes, Count, Nanos};

/// A table with a line per agent, and the totals.
pub(super) fn agents(agents: &[AgentStatus]) -> String {
    let head =
        ["agent", "state", "version", "cores", "memory", "cpu", "lag", "can hold", "ports", "addresses"];
    let rows: Vec<[String; 10]> =
        std::iter::once(head.map(str::to_owned)).chain(agents.iter().map(row)).collect();
    let mut lines = view::aligned(&rows, &[0, 1, 2, 9]);
    for agent in agents {
        if let Some(calibration) = &agent.identity.calibration {
            lines.push(format!("{}: {}", agent.identity.id, self::calibration(calibration)));
        }
        let unfit = agent.identity.findings.len();
        if unfit > 0 {
            let id = &agent.identity.id;
            let findings = Count(unfit as u64).of("finding");
            lines.push(format!("{id}: {findings}; see throng fleet doctor"));
        }
    }
    let all = Together::of(agents);
    let (cores, connections) = (Count(all.cores).of("core"), Count(all.connections).of("connection"));
    lines.push(format!("{}, {cores}, about {connections}", all.names()));
    lines.join("\n") + "\n"
}

/// The totals of a fleet; resources that agents share are counted once.
struct Together {
    agents: u64,
    machines: u64,
    cores: u64,
    connections: u64,
}

impl Together {
    fn of(agents: &[AgentStatus]) -> Together {
        let (mut machines, mut cores) = (BTreeSet::new(), BTreeMap::new());
        let mut networks: BTreeMap<(&str, &str), Vec<&Identity>> = BTreeMap::new();
        for AgentStatus { identity: who, .. } in agents {
            machines.insert(who.machine());
            // Containers on one machine have their own host names, and each its processors.
            let of_host = cores.entry((who.machine(), who.host.as_str())).or_insert(0);
            *of_host = u64::from(who.cores).max(*of_host);
            networks.entry((who.machine(), who.network.as_str())).or_default().push(who);
        }
        Together {
            agents: agents.len() as u64,
            machines: machines.len() as u64,
            cores: cores.values().sum(),
            connections: networks.values().map(|sharing| held(sharing)).sum(),
        }
    }

    /// `2 agents`, or `3 agents on 1 machine`.
    fn names(&self) -> String {
        let agents = Count(self.agents).of("agent");
        if self.machines == self.agents {
            return agents;
        }
        format!("{agents} on {}", Count(self.machines).of("machine"))
    }
}

/// Number of connections that agents with shared ports can hold, as computed for a run. Agents limited by a cap do not show what
/// their machine can hold.
fn held(sharing: &[&Identity]) -> u64 {
    let free = sharing.iter().filter(|who| who.max_connections != Some(who.connections));
    let fits = free.map(|who| who.connections).max().unwrap_or(u64::MAX);
    let agents: Vec<_> = sharing.iter().map(|who| (fits, who.max_connections)).collect();
    fleet::shared(&agents).iter().sum()
}

fn row(agent: &AgentStatus) -> [String; 10] {
    let who = &agent.identity;
    let none = || "-".to_owned();
    let state = agent.run.as_ref().map_or(agent.state.clone(), |run| format!("{} {run}", agent.state));
    let more = (who.address_count as usize).saturating_sub(1);
    let first = who.addresses.first().map_or_else(none, ToString::to_string);
    [
        who.id.clone(),
        state,
        who.version.clone(),
        who.cores.to_string(),
        Bytes(who.memory_bytes).brief().to_string(),
        agent.cpu.map_or_else(none, |share| format!("{:.0} %", share * 100.0)),
        agent.lag_ns.map_or_else(none, |lag| Nanos(lag).brief().to_string()),
        Count(who.connections).to_string(),
        Count(who.ports).to_string(),
        if more > 0 { format!("{first} and {more} more") } else { first },
    ]
}

/// A line such as `vm17: draining`.
pub(super) fn line_of(agent: &AgentStatus) -> String {
    let run = agent.run.as_ref().map(|run| format!(", takes part in run {run}"));
    format!("{}: {}{}", agent.identity.id, agent.state, run.unwrap_or_default())
}

/// A line such as `120,000 connects/s, 300,000 requests/s, 900,000 connections (2026-11-23T06:00:00Z, uring)`.
pub(super) fn calibration(c: &Calibration) -> String {
    let whole = |value: f64| Count(value.round() as u64);
    let (connects, requests, fit) =
        (whole(c.open_per_s.value), whole(c.requests_per_s.value), whole(c.connections.value));
    let fit = fit.of("connection");
    format!("{connects} connects/s, {requests} requests/s, {fit} ({}, {})", c.at_ms, c.io)
}

/// Whether the agent cannot hold the number of connections for which its machine is sized.
pub(super) fn is_unfit(agent: &AgentStatus) -> bool {
    agent.identity.findings.iter().any(|finding| finding.severity == "refuse")
}

/// The findings of all agents, worst first; equal findings are combined.
pub(super) fn findings(agents: &[AgentStatus]) -> String {
    let mut found: Vec<(&AgentFinding, Vec<&str>)> = Vec::new();
    for agent in agents {
        for finding in &agent.identity.findings {
            match found.iter_mut().find(|(other, _)| *other == finding) {
                Some((_, ids)) => ids.push(&agent.identity.id),
                None => found.push((finding, vec![&agent.identity.id])),
            }
        }
    }
    let rank = |finding: &AgentFinding| (finding.severity != "refuse", finding.what.clone());
    found.sort_by_key(|(finding, ids)| (rank(finding), ids[0].to_owned()));
    let mut text = String::new();
    for (AgentFinding { severity, what, value, needed, fix }, ids) in &found {
        let mark = if severity == "refuse" { "no" } else { "warn" };
        let needed = if needed.is_empty() { String::new() } else { format!(", {needed}") };
        text += &format!("{mark:<4}  {what}: {value}{needed}\n");
        if !fix.is_empty() {
            text += &format!("      {fix}\n");
        }
        text += &format!("      on {}\n", ids.join(", "));
    }
    let fine: Vec<&str> =
        agents.iter().filter(|a| a.identity.findings.is_empty()).map(|a| &*a.identity.id).collect();
    if !fine.is_empty() {
        text += &format!("ok    {}\n", fine.join(", "));
    }
    let all = Together::of(agents);
    text + &format!("{} can hold about {}\n", all.names(), Count(all.connections).of("connection"))
}

/// The JSON of schema `throng.fleet/1`.
pub(super) fn json(agents: &[AgentStatus]) -> String {
    let agents: Vec<serde_json::Value> = agents.iter().map(agent_json).collect();
    format!("{:#}\n", json!({ "schema": "throng.fleet/1", "agents": agents }))
}

/// An agent in this JSON.
pub(super) fn agent_json(agent: &AgentStatus) -> serde_json::Value {
    let mut value = serde_json::to_value(&agent.identity).expect("an identity is data");
    value["state"] = agent.state.clone().into();
    value["run"] = agent.run.clone().into();
    value["lag_ns"] = agent.lag_ns.into();
    value["cpu"] = agent.cpu.into();
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(id: &str, state: &str, findings: &[(&str, &str)]) -> AgentStatus {
        let finding = |(severity, what): &(&str, &str)| AgentFinding {
            severity: (*severity).to_owned(),
            what: (*what).to_owned(),
            value: "1,024 allowed".to_owned(),
            needed: "9 needed".to_owned(),
            fix: format!("raise {what}"),
        };
        let identity = Identity {
            id: id.to_owned(),
            version: "0.1.0".to_owned(),
            cores: 4,
            memory_bytes: 8 << 30,
            addresses: vec!["10.0.0.7".parse().unwrap()],
            address_count: 3,
            ports: 64_000,
            connections: 1_000_000,
            findings: findings.iter().map(finding).collect(),
            ..Identity::default()
        };
        AgentStatus { identity, state: state.to_owned(), cpu: Some(0.125), ..AgentStatus::default() }
    }

    #[test]
    fn each_agent_has_a_line_and_their_sum_is_last() {
        let busy =
            AgentStatus { run: Some("r1".to_owned()), lag_ns: Some(1_500_000), ..agent("b", "in run", &[]) };
        let text = agents(&[agent("a-long-one", "free", &[("warn", "ports")]), busy]);
        let expected = "\
agent       state      version  cores   memory   cpu     lag   can hold   ports  addresses
a-long-one  free       0.1.0        4  8.0 GiB  12 %       -  1,000,000  64,000  10.0.0.7 and 2 more
b           in run r1  0.1.0        4  8.0 GiB  12 %  1.5 ms  1,000,000  64,000  10.0.0.7 and 2 more
a-long-one: 1 finding; see throng fleet doctor
2 agents, 8 cores, about 2,000,000 connections
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_machine_counts_once() {
        let on = |id: &str, network: &str, host: &str, most: Option<u64>| {
            let mut agent = agent(id, "free", &[]);
            let who = &mut agent.identity;
            (who.network, who.host, who.max_connections) = (network.to_owned(), host.to_owned(), most);
            who.connections = most.unwrap_or(who.connections);
            agent
        };
        let last = |all: &[AgentStatus]| {
            let found = findings(all);
            let [listed, found] = [agents(all), found].map(|text| text.lines().last().unwrap().to_owned());
            assert!(found.starts_with(listed.split(", ").next().unwrap()), "{found}");
            listed
        };
        let (a, b) = (on("a", "boot1 net:[1]", "vm1", None), on("b", "boot1 net:[1]", "vm1", None));
        let two = [a.clone(), b.clone()];
        assert_eq!(last(&two), "2 agents on 1 machine, 4 cores, about 1,000,000 connections");
        let elsewhere = [a.clone(), b, on("c", "boot2 net:[1]", "vm1", None)];
        assert_eq!(last(&elsewhere), "3 agents on 2 machines, 8 cores, about 2,000,000 connections");
        let containers = [on("a", "boot1 net:[1]", "p1", None), on("b", "boot1 net:[2]", "p2", None)];
        assert_eq!(last(&containers), "2 agents on 1 machine, 8 cores, about 2,000,000 connections");
        let capped = |most| on("b", "boot1 net:[1]", "vm1", Some(most));
        let text = "2 agents on 1 machine, 4 cores, about 1,000,000 connections";
        assert_eq!(last(&[a.clone(), capped(100)]), text, "what one may not hold is the other's");
        let text = "2 agents on 1 machine, 4 cores, about 300 connections";
        assert_eq!(last(&[capped(100), capped(200)]), text);
    }

    #[test]
    fn one_agent_is_one() {
        let mut one = agent("a", "free", &[]);
        (one.identity.cores, one.identity.connections) = (1, 1);
        let last = |text: String| text.lines().last().map(str::to_owned);
        assert_eq!(last(agents(&[one.clone()])).as_deref(), Some("1 agent, 1 core, about 1 connection"));
        assert_eq!(last(findings(&[one])).as_deref(), Some("1 agent can hold about 1 connection"));
    }

    #[test]
    fn findings_are_worst_first_and_each_once() {
        let all = [
            agent("a", "free", &[("warn", "ports"), ("refuse", "open files")]),
            agent("b", "free", &[("refuse", "open files")]),
            agent("c", "free", &[]),
        ];
        let expected = "\
no    open files: 1,024 allowed, 9 needed
      raise open files
      on a, b
warn  ports: 1,024 allowed, 9 needed
      raise ports
      on a
ok    c
3 agents can hold about 3,000,000 connections
";
        assert_eq!(findings(&all), expected);
        assert!(is_unfit(&all[1]) && !is_unfit(&all[2]));
    }

    #[test]
    fn the_json_is_flat() {
        let text = json(&[agent("a", "free", &[])]);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["schema"], "throng.fleet/1");
        let agent = &value["agents"][0];
        assert_eq!((agent["id"].as_str(), agent["state"].as_str()), (Some("a"), Some("free")));
        assert_eq!((agent["cores"].as_u64(), agent["run"].is_null()), (Some(4), true));
    }
}
