//! The limit: side, number of connections and fix. A table of causes over the evidence, from the most specific to the
//! least; if none applies, the limit is unknown, with what was seen.
//!
//! | cause | evidence |
//! |---|---|
//! | ended | the target's process is gone |
//! | ended | nothing listens any more at one of its addresses |
//! | memory | the target was killed by the OOM killer; the memory of all sockets was exhausted |
//! | open-files | the target's files are near its limit |
//! | heap | its managed heap is full |
//! | open-files, threads, memory | a line of its log |
//! | conntrack | the table of tracked connections was full |
//! | ports, memory, open-files | errors of our own system calls |
//! | unreachable, denied | an ICMP message rejects dials, and its sender was determined |
//! | refused | nothing is listening, or no longer |
//! | tls-expected | it replied with a TLS alert, or with its page for plain requests; or it closed without a byte, and
//! speaks TLS |
//! | tls | its certificate is not right, or nothing is in common |
//! | stall | throng itself was stopped; the target was; no connection received a response for a while |
//! | connection-limit | some connections had no response, and the others one after the other |
//! | thread | one of its threads has ended, and nothing accepts |
//! | requests-per-connection | those lost had all received the same number of responses |
//! | connection-limit | some were closed as others opened, and others stay silent for longer |
//! | idle-cut, reset-after | those lost had all been silent, or open, for the same time |
//! | closed | all were closed as announced, and none was opened again |
//! | connection-limit | from some number on new connections were turned away |
//! | ended | one of the target's processes had ended when connections were lost |
//! | accept-queue | it overflowed, is as full as its backlog allows, or connections are stuck in it |
//! | unacknowledged, no-syn-ack | the path drops packets silently |
//! | syn-loss | connections waited for SYNs that were retransmitted, and no queue of the target is seen to have dropped them |
//! | connection-limit | new connections of the probe were turned away, and those that it keeps were served |
//! | cpu | throng itself was too slow: a silence may be its own; both ends share their processors |
//! | cpu | the target had none left when responses failed or were slow |
//! | slow-accept | a steady rate of accepts while others waited |
//! | slow-accept | by arrival, more and more in the accept queue from the beginning of the load to its end |
//! | too-few-connections | requests were due while all connections waited for a response |
//! | saturated | by arrival, or in a search by rate, more and more waited for a response from the beginning of the load to its end |
//! | connection-limit | new connections of the probe had no response, and those that it keeps had one after the other |
//! | wrong-answer, timeout, closed, unreachable, denied | the most frequent kind of fault, with a hint at a well-known number |
//! | stall | it collected garbage when responses were slow, for half as long as they took, or longer |
//! | unknown | nothing of this; all that was due was answered, and thresholds ask for more throughput |
//!
//! Of findings that are equally sure the one goes before that was there first, where that is known ([`first`]).

use std::cmp::Reverse;

use samples::{
    Cause, Certainty, Detail, Fault, FaultCount, Kind, Limit, Side, SlowPart, Stage, Summary,
    ThresholdResult, Verdict,
};
use units::Count;

use super::{
    away,
    evidence::{Evidence, TargetSeen},
    honesty,
};
use crate::signs::Sign;
pub(super) use accept_queue::outrun;
pub(super) use faults::reason;
use first::When;
pub(crate) use judged::Judged;
pub(crate) use named::at_destinations;
pub(crate) use sentence::Sentence;

mod accept_queue;
pub(super) mod closes;
mod faults;
mod first;
mod judged;
mod known_limit;
mod load;
mod named;
pub(crate) mod ours;
mod path;
mod process;
mod quoted;
mod secured;
mod sentence;
mod sentences;
mod slow;
mod stall;
mod starved;
mod statuses;
mod syn_loss;
mod target;
mod whose;
mod wrong;

use Certainty::Guess;

/// What went wrong most of all. Of equals the first: our own doing before others', what is refused before what is only slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trouble {
    /// Nothing did, and yet the run is not as it should be.
    None,
    /// Dials that this machine could not make.
    Ours,
    Refused,
    /// Dials and requests without a response.
    Waiting,
    /// Connections closed or reset by the peer.
    Lost,
    WrongAnswer,
    /// No way, or not let through.
    Path,
    Other,
}

/// A run that something stopped.
pub(super) struct Case<'a> {
    pub(super) summary: &'a Summary,
    pub(super) evidence: &'a Evidence,
    pub(super) trouble: Trouble,
    /// Faults of that kind; of lost connections no more than there were, where each had several requests.
    pub(super) count: u64,
    /// The most frequent of them.
    pub(super) kind: Option<Kind>,
    pub(super) stage: Option<Stage>,
    /// The kernel's error with it.
    pub(super) detail: Detail,
}

