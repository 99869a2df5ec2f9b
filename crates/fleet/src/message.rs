//! Everything that goes between a coordinator and its agents.
//!
//! Two ways: *messages* over core NATS, which may be lost, repeated or late, and are repeated by their sender until they are
//! answered; and the *log* of a run, a JetStream subject, which keeps what must last.

use std::fmt;

use plan::{Call, Role, Slice, TableHead};
use run::Order;
use samples::Tick;
use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::{name, seal::Sums};

/// Of these messages; an agent serves only a coordinator of its own.
pub(crate) const PROTOCOL: u32 = 9;

/// Longer ones are no [fingerprints](crate::fingerprint::fingerprint): an agent announces that of its run each second.
const LONGEST_FINGERPRINT: usize = 64;

/// How often a coordinator and its agents say that they are alive.
pub(crate) const EVERY: Nanos = Nanos::from_secs(1);
/// What has not been answered is sent again after this time.
pub(crate) const AGAIN: Nanos = Nanos::from_millis(300);
/// An agent without a heartbeat for this long is lost.
pub(crate) const LOST_AFTER: Nanos = Nanos::from_secs(4);
/// An agent that has not heard from its coordinator for this long ends its load. Longer than a coordinator takes to start again.
pub(crate) const LEASE: Nanos = Nanos::from_secs(10);
/// From then on it begins nothing new, and has closed its connections after this time.
pub(crate) const RAMPS_DOWN: Nanos = Nanos::from_secs(3);

/// Where agents announce themselves, each second.
pub(crate) const HERE: &str = "throng.here";
/// Where they are asked to do so at once.
pub(crate) const WHO: &str = "throng.who";
/// The subjects of all logs.
pub(crate) const LOGS: &str = "throng.log.>";

/// Where an agent receives messages.
pub(crate) fn to_agent(id: &str) -> String {
    format!("throng.agent.{id}")
}

/// Where the coordinator of a run receives messages.
pub(crate) fn to_run(run: &str) -> String {
    format!("throng.run.{run}")
}

/// Where what must last of a run is kept.
pub(crate) fn log_of(run: &str) -> String {
    format!("throng.log.{run}")
}

/// One process of an agent. A second process of the same agent is not the one that was given a part of a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Incarnation {
    /// The agent, unique in the fleet.
    pub(crate) id: String,
    /// Drawn when it started.
    pub(crate) nonce: u32,
}

/// An agent announces itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Here {
    pub(crate) who: Incarnation,
    /// [`PROTOCOL`].
    pub(crate) protocol: u32,
    /// throng's version.
    pub(crate) version: String,
    /// Agents with the same value share ports: one network namespace of one host.
    pub(crate) network: String,
    /// Processors that it may use.
    pub(crate) cores: u32,
    /// What it could do against throng's own server, if that was measured.
    pub(crate) calibrated: Option<Calibrated>,
    /// It takes no new run.
    pub(crate) is_draining: bool,
    /// The run that it takes part in.
    pub(crate) run: Option<Busy>,
}

impl Here {
    /// Whether the names in it are names: a coordinator makes subjects of them.
    pub(crate) fn has_names(&self) -> bool {
        name::is_agent(&self.who.id) && self.run.as_ref().is_none_or(|busy| name::is_run(&busy.run))
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

/// What an agent's machine could do in a calibration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Calibrated {
    pub(crate) open_per_s: f64,
    pub(crate) requests_per_s: f64,
}

/// What an agent can take of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Can {
    /// Connections that its machine can hold, and what ends that: `memory`, `ports` or `file table`.
    pub(crate) fits: u64,
    pub(crate) limited_by: String,
    /// Connections that its user lets it hold beside those that it has, and dials or requests a second; none: no limit.
    pub(crate) cap: Option<u64>,
    pub(crate) per_s: Option<f64>,
}

/// The run that an agent takes part in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Busy {
    pub(crate) run: String,
    /// Of what the run was made from: a coordinator that is started again with the same takes it up again.
    pub(crate) fingerprint: String,
    pub(crate) term: u32,
    /// How long it has not heard from the coordinator.
    pub(crate) silent: Nanos,
}

