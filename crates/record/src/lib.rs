//! The record of a run, or of one step of a search: facts taken from its ticks and samples while it lasts, in bounded memory. It is stored
//! with the run, and it is all that the judge reads, so that a stored run can be judged again by later rules.
//!
//! Each fact has a module, which says how the fact is taken and what it means.

use std::borrow::Cow;

use plan::{Plan, Threshold};
use samples::{AgentSummary, Fault, Header, Kind, Stage, ThresholdBound, Tick, UserCommand};
use serde::{Deserialize, Serialize};
use units::Nanos;

pub mod accepts;
pub mod answers;
pub mod backlog;
pub mod broadcasts;
pub mod curve;
pub mod ends;
pub mod fill;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
pub mod hops;
pub mod losses;
pub mod moments;
pub mod observed;
mod population;
pub mod probe_at_load;
pub mod rejection;
pub mod rows;
pub mod segments;
pub mod shares;
pub mod signs;
pub mod silences;
pub mod tolerances;

pub use population::{Ended, PopulationRecord};

use answers::Answers;
use curve::Curve;
use ends::BothSides;
use hops::Hops;
use losses::Losses;
use moments::Moments;
use observed::Observed;
use probe_at_load::ProbeAtLoad;
use rejection::Rejection;
use shares::Shares;

/// Reason of the interruption if a run cannot continue after losing a worker.
pub const LOST_WORKER: &str = "a lost worker";
/// Reason of the interruption if throng itself failed.
pub const FAILURE: &str = "a failure of throng";

/// The record of a run.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// All ticks, of all populations together.
    pub totals: Tick,
    /// One record per population, in the plan's order.
    pub populations: Vec<PopulationRecord>,
    /// The I/O backend: `uring`, `epoll`, `tun` or `sim`.
    pub io: Cow<'static, str>,
    /// Number of shards.
    pub threads: u32,
    /// When the first dial was due; for a run that continues another one, when it began.
    pub started: Nanos,
    /// When the load ended.
    pub ended: Nanos,
    /// After the load, responses were not awaited for the whole timeout, because workers ended earlier or were ordered to.
    pub is_cut_short: bool,
    /// How long any population was in its ramp.
    pub ramp: Nanos,
    /// Maximum number of connections open at once.
    pub peak: u64,
    /// What interrupted the run; `None` if nothing did.
    pub interrupted: Option<Cow<'static, str>>,
    /// The load ended early because all connections were lost and none is redialled.
    pub is_deserted: bool,
    /// The user's commands that were carried out.
    pub commands: Vec<UserCommand>,
    /// The probe's figures by number of connections held.
    pub curve: Curve,
    /// The probe's figures up to the end of the load.
    pub probe_at_load: ProbeAtLoad,
    /// The target's ends of the connections are not on this host, although its address is (address translation, as with a published port).
    pub is_translated: bool,
    /// Completed requests, by properties that bad ones may have in common.
    pub shares: Shares,
    /// Losses of connections, and refused dials.
    pub losses: Losses,
    /// Connections open at the end of the hold, counted at both ends.
    pub both_sides: Option<BothSides>,
    /// The part of them that the target's process had not accepted; they do not count as held. `None` if unknown.
    pub unaccepted: Option<u64>,
    /// The part of the unaccepted connections whose population is unknown: it is not subtracted from any population's held connections.
    pub unattributed: u64,
    /// Connections that existed only at throng's end; they do not count as held, either. `None` if unknown.
    pub missing: Option<u64>,
    /// Time without any segment from the target before that count; `None` if unknown.
    pub quiet: Option<Nanos>,
    /// Whether the target accepts TLS; `None` unless that was tested because of [`Record::is_mute`].
    pub speaks_tls: Option<bool>,
    /// The outcomes of the experiments after the load.
    pub answers: Answers,
    /// The ICMP message that rejects dials, if one was seen.
    pub rejection: Option<Rejection>,
    /// The distance that resets came from, if seen.
    pub hops: Hops,
    /// Faults and the target's activity, second by second.
    pub moments: Moments,
    /// Connections open when full load began without a lost worker, and the number wanted.
    pub began_short: Option<(u64, u64)>,
    /// The agents of a fleet; empty without a fleet.
    pub agents: Vec<AgentSummary>,
    /// Samples of the hosts and the costs derived from them; complete when the run has ended.
    pub observed: Observed,
}

