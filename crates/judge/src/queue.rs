//! The target's accept queue as a limit: it is full, connections stay in it, or it is emptied slowly.
//!
//! A full queue is a cause only if it could be longer: if the target cannot keep up with arrivals, no queue is long enough, and its pace or
//! CPU is the cause.

use samples::{Kind, Stage, Summary};
use units::{Count, Nanos};

use crate::{
    By,
    case::Case,
    cpu,
    evidence::Evidence,
    longer_queue::{USUAL_SOMAXCONN, longer_queue},
    say::connections,
    trouble::Trouble,
};
use record::{
    fill::Fill,
    tolerances::{HALF, NEARLY_ALL, SYN_AGAIN_US},
};
use samples::NetCounters;

/// The queue length that is recommended where the usual maximum of Linux is too short.
const LONG: u64 = 65_535;

pub(crate) const UNACCEPTED: &str = "raise its own limit on connections (maxconn, max-connections) or threads, or \
find out why it does not call accept()";
pub(crate) const THREADS: &str = "make it accept in more threads or worker processes";

/// Why connections wait in the queue, or do not get into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queued {
    /// Some connections were accepted only by the kernel at the end.
    Unaccepted,
    /// It overflowed this many times.
    Overflowed(u64),
    /// Connections were stuck in it, though it was not full.
    Standing,
}

/// The queue as the cause of the limit. `None` if more connections arrive than the target can accept or has CPU for, because then no queue
/// is long enough; nor if connections that pause use up its CPU while others wait, unless some connections are always served and others
/// never.
pub(crate) fn limits(case: &Case) -> Option<Queued> {
    let (found, e) = (waits(case)?, case.evidence);
    let pauses = e.subject.longest_pause > Nanos::ZERO && e.starved.is_empty();
    let is_outpaced = match e.arrivals_per_s {
        Some(_) => cpu::used_up(case).is_some() || limiting_pace(e).is_some(),
        None if pauses && (overflows(case.summary, e).is_none() || cpu::uses_it_up(case).is_some()) => {
            cpu::used_up(case).is_some()
        }
        None => false,
    };
    (!is_outpaced).then_some(found)
}

/// How connections wait in the queue, for whatever reason the target does not accept them.
pub(crate) fn waits(case: &Case) -> Option<Queued> {
    let e = case.evidence;
    let may_be = matches!(case.trouble, Trouble::Waiting | Trouble::Lost);
    let overflown = overflows(case.summary, e);
    // A few connections that are still queued at the end are left over from an overflow, which is why the others were not accepted.
    let is_more = 2 * e.unaccepted >= case.count || overflown.is_none();
    // If the overflow kept out more connections than are queued, it is the better explanation.
    let missing = e.missing.filter(|missing| *missing > 0 && overflown.is_some());
    let are_more_in_it = e.unaccepted > 0 && missing.is_none_or(|missing| e.unaccepted >= missing);
    if are_more_in_it && (may_be && is_more || case.trouble == Trouble::None) {
        return Some(Queued::Unaccepted);
    }
    // An overflow also causes resets, because the peer believed it was connected; it causes no closes.
    let fits = case.trouble == Trouble::Waiting || case.kind == Some(Kind::Reset);
    let are_only_missing = case.trouble == Trouble::None && missing.is_some();
    if !are_only_missing && (!may_be || !fits) {
        return None;
    }
    let stands = e.stood > 0 && e.accepts_per_s.is_none() && 2 * e.stood >= case.count;
    overflown.map(Queued::Overflowed).or_else(|| stands.then_some(Queued::Standing))
}

pub(crate) fn is_full(e: &Evidence) -> bool {
    e.accept_queue.is_some_and(Fill::is_full)
}

/// ` of 511`, if known.
pub(crate) fn backlog(e: &Evidence) -> String {
    let queue = e.accept_queue.filter(|queue| queue.limit > 0);
    queue.map_or(String::new(), |queue| format!(" of {}", Count(queue.limit)))
}