/// From a coordinator to an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Down {
    pub(crate) run: String,
    /// How often the run has been taken up by another process of the coordinator: the highest one leads.
    pub(crate) term: u32,
    /// When it was sent, by the coordinator's clock; the reply has it too, which measures the way there and back.
    pub(crate) sent: Nanos,
    pub(crate) body: Body,
}

impl Down {
    /// Whether the names in it are names: an agent makes subjects and files of them.
    pub(crate) fn has_names(&self) -> bool {
        name::is_run(&self.run)
            && match &self.body {
                Body::Offer(offer) => offer.fingerprint.len() <= LONGEST_FINGERPRINT,
                Body::TakeOver(part) => name::is_agent(&part.of.id),
                Body::Assign(_) | Body::Lead(_) | Body::Rows(_) | Body::Release => true,
            }
    }
}

/// What a coordinator says. Each is repeated until its reply arrives, and means the same if it arrives twice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Body {
    Offer(Box<Offer>),
    Assign(Box<Assign>),
    Lead(Lead),
    /// A part of what another agent did, which is lost.
    TakeOver(Box<TakeOver>),
    /// Values of tables that a part uses, and files that secure its connections.
    Rows(Rows),
    /// The run needs this agent no longer.
    Release,
}

impl Body {
    /// Whether it renews the lease of an agent under load. With some a lead comes, which does.
    pub(crate) fn renews(&self) -> bool {
        match self {
            Body::Lead(lead) => lead.lease != Some(Nanos::ZERO),
            Body::Offer(_) | Body::Assign(_) => true,
            Body::TakeOver(_) | Body::Rows(_) | Body::Release => false,
        }
    }
}

/// A run: a plan of which an agent is to have a part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Offer {
    pub(crate) protocol: u32,
    pub(crate) fingerprint: String,
    /// The flags that make the plan, each with its value.
    pub(crate) flags: Vec<(String, String)>,
    /// The text of the scenario file, where the target names one.
    pub(crate) scenario: Option<String>,
    /// The tables that the scenario reads, by the names of their files. Their [values](Rows) follow, to those that use them.
    pub(crate) tables: Vec<(String, TableHead)>,
    /// The messages and bodies that stand in files, one request of the plan after the other.
    #[serde(default)]
    pub(crate) sent: Vec<Call>,
    /// The step of a search, where it is one: what is made larger, how much it is, and for how long.
    pub(crate) step: Option<(run::By, u64, Nanos)>,
}

/// Which part of the plan is an agent's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Assign {
    /// Its slice of each population.
    pub(crate) slices: Vec<Slice>,
    /// Whether the probe is its own, too.
    pub(crate) probe: bool,
    /// Its share of the ports, of which agents on one machine have the same.
    pub(crate) tuples: Slice,
    /// Where the local addresses begin.
    pub(crate) salt: u64,
    /// Where it is taken over: the requests, or arrivals, that are left of each population with a number of them, instead of the
    /// slice's. Empty where none has one, and in a part that is not taken over.
    #[serde(default)]
    pub(crate) left: Vec<Option<u64>>,
}

/// The coordinator leads: renews the agent's lease, and repeats what the agent does not know yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Lead {
    /// When the run begins, by the agent's clock.
    pub(crate) begin: Option<Nanos>,
    /// Until when the agent may be under load, by its clock, unless it hears more; none before the run begins: from when it
    /// arrives, as long as a lease is.
    pub(crate) lease: Option<Nanos>,
    /// The number of the first of these orders, from 0 for the first of the run.
    pub(crate) from: u32,
    /// Times are of the run: from when it began.
    pub(crate) orders: Vec<Order>,
}

/// A part of what a lost agent did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TakeOver {
    /// From 0 for each agent that takes over.
    pub(crate) number: u32,
    pub(crate) of: Incarnation,
    pub(crate) assign: Assign,
}

