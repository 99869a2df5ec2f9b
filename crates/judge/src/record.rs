//! A run, or a step of a search, measured.

use std::{borrow::Cow, collections::BTreeSet};

use plan::{Plan, Population, Threshold};
use samples::{
    AgentSummary, Counts, Fault, Header, Kind, Latency, Phase, Stage, ThresholdBound, Tick, UserCommand,
};
use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::{
    answers::Answers, backlog::Backlog, broadcasts::Broadcasts, curve::Curve, destinations, ends::BothSides,
    hops::Hops, in_common::Shares, losses::Losses, moments::Moments, observed::Observed,
    probe_at_load::ProbeAtLoad, rejection::Rejection, silences::Silences,
};

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
            destinations: destinations::names(plan),
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

/// How the load of a population ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// When its last first dial was decided.
    pub ramped_at: Nanos,
    /// When it ended in its shards.
    pub own: Nanos,
    /// The time at full load until it was last moved, and when its full load began after that.
    pub holding: Nanos,
    /// As above.
    pub hold_from: Nanos,
    /// How long its ramps took.
    pub ramping: Nanos,
}

/// The record of one population.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PopulationRecord {
    /// Up to the last line.
    pub totals: Tick,
    /// Since then.
    pub line: Tick,
    /// Times without responses.
    pub silences: Silences,
    /// Of those that come and go, and of requests by a rate.
    pub(crate) backlog: Backlog,
    /// Of no use once the load has ended.
    #[serde(skip)]
    pub(crate) broadcasts: Broadcasts,
    /// Of those that are open, the ones that were opened so lately that no broadcast counts for them.
    pub fresh: u64,
    /// The maximum of planned connections.
    pub wanted: u64,
    /// Connections open now, and the most that ever were.
    pub open: u64,
    /// As above: the most.
    pub peak: u64,
    /// Open at the end of the last stage with that maximum, or at the end of a run in its middle.
    pub held: u64,
    /// Connections not counted there, because only the kernel had accepted them.
    pub unaccepted: u64,
    /// The same, because they existed at throng's end only.
    pub missing: u64,
    /// Whether those were counted.
    pub is_kept: bool,
    /// Closed with an announcement and not open again, at that time.
    pub disconnected: u64,
    /// Of a step of a search, those that the steps before have left so.
    pub to_redial_before: i64,
    /// Lost after the end of the load.
    pub dropped_in_drain: u64,
    /// Of workers that were lost, those that they had by their last reports.
    pub lost: u64,
    /// Requests due on such workers, of which no outcome was reported.
    pub lost_requests: u64,
    /// What its adaptive ramp opened in whole seconds in which SYNs were lost, and their time.
    pub accepted: (u64, Nanos),
    /// How long its ramps took, and how long it was at full load.
    pub ramp: Nanos,
    /// As above: at full load.
    pub at_load: Nanos,
    /// When it started to dial; none before.
    pub began: Option<Nanos>,
    /// The end of its last tick in which it did anything or held a connection.
    pub last_seen: Nanos,
    /// The time between the two, or to the end of full load.
    pub elapsed: Nanos,
    /// Time that requests were under way at full load, and that full load lasted, of all shards together.
    pub waiting_ns: u128,
    /// As above: the time that full load lasted.
    pub loaded_ns: u128,
    /// Workers: those on agents are more than one thread each.
    pub shards: u32,
    /// Threads of those workers.
    pub threads: u32,
}

impl PopulationRecord {
    /// For a population that has not started, in this many shards with ticks of this length.
    pub fn of(plan: &Plan, nth: u16, shards: u32, period: Nanos) -> PopulationRecord {
        let population = &plan.populations[usize::from(nth)];
        // Without a total: those that will have come.
        let wanted = plan.connections(nth);
        let broadcasts = Broadcasts::of(population);
        let silences = Silences::new(period);
        let backlog = Backlog::of(population.load, period);
        PopulationRecord { wanted, shards, silences, backlog, broadcasts, ..PopulationRecord::default() }
    }

    /// Takes a tick of one of its shards, which had `before` connections open, of which `fresh` were opened lately; all have reported until
    /// `complete`, and full load began at `hold_from`. What it counts is not in the line yet.
    pub fn take(&mut self, tick: &Tick, (before, fresh): (u64, u64), complete: Nanos, hold_from: Nanos) {
        self.silences.take(tick, complete);
        self.backlog.take(tick);
        self.open = self.open + tick.open - before;
        self.fresh = self.fresh + tick.pushes.fresh - fresh;
        self.broadcasts.take(tick, self.open.saturating_sub(self.fresh));
        self.peak = self.peak.max(self.open + tick.most_open.saturating_sub(tick.open));
        if !tick.is_idle() {
            self.last_seen = self.last_seen.max(tick.until);
        }
        if tick.phase == Phase::Hold {
            let at_load = tick.until.since(tick.from.max(hold_from));
            self.waiting_ns += u128::from(tick.waiting) * u128::from(at_load.0);
            self.loaded_ns += u128::from(at_load.0);
        }
    }

