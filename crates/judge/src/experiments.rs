//! Experiments: where two causes look alike in what the load saw, the target is asked after the load. The table says which pairs of
//! causes each experiment tells apart; [`asks`] which of them are open after a run; [`Answers`] what came of those that were made. Pure:
//! `run` makes them.

use std::fmt;

use plan::Plan;
use samples::{
    Cause, Certainty, ExperimentSummary, FaultCount, Kind, Limit, Mark, MarkKind, Side, Stage, Summary,
    Verdict,
};
use serde::{Deserialize, Serialize};
use units::{Count, Nanos};

use crate::{evidence::Pattern, limit::closes::SET, record::Record};

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
/// One user's response that takes less than this part of the load's median is faster alone.
const FASTER: f64 = 0.5;
/// With at least this share of the connections at which others were turned away, as many are open.
const AS_MANY: f64 = 0.9;
/// With at most this share of them there is room, also for want of the one that closes half.
const FEW: f64 = 0.5;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Experiment {
    /// A TLS ClientHello.
    Tls,
    /// One more user after a pause, while all connections of the load are open and silent.
    Pause,
    /// The same from another source address.
    OtherSource,
    /// The same at another address of the target.
    OtherAddress,
    /// The same after half of the connections were closed.
    Half,
    /// One user while all else is silent: how long do responses take?
    Alone,
    /// A connection that stays silent after its first response: is it closed, and when?
    Silent,
    /// A connection that is never silent for long: is it closed, and when?
    Busy,
}

use Experiment::{Alone, Busy, Half, OtherAddress, OtherSource, Pause, Silent, Tls};

/// Two causes that an experiment tells apart.
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
    /// The causes that it is to tell apart: the index of its row in [`PAIRS`].
    pub pair: usize,
    /// The population whose connections it makes one more of.
    pub population: u16,
    /// How long one more user is waited for, or watched.
    pub time: Nanos,
}

/// The experiments that tell apart what is open after a run, in the order in which they are to be made. None where all went well, where the
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
            Pause | OtherSource | OtherAddress | Half => Some(USER),
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
        self.is_open() && self.faults().any(is_away)
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

    /// Whether nothing failed but that responses took long, for a reason that was not seen.
    fn is_slow(&self) -> bool {
        let failed = self.summary.thresholds.iter().filter(|threshold| threshold.fails());
        let mut of_time =
            failed.filter(|t| ["latency", "first_byte"].iter().any(|name| t.expr.contains(name)));
        let is_open = |limit: &Limit| {
            limit.side != Side::Host && (limit.cause == Cause::Unknown || limit.certainty != Certainty::Seen)
        };
        let is_late = |fault: &FaultCount| (fault.stage, fault.kind) == (Stage::Exchange, Kind::Timeout);
        let is_unknown = self.summary.limit.as_ref().is_none_or(is_open);
        is_unknown
            && self.has_replies()
            && !self.turned_away()
            && (of_time.next().is_some() || self.faults().any(is_late))
    }

    /// The age at which connections were closed that had all received the same number of responses, more than one.
    fn age_or_requests(&self) -> Option<Nanos> {
        let has_several = self.pattern.responses.is_some_and(|n| n > 1);
        self.pattern.age.filter(|age| *age >= SET && has_several && self.are_closed())
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

    /// The causes that it tells apart.
    pub fn why(&self) -> String {
        let Pair { one, other, .. } = &PAIRS[self.pair];
        format!("{}, or {}", one.0, other.0)
    }
}

/// What came of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Responses, in this time: the median of a few.
    Served(Nanos),
    /// A connection, of which no response is expected.
    Open,
    /// A connection, and no response in time.
    Unanswered,
    /// The first fault.
    Failed(FaultCount),
    /// The connection was closed after this time.
    Closed(Nanos),
    /// It was open for this time, and stayed open.
    Stayed(Nanos),
    /// Whether a record of TLS came.
    Tls(bool),
}

/// An experiment that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Which one.
    pub experiment: Experiment,
    /// What it was to tell apart.
    pub why: String,
    /// What came of it.
    pub outcome: Outcome,
    /// Connections of the load that were open meanwhile.
    pub open: u64,
    /// When it began, by the clock of the ticks.
    pub at: Nanos,
    /// How long it took.
    pub took: Nanos,
}

/// How connections were turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnedAway {
    /// Not any more: by rate, or for a time.
    Passed,
    /// Those from one source address.
    BySource,
    /// Those to one address of the target.
    ByAddress,
    /// Those beyond a number.
    Full,
    /// Also where half of them are gone.
    Broken,
}

/// The answers of a run, in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answers(pub Vec<Answer>);

