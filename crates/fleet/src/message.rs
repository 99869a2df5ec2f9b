//! Everything that a coordinator and its agents exchange.
//!
//! There are two channels: *messages* over core NATS, which may be lost, repeated or late, and are repeated by their sender until they
//! are answered; and the *log* of a run, a JetStream subject, which stores what must last.

use std::fmt;

use plan::{Call, Role, Slice, TableHead};
use run::Order;
use samples::{Counts, Tick};
use serde::{Deserialize, Serialize};
use units::Nanos;

/// Version of these messages. An agent serves only a coordinator with the same version.
pub(crate) const PROTOCOL: u32 = 9;

/// Maximum length of a [fingerprint](crate::fingerprint::fingerprint), in bytes: an agent announces that of its run every second.
const LONGEST_FINGERPRINT: usize = 64;

/// Heartbeat interval of coordinator and agents.
pub(crate) const EVERY: Nanos = Nanos::from_secs(1);
/// Retransmission interval of an unanswered message.
pub(crate) const AGAIN: Nanos = Nanos::from_millis(300);
/// Silence after which an agent counts as lost.
pub(crate) const LOST_AFTER: Nanos = Nanos::from_secs(4);
/// Silence of the coordinator after which an agent ends its load. Longer than a restart of the coordinator takes.
pub(crate) const LEASE: Nanos = Nanos::from_secs(10);
/// Time after the end of its lease within which an agent closes its connections. It starts nothing new meanwhile.
pub(crate) const RAMPS_DOWN: Nanos = Nanos::from_secs(3);

/// Subject on which agents announce themselves every second.
pub(crate) const HERE: &str = "throng.here";
/// Subject on which they are asked to announce themselves at once.
pub(crate) const WHO: &str = "throng.who";
/// Subjects of all logs.
pub(crate) const LOGS: &str = "throng.log.>";

/// Subject on which an agent receives messages.
pub(crate) fn to_agent(id: &str) -> String {
    format!("throng.agent.{id}")
}

/// Subject on which the coordinator of a run receives messages.
pub(crate) fn to_run(run: &str) -> String {
    format!("throng.run.{run}")
}

/// Subject of the log of a run.
pub(crate) fn log_of(run: &str) -> String {
    format!("throng.log.{run}")
}

/// Maximum length of an agent's name, in bytes.
pub(crate) const LONGEST_NAME: usize = 64;
/// Maximum length of a run's name, in bytes; throng's own have eight characters.
const LONGEST_RUN: usize = 32;

/// Whether this is a valid name of an agent: letters, digits, `-` and `_`. Names become part of subjects and file names: a `/`, a blank or
/// a wildcard in one would lead elsewhere, and an overlong one ends the connection.
pub(crate) fn is_agent_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=LONGEST_NAME).contains(&text.len()) && text.chars().all(is_plain)
}

/// Whether this is a valid name of a run: digits and small letters.
pub(crate) fn is_run_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_digit() || c.is_ascii_lowercase();
    (1..=LONGEST_RUN).contains(&text.len()) && text.chars().all(is_plain)
}

/// One process of an agent. After a restart, another process of the same agent does not have its part of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Incarnation {
    /// Name of the agent, unique in the fleet.
    pub(crate) id: String,
    /// Random number drawn at its start.
    pub(crate) nonce: u32,
}

/// The announcement of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Here {
    pub(crate) who: Incarnation,
    /// [`PROTOCOL`].
    pub(crate) protocol: u32,
    /// throng's version.
    pub(crate) version: String,
    /// Identifies a network namespace of a host: agents with the same value share ports.
    pub(crate) network: String,
    /// Processors that it may use.
    pub(crate) cores: u32,
    /// Its calibration against throng's own server, if there is one.
    pub(crate) calibrated: Option<Calibrated>,
    /// It accepts no new run.
    pub(crate) is_draining: bool,
    /// The run that it takes part in.
    pub(crate) run: Option<Busy>,
}

impl Here {
    /// Whether its names are valid; a coordinator builds subjects from them.
    pub(crate) fn has_names(&self) -> bool {
        is_agent_name(&self.who.id) && self.run.as_ref().is_none_or(|busy| is_run_name(&busy.run))
    }

    /// A free agent with one processor.
    #[cfg(test)]
    pub(crate) fn free(id: &str) -> Here {
        Here {
            who: Incarnation { id: id.to_owned(), nonce: 1 },
            protocol: PROTOCOL,
            version: String::new(),
            network: String::new(),
            cores: 1,
            calibrated: None,
            is_draining: false,
            run: None,
        }
    }
}

/// The result of an agent's calibration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Calibrated {
    pub(crate) open_per_s: f64,
    pub(crate) requests_per_s: f64,
}

/// The capacity of an agent for a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Can {
    /// Connections that its machine can hold, and what limits them: `memory`, `ports` or `file table`.
    pub(crate) fits: u64,
    pub(crate) limited_by: String,
    /// Limits by its user: further connections, and dials or requests per second; `None`: no limit.
    pub(crate) cap: Option<u64>,
    pub(crate) per_s: Option<f64>,
}

