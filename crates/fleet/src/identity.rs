//! The identity of an agent: what a coordinator, and `throng fleet ls`, know of it before it takes part in a run.

use std::net::IpAddr;

use host::{Finding, Need, Root, Severity};
use plan::{Flags, Plan, capacity};
use samples::Calibration;
use serde::{Deserialize, Serialize};
use units::ParseError;

use crate::message::{Calibrated, Here, Incarnation, LONGEST_NAME, PROTOCOL, is_agent_name};

/// Maximum number of findings in a report; there are fewer kinds of checks.
const MOST_FINDINGS: usize = 16;
/// Maximum number of addresses listed; all are counted.
const MOST_ADDRESSES: usize = 64;
/// Maximum length of a finding's text, in characters; longer ones are cut.
const LONGEST_TEXT: usize = 300;
/// A target for checks that dials nothing: an address for documentation (RFC 5737), so that only one end is on this machine.
const ELSEWHERE: &str = "tcp://192.0.2.1:9";
/// The same if there is no route to that address.
const HERE: &str = "tcp://127.0.0.1:9";

/// Creates the plan from flags on this machine; `None` if it is not possible.
pub type LocalPlanner<'a> = &'a dyn Fn(&Flags) -> Option<Plan>;

/// The identity that an agent announces. Contains no secrets, and is at most about 10 KB.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Identity {
    /// Its name, unique in the fleet and unchanged by a restart: letters, digits, `-` and `_`.
    pub id: String,
    /// A random number, new after each start.
    pub incarnation: u32,
    /// throng's version.
    pub version: String,
    /// Version of the messages between coordinator and agents.
    pub protocol: u32,
    /// The name of its machine.
    pub host: String,
    /// Identifies a network namespace of a machine: agents with the same value share ports.
    pub network: String,
    /// Processors that it may use.
    pub cores: u32,
    /// Memory that it may use, in bytes.
    pub memory_bytes: u64,
    /// The part of it that was available at its start, in bytes.
    pub memory_available_bytes: u64,
    /// Addresses that it can dial from, without loopback if there are others; at most 64.
    pub addresses: Vec<IpAddr>,
    /// Number of these addresses, including those beyond 64.
    pub address_count: u32,
    /// Ports that one of its addresses may use for one destination.
    pub ports: u64,
    /// Limit on concurrent connections by `--max-connections`; `None`: no limit.
    pub max_connections: Option<u64>,
    /// Approximate number of connections to another machine that it can hold, within its limit.
    pub connections: u64,
    /// What limits them: `memory`, `ports`, `file table` or `--max-connections`; empty if nothing is known to.
    pub limited_by: String,
    /// Findings that may impair or prevent that number, worst first.
    pub findings: Vec<AgentFinding>,
    /// Its calibration against throng's own server, if there is one.
    pub calibration: Option<Calibration>,
}

/// A limit of an agent's machine that is insufficient.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentFinding {
    /// `refuse`: the run is not possible; `warn`: it may suffer.
    pub severity: String,
    /// The limit's name: `open files`.
    pub what: String,
    /// The present value: `65,536 allowed`.
    pub value: String,
    /// The needed value: `1,000,032 needed`.
    pub needed: String,
    /// A command line that fixes it; empty if there is none.
    pub fix: String,
}

impl Identity {
    /// The identity of an agent on this machine, with a new incarnation. Dials nothing.
    ///
    /// `max_connections`: its cap, if it has one. `planner`: creates a plan from flags on this machine.
    pub fn of_this_machine(
        root: &Root,
        id: String,
        version: &str,
        cores: u32,
        calibration: Option<Calibration>,
        max_connections: Option<u64>,
        planner: LocalPlanner,
    ) -> Identity {
        let memory = host::memory(root).ok();
        let addresses = source_addresses(root);
        let facts = host::port_facts(root, &run::listeners(root));
        let mut identity = Identity {
            id,
            incarnation: units::system_random() as u32,
            version: version.to_owned(),
            protocol: PROTOCOL,
            host: host::host_name(root),
            network: host::network_id(root),
            cores,
            memory_bytes: memory.map_or(0, |memory| memory.total),
            memory_available_bytes: memory.map_or(0, |memory| memory.available),
            address_count: addresses.len() as u32,
            addresses: addresses.into_iter().take(MOST_ADDRESSES).collect(),
            ports: capacity(1, 1, &facts),
            max_connections,
            calibration,
            ..Identity::default()
        };
        identity.examine(root, planner);
        identity
    }

    /// Updates the capacity and the findings.
    pub fn examine(&mut self, root: &Root, planner: LocalPlanner) {
        let need = |target: &str| run::need(&planner(&Flags::new(target))?, root).ok();
        let Some(need) = need(ELSEWHERE).or_else(|| need(HERE)) else { return };
        let need = Need { target: None, listeners: Vec::new(), ..need };
        // Ports in TIME_WAIT are a finding, and do not reduce the capacity.
        let capacity = host::capacity_after_time_wait(root, &need);
        (self.connections, self.limited_by) = match (capacity.connections, self.max_connections) {
            (connections, Some(most)) if most <= connections => (most, "--max-connections".to_owned()),
            (u64::MAX, _) => (0, String::new()),
            (connections, _) => (two_digits(connections), capacity.limited_by.to_owned()),
        };
        let need = need.with_connections(self.connections.clamp(1, u32::MAX.into()));
        let findings = host::preflight(root, &need);
        self.findings = findings.into_iter().take(MOST_FINDINGS).map(AgentFinding::from).collect();
    }