    /// Ends a line; the next one begins then.
    pub fn end_line(&mut self, until: Nanos) -> Tick {
        self.broadcasts.settle(until, &mut self.line);
        let mut line = std::mem::replace(&mut self.line, Tick::starting(until));
        // The run's record has it: nothing of it is shown.
        line.breakdown = Default::default();
        self.totals.extend(&line);
        line
    }

    /// The load has ended in all of its shards: what is known of broadcasts by then.
    pub fn end_broadcasts(&mut self, ended: Nanos) {
        self.broadcasts.end(ended, &mut self.line);
    }

    /// Of all that came so far.
    pub fn sum(&self, of: impl Fn(&Counts) -> u64) -> u64 {
        of(&self.totals.counts) + of(&self.line.counts)
    }

    /// Closed with an announcement, or after their calls, and not open again so far.
    pub fn to_redial(&self) -> u64 {
        let closed = self.to_redial_before + self.sum(|counts| counts.closed + counts.left) as i64;
        (closed - self.sum(|counts| counts.redialled) as i64).max(0).unsigned_abs()
    }

    /// Records how many are held and how many are to be dialled again, at a time that counts.
    pub fn keep_held(&mut self, held: u64, disconnected: u64) {
        (self.held, self.disconnected) = (held, disconnected);
        self.is_kept = true;
    }

    /// Its load has ended.
    pub fn end(&mut self, population: &Population, ended: Ended) {
        let Ended { ramped_at, own, holding, hold_from, ramping } = ended;
        self.at_load = holding + own.since(hold_from);
        self.ramp = match population.comes_and_goes() {
            true => holding + ramped_at.min(own).since(hold_from),
            false => ramping,
        };
        self.elapsed = self.last_seen.min(own).since(self.began.unwrap_or(Nanos::NEVER));
        self.count_arrivals(population);
    }

    /// Of connections that arrive without a number, those that were due were wanted. Dials may be decided after the end of the load.
    pub fn count_arrivals(&mut self, population: &Population) {
        if population.load.wanted().is_none() {
            self.wanted = self.arrivals_due();
        }
    }

    /// Of a number that was to be sent, what never became due is due now, and missed.
    pub fn count_never_due(&mut self, number: u64) {
        let never_due = number.saturating_sub(self.sum(|counts| counts.due()));
        let ticks = [&self.totals, &self.line];
        let is_seen = |times: [&Latency; 2]| times.iter().any(|times| !times.is_empty());
        let has_first_bytes = ticks.iter().any(|tick| is_seen([&tick.first_byte, &tick.ramp_first_byte]));
        let all = ticks.iter().flat_map(|tick| [&tick.steps, &tick.ramp_steps]);
        let seen = all.flat_map(|steps| steps.iter().enumerate().filter(|(_, times)| !times.is_empty()));
        let steps: BTreeSet<usize> = seen.map(|(step, _)| step).collect();
        self.line.never_due(never_due, has_first_bytes, &Vec::from_iter(steps));
    }

    /// The run is over: each request that was due has an account. What was due on workers that were `lost`, and has none, is lost.
    pub fn close_books(&mut self, lost: bool) {
        let Tick { counts, imbalance, .. } = &mut self.totals;
        let unknown = counts.due.abs_diff(counts.settled());
        *if lost { &mut self.lost_requests } else { &mut imbalance.due } += unknown;
    }

    /// Connections that arrived, successfully or not, and those that throng should have dialled.
    pub fn arrivals_due(&self) -> u64 {
        self.sum(|counts| counts.opened + counts.failed + counts.given_up + counts.undialled)
    }

    /// Connections opened so far that had no response.
    pub fn unserved(&self) -> u64 {
        self.sum(|counts| counts.opened).saturating_sub(self.totals.served + self.line.served)
    }

    /// All of its requests had a response, and those for which connections were closed at the end had one before.
    fn is_all_served(&self) -> bool {
        let (counts, served) = (&self.totals.counts, self.totals.served);
        let is_own = counts.ended_after == 0 || served >= counts.opened;
        is_own && counts.sent > 0 && counts.answered == counts.sent()
    }

    /// Mean of the requests under way at full load.
    pub fn under_way(&self) -> f64 {
        let each_ns = self.loaded_ns as f64 / f64::from(self.shards.max(1));
        if self.loaded_ns == 0 { 0.0 } else { self.waiting_ns as f64 / each_ns }
    }
}