impl Answers {
    /// The answer of an experiment, if it was made.
    pub fn of(&self, experiment: Experiment) -> Option<&Outcome> {
        self.answer(experiment).map(|answer| &answer.outcome)
    }

    fn answer(&self, experiment: Experiment) -> Option<&Answer> {
        self.0.iter().find(|answer| answer.experiment == experiment)
    }

    fn is_served(&self, experiment: Experiment) -> bool {
        self.of(experiment).is_some_and(Outcome::is_served)
    }

    /// Whether an experiment would tell nothing more: one more user of the load's kind was served already.
    pub fn have_decided(&self, experiment: Experiment) -> bool {
        let before: &[Experiment] = match experiment {
            OtherSource => &[Pause],
            OtherAddress => &[Pause, OtherSource],
            Half => &[Pause, OtherSource, OtherAddress],
            _ => &[],
        };
        before.iter().any(|one| self.is_served(*one))
    }

    /// How connections were turned away where `at` were open; none where that was not found out.
    pub fn turned_away(&self, at: u64) -> Option<TurnedAway> {
        let pause = self.answer(Pause)?;
        if pause.outcome.is_served() {
            // With fewer open than there were, it may just have room again.
            let are_as_many = pause.open as f64 >= AS_MANY * at as f64;
            return Some(if are_as_many { TurnedAway::Passed } else { TurnedAway::Full });
        }
        if self.is_served(OtherSource) {
            return Some(TurnedAway::BySource);
        }
        if self.is_served(OtherAddress) {
            return Some(TurnedAway::ByAddress);
        }
        if pause.open as f64 <= FEW * at as f64 {
            // It is not for the others that there is no room.
            return Some(TurnedAway::Broken);
        }
        self.of(Half).map(|half| if half.is_served() { TurnedAway::Full } else { TurnedAway::Broken })
    }

    /// Whether responses that take `median` under load are faster for one user alone; none where that was not asked.
    pub fn is_faster_alone(&self, median: Nanos) -> Option<bool> {
        match self.of(Alone)? {
            Outcome::Served(took) => Some((took.0 as f64) < FASTER * median.0 as f64),
            _ => Some(false),
        }
    }

    /// Whether a connection was closed that was silent, or never was; none where that was not asked.
    pub fn is_closed(&self, experiment: Experiment) -> Option<bool> {
        match self.of(experiment)? {
            Outcome::Closed(_) => Some(true),
            Outcome::Stayed(_) => Some(false),
            _ => None,
        }
    }

    /// Whether a record of TLS came; none where none was asked for.
    pub fn speaks_tls(&self) -> Option<bool> {
        if let Outcome::Tls(speaks) = self.of(Tls)? { Some(*speaks) } else { None }
    }

    /// Each as a mark, with its answer.
    pub fn marks(&self) -> impl Iterator<Item = Mark> {
        let what = |answer: &Answer| format!("{}: {answer}", answer.experiment.id());
        self.0.iter().map(move |answer| Mark {
            at: answer.at,
            kind: MarkKind::Experiment,
            what: what(answer),
        })
    }

    /// As the summary has them.
    pub fn for_summary(&self) -> Vec<ExperimentSummary> {
        let of = |answer: &Answer| ExperimentSummary {
            what: answer.experiment.id().to_owned(),
            why: answer.why.clone(),
            answer: answer.to_string(),
            took_s: answer.took.secs_f64(),
        };
        self.0.iter().map(of).collect()
    }
}

impl Outcome {
    fn is_served(&self) -> bool {
        matches!(self, Outcome::Served(_) | Outcome::Open)
    }
}

impl Experiment {
    /// As the summary, the marks and the table name it.
    pub fn id(self) -> &'static str {
        match self {
            Tls => "tls",
            Pause => "pause",
            OtherSource => "other-source",
            OtherAddress => "other-address",
            Half => "half",
            Alone => "alone",
            Silent => "silent",
            Busy => "busy",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Served(took) => write!(f, "served in {}", took.brief()),
            Outcome::Open => f.write_str("connected"),
            Outcome::Unanswered => f.write_str("connected, no response"),
            Outcome::Failed(fault) => write!(f, "not served: {}", fault.fault().name()),
            Outcome::Closed(after) => write!(f, "closed after {}", after.brief()),
            Outcome::Stayed(time) => write!(f, "still open after {}", time.brief()),
            Outcome::Tls(true) => f.write_str("a record of TLS in reply"),
            Outcome::Tls(false) => f.write_str("no record of TLS in reply"),
        }
    }
}

impl fmt::Display for Answer {
    /// `served in 350 µs, with 50 connections open`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.outcome.fmt(f)?;
        match self.experiment {
            Tls | Silent | Busy => Ok(()),
            _ => write!(f, ", with {} open", Count(self.open).of("connection")),
        }
    }
}

#[cfg(test)]
mod tests;