    /// Identifies its machine: equal for agents on the same machine. An agent that does not know it uses its own name.
    pub fn machine(&self) -> &str {
        let boot = self.network.split(' ').next().filter(|boot| !boot.is_empty());
        boot.unwrap_or(&self.id)
    }

    /// The part of the identity that an agent announces every second.
    pub(crate) fn here(&self) -> Here {
        Here {
            who: Incarnation { id: self.id.clone(), nonce: self.incarnation },
            protocol: self.protocol,
            version: self.version.clone(),
            network: self.network.clone(),
            cores: self.cores,
            calibrated: self.calibrated(),
            is_draining: false,
            run: None,
        }
    }

    /// The rates of its calibration, if it has one.
    pub(crate) fn calibrated(&self) -> Option<Calibrated> {
        let calibration = self.calibration.as_ref()?;
        let (open_per_s, requests_per_s) = (calibration.open_per_s.value, calibration.requests_per_s.value);
        Some(Calibrated { open_per_s, requests_per_s })
    }
}

impl From<Finding> for AgentFinding {
    fn from(finding: Finding) -> AgentFinding {
        let severity = if finding.severity == Severity::Refuse { "refuse" } else { "warn" };
        let cut = |text: String| text.chars().take(LONGEST_TEXT).collect();
        AgentFinding {
            severity: severity.to_owned(),
            what: finding.what.to_owned(),
            value: cut(finding.value),
            needed: cut(finding.needed),
            fix: cut(finding.fix),
        }
    }
}

/// Checks the name of an agent, which becomes part of a NATS subject.
///
/// # Errors
/// It has other characters, none, or too many.
pub fn agent_name(text: &str) -> Result<String, ParseError> {
    if is_agent_name(text) {
        return Ok(text.to_owned());
    }
    let (longest, plain) = (LONGEST_NAME, plain_name(text));
    Err(ParseError::new(text, "a name", format!("up to {longest} letters, digits, - and _: {plain}")))
}

/// A new name for an agent of this machine: `vm17-3f2a9c01`.
pub fn new_agent_name(root: &Root) -> String {
    format!("{}-{:08x}", host_agent_name(root), units::system_random() as u32)
}

/// The name of this machine's host, restricted to the characters of a name: `vm17`.
pub fn host_agent_name(root: &Root) -> String {
    plain_name(&host::host_name(root))
}

/// Whether this is a [name](new_agent_name) of this machine.
pub fn is_agent_name_of(root: &Root, name: &str) -> bool {
    let of_host = name.rsplit_once('-').is_some_and(|(host, _)| host == host_agent_name(root));
    of_host && agent_name(name).is_ok()
}

/// The text without characters that a name must not have, and shorter than the maximum.
fn plain_name(text: &str) -> String {
    let label = text.split('.').next().unwrap_or_default();
    let plain: String = label.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(32).collect();
    if plain.is_empty() { "agent".to_owned() } else { plain }
}

/// The first two digits only: available memory varies between two readings.
fn two_digits(connections: u64) -> u64 {
    let unit = 10u64.pow(connections.checked_ilog10().unwrap_or(0).saturating_sub(1));
    connections / unit * unit
}

fn source_addresses(root: &Root) -> Vec<IpAddr> {
    let all = host::local_addresses(root);
    // A link-local address is useless without the name of its link.
    let is_of_link = |ip: &IpAddr| matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
    let others: Vec<_> = all.iter().copied().filter(|ip| !ip.is_loopback() && !is_of_link(ip)).collect();
    if others.is_empty() { all } else { others }
}

#[cfg(test)]
mod tests {
    use plan::Environment;

    use super::*;

    fn planned(flags: &Flags) -> Option<Plan> {
        let resolve = |_: &str| Err("no names here".to_owned());
        plan::from_flags(flags, &Environment { cores: 2, seed: 1, resolve: &resolve }).ok()
    }

    fn identity() -> Identity {
        capped(None)
    }

    fn capped(max_connections: Option<u64>) -> Identity {
        let id = "a-1".to_owned();
        Identity::of_this_machine(&Root::real(), id, "0.1.0", 2, None, max_connections, &planned)
    }

    #[test]
    fn a_restarted_agent_is_the_same_in_another_incarnation() {
        let (one, other) = (identity(), identity());
        assert_ne!(one.incarnation, other.incarnation);
        assert!(one.machine() == other.machine() && one.machine() != one.id, "{one:?}");
        assert_eq!((one.id, one.network, one.protocol), (other.id, other.network, PROTOCOL));
    }