/// The run that an agent takes part in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Busy {
    pub(crate) run: String,
    /// Identifies what the run was made from: a coordinator started again with the same input takes it up.
    pub(crate) fingerprint: String,
    pub(crate) term: u32,
    /// Time since the last message from the coordinator.
    pub(crate) silent: Nanos,
}

/// A message from a coordinator to an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Down {
    pub(crate) run: String,
    /// How many times another coordinator process has taken up the run; the highest term leads.
    pub(crate) term: u32,
    /// When it was sent, by the coordinator's clock. The reply echoes it, which gives the round-trip time.
    pub(crate) sent: Nanos,
    pub(crate) body: Body,
}

impl Down {
    /// Whether its names are valid; an agent builds subjects and file names from them.
    pub(crate) fn has_names(&self) -> bool {
        is_run_name(&self.run)
            && match &self.body {
                Body::Offer(offer) => offer.fingerprint.len() <= LONGEST_FINGERPRINT,
                Body::TakeOver(part) => is_agent_name(&part.of.id),
                Body::Assign(_) | Body::Lead(_) | Body::Rows(_) | Body::Release => true,
            }
    }
}

/// The content of a message to an agent. It is repeated until the reply arrives, and is idempotent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Body {
    Offer(Box<Offer>),
    Assign(Box<Assign>),
    Lead(Lead),
    /// A part of a lost agent.
    TakeOver(Box<TakeOver>),
    /// Values of tables, and of certificate and key files, that a part uses.
    Rows(Rows),
    /// The run no longer needs this agent.
    Release,
}

impl Body {
    /// Whether it renews the lease of an agent under load. Some messages are sent together with a lead, which does.
    pub(crate) fn renews(&self) -> bool {
        match self {
            Body::Lead(lead) => lead.lease != Some(Nanos::ZERO),
            Body::Offer(_) | Body::Assign(_) => true,
            Body::TakeOver(_) | Body::Rows(_) | Body::Release => false,
        }
    }
}

/// A run of a plan, in which an agent is to take part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Offer {
    pub(crate) protocol: u32,
    pub(crate) fingerprint: String,
    /// The flags of the plan, with their values.
    pub(crate) flags: Vec<(String, String)>,
    /// The text of the scenario file, if the target names one.
    pub(crate) scenario: Option<String>,
    /// The tables that the scenario reads, by file name. Agents that use them receive their [values](Rows) later.
    pub(crate) tables: Vec<(String, TableHead)>,
    /// Messages and bodies from files, one for each request of the plan.
    #[serde(default)]
    pub(crate) sent: Vec<Call>,
    /// For a step of a search: the quantity, the load, and the time at full load.
    pub(crate) step: Option<(run::By, u64, Nanos)>,
}

/// An agent's part of the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Assign {
    /// Its slice of each population.
    pub(crate) slices: Vec<Slice>,
    /// Whether it runs the probe too.
    pub(crate) probe: bool,
    /// Its share of the local ports, which agents on the same machine divide.
    pub(crate) tuples: Slice,
    /// Where the local addresses begin.
    pub(crate) salt: u64,
    /// For a part that is taken over: the remaining requests or arrivals of each population with a fixed number of them, which replace
    /// those of the slice. Empty otherwise.
    #[serde(default)]
    pub(crate) left: Vec<Option<u64>>,
}

/// Leads an agent: renews its lease, and repeats the orders that it does not have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Lead {
    /// When the run begins, by the agent's clock.
    pub(crate) begin: Option<Nanos>,
    /// Until when the agent may be under load, by its clock. `None` before the run begins: a full lease from the arrival of the message.
    pub(crate) lease: Option<Nanos>,
    /// The number of the first of these orders; the run's first order is 0.
    pub(crate) from: u32,
    /// Times are relative to the beginning of the run.
    pub(crate) orders: Vec<Order>,
}

/// A part of a lost agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TakeOver {
    /// Counted from 0 for each agent that takes over.
    pub(crate) number: u32,
    pub(crate) of: Incarnation,
    pub(crate) assign: Assign,
}

/// Some of the values that a part uses, in the order of [`plan::Rows`]: of tables, then of certificate and key files. They are secrets,
/// and are sent only to the agent with the part, never to a log.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rows {
    /// The [number](TakeOver::number) of the takeover that they are for; `None`: the agent's original part.
    pub(crate) number: Option<u32>,
    /// The index of the first value.
    pub(crate) from: u64,
    pub(crate) values: Vec<String>,
}

/// Prints the number of values only, since they are secrets.
impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rows { number, from, values } = self;
        write!(f, "Rows {{ number: {number:?}, from: {from}, values: {} }}", values.len())
    }
}

/// A message from an agent to the coordinator of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Up {
    pub(crate) who: Incarnation,
    pub(crate) term: u32,
    /// The [`Down::sent`] of the message that this answers, if any.
    pub(crate) echo: Option<Nanos>,
    /// When it was sent, by the agent's clock.
    pub(crate) at: Nanos,
    pub(crate) report: Report,
}

