//! Slow responses without any other trouble.

use samples::{Cause as Name, Certainty, Kind, Side, Stage};
use units::{Count, Unit};

use super::{Seen, load, whose};
use crate::{
    case::Case,
    evidence::TargetSeen,
    in_common::where_to_look,
    say::{some, tenths},
    slow,
    throughput::wanted,
    trouble::Trouble,
};
use record::tolerances::{ONE_IN_TWENTY_OF, QUARTER};

/// Responses that took this share of the timeout are close to it; if one in twenty did, some others exceed it.
const NEARLY: f64 = 0.75;

/// The timeout cuts off slow responses, if others arrive until shortly before it.
pub(super) fn took_longer(case: &Case) -> Option<Seen> {
    let (times, timeout) = (case.latency_us().0, case.evidence.timeout);
    let is_other = |stage: Stage| stage != Stage::Exchange;
    let has_others = case.faults.iter().any(|fault| fault.kind == Kind::Timeout && is_other(fault.stage));
    let (p95, timeout_us) = (times.p95, timeout.0 as f64 / 1e3);
    let is_short = timeout_us > 0.0 && times.count >= ONE_IN_TWENTY_OF && p95 >= NEARLY * timeout_us;
    if has_others || !is_short {
        return None;
    }
    let sentence =
        format!("{} took longer than the timeout of {}", some(case.count, "request"), tenths(timeout));
    let detail = format!(
        "{} timed out; of the responses, one in twenty took {} or longer",
        case.n().of("request"),
        Unit::Micros.brief(p95)
    );
    let fix = "raise --timeout, or find out what the target waits for in slow responses".to_owned();
    let words = [whose::name(case, sentence), detail, fix];
    Some(Seen::target(Certainty::Seen, Name::Timeout, case.peak(), words))
}

const IN_COMMON: &str = "check what the slow ones have in common, in the target's log or its traces (a lock, a cache, a query, one backend \
of several)";

const AT_THOSE_TIMES: &str = "check what the target did at those times, in its log or its traces (garbage collection, a job that runs now and \
then, a flush to disk, a lock)";

/// No cause was found: lists the observations as a starting point.
pub(super) fn unknown(case: &Case) -> Seen {
    // A strict threshold may fail without any limit being reached.
    let is_strict = case.trouble == Trouble::None && case.summary.thresholds.iter().any(|t| !t.pass);
    let what = if is_strict { "no limit was reached" } else { "unknown" };
    let detail = format!("{what}; seen: {}", counted(case));
    let part = slow::part(case);
    let in_common = where_to_look(case.summary, part.is_none()).filter(|_| is_strict);
    let (sentence, detail, fix) = match part {
        None => {
            let nothing = "no cause was found: no resource that throng sees was exhausted".to_owned();
            (nothing, detail, look_into(case))
        }
        Some(part) => match in_seconds(case.slow_seconds()) {
            Some(when) => {
                let detail = format!("{detail}; the slow ones came {when}");
                (slow::sentence(&part), detail, AT_THOSE_TIMES.to_owned())
            }
            None => (slow::sentence(&part), detail, IN_COMMON.to_owned()),
        },
    };
    let fix = in_common.unwrap_or(fix);
    let of = (Side::Unknown, Name::Unknown);
    Seen { certainty: Certainty::Guess, of, at: case.left(), sentence, detail, fix }
}

/// Faults, and counters of the kernel.
fn counted(case: &Case) -> String {
    let e = case.evidence;
    let mut seen: Vec<String> =
        case.faults.iter().map(|f| format!("{} {}", Count(f.count), f.fault().name())).collect();
    let (here, there) = (e.here.net, e.there.unwrap_or(e.here).net);
    let counters = [
        ("listen overflow", there.listen_overflows),
        ("listen drop", there.listen_drops),
        ("SYN retransmission", here.syn_retrans),
        ("segment retransmission", here.retrans_segs),
    ];
    let counted = counters.iter().filter(|(_, n)| *n > 0);
    seen.extend(counted.map(|(name, n)| format!("{} in the whole network namespace", some(*n, name))));
    if let Some(t) = &e.target {
        seen.push(format!("target's CPU {:.0} %", t.cpu_share * 100.0));
    }
    if seen.is_empty() { "nothing unusual".to_owned() } else { seen.join(", ") }
}

/// How to find out more than counters show. If only a threshold failed, it is advised to search the load that meets it.
fn look_into(case: &Case) -> String {
    let s = case.summary;
    match (s.thresholds.iter().find(|t| !t.pass), case.trouble) {
        (Some(_), Trouble::None) if waits_for_others(case) => {
            "the target waits for something else (its CPU was idle): look at what it calls".to_owned()
        }
        (Some(_), Trouble::None) if case.evidence.search.is_some() => "profile the target".to_owned(),
        (Some(_), Trouble::None) if wanted(case).is_some() => load::more_throughput(case),
        (Some(failed), Trouble::None) => match case.evidence.subject.search(&failed.expr) {
            Some(command) => {
                format!("search the highest load that meets it ({command}), or profile the target")
            }
            None => "profile the target".to_owned(),
        },
        _ if case.evidence.subject.never_redials && s.connections.closed > 0 => format!(
            "the target announced the close of {}, and with --reconnect never no others are opened: leave it out",
            some(s.connections.closed, "connection")
        ),
        _ => "check the target's log, or run strace on it".to_owned(),
    }
}

/// Longer responses are not explained by microseconds of work.
const SLOW_US: f64 = 5e3;

/// Whether responses take a long and about equal time while the target's CPU is idle: a smaller load would not be faster.
fn waits_for_others(case: &Case) -> bool {
    let times = case.latency_us().0;
    let is_constant = times.p50 >= SLOW_US && times.min >= times.p50 / 2.0 && times.p99 <= times.p50 * 2.0;
    let is_idle =
        |seen: &TargetSeen| seen.cpu_share < QUARTER && seen.cpu_thread.is_some_and(|own| own < QUARTER);
    is_constant && case.evidence.target.as_ref().is_some_and(is_idle)
}

/// Maximum number of seconds that are listed.
const MOST_SECONDS: usize = 6;

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