    #[test]
    fn coordinators_learn_of_a_calibration() {
        let measured = |value| samples::Measurement { value, ..samples::Measurement::default() };
        let (open_per_s, requests_per_s) = (measured(30_000.0), measured(90_000.0));
        let calibration = Calibration { open_per_s, requests_per_s, ..Calibration::default() };
        let here = Identity { calibration: Some(calibration), ..identity() }.here();
        assert_eq!(here.calibrated, Some(Calibrated { open_per_s: 30_000.0, requests_per_s: 90_000.0 }));
        assert_eq!(Identity { calibration: None, ..identity() }.here().calibrated, None);
    }

    #[test]
    fn this_machine_has_memory_addresses_and_ports() {
        let here = identity();
        assert!(here.memory_bytes >= here.memory_available_bytes && here.memory_available_bytes > 0);
        assert!(!here.addresses.is_empty() && here.address_count as usize >= here.addresses.len());
        assert!(here.addresses.iter().all(|ip| host::is_local(&Root::real(), *ip)), "{:?}", here.addresses);
        assert!((10_000..=65_535).contains(&here.ports), "{}", here.ports);
        assert!(here.connections > 0 && !here.limited_by.is_empty(), "{here:?}");
    }

    #[test]
    fn an_agent_can_hold_no_more_than_it_may() {
        let held = |here: &Identity| (here.connections, here.limited_by.clone());
        let mut here = capped(Some(37));
        assert_eq!((held(&here), here.max_connections), ((37, "--max-connections".to_owned()), Some(37)));
        here.examine(&Root::real(), &planned);
        assert_eq!(held(&here), (37, "--max-connections".to_owned()));
        let free = capped(Some(u64::MAX - 1));
        assert!(free.connections > 37 && free.limited_by != "--max-connections", "{free:?}");
    }

    #[test]
    fn ports_in_time_wait_are_a_finding_and_no_less_capacity() {
        let folder = std::env::temp_dir().join(format!("throng-identity-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("proc/net")).unwrap();
        std::fs::write(folder.join("proc/net/sockstat"), "TCP: inuse 4 orphan 0 tw 60000 alloc 4 mem 0\n")
            .unwrap();
        let here =
            Identity::of_this_machine(&Root::at(&folder), "a".to_owned(), "0.1.0", 2, None, None, &planned);
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(here.ports >= 10_000, "{here:?}");
        assert_eq!((here.connections, &*here.limited_by), (two_digits(here.ports), "ports"));
        let ports: Vec<_> = here.findings.iter().filter(|finding| finding.what == "ports").collect();
        assert!(
            matches!(ports[..], [warned] if warned.severity == "warn" && warned.value.contains("TIME_WAIT"))
        );
    }

    #[test]
    fn findings_are_bounded_and_have_the_fix() {
        let finding = Finding {
            what: "open files",
            value: "1,024 allowed".to_owned(),
            needed: "9".repeat(1000),
            fix: "ulimit -n 1048576".to_owned(),
            severity: Severity::Refuse,
            repairs: Vec::new(),
        };
        let told = AgentFinding::from(finding);
        assert_eq!((told.severity.as_str(), told.needed.len()), ("refuse", LONGEST_TEXT));
        assert_eq!(told.fix, "ulimit -n 1048576");
        let troubles = ["refuse", "warn"];
        assert!(identity().findings.iter().all(|finding| troubles.contains(&finding.severity.as_str())));
    }

    #[test]
    fn an_announcement_is_small_and_read_by_other_versions() {
        let here = identity();
        let text = serde_json::to_string(&here).unwrap();
        assert!(text.len() < 16_384, "{} bytes", text.len());
        assert_eq!(serde_json::from_str::<Identity>(&text).unwrap(), here);
        let other: Identity = serde_json::from_str(r#"{"id":"b","protocol":9,"new":{}}"#).unwrap();
        assert_eq!((other.id.as_str(), other.protocol, other.cores), ("b", 9, 0));
    }

    #[test]
    fn a_name_is_part_of_a_subject() {
        for name in ["a", "vm17-3f2a", "web_1", &"x".repeat(64)] {
            assert_eq!(agent_name(name).as_deref(), Ok(name));
        }
        for (wrong, use_) in [
            ("", ": agent"),
            ("vm17.example.org", ": vm17"),
            ("a b", ": ab"),
            (">", ": agent"),
            ("*", ": agent"),
        ] {
            let why = agent_name(wrong).unwrap_err();
            let why = why.to_string();
            assert!(why.contains("is not a name; use up to 64") && why.ends_with(use_), "{wrong}: {why}");
        }
        assert!(agent_name(&"x".repeat(65)).is_err());
        let (one, other) = (new_agent_name(&Root::real()), new_agent_name(&Root::real()));
        assert!(one != other && agent_name(&one).is_ok(), "{one} {other}");
        let is_own = |name: &str| is_agent_name_of(&Root::real(), name);
        assert!(is_own(&one) && !is_own("elsewhere-0123abcd") && !is_own(""));
    }
}