/// One row: a limit, if there is evidence for it, and when that began.
type Row = (fn(&Case) -> Option<Limit>, When);

const ROWS: &[Row] = &[
    (target::ended, When::Seen(Sign::Ended)),
    (target::deserted, When::Seen(Sign::Deserted)),
    (target::memory, When::Seen(Sign::SocketMemory)),
    (target::open_files, When::Seen(Sign::OpenFiles)),
    (process::heap, When::Seen(Sign::Heap)),
    (process::short, When::Unknown),
    (ours::conntrack, When::Seen(Sign::Conntrack)),
    (path::rejected, When::Failing),
    (ours::errors, When::Unknown),
    (target::refused, When::Failing),
    (target::tls_expected, When::Unknown),
    (target::http2, When::Unknown),
    (secured::tls, When::Unknown),
    (ours::shared, When::Unknown),
    (stall::ours, When::Unknown),
    (stall::stopped, When::Stopped),
    (starved::starved, When::Unknown),
    (stall::stall, When::Stall),
    (process::thread, When::Seen(Sign::Thread)),
    (closes::responses, When::Unknown),
    (closes::evicted, When::Unknown),
    (process::connections, When::Seen(Sign::Connections)),
    (closes::constant_time, When::Unknown),
    (closes::announced, When::Unknown),
    (closes::connection_limit, When::Unknown),
    (target::worker, When::Seen(Sign::Worker)),
    (accept_queue::accept_queue, When::Seen(Sign::Queue)),
    (path::dark, When::Unknown),
    (syn_loss::slow_dials, When::Unknown),
    (closes::probe_turned_away, When::Unknown),
    (ours::generator, When::Unknown),
    (target::cpu, When::Unknown),
    (accept_queue::slow_accept, When::Unknown),
    (load::too_few_connections, When::Unknown),
    (accept_queue::saturated, When::Unknown),
    (path::path, When::Unknown),
    (starved::probe, When::Unknown),
    (secured::closed, When::Failing),
    (slow::took_longer, When::Failing),
    (faults::fault, When::Failing),
    (load::too_little, When::Unknown),
    (stall::pauses, When::Unknown),
    (unknown, When::Unknown),
];

/// The limit of a run with a verdict; none if nothing went wrong.
pub(crate) fn limit(summary: &Summary, evidence: &Evidence) -> Option<Limit> {
    let is_bad =
        matches!(summary.verdict, Verdict::Fail | Verdict::Invalid) && summary.incomplete().is_none();
    let case = Case::of(summary, evidence);
    if case.trouble == Trouble::None && !is_bad {
        return None;
    }
    // What is missing with an agent needs no other cause: without one, that is what the verdict says. The same goes for a threshold on
    // what the run has none of.
    let is_said = |limit: &Limit| match limit.cause {
        Cause::Unknown => summary.lost_agents().is_some() || case.is_unmeasured(),
        Cause::Timeout => away::has_only_timeouts_of_the_lost(summary),
        _ => false,
    };
    case.known().filter(|limit| !is_said(limit))
}

/// The same where thresholds failed: of what these are about.
pub(crate) fn limit_of(judged: Option<Judged>, summary: &Summary, evidence: &Evidence) -> Option<Limit> {
    match judged.and_then(|judged| Some((judged.figures(summary)?, judged.evidence(evidence)))) {
        Some((its, evidence)) => limit(&its, &evidence),
        None => limit(summary, evidence),
    }
}

/// The next limit of a run that passed, for stricter criteria than its verdict's; none if not known.
pub(crate) fn suspect(summary: &Summary, evidence: &Evidence) -> Option<Limit> {
    let case = Case::of(summary, evidence);
    let shared = ours::shared(&case);
    let ours = shared.or_else(|| honesty::saturated(evidence).and_then(|why| ours::too_slow(&case, why)));
    ours.or_else(|| case.known()).filter(|limit| limit.cause != Cause::Unknown)
}

/// Warnings of a run that passed, each with its fix.
pub(crate) fn warnings(summary: &Summary, evidence: &Evidence) -> Vec<String> {
    let overflow = accept_queue::overflow_warning(summary, evidence);
    // An overflow drops SYNs, too.
    let syns = if overflow.is_none() { syn_loss::warning(&Case::of(summary, evidence)) } else { None };
    let outrun = accept_queue::outrun_warning(evidence);
    let stall = stall::warning(summary, evidence);
    [overflow, syns, outrun, stall].into_iter().flatten().collect()
}