/// The fix that makes the queue longer: raise the smaller one of its backlog and somaxconn, or both if one is unknown.
pub(crate) fn longer(e: &Evidence) -> String {
    let backlog = e.accept_queue.map(|queue| queue.limit).filter(|limit| *limit > 0);
    let (Some(backlog), Some(most)) = (backlog, e.somaxconn) else {
        let (_, own) = longer_queue(&e.program, Some(LONG), None);
        return format!(
            "{own}; if net.core.somaxconn of its host is smaller, raise that first (sysctl -w net.core.somaxconn={LONG})"
        );
    };
    let (own, allowed) = match backlog < most {
        true => (Some(most.max(USUAL_SOMAXCONN)), (most < USUAL_SOMAXCONN).then_some(USUAL_SOMAXCONN)),
        false => (None, Some(LONG.max(most.saturating_mul(2)))),
    };
    match longer_queue(&e.program, own, allowed) {
        (Some(command), then) => format!("{command}, then {then}"),
        (None, what) => what,
    }
}

/// Connections dropped by full listener queues. ListenDrops includes the other two counters, and more (tcp_listendrop() in linux/net/ipv4).
pub(crate) fn dropped(net: NetCounters) -> u64 {
    net.listen_drops.max(net.listen_overflows + net.syn_queue_drops)
}

/// How often the target's queue overflowed, if it was full or may have been.
fn overflows(s: &Summary, e: &Evidence) -> Option<u64> {
    let net = e.there?.net;
    let lost = if e.queue_drops > 0 { e.queue_drops } else { dropped(net) };
    // The counters cover all listeners of the host: an overflow is attributed to this queue only if it may have been full. A burst can be
    // over between two samples, but then each timed-out dial has overflowed a queue.
    let dials = s.faults.iter().filter(|f| f.stage == Stage::Dial && f.kind == Kind::Timeout);
    let timed_out: u64 = dials.map(|f| f.count).sum();
    let may_be_its_own = e.accept_queue.is_none_or(|queue| queue.used * 2 >= queue.limit)
        || timed_out > 0 && net.listen_overflows >= timed_out
        || e.has_missing()
        || drops_explain(s, e);
    (is_full(e) || lost > 0 && may_be_its_own).then_some(lost)
}

/// Whether drops by its listeners explain the timeouts: a connection whose final handshake segment was dropped never gets a response, and
/// each such connection was dropped at least once. For connections that were still waiting at the end it is known whether the target has
/// them.
fn drops_explain(s: &Summary, e: &Evidence) -> bool {
    let exchanges = s.faults.iter().filter(|f| f.stage != Stage::Dial && f.kind == Kind::Timeout);
    let timed_out: u64 = exchanges.map(|f| f.count).sum();
    let waited = match e.missing {
        Some(0) => timed_out.saturating_sub(s.connections.dropped_in_drain),
        _ => timed_out + s.requests.unanswered,
    };
    waited > 0 && e.queue_drops >= waited && 2 * e.unserved >= waited
}

/// As `overflows`, including overflows after which dials succeeded when their SYN was retransmitted.
pub(crate) fn overflows_of_slow_dials(s: &Summary, e: &Evidence) -> Option<u64> {
    let net = e.there?.net;
    let seen = overflows(s, e).filter(|lost| *lost > 0);
    seen.or_else(|| Some(net.listen_overflows).filter(|n| *n > 0 && s.connect_us.max >= SYN_AGAIN_US))
}

/// The warning about overflows for a run that passes.
pub(crate) fn overflow_warning(s: &Summary, e: &Evidence) -> Option<String> {
    let lost = overflows_of_slow_dials(s, e)?;
    let (p99, max) = (s.connect_us.p99 / 1e6, s.connect_us.max / 1e6);
    let times = Count(lost).of("time");
    let fix = match (e.arrivals_per_s, limiting_pace(e)) {
        (Some(arrive), Some(pace)) => {
            format!("{}: {}", slow_accept(pace, Some(arrive)), own_pace_fix(e, pace))
        }
        _ => longer(e),
    };
    Some(format!(
        "warning: the target's accept queue overflowed {times}: dials took up to {max:.1} s (p99 \
        {p99:.1} s), because a dropped SYN is retransmitted after 1 s; {fix}"
    ))
}

/// `the target accepts no more than 98 connections/s`
pub(crate) fn slow_accept(per_s: f64, arrive: Option<f64>) -> String {
    match arrive {
        None => format!("the target accepts no more than {per_s:.0} connections/s"),
        Some(arrive) => {
            format!("{arrive:.0} connections/s arrive, and the target accepts no more than {per_s:.0}/s")
        }
    }
}