/// The content of an agent's report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// It takes a part of at most this size.
    Accepted { can: Can },
    /// It takes no part.
    Refused { why: String },
    /// It has this many of the values that its part uses, and waits for the others.
    Lacks { has: u64 },
    /// Its shards are set up, and wait for the beginning.
    Ready(Ready),
    /// Its shards run.
    Running(Running),
    /// It does not take part in this run, or not any more.
    Idle,
}

/// The shards of an agent that is ready.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ready {
    /// The roles of its workers. All its shards with the same role form one worker.
    pub(crate) roles: Vec<Role>,
    /// Connections of its part.
    pub(crate) wanted: u64,
    /// Threads of each worker.
    pub(crate) threads: Vec<u32>,
    /// Processors that it may use.
    #[serde(default)]
    pub(crate) cores: u32,
    /// `uring`, `epoll` or `tun`.
    pub(crate) io: String,
}

/// The state of an agent whose shards run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Running {
    /// When they began, by the agent's clock.
    pub(crate) began: Nanos,
    /// Number of orders received.
    pub(crate) orders: u32,
    /// Number of other agents' parts that it took over, or failed to.
    pub(crate) taken: u32,
    /// Number of values received for the next of these parts, if it waits for any.
    pub(crate) has: Option<u64>,
    /// Entries of the log that the broker has not stored yet.
    pub(crate) unstored: u32,
    /// CPU time used by the agent's process, which may use `cores` processors.
    pub(crate) cpu: Nanos,
    pub(crate) cores: u32,
}

/// An entry in the log of a run, unique by author and sequence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) author: Author,
    /// Counted from 0 for each author.
    pub(crate) sequence: u64,
    pub(crate) record: Record,
}

/// The author of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Author {
    Coordinator { term: u32 },
    Agent(Incarnation),
}

/// The content of an entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Record {
    /// The run begins this long after the entry is stored.
    Began(Box<Began>),
    /// Another coordinator process leads from here on.
    Resumed,
    /// An order, with its number.
    Ordered(u32, Order),
    /// Counts of each of an agent's workers since its previous entry.
    Ticks(Vec<Tick>),
    /// An agent has taken over a part: its later ticks include additional workers.
    TookOver(Box<TookOver>),
    /// The parts of a lost agent are handed to these agents.
    Reassigned(Incarnation, Vec<(Incarnation, Assign)>),
    /// The author's last entry.
    Sealed(Seal),
}

/// The takeover of a part by an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TookOver {
    /// The lost agent.
    pub(crate) of: String,
    /// The shards of the takeover; empty if it failed.
    pub(crate) ready: Ready,
    /// Why it failed; `None` if it succeeded.
    pub(crate) why: Option<String>,
}

/// What another coordinator process must know to take up the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Began {
    pub(crate) seed: u64,
    pub(crate) after: Nanos,
    /// The agents that take part, with their shards, parts, and the possible error of the estimate of their clocks.
    pub(crate) members: Vec<(Incarnation, Ready, Assign, Option<Nanos>)>,
}

/// The end of an agent's part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Seal {
    /// The sums of each worker's ticks, for verification.
    pub(crate) sums: Vec<Sums>,
    /// Why it ended early; `None` if it did not.
    pub(crate) why: Option<String>,
    /// Connections that it closed because its lease had expired.
    #[serde(default)]
    pub(crate) closed_by_lease: u64,
}

/// The sums over the ticks of a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sums {
    counts: Counts,
    faults: u64,
    /// Number of measured latencies and connect times.
    latencies: u64,
    connects: u64,
}

impl Sums {
    pub(crate) fn add(&mut self, tick: &Tick) {
        self.counts += &tick.counts;
        self.faults += tick.faults.iter().map(|(_, n)| n).sum::<u64>();
        self.latencies += tick.latency.count() + tick.ramp_latency.count();
        self.connects += tick.connect.count();
    }

    /// Requests that count towards a fixed number: all that were due.
    pub(crate) fn begun(&self) -> u64 {
        self.counts.due()
    }

    /// Arrivals: connections that were opened, or failed to open.
    pub(crate) fn arrived(&self) -> u64 {
        self.counts.opened + self.counts.failed
    }

    #[cfg(test)]
    pub(crate) fn sent(&self) -> u64 {
        self.counts.sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_nowhere_else() {
        for good in ["r", "ebb01862", &"z".repeat(LONGEST_RUN)] {
            assert!(is_run_name(good) && is_agent_name(good), "{good}");
        }
        for agents_only in ["vm17-3f2a", "web_1", "A", &"x".repeat(LONGEST_NAME)] {
            assert!(is_agent_name(agents_only) && !is_run_name(agents_only), "{agents_only}");
        }
        for bad in
            ["", "/tmp/x/deep/x y", "..", "a/b", "a b", "a.b", "*", ">", "a\r\nPUB", "é", &"x".repeat(65)]
        {
            assert!(!is_agent_name(bad) && !is_run_name(bad), "{bad}");
        }
    }
}