impl Record {
    /// The record of a run that has not started.
    pub fn empty(plan: &Plan) -> Record {
        let curve = Curve::new(plan.places().into());
        Record { io: "sim".into(), ended: Nanos::NEVER, curve, ..Record::default() }
    }

    /// Sets the reason of the interruption, unless there is one already.
    pub fn interrupt(&mut self, by: Option<&'static str>) {
        self.interrupted = self.interrupted.take().or(by.map(Into::into));
    }

    /// Whether the target never sent a byte and closed connections in reply to data.
    pub fn is_mute(&self) -> bool {
        let is_closed = |fault: Fault| {
            matches!(fault.stage, Stage::Exchange | Stage::Handshake)
                && matches!(fault.kind, Kind::Closed | Kind::Reset)
        };
        self.totals.counts.bytes_in == 0 && self.totals.faults.iter().any(|(fault, _)| is_closed(fault))
    }

    /// Stores the outcomes of the experiments.
    pub fn answer(&mut self, answers: Answers) {
        self.speaks_tls = answers.speaks_tls();
        self.answers = answers;
    }

    /// Minimum number of responses that began and then timed out. For responses that were cut off it is unknown whether they had begun.
    pub fn unended(&self) -> u64 {
        let totals = &self.totals;
        let begun = totals.first_byte.count() + totals.ramp_first_byte.count();
        let complete = totals.latency.count() + totals.ramp_latency.count();
        let is_cut = |fault: Fault| fault.stage == Stage::Exchange && fault.kind != Kind::Timeout;
        let cut: u64 = totals.faults.by_kind().filter(|(fault, _)| is_cut(*fault)).map(|(_, n)| n).sum();
        begun.saturating_sub(complete + cut)
    }

    /// Counts unaccepted and missing connections as held if all requests of their population were answered: the target did accept them,
    /// only late. If connections were closed at the end to make room for others, that explains the responses instead, unless every
    /// connection had been served before.
    pub fn take_back_accepted(&mut self) {
        if self.populations.iter().all(PopulationRecord::is_all_served) {
            let accepted = std::mem::take(&mut self.unattributed);
            self.unaccepted = self.unaccepted.map(|all| all - accepted);
        }
        for measured in self.populations.iter_mut().filter(|measured| measured.is_all_served()) {
            let accepted = std::mem::take(&mut measured.unaccepted);
            let completed = std::mem::take(&mut measured.missing);
            measured.held += accepted + completed;
            self.unaccepted = self.unaccepted.map(|all| all - accepted);
            self.missing = self.missing.map(|all| all - completed);
        }
    }

    /// Connections held, of all populations.
    pub fn held(&self) -> u64 {
        let held: u64 = self.populations.iter().map(|measured| measured.held).sum();
        held.saturating_sub(self.unattributed)
    }

    /// The record of a run on these agents.
    #[must_use]
    pub fn with_agents(self, agents: Vec<AgentSummary>) -> Record {
        Record { agents, ..self }
    }

    /// The header that sinks receive before the first tick.
    pub fn header(&self, plan: &Plan) -> Header {
        let name = |population: u16| &plan.populations[usize::from(population)].name;
        let steps = plan.steps();
        Header {
            target: plan.text.clone(),
            connections: self.populations.iter().map(|measured| measured.wanted).sum(),
            hold_s: plan.hold().map(Nanos::secs_f64),
            ramp_deadline_s: plan
                .stages
                .iter()
                .filter_map(|stage| plan.ramp_deadline(stage))
                .max()
                .map(Nanos::secs_f64),
            seed: plan.seed,
            io: self.io.clone(),
            threads: self.threads,
            populations: plan.populations.iter().map(|population| population.name.clone()).collect(),
            steps: steps.map(|(of, step)| format!("{}.{step}", name(of))).collect(),
            destinations: rows::names(plan),
            agents: Vec::new(),
            thresholds: plan.thresholds.iter().map(bound).collect(),
        }
    }
}

/// A threshold as sinks show it before it is judged.
fn bound(threshold: &Threshold) -> ThresholdBound {
    let Threshold { text, figure, is_share, bound, .. } = threshold;
    ThresholdBound { expr: text.clone(), figure: figure.path(), bound: *bound, is_share: *is_share }
}