/// The fix if the target accepts at its own, limited pace.
pub(crate) fn own_pace_fix(e: &Evidence, pace: f64) -> String {
    // A search for the rate of dials has no flag for it.
    let flag = match e.search {
        Some(By::Arrival | By::Burst) => None,
        _ if e.subject.arrives => Some("--arrive"),
        _ => Some("--ramp"),
    };
    match flag {
        Some(flag) => format!("use {flag} {}/s, or {THREADS}", (pace * 0.9).floor().max(1.0)),
        None => THREADS.to_owned(),
    }
}

/// Connections accepted per second, if that is a limit: fewer than arrive, or others were waiting most of the time.
pub(crate) fn limiting_pace(e: &Evidence) -> Option<f64> {
    let is_limit = |rate: &f64| match e.arrivals_per_s {
        Some(arrive) => *rate < NEARLY_ALL * arrive,
        None => !e.queue_empties,
    };
    e.accepts_per_s.filter(is_limit)
}

/// A growing number of connections or requests waited, because they came faster than the target served them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outrun {
    /// Connections in the accept queue at the end, and the number of them that throng had given up.
    Queued { count: u64, given_up: u64 },
    /// Connections waiting for a response when arrivals ended.
    Served { count: u64 },
    /// Requests at a rate that were waiting when the load ended, for a connection or a response.
    Rate { count: u64, connections: u64 },
}

/// For a step of a search by arrival or rate: the growing backlog, whose requests were answered only once no more came. Such a load is not
/// sustained, however long the queue is.
pub(crate) fn outrun(e: &Evidence, connections: u64) -> Option<Outrun> {
    match e.search {
        Some(By::Arrival) => e.backlog.map(|waiting| outrun_by(e, waiting)),
        Some(By::Rate) => e.rate_backlog.map(|count| Outrun::Rate { count, connections }),
        _ => None,
    }
}

/// The warning about a growing backlog, for a run that passes because every request was answered once no more came.
pub(crate) fn outrun_warning(e: &Evidence) -> Option<String> {
    let outrun = e.backlog.map(|waiting| outrun_by(e, waiting)).filter(|_| e.search.is_none())?;
    let command = &e.subject.search_by_arrival;
    Some(format!("warning: {}; search the rate that it sustains ({command})", outrun.sentence()))
}

/// Attributes a backlog to the accept queue only if connections are not accepted as fast as they arrive: otherwise they are queued for a
/// moment only and wait for something else.
fn outrun_by(e: &Evidence, waiting: u64) -> Outrun {
    let keeps_up = e.accepts_per_s.is_some() && limiting_pace(e).is_none();
    let given_up = e.given_up_at_end;
    let is_most = |queued: &u64| !keeps_up && queued.saturating_sub(given_up) as f64 >= HALF * waiting as f64;
    match e.queued_at_end.filter(is_most) {
        Some(count) => Outrun::Queued { count, given_up },
        None => Outrun::Served { count: waiting },
    }
}

/// The growing backlog as the limit of a run that fails. Timeouts are included: once as many time out as come too fast, the backlog stops
/// growing.
pub(crate) fn outpaced(case: &Case) -> Option<Outrun> {
    let e = case.evidence;
    let outrun = match e.search {
        None => e.outpaced.map(|waiting| outrun_by(e, waiting)),
        Some(_) => outrun(e, case.held()),
    };
    outrun.filter(|_| case.is_waiting())
}

/// The evidence, as text.
pub(crate) const fn more(e: &Evidence) -> &'static str {
    match e.search {
        None => "more waited, or had timed out, in each part of the load than in the one before",
        Some(_) => "more waited in each part of the step than in the one before",
    }
}

impl Outrun {
    pub(crate) fn sentence(&self) -> String {
        match *self {
            Outrun::Queued { count, given_up: 0 } => format!(
                "connections arrive faster than the target accepts them: {} waited in its accept queue at the end",
                Count(count)
            ),
            Outrun::Queued { count, given_up } => format!(
                "connections arrive faster than the target accepts them: {} in its accept queue at the end, {} of them already \
                abandoned by throng",
                Count(count),
                Count(given_up)
            ),
            Outrun::Served { count } => format!(
                "connections arrive faster than the target serves them: {} waited for a response at the end",
                Count(count)
            ),
            Outrun::Rate { count, connections: held } => format!(
                "requests come faster than the target serves them on {}: {} waited at the end",
                connections(held),
                Count(count)
            ),
        }
    }
}