/// Some of the values that a part uses, in the order of [`plan::Rows`]: of tables, then certificates and keys. They are secrets: they go to the agent that has the part
/// and into no log.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rows {
    /// The number of the part that they are for, from 0 for those that are [taken over](TakeOver::number); none: the agent's own.
    pub(crate) number: Option<u32>,
    /// The place of the first of them.
    pub(crate) from: u64,
    pub(crate) values: Vec<String>,
}

/// Without the values.
impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rows { number, from, values } = self;
        write!(f, "Rows {{ number: {number:?}, from: {from}, values: {} }}", values.len())
    }
}

/// From an agent to the coordinator of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Up {
    pub(crate) who: Incarnation,
    pub(crate) term: u32,
    /// The [`Down::sent`] that this replies to, if it is a reply.
    pub(crate) echo: Option<Nanos>,
    /// When it was sent, by the agent's clock.
    pub(crate) at: Nanos,
    pub(crate) report: Report,
}

/// What an agent reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// It takes a part, of at most this size.
    Accepted { can: Can },
    /// It takes no part.
    Refused { why: String },
    /// It has this many of the values that its part uses, and waits for the others.
    Lacks { has: u64 },
    /// Its shards wait for the beginning.
    Ready(Ready),
    /// Its shards run.
    Running(Running),
    /// It takes part in no such run, or not any more.
    Idle,
}

/// An agent's shards wait for the beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ready {
    /// What its workers do: all its shards with the same role are one worker.
    pub(crate) roles: Vec<Role>,
    /// Connections that are its part.
    pub(crate) wanted: u64,
    /// Threads of each worker.
    pub(crate) threads: Vec<u32>,
    /// Processors that it may use.
    #[serde(default)]
    pub(crate) cores: u32,
    /// `uring` or `epoll`.
    pub(crate) io: String,
}

/// An agent's shards run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Running {
    /// When they began, by the agent's clock.
    pub(crate) began: Nanos,
    /// How many orders it has.
    pub(crate) orders: u32,
    /// How many parts of others it has taken over, or was not able to.
    pub(crate) taken: u32,
    /// How many values it has of those that the next of these parts uses, where it waits for some.
    pub(crate) has: Option<u64>,
    /// Entries of the log that the carrier does not have yet.
    pub(crate) unstored: u32,
    /// CPU time that the agent's process has used, of this many processors.
    pub(crate) cpu: Nanos,
    pub(crate) cores: u32,
}

/// What is kept in the log of a run, once for each author and sequence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) author: Author,
    /// From 0 for each author.
    pub(crate) sequence: u64,
    pub(crate) record: Record,
}

/// Who wrote an entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Author {
    Coordinator { term: u32 },
    Agent(Incarnation),
}

/// What an entry says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Record {
    /// The run begins this long after the entry is stored.
    Began(Box<Began>),
    /// Another process of the coordinator leads from here on.
    Resumed,
    /// The order of this number.
    Ordered(u32, Order),
    /// What each of an agent's workers counted since its entry before.
    Ticks(Vec<Tick>),
    /// An agent has taken over a part: further workers follow in its ticks.
    TookOver(Box<TookOver>),
    /// What a lost agent did is handed to these.
    Reassigned(Incarnation, Vec<(Incarnation, Assign)>),
    /// Nothing follows.
    Sealed(Seal),
}

/// An agent has taken over a part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TookOver {
    /// Whose it was.
    pub(crate) of: String,
    /// With what; with nothing, where it was not able to.
    pub(crate) ready: Ready,
    /// Why it was not.
    pub(crate) why: Option<String>,
}

/// What a coordinator must know to take up a run again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Began {
    pub(crate) seed: u64,
    pub(crate) after: Nanos,
    /// Who takes part, and with what; and by how much what is known of its clock may be wrong.
    pub(crate) members: Vec<(Incarnation, Ready, Assign, Option<Nanos>)>,
}

/// The end of an agent's part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Seal {
    /// What each worker's ticks must add up to.
    pub(crate) sums: Vec<Sums>,
    /// Why it ended before its time, if it did.
    pub(crate) why: Option<String>,
    /// Connections that it closed because its lease had expired.
    #[serde(default)]
    pub(crate) closed_by_lease: u64,
}