/// How much a limit explains; of several runs against a target, the one that explains most is what stopped them. Most, that
/// the target is gone; least, that nothing is known. What follows from the kind of fault alone, and what a busy moment of
/// this machine may do, gives way to what was seen. What is used up explains why a processor is busy, and why none accepts.
pub fn weight(limit: &Limit) -> u8 {
    use Cause::{
        Closed, ConnectionLimit, Cpu, Denied, Ended, Memory, OpenFiles, Refused, Saturated, Timeout, Unknown,
        Unreachable, WrongAnswer,
    };
    match (limit.side, limit.cause) {
        (_, Ended) | (Side::Target, Memory) => 4,
        (_, cause) if limit.certainty == Guess => u8::from(cause != Unknown),
        (_, Unknown) => 0,
        (Side::Target, OpenFiles | ConnectionLimit) if limit.certainty == Certainty::Seen => 3,
        (_, Refused | WrongAnswer | Timeout | Closed | Unreachable | Denied | Saturated)
        | (Side::Host, Cpu) => 1,
        _ => 2,
    }
}

/// Whether nothing is listening: if another run was served before, the target is gone.
pub fn is_nobody(limit: &Limit) -> bool {
    (limit.cause, limit.at_connections) == (Cause::Refused, 0)
}

/// The limit of a search whose target served loads before it [was not there](is_nobody).
pub fn gone(limit: Limit) -> Limit {
    // Where a listener was seen, others refuse the dials.
    let fix = match limit.certainty {
        Certainty::Seen => {
            "it served smaller loads before: check whether it has ended, and its log".to_owned()
        }
        _ => limit.fix,
    };
    Limit { fix, ..limit }
}

/// Whether the target's process may have ended.
pub fn may_have_ended(limit: &Limit) -> bool {
    limit.side == Side::Target && matches!(limit.cause, Cause::Ended | Cause::Memory)
}

impl<'a> Case<'a> {
    fn known(&self) -> Option<Limit> {
        let found = ROWS.iter().filter_map(|(row, when)| Some((row(self)?, *when))).collect();
        first::first(self, found).map(|limit| quoted::quoted(self, process::quote(self, limit)))
    }

    /// From and until when what went wrong began to, seconds of the run.
    fn failing(&self) -> Option<(f64, f64)> {
        self.evidence.timeline.failing(|fault| trouble_of(fault) == self.trouble)
    }

    /// Whether nothing went wrong but that responses were slow, or did not come.
    fn is_waiting(&self) -> bool {
        matches!(self.trouble, Trouble::None | Trouble::Waiting)
    }

    /// Whether nothing went wrong but that there was nothing to hold thresholds against.
    fn is_unmeasured(&self) -> bool {
        let mut failed = self.summary.thresholds.iter().filter(|t| !t.pass).peekable();
        self.trouble == Trouble::None && failed.peek().is_some() && failed.all(|t| t.value.is_none())
    }

    /// Whether a sign was there then; where its time is not known, it may have been.
    fn explains(&self, sign: Sign) -> bool {
        self.evidence.timeline.first(sign, self.failing()).is_none_or(|(_, explains)| explains)
    }

