//! Experiments: where two causes look alike in the evidence from the load, throng tests the target after the load. [`PAIRS`] lists the
//! pairs of causes that each experiment distinguishes, [`asks`] selects the experiments whose pair is undecided after a run, and
//! [`answers`](record::answers) holds the outcomes. Pure: `run` performs the experiments.

use plan::Plan;
use samples::{Cause, Certainty, FaultCount, Kind, Limit, Side, Stage, Summary, Verdict};
use units::Nanos;

use crate::evidence::Pattern;
use record::{
    Record,
    answers::Experiment::{
        self, Alone, Busy, Half, OtherAddress, OtherSource, Pause, Silent, SmallSegments, Tls,
    },
    tolerances::CONFIGURED as SET,
};

/// Maximum time for all experiments of a run together.
pub const MOST: Nanos = Nanos::from_secs(10);
/// Pause before a dial that tests for a rate limit; most rate limits are per second.
pub const PAUSE: Nanos = Nanos::from_secs(1);
/// How long one more user waits for a connection and a response: longer than the retransmission of a SYN takes.
const USER: Nanos = Nanos::from_millis(1_500);
/// The same where responses are slow: the time for all of them.
const SLOW_USER: Nanos = Nanos::from_millis(2_500);
/// Time to start and stop one user.
const OVERHEAD: Nanos = Nanos::from_millis(400);
/// Factor between the time for which a connection is watched and the time after which others were closed: that time is known to a tenth,
/// and servers check their timers periodically.
const LONGER: f64 = 1.3;
/// How often a busy connection is used in that time.
const USES: u64 = 4;

/// Two causes that an experiment distinguishes.
#[derive(Debug)]
pub struct Pair {
    /// The experiment.
    pub experiment: Experiment,
    /// A cause, and the outcome that indicates it.
    pub one: (&'static str, &'static str),
    /// The other cause, and the outcome that indicates that one.
    pub other: (&'static str, &'static str),
    /// Whether the run leaves it undecided which of the two it is.
    is_open: fn(&Run) -> bool,
}

/// All pairs, in the order in which experiments are performed. A test compares the table in `docs/reference/experiments.md` with this one.
pub const PAIRS: &[Pair] = &[
    Pair {
        experiment: Tls,
        one: ("a server of TLS", "a record of TLS"),
        other: ("a server that closes everything", "none"),
        is_open: |run| run.record.is_mute(),
    },
    Pair {
        experiment: Pause,
        one: ("a limit by rate (or trouble that has passed)", "served"),
        other: ("a limit by number (or lasting trouble)", "not served"),
        is_open: |run| run.turned_away() || run.lost(),
    },
    Pair {
        experiment: OtherSource,
        one: ("a limit for each source address", "served"),
        other: ("a limit for all together", "not served"),
        is_open: |run| run.turned_away(),
    },
    Pair {
        experiment: OtherAddress,
        one: ("this address of the target, or the path to it", "served"),
        other: ("the target as a whole", "not served"),
        is_open: |run| run.turned_away(),
    },
    Pair {
        experiment: Half,
        one: ("a full target", "served"),
        other: ("a broken target", "not served"),
        is_open: |run| run.turned_away(),
    },
    Pair {
        experiment: SmallSegments,
        one: ("a path that drops large packets", "served"),
        other: ("a target that does not respond", "not served"),
        is_open: |run| run.is_far() && run.has_no_response(),
    },
    Pair {
        experiment: Alone,
        one: ("responses that are slow under load", "faster, less than half the load's median"),
        other: ("responses that are always slow", "as slow, or none"),
        is_open: |run| run.is_slow(),
    },
    Pair {
        experiment: Silent,
        one: ("a limit on the age of connections", "closed after the same time"),
        other: ("a limit on the requests of each", "open for longer"),
        is_open: |run| run.age_or_requests().is_some(),
    },
    Pair {
        experiment: Silent,
        one: ("an idle timeout", "closed after the same time"),
        other: ("room made for new connections", "open for longer"),
        is_open: |run| run.pattern.evicted.is_some_and(|time| time >= SET),
    },
    Pair {
        experiment: Busy,
        one: ("a limit on the age of connections", "closed after the same time"),
        other: ("an idle timeout", "open for longer"),
        is_open: |run| run.age_or_silence().is_some(),
    },
    Pair {
        experiment: Busy,
        one: ("a limit on the age of connections", "closed after the same time"),
        other: ("something that happened once", "open for longer"),
        is_open: |run| run.age_or_moment().is_some(),
    },
];

