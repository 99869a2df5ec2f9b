//! Experiments: where two causes look alike in what the load saw, the target is asked after the load. The table says which pairs of
//! causes each experiment distinguishes; [`asks`] which of them are open after a run; [`answers`](crate::answers) the outcomes of those that were made. Pure:
//! `run` makes them.

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

/// All experiments of a run together take no longer.
pub const MOST: Nanos = Nanos::from_secs(10);
/// Before the one dial after a pause: a limit by rate is mostly one by the second.
pub const PAUSE: Nanos = Nanos::from_secs(1);
/// One more user waits this long for a connection and a response: longer than until a SYN is sent again.
const USER: Nanos = Nanos::from_millis(1_500);
/// Where responses are slow: for all of them.
const SLOW_USER: Nanos = Nanos::from_millis(2_500);
/// To start one user and to end it.
const OVERHEAD: Nanos = Nanos::from_millis(400);
/// A connection is watched for this part longer than the time after which others were closed: that time is known to a tenth, and servers
/// check their clocks now and then.
const LONGER: f64 = 1.3;
/// A busy connection is used this often in that time.
const USES: u64 = 4;

/// Two causes that an experiment distinguishes.
#[derive(Debug)]
pub struct Pair {
    /// By which experiment.
    pub experiment: Experiment,
    /// A cause, and the answer that means it.
    pub one: (&'static str, &'static str),
    /// The other cause, and the answer that means that.
    pub other: (&'static str, &'static str),
    /// Whether the run leaves it open which of the two it is.
    is_open: fn(&Run) -> bool,
}

/// All of them, in the order in which they are made. The table in `docs/reference/experiments.md` is this one, by test.
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

/// Causes of connections that are turned away which leave open how: what only correlates, and a limit whose scope is not known.
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

/// Statuses of a server that turns requests away: Too Many Requests, and those of gateways without a server.
const AWAY: [u16; 4] = [429, 502, 503, 504];

/// A run that has ended, and the preliminary judgement of it.
struct Run<'a> {
    plan: &'a Plan,
    record: &'a Record,
    summary: &'a Summary,
    pattern: Pattern,
}

/// An experiment to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Which one.
    pub experiment: Experiment,
    /// The causes that it is to distinguish: the index of its row in [`PAIRS`].
    pub pair: usize,
    /// The population whose connections it makes one more of.
    pub population: u16,
    /// How long one more user is waited for, or watched.
    pub time: Nanos,
}

/// The experiments that distinguish what is open after a run, in the order in which they are to be made. None where all went well, where the
/// run was interrupted or is not valid, and on a fleet, whose way to the target is not the coordinator's; there, and in steps of a search,
/// only TLS is asked for ([`asks_for_tls`]).
pub fn asks(plan: &Plan, record: &Record, summary: &Summary) -> Vec<Ask> {
    if asks_for_tls(record) {
        // It has never sent a byte: what else it may lack does not matter before that is known.
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

    /// The population of which most failed; of equals the first.
    fn worst(&self) -> u16 {
        let failed = |own: usize| self.record.populations[own].totals.faults.total();
        let all = 0..self.record.populations.len();
        all.rev().max_by_key(|own| failed(*own)).unwrap_or(0) as u16
    }

    fn faults(&self) -> impl Iterator<Item = &FaultCount> {
        self.summary.faults.iter().filter(|fault| fault.side != Side::Host && fault.count > 0)
    }

    /// Whether some were served and others turned away, and it is not known how: in their dials and handshakes, without a response, or with
    /// a status that says so.
    fn turned_away(&self) -> bool {
        let has_statuses = || self.summary.requests.status.keys().any(|status| AWAY.contains(status));
        let is_away = |fault: &FaultCount| match fault.kind {
            Kind::Refused | Kind::Timeout => true,
            Kind::Reset | Kind::Closed => fault.stage != Stage::Hold || !self.pattern.had_responses,
            Kind::WrongStatus => has_statuses(),
            _ => false,
        };
        self.is_open() && (self.faults().any(is_away) || self.summary.requests.unanswered > 0)
    }

    /// Whether there is a path to the target, and its host is not seen.
    fn is_far(&self) -> bool {
        let observed = &self.record.observed;
        let is_seen = observed.both_here || observed.seen.target_host.is_some();
        !is_seen && self.plan.populations.iter().all(|own| !own.target.is_loopback())
    }

    /// Whether the target was reached, and no response, or not all of it, came in time.
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

    /// Whether the target served something, and what limited it was not seen.
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

    /// Whether responses took too long or did not come in time, for a reason that was not seen.
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
        // What is not served is late for that reason, unless it was sent on connections that are.
        let is_slow = (of_time.next().is_some() || carries_too_few) && !self.turned_away();
        is_unknown && self.has_replies() && (is_slow || self.faults().any(is_late))
    }

    /// The age at which connections were closed that had all received the same number of responses, more than one.
    fn age_or_requests(&self) -> Option<Nanos> {
        let has_several = self.pattern.responses.is_some_and(|n| n > 1);
        self.record.losses.constant_age().filter(|age| *age >= SET && has_several && self.are_closed())
    }

    /// The age at which all connections were closed in one moment, as they had been opened.
    fn age_or_moment(&self) -> Option<Nanos> {
        let is_open = self.pattern.is_one_moment && self.age_or_silence().is_none() && self.lost();
        self.record.losses.constant_age().filter(|age| *age >= SET && is_open)
    }

    /// The time for which connections had been silent when they were closed, where that was their age, too, or they all were closed in one
    /// moment; and they can be used meanwhile.
    fn age_or_silence(&self) -> Option<Nanos> {
        let may_be_age = self.pattern.age.is_some() || self.pattern.is_one_moment;
        let silence = self.pattern.silence.filter(|time| *time >= SET && may_be_age);
        silence.filter(|_| self.has_replies() && self.are_closed())
    }
}

impl Ask {
    /// For how long it takes at the most.
    pub fn longest(&self) -> Nanos {
        let before = if self.experiment == Pause { PAUSE } else { Nanos::ZERO };
        before + self.time + OVERHEAD
    }

    /// How often a busy connection is used.
    pub fn every(&self) -> Nanos {
        Nanos((self.time.0 as f64 / LONGER) as u64 / USES)
    }

    /// The causes that it distinguishes.
    pub fn why(&self) -> String {
        let Pair { one, other, .. } = &PAIRS[self.pair];
        format!("{}, or {}", one.0, other.0)
    }
}

#[cfg(test)]
mod tests;