    fn of(summary: &'a Summary, evidence: &'a Evidence) -> Case<'a> {
        // What waits still when the run ends waits as what ran into its timeout; unless it is not waited for that long.
        let is_cut_short = summary.verdict == Verdict::Interrupted || evidence.is_cut_short;
        let waiting = if is_cut_short { 0 } else { summary.requests.unanswered };
        let unanswered = FaultCount::new(Fault::target(Stage::Exchange, Kind::Timeout), waiting);
        let faults = || summary.faults.iter().chain([&unanswered]).filter(|f| f.count > 0);
        let of = |trouble: Trouble| faults().filter(move |f| trouble_of(f) == trouble);
        let count = |trouble: Trouble| of(trouble).map(|f| f.count).sum::<u64>();
        let most = faults().map(trouble_of).max_by_key(|trouble| (count(*trouble), Reverse(*trouble)));
        let trouble = most.unwrap_or(Trouble::None);
        // The wrong response, and not the loss that follows from it.
        let rank = |f: &&FaultCount| (!f.fault().follows_response(), f.count, f.kind.is_wrong_response());
        let worst = of(trouble).max_by_key(rank);
        let at_most = match summary.connections.dropped + summary.connections.failed {
            lost if trouble == Trouble::Lost && lost > 0 => lost,
            _ => u64::MAX,
        };
        Case {
            summary,
            evidence,
            trouble,
            count: count(trouble).min(at_most),
            kind: worst.map(|f| f.kind),
            stage: worst.map(|f| f.stage),
            detail: worst.map_or(Detail::NONE, |f| f.detail),
        }
    }

    /// Whether connections that were wanted are not there, by the target's doing or the way's. Where there is room for all of the load,
    /// it may be only the probe's fresh ones for which there is none.
    fn is_short(&self) -> bool {
        let probes = self.summary.probe.as_ref().and_then(|probe| probe.held_us.censored.as_ref());
        match self.trouble {
            Trouble::Waiting | Trouble::Lost | Trouble::Refused => true,
            Trouble::None => probes.is_some_and(|censored| censored.count > 0),
            _ => false,
        }
    }

    fn faults(&self) -> Count {
        Count(self.count)
    }

    /// The fix, or a smaller load instead: of a search that is none, for it finds the largest.
    fn or_less(&self, fix: &str, less: &str) -> String {
        if self.evidence.search.is_some() { fix.to_owned() } else { format!("{fix}, or {less}") }
    }

    /// Connections opened so far; in a search with those of the steps before that are left.
    fn opened(&self) -> u64 {
        self.evidence.losses.before + self.summary.connections.opened
    }

    /// Connections that were left; where none was, the most that ever were.
    fn left(&self) -> u64 {
        let c = &self.summary.connections;
        if c.held > 0 { c.held.min(c.peak) } else { c.peak }
    }

    /// The most connections that ever were open.
    fn peak(&self) -> u64 {
        self.summary.connections.peak
    }

    /// Those that the target served: without connections in its accept queue.
    fn served(&self) -> u64 {
        // Fresh ones of the probe are in the queue too: of the load it has no more than had no response.
        let most = if self.summary.probe.is_some() { self.count } else { u64::MAX };
        let served = self.peak().saturating_sub(self.evidence.stood.min(most));
        if served > 0 { self.left().min(served) } else { self.left() }
    }

    fn faults_of(&self, side: Side, kind: Kind) -> u64 {
        let of = self.summary.faults.iter().filter(|f| f.side == side && f.kind == kind);
        of.map(|f| f.count).sum()
    }

    fn limit(
        &self,
        certainty: Certainty,
        (side, cause): (Side, Cause),
        at_connections: u64,
        sentence: Sentence,
        detail: String,
        fix: impl Into<String>,
    ) -> Option<Limit> {
        let (sentence, fix, first_seen_s) = (sentence.to_string(), fix.into(), None);
        Some(Limit { side, cause, at_connections, certainty, first_seen_s, sentence, detail, fix })
    }
}

fn trouble_of(fault: &FaultCount) -> Trouble {
    match (fault.side, fault.kind) {
        (_, Kind::AddressInUse | Kind::NoMemory | Kind::OpenFiles) => Trouble::Ours,
        (_, Kind::Unreachable | Kind::Denied) => Trouble::Path,
        (Side::Host, _) => Trouble::Ours,
        // Of an open connection it is a stream that was refused.
        (_, Kind::Refused) if fault.stage == Stage::Dial => Trouble::Refused,
        (_, Kind::Timeout) => Trouble::Waiting,
        (_, Kind::Reset | Kind::Closed) => Trouble::Lost,
        (_, Kind::Other) => Trouble::Other,
        _ => Trouble::WrongAnswer,
    }
}

/// How to find out what no counter shows. A failed threshold alone is no failure of anything: a load that meets it is searched.
fn look_into(case: &Case) -> String {
    let s = case.summary;
    match (s.thresholds.iter().find(|t| !t.pass), case.trouble) {
        (Some(_), Trouble::None) if waits_for_others(case) => {
            "the target waits for something else (its CPU was idle): look at what it calls".to_owned()
        }
        (Some(_), Trouble::None) if case.evidence.search.is_some() => "profile the target".to_owned(),
        (Some(_), Trouble::None) if load::throughput_wanted(s).is_some() => load::more_throughput(case),
        (Some(failed), Trouble::None) => match case.evidence.subject.search(&failed.expr) {
            Some(command) => {
                format!("search the highest load that meets it ({command}), or profile the target")
            }
            None => "profile the target".to_owned(),
        },
        _ if case.evidence.subject.never_redials && s.connections.closed > 0 => format!(
            "the target announced the close of {}, and with --reconnect never no others are opened: leave it out",
            Count(s.connections.closed).of("connection")
        ),
        _ => "check the target's log, or run strace on it".to_owned(),
    }
}

