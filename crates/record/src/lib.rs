//! The record of a run, or of a step of a search: what is taken from its ticks and samples while it lasts, in memory that does not grow. It is
//! stored with the run, and it is all that the judge reads.
//!
//! Each fact has a file: how it is taken, and what it says.

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

/// What ends a run early that does not go on without one of its workers.
pub const LOST_WORKER: &str = "a lost worker";
/// What ends it early where throng itself has failed.
pub const FAILURE: &str = "a failure of throng";

/// A run, measured.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// All that happened, of all populations together.
    pub totals: Tick,
    /// Of each population, in the plan's order.
    pub populations: Vec<PopulationRecord>,
    /// The kernel interface that was driven: `uring`, `epoll`, `tun` or `sim`.
    pub io: Cow<'static, str>,
    /// Shards.
    pub threads: u32,
    /// When the first dial was due; of a run that continues another one, when it began.
    pub started: Nanos,
    /// When the load ended.
    pub ended: Nanos,
    /// After that responses were not waited for as long as the timeout: workers ended before, or were ordered to.
    pub is_cut_short: bool,
    /// How long any population was in its ramp.
    pub ramp: Nanos,
    /// The most connections open at once.
    pub peak: u64,
    /// What ended it early, if anything.
    pub interrupted: Option<Cow<'static, str>>,
    /// The load ended before its time because all connections were lost, and none is dialled again.
    pub is_deserted: bool,
    /// Commands of the user that were carried out.
    pub commands: Vec<UserCommand>,
    /// The probe by connections held.
    pub curve: Curve,
    /// The probe before its load ended.
    pub probe_at_load: ProbeAtLoad,
    /// The target's ends of our connections are not on this host, though its address is this host's.
    pub is_translated: bool,
    /// Requests that ended, by what they may have in common.
    pub shares: Shares,
    /// When connections were lost, or refused.
    pub losses: Losses,
    /// Connections open at the end of the hold, counted at both ends.
    pub both_sides: Option<BothSides>,
    /// Of those, the ones that the target has not accepted, where that can be seen; they are not among those held.
    pub unaccepted: Option<u64>,
    /// Of the unaccepted ones, those of which it is not known whose they are: they are not taken off what any population has held.
    pub unattributed: u64,
    /// Those that exist at throng's end only, where that can be seen; they are not among those held either.
    pub missing: Option<u64>,
    /// How long before that nothing had come from the target on any connection, where that can be seen.
    pub quiet: Option<Nanos>,
    /// Whether the target accepts TLS, if that was tested because of [`Record::is_mute`].
    pub speaks_tls: Option<bool>,
    /// The outcomes of the experiments after the load.
    pub answers: Answers,
    /// The message of ICMP that rejects dials, where one was seen.
    pub rejection: Option<Rejection>,
    /// From how far resets came, where that was seen.
    pub hops: Hops,
    /// What went wrong second by second, and what the target did.
    pub moments: Moments,
    /// Connections that were open when full load began without a lost worker, and those that were wanted.
    pub began_short: Option<(u64, u64)>,
    /// The agents of a fleet.
    pub agents: Vec<AgentSummary>,
    /// What it cost, and what was seen meanwhile; complete once the run is over.
    pub observed: Observed,
}

impl Record {
    /// Of a plan of which nothing was done yet.
    pub fn empty(plan: &Plan) -> Record {
        let curve = Curve::new(plan.places().into());
        Record { io: "sim".into(), ended: Nanos::NEVER, curve, ..Record::default() }
    }

    /// What ends it early, unless something has before.
    pub fn interrupt(&mut self, by: Option<&'static str>) {
        self.interrupted = self.interrupted.take().or(by.map(Into::into));
    }

    /// Not one byte ever came, and connections were closed in reply to what was sent on them.
    pub fn is_mute(&self) -> bool {
        let is_closed = |fault: Fault| {
            matches!(fault.stage, Stage::Exchange | Stage::Handshake)
                && matches!(fault.kind, Kind::Closed | Kind::Reset)
        };
        self.totals.counts.bytes_in == 0 && self.totals.faults.iter().any(|(fault, _)| is_closed(fault))
    }

    /// Takes the outcomes of the experiments.
    pub fn answer(&mut self, answers: Answers) {
        self.speaks_tls = answers.speaks_tls();
        self.answers = answers;
    }

    /// Responses that began and ran into their timeouts, at least: of those that were cut off it is not known whether they had begun.
    pub fn unended(&self) -> u64 {
        let totals = &self.totals;
        let begun = totals.first_byte.count() + totals.ramp_first_byte.count();
        let complete = totals.latency.count() + totals.ramp_latency.count();
        let is_cut = |fault: Fault| fault.stage == Stage::Exchange && fault.kind != Kind::Timeout;
        let cut: u64 = totals.faults.by_kind().filter(|(fault, _)| is_cut(*fault)).map(|(_, n)| n).sum();
        begun.saturating_sub(complete + cut)
    }

    /// Those of a population whose requests all got a response were accepted, only late: they were held. Where others were closed
    /// before, it is these that made room for them, unless the load had served all. The same of those that the target had no end of.
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

    /// Connections that are held, of all populations.
    pub fn held(&self) -> u64 {
        let held: u64 = self.populations.iter().map(|measured| measured.held).sum();
        held.saturating_sub(self.unattributed)
    }

    /// The same, of a run on these agents.
    #[must_use]
    pub fn with_agents(self, agents: Vec<AgentSummary>) -> Record {
        Record { agents, ..self }
    }

    /// What is known of it before the first tick.
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

/// A threshold as sinks are shown it before it is judged.
fn bound(threshold: &Threshold) -> ThresholdBound {
    let Threshold { text, figure, is_share, bound, .. } = threshold;
    ThresholdBound { expr: text.clone(), figure: figure.path.clone(), bound: *bound, is_share: *is_share }
}