/// Causes that leave undecided how connections are turned away: correlations, and limits of unknown scope.
const OPEN: [Cause; 11] = [
    Cause::AcceptQueue,
    Cause::Closed,
    Cause::ConnectionLimit,
    Cause::NoSynAck,
    Cause::Refused,
    Cause::SlowAccept,
    Cause::SynLoss,
    Cause::Timeout,
    Cause::Unacknowledged,
    Cause::Unknown,
    Cause::WrongAnswer,
];

/// Statuses of servers that turn requests away: 429 Too Many Requests, and those of gateways without a backend.
const AWAY: [u16; 4] = [429, 502, 503, 504];

/// A run that has ended, with its preliminary judgement.
struct Run<'a> {
    plan: &'a Plan,
    record: &'a Record,
    summary: &'a Summary,
    pattern: Pattern,
}

/// An experiment to perform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The experiment.
    pub experiment: Experiment,
    /// Index in [`PAIRS`] of the causes to distinguish.
    pub pair: usize,
    /// The population whose behaviour the additional user has.
    pub population: u16,
    /// How long to wait for the additional user, or how long to watch the connection.
    pub time: Nanos,
}

/// The experiments that distinguish what is undecided after a run, in the order in which they are performed. None if the run passed, was
/// interrupted or is invalid, and none on a fleet, as the coordinator's path to the target differs from the agents'; there, and in steps of
/// a search, only TLS is tested ([`asks_for_tls`]).
pub fn asks(plan: &Plan, record: &Record, summary: &Summary) -> Vec<Ask> {
    if asks_for_tls(record) {
        // The target never sent a byte: nothing else matters before that is explained.
        return vec![Ask { experiment: Tls, pair: 0, population: 0, time: SLOW_USER }];
    }
    if summary.verdict != Verdict::Fail || !record.agents.is_empty() {
        return Vec::new();
    }
    let pattern = Pattern::of(record, is_by_turns(plan));
    let run = Run { plan, record, summary, pattern };
    let open = (0..).zip(PAIRS).filter(|(_, pair)| (pair.is_open)(&run));
    let asks = open.map(|(nth, pair)| run.ask(nth, pair.experiment));
    asks.filter(|ask| ask.longest() <= MOST).collect()
}

/// A target that closes connections without a byte in reply may expect TLS.
pub fn asks_for_tls(record: &Record) -> bool {
    record.is_mute() && record.interrupted.is_none()
}

/// Whether throng sends on one connection after the other.
fn is_by_turns(plan: &Plan) -> bool {
    plan.populations.iter().any(|population| population.load.is_paced())
}