/// Responses that are far slower than the others, where a threshold on latency failed by them, and nothing else is wrong.
fn slow_part(case: &Case) -> Option<SlowPart> {
    let part = case.evidence.slow_part.filter(|_| case.trouble == Trouble::None)?;
    let slow_us = part.slow.0 as f64 / 1e3;
    let is_of_it = |expr: &str| {
        expr.split(|c: char| c != '_' && !c.is_alphanumeric())
            .any(|word| ["latency", "latency_us"].contains(&word))
    };
    let fails_by_it = |t: &ThresholdResult| {
        !t.pass && is_of_it(&t.expr) && t.value.is_some_and(|value| 2.0 * value >= slow_us)
    };
    case.summary.thresholds.iter().any(fails_by_it).then_some(part)
}

const IN_COMMON: &str = "check what the slow ones have in common, in the target's log or its traces (a lock, a cache, a query, one backend \
of several)";

const AT_THOSE_TIMES: &str = "check what the target did at those times, in its log or its traces (garbage collection, a job that runs now and \
then, a flush to disk, a lock)";

/// Times of responses from here on are no work of microseconds.
const SLOW_US: f64 = 5e3;
/// Of a target that is idle, the most of its busiest thread, and of all its processors.
const IDLE: f64 = 0.25;

/// Whether responses take about the same time, a long one, while the target's CPU is idle: a smaller load would not be faster.
fn waits_for_others(case: &Case) -> bool {
    let times = &case.summary.latency_us;
    let is_constant = times.p50 >= SLOW_US && times.min >= times.p50 / 2.0 && times.p99 <= times.p50 * 2.0;
    let is_idle = |seen: &TargetSeen| seen.cpu_share < IDLE && seen.cpu_thread.is_some_and(|own| own < IDLE);
    is_constant && case.evidence.target.as_ref().is_some_and(is_idle)
}

/// No cause applies: lists what was seen, as a starting point.
fn unknown(case: &Case) -> Option<Limit> {
    let (s, e) = (case.summary, case.evidence);
    let mut seen: Vec<String> =
        s.faults.iter().map(|f| format!("{} {}", Count(f.count), f.fault().name())).collect();
    let (here, there) = (e.here.net, e.there.unwrap_or(e.here).net);
    let counters = [
        ("listen overflow", there.listen_overflows),
        ("listen drop", there.listen_drops),
        ("SYN retransmission", here.syn_retrans),
        ("segment retransmission", here.retrans_segs),
    ];
    let counted = counters.iter().filter(|(_, n)| *n > 0);
    seen.extend(counted.map(|(name, n)| format!("{} in the whole network namespace", Count(*n).of(name))));
    if let Some(t) = &e.target {
        seen.push(format!("target's CPU {:.0} %", t.cpu_share * 100.0));
    }
    let seen = if seen.is_empty() { "nothing unusual".to_owned() } else { seen.join(", ") };
    // A threshold may be stricter than the target is fast: then nothing has to be at an end.
    let is_strict = case.trouble == Trouble::None && s.thresholds.iter().any(|t| !t.pass);
    let what = if is_strict { "no limit was reached" } else { "unknown" };
    let (cause, detail) = ((Side::Unknown, Cause::Unknown), format!("{what}; seen: {seen}"));
    let Some(part) = slow_part(case) else {
        return case.limit(Guess, cause, case.left(), Sentence::NothingUsedUp, detail, look_into(case));
    };
    let (when, fix) = match in_seconds(&e.slow_seconds) {
        Some(when) => (format!("; the slow ones came {when}"), AT_THOSE_TIMES),
        None => (String::new(), IN_COMMON),
    };
    case.limit(Guess, cause, case.left(), Sentence::SlowPart(part), detail + &when, fix)
}

/// `in seconds 3, 6 and 9`.
fn in_seconds(seconds: &[u64]) -> Option<String> {
    let numbers: Vec<String> = seconds.iter().map(|second| Count(*second).to_string()).collect();
    match &numbers[..] {
        [] => None,
        [one] => Some(format!("in second {one}")),
        [first @ .., last] if first.len() < MOST_SECONDS => {
            Some(format!("in seconds {} and {last}", first.join(", ")))
        }
        all => Some(format!("in {} seconds, the first of them {}", all.len(), all[0])),
    }
}

/// More seconds are counted.
const MOST_SECONDS: usize = 6;

#[cfg(test)]
mod tests;