impl Run<'_> {
    fn ask(&self, pair: usize, experiment: Experiment) -> Ask {
        let watched = |time: Nanos| Nanos((time.0 as f64 * LONGER) as u64);
        let time = match experiment {
            Silent => self.age_or_requests().or(self.pattern.evicted).map(watched),
            Busy => self.age_or_silence().or(self.age_or_moment()).map(watched),
            Alone | Tls => Some(SLOW_USER),
            Pause | OtherSource | OtherAddress | Half | SmallSegments => Some(USER),
        };
        Ask { experiment, pair, population: self.worst(), time: time.unwrap_or(USER) }
    }

    /// The population with the most faults; the first of several.
    fn worst(&self) -> u16 {
        let failed = |own: usize| self.record.populations[own].totals.faults.total();
        let all = 0..self.record.populations.len();
        all.rev().max_by_key(|own| failed(*own)).unwrap_or(0) as u16
    }

    fn faults(&self) -> impl Iterator<Item = &FaultCount> {
        self.summary.faults.iter().filter(|fault| fault.side != Side::Host && fault.count > 0)
    }

    /// Whether some connections were served and others turned away for an unknown reason: in their dials and handshakes, without a
    /// response, or with a status for it.
    fn turned_away(&self) -> bool {
        let has_statuses = || self.summary.requests.status.keys().any(|status| AWAY.contains(status));
        let is_away = |fault: &FaultCount| {
            let was_served = fault.stage == Stage::Hold && self.pattern.had_responses;
            matches!(fault.kind, Kind::Refused | Kind::Timeout)
                || matches!(fault.kind, Kind::Reset | Kind::Closed) && !was_served
                || fault.kind == Kind::WrongStatus && has_statuses()
        };
        self.is_open() && (self.faults().any(is_away) || self.summary.requests.unanswered > 0)
    }

    /// Whether the target is reached over a network and its host is not observed.
    fn is_far(&self) -> bool {
        let observed = &self.record.observed;
        let is_seen = observed.both_here || observed.seen.target_host.is_some();
        !is_seen && self.plan.populations.iter().all(|own| !own.target.is_loopback())
    }

    /// Whether the target was reached, and a response did not come completely in time.
    fn has_no_response(&self) -> bool {
        let is_late = |fault: &FaultCount| fault.kind == Kind::Timeout && fault.stage != Stage::Dial;
        self.faults().any(is_late)
    }

    /// Whether connections were lost that had been served.
    fn lost(&self) -> bool {
        self.is_open() && self.pattern.had_responses && self.are_closed()
    }

    /// Whether the peer closed connections.
    fn are_closed(&self) -> bool {
        self.faults().any(|fault| matches!(fault.kind, Kind::Reset | Kind::Closed))
    }

    /// Whether the target served something, and what limited it is not certain.
    fn is_open(&self) -> bool {
        let counts = &self.record.totals.counts;
        let was_served = counts.answered > counts.wrong || counts.opened > 0 && counts.sent == 0;
        let is_known = |limit: &Limit| {
            !OPEN.contains(&limit.cause) && limit.certainty != Certainty::Guess || limit.side == Side::Host
        };
        was_served && !self.summary.limit.as_ref().is_some_and(is_known)
    }

    fn has_replies(&self) -> bool {
        self.plan.populations.iter().any(plan::Population::has_replies)
    }

    /// Whether responses took too long or did not come in time, for an unknown reason.
    fn is_slow(&self) -> bool {
        let failed = self.summary.thresholds.iter().filter(|threshold| threshold.fails());
        let mut of_time =
            failed.filter(|t| ["latency", "first_byte"].iter().any(|name| t.expr.contains(name)));
        let is_carried = |limit: &Limit| limit.cause == Cause::TooFewConnections;
        let carries_too_few = self.summary.limit.as_ref().is_some_and(is_carried);
        let is_open = |limit: &Limit| {
            let may_be_slow = limit.side != Side::Host || limit.cause == Cause::TooFewConnections;
            may_be_slow && (OPEN.contains(&limit.cause) || limit.certainty != Certainty::Seen)
        };
        let is_late = |fault: &FaultCount| (fault.stage, fault.kind) == (Stage::Exchange, Kind::Timeout);
        let is_unknown = self.summary.limit.as_ref().is_none_or(is_open);
        // If connections were turned away, that is the reason for the delay, unless requests were sent on connections that are served.
        let is_slow = (of_time.next().is_some() || carries_too_few) && !self.turned_away();
        is_unknown && self.has_replies() && (is_slow || self.faults().any(is_late))
    }

    /// The age at which connections were closed, if they had all received the same number of responses, more than one.
    fn age_or_requests(&self) -> Option<Nanos> {
        let has_several = self.pattern.responses.is_some_and(|n| n > 1);
        self.record.losses.constant_age().filter(|age| *age >= SET && has_several && self.are_closed())
    }

    /// The age at which all connections were closed at one moment, if they had been opened at one moment, too.
    fn age_or_moment(&self) -> Option<Nanos> {
        let is_open = self.pattern.is_one_moment && self.age_or_silence().is_none() && self.lost();
        self.record.losses.constant_age().filter(|age| *age >= SET && is_open)
    }

    /// The silence after which connections were closed, if it equals their age or all were closed at one moment, and if connections can be
    /// used in the meantime.
    fn age_or_silence(&self) -> Option<Nanos> {
        let may_be_age = self.pattern.age.is_some() || self.pattern.is_one_moment;
        let silence = self.pattern.silence.filter(|time| *time >= SET && may_be_age);
        silence.filter(|_| self.has_replies() && self.are_closed())
    }
}

impl Ask {
    /// Maximum time that the experiment takes.
    pub fn longest(&self) -> Nanos {
        let before = if self.experiment == Pause { PAUSE } else { Nanos::ZERO };
        before + self.time + OVERHEAD
    }

    /// Interval at which a busy connection is used.
    pub fn every(&self) -> Nanos {
        Nanos((self.time.0 as f64 / LONGER) as u64 / USES)
    }

    /// The causes to distinguish, as text.
    pub fn why(&self) -> String {
        let Pair { one, other, .. } = &PAIRS[self.pair];
        format!("{}, or {}", one.0, other.0)
    }
}

#[cfg(test)]
mod tests;
